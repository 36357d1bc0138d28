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
    """Tree search in self-play."""
    full_share: Annotated[float, Range(0, 1, open_low=True)] = 0.5
    """Share of moves with a full search; others have a fast one and no policy target (playout cap)."""
    fast_simulations: Count = 8
    """Simulations of a fast search."""
    sampling_moves: Whole = 0
    """First moves of a game that are sampled from the search's policy; later ones are its best."""
    learning_rate: NotNegative = 2e-3
    """Learning rate of AdamW at the start of the run; it decays linearly."""
    learning_rate_end: Share = 0.05
    """Learning rate at the end of the run, as a share of the first."""
    weight_decay: NotNegative = 1e-4
    """Weight decay of AdamW."""
    minibatch: Count = 256
    """Minibatch size."""
    replay_ratio: Positive = 4.0
    """Replay ratio: how often a decision is learned from, on average."""
    replay_buffer: Count = 200_000
    """Size of the replay buffer in decisions."""
    learning_starts: Whole = 2_000
    """Decisions in the replay buffer before the first update."""
    recency: Positive = 1.5
    """Preference for recent decisions when sampling: 1 is uniform, 2 draws 70 % from the newest half."""
    score_weight: Share = 0.25
    """Share of the score in the utility that a search maximises; the rest is winning."""
    score_scale: Positive = 20.0
    """Scale of the score in the utility: tanh(score / scale)."""
    root_value_weight: Share = 0.25
    """Weight of the root value in the value target; the rest is the game's outcome."""
    score_coef: NotNegative = 0.25
    """Coefficient of the score loss."""
    ownership_coef: NotNegative = 0.25
    """Coefficient of the ownership loss, in games whose squares have owners."""
    max_grad_norm: Positive = 1.0
    """Maximum gradient norm (clipping)."""
    past_simulations: Count = 2
    """Simulations of past selves, if `opponents` has them: few, because each has its own network."""


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
    if told.learning_starts > told.replay_buffer:
        raise Usage(
            f"--alphazero.learning-starts is {told.learning_starts}, more than the {told.replay_buffer} "
            "decisions of --alphazero.replay-buffer"
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
