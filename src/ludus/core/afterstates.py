"""Afterstates: what actions lead to before chance or others move on, in parts that many actions share.

In OFC the parts are the three rows: 232 placements of five cards make 90 different rows. A network that
scores them (`nets/afterstates.py`) learns what a row is worth once, not once for each number of an action.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


PARTS = 3
"""K of an afterstate, each of its own kind."""


class Afterstates(Protocol):
    """How afterstates are put together. Everything follows from what the seat to move observes."""

    options: int
    """M that a part may become, at most."""
    features: int
    """F numbers that describe an option."""
    combine: np.ndarray
    """int32 [actions, K]: the option of each part that an action leads to."""
    few: int
    few_actions: slice
    """Decisions with few options have the first so many only, and these actions; a GPU spares the others."""
    constants: tuple[np.ndarray, ...]
    """float32: what `describe_tensor` needs on its device."""

    def there(self, obs: np.ndarray) -> np.ndarray:
        """Which options legal actions lead to, bool [N, K, M].

        obs: [N, *obs_shape]
        """
        ...

    def describe(self, obs: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        """Put the features of each option in its row. places: int32 [N, K, M], the row, -1 for an option that
        isn't there; out: float32 [P, F]"""
        ...

    def has_few(self, obs: Any) -> Any:
        """Which decisions have few options, bool [N]: arrays of arrays, tensors of tensors."""
        ...

    def describe_tensor(self, obs: "Tensor", constants: "list[Tensor]", options: int) -> "Tensor":
        """Features of the first options on any device, float32 [K, N, options, F or more]: zeros follow them.
        Options that aren't there have any numbers."""
        ...


class Described(NamedTuple):
    """The options of some decisions."""

    features: np.ndarray
    """float32 [P, F]: ordered by part, then decision, then option."""
    places: np.ndarray
    """int32 [N, K, M]: the row of each option; -1 for one that isn't there."""
    parts: list[slice]
    """Rows of each part."""


def described(afterstates: Afterstates, obs: np.ndarray, multiple: int = 1) -> Described:
    """multiple: each part is filled up with zeros to a multiple of so many rows"""
    there = afterstates.there(obs).transpose(1, 0, 2)  # [K, N, M]
    counts = there.sum((1, 2))
    ends = (-(-counts // multiple) * multiple).cumsum()
    starts = np.array([0, *ends[:-1]])
    numbers = there.reshape(PARTS, -1).cumsum(1) - 1 + starts[:, None]
    places = np.where(there, numbers.reshape(there.shape), -1).transpose(1, 0, 2).astype(np.int32, order="C")
    features = np.empty((ends[-1], afterstates.features), np.float32)
    for start, count, end in zip(starts, counts, ends, strict=True):
        features[start + count : end] = 0
    afterstates.describe(obs, places, features)
    return Described(features, places, [slice(*ends) for ends in zip(starts, ends, strict=True)])
