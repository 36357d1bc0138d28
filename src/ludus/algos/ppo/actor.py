"""PPO's actor: decisions with their probabilities, a memory if the network has one, and a teacher."""

import time
from typing import Any

import numpy as np

from ludus.algos import Plan, Policy, Seating
from ludus.algos.actor import StepActor
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.game import Game
from ludus.core.table import Table, Turn
from ludus.nets import Memory


class PpoActor(StepActor):
    def __init__(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray,
        policy: Policy,
    ) -> None:  # fmt: skip
        super().__init__(plan, index, table, seating, beat, policy)
        middle = (plan.workers - 1) / 2
        self.temperature = 1 + plan.temperature_spread * ((index - middle) / middle if middle else 0)
        self.memory = Memory(plan.net, plan.rows, self.spec.seats) if plan.net.memory else None
        self.teacher, name = None, plan.settings.teacher
        if name:
            streams = seeds.rows(plan.seed, table.rows, "worker", index, "bot", name)
            self.teacher = seating.player(name, streams)
        self.use_teacher = True

    def load(self, vector: np.ndarray, progress: float) -> None:
        super().load(vector, progress)
        self.use_teacher = progress < self.plan.settings.teacher_until

    def decide(self, turn: Turn, block: Block, t: int) -> np.ndarray:
        block["seat"][t] = turn.seat
        actions = self.choose(turn, block, t)
        if self.teacher is not None and self.use_teacher:
            start = time.perf_counter()
            block["teacher"][t] = self.teacher.choose(self.every, turn)
            self.spent["teaching"] += time.perf_counter() - start
        return actions

    def choose(self, turn: Turn, block: Block, t: int) -> np.ndarray:
        """Actions for all rows; writes what the policy saw, chose and expected."""
        logits, value, memory = self.policy.look(turn.obs, self._recall(block, t))
        actions, logp = self.policy.draw(logits, turn.legal, self.rng, self.temperature)
        if self.memory and memory is not None:
            self.memory.put(self.every, turn.seat, memory)
        start = time.perf_counter()
        self._keep(turn.obs, block, t)
        block["legal"][t], block["action"][t] = turn.legal, actions
        block["logp"][t], block["value"][t] = logp, value
        self.spent["writing"] += time.perf_counter() - start
        return actions

    def note(self, turn: Turn, block: Block, t: int) -> None:
        block["reward"][t] = turn.reward
        block["ended"][t] = turn.ended | turn.truncated
        block["bootstrap"][t] = self._bootstrap()
        if self.memory:
            self.memory.forget(block["ended"][t])

    def snapshot(self) -> dict[str, Any]:
        kept = super().snapshot()
        if not kept:
            return {}
        return kept | {
            "teacher": self.teacher.snapshot() if self.teacher else {},
            "memory": self.memory.snapshot() if self.memory else {},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        if not snapshot:
            return
        if self.teacher:
            self.teacher.restore(snapshot["teacher"])
        if self.memory:
            self.memory.restore(snapshot["memory"])

    def _keep(self, obs: np.ndarray, block: Block, t: int) -> None:
        """Of a stack of frames only the newest, but all of a block's first."""
        stack = self.spec.stack
        if not stack:
            block["obs"][t] = obs
        elif t:
            block["frames"][t + stack - 1] = obs[:, -1]
        else:
            block["frames"][:stack] = obs.swapaxes(0, 1)

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
            memory = self.memory.at(last.rows, last.seats) if self.memory else None
            worth[last.rows] = 0
            worth[last.rows, last.seats] = self.policy.value(last.obs, memory)
        return worth
