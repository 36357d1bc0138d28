"""Which decisions are learned from together, in a new order for each epoch."""

import torch
from torch import Tensor

MARGIN = 1.1
"""Of the room for decisions with many options: when it must grow, updates are recorded anew."""
WHOLE = 64


def shuffled(items: Tensor, minibatch: int) -> Tensor:
    """Minibatches of decisions, int64 [M, size], from items of one or more decisions, int64 [N, L]. The last
    items are left out if they don't fill one."""
    size = min(max(1, minibatch // items.shape[1]), len(items))
    order = torch.randperm(len(items), device=items.device)
    return items[order[: len(items) // size * size]].reshape(len(items) // size, -1)


def shuffled_by_options(has_few: Tensor, minibatch: int, many: int) -> tuple[Tensor, int]:
    """Decisions in an order in which those after the first `many` of each minibatch have few options,
    int64 [M, size]; and `many`, grown if it was too small. has_few: bool [N]"""
    size = min(minibatch, len(has_few))
    count = len(has_few) // size
    order = torch.randperm(len(has_few), device=has_few.device)
    is_few = has_few[order]
    others, few = order[~is_few], order[is_few]
    needed = -(-len(others) // count)
    if needed > many:
        many = min(size, int(-(-MARGIN * needed // WHOLE)) * WHOLE)
    spare = min(count * many - len(others), len(few))
    first = torch.cat([others, few[:spare]])[: count * many]
    first = first[torch.randperm(len(first), device=first.device)]
    rest = few[spare:][: count * (size - many)]
    return torch.cat([first.reshape(count, many), rest.reshape(count, size - many)], 1), many
