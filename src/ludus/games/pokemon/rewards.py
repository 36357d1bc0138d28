"""Rewards: what a battle pays, in parts that are counted one by one."""

from dataclasses import dataclass

import numpy as np

FACTS = ("turns", "fainted", "lost", "failed", "switched")
"""What the bridge counts for each seat in a battle: the `lost` is hit points, in shares of a Pokémon's."""
PARTS = ("win", "knock_out", "left", "hit_points", "failed_move", "turn", "switch")


RESULTS = np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]])
"""What the seats get, [winner, seat]; the last is for nobody's win, whose number is -1."""


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
    normalise: bool = False
    """Divide each part of the reward by the running size of its payments, so that weights compare parts."""

    @property
    def zero_sum(self) -> bool:
        return not (self.failed_move or self.turn or self.switch)

    def parts(self, before: np.ndarray, now: np.ndarray, over: np.ndarray, winner: np.ndarray) -> np.ndarray:
        """What happened in B battles between two counts, [B, seats, parts].

        before, now: float [B, facts, seats]; over: bool [B]; winner: int [B], a seat, or -1 for none
        """
        turns, fainted, lost, failed, switched = (now - before).transpose(1, 0, 2)
        all_fainted = now[:, FACTS.index("fainted")]
        paid = (
            RESULTS[winner],
            fainted[:, ::-1] - fainted,
            (all_fainted[:, ::-1] - all_fainted) * over[:, None],
            lost[:, ::-1] - lost,
            -failed,
            -turns,
            -switched,
        )
        return np.stack(paid, 2) * self.weights()

    def weights(self) -> np.ndarray:
        """Of each part, [parts]."""
        return np.array([getattr(self, part) for part in PARTS])


class Normaliser:
    """Running root mean square of each part's payments, those of 0 left out."""

    def __init__(self, weights: np.ndarray) -> None:
        """weights: [parts]"""
        self.weights = np.abs(weights)
        self.count, self.squares = np.zeros(len(PARTS)), np.zeros(len(PARTS))

    def scaled(self, parts: np.ndarray) -> np.ndarray:
        """What is paid for parts [B, seats, parts]: a usual payment of a part is as large as its weight."""
        self.count += (parts != 0).sum((0, 1))
        self.squares += np.square(parts).sum((0, 1))
        size = np.sqrt(self.squares / np.maximum(self.count, 1))
        return parts * np.divide(self.weights, size, out=np.ones(len(PARTS)), where=size > 0)
