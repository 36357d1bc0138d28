"""A worker that searches: it fills blocks with decisions of finished games. Knows nothing of processes."""

import time
from functools import partial
from typing import Any

import numpy as np

from ludus import games
from ludus.algos.alphazero import record, utility
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.rules import RandomBot, Rules, States
from ludus.core.table import Finished, RulesTable, Table, Turn
from ludus.nets import NetConfig
from ludus.search import Result, Search
from ludus.train.league import PastPlayer, Seating
from ludus.train.worker import Cancelled, Plan, Report

LONGEST = 64
"""Decisions of one game there is room for at first."""


def cpu_network(net: NetConfig, rules: Rules) -> Any:
    from ludus.algos.alphazero.evaluators import CpuNetwork

    return CpuNetwork(rules, net)


class SearchingPast(PastPlayer):
    """Earlier selves, each with its own network in the search."""

    def __init__(self, plan: Plan, table: Table, past, rng: np.random.Generator, make_policy: Any) -> None:
        assert isinstance(table, RulesTable) and plan.alphazero is not None
        self.table, self.config, self._make_policy = table, plan.alphazero, make_policy
        super().__init__(plan, table, past, rng)
        self.streams = seeds.rows(int(rng.integers(2**62)), table.rows, "past")

    def make_policy(self, plan: Plan, table: Table) -> Any:
        return self._make_policy(self.table.rules)

    def act(self, slot: int, rows: np.ndarray, turn: Turn) -> np.ndarray:
        config = self.config
        rules = self.table.rules
        worth = utility(config, rules.spec)
        search = Search(rules, len(rows), config.search, self.policies[slot], worth)
        search.start(self.table.states[rows])
        streams = self.streams[rows]
        found = search.run(streams, config.past_simulations)
        self.streams[rows] = streams
        return found.best

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"streams": self.streams.copy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        self.streams[...] = snapshot["streams"]


