"""SearchPool: searches in threads of the learner's process, with one network for all of them on its device.

The searches are compiled and release the GIL; while one group of games searches, another's batch is computed.
With `overlap` each group has two blocks, so that it plays on while the learner learns from the other.
"""

import itertools
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from ludus import games
from ludus.algos.alphazero.evaluators import DeviceNetwork, playing_copy, update
from ludus.core.block import Block, Column
from ludus.core.rules import Rules
from ludus.nets.board import BoardNet
from ludus.train.pool import LOOK_S, Delivery, never
from ludus.train.selfplay import SelfPlay
from ludus.train.worker import Cancelled, Plan

PAST_ROWS = 64
"""Past selves are asked for few games, but a GPU computes whole batches."""
SWITCH_S = 0.001
"""The learner's thread must not wait longer than this for those of the groups to give way."""


class SearchPool:
    def __init__(
        self, plan: Plan, columns: list[Column], net: BoardNet, past: Any, groups: int, overlap: bool
    ) -> None:
        self.past, self.workers, self._version, self._cancelled = past, groups, 0, False
        self._learned, self._playing = net, playing_copy(net)
        self._past_networks: dict[int, DeviceNetwork] = {}
        sys.setswitchinterval(SWITCH_S)
        plan = replace(plan, workers=groups)
        slots = range(2 if overlap else 1)
        self._blocks = [[Block(columns, plan.steps, plan.rows) for _ in slots] for _ in range(groups)]
        self._workers = [self._make_worker(plan, index) for index in range(groups)]
        self._asked: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(groups)]
        self._ready: queue.SimpleQueue = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(index,), name=f"ludus-group-{index}", daemon=True)
            for index in range(groups)
        ]

    def _make_worker(self, plan: Plan, index: int) -> SelfPlay:
        rules, slots = games.rules(plan.game, **plan.switches), itertools.cycle(range(self.past.slots))

        def make_past(rules: Rules) -> DeviceNetwork:
            """Past selves' networks are shared by all groups, which seldom meet them."""
            slot = next(slots)
            if slot not in self._past_networks:
                self._past_networks[slot] = DeviceNetwork(rules, playing_copy(self._learned), PAST_ROWS)
            return self._past_networks[slot]

        policy = DeviceNetwork(rules, self._playing, plan.rows)
        worker = SelfPlay(plan, index, self.past, policy=policy, make_past=make_past)
        worker.cancelled = lambda: self._cancelled
        return worker

    def _serve(self, index: int) -> None:
        """A thread: fill the blocks that are asked for until told to stop."""
        while (slot := self._asked[index].get()) is not None:
            version, block = self._version, self._blocks[index][slot]
            try:
                report = self._workers[index].fill(block)
                self._ready.put(Delivery(index, slot, block, version, report))
            except Cancelled:
                return
            except BaseException as error:
                self._ready.put(error)
                return

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """What is finished; if groups stand still meanwhile, everything they were asked for."""
        if not self._threads[0].is_alive():
            for index, thread in enumerate(self._threads):
                thread.start()
                for slot in range(len(self._blocks[index])):
                    self._asked[index].put(slot)
        wanted = self.workers if len(self._blocks[0]) == 1 else 1
        found: list[Delivery] = []
        while len(found) < wanted or not self._ready.empty():
            try:
                delivery = self._ready.get(timeout=LOOK_S)
            except queue.Empty:
                if give_up():
                    return []
                continue
            if isinstance(delivery, BaseException):
                raise delivery
            found.append(delivery)
        return sorted(found)

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._asked[delivery.worker].put(delivery.slot)

    def snapshot(self) -> list[dict[str, Any]]:
        if len(self._blocks[0]) > 1:
            return []  # they never stand still
        return [worker.snapshot() for worker in self._workers]

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        for worker, snapshot in zip(self._workers, snapshots, strict=False):
            worker.restore(snapshot)

    def publish(self, vector: np.ndarray, version: int, use_teacher: bool = True) -> None:
        with ExitStack() as paused:
            for worker in self._workers:
                paused.enter_context(worker.policy.paused())
            update(self._playing, self._learned)
        self._version = version

    def beats(self) -> int:
        """Leaves that all groups valued so far."""
        return int(sum(worker.beat[0] for worker in self._workers))

    def progress(self) -> float | None:
        decisions = self._blocks[0][0].decisions
        return sum(worker.beat[1] for worker in self._workers) / decisions / self.workers

    def health(self) -> dict[str, Any]:
        return {"workers": self.workers, "replaced": 0, "pids": []}

    def close(self) -> None:
        self._cancelled = True
        for asked, thread in zip(self._asked, self._threads, strict=True):
            asked.put(None)
            if thread.is_alive():
                thread.join()
