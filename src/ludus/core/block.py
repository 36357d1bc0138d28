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


class Block:
    """Columns [steps, rows, *shape] over a buffer that may be shared with another process."""

    def __init__(self, columns: Sequence[Column], steps: int, rows: int, buffer: Any = None) -> None:
        self.columns, self.steps, self.rows = tuple(columns), steps, rows
        if buffer is None:
            buffer = bytearray(block_bytes(columns, steps, rows))
        self._arrays: dict[str, np.ndarray] = {}
        at = 0
        for name, shape, dtype in columns:
            count = steps * rows * int(np.prod(shape, dtype=int))
            flat = np.frombuffer(buffer, dtype, count, at)
            self._arrays[name] = flat.reshape(steps, rows, *shape)
            at += _aligned(flat.nbytes)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    @property
    def decisions(self) -> int:
        return self.steps * self.rows


def block_bytes(columns: Sequence[Column], steps: int, rows: int) -> int:
    sizes = (steps * rows * int(np.prod(shape, dtype=int)) * dtype.itemsize for _, shape, dtype in columns)
    return sum(_aligned(size) for size in sizes)


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
