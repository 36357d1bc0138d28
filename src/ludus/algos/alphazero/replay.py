"""Replay: the newest decisions, drawn by age and turned into what a network learns from."""

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ludus.core import seeds
from ludus.core.block import ALIGNED, Block, Column
from ludus.core.jit import njit
from ludus.core.rules import Rules
from ludus.search import list_legal
from ludus.search.evaluators import action_places

MOST, STEP = 4096, 256
"""Legal actions that a minibatch has room for: as many as were ever met, in steps, since a recorded update
knows one size only; of more than the most, the last are left out."""


Allocate = Callable[[int], np.ndarray]
"""Memory for so many bytes, uint8."""


def plain_memory(size: int) -> np.ndarray:
    return np.empty(size, np.uint8)


class Minibatch(NamedTuple):
    """A minibatch. B decisions with up to L legal actions each, of which the search's policy lists K.

    All of it lies in one piece of memory, so that it goes to a GPU by one copy.
    """

    obs: np.ndarray  # [B, *obs_shape]
    places: np.ndarray  # int32 [B, L]: where in the network's choice the legal actions are
    counts: np.ndarray  # int32 [B]: how many there are
    listed: np.ndarray  # int32 [B, K]: where among the legal actions the search's are
    policy: np.ndarray  # float32 [B, K]: what it made of them
    full: np.ndarray  # bool [B]
    value: np.ndarray  # float32 [B, V]: in the order of play; of two seats only the first
    score: np.ndarray  # float32 [B, V]
    owner: np.ndarray  # uint8 [B, seats, squares]; without squares [B, 0]
    memory: np.ndarray  # uint8: where they lie, in this order


