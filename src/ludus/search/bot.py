"""A search that plays: how long it thinks, and what it chooses."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ludus.core.errors import Usage
from ludus.core.game import CHAMPION, BotPlayer, Game, Player
from ludus.core.rules import Bot, Rules, States, Streams
from ludus.core.table import Table
from ludus.core.think import parse_amount
from ludus.search import Result, Search, SearchConfig
from ludus.search.evaluators import Evaluator, Utility, win_share
from ludus.search.tree import LOST

SEARCH = "search"
MOST = 1 << 14
"""Positions that a search limited by time looks at: ten seconds of Blokus' champion on two cores."""
SIMULATIONS_PER_LEAF = 16
"""Leaves that are evaluated together don't know of each other: not where that would be half of a search."""


def parse_think(text: str) -> tuple[int, float]:
    """Simulations and seconds of `400`, `100ms` or `2s`."""
    simulations, seconds = parse_amount(text)
    return simulations or MOST, seconds


class SearchBot:
    """Looks ahead a number of positions, or for a time, and takes the move it tried most.

    Without an evaluator it asks the game, or plays at random: every game for two or more that hides nothing
    has this bot.
    """

    def __init__(
        self, rules: Rules, simulations: int = 200, c_puct: float = 3.0, first_play_reduction: float = 0.0,
        evaluate: Evaluator | None = None, utility: Utility = win_share,
        leaves: Callable[[], int] = lambda: 1, prior_temperature: float = 1.0, endgame: int = 0,
    ) -> None:  # fmt: skip
        """leaves: of a single game, so many are evaluated together, if it has many simulations. Asked when
        its first search begins"""
        self.rules, self.evaluate, self.utility, self.seconds = rules, evaluate, utility, 0.0
        self.config = SearchConfig(
            simulations, c_puct=c_puct, first_play_reduction=first_play_reduction,
            prior_temperature=prior_temperature, endgame=endgame,
        )  # fmt: skip
        self.leaves = leaves
        self.search: Search | None = None

    def limit(self, think: str) -> None:
        """How far to look ahead, or for how long."""
        simulations, self.seconds = parse_think(think)
        self.config = replace(self.config, simulations=simulations)
        self.search = None

    def think(self, states: States, rng: Streams) -> Result:
        """What a search finds in each row, all of them side by side."""
        if self.search is None or len(states) > len(self.search.states):
            alone = len(states) == 1  # one game that goes on: what was found of its future is worth keeping
            leaves = min(self.leaves(), max(1, self.config.simulations // SIMULATIONS_PER_LEAF))
            self.search = Search(
                self.rules, len(states), self.config, self.evaluate, self.utility, alone, leaves
            )
        self.search.follow(states)
        begun = time.perf_counter()
        found = self.search.run(rng, seconds=self.seconds)
        left = self.seconds - (time.perf_counter() - begun)
        if self.config.endgame and (left > 0 or not self.seconds):
            self._hold_out(found, states, rng, max(left, 0.0))
        return found

    def _hold_out(self, found: Result, states: States, rng: Streams, seconds: float) -> None:
        """Where a game's own solver says that all is lost, it doesn't say what holds out longest: that needs
        a search without it, which looks no further than one ply by the rules alone."""
        own = found.value[np.arange(len(states)), self.rules.seat(states)]
        lost = np.flatnonzero(found.proven & (own <= LOST))
        if len(lost):
            one_ply = min(self.config.lookahead, self.rules.spec.actions)
            config, some_rng = replace(self.config, endgame=0, lookahead=one_ply), rng[lost]
            search = Search(self.rules, len(lost), config, self.evaluate, self.utility)
            search.start(states[lost])
            found.best[lost] = search.run(some_rng, seconds=seconds).best
            rng[lost] = some_rng

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        if not self.seconds:
            return self.think(states, rng).best
        rows = range(len(states))  # each row has its own time
        return np.array([self.think(states[i : i + 1], rng[i : i + 1]).best[0] for i in rows], np.int32)


# ---- `search` stands beside a game's own bots


def can_search(game: Game) -> bool:
    """Whether the game has the bot `search`: knowing all is what makes it strong without a network."""
    return game.rules is not None and game.spec.seats > 1 and not game.spec.hidden


def bot_names(game: Game) -> list[str]:
    """Of all scripted players, the strongest last."""
    return [*game.bots, *([SEARCH] if can_search(game) else [])]


def player_names(game: Game) -> list[str]:
    """Whom matches know by name: the bots, and the champion if the game has one."""
    return [*bot_names(game), *([CHAMPION] if game.champion else [])]


def make_bot(game: Game, name: str) -> Bot:
    """A bot of a native game by name."""
    native = game.native("played by bots")
    if name == SEARCH and can_search(game):
        return SearchBot(native.rules)
    if name not in game.bots:
        raise Usage(f"{game.name} has no bot {name!r}: choose from {', '.join(bot_names(game))}")
    return native.bot(name)


def make_player(game: Game, name: str, table: Table, rng: Streams) -> Player:
    """A scripted player by name at a table of any game."""
    if name == SEARCH and can_search(game):
        return BotPlayer(make_bot(game, name), table, rng)
    return game.player(name, table, rng)


class _WarmUp(SearchBot):
    """Uses all that a search compiles: games side by side, and one that goes on."""

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        alone = Search(self.rules, 1, replace(self.config, simulations=1), reuse=True)
        alone.start(states[:1])
        alone.run(rng[:1])
        alone.follow(states[:1])
        return super().choose(states, rng)


def warm_up(game: Game, bots: Iterable[str] = ()) -> None:
    """Compile what the game and these bots will need, and say so if it takes this version's first time."""
    names = set(bots)
    game.warm_up(names & set(game.bots))
    if SEARCH in names and can_search(game):
        native = game.native("searched")
        native.warm_up_bot(SEARCH, _WarmUp(native.rules))
