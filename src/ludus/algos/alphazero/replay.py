"""Replay: the newest decisions, drawn by age and turned into what a network learns from."""

from typing import Any, NamedTuple

import numpy as np

from ludus.core import seeds
from ludus.core.block import Block, Column
from ludus.core.jit import njit
from ludus.core.rules import Rules
from ludus.search import list_legal
from ludus.search.evaluators import action_places

MOST = 1024
"""Legal actions that a lesson has room for; of more than so many, the last are left out."""


class Lesson(NamedTuple):
    """A minibatch. B decisions with up to L legal actions each."""

    obs: np.ndarray  # [B, *obs_shape]
    places: np.ndarray  # int64 [B, L]: where in the network's choice the legal actions are
    legal: np.ndarray  # bool [B, L]
    policy: np.ndarray  # float32 [B, L]: what the search made of them
    full: np.ndarray  # bool [B]
    value: np.ndarray  # float32 [B, V]: in the order of play; of two seats only the first
    score: np.ndarray  # float32 [B, V]
    owner: np.ndarray  # uint8 [B, seats, squares]; without squares [B, 0]


class Replay:
    def __init__(self, rules: Rules, columns: list[Column], room: int, seed: int) -> None:
        self.rules, self.room = rules, room
        self.added = 0  # since the beginning
        self.rng = seeds.generator(seed, "replay")
        self._columns = {name: np.zeros((room, *shape), dtype) for name, shape, dtype in columns}
        places = action_places(rules.spec)
        self._turns = [_Turn(symmetry, places) for symmetry in getattr(rules, "symmetries", (None,))]

    @property
    def size(self) -> int:
        return min(self.added, self.room)

    def add(self, block: Block) -> None:
        at = (self.added + np.arange(block.decisions)) % self.room
        for name, column in self._columns.items():
            column[at] = block[name].reshape(block.decisions, *column.shape[1:])
        self.added += block.decisions

    def draw(self, count: int, newer: float, found: float, scale: float) -> tuple[Lesson, float]:
        """A lesson, and the mean age of its decisions as a share of the room.

        newer: from 1 on, how much the newer are favoured. found: share of the search's own expectation
        in values. scale: points that count as one
        """
        age = (self.size * self.rng.random(count) ** newer).astype(np.int64)
        at = (self.added - 1 - age) % self.room
        return self._lesson(at, found, scale), float(age.mean() / self.room)

    def _lesson(self, at: np.ndarray, found: float, scale: float) -> Lesson:
        spec = self.rules.spec
        picked = {name: column[at] for name, column in self._columns.items()}
        states = picked["state"].view(spec.state).reshape(-1)
        obs = np.empty((len(at), *spec.obs_shape), spec.obs_dtype)
        self.rules.observe(states, obs)
        actions, counts = np.zeros((len(at), min(MOST, spec.actions)), np.int32), np.zeros(len(at), np.int32)
        list_legal(self.rules, states, actions, counts)
        legal = np.arange(actions.shape[1]) < counts[:, None]
        policy = np.zeros(actions.shape, np.float32)
        spread(picked["action"], picked["policy"], actions, counts, policy)
        order = (self.rules.seat(states)[:, None] + np.arange(spec.seats)) % spec.seats
        value = (1 - found) * picked["value"] + found * picked["expected"]
        seats = 1 if spec.seats == 2 else spec.seats
        owner: np.ndarray = np.zeros((len(at), 0), np.uint8)
        if spec.owned:
            squares = int(np.prod(spec.obs_shape[1:]))
            bits = np.unpackbits(picked["owner"], 1, count=spec.seats * squares)
            owner = bits.reshape(len(at), spec.seats, squares)
        which = self.rng.integers(len(self._turns), size=len(at))
        places = np.empty(actions.shape, np.int64)
        for number, turn in enumerate(self._turns):
            here = np.flatnonzero(which == number)
            turn.apply(here, obs, actions, places, owner)
        return Lesson(
            obs, places, legal, policy, picked["full"],
            np.take_along_axis(value, order, 1)[:, :seats],
            np.take_along_axis(picked["score"], order, 1)[:, :seats] / np.float32(scale),
            owner,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """A copy, the oldest first."""
        oldest = self.added % self.room if self.added > self.room else self.size
        kept = {
            name: np.concatenate([column[oldest : self.size], column[:oldest]])
            for name, column in self._columns.items()
        }
        return {"rng": seeds.frozen(self.rng), "columns": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        kept = {name: column[-self.room :] for name, column in state["columns"].items()}
        self.added = len(kept["full"])
        for name, column in self._columns.items():
            column[: self.added] = kept[name]
        seeds.thaw(self.rng, state["rng"])


class _Turn:
    """A symmetry, applied to all that a lesson says of squares."""

    def __init__(self, symmetry: Any, places: np.ndarray) -> None:
        self.symmetry = symmetry
        # A symmetry says where an image's actions come from; here it is asked where they go to.
        self.places = places if symmetry is None else places[np.argsort(symmetry.actions)]

    def apply(self, here, obs, actions, places, owner) -> None:
        """Write `places`, and turn `obs` and `owner`, for the decisions `here`."""
        places[here] = self.places[actions[here]]
        if self.symmetry is None:
            return
        obs[here] = self.symmetry.turn_planes(obs[here])
        if owner.shape[1]:
            owner[here] = owner[here][:, :, self.symmetry.squares]


@njit
def spread(listed, policy, actions, counts, out):
    """A policy over listed actions as one over all legal ones, which come in order.

    listed, policy: [B, K]; actions: int32 [B, L], of which the first counts[b] are legal; out: zeros [B, L]
    """
    for b in range(len(out)):
        for k in range(listed.shape[1]):
            if policy[b, k] > 0:
                at = np.searchsorted(actions[b, : counts[b]], listed[b, k])
                if at < counts[b] and actions[b, at] == listed[b, k]:
                    out[b, at] = policy[b, k]
