"""A bot against a GTP engine: in each seat in turn from the same random opening.

Between good players of Duo the first seat wins most games, and two that always do the same would play one
game only. So an opening is a deal as in `ludus.match`: played once for each seat, and one sample.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.core import seeds
from ludus.core.duel import Duel, wins
from ludus.core.errors import Failure
from ludus.core.rules import Bot, RandomBot, States, begin
from ludus.games.blokus.gtp import pentobi
from ludus.games.blokus.gtp.client import Client, EnginePlayer, Move
from ludus.games.blokus.gtp.engine import skip_stuck

ONE = np.zeros(1, np.int64)
"""Games are played one after the other."""


def engine_duel(
    rules: Any, bot: Bot, names: tuple[str, str], command: list[str], deals: int, opening: int, seed: int,
    report: Callable[[float], None],
) -> Duel:  # fmt: skip
    """names: of the bot and of the engine. command: how the engine is started"""
    with Client(command) as client:
        table = EngineTable(rules, bot, EnginePlayer(rules, client))
        openings = [random_opening(rules, opening, seeds.derive(seed, "deal", n)) for n in range(deals)]
        begin(table.bot, 1)(ONE, openings[0][0].copy(), seeds.rows(seed, 1))  # the first time may compile
        found = []
        for n, begun in enumerate(openings):
            found.append(
                [table.play(seat, *begun, seeds.derive(seed, "game", n, seat)) for seat in range(table.seats)]
            )
            report(len(found) / deals)
    points, won, stats = (np.array([[game[part] for game in deal] for deal in found]) for part in range(3))
    means = dict(zip(rules.spec.stats, map(float, stats.mean((0, 1))), strict=True))
    return Duel(*names, points, won, means, _pace(names, table))


def _pace(names: tuple[str, str], table: "EngineTable") -> str:
    """How long both thought: strength is worth little without its price."""
    told = [
        f"{name.rpartition('/')[2]} {1000 * sum(spent) / len(spent):.1f} ms a move "
        f"(at most {1000 * max(spent):.1f})"
        for name, spent in zip(names, table.seconds, strict=True)
        if spent
    ]
    return "; ".join(told) + (f"; the engine resigned {table.resigned} games" if table.resigned else "")


def random_opening(rules: Any, moves: int, seed: int) -> tuple[States, list[Move]]:
    """A game [1] after some random moves, and those moves."""
    states, rng, history = rules.blank(1), seeds.rows(seed, 1, "opening"), list[Move]()
    rules.deal(states, rng)
    bot = RandomBot(rules)
    for _ in range(moves):
        place(rules, states, int(bot.choose(states, rng)[0]), history)
    return states, history


def place(rules: Any, states: States, action: int, history: list[Move]) -> None:
    """Play a placement and all passes that follow, and write down the placement."""
    history.append((int(states[0]["turn"]), rules.action_text(states[0], action)))
    rules.play(states, np.array([action], np.int32), np.zeros((1, 2), np.uint64))
    skip_stuck(rules, states)


class EngineTable:
    """Where a bot and an engine play one game after the other, under our rules and our clock."""

    def __init__(self, rules: Any, bot: Bot, engine: EnginePlayer) -> None:
        self.rules, self.bot, self.engine, self.seats = rules, bot, engine, rules.spec.seats
        self.seconds: tuple[list[float], list[float]] = ([], [])
        self.resigned = 0

    def play(
        self, seat: int, opening: States, moves: list[Move], seed: int
    ) -> tuple[float, float, np.ndarray]:
        """Points, share of the win and statistics of the bot in `seat`; the engine has all other seats."""
        states, history, some_rng = opening.copy(), list(moves), seeds.rows(seed, 1, "choice")
        choose = begin(self.bot, 1)
        while not self.rules.over(states)[0]:
            is_ours = int(states[0]["turn"]) == seat
            start = time.perf_counter()
            if is_ours:
                action: int | None = int(choose(ONE, states.copy(), some_rng)[0])
            else:
                action = self.engine.choose(states[0], history)
            self.seconds[not is_ours].append(time.perf_counter() - start)
            if action is None:
                return self._given_up(states, seat)
            place(self.rules, states, action, history)
        self._compare(states[0], history)
        score, stats = self._result(states)
        return float(score[seat]), float(wins(score[None])[0, seat]), stats[seat]

    def _compare(self, state: np.void, history: list[Move]) -> None:
        """The engine must count as we do, or it has played by other rules."""
        self.engine.tell(history)
        ours, theirs = pentobi.score_text(state), self.engine.client.ask("final_score")
        if theirs != ours:
            raise Failure(f"{self.engine.client.name} answered `final_score` with {theirs!r}, it is {ours}")

    def _given_up(self, states: States, seat: int) -> tuple[float, float, np.ndarray]:
        """The engine resigned: a win for the bot, by a point at least, whatever the board says."""
        self.resigned += 1
        score, stats = self._result(states)
        names = self.rules.spec.stats
        stats[seat, [names.index("win"), names.index("draw"), names.index("first_win")]] = 1, 0, seat == 0
        return max(float(score[seat]), 1.0), 1.0, stats[seat]

    def _result(self, states: States) -> tuple[np.ndarray, np.ndarray]:
        """Points [seats] and statistics [seats, ...]"""
        score = np.zeros((1, self.seats), np.float32)
        stats = np.zeros((1, self.seats, len(self.rules.spec.stats)), np.float32)
        self.rules.score(states, score)
        self.rules.stats(states, stats)
        return score[0], stats[0]
