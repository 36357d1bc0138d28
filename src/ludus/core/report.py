"""Report: what was counted while a block was filled. It travels beside the block."""

from dataclasses import dataclass, field

import numpy as np


class Cancelled(Exception):
    """Nobody wants the block any more."""


@dataclass
class Report:
    games: int = 0
    score: float = 0.0
    stats: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Sums over finished games and over the seats of the learning policy, as `seats` counts them."""
    seats: int = 0
    counters: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """What the table counted of its own work, as `spec.counters` names it."""
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
