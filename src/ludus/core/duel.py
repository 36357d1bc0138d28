"""Duel: the result of a match, and how sure it is. Knows numbers only."""

from dataclasses import dataclass

import numpy as np

from ludus.core import statistics


def wins(score: np.ndarray) -> np.ndarray:
    """Shares of a win by seat; equal points share it. score: [N, seats]"""
    best = score == score.max(1, keepdims=True)
    return best / best.sum(1, keepdims=True)


@dataclass(frozen=True)
class Duel:
    """One challenger against others: its results for each deal and seat, and what its seats counted."""

    challenger: str
    opponent: str
    points: np.ndarray  # float64 [deals, seats]
    won: np.ndarray  # float64 [deals, seats]: 1, or a share if others had as many points
    stats: dict[str, float]  # mean for each game and seat of the challenger
    note: str = ""
    """What else is to be told of it, in one line."""

    @property
    def mean(self) -> float:
        return float(self.points.mean())

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval; a deal is one sample, because its seats share their luck."""
        return statistics.margin(self.points.mean(1))

    @property
    def win_margin(self) -> float:
        return statistics.margin(self.won.mean(1))

    @property
    def halves(self) -> list[float]:
        """The mean of either half: they were dealt from seeds of their own, and should agree."""
        half = len(self.points) // 2
        return [float(part.mean()) for part in (self.points[:half], self.points[half:]) if len(part)]

    @property
    def by_seat(self) -> list[float]:
        return [float(mean) for mean in self.points.mean(0)]
