"""Gymnasium spaces as the sizes of a Spec, and a table's actions as what an environment expects.

Knows spaces; must not know environments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from ludus.core.errors import Failure, Usage
from ludus.core.table import refuse_illegal

MOST_JOINT_ACTIONS = 4096
MOST_NUMBERS = 2**24
"""Of one observation, flattened; a Discrete of so many is not meant to be one-hot."""


@dataclass(frozen=True)
class ObsForm:
    shape: tuple[int, ...]
    dtype: np.dtype
    flatten: Callable[[Any], np.ndarray] | None = None
    """Makes one vector of an observation that isn't one array."""
    normalise: bool = True
    """False for integers that are all 0 or 1."""


def space_of(env: Any, what: str, name: str) -> spaces.Space:
    """An environment's `action_space` or `observation_space`."""
    try:
        space = getattr(env, what, None)
    except Exception as error:
        raise Failure(f"{name}: {what} raised {type(error).__name__}: {error}") from error
    if isinstance(space, spaces.Space):
        return space
    has = f"has no {what}"
    if space is not None:
        has = f"has {type(space).__module__}.{type(space).__name__} as {what}"
    raise Usage(f"{name}: {type(env).__name__} {has}: make it one of gymnasium.spaces")


def obs_form(space: Any, name: str) -> ObsForm:
    fix = "use Box, Discrete, Dict or Tuple"
    if isinstance(space, spaces.Box):
        if 0 in space.shape:
            raise Usage(f"{name}: observations {space} have no numbers")
        dtype = np.dtype(np.float32 if space.dtype == np.float64 else space.dtype)
        bits = dtype.kind in "biu" and bool((space.low >= 0).all() and (space.high <= 1).all())
        shape, flatten = (space.shape, None) if space.shape else ((1,), np.atleast_1d)
        return ObsForm(shape, dtype, flatten, normalise=not bits)
    if any(isinstance(part, spaces.Text) for part in _parts(space)):
        raise Usage(f"{name}: observations {space} have text, which can't be learned from: {fix}")
    try:
        flat = spaces.flatdim(space)
    except (NotImplementedError, ValueError):
        raise Usage(f"{name}: observations {space} have no fixed size: {fix}") from None
    if flat > MOST_NUMBERS:
        raise Usage(f"{name}: observations {space} have {flat:,} numbers, more than {MOST_NUMBERS:,}")
    return ObsForm((flat,), np.dtype(np.float32), partial(spaces.flatten, space))


def _parts(space: Any) -> list[Any]:
    """The space and all that it is made of."""
    inner = getattr(space, "spaces", ())
    inner = inner.values() if isinstance(inner, dict) else inner
    return [space, *(part for one in inner for part in _parts(one))]


def fitted(form: ObsForm, seen: Any, row: int, name: str) -> np.ndarray:
    """An observation as one array of the right shape."""
    seen = np.asarray(form.flatten(seen) if form.flatten else seen)
    if seen.shape != form.shape:
        raise Failure(
            f"{name}: the observation in row {row} has shape {seen.shape}, "
            f"but observation_space says {form.shape}"
        )
    if seen.dtype.kind == "f" and np.isnan(seen).any():
        raise Failure(f"{name}: the observation in row {row} has NaN")
    return seen


def box_of(shape: tuple[int, ...], dtype: np.dtype) -> spaces.Box:
    """The widest Box of a native game's observations."""
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(low, high, shape, dtype.type)


class OneChoice:
    """Discrete: the action's number, from the space's own start."""

    box = None
    mask = None

    def __init__(self, space: spaces.Discrete, name: str) -> None:
        self.name = name
        self.count, self.start = int(space.n), int(space.start)

    def decode(self, actions: np.ndarray, rows: list[int], legal: np.ndarray, masked: bool) -> list[Any]:
        """What `require_legal` is given, as each environment's own action."""
        chosen = require_legal(actions, rows, legal, masked, self.name)
        return [action + self.start for action in chosen] if self.start else chosen


