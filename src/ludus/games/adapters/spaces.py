"""Gymnasium spaces as the sizes of a Spec, and a table's actions as what an environment expects.

Knows spaces; must not know environments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from gymnasium import spaces

from ludus.core.errors import Failure, Usage
from ludus.core.spec import Kind, Part, Spec, image_shape
from ludus.core.table import refuse_illegal

MOST_JOINT_ACTIONS = 4096
MOST_NUMBERS = 2**24
"""Of one observation, flattened; a Discrete of so many is not meant to be one-hot."""


SMALLEST_IMAGE = 24
"""Height and width from which on three axes are taken for an image."""


@dataclass(frozen=True)
class ObsForm:
    parts: tuple[Part, ...]
    flatten: Callable[[Any], np.ndarray] | None = None
    """Makes one array, or one record, of an observation that isn't one."""

    @cached_property
    def dtype(self) -> np.dtype:
        return Spec("", 1, 1, self.parts).obs_dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.parts[0].shape if len(self.parts) == 1 else ()


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
        part, flatten = _box_part("obs", space, name)
        return ObsForm((part,), flatten)
    if any(isinstance(part, spaces.Text) for part in _parts(space)):
        raise Usage(f"{name}: observations {space} have text, which can't be learned from: {fix}")
    if isinstance(space, spaces.Dict):
        found = {key: _part(key, inner, name) for key, inner in space.spaces.items()}
        if any(part.kind != "flat" for part, _ in found.values()):
            parts = tuple(part for part, _ in found.values())
            return ObsForm(parts, partial(_record, parts, {key: made for key, (_, made) in found.items()}))
    part, flatten = _flat_part("obs", space, name)
    return ObsForm((part,), flatten)


Made = Callable[[Any], np.ndarray] | None


def _part(key: str, space: Any, name: str) -> tuple[Part, Made]:
    """One entry of a Dict, and how it is made an array."""
    if isinstance(space, spaces.Box):
        return _box_part(key, space, name)
    if isinstance(space, spaces.MultiDiscrete):
        return _token_part(key, space)
    return _flat_part(key, space, name)


def _box_part(key: str, space: spaces.Box, name: str) -> tuple[Part, Made]:
    if 0 in space.shape:
        raise Usage(f"{name}: observations {space} have no numbers")
    dtype = np.dtype(np.float32 if space.dtype == np.float64 else space.dtype)
    bits = dtype.kind in "biu" and bool((space.low >= 0).all() and (space.high <= 1).all())
    if not space.shape:
        return Part(key, (1,), dtype, normalise=not bits), np.atleast_1d
    is_image = len(space.shape) == 3 and min(image_shape(space.shape)[1:]) >= SMALLEST_IMAGE
    kind: Kind = "image" if is_image else "flat"
    return Part(key, space.shape, dtype, kind, normalise=not bits), None


def _token_part(key: str, space: spaces.MultiDiscrete) -> tuple[Part, Made]:
    """Ids [N, K], or [N] of one id each. A vocabulary belongs to a column, so the largest counts."""
    sizes = np.asarray(space.nvec)
    rows = sizes.reshape(len(sizes), -1)
    shape, first = rows.shape, np.asarray(space.start).reshape(rows.shape)
    vocabulary = tuple(int(size) for size in rows.max(0))
    part = Part(key, shape, np.dtype(np.int32), "tokens", vocabulary=vocabulary)
    return part, lambda seen: np.asarray(seen).reshape(shape) - first


def _flat_part(key: str, space: Any, name: str) -> tuple[Part, Made]:
    """Everything that has a fixed size, as one vector; choices are one-hot."""
    try:
        flat = spaces.flatdim(space)
    except (NotImplementedError, ValueError):
        fix = "use Box, Discrete, Dict or Tuple"
        raise Usage(f"{name}: observations {space} have no fixed size: {fix}") from None
    if flat > MOST_NUMBERS:
        raise Usage(f"{name}: observations {space} have {flat:,} numbers, more than {MOST_NUMBERS:,}")
    return Part(key, (flat,), np.dtype(np.float32), normalise=True), partial(spaces.flatten, space)


def _record(parts: tuple[Part, ...], made: dict[str, Made], seen: Any) -> np.ndarray:
    """An observation of a Dict as one record."""
    record = np.zeros((), Spec("", 1, 1, parts).obs_dtype)
    for part in parts:
        make, value = made[part.name], seen[part.name]
        array = np.asarray(make(value) if make else value)
        if array.shape != part.shape:
            raise Failure(f"{part.name!r} has shape {array.shape}, but observation_space says {part.shape}")
        record[part.name] = array
    return record


def _parts(space: Any) -> list[Any]:
    """The space and all that it is made of."""
    inner = getattr(space, "spaces", ())
    inner = inner.values() if isinstance(inner, dict) else inner
    return [space, *(part for one in inner for part in _parts(one))]


def fitted(form: ObsForm, seen: Any, row: int, name: str) -> np.ndarray:
    """An observation as one array of the right shape."""
    try:
        seen = np.asarray(form.flatten(seen) if form.flatten else seen)
    except Failure as problem:
        raise Failure(f"{name}: the observation in row {row}: {problem}") from None
    if seen.shape != form.shape:
        raise Failure(
            f"{name}: the observation in row {row} has shape {seen.shape}, "
            f"but observation_space says {form.shape}"
        )
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
