"""Which start state a game begins from."""

import numpy as np

from ludus.core import dice

RECENT = 0.9
"""Weight of what was before, when a game from a start state ends."""
FINE = 1 << 24


class Starts:
    """Start states with how games from each of them went lately."""

    def __init__(self, names: list[str], states: list[bytes], prioritised: float) -> None:
        self.names, self.states, self.prioritised = names, states, prioritised
        self.returns = np.full((2, len(names)), np.nan)
        """float64 [2, S]: recent and best return of games from each state; NaN before the first."""

    def draw(self, stream: np.ndarray) -> int:
        """stream: uint64 [2], the row's"""
        if len(self.names) == 1:
            return 0
        shares = np.cumsum(self.probabilities())
        return min(int(np.searchsorted(shares, chance(stream), "right")), len(shares) - 1)

    def probabilities(self) -> np.ndarray:
        """float64 [S]. A state's failure is how far recent games from it fall short of its best game."""
        uniform = np.full(len(self.names), 1 / len(self.names))
        recent, best = self.returns
        with np.errstate(invalid="ignore", divide="ignore"):
            failure = np.where(best > 0, np.clip(1 - recent / best, 0, 1), 1.0)  # NaN: nothing known, so 1
        total = failure.sum()
        by_failure = failure / total if total > 0 else uniform
        return (1 - self.prioritised) * uniform + self.prioritised * by_failure

    def report(self, start: int, returned: float) -> None:
        """A game from this state has ended."""
        recent, best = self.returns[:, start]
        first = np.isnan(recent)
        self.returns[0, start] = returned if first else RECENT * recent + (1 - RECENT) * returned
        self.returns[1, start] = returned if first else max(best, returned)


def chance(stream: np.ndarray) -> float:
    """In [0, 1), from a row's stream."""
    return dice.below(stream, FINE) / FINE
