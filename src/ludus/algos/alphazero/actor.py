"""AlphaZero's actor: searches, and fills blocks with decisions of finished games."""

import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ludus.algos import Plan, Seating
from ludus.algos.alphazero import Config, record, utility
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.dice import weighted_choice
from ludus.core.report import Cancelled, Report
from ludus.core.rules import RandomBot, Rules, States
from ludus.core.table import Finished, RulesTable, Table, Turn
from ludus.search import Result, Search

LONGEST = 64
"""Decisions of one game there is room for at first."""
RANDOM_MOVES = 2
"""Moves of a random opening: as many as matches begin with by default."""


class SearchOpponent:
    """A past self: a short search with its own network."""

    def __init__(self, plan: Plan, table: Table, make_network: Callable[[Rules], Any]) -> None:
        self.table, self.config = cast(RulesTable, table), cast(Config, plan.settings)
        self.network = make_network(self.table.rules)

    def load(self, vector: np.ndarray) -> None:
        self.network.load(vector)

    def choose(self, rows: np.ndarray, turn: Turn, rng: np.random.Generator) -> np.ndarray:
        config, rules = self.config, self.table.rules
        search = Search(rules, len(rows), config.search, self.network, utility(config, rules.spec))
        search.start(self.table.states[rows])
        streams = seeds.rows(int(rng.integers(2**62)), len(rows), "past")
        return search.run(streams, config.past_simulations).best

    def forget(self, rows: np.ndarray) -> None:
        """It remembers nothing."""

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """There is nothing to restore."""


