"""Replay: the newest decisions, drawn by age and turned into what a network learns from."""

from typing import Any, NamedTuple

import numpy as np

from ludus.core import seeds
from ludus.core.block import Block, Column
from ludus.core.jit import njit
from ludus.core.rules import Rules, States
from ludus.search import list_legal
from ludus.search.evaluators import action_places

MOST, STEP = 4096, 256
"""Legal actions that a minibatch has room for: as many as were ever met, in steps, since a recorded update
knows one size only; of more than the most, the last are left out."""


class Minibatch(NamedTuple):
    """A minibatch. B decisions with up to L legal actions each, of which the search's policy lists K."""

    obs: np.ndarray  # [B, *obs_shape]
    places: np.ndarray  # int32 [B, L]: where in the network's choice the legal actions are
    counts: np.ndarray  # int32 [B]: how many there are
    listed: np.ndarray  # int32 [B, K]: where among the legal actions the search's are
    policy: np.ndarray  # float32 [B, K]: what it made of them
    full: np.ndarray  # bool [B]
    value: np.ndarray  # float32 [B, V]: in the order of play; of two seats only the first
    score: np.ndarray  # float32 [B, V]
    owner: np.ndarray  # uint8 [B, seats, squares]; without squares [B, 0]


class Replay:
    def __init__(self, rules: Rules, columns: list[Column], room: int, seed: int) -> None:
        self.rules, self.room = rules, room
        self.added, self.width = 0, min(STEP, rules.spec.actions)
        self.rng = seeds.generator(seed, "replay")
        self._columns = {c.name: np.zeros((room, *c.shape), c.dtype) for c in columns}
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
        self, at: np.ndarray, which: np.ndarray, root_value_weight: float, scale: float
    ) -> Minibatch:
        """root_value_weight: share of the root value in the value target. scale: points that count as one

        Nearly all of it is compiled: beside a GPU many threads play, and they share Python's lock.
        """
        spec, picked = self.rules.spec, {name: taken(column, at) for name, column in self._columns.items()}
        assert spec.state is not None
        states = picked["state"].view(spec.state).reshape(-1)
        seen, obs = np.empty((2, len(at), *spec.obs_shape), spec.obs_dtype)
        self.rules.observe(states, seen)
        turn(seen.reshape(len(at), -1), which, self._planes, obs.reshape(len(at), -1))
        legal, counts = self._list_legal(states)
        # A row's empty places differ, since a gradient is added there too: one by one, if all were the same.
        places = np.tile(np.arange(self.width, dtype=np.int32), (len(at), 1))
        find_places(self._places, which, legal, counts, places)
        listed = np.zeros_like(picked["action"])
        find_listed(legal, counts, picked["action"], picked["policy"], listed)
        order = (self.rules.seat(states)[:, None] + np.arange(spec.seats)) % spec.seats
        value = (1 - root_value_weight) * picked["value"] + root_value_weight * picked["expected"]
        owner = np.zeros((len(at), 0), np.uint8)
        if spec.owned:
            owner = np.empty((len(at), spec.seats, spec.squares), np.uint8)
            unpack(picked["owner"], which, self._squares, owner)
        return Minibatch(
            obs, places, counts, listed, picked["policy"], picked["full"],
            np.take_along_axis(value, order, 1)[:, : spec.values].astype(np.float32),
            np.take_along_axis(picked["score"], order, 1)[:, : spec.values] / np.float32(scale),
            owner,
        )  # fmt: skip

    def _list_legal(self, states: States) -> tuple[np.ndarray, np.ndarray]:
        room = min(MOST, self.rules.spec.actions)
        legal, counts = np.empty((len(states), room), np.int32), np.zeros(len(states), np.int32)
        list_legal(self.rules, states, legal, counts)
        self.width = max(self.width, min(-(-int(counts.max()) // STEP) * STEP, room))
        return legal, counts

    def state_dict(self) -> dict[str, Any]:
        """A copy, the oldest first."""
        oldest = self.added % self.room if self.added > self.room else self.size
        kept = {
            name: np.concatenate([column[oldest : self.size], column[:oldest]])
            for name, column in self._columns.items()
        }
        return {"rng": seeds.frozen(self.rng), "width": self.width, "columns": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        kept = {name: column[-self.room :] for name, column in state["columns"].items()}
        self.added, self.width = len(kept["full"]), state["width"]
        for name, column in self._columns.items():
            column[: self.added] = kept[name]
        seeds.thaw(self.rng, state["rng"])


def taken(column: np.ndarray, at: np.ndarray) -> np.ndarray:
    """column[at]"""
    out = np.empty((len(at), *column.shape[1:]), column.dtype)
    copy_rows(column.view(np.uint8).reshape(len(column), -1), at, out.view(np.uint8).reshape(len(at), -1))
    return out


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
    """Where legal actions are in the network's choice. places: int32 [symmetries, A]; out: [B, L]"""
    for b in range(len(counts)):
        for k in range(counts[b]):
            out[b, k] = places[which[b], actions[b, k]]


@njit
def find_listed(legal, counts, actions, policy, out):
    """Where the search's actions are among the legal ones, which are in order. An action that there was no
    room for is left out. legal: int32 [B, room]; actions, policy, out: [B, K]"""
    for b in range(len(counts)):
        for k in range(actions.shape[1]):
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
