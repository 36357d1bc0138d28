"""Which decisions are learned from together, in a new order for each epoch."""

import math

import torch
from torch import Tensor

from ludus.core.afterstates import Afterstates

MARGIN, WHOLE = 1.1, 64
"""Of the room for decisions with many options: whenever it must grow, updates are recorded anew."""


def shuffled(items: Tensor, minibatch: int) -> Tensor:
    """Minibatches of decisions, int64 [M, size], from items of one or more decisions, int64 [N, L]. The last
    items are left out if they don't fill one."""
    size = min(max(1, minibatch // items.shape[1]), len(items))
    order = torch.randperm(len(items), device=items.device)
    return items[order[: len(items) // size * size]].reshape(len(items) // size, -1)


class ManyFirst:
    """Minibatches whose first decisions may have many options: a GPU spares the others.

    How many these are must not change often, since compiled code and recorded updates depend on it.
    """

    def __init__(self, afterstates: Afterstates) -> None:
        self.afterstates = afterstates
        self.share = 0.0  # of a minibatch; it only grows

    def minibatches(self, obs: Tensor, minibatch: int) -> tuple[Tensor, int]:
        """As `shuffled`; and how many decisions of each may have many options."""
        size = min(minibatch, len(obs))
        count, has_few = len(obs) // size, self.afterstates.has_few(obs)
        order = torch.randperm(len(obs), device=obs.device)[: count * size]
        with_many, with_few = order[~has_few[order]], order[has_few[order]]
        if len(with_many) > count * self._room(size):
            self.share = min(1.0, MARGIN * len(with_many) / len(order))
        many = self._room(size)
        first, rest = torch.cat([with_many, with_few]).split([count * many, count * (size - many)])
        first = first[torch.randperm(len(first), device=obs.device)]
        return torch.cat([first.reshape(count, many), rest.reshape(count, size - many)], 1), many

    def _room(self, size: int) -> int:
        return min(size, math.ceil(self.share * size / WHOLE) * WHOLE)
