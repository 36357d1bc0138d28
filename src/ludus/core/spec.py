"""Spec: the fixed sizes and shapes of one game, known before it is played."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ludus.core.afterstates import Afterstates

Kind = Literal["flat", "board", "image", "tokens"]
Padding = Literal["blank", "first"]


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels first. Gymnasium's images have their few channels last, planes of games have them first."""
    return (shape[2], shape[0], shape[1]) if shape[2] < shape[0] else (shape[0], shape[1], shape[2])


@dataclass(frozen=True)
class Part:
    """One named array of an observation. Networks choose how to read it by its kind."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.uint8)
    kind: Kind = "flat"
    """flat: numbers. board: planes [P, H, W] of a board. image: pixels [C, H, W] or [H, W, C]. tokens: ids
    [N, K] of N things, each with K ids that have vocabularies of their own."""
    normalise: bool | None = None
    """Whether networks normalise the numbers by their running mean and spread. Default: all numbers but
    bytes and bools, which are mostly 0 and 1."""
    planes: int = 0
    """Of a board: the first planes, which show squares; others are only numbers. 0: all show squares."""
    stack: int = 0
    """Of an image [stack, H, W]: its planes are the last so many frames, the newest last. A decision's stack
    is that of the row's decision before, moved on by one frame. Blocks keep each frame once. 0: no stack."""
    padding: Padding = "blank"
    """Planes of a stack from before the game's start: blank, or its first frame."""
    vocabulary: tuple[int, ...] = ()
    """Of tokens: ids of column k run from 0 to vocabulary[k] - 1."""
    of: str = ""
    """Of flat numbers [N, M]: the tokens that they belong to, one row each."""

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def normalised(self) -> bool:
        if self.kind != "flat" and self.kind != "board":
            return False
        if self.normalise is not None:
            return self.normalise
        return self.dtype.kind in "fiu" and self.dtype != np.uint8


@dataclass(frozen=True)
class Spec:
    game: str
    seats: int
    actions: int
    """Number of discrete actions; 0 when the actions are vectors (see `box`)."""
    parts: tuple[Part, ...]
    """What a seat observes. One part is a plain array; several are the fields of a record."""
    state: np.dtype | None = None
    """One game's whole state as a fixed-size record; None for games that live elsewhere."""
    stats: tuple[str, ...] = ()
    """Names of what a finished game reports for each seat."""
    counters: tuple[str, ...] = ()
    """Names of what a table counts of its own work, such as the time of a simulator that it drives."""
    zero_sum: bool = True
    hidden: bool = False
    """Whether a seat is kept from seeing part of the state."""
    chance: bool = True
    """Whether `play` draws from its stream. Without chance, search proves what it can."""
    box: tuple[np.ndarray, np.ndarray] | None = None
    """Lowest and highest action vector, for games with continuous actions."""
    places: np.ndarray | None = None
    """int64 [actions]: where an action is made, as a place in [layers, height, width] of the board, flat;
    what has no square comes after. None for actions that aren't made on squares."""
    afterstates: Afterstates | None = None
    """What actions lead to, for networks that score that instead of numbers of actions."""
    owned: bool = False
    """Whether a finished game tells who owns each square (`owners`)."""

    @property
    def obs_shape(self) -> tuple[int, ...]:
        """Of one observation's array; () for a record of several parts."""
        return self.parts[0].shape if len(self.parts) == 1 else ()

    @cached_property
    def obs_dtype(self) -> np.dtype:
        if len(self.parts) == 1:
            return self.parts[0].dtype
        fields = [(part.name, part.dtype, part.shape) for part in self.parts]
        return np.dtype(fields, align=True)  # so that each field can be mapped as a tensor

    @property
    def board(self) -> Part | None:
        """The only part, if it shows a board."""
        return self.parts[0] if len(self.parts) == 1 and self.parts[0].kind == "board" else None

    @property
    def stack(self) -> int:
        """Frames in an observation, of which each step brings one; 0 if it is not such a stack. With several
        seats, a row's next decision may be another seat's, with frames of its own."""
        return self.parts[0].stack if len(self.parts) == 1 and self.seats == 1 else 0

    @property
    def squares(self) -> int:
        """Of a board, as observations show it."""
        return int(np.prod(self.obs_shape[1:]))

    @property
    def values(self) -> int:
        """Numbers that tell what everybody can expect: of two, one may lose what the other wins."""
        return 1 if self.seats == 2 and self.zero_sum else self.seats
