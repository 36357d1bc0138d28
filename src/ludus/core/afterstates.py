"""Afterstates: what actions lead to before chance or others move on, in parts that many actions share.

In OFC the parts are the three rows: 232 placements of five cards make 90 different rows. A network that
scores them (`nets/afterstates.py`) learns what a row is worth once, not once for each number of an action.
"""

from typing import TYPE_CHECKING, Protocol

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
    constants: tuple[np.ndarray, ...]
    """float32: what `describe_tensor` needs on its device."""

    def find(self, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the options that legal actions lead to, int32 [N, K, M], -1 for none, counted by part,
        then decision, then option; where those of each part begin and the last end, int64 [K + 1].

        obs: [N, *obs_shape]
        """
        ...

    def describe(self, obs: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        """Put the features of each option at its number. places: as `find` gives them for these decisions;
        out: float32 [P, F]"""
        ...

    def describe_tensor(self, obs: "Tensor", constants: "list[Tensor]") -> "Tensor":
        """Features on any device, float32 [N, K, M, F]; options that aren't there have any numbers."""
        ...
