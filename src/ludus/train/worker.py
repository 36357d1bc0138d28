"""Worker: a table and a copy of the policy. Fills one block at a time; knows nothing of processes."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ludus import games
from ludus.algos.alphazero import Config as AlphaZeroConfig
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.errors import Failure
from ludus.core.table import RulesTable, Table
from ludus.nets import Memory, NetConfig
from ludus.train.league import Seating, bot_player


class Cancelled(Exception):
    """Nobody wants the block any more."""


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs to know, plain enough to be sent to another process."""

    game: str
    switches: dict[str, Any]
    net: NetConfig
    rows: int
    steps: int
    opponents: str
    seed: int
    workers: int
    teacher: str = ""
    """The bot whose choice is written beside every decision, if any."""
    alphazero: AlphaZeroConfig | None = None
    """How to search, if this worker does."""
    temperature_spread: float = 0.0
    """Spread of the temperature: the first worker plays at 1 - spread, the last at 1 + spread."""


@dataclass
class Report:
    """What a worker counted while it filled a block."""

    games: int = 0
    score: float = 0.0
    stats: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Sums over finished games and over the seats of the learning policy, as `seats` counts them."""
    seats: int = 0
    begun: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    seated: dict[str, int] = field(default_factory=dict)
    """Seats of started games by who sat there."""
    results: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pairs of a seat of the learning policy and one of each opponent, and how many of them it won (a draw is
    a half)."""
    counts: dict[str, float] = field(default_factory=dict)
    """Other things done."""
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)
    """How many, of how many."""

    def count(self, name: str, more: float) -> None:
        self.counts[name] = self.counts.get(name, 0) + more

    def share(self, name: str, part: float, whole: float) -> None:
        before = self.shares.get(name, (0.0, 0.0))
        self.shares[name] = (before[0] + part, before[1] + whole)


def make_worker(plan: Plan, index: int, past, beat: np.ndarray | None = None) -> Any:
    """A worker of the kind that the plan asks for."""
    if plan.alphazero is None:
        return Worker(plan, index, past, beat)
    from ludus.train.selfplay import SelfPlay

    return SelfPlay(plan, index, past, beat)


def make_policy(spec, config: NetConfig):
    if config.is_plain(spec):
        from ludus.nets.plain import PlainPolicy

        return PlainPolicy(spec, config)
    from ludus.nets.policy import TorchPolicy

    return TorchPolicy(spec, config)


class Worker:
    def __init__(
        self, plan: Plan, index: int, past, beat: np.ndarray | None = None, policy=None,
        table: Table | None = None,
    ) -> None:  # fmt: skip
        """past: weights of past selves. beat: int64 [3]: counted up at every step as a sign of life;
        decisions of the block that is being filled; milliseconds of the slowest step so far.

        policy, table: what chooses and what is played, if not a copy of our own.
        """
        self.plan, self.index = plan, index
        self.beat = np.zeros(3, np.int64) if beat is None else beat
        self.cancelled: Callable[[], bool] = lambda: False
        self.table = table or games.table(plan.game, plan.rows, **plan.switches)
        self.spec = self.table.spec
        self.checked = self.spec.obs_dtype.kind == "f" and not isinstance(self.table, RulesTable)
        self.policy = policy or make_policy(self.spec, plan.net)
        self.records = policy is None
        self.rng = seeds.generator(plan.seed, "worker", index, "policy")
        middle = (plan.workers - 1) / 2
        self.temperature = 1 + plan.temperature_spread * ((index - middle) / middle if middle else 0)
        self.every = np.arange(plan.rows)
        self.memory = Memory(plan.net, plan.rows, self.spec.seats) if plan.net.memory else None
        self.teacher = bot_player(plan.teacher, plan, self.table, index) if plan.teacher else None
        self.use_teacher = True
        self.idle_since = time.perf_counter()
        self.seating = Seating(plan, self.table, index, past)
        self.turn = self.seating.start(self.table.reset(seeds.derive(plan.seed, "worker", index, "table")))

    def lend_memory(self) -> None:
        """Have the table write straight into the policy's memory, where it can."""
        if isinstance(self.table, RulesTable):
            self.turn = self.table.write_into(self.policy.obs.numpy(), self.policy.legal.numpy(), self.turn)

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
            if self.memory:
                self.memory.put(self.every, turn.seat, memory)
            inference += clock() - start
            block["seat"][t] = turn.seat
            if self.teacher is not None and self.use_teacher:
                start = clock()
                block["teacher"][t] = self.teacher.choose(self.every, turn)
                teaching += clock() - start
            if self.records:  # a policy on a device keeps these columns there
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
        """Everything that the next block depends on beside the weights; empty if the games can't be kept."""
        if not isinstance(self.table, RulesTable):
            return {}
        return {
            "table": self.table.snapshot(),
            "seating": self.seating.snapshot(),
            "rng": seeds.frozen(self.rng),
            "teacher": self.teacher.snapshot() if self.teacher else {},
            "memory": self.memory.snapshot() if self.memory else {},
            "policy": self.policy.snapshot() if hasattr(self.policy, "snapshot") else {},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot; from an empty one, with new games."""
        if not snapshot or not isinstance(self.table, RulesTable):
            return
        self.turn = self.table.restore(snapshot["table"])
        self.seating.restore(snapshot["seating"])
        seeds.thaw(self.rng, snapshot["rng"])
        if self.teacher:
            self.teacher.restore(snapshot["teacher"])
        if self.memory:
            self.memory.restore(snapshot["memory"])
        if snapshot["policy"] and hasattr(self.policy, "restore"):  # else inference ran elsewhere then
            self.policy.restore(snapshot["policy"])

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
        if not self.checked or math.isfinite(obs.sum(dtype=np.float64)):
            return
        for row, seen in zip(rows, obs, strict=True):
            if not (finite := np.isfinite(seen)).all():
                problem = f"has {seen[~finite][0]}, not a finite number"
                raise Failure(f"{self.spec.game}: the observation in row {row} {problem}")
