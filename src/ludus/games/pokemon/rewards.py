"""Rewards: what a battle pays, in parts that are counted one by one."""

from dataclasses import dataclass

import numpy as np

FACTS = ("turns", "fainted", "lost", "failed", "switched")
"""What the bridge counts for each seat in a battle: the `lost` is hit points, in shares of a Pokémon's."""
PARTS = ("win", "knock_out", "left", "hit_points", "failed_move", "turn", "switch")


SEATS = np.arange(2)


@dataclass(frozen=True)
class Rewards:
    """Weights of the parts of the reward."""

    win: float = 1.0
    """Reward for winning; losing costs as much."""
    knock_out: float = 0.0
    """Reward for each Pokémon of the opponent that faints; each of one's own costs as much."""
    left: float = 0.0
    """Reward at the end for each Pokémon that one has left more than the opponent."""
    hit_points: float = 0.0
    """Reward for hit points that the opponent loses, in shares of a Pokémon's; one's own cost as much."""
    failed_move: float = 0.0
    """Penalty for a move that fails or meets an immunity."""
    turn: float = 0.0
    """Penalty for each turn."""
    switch: float = 0.0
    """Penalty for each switch by choice."""

    @property
    def zero_sum(self) -> bool:
        return not (self.failed_move or self.turn or self.switch)

    def parts(self, before: np.ndarray, now: np.ndarray, over: np.ndarray, winner: np.ndarray) -> np.ndarray:
        """What happened in B battles between two counts, [B, seats, parts].

        before, now: float [B, facts, seats]; over: bool [B]; winner: int [B], a seat, or -1 for none
        """
        turns, fainted, lost, failed, switched = np.moveaxis(now - before, 1, 0)
        all_fainted = now[:, FACTS.index("fainted")]
        won = (winner[:, None] == SEATS).astype(float)
        paid = (
            self.win * (won - won[:, ::-1]),
            self.knock_out * (fainted[:, ::-1] - fainted),
            self.left * (all_fainted[:, ::-1] - all_fainted) * over[:, None],
            self.hit_points * (lost[:, ::-1] - lost),
            -self.failed_move * failed,
            -self.turn * turns,
            -self.switch * switched,
        )
        return np.stack(paid, 2)
