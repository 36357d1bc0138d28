"""Evaluations of positions that many games come to, as in openings: one of them asks the network for all.

Positions are known by a hash of their bytes; nothing here knows rules, networks or devices.
"""

import threading
from typing import NamedTuple

import numpy as np

from ludus.core.jit import njit
from ludus.core.rules import States
from ludus.core.spec import Spec
from ludus.search.lookahead import as_numbers
from ludus.search.tree import copy_row

ENTRIES, LONGEST = 1 << 15, 640
"""Evaluations there is room for, and their legal actions at most: 85 MB."""
SEEN = 1 << 20
"""Positions that are remembered as seen. Most come only once, so an evaluation is kept the second time."""
VERSIONS = 8
"""Publications of weights that an evaluation outlives, about as long as a search keeps its own."""
PRIME, MIX = np.uint64(0x100000001B3), np.uint64(0xBF58476D1CE4E5B9)


class Entries(NamedTuple):
    """E evaluations, each at a place that its key says; S seats. A key of 0 is none."""

    seen: np.ndarray  # uint64 [SEEN]: keys
    key: np.ndarray  # uint64 [E]
    version: np.ndarray  # int64 [E]: when it was evaluated
    logits: np.ndarray  # float32 [E, LONGEST]: of the legal actions
    values: np.ndarray  # float32 [E, S]


class EvaluationCache:
    """For all groups of games that share a network."""

    def __init__(self, spec: Spec) -> None:
        self._entries = Entries(
            np.zeros(SEEN, np.uint64),
            np.zeros(ENTRIES, np.uint64),
            np.zeros(ENTRIES, np.int64),
            np.zeros((ENTRIES, min(spec.actions, LONGEST)), np.float32),
            np.zeros((ENTRIES, spec.seats), np.float32),
        )
        self._version, self._lock = 0, threading.Lock()

    def age(self) -> None:
        """The network has new weights."""
        self._version += 1

    def recall(
        self, states: States, counts: np.ndarray, logits: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Write what is known; the rows that are not, [K], and keys for `keep`, uint64 [N].

        counts: of legal actions, [N]; logits: float32 [N, A]; values: float32 [N, S]
        """
        keys, unknown = np.empty(len(states), np.uint64), np.empty(len(states), np.int64)
        hash_rows(as_numbers(states), keys)
        with self._lock:
            count = recall_rows(self._entries, self._version, keys, counts, logits, values, unknown)
        return unknown[:count], keys

    def keep(
        self, rows: np.ndarray, keys: np.ndarray, counts: np.ndarray, logits: np.ndarray, values: np.ndarray
    ) -> None:
        """What was found of the rows that were not known."""
        with self._lock:
            keep_rows(self._entries, self._version, rows, keys, counts, logits, values)


@njit
def hash_rows(states, keys):
    """64 bits for each position (FNV-1a, mixed once more). states: uint8 [N, B]; keys: uint64 [N], written"""
    for i in range(len(states)):
        key = np.uint64(0xCBF29CE484222325)
        for k in range(states.shape[1]):
            key = (key ^ np.uint64(states[i, k])) * PRIME
        key = (key ^ key >> np.uint64(32)) * MIX
        keys[i] = max(key ^ key >> np.uint64(29), np.uint64(1))


@njit
def recall_rows(entries, version, keys, counts, logits, values, unknown):
    """How many are unknown. keys: those that come for the first time become 0"""
    found = 0
    for i in range(len(keys)):
        place = keys[i] % np.uint64(len(entries.key))
        if entries.key[place] == keys[i] and version - entries.version[place] <= VERSIONS:
            copy_row(entries.logits[place, : counts[i]], logits[i, : counts[i]])
            copy_row(entries.values[place], values[i])
            continue
        unknown[found] = i
        found += 1
        spot = (keys[i] >> np.uint64(20)) % np.uint64(len(entries.seen))
        if entries.seen[spot] != keys[i]:
            entries.seen[spot] = keys[i]
            keys[i] = 0
    return found


@njit
def keep_rows(entries, version, rows, keys, counts, logits, values):
    for i in rows:
        if keys[i] == 0 or counts[i] > entries.logits.shape[1]:
            continue
        place = keys[i] % np.uint64(len(entries.key))
        entries.key[place], entries.version[place] = keys[i], version
        copy_row(logits[i, : counts[i]], entries.logits[place, : counts[i]])
        copy_row(values[i], entries.values[place])
