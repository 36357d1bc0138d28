"""AlphaZero (Silver et al. 2018; Danihelka et al. 2022 for few simulations; Wu 2020 for what is learned):
its settings, and what a block holds. Needs no torch.

A block holds decisions of finished games: each knows what its search found and how its game ended. `actor.py`
plays, `central.py` plays beside a GPU, `learner.py` learns from a replay buffer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np

from ludus import algos
from ludus.algos import Actor, Central, Learner, Opponent, Plan, Policy, Seating
from ludus.core.block import Column, block_bytes
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.ranges import Count, NotNegative, Positive, Range, Share, Whole
from ludus.core.rules import Bot, Rules
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.core.think import NO_LOOK_AHEAD
from ludus.nets import NetConfig
from ludus.search import SearchConfig
from ludus.search.bot import SearchBot
from ludus.search.evaluators import win_share

if TYPE_CHECKING:
    import torch

    from ludus.algos.alphazero.evaluators import BoardPolicy
    from ludus.config import Config as TrainConfig

LISTED = 32
"""Actions of a search's policy that are remembered: the likeliest."""


def _self_play() -> SearchConfig:
    return SearchConfig(simulations=32, root="gumbel", noise=1.0, width=64)


@dataclass(frozen=True)
class Config:
    """AlphaZero settings; for native games on boards."""

    search: SearchConfig = field(default_factory=_self_play)
    """Tree search in self-play."""
    full_share: Annotated[float, Range(0, 1, open_low=True)] = 0.5
    """Share of moves with a full search; others have a fast one and no policy target (playout cap)."""
    fast_simulations: Count = 8
    """Simulations of a fast search."""
    sampling_moves: Whole = 0
    """First moves of a game that are sampled from the search's policy; later ones are its best."""
    random_openings: Share = 0.0
    """Share of games with itself that begin with two random moves: else it knows only openings it prefers."""
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
    play_temperature: Positive = 1.0
    """Softmax temperature of an agent's priors in matches and against people: a strong policy is so
    sharp that PUCT hardly looks at anything but its first choice."""


SIMULATIONS = 256
"""Positions that an agent looks at. Default."""
LEAVES, MOST_LEAVES = 4, 16
"""Positions that an agent evaluates together: on one core a network of Blokus takes 1.05 ms for one and 4.1
for four, on two cores 1.05 and 2.2. With more threads there is one for each, up to a number that still know
enough of each other."""
ENDGAME = 2_000
"""Positions that a game's own solver may try at each leaf: in Blokus it takes 0.3 ms on average, in connect
four 0.13 at most."""


