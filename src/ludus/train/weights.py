"""Weights on their way from learner to workers: written once, to memory that all can read."""

import ctypes
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np

PAST_SLOTS = 8


class Shared:
    """Memory that other processes can be given. It has no name, so nothing can be left behind."""

    def __init__(self, context: BaseContext, size: int) -> None:
        self.memory: Any = context.RawArray(ctypes.c_byte, size)

    def array(self, dtype: type, shape: tuple[int, ...], at: int = 0) -> np.ndarray:
        count = -1 if -1 in shape else int(np.prod(shape))
        return np.frombuffer(self.memory, dtype, count, at).reshape(shape)


class Weights:
    """The newest weights, in two places by turns, so that reading one never meets the writing of the next."""

    def __init__(self, context: BaseContext, size: int) -> None:
        self.size = size
        self.shared = Shared(context, 16 + 2 * 4 * size)

    def _views(self) -> tuple[np.ndarray, np.ndarray]:
        """[version, whether the teacher is still asked], and the two places."""
        return self.shared.array(np.int64, (2,)), self.shared.array(np.float32, (2, self.size), 16)

    def write(self, vector: np.ndarray, version: int, taught: bool) -> None:
        newest, places = self._views()
        places[version % 2] = vector
        newest[:] = version, taught

    def read(self) -> tuple[np.ndarray, int, bool]:
        newest, places = self._views()
        while True:
            version = int(newest[0])
            vector = places[version % 2].copy()
            if newest[0] - version < 2:  # else it was overwritten while we read
                return vector, version, bool(newest[1])


class Past:
    """Weights of past selves and how likely each is drawn; the learner writes, workers read."""

    slots = PAST_SLOTS

    def __init__(self, context: BaseContext, size: int) -> None:
        self.size = size
        self.shared = Shared(context, self.slots * (8 + 8 + 4 * size))

    def _views(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        versions = self.shared.array(np.int64, (self.slots,))
        odds = self.shared.array(np.float64, (self.slots,), 8 * self.slots)
        return versions, odds, self.shared.array(np.float32, (self.slots, self.size), 16 * self.slots)

    def write(self, slot: int, vector: np.ndarray, version: int) -> None:
        versions, _, places = self._views()
        places[slot] = vector
        versions[slot] = version

    def set_odds(self, odds: np.ndarray) -> None:
        self._views()[1][:] = odds

    def version(self, slot: int) -> int:
        return int(self._views()[0][slot])

    def weights(self, slot: int) -> np.ndarray:
        return self._views()[2][slot].copy()

    def snapshot(self) -> dict[str, np.ndarray]:
        versions, odds, places = self._views()
        return {"versions": versions.copy(), "odds": odds.copy(), "weights": places.copy()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        for view, kept in zip(self._views(), snapshot.values(), strict=True):
            view[...] = kept

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Slots of past selves for n games, int64 [n]."""
        odds = self._views()[1]
        total = odds.sum()
        return rng.choice(self.slots, n, p=odds / total) if total else np.zeros(n, np.int64)
