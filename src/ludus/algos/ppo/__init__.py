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
    """Learning rate of Adam at the start of the run; it decays linearly."""
    learning_rate_end: Share = 0.1
    """Learning rate at the end of the run, as a share of the first."""
    gamma: Share = 0.99
    """Discount factor per decision of a seat. 1 for games whose points come at the end."""
    gae_lambda: Share = 0.95
    """GAE lambda."""
    clip_range: Positive = 0.2
    """Clip range of the probability ratio (epsilon)."""
    epochs: Count = 3
    """Epochs over each batch."""
    minibatch: Count = 2048
    """Minibatch size."""
    entropy_coef: NotNegative = 0.01
    """Entropy coefficient at the start of the run."""
    entropy_coef_end: Share = 0.1
    """Entropy coefficient at the end of the run, as a share of the first."""
    value_coef: NotNegative = 0.5
    """Value loss coefficient."""
    max_grad_norm: Positive = 0.5
    """Maximum gradient norm (clipping)."""
    target_kl: NotNegative = 0.03
    """KL divergence from the policy that played after which the epochs of a batch stop early; 0: never."""
    teacher: str = ""
    """A bot that the policy imitates at first (behaviour cloning), such as greedy. Default: none."""
    teacher_coef: NotNegative = 1.0
    """Coefficient of the imitation loss at the start of the run; it decays to 0 by `teacher_until`."""
    teacher_until: Share = 0.1
    """Share of the run after which imitation ends."""


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