class Scratch(threading.local):
    """Arrays that a thread uses again: pages that are new cost more than what is written to them."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if name not in self.arrays or self.arrays[name].shape != shape:
            self.arrays[name] = np.empty(shape, dtype)
        return self.arrays[name]


class Replay:
    def __init__(self, rules: Rules, columns: list[Column], room: int, seed: int) -> None:
        self.rules, self.room = rules, room
        self.added, self.width = 0, min(STEP, rules.spec.actions)
        self.rng = seeds.generator(seed, "replay")
        self._columns = {c.name: np.zeros((room, *c.shape), c.dtype) for c in columns}
        self._scratch = Scratch()
        places = action_places(rules.spec)
        self._symmetries = getattr(rules, "symmetries", None) or (None,)
        # A symmetry says where an image's actions come from; here it is asked where they go to.
        self._places = np.array(
            [places if one is None else places[np.argsort(one.actions)] for one in self._symmetries], np.int32
        )
        spec = rules.spec
        numbers = np.arange(spec.parts[0].size, dtype=np.int32).reshape(1, *spec.obs_shape)
        # Where an image's observation comes from, number by number, and its squares.
        self._planes = np.array(
            [(numbers if one is None else one.turn_planes(numbers)).ravel() for one in self._symmetries]
        )
        squares = np.arange(spec.squares if spec.owned else 0, dtype=np.int32)
        self._squares = np.array(
            [squares if one is None or not spec.owned else one.squares for one in self._symmetries], np.int32
        )

    @property
    def size(self) -> int:
        return min(self.added, self.room)

    def add(self, block: Block) -> None:
        at = (self.added + np.arange(block.decisions)) % self.room
        for name, column in self._columns.items():
            column[at] = block[name].reshape(block.decisions, *column.shape[1:])
        self.added += block.decisions

    def draw(self, count: int, recency: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Which decisions to learn from, by which symmetry each, and their mean age as a share of the room.

        recency: from 1 on, how much the newer are favoured
        """
        age = (self.size * self.rng.random(count) ** recency).astype(np.int64)
        which = self.rng.integers(len(self._symmetries), size=count)
        return (self.added - 1 - age) % self.room, which, float(age.mean() / self.room)

    def minibatch(
        self, at: np.ndarray, which: np.ndarray, root_value_weight: float, scale: float,
        allocate: Allocate = plain_memory,
    ) -> Minibatch:  # fmt: skip
        """root_value_weight: share of the root value in the value target. scale: points that count as one

        Nearly all of it is compiled: beside a GPU many threads play, and they share Python's lock.
        """
        spec, n = self.rules.spec, len(at)
        assert spec.state is not None
        states = self._taken("state", at).view(spec.state).reshape(-1)
        legal = self._scratch.get("legal", (n, min(MOST, spec.actions)), np.dtype(np.int32))
        counts = np.zeros(n, np.int32)
        list_legal(self.rules, states, legal, counts)
        width = min(-(-int(counts.max()) // STEP) * STEP, legal.shape[1])
        self.width = width = max(self.width, width)
        made = self._blank(n, width, allocate)
        seen = self._scratch.get("seen", made.obs.shape, spec.obs_dtype)
        self.rules.observe(states, seen)
        turn(seen.reshape(n, -1), which, self._planes, made.obs.reshape(n, -1))
        made.counts[:] = counts
        find_places(self._places, which, legal, counts, made.places)
        self._take("policy", at, made.policy)
        find_listed(legal, counts, self._taken("action", at), made.policy, made.listed)
        self._take("full", at, made.full)
        seat, weight = self.rules.seat(states), np.float32(root_value_weight)
        in_order(self._taken("value", at), self._taken("expected", at), weight, seat, made.value)
        score = self._taken("score", at)
        in_order(score, score, np.float32(0), seat, made.score)
        made.score[:] /= np.float32(scale)
        if spec.owned:
            unpack(self._taken("owner", at), which, self._squares, made.owner)
        return made

    def _blank(self, n: int, width: int, allocate: Allocate) -> Minibatch:
        spec, number = self.rules.spec, np.dtype(np.float32)
        listed = self._columns["action"].shape[1]
        shapes: list[tuple[tuple[int, ...], Any]] = [
            ((n, *spec.obs_shape), spec.obs_dtype), ((n, width), np.dtype(np.int32)),
            ((n,), np.dtype(np.int32)), ((n, listed), np.dtype(np.int32)), ((n, listed), number),
            ((n,), np.dtype(bool)), ((n, spec.values), number), ((n, spec.values), number),
            ((n, spec.seats, spec.squares) if spec.owned else (n, 0), np.dtype(np.uint8)),
        ]  # fmt: skip
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in shapes]
        starts = np.cumsum([0] + [-(-size // ALIGNED) * ALIGNED for size in sizes])
        memory = allocate(int(starts[-1]))
        parts = zip(starts, sizes, shapes, strict=False)
        arrays = [memory[at : at + size].view(dtype).reshape(shape) for at, size, (shape, dtype) in parts]
        return Minibatch._make([*arrays, memory])

    def _take(self, name: str, at: np.ndarray, out: np.ndarray) -> None:
        """out = column[at]"""
        column = self._columns[name]
        copy_rows(column.view(np.uint8).reshape(len(column), -1), at, out.view(np.uint8).reshape(len(at), -1))

    def _taken(self, name: str, at: np.ndarray) -> np.ndarray:
        """column[at], until this thread asks again"""
        column = self._columns[name]
        out = self._scratch.get(name, (len(at), *column.shape[1:]), column.dtype)
        self._take(name, at, out)
        return out

    def state_dict(self) -> dict[str, Any]:
        kept = {name: column[: self.size] for name, column in self._columns.items()}
        oldest = self.added % self.room if self.added > self.room else 0
        return {"rng": seeds.frozen(self.rng), "width": self.width, "columns": kept, "oldest": oldest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        oldest = state.get("oldest", 0)  # of older checkpoints the first
        kept = {
            name: np.roll(column, -oldest, axis=0)[-self.room :] for name, column in state["columns"].items()
        }
        self.added, self.width = len(kept["full"]), state["width"]
        for name, column in self._columns.items():
            column[: self.added] = kept[name]
        seeds.thaw(self.rng, state["rng"])


@njit
def copy_rows(rows, at, out):
    """rows: uint8 [room, size]; out: [B, size]"""
    for b in range(len(at)):
        for k in range(out.shape[1]):
            out[b, k] = rows[at[b], k]


@njit
def turn(seen, which, planes, out):
    """Observations as their symmetry shows them. planes: int32 [symmetries, size]; seen, out: [B, size]"""
    for b in range(len(which)):
        index = planes[which[b]]
        for k in range(out.shape[1]):
            out[b, k] = seen[b, index[k]]


@njit
def unpack(bits, which, squares, out):
    """Owners from bits, turned. bits: uint8 [B, bytes]; squares: int32 [symmetries, Q]; out: [B, seats, Q]"""
    for b in range(len(which)):
        index = squares[which[b]]
        for s in range(out.shape[1]):
            for q in range(out.shape[2]):
                bit = s * out.shape[2] + index[q]
                out[b, s, q] = bits[b, bit >> 3] >> (7 - (bit & 7)) & 1


@njit
def find_places(places, which, actions, counts, out):
    """Where legal actions are in the network's choice. places: int32 [symmetries, A]; out: [B, L]

    A row's empty places differ, since a gradient is added there too: one by one, if all were the same.
    """
    for b in range(len(counts)):
        for k in range(out.shape[1]):
            out[b, k] = places[which[b], actions[b, k]] if k < counts[b] else k


@njit
def find_listed(legal, counts, actions, policy, out):
    """Where the search's actions are among the legal ones, which are in order. An action that there was no
    room for is left out. legal: int32 [B, room]; actions, policy, out: [B, K]"""
    for b in range(len(counts)):
        for k in range(actions.shape[1]):
            out[b, k] = 0
            if policy[b, k] > 0:
                low, high = 0, counts[b]
                while low < high:
                    middle = (low + high) // 2
                    if legal[b, middle] < actions[b, k]:
                        low = middle + 1
                    else:
                        high = middle
                if low < counts[b] and legal[b, low] == actions[b, k]:
                    out[b, k] = low
                else:
                    policy[b, k] = 0


@njit
def in_order(ours, theirs, weight, seat, out):
    """What seats get, mixed of two, from the seat to move on. ours, theirs: [B, seats]; out: [B, V]"""
    for b in range(len(seat)):
        for k in range(out.shape[1]):
            at = (seat[b] + k) % ours.shape[1]
            out[b, k] = (np.float32(1) - weight) * ours[b, at] + weight * theirs[b, at]
