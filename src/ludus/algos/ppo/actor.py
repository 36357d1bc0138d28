"""PPO's actor: fills blocks with decisions of the learning policy. Knows nothing of processes."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.algos import Plan, Policy, Seating
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.errors import Failure
from ludus.core.game import Game
from ludus.core.observation import first_not_finite
from ludus.core.report import Cancelled, Report
from ludus.core.table import Table
from ludus.nets import Memory


class PpoActor:
    records = True
    """Whether the actor writes what the policy saw and chose; a policy on a device keeps that there."""

    def __init__(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray,
        policy: Policy,
    ) -> None:  # fmt: skip
        self.plan, self.beat, self.table, self.seating = plan, beat, table, seating
        self.policy: Any = policy
        self.spec = table.spec
        self.cancelled: Callable[[], bool] = _never
        self.rng = seeds.generator(plan.seed, "worker", index, "policy")
        middle = (plan.workers - 1) / 2
        self.temperature = 1 + plan.temperature_spread * ((index - middle) / middle if middle else 0)
        self.every = np.arange(plan.rows)
        self.memory = Memory(plan.net, plan.rows, self.spec.seats) if plan.net.memory else None
        self.teacher, name = None, plan.settings.teacher
        if name:
            streams = seeds.rows(plan.seed, table.rows, "worker", index, "bot", name)
            self.teacher = game.player(name, table, streams)
        self.use_teacher = True
        self.idle_since = time.perf_counter()
        self.turn = seating.start(table.reset(seeds.derive(plan.seed, "worker", index, "table")))

    def load(self, vector: np.ndarray, progress: float) -> None:
        self.policy.load(vector)
        self.use_teacher = progress < self.plan.settings.teacher_until

    def fill(self, block: Block) -> Report:
        """T decisions of the learning policy in each of N games."""
        report = Report(stats=np.zeros(len(self.spec.stats)), begun=time.time())
        clock = time.perf_counter
        inference = teaching = stepping = 0.0
        begun = clock()
        for t in range(block.steps):
            if self.cancelled():
                raise Cancelled
            self.beat[1] = t * block.rows
            turn, start = self.turn, clock()
            self._refuse_infinite(turn.obs, self.every)
            memory = self._recall(block, t)
            actions, logp, memory = self.policy.act(turn.obs, turn.legal, self.rng, self.temperature, memory)
            if self.memory and memory is not None:
                self.memory.put(self.every, turn.seat, memory)
            inference += clock() - start
            block["seat"][t] = turn.seat
            if self.teacher is not None and self.use_teacher:
                start = clock()
                block["teacher"][t] = self.teacher.choose(self.every, turn)
                teaching += clock() - start
            if self.records:
                block["obs"][t], block["legal"][t] = turn.obs, turn.legal
                block["action"][t], block["logp"][t] = actions, logp
            start = clock()
            self.turn = self.seating.step(actions, report)
            self.beat[0] += 1
            block["reward"][t] = self.turn.reward
            block["ended"][t] = self.turn.ended | self.turn.truncated
            block["bootstrap"][t] = self._bootstrap()
            if self.memory:
                self.memory.forget(block["ended"][t])
            took = clock() - start
            self.beat[2] = max(self.beat[2], int(1000 * took))
            stepping += took
        report.seconds = {
            "inference": inference,
            "stepping": stepping,
            "teaching": teaching,
            "writing": clock() - begun - inference - stepping - teaching,
        }
        report.seconds["waiting"] = begun - self.idle_since
        self.idle_since = clock()
        return report

    def snapshot(self) -> dict[str, Any]:
        if not (table := self.table.snapshot()):
            return {}
        return {
            "table": table,
            "seating": self.seating.snapshot(),
            "rng": seeds.frozen(self.rng),
            "teacher": self.teacher.snapshot() if self.teacher else {},
            "memory": self.memory.snapshot() if self.memory else {},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        if not snapshot:
            return
        self.turn = self.table.restore(snapshot["table"])
        self.seating.restore(snapshot["seating"])
        seeds.thaw(self.rng, snapshot["rng"])
        if self.teacher:
            self.teacher.restore(snapshot["teacher"])
        if self.memory:
            self.memory.restore(snapshot["memory"])

    def _recall(self, block: Block, t: int) -> np.ndarray | None:
        """What the seats to move remember; kept in the block, so that learning can begin anywhere in it."""
        if self.memory is None:
            return None
        memory = self.memory.at(self.every, self.turn.seat)
        block["memory"][t], block["fresh"][t] = memory, self.memory.fresh[self.every, self.turn.seat]
        return memory

    def _bootstrap(self) -> np.ndarray | float:
        """What games that were cut off were still worth to each seat, [N, seats].

        0 for a seat that was out of its game or whose game is over, NaN if nobody knows.
        """
        cut, last = self.turn.truncated, self.turn.last_obs
        if not cut.any():
            return 0.0
        worth = np.where(cut[:, None], np.nan, np.zeros((1, self.spec.seats)))
        if last is not None:
            self._refuse_infinite(last.obs, last.rows)
            memory = self.memory.at(last.rows, last.seats) if self.memory else None
            worth[last.rows] = 0
            worth[last.rows, last.seats] = self.policy.value(last.obs, memory)
        return worth

    def _refuse_infinite(self, obs: np.ndarray, rows: np.ndarray) -> None:
        """One of them would turn all weights into NaN. rows: int64 [N], whose observations they are"""
        if self.table.finite or (found := first_not_finite(obs)) is None:
            return
        row, number = rows[found[0]], found[1]
        problem = f"has {number}, not a finite number"
        raise Failure(f"{self.spec.game}: the observation in row {row} {problem}")


def _never() -> bool:
    return False
