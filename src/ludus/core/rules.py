"""Rules: what a native game must offer, for many games at once. `core/conformance.py` checks it.

A state is one fixed-size record (`spec.state`), so a batch of games is an array `[N]` of records:
copying a row copies a game, and its bytes can be saved or shared. Functions write into the arrays
they are given. Chance comes only from `rng`, one stream per row (`seeds.rows`), so a row's game
never depends on its neighbours.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from ludus.core.spec import Spec

States = np.ndarray
"""spec.state [N]"""
Streams = np.ndarray
"""uint64 [N, 2]"""


class Rules(Protocol):
    spec: Spec

    def blank(self, n: int) -> States:
        """Room for n games that know their rule switches; `deal` starts them."""
        ...

    def deal(self, states: States, rng: Streams) -> None:
        """Start a game in each row. After `blank` it is drawn from the streams alone; a game that is over may
        leave something for the next one."""
        ...

    def seat(self, states: States) -> np.ndarray:
        """The seat to move, int8 [N]."""
        ...

    def over(self, states: States) -> np.ndarray:
        """bool [N]"""
        ...

    def legal(self, states: States, out: np.ndarray) -> None:
        """out: bool [N, A]"""
        ...

    def observe(self, states: States, out: np.ndarray) -> None:
        """What the seat to move may see, and nothing else. out: [N, *obs_shape]"""
        ...

    def play(self, states: States, actions: np.ndarray, rng: Streams) -> None:
        """The seat to move takes a legal action. actions: int32 [N]"""
        ...

    def score(self, states: States, out: np.ndarray) -> None:
        """Points of every seat so far; final once the game is over. out: float32 [N, seats]"""
        ...

    def stats(self, states: States, out: np.ndarray) -> None:
        """What the game counted, for each seat. out: float32 [N, seats, len(spec.stats)]"""
        ...

    def redeal(self, states: States, rng: Streams) -> None:
        """Draw anew everything that the seat to move can't see."""
        ...

    def text(self, state: np.void) -> str:
        """One state as one line; `parse` gives back the same bytes."""
        ...

    def parse(self, text: str) -> States:
        """[1]"""
        ...

    def action_text(self, state: np.void, action: int) -> str: ...

    def parse_action(self, state: np.void, text: str) -> int: ...


@runtime_checkable
class Advances(Protocol):
    """Rules that step a table in one compiled call: threads that step side by side then hardly meet in
    Python's lock. All arrays are of all rows."""

    def advance(
        self, states: States, actions: np.ndarray, rng: Streams, legal: np.ndarray, obs: np.ndarray,
        score: np.ndarray, reward: np.ndarray, over: np.ndarray, seat: np.ndarray, rows: np.ndarray,
        last: States,
    ) -> int:  # fmt: skip
        """Play, pay, deal finished games anew, and show the next decisions; how many games finished.

        -1: an action is illegal, and nothing was done. legal: for `actions`, then for the next ones. score:
        before, then after. rows, last: filled with the rows of finished games and how they ended
        """
        ...


@runtime_checkable
class Finishes(Protocol):
    """Rules that know the best of some last actions exactly, whoever plays."""

    def finish(self, states: States, actions: np.ndarray) -> np.ndarray:
        """Put the best action into the rows where it is known; which ones, bool [N]. actions: int32 [N]

        Only what the seat to move may see decides.
        """
        ...


@runtime_checkable
class Judges(Protocol):
    """Rules that can reckon what actions will bring where little is left to chance, whoever plays."""

    def judge(self, states: States, ideas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each idea is worth to the seat to move, float64 [N, K], and where that is known, bool [N].

        ideas: int32 [N, K], legal actions; below 0 for none, which is worth -inf. Only what the seat to move
        may see decides.
        """
        ...


@runtime_checkable
class Solves(Protocol):
    """Rules that can play some games to their end, with best play of all seats."""

    def solve(self, states: States, most: int, out: np.ndarray) -> np.ndarray:
        """Put final scores into the rows where `most` positions tried tell them; which ones, bool [N].

        out: float32 [N, seats]
        """
        ...


@runtime_checkable
class Rounds(Protocol):
    """Rules of games in rounds, as the hands of a session, that can be looked at one by one."""

    def cut(self, states: States) -> None:
        """Let each game end with its present round; what it would carry over is paid by its worth."""
        ...


class Bot(Protocol):
    """Chooses for the seat to move in every row, from what that seat may know."""

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        """int32 [N]"""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A bot that remembers its games, so it is told which of them it chooses in."""

    def start(self, games: int) -> None:
        """So many new games begin; whatever was before is forgotten."""
        ...

    def choose_in(self, games: np.ndarray, states: States, rng: Streams) -> np.ndarray:
        """As `choose`. games: int64 [N], which of them the states are of"""
        ...


@runtime_checkable
class Thinks(Protocol):
    """A bot that looks ahead as far as it is told."""

    def limit(self, think: str) -> None:
        """How far, as `400`, or how long, as `100ms`."""
        ...


Chooser = Callable[[np.ndarray, States, Streams], np.ndarray]
"""Actions for some of the games that were started, int32 [N]."""


def begin(bot: Bot, games: int) -> Chooser:
    """A bot at the start of so many new games, whether it remembers or not."""
    if isinstance(bot, Remembers):
        bot.start(games)
        return bot.choose_in
    return lambda rows, states, rng: bot.choose(states, rng)


class RandomBot:
    """Any legal action, all equally likely. Every game has it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        from ludus.core.dice import legal_choice

        legal = np.zeros((len(states), self.rules.spec.actions), bool)
        actions = np.zeros(len(states), np.int32)
        self.rules.legal(states, legal)
        legal_choice(legal, rng, actions)
        return actions


def legal_actions(rules: Rules, state: np.void) -> np.ndarray:
    """The legal actions of one state, in order. int64 [k]"""
    states = rules.blank(1)
    states[0] = state
    legal = np.zeros((1, rules.spec.actions), bool)
    rules.legal(states, legal)
    return np.flatnonzero(legal[0])
