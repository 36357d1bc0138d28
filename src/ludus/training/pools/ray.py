"""RayPool: workers on the nodes of a Ray cluster, which may come and go.

A worker gives its block's bytes to Ray's object store; the learner reads them there. Weights and past selves
are put there once and fetched once for each node. Where workers are is the business of `Placement`. Nothing
is named or detached: if the learner dies, Ray ends all of its workers.
"""

import contextlib
import ctypes
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ludus.core.block import Block
from ludus.core.errors import Failure, Usage
from ludus.core.report import Report
from ludus.training import cluster
from ludus.training.faults import KILLED_TRIES, REPLACED_SEED, TRIES, Fault, patience_s
from ludus.training.placement import Asked, Placement, WorkerHandle
from ludus.training.pools import LEAVE_S, LOOK_S, Delivery, Health, PoolPlan, never
from ludus.training.ray_worker import Hello, PastNews
from ludus.training.weights import PAST_SLOTS, PastSelves

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung, unless its games are known to be as slow."""
PULSE_S = 2.0
"""How often we look how late workers are."""
START_S = 20.0
"""How long the first update waits for workers that are still starting."""
LATE_S, LATE = 2.0, 4.0
"""The learner goes on without a worker that takes so long for a block, and so many times the usual time."""
GET_S = 10.0
"""How long a block that has come may take to be read: its node may be gone since."""
SEEN = 64
"""Blocks by whose times the usual one is known."""


class RayPool:
    """Workers wherever there are cores, one core each."""

    resizable, reads_vector = False, True

    def __init__(self, made_of: PoolPlan) -> None:
        self.plan, self._columns, self._vector = made_of.plan, made_of.columns, made_of.vector
        self.min_blocks, self._overlap, self._wishes = made_of.min_blocks, made_of.overlap, made_of.cluster
        self.replaced = self.dropped = 0
        self._reason = ""
        self._handles: dict[int, WorkerHandle] = {}
        self._failures: Counter[int] = Counter()  # in a row, by index
        self._ready: list[Delivery] = []
        self._took: deque[float] = deque(maxlen=SEEN)
        self._pulsed = self._waits_since = 0.0
        self._ours = cluster.connect(self._wishes.address, self._wishes.modules)
        try:
            self._join(made_of.tell)
        except BaseException:
            self.close()
            raise

    def _join(self, tell: Callable[..., None]) -> None:
        import ray

        self._ray: Any = ray
        self._past_put: dict[int, tuple[int, Any]] = {}
        self._past_vectors = np.zeros((PAST_SLOTS, len(self._vector)), np.float32)
        self._past_news, self._past_number = PastNews(np.zeros(0), np.zeros(0), {}), 0
        self._first = ray.put(self._vector)
        self.publish(self._vector, 0, 0.0)
        self._begun_at = time.monotonic()
        self._placement = Placement(self._wishes, self.plan.workers, tell)
        self._handles = self._placement.handles
        self._placement.look_around()
        if not self.workers:
            raise Usage("the Ray cluster has no cores for workers: add nodes, or give them more --num-cpus")

    @property
    def workers(self) -> int:
        return self._placement.count()

    # ---- what the loop calls

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """A block of every worker that plays, in the order of workers; those that are late come later."""
        self._waits_since = time.monotonic()
        for index in self._handles:
            self._ask(index)
        while self._missing() or not self._ready:
            if give_up():
                return []
            self._listen()
        self._placement.begun = True
        ready, self._ready = sorted(self._ready, key=lambda delivery: delivery.worker), []
        return ready

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            handle = self._handles.get(delivery.worker)
            if handle and handle.serial == delivery.slot:
                handle.held -= 1
                self._ask(delivery.worker)
        self._placement.look_around()

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        self._weights, self._version, self._progress = self._ray.put(vector), version, progress

    def publish_past(self, past: PastSelves) -> None:
        self._past_number += 1
        for slot in range(PAST_SLOTS):
            if (past.weights[slot] != self._past_vectors[slot]).any():
                self._past_vectors[slot] = past.weights[slot]
                self._past_put[slot] = self._past_number, self._ray.put(past.weights[slot])
        self._past_news = PastNews(past.odds.copy(), past.versions.copy(), dict(self._past_put))

    def resize(self, workers: int) -> None:
        """The cluster decides."""

    def snapshot(self) -> list[dict[str, Any]]:
        """Nodes come and go, so an exact resume can't be promised."""
        return []

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        """Workers begin new games."""

    def beats(self) -> int:
        return sum(handle.beats[0] for handle in self._handles.values())

    def progress(self) -> float | None:
        playing = [handle for handle in self._handles.values() if handle.ready]
        decisions = self.plan.rows * self.plan.steps
        shares = [handle.beats[1] / decisions if handle.asked else 1.0 for handle in playing]
        return statistics.mean(shares) if shares else None

    def health(self) -> Health:
        ready = [handle for handle in self._handles.values() if handle.ready]
        pids = tuple(handle.pid for handle in ready if handle.node == self._placement.home)
        by_node = self._placement.by_node()
        return Health(len(ready), self.replaced, pids, self._reason, by_node, self.dropped)

    def close(self) -> None:
        leaving = [handle.actor.leave.remote() for handle in self._handles.values() if handle.ready]
        if leaving:
            self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVE_S)
        for index in list(self._handles):
            self._placement.forget(index)
        self._ready.clear()
        if self._ours:
            cluster.leave()

    # ---- blocks

    def _ask(self, index: int) -> None:
        """As many blocks as a worker may have on the way: it bounds what lies in the object store."""
        handle = self._handles[index]
        elsewhere = handle.node != self._placement.home and not self._wishes.sync
        most = 2 if self._overlap or elsewhere else 1
        while handle.ready and len(handle.asked) + handle.held < most:
            news = self._past_news if handle.past != self._past_number else None
            report, block = handle.actor.fill.options(num_returns=2).remote(
                self._weights, self._version, self._progress, news
            )
            handle.past = self._past_number
            if not handle.asked:
                handle.since = handle.beat_at = time.monotonic()
            handle.asked.append(Asked(report, block, self._version))

    def _missing(self) -> list[WorkerHandle]:
        """Workers whose blocks the learner waits for."""
        if len(self._ready) >= self.min_blocks:
            return []
        there = {delivery.slot for delivery in self._ready}
        missing = [handle for handle in self._handles.values() if handle.serial not in there]
        if self._wishes.sync:
            return missing
        now = time.monotonic()
        usual_s = statistics.median(self._took) if self._took else float("inf")
        for handle in missing:
            waited_s = now - max(handle.since, self._waits_since)
            handle.late = handle.late or waited_s > max(LATE_S, LATE * usual_s)
        starting = not self._placement.begun and now - self._begun_at < START_S
        return [handle for handle in missing if (not handle.late if handle.ready else starting)]

    def _listen(self) -> None:
        """Take what has come; replace the dead and the hung."""
        waiting = {}
        for index, handle in self._handles.items():
            if handle.starting is not None:
                waiting[handle.starting] = index
            elif handle.asked:
                waiting[handle.asked[0].block] = index
        if waiting:
            needed = max(1, min(len(waiting), self.min_blocks - len(self._ready), len(self._missing())))
            come, _ = self._ray.wait(list(waiting), num_returns=needed, timeout=LOOK_S, fetch_local=True)
            for ref in come:
                self._hear(waiting[ref], ref)
        else:
            time.sleep(LOOK_S)
        self._placement.look_around()
        self._check_pulses()

    def _hear(self, index: int, ref: Any) -> None:
        handle = self._handles.get(index)
        try:
            if handle and handle.starting == ref:
                self._start_further(index, self._ray.get(ref))
            elif handle and handle.asked and handle.asked[0].block == ref:  # else it was replaced meanwhile
                asked = handle.asked[0]
                report, data = self._ray.get([asked.report, asked.block], timeout=GET_S)
                handle.asked.pop(0)
                self._take(index, report, data, asked.version)
        except self._ray.exceptions.RayError as error:
            self._lose(index, "died", None, str(error))

    def _start_further(self, index: int, said: Any) -> None:
        """A worker has said hello, or made its games."""
        handle = self._handles[index]
        if isinstance(said, Fault):
            return self._lose(index, "failed", said)
        if handle.node:
            handle.starting, handle.ready = None, True
            self._ask(index)
            return self._placement.staff()
        hello = Hello(*said)
        if why := cluster.mismatch(self._placement.name(handle), hello.versions):
            return self._placement.refuse(handle.place, why)
        handle.node, handle.pid, handle.beat_at = hello.node, hello.pid, time.monotonic()
        plan = replace(
            self.plan, seed=self.plan.seed + handle.life * REPLACED_SEED,
            workers=max(self.plan.workers, index + 1),
        )  # fmt: skip
        handle.starting = handle.actor.begin.remote(plan, self._columns, self._first)

    def _take(self, index: int, report: Report | Fault, data: np.ndarray, version: int) -> None:
        handle, now = self._handles[index], time.monotonic()
        if isinstance(report, Fault):
            return self._lose(index, "failed", report)
        self._took.append(now - handle.since)
        handle.since = handle.beat_at = now
        handle.late, handle.proven = False, True
        self._failures[index] = 0
        if self._version - version > self._wishes.max_lag:
            self.dropped += 1
            return self._ask(index)
        block = Block(self._columns, self.plan.steps, self.plan.rows, _writable(data))
        handle.held += 1
        self._ready.append(Delivery(index, handle.serial, block, version, report))

    # ---- what goes wrong

    def _check_pulses(self) -> None:
        """Replace workers that hang. Only those that are late are asked."""
        now = time.monotonic()
        if now - self._pulsed < PULSE_S:
            return
        self._pulsed = now
        for index, handle in list(self._handles.items()):
            if handle.pulse is not None and self._ray.wait([handle.pulse], timeout=0)[0]:
                with contextlib.suppress(self._ray.exceptions.RayError):  # it will be seen to have died
                    self._note_pulse(handle, tuple(self._ray.get(handle.pulse)))
                handle.pulse = None
            busy = handle.node and (handle.starting is not None or handle.asked)
            if not busy or now - max(handle.since, handle.beat_at) < PULSE_S:
                continue
            most_s = patience_s(PATIENCE_S, self.plan.rows, handle.beats[2] / 1000 if handle.proven else None)
            if now - handle.beat_at > most_s:
                self._lose(index, f"made no decision for {most_s:.0f} s", None)
            elif handle.pulse is None:
                handle.pulse = handle.actor.pulse.options(concurrency_group="pulse").remote()

    def _note_pulse(self, handle: WorkerHandle, beats: tuple[int, ...]) -> None:
        if beats[0] != handle.beats[0]:
            handle.beat_at = time.monotonic()
        handle.beats = beats

    def _lose(self, index: int, why: str, fault: Fault | None, error: str = "") -> None:
        """Replace a worker; its blocks that are not here yet are lost, and were never counted."""
        handle = self._handles[index]
        self._placement.look_around(now=True)
        if self._handles.get(index) is not handle:
            return  # its node has gone, and it with it
        name = self._placement.name(handle)
        if "ModuleNotFoundError" in error and "ludus" in error:
            missing = "has no Ludus: install it there, or send the learner's with --ray-modules"
            return self._placement.refuse(handle.place, f"node {name} {missing} {cluster.PACKAGE}")
        self._placement.forget(index)
        self._failures[index] += 1
        said = fault.line if fault else " ".join(error.split())[:300]
        if fault and fault.final:
            return self._refuse_final(handle.place, name, fault)
        failures = self._failures[index]
        if failures > (TRIES if fault else KILLED_TRIES):
            text = f"worker {index} on {name} {why} {failures} times: {said or 'it hung'}"
            if not any(other.ready for other in self._handles.values()):
                raise Failure(text) from (RuntimeError(fault.traceback) if fault else None)
            return self._placement.refuse(handle.place, text)
        self.replaced += 1
        self._reason = f"worker {index} on {name} {why}" + (f": {said}" if said else "")
        self._placement.spawn(handle.place)

    def _refuse_final(self, node: str, name: str, fault: Fault) -> None:
        """A worker was asked for something impossible there: elsewhere it may be possible."""
        if node == self._placement.home:
            raise Usage(fault.line) from RuntimeError(fault.traceback)
        needed = "every node needs what the learner has; --ray-modules sends your own code"
        self._placement.refuse(node, f"node {name} can't play: {fault.line} ({needed})")


def _writable(data: np.ndarray) -> Any:
    """The object store's memory as it lies, without the mark that it is read-only.

    Compiled code and torch treat such arrays as another kind. Nobody writes to a block that was delivered.
    """
    memory = (ctypes.c_byte * data.nbytes).from_address(data.ctypes.data)
    memory._kept = data  # type: ignore[attr-defined]
    return memory


make = RayPool
