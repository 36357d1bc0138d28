"""CentralPool: the network stays with the learner, on its device, and plays for all tables from there.

Tables that release the GIL step in threads of the learner's own process; others step in processes that these
threads ask (`RemoteTable`). Groups of games take turns: one steps while another's batch is on the device.
With `overlap` each group has two blocks, so that it plays on while the learner learns from the other.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ludus import algos, games
from ludus.algos import Actor
from ludus.core.block import Block
from ludus.core.game import Game
from ludus.core.report import Cancelled
from ludus.core.table import Table
from ludus.training.pools import LEAVE_S, LOOK_S, Delivery, Health, PoolPlan, never
from ludus.training.remote_table import RemoteTable
from ludus.training.seating import Seating
from ludus.training.weights import Past, PastSelves


class CentralPool:
    resizable, reads_vector = False, False

    def __init__(self, made_of: PoolPlan) -> None:
        plan = made_of.plan
        self.workers, self._version, self._started, self._cancelled = plan.workers, 0, False, False
        self._past = Past(made_of.context, made_of.vector)
        game = games.open(plan.game, **plan.switches)
        central = algos.find(plan.algo).make_central(
            plan, game, made_of.net, made_of.columns, made_of.overlap
        )
        self._central, self._remote = central, list[RemoteTable]()
        tables = [self._make_table(game, made_of) for _ in range(self.workers)]  # processes start together
        self._actors: list[Actor] = []
        self._blocks: list[list[Block]] = []
        for index, table in enumerate(tables):
            seating = Seating(plan, index, game, table, self._past, central.opponent)
            actor, blocks = central.add(index, table, seating)
            actor.cancelled = self._is_cancelled
            self._actors.append(actor)
            self._blocks.append(blocks)
        for remote in self._remote:
            remote.cancelled = self._is_cancelled
        self._slot = 0  # of the blocks that were received last
        self._early: list[Delivery] = []  # that must wait for those of other groups
        self._busy = [0] * self.workers  # blocks that each group has yet to fill
        self._asked: list[queue.SimpleQueue[tuple[int, int] | None]] = [queue.SimpleQueue() for _ in tables]
        self._ready: queue.SimpleQueue[Delivery | BaseException] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(index,), name=f"ludus-group-{index}", daemon=True)
            for index in range(self.workers)
        ]

    def _make_table(self, game: Game, made_of: PoolPlan) -> Table:
        if game.in_threads:
            return game.table(made_of.plan.rows)
        table = RemoteTable(made_of.context, game, made_of.plan.rows, made_of.log)
        self._remote.append(table)
        return table

    def _is_cancelled(self) -> bool:
        return self._cancelled

    def _serve(self, index: int) -> None:
        """A thread: fill the blocks that are asked for until told to stop."""
        while (asked := self._asked[index].get()) is not None:
            slot, version = asked
            block = self._blocks[index][slot]
            try:
                report = self._actors[index].fill(block)
                self._ready.put(Delivery(index, slot, block, version, report))
            except Cancelled:
                return
            except BaseException as error:
                self._ready.put(error)
                return

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """What is finished; of every group a block, if the learner wants them together."""
        if not self._started:
            self._started = True
            for index, thread in enumerate(self._threads):
                thread.start()
                for slot in range(len(self._blocks[index])):
                    self._ask(index, slot)
        together = self._central.together or len(self._blocks[0]) == 1
        wanted = self.workers if together else 1
        found, self._early = self._early, []
        while len(found) < wanted or not (together or self._ready.empty()):
            try:
                delivery = self._ready.get(timeout=LOOK_S)
            except queue.Empty:
                if give_up():
                    return []
                continue
            if isinstance(delivery, BaseException):
                raise delivery
            self._busy[delivery.worker] -= 1
            early = together and any(other.worker == delivery.worker for other in found)
            (self._early if early else found).append(delivery)
        self._slot = found[0].slot
        return sorted(found, key=lambda delivery: (delivery.worker, delivery.slot))

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._ask(delivery.worker, delivery.slot)

    def _ask(self, index: int, slot: int) -> None:
        self._busy[index] += 1
        self._asked[index].put((slot, self._version))

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        self._central.publish(self._slot)
        for actor in self._actors:
            actor.load(vector, progress)
        self._version = version

    def publish_past(self, past: PastSelves) -> None:
        self._past.publish(past)

    def resize(self, workers: int) -> None:
        """Its threads share one network, so they are as many as they were."""

    def snapshot(self) -> list[dict[str, Any]]:
        if any(self._busy) or len(self._blocks[0]) > 1:
            return []  # they don't stand still
        return [actor.snapshot() for actor in self._actors]

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        for actor, snapshot in zip(self._actors, snapshots, strict=False):
            actor.restore(snapshot)

    def beats(self) -> int:
        return int(sum(actor.beat[0] for actor in self._actors))

    def progress(self) -> float | None:
        decisions = self._blocks[0][0].decisions
        return sum(actor.beat[1] for actor in self._actors) / decisions / self.workers

    def health(self) -> Health:
        replaced = sum(table.replaced for table in self._remote)
        pids = tuple(table.pid for table in self._remote)
        reason = max(self._remote, key=lambda table: table.replaced_at).reason if self._remote else ""
        return Health(self.workers, replaced, pids, reason)

    def close(self) -> None:
        self._cancelled = True
        for asked, thread in zip(self._asked, self._threads, strict=True):
            asked.put(None)
            if thread.is_alive():
                thread.join()
        for table in self._remote:
            table.leave()
        until = time.monotonic() + LEAVE_S  # for all together: each its own would add up
        for table in self._remote:
            table.close(until - time.monotonic())


def make(made_of: PoolPlan) -> CentralPool:
    return CentralPool(replace(made_of, plan=replace(made_of.plan, workers=max(1, made_of.plan.workers))))
