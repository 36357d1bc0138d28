"""StepActor: an actor that steps its table, decision by decision. Algorithms say what happens at each."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.algos import Plan, Policy, Seating
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.report import Cancelled, Report
from ludus.core.table import Table, Turn, refuse_infinite


class StepActor:
    """T decisions of the learning policy in each of N games: a block [T, N]."""

    def __init__(
        self, plan: Plan, index: int, table: Table, seating: Seating, beat: np.ndarray, policy: Policy
    ) -> None:
        self.plan, self.beat, self.table, self.seating = plan, beat, table, seating
        self.policy, self.spec = policy, table.spec
        self.cancelled: Callable[[], bool] = _never
        self.rng = seeds.generator(plan.seed, "worker", index, "policy")
        self.every = np.arange(plan.rows)
        self.spent: dict[str, float] = defaultdict(float)
        """Seconds of what is not inference in `decide`, of the block that is being filled."""
        self.idle_since = time.perf_counter()
        self.counted = np.zeros(len(self.spec.counters))  # by the table, until the last block
        first = table.reset(seeds.derive(plan.seed, "worker", index, "table"))
        self.turn = self._looked_at(seating.start(first))

    def decide(self, turn: Turn, block: Block, t: int) -> np.ndarray:
        """Actions for all rows; writes what is to be learned from them at step t of the block."""
        raise NotImplementedError

    def note(self, turn: Turn, block: Block, t: int) -> None:
        """Writes what the step brought. turn: after it"""
        raise NotImplementedError

    def load(self, vector: np.ndarray, progress: float) -> None:
        self.policy.load(vector)

    def fill(self, block: Block) -> Report:
        report = Report(stats=np.zeros(len(self.spec.stats)), begun=time.time())
        clock = time.perf_counter
        deciding = stepping = 0.0
        begun = clock()
        self.spent.clear()
        for t in range(block.steps):
            if self.cancelled():
                raise Cancelled
            self.beat[1] = t * block.rows
            start = clock()
            actions = self.decide(self.turn, block, t)
            decided = clock()
            self.turn = self._looked_at(self.seating.step(actions, report))
            self.beat[0] += 1
            self.note(self.turn, block, t)
            took = clock() - decided
            self.beat[2] = max(self.beat[2], int(1000 * took))
            deciding, stepping = deciding + decided - start, stepping + took
        report.seconds = {
            "inference": deciding - sum(self.spent.values()), "stepping": stepping, **self.spent,
            "waiting": begun - self.idle_since,
        }  # fmt: skip
        self.idle_since = clock()
        counted = self.table.counters()
        report.counters, self.counted = counted - self.counted, counted
        return report

    def snapshot(self) -> dict[str, Any]:
        if not (table := self.table.snapshot()):
            return {}
        return {"table": table, "seating": self.seating.snapshot(), "rng": seeds.frozen(self.rng)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        if not snapshot:
            return
        self.turn = self.table.restore(snapshot["table"])
        self.seating.restore(snapshot["seating"])
        seeds.thaw(self.rng, snapshot["rng"])

    def _looked_at(self, turn: Turn) -> Turn:
        if not self.table.finite:
            refuse_infinite(turn, self.spec.game)
        return turn


def _never() -> bool:
    return False