class SelfPlay:
    """Same face as `Worker`."""

    def __init__(
        self, plan: Plan, index: int, past, beat: np.ndarray | None = None, policy: Any = None,
        make_past: Any = None,
    ) -> None:  # fmt: skip
        """policy: what values leaves, if not a network of our own; make_past: makes that of past selves"""
        assert plan.alphazero is not None
        self.plan, self.index, self.config = plan, index, plan.alphazero
        self.beat = np.zeros(3, np.int64) if beat is None else beat
        table = games.table(plan.game, plan.rows, **plan.switches)
        assert isinstance(table, RulesTable)
        self.table, self.rules, self.spec = table, table.rules, table.spec
        self.policy = policy or cpu_network(plan.net, self.rules)
        self.cancelled = lambda: False
        self.use_teacher = False
        self.utility = utility(self.config, self.spec)
        self.search = Search(self.rules, plan.rows, self.config.search, self._evaluate, self.utility)
        self.rng = seeds.generator(plan.seed, "worker", index, "policy")
        # The same for all workers: one that thinks longer than another makes that one wait for it.
        self.caps = seeds.generator(plan.seed, "caps")
        self.streams = seeds.rows(plan.seed, plan.rows, "worker", index, "search")
        self.record = np.dtype(
            [(name, dtype, shape) for name, shape, dtype in record(self.config, self.spec)]
        )
        self.open = np.zeros((plan.rows, LONGEST), self.record)  # decisions of the games being played
        self.length = np.zeros(plan.rows, np.int64)
        self.done = np.zeros(0, self.record)  # those of finished games, which wait for a block
        self.idle_since = time.perf_counter()
        make_past = make_past or partial(cpu_network, plan.net)
        self.seating = Seating(plan, self.table, index, past, partial(SearchingPast, make_policy=make_past))
        self.turn = self.seating.start(self._spread(seeds.derive(plan.seed, "worker", index, "table")))

    def _spread(self, seed: int) -> Turn:
        """Start games, and play each of them at random up to another point: those that begin together end
        together, and a learner would have far too much to do and then nothing."""
        turn, bot = self.table.reset(seed), RandomBot(self.rules)
        streams, states = seeds.rows(seed, self.plan.rows, "spread"), self.table.states.copy()
        length = np.zeros(self.plan.rows, np.int64)
        while not (over := self.rules.over(states).copy()).all():
            length += ~over
            some, some_rng = states[~over], streams[~over]
            self.rules.play(some, bot.choose(some, some_rng), some_rng)
            states[~over], streams[~over] = some, some_rng
        self.moves = (length * self.rng.random(self.plan.rows)).astype(np.int64)
        for move in range(self.moves.max()):
            rows = np.flatnonzero(self.moves > move)
            some_rng = streams[rows]
            turn = self.table.step(bot.choose(self.table.states[rows], some_rng), rows)
            streams[rows] = some_rng
        return turn

    def fill(self, block: Block) -> Report:
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
            self.turn = self.seating.step(self._chosen(found), report)
            self._close(self.seating.finished)
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
        self.search.start(self.table.states)
        return self.search.run(self.streams, simulations, None if full else 0.0)

    def _evaluate(self, states: States, *rest: np.ndarray) -> None:
        """Every leaf is a sign of life."""
        if self.cancelled():
            raise Cancelled
        start = time.perf_counter()
        self.policy(states, *rest)
        self._inference += time.perf_counter() - start
        self._evaluated += len(states)
        self.beat[0] += len(states)

    def _chosen(self, found: Result) -> np.ndarray:
        actions = found.best.copy()
        for row in np.flatnonzero(self.moves < self.config.sampling_moves):
            count = found.counts[row]
            policy = found.policy[row, :count].astype(np.float64)
            actions[row] = found.actions[row, self.rng.choice(count, p=policy / policy.sum())]
        self.moves += 1
        return actions

    def _note(self, found: Result, full: bool) -> None:
        """Remember a decision of every row until its game is over."""
        if self.length.max() == self.open.shape[1]:
            self.open = np.concatenate([self.open, np.zeros_like(self.open)], 1)
        rows = np.arange(self.plan.rows)
        listed = self.record["action"].shape[0]
        likeliest = np.argsort(-found.policy, 1, kind="stable")[:, :listed]
        record = np.zeros(self.plan.rows, self.record)
        states = np.ascontiguousarray(self.table.states).view(np.uint8)
        record["state"] = states.reshape(self.plan.rows, -1)
        record["action"][:, : likeliest.shape[1]] = np.take_along_axis(found.actions, likeliest, 1)
        record["policy"][:, : likeliest.shape[1]] = np.take_along_axis(found.policy, likeliest, 1)
        record["full"], record["expected"] = full, found.value
        self.open[rows, self.length] = record
        self.length += 1

    def _close(self, finished: list[Finished]) -> None:
        """Tell the decisions of games that are over how they ended."""
        closed = [self.done]
        for some in finished:
            value = self.utility(some.score)
            for place, row in enumerate(some.rows):
                record = self.open[row, : self.length[row]].copy()
                record["value"], record["score"] = value[place], some.score[place]
                if self.spec.owned:
                    assert some.states is not None
                    record["owner"] = self._owner(record, some.states[place : place + 1])
                closed.append(record)
                self.length[row] = self.moves[row] = 0
        self.done = np.concatenate(closed) if len(closed) > 1 else self.done

    def _owner(self, record: np.ndarray, final: States) -> np.ndarray:
        """uint8 [decisions, bytes]: who owns each square in the end, as the seat that decided sees it."""
        assert self.spec.state is not None
        states = np.ascontiguousarray(record["state"]).view(self.spec.state).reshape(-1)
        out = np.zeros((len(record), self.spec.seats, self.spec.squares), bool)
        self.rules.owners(np.repeat(final, len(record)), self.rules.seat(states), out)  # type: ignore[attr-defined]
        return np.packbits(out.reshape(len(record), -1), 1)

    def _write(self, block: Block) -> None:
        count = block.decisions
        for name in self.record.names or ():
            column = block[name]
            column.reshape(count, *column.shape[2:])[:] = self.done[name][:count]
        self.done = self.done[count:].copy()

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next block depends on beside the weights."""
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
        """Go on from a snapshot; from an empty one, with new games."""
        if not snapshot:
            return
        self.turn = self.table.restore(snapshot["table"])
        self.seating.restore(snapshot["seating"])
        seeds.thaw(self.rng, snapshot["rng"])
        seeds.thaw(self.caps, snapshot["caps"])
        self.streams[...] = snapshot["streams"]
        self.open = snapshot["open"].view(self.record).copy()
        self.length[...], self.moves[...] = snapshot["length"], snapshot["moves"]
        self.done = snapshot["done"].view(self.record).copy()
