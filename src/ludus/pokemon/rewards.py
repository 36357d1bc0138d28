"""Rewards: what a battle pays, in parts that are counted one by one."""

from dataclasses import dataclass

import numpy as np

FACTS = ("turns", "fainted", "lost", "failed", "switched")
"""What the bridge counts for each seat in a battle: the `lost` is hit points, in shares of a Pokémon's."""
PARTS = ("win", "knock_out", "left", "hit_points", "failed_move", "turn", "switch")


@dataclass(frozen=True)
class Rewards:
    """Weights. All but `win` are 0 unless they are set; the last three are penalties."""

    win: float = 1.0
    """For winning; losing costs as much."""
    knock_out: float = 0.0
    """For each Pokémon of the opponent that faints; each of one's own costs as much."""
    left: float = 0.0
    """At the end, for each Pokémon that one has left more than the opponent."""
    hit_points: float = 0.0
    """For hit points that the opponent loses, in shares of a Pokémon's; one's own cost as much."""
    failed_move: float = 0.0
    """Penalty for a move that fails or meets an immunity."""
    turn: float = 0.0
    """Penalty for each turn."""
    switch: float = 0.0
    """Penalty for each switch by choice."""

    @property
    def zero_sum(self) -> bool:
        return not (self.failed_move or self.turn or self.switch)

    def parts(self, before: np.ndarray, now: np.ndarray, over: bool, winner: int) -> np.ndarray:
        """What happened between two counts, [seats, parts]. before, now: float [facts, seats]

        winner: a seat, or -1 for none
        """
        turns, fainted, lost, failed, switched = now - before
        paid = np.zeros((2, len(PARTS)))
        if winner >= 0:
            paid[winner, 0], paid[1 - winner, 0] = self.win, -self.win
        paid[:, 1] = self.knock_out * (fainted[::-1] - fainted)
        if over:
            all_fainted = now[FACTS.index("fainted")]
            paid[:, 2] = self.left * (all_fainted[::-1] - all_fainted)
        paid[:, 3] = self.hit_points * (lost[::-1] - lost)
        paid[:, 4] = -self.failed_move * failed
        paid[:, 5] = -self.turn * turns
        paid[:, 6] = -self.switch * switched
        return paid
