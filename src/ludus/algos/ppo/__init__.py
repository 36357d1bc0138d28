"""PPO with action masks, over seats: what it can be told, and what a block holds. Needs no torch.

A block is [T, N]: each of N games contributes T decisions of the learning policy, whoever's seat they
were. `learner.py` learns from it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.core.block import Column
from ludus.core.errors import Usage
from ludus.core.ranges import Count, NotNegative, Positive, Share
from ludus.core.spec import Spec


@dataclass(frozen=True)
class Config:
    learning_rate: NotNegative = 5e-4
    """Adam's step at the start of the run; it falls in a straight line."""
    learning_rate_end: Share = 0.1
    """Share of the learning rate that is left at the end of the run."""
    gamma: Share = 0.99
    """Worth of a point at a seat's next decision. 1 for games whose points come at the end."""
    gae: Share = 0.95
    """How far advantages look ahead: 0 one decision, 1 the whole game (lambda of GAE)."""
    clip: Positive = 0.2
    """How far a decision's probability may move in one update before its gradient is cut, as a ratio."""
    epochs: Count = 3
    """How often each decision is learned from."""
    minibatch: Count = 2048
    """Decisions in one step of the optimiser."""
    entropy: NotNegative = 0.01
    """Bonus for undecided play at the start of the run: what keeps the policy exploring."""
    entropy_end: Share = 0.1
    """Share of the entropy bonus that is left at the end of the run."""
    value: NotNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: Positive = 0.5
    """Longer gradients are shortened to this."""
    target_kl: NotNegative = 0.03
    """Stop this block's epochs once the policy moved this far from the one that played; 0 for never."""
    teacher: str = ""
    """A bot of the game whose choices the policy imitates at first, as in greedy; empty for none."""
    teacher_weight: NotNegative = 1.0
    """Weight of imitation at the start of the run; it falls to nothing by `teacher_until`."""
    teacher_until: Share = 0.1
    """Share of the run after which the policy is on its own."""


STRETCH = 16
"""Decisions of one seat in a row through which a network's memory is learned."""


def bots(config: Any) -> set[str]:
    """Bots whose code must be there."""
    return {config.ppo.teacher} - {""}


def refuse(config: Any, spec: Spec) -> None:
    if spec.state is None and not bots(config) <= {"random"}:
        raise Usage(f"{config.game} has no bot {config.ppo.teacher!r} to learn from: only native games have")
    config.net.refuse(spec)
    # A seat's last decision in a block is not known yet.
    if (config.steps - spec.seats) * config.rows < 2:
        raise Usage(f"steps is {config.steps}, too few to learn from: take at least {spec.seats + 2}")


def columns(config: Any, spec: Spec) -> list[Column]:
    """What a block holds of each decision."""
    action = (
        Column("action", spec.box[0].shape, np.dtype(np.float32))
        if spec.box
        else Column("action", (), np.dtype(np.int32))
    )
    found = [
        Column("obs", spec.obs_shape, spec.obs_dtype),
        Column("legal", (spec.actions,), np.dtype(bool)),
        action,
        Column("logp", (), np.dtype(np.float32)),
        Column("seat", (), np.dtype(np.int8)),
        Column("reward", (spec.seats,), np.dtype(np.float32)),  # paid to every seat until the next decision
        Column("ended", (), np.dtype(bool)),  # the game was over, or cut off, before the next decision
        # What a game that was cut off was still worth to each seat; 0 if it was over, NaN if nobody knows.
        Column("bootstrap", (spec.seats,), np.dtype(np.float32)),
    ]
    if memory := config.net.memory:
        found.append(Column("memory", (2 * memory,), np.dtype(np.float32)))  # before this decision
        found.append(Column("fresh", (), np.dtype(bool)))  # this seat's first decision in its game
    return [*found, Column("teacher", (), np.dtype(np.int32))] if config.ppo.teacher else found


def make_learner(config: Any, spec: Spec, device: str) -> Any:
    from ludus.algos.ppo.learner import Learner
    from ludus.nets.net import Net

    return Learner(spec, Net(spec, config.net), config.ppo, device)
