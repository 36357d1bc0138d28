"""Spec: the fixed sizes and shapes of one game, known before it is played."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spec:
    game: str
    seats: int
    actions: int
    """Number of discrete actions; 0 when the actions are vectors (see `box`)."""
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype = np.dtype(np.uint8)
    state: np.dtype | None = None
    """One game's whole state as a fixed-size record; None for games that live elsewhere."""
    stats: tuple[str, ...] = ()
    """Names of what a finished game reports for each seat."""
    zero_sum: bool = True
    hidden: bool = False
    """Whether a seat is kept from seeing part of the state."""
    chance: bool = True
    """Whether `play` draws from its stream. Without chance, search proves what it can."""
    box: tuple[np.ndarray, np.ndarray] | None = None
    """Lowest and highest action vector, for games with continuous actions."""
    obs_planes: int = 0
    """The first planes of an observation, which show the board; others are only numbers. 0: all show it."""
    places: np.ndarray | None = None
    """int64 [actions]: where an action is made, as a place in [layers, height, width] of the board, flat;
    what has no square comes after. None for actions that aren't made on squares."""
    owned: bool = False
    """Whether a finished game tells who owns each square (`owners`)."""
    normalise: bool | None = None
    """Whether networks normalise observations by their running mean and spread. Default: all numbers but
    bytes and bools, which are mostly planes of 0 and 1."""

    @property
    def normalised(self) -> bool:
        if self.normalise is not None:
            return self.normalise
        return self.obs_dtype.kind in "fiu" and self.obs_dtype != np.uint8

    @property
    def squares(self) -> int:
        """Of a board, as observations show it."""
        return int(np.prod(self.obs_shape[1:]))

    @property
    def values(self) -> int:
        """Numbers that tell what everybody can expect: of two, one may lose what the other wins."""
        return 1 if self.seats == 2 and self.zero_sum else self.seats
