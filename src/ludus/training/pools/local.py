"""LocalPool: one actor in the learner's process."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ludus import processes
from ludus.algos import Plan
from ludus.core.block import Block
from ludus.core.errors import Failure
from ludus.core.report import Cancelled
from ludus.training.faults import REPLACED_SEED, TRIES, Fault
from ludus.training.pools import Delivery, Health, PoolPlan, never
from ludus.training.weights import Past, PastSelves
from ludus.training.worker import make_actor


class LocalPool:
    """One worker in this process: everything under one debugger."""

    workers, resizable, reads_vector = 1, False, True

    def __init__(self, made_of: PoolPlan) -> None:
        plan = made_of.plan
        self._plan, self._past = plan, Past(made_of.context, made_of.vector)
        self._family = processes.Family()
        self.replaced, self._failures, self._reason = 0, 0, ""
        self._make_actor(plan)
        self._block = Block(made_of.columns, plan.steps, plan.rows)
        self._whole = True
        self.publish(made_of.vector, 0, 0.0)

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        while True:
            self._actor.cancelled, self._whole = give_up, False
            try:
                with self._family.joined():
                    report = self._actor.fill(self._block)
            except Cancelled:
                return []
            except Exception as error:
                self._restart(error)
                continue
            self._whole, self._failures = True, 0
            return [Delivery(0, 0, self._block, self._version, report)]

    def release(self, deliveries: list[Delivery]) -> None:
        pass

    def snapshot(self) -> list[dict[str, Any]]:
        return [self._actor.snapshot()] if self._whole else []

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        self._actor.restore(snapshots[0])

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        self._actor.load(vector, progress)
        self._vector, self._version, self._progress = vector, version, progress

    def publish_past(self, past: PastSelves) -> None:
        self._past.publish(past)

    def resize(self, workers: int) -> None:
        """It stays one."""

    def beats(self) -> int:
        return int(self._actor.beat[0])

    def progress(self) -> float | None:
        return self._actor.beat[1] / self._block.decisions

    def health(self) -> Health:
        return Health(0, self.replaced, (), self._reason)

    def close(self) -> None:
        try:
            self._table.close()
        finally:
            self._family.end()

    def _make_actor(self, plan: Plan) -> None:
        try:
            with self._family.joined():
                self._actor, self._table = make_actor(plan, 0, self._past, np.zeros(3, np.int64))
        except BaseException:
            self._family.end()
            raise

    def _restart(self, error: Exception) -> None:
        """New games instead of those that failed."""
        fault = Fault.of(error)
        if fault.final:
            raise error
        self._failures += 1
        if self._failures > TRIES:
            raise Failure(f"the games failed {self._failures} times: {fault.line}") from error
        self.replaced += 1
        self._reason = f"the games failed: {fault.line}"
        with contextlib.suppress(Exception):  # what has failed may fail at this too
            self.close()
        self._make_actor(replace(self._plan, seed=self._plan.seed + self.replaced * REPLACED_SEED))
        self.publish(self._vector, self._version, self._progress)


make = LocalPool
