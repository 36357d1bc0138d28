"""A search that plays: how long it thinks, and what it chooses."""

import re
from dataclasses import replace

import numpy as np

from ludus.core.errors import Usage
from ludus.core.rules import Rules, States, Streams
from ludus.search import Result, Search, SearchConfig
from ludus.search.evaluators import Evaluator, Utility, win_share

MOST = 4096
"""Positions that a search limited by time looks at."""


def parse_think(text: str) -> tuple[int, float]:
    """Simulations and seconds of `400`, `100ms` or `2s`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|)", text)
    if not found or not float(found[1]) or ("." in found[1] and not found[2]):
        raise Usage(
            f"{text!r} is neither a number of positions to look at, as 400, nor a time, as 100ms or 2s"
        )
    number, unit = float(found[1]), found[2]
    return (MOST, number / (1000 if unit == "ms" else 1)) if unit else (int(number), 0.0)


class SearchBot:
    """Looks ahead a number of positions, or for a time, and takes the move it tried most.

    Without an evaluator it asks the game, or plays at random: every game for two or more that hides nothing
    has this bot.
    """

    def __init__(
        self, rules: Rules, simulations: int = 200, c_puct: float = 3.0, first_play_reduction: float = 0.0,
        evaluate: Evaluator | None = None, utility: Utility = win_share,
    ) -> None:  # fmt: skip
        self.rules, self.evaluate, self.utility, self.seconds = rules, evaluate, utility, 0.0
        self.config = SearchConfig(simulations, c_puct=c_puct, first_play_reduction=first_play_reduction)
        self.search: Search | None = None

    def limit(self, think: str) -> None:
        """How far to look ahead, or for how long."""
        simulations, self.seconds = parse_think(think)
        self.config = replace(self.config, simulations=simulations)
        self.search = None

    def think(self, states: States, rng: Streams) -> Result:
        """What a search finds in each row, all of them side by side."""
        if self.search is None or len(states) > len(self.search.states):
            self.search = Search(self.rules, len(states), self.config, self.evaluate, self.utility)
        self.search.start(states)
        return self.search.run(rng, seconds=self.seconds)

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        if not self.seconds:
            return self.think(states, rng).best
        rows = range(len(states))  # each row has its own time
        return np.array([self.think(states[i : i + 1], rng[i : i + 1]).best[0] for i in rows], np.int32)
