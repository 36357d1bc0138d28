"""Block: a fixed number of decisions as named columns over one buffer, so that none is ever pickled."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

ALIGNED = 64
"""Columns start at multiples of so many bytes."""


class Column(NamedTuple):
    name: str
    shape: tuple[int, ...]  # of one decision
    dtype: np.dtype
    before: int = 0
    """Further steps, before the block's first decision."""

    def size(self, steps: int, rows: int) -> int:
        """Bytes in a block."""
        return (steps + self.before) * rows * int(np.prod(self.shape, dtype=int)) * self.dtype.itemsize


class Block:
    """Columns [before + steps, rows, *shape] over a buffer that may be shared with another process."""

    def __init__(self, columns: Sequence[Column], steps: int, rows: int, buffer: Any = None) -> None:
        self.columns, self.steps, self.rows = tuple(columns), steps, rows
        if buffer is None:
            buffer = bytearray(block_bytes(columns, steps, rows))
        self._arrays: dict[str, np.ndarray] = {}
        at = 0
        for column in columns:
            size = column.size(steps, rows)
            flat = np.frombuffer(buffer, column.dtype, size // column.dtype.itemsize, at)
            self._arrays[column.name] = flat.reshape(column.before + steps, rows, *column.shape)
            at += _aligned(size)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    @property
    def decisions(self) -> int:
        return self.steps * self.rows


def block_bytes(columns: Sequence[Column], steps: int, rows: int) -> int:
    return sum(_aligned(column.size(steps, rows)) for column in columns)


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
