"""AlphaZero (Silver et al. 2018; Danihelka et al. 2022 for few simulations; Wu 2020 for what is learned):
what it can be told, and what a block holds. Needs no torch.

A block holds decisions of finished games: each knows what its search found and how its game ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from ludus.core.block import Column
from ludus.core.errors import Usage
from ludus.core.ranges import Count, NotNegative, Positive, Range, Share, Whole
from ludus.core.spec import Spec
from ludus.search import SearchConfig

LISTED = 32
"""Actions of a search's policy that are remembered: the likeliest."""


def _self_play() -> SearchConfig:
    return SearchConfig(simulations=32, root="gumbel", noise=1.0, width=64)


@dataclass(frozen=True)
class Config:
    search: SearchConfig = field(default_factory=_self_play)
    """How moves are searched for in self-play."""
    full_share: Annotated[float, Range(0, 1, open_low=True)] = 0.5
    """Share of moves that are searched in full; the others are searched quickly, only to reach the end."""
    quick: Count = 8
    """Simulations of a quick search."""
    drawn_moves: Whole = 0
    """First moves of a game that are drawn from what the search found; later ones are its best."""
    learning_rate: NotNegative = 2e-3
    """Adam's step at the start of the run; it falls in a straight line."""
    learning_rate_end: Share = 0.05
    """Share of the learning rate that is left at the end of the run."""
    weight_decay: NotNegative = 1e-4
    minibatch: Count = 256
    """Decisions in one step of the optimiser."""
    reuse: Positive = 4.0
    """How often a decision is learned from, on average."""
    replay: Count = 200_000
    """Decisions that are remembered."""
    replay_least: Whole = 2_000
    """Learning starts once so many are there."""
    newer: Positive = 1.5
    """How much newer decisions are favoured: 1 not at all, 2 draws 70 % from the newest half."""
    score_weight: Share = 0.25
    """Share of the points in what a search plays for; the rest is to win."""
    score_scale: Positive = 20.0
    """Points that make a clear win."""
    found: Share = 0.25
    """Share of what the search expected in the value to be learned; the rest is how the game ended."""
    score_loss: NotNegative = 0.25
    """Weight of learning the points beside the value."""
    owner_loss: NotNegative = 0.25
    """Weight of learning who will own each square, where the game tells."""
    max_grad_norm: Positive = 1.0
    """Longer gradients are shortened to this."""
    arena: Count = 2
    """Simulations of past selves, if `opponents` has them: few, because each of them is a network to ask."""


def bots(config: Any) -> set[str]:
    """Bots whose code must be there: `search` stands for our own."""
    return {"search"}


def refuse(config: Any, spec: Spec) -> None:
    if spec.state is None or spec.hidden or len(spec.obs_shape) != 3:
        raise Usage(
            f"alphazero plays native games on boards that hide nothing, and {config.game} is none: "
            "take --algo ppo"
        )
    told = config.alphazero
    if told.replay_least > told.replay:
        raise Usage(
            f"--alphazero.replay-least is {told.replay_least}, more than the {told.replay} decisions "
            "that --alphazero.replay remembers"
        )


def columns(config: Any, spec: Spec) -> list[Column]:
    """What a block holds of each decision."""
    return record(config.alphazero, spec)


def make_learner(config: Any, spec: Spec, device: str) -> Any:
    from ludus import games
    from ludus.algos.alphazero.learner import Learner

    rules = games.rules(config.game, **config.switches)
    return Learner(rules, config.net, config.alphazero, device, config.seed)


def record(config: Config, spec: Spec) -> list[Column]:
    assert spec.state is not None
    listed, whole = min(LISTED, spec.actions), np.dtype(np.float32)
    found = [
        Column("state", (spec.state.itemsize,), np.dtype(np.uint8)),
        Column("action", (listed,), np.dtype(np.int32)),  # as the search's policy lists them
        Column(
            "policy", (listed,), whole
        ),  # 0 where it lists no more; what is missing to 1 is for the others
        Column("full", (), np.dtype(bool)),  # whether the policy is worth learning
        Column("expected", (spec.seats,), whole),  # what the search found that every seat gets
        Column("value", (spec.seats,), whole),  # and what they got
        Column("score", (spec.seats,), whole),
    ]
    if spec.owned:
        found.append(
            Column("owner", (-(-spec.seats * spec.squares // 8),), np.dtype(np.uint8))
        )  # bits, packed
    return found


def utility(config: Config, spec: Spec) -> Callable[[np.ndarray], np.ndarray]:
    """What final scores are worth to each seat, in [-1, 1]: to win, and by how much. Where seats don't play
    against each other (not zero-sum), only the points count."""
    from ludus.search.evaluators import win_share

    weight = np.float32(config.score_weight if spec.zero_sum else 1)
    scale = np.float32(config.score_scale)

    def mixed(score: np.ndarray) -> np.ndarray:
        return (1 - weight) * win_share(score) + weight * np.tanh(score / scale)

    return mixed
