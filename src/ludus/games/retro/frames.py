"""Stacks of frames without copies: each frame is kept once, and a stack is a view of neighbours."""

import numpy as np

LENGTH = 64
"""Frames that a table keeps for each row: the stack moves to the beginning once in so many steps."""


class FrameRing:
    """frames: uint8 [rows, L, size, size]; a row's stack ends with its newest frame, at `at`."""

    def __init__(self, rows: int, stack: int, size: int, frames: np.ndarray | None = None) -> None:
        """frames: memory of somebody else's that frames are written into"""
        self.stack = stack
        self.frames = np.zeros((rows, LENGTH, size, size), np.uint8) if frames is None else frames
        self.at = stack - 1

    @property
    def stacks(self) -> np.ndarray:
        """A view, uint8 [rows, stack, size, size], the newest frame last."""
        return self.frames[:, self.at - self.stack + 1 : self.at + 1]

    def advance(self, still: np.ndarray) -> None:
        """Make room for every row's next frame. still: int64 [K], rows that get none"""
        kept = self.stacks[still]
        if self.at + 1 == self.frames.shape[1]:
            self.frames[:, : self.stack - 1] = self.frames[:, self.at - self.stack + 2 :]
            self.at = self.stack - 2
        self.at += 1
        self.stacks[still] = kept

    def newest(self, row: int) -> np.ndarray:
        """Where the row's newest frame belongs, uint8 [size, size]."""
        return self.frames[row, self.at]

    def blank(self, row: int) -> None:
        """The newest frame is the first of a game: nothing before it is shown."""
        self.stacks[row, :-1] = 0

    def move_to(self, frames: np.ndarray) -> None:
        """Go on in other memory, e.g. of the next block. frames: uint8 [rows, L, size, size]"""
        frames[:, : self.stack] = self.stacks
        self.frames, self.at = frames, self.stack - 1