class AlphaZero(algos.Algorithm):
    settings_type = Config
    searches = True
    preload = ("ludus.algos.alphazero.evaluators",)
    renamed: ClassVar = {
        "quick": "fast_simulations",
        "drawn_moves": "sampling_moves",
        "reuse": "replay_ratio",
        "replay": "replay_buffer",
        "replay_least": "learning_starts",
        "newer": "recency",
        "found": "root_value_weight",
        "score_loss": "score_coef",
        "owner_loss": "ownership_coef",
        "arena": "past_simulations",
        "search.value_scale": "search.c_scale",
        "search.exploration": "search.c_puct",
        "search.first_play": "search.first_play_reduction",
    }

    def refuse(self, config: "TrainConfig", game: Game) -> None:
        spec, settings = game.spec, config.settings
        if game.rules is None or spec.hidden or spec.board is None:
            raise Usage(
                f"alphazero plays native games on boards that hide nothing, and {config.game} is none: "
                "take --algo ppo"
            )
        if settings.learning_starts > settings.replay_buffer:
            raise Usage(
                f"--alphazero.learning-starts is {settings.learning_starts}, more than the "
                f"{settings.replay_buffer} decisions of --alphazero.replay-buffer"
            )

    def bots(self, settings: Config) -> set[str]:
        return {"search"}  # it stands for our own

    def columns(self, config: "TrainConfig", spec: Spec) -> list[Column]:
        return record(config.settings, spec)

    def make_learner(self, config: "TrainConfig", game: Game, device: str) -> Learner:
        from ludus.algos.alphazero.learner import AlphaZeroLearner

        assert game.rules is not None
        return AlphaZeroLearner(game.rules, config.net, config.settings, device, config.seed)

    def make_actor(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray
    ) -> Actor:
        from ludus.algos.alphazero.actor import SelfPlay
        from ludus.algos.alphazero.evaluators import CpuNetwork

        return SelfPlay(plan, index, table, seating, beat, CpuNetwork(_rules(game), plan.net))

    def make_opponent(self, plan: Plan, table: Table) -> Opponent:
        from ludus.algos.alphazero.actor import SearchOpponent
        from ludus.algos.alphazero.evaluators import CpuNetwork

        return SearchOpponent(plan, table, lambda rules: CpuNetwork(rules, plan.net))

    def make_central(self, plan: Plan, game: Game, net: Any, columns: list[Column], overlap: bool) -> Central:
        from ludus.algos.alphazero.central import SearchCentral

        return SearchCentral(plan, _rules(game), net, columns, overlap)

    def make_policy(self, spec: Spec, net: NetConfig, in_torch: bool = False) -> Policy:
        from ludus.algos.alphazero.evaluators import BoardPolicy

        return BoardPolicy(spec, net)

    def make_bot(self, rules: Rules, config: "TrainConfig", policy: Policy, think: str, source: str) -> Bot:
        from ludus.algos.agent import policy_bot
        from ludus.nets.int8 import fastest
        from ludus.search.evaluators import Network

        if think == NO_LOOK_AHEAD:
            return policy_bot(rules, config.net, policy, think, source)
        search = config.settings.search
        network = Network(rules, fastest(cast("BoardPolicy", policy).net))
        worth = utility(config.settings, rules.spec)
        settings = SIMULATIONS, search.c_puct, search.first_play_reduction
        temperature = config.settings.play_temperature
        agent = SearchBot(rules, *settings, network, worth, leaves_together, temperature, ENDGAME)
        if think:
            agent.limit(think)
        if rules.spec.actions <= search.considered and not agent.seconds:
            # In solved positions of connect four, a root that compares all moves makes 11 to 27 % fewer
            # mistakes than PUCT. It shares out a number of simulations: not where time is the limit.
            agent.config = replace(agent.config, root="gumbel", c_scale=1.0, prior_temperature=1.0)
        return agent

    def make_module(self, spec: Spec, net: NetConfig) -> "torch.nn.Module":
        from ludus.nets.board import ExportedBoardNet

        return ExportedBoardNet(spec, net)

    def can_be_central(self, config: "TrainConfig") -> bool:
        return True

    def needs_torch(self, config: "TrainConfig", spec: Spec) -> bool:
        return True

    def kept_bytes(self, config: "TrainConfig", spec: Spec) -> dict[str, int]:
        decisions = block_bytes(record(config.settings, spec), 1, config.settings.replay_buffer)
        return {"replay_buffer": 2 * decisions}  # a checkpoint takes a copy

    def beats_per_decision(self, config: "TrainConfig") -> float:
        """A beat is an evaluated position."""
        settings = config.settings
        full = settings.full_share
        return full * settings.search.simulations + (1 - full) * settings.fast_simulations + 1


def leaves_together() -> int:
    import torch

    return min(max(LEAVES, torch.get_num_threads()), MOST_LEAVES)


def _rules(game: Game) -> Rules:
    assert game.rules is not None  # refused before
    return game.rules


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
    weight = np.float32(config.score_weight if spec.zero_sum else 1)
    scale = np.float32(config.score_scale)

    def mixed(score: np.ndarray) -> np.ndarray:
        return (1 - weight) * win_share(score) + weight * np.tanh(score / scale)

    return mixed


algorithm = AlphaZero()