class SelfPlay:
    def __init__(
        self, plan: Plan, index: int, table: Table, seating: Seating, beat: np.ndarray, network: Any
    ) -> None:
        """network: what values leaves"""
        self.plan, self.config, self.beat, self.seating = plan, cast(Config, plan.settings), beat, seating
        self.table = cast(RulesTable, table)
        self.rules, self.spec, self.network = self.table.rules, table.spec, network
        self.random = RandomBot(self.rules)
        self.cancelled: Callable[[], bool] = _never
        self.utility = utility(self.config, self.spec)
        self.search = Search(
            self.rules, plan.rows, self.config.search, self._evaluate, self.utility, reuse=True
        )
        self.rng = seeds.generator(plan.seed, "worker", index, "policy")
        # The same for all workers: one that thinks longer than another makes that one wait for it.
        self.caps = seeds.generator(plan.seed, "caps")
        self.streams = seeds.rows(plan.seed, plan.rows, "worker", index, "search")
        self.record = np.dtype(
            [(column.name, column.dtype, column.shape) for column in record(self.config, self.spec)]
        )
        self.open = np.zeros((plan.rows, LONGEST), self.record)  # decisions of the games being played
        self.length = np.zeros(plan.rows, np.int64)
        self.done = np.zeros(0, self.record)  # those of finished games, which wait for a block
        self.idle_since = time.perf_counter()
        self.moves = np.zeros(plan.rows, np.int64)  # of the games being played
        self.seed, self.started = seeds.derive(plan.seed, "worker", index, "table"), False

    def load(self, vector: np.ndarray, progress: float) -> None:
        self.network.load(vector)
        self.search.forget()

    def _spread(self, seed: int) -> Turn:
        """Start games, and play each of them at random up to another point: those that begin together end
        together, and a learner would have far too much to do and then nothing."""
        turn = self.table.reset(seed)
        streams, states = seeds.rows(seed, self.plan.rows, "spread"), self.table.states.copy()
        length = np.zeros(self.plan.rows, np.int64)
        while not (over := self.rules.over(states).copy()).all():
            length += ~over
            some, some_rng = states[~over], streams[~over]
            self.rules.play(some, self.random.choose(some, some_rng), some_rng)
            states[~over], streams[~over] = some, some_rng
        self.moves = (length * self.rng.random(self.plan.rows)).astype(np.int64)
        for move in range(self.moves.max()):
            rows = np.flatnonzero(self.moves > move)
            some_rng = streams[rows]
            turn = self.table.step(self.random.choose(self.table.states[rows], some_rng), rows)
            streams[rows] = some_rng
        return turn

    def fill(self, block: Block) -> Report:
        if not self.started:  # here, where all workers do it at the same time
            self.seating.start(self._spread(self.seed))
            self.started = True
        report = Report(stats=np.zeros(len(self.spec.stats)), begun=time.time())
        begun = time.perf_counter()
        self._inference = self._evaluated = 0.0
        searching = 0.0
        while (done := len(self.done)) < block.decisions:
            self.beat[1] = done
            start = time.perf_counter()
            full = self.caps.random() < self.config.full_share
            simulations = self.config.search.simulations if full else self.config.fast_simulations
            found = self._think(simulations, full)
            searching += time.perf_counter() - start
            report.count("simulations", simulations * self.plan.rows)
            report.share("search/fill", self._evaluated, (simulations + 1) * self.plan.rows)
            self._evaluated = 0.0
            self._note(found, full)
            self.seating.step(self._chosen(found), report)
            self._close(self.seating.finished)
            if self.seating.finished and self.config.random_openings:
                self._open(self.seating.finished)
        self._write(block)
        spent = time.perf_counter() - begun
        report.seconds = {
            "inference": self._inference,
            "search": searching - self._inference,
            "stepping": spent - searching,
            "waiting": begun - self.idle_since,
        }
        self.idle_since = time.perf_counter()
        return report

    def _think(self, simulations: int, full: bool) -> Result:
        self.search.restart(self.table.states)
        return self.search.run(self.streams, simulations, None if full else 0.0)

    def _evaluate(self, states: States, *rest: np.ndarray) -> None:
        """Every leaf is a sign of life."""
        if self.cancelled():
            raise Cancelled
        start = time.perf_counter()
        self.network(states, *rest)
        self._inference += time.perf_counter() - start
        self._evaluated += len(states)
        self.beat[0] += len(states)

    def _chosen(self, found: Result) -> np.ndarray:
        actions = found.best.copy()
        rows = np.flatnonzero(self.moves < self.config.sampling_moves)
        weighted_choice(found.policy, found.counts, found.actions, rows, self.rng.random(len(rows)), actions)
        self.moves += 1
        return actions

    def _note(self, found: Result, full: bool) -> None:
        """Remember a decision of every row until its game is over."""
        if self.length.max() == self.open.shape[1]:
            self.open = np.concatenate([self.open, np.zeros_like(self.open)], 1)
        listed = self.record["action"].shape[0]
        likeliest = np.argsort(-found.policy, 1, kind="stable")[:, :listed]
        record = np.zeros(self.plan.rows, self.record)
        states = np.ascontiguousarray(self.table.states).view(np.uint8)
        record["state"] = states.reshape(self.plan.rows, -1)
        record["action"][:, : likeliest.shape[1]] = np.take_along_axis(found.actions, likeliest, 1)
        record["policy"][:, : likeliest.shape[1]] = np.take_along_axis(found.policy, likeliest, 1)
        record["full"], record["expected"] = full, found.value
        self.open[np.arange(self.plan.rows), self.length] = record
        self.length += 1

    def _close(self, finished: list[Finished]) -> None:
        """Tell the decisions of games that are over how they ended."""
        for some in finished:
            rows, length = some.rows, self.length[some.rows]
            game = np.repeat(np.arange(len(rows)), length)  # of each decision
            record = self.open[rows][np.arange(self.open.shape[1]) < length[:, None]]
            record["value"], record["score"] = self.utility(some.score)[game], some.score[game]
            if self.spec.owned:
                assert some.states is not None
                record["owner"] = self._owner(record, some.states[game])
            self.done = np.concatenate([self.done, record])
            self.length[rows] = self.moves[rows] = 0

    def _open(self, finished: list[Finished]) -> None:
        """Begin some of the next games with random moves, for which nobody has to search."""
        rows = np.unique(np.concatenate([some.rows for some in finished]))
        alone = ~self.seating.lineup[rows].any(1)  # else only one side would play at random
        rows = rows[alone & (self.rng.random(len(rows)) < self.config.random_openings)]
        for _ in range(RANDOM_MOVES if len(rows) else 0):
            some_rng = self.streams[rows]
            self.table.step(self.random.choose(self.table.states[rows], some_rng), rows)
            self.streams[rows] = some_rng
            self.moves[rows] += 1

    def _owner(self, record: np.ndarray, final: States) -> np.ndarray:
        """uint8 [decisions, bytes]: who owns each square in the end, as the seat that decided sees it. final:
        how the game of each ended"""
        assert self.spec.state is not None
        states = np.ascontiguousarray(record["state"]).view(self.spec.state).reshape(-1)
        out = np.zeros((len(record), self.spec.seats, self.spec.squares), bool)
        self.rules.owners(final, self.rules.seat(states), out)  # type: ignore[attr-defined]
        return np.packbits(out.reshape(len(record), self.spec.seats * self.spec.squares), 1)

    def _write(self, block: Block) -> None:
        count = block.decisions
        for name in self.record.names or ():
            column = block[name]
            column.reshape(count, *column.shape[2:])[:] = self.done[name][:count]
        self.done = self.done[count:].copy()

    def snapshot(self) -> dict[str, Any]:
        if not self.started:
            return {}
        return {
            "table": self.table.snapshot(),
            "seating": self.seating.snapshot(),
            "rng": seeds.frozen(self.rng),
            "caps": seeds.frozen(self.caps),
            "streams": self.streams.copy(),
            "open": self.open.view(np.uint8).copy(),
            "length": self.length.copy(),
            "moves": self.moves.copy(),
            "done": self.done.view(np.uint8).copy(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        if not snapshot:
            return
        self.table.restore(snapshot["table"])
        self.started = True
        self.seating.restore(snapshot["seating"])
        seeds.thaw(self.rng, snapshot["rng"])
        seeds.thaw(self.caps, snapshot["caps"])
        self.streams[...] = snapshot["streams"]
        self.open = snapshot["open"].view(self.record).copy()
        self.length[...], self.moves[...] = snapshot["length"], snapshot["moves"]
        self.done = snapshot["done"].view(self.record).copy()


def _never() -> bool:
    return False
