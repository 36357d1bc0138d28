"""Weights on their way from learner to workers: written once, to memory that all can read."""

import ctypes
import time
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np

PAST_SLOTS = 8
WRITING_S = 0.0005
"""How long a reader leaves a writer alone: about as long as writing takes."""


class Shared:
    """Memory that other processes can be given. It has no name, so nothing can be left behind."""

    def __init__(self, context: BaseContext, size: int) -> None:
        self.memory: Any = context.RawArray(ctypes.c_byte, size)

    def array(self, dtype: type, shape: tuple[int, ...], at: int = 0) -> np.ndarray:
        count = -1 if -1 in shape else int(np.prod(shape))
        return np.frombuffer(self.memory, dtype, count, at).reshape(shape)


class Weights:
    """The newest weights, in two places by turns, so that reading one seldom meets the writing of the next.

    A seqlock: writes are counted when they begin and when they end, so that a reader sees whether one came
    over what it has read.
    """

    def __init__(self, context: BaseContext, size: int) -> None:
        self.size = size
        self.shared = Shared(context, 8 * 6 + 2 * 4 * size)

    def _views(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Writes begun and ended; [version, progress of the training] by place; the two places."""
        counts, told = self.shared.array(np.int64, (2,)), self.shared.array(np.float64, (2, 2), 16)
        return counts, told, self.shared.array(np.float32, (2, self.size), 48)

    def write(self, vector: np.ndarray, version: int, progress: float) -> None:
        counts, told, places = self._views()
        number = int(counts[1]) + 1
        counts[0] = number
        places[number % 2] = vector
        told[number % 2] = version, progress
        counts[1] = number

    def read(self) -> tuple[np.ndarray, int, float]:
        counts, told, places = self._views()
        while True:
            number = int(counts[1])
            vector = places[number % 2].copy()
            version, progress = told[number % 2].tolist()
            if counts[0] - number < 2:  # else another one began to be written here while we read
                return vector, int(version), progress


class PastSelves:
    """Weights of past selves and how likely each is drawn, as the learner keeps them."""

    def __init__(self, first: np.ndarray) -> None:
        self.versions = np.zeros(PAST_SLOTS, np.int64)
        self.odds = np.zeros(PAST_SLOTS)
        self.weights = np.zeros((PAST_SLOTS, len(first)), np.float32)
        self.weights[0] = first

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"versions": self.versions.copy(), "odds": self.odds.copy(), "weights": self.weights.copy()}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        self.versions[:], self.odds[:], self.weights[:] = state["versions"], state["odds"], state["weights"]


class Past:
    """Past selves where workers can read them; a pool writes what the learner publishes.

    Each slot is a seqlock. It has one place only, so a reader that meets a write waits until it is over.
    """

    slots = PAST_SLOTS

    def __init__(self, context: BaseContext, first: np.ndarray) -> None:
        """first: the past self until there is another"""
        self.size = len(first)
        self.shared = Shared(context, self.slots * (4 * 8 + 4 * self.size))
        self.write(0, first, 0)

    def _views(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Writes begun and ended by slot; versions; odds; weights."""
        counts = self.shared.array(np.int64, (2, self.slots))
        versions = self.shared.array(np.int64, (self.slots,), 16 * self.slots)
        odds = self.shared.array(np.float64, (self.slots,), 24 * self.slots)
        return counts, versions, odds, self.shared.array(np.float32, (self.slots, self.size), 32 * self.slots)

    def write(self, slot: int, vector: np.ndarray, version: int) -> None:
        counts, versions, _, places = self._views()
        counts[0, slot] = counts[1, slot] + 1
        places[slot] = vector
        versions[slot] = version
        counts[1, slot] = counts[0, slot]

    def read(self, slot: int) -> tuple[np.ndarray, int]:
        """Weights and their version, as they were written together."""
        counts, versions, _, places = self._views()
        while True:
            ended = int(counts[1, slot])
            vector, version = places[slot].copy(), int(versions[slot])
            if counts[0, slot] == ended:
                return vector, version
            time.sleep(WRITING_S)

    def publish(self, past: PastSelves) -> None:
        _, versions, odds, places = self._views()
        for slot in range(self.slots):
            if past.versions[slot] != versions[slot] or (past.weights[slot] != places[slot]).any():
                self.write(slot, past.weights[slot], int(past.versions[slot]))
        odds[:] = past.odds

    def version(self, slot: int) -> int:
        return int(self._views()[1][slot])

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Slots of past selves for n games, int64 [n]."""
        odds = self._views()[2].copy()  # ours alone: they may change between sum and draw
        total = odds.sum()
        return rng.choice(self.slots, n, p=odds / total) if total else np.zeros(n, np.int64)