class JointChoice:
    """MultiDiscrete and MultiBinary: one number for every combination of choices."""

    box = None

    def __init__(
        self, space: spaces.MultiDiscrete | spaces.MultiBinary, sizes: np.ndarray, name: str
    ) -> None:
        """sizes: [K], how many options each choice has."""
        self.name = name
        self.count = int(np.prod(sizes, dtype=object))
        digits = np.stack(np.unravel_index(np.arange(self.count), tuple(sizes)), axis=1)  # [A, K]
        start = np.ravel(getattr(space, "start", 0))
        self.vectors = (digits + start).reshape(self.count, *space.shape).astype(space.dtype)
        self.bits = digits + np.concatenate(([0], np.cumsum(sizes)[:-1]))  # [A, K], places in a joined mask

    def decode(self, actions: np.ndarray, rows: list[int], legal: np.ndarray, masked: bool) -> list[Any]:
        require_legal(actions, rows, legal, masked, self.name)
        return list(self.vectors[actions])

    def mask(self, given: Any) -> np.ndarray:
        """bool [A]. Masks of such spaces speak of each choice alone: a tuple, or all joined (sb3-contrib)."""
        joined = np.concatenate(given) if isinstance(given, tuple | list) else given
        return np.all(np.asarray(joined, bool)[self.bits], axis=1)


class Vector:
    """Box: actions are vectors; there is nothing to mask."""

    count = 0
    mask = None

    def __init__(self, space: spaces.Box, name: str) -> None:
        self.space, self.name = space, name
        self.box = (space.low.astype(np.float32), space.high.astype(np.float32))

    def decode(self, actions: np.ndarray, rows: list[int], legal: np.ndarray, masked: bool) -> list[Any]:
        """actions: float32 [len(rows), *shape]"""
        shape = (len(rows), *self.space.shape)
        if actions.shape != shape:
            raise Failure(f"{self.name}: actions have shape {actions.shape}, not {shape}")
        if not np.isfinite(actions).all():
            row = rows[np.argwhere(~np.isfinite(actions))[0][0]]
            raise Failure(f"{self.name}: the action in row {row} is not finite")
        # A Gaussian policy reaches past any bound; environments differ in what they do about it.
        return list(np.clip(actions.astype(self.space.dtype), self.space.low, self.space.high))


def action_form(space: Any, name: str) -> OneChoice | JointChoice | Vector:
    if isinstance(space, spaces.Discrete):
        return OneChoice(space, name)
    if isinstance(space, spaces.Box):
        return Vector(space, name)
    if isinstance(space, spaces.MultiDiscrete):
        sizes = np.ravel(space.nvec)
    elif isinstance(space, spaces.MultiBinary):
        sizes = np.full(int(np.prod(space.shape)), 2)
    else:
        fix = "choose Discrete, MultiDiscrete, MultiBinary or Box"
        raise Usage(f"{name}: actions {space} can't be used: {fix}")
    joint = np.prod(sizes, dtype=object)
    if joint > MOST_JOINT_ACTIONS:
        raise Usage(f"{name}: actions {space} have {joint} combinations, more than {MOST_JOINT_ACTIONS}")
    return JointChoice(space, sizes, name)


def require_legal(
    actions: np.ndarray, rows: list[int], legal: np.ndarray, masked: bool, name: str
) -> list[int]:
    """The actions of `rows` as plain numbers.

    actions: int [len(rows)]; legal: bool [N, A], all true unless masked.
    """
    if len(actions) != len(rows):
        raise Failure(f"{name}: {len(actions)} actions for {len(rows)} rows")
    # Plain Python: after environments have had the caches, a NumPy call costs 10-30 µs, ten times its usual.
    chosen = actions.tolist()
    known = min(chosen) >= 0 and max(chosen) < legal.shape[1]
    if known and (not masked or all(map(legal.data.__getitem__, zip(rows, chosen, strict=True)))):
        return chosen
    if not legal.any(axis=1).all():
        raise Failure(f"{name}: no action is legal in row {legal.any(axis=1).argmin()}")
    refuse_illegal(legal, rows, actions, name)
    return chosen
