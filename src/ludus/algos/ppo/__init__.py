"""PPO with action masks, over seats: its settings, and what a block holds. Needs no torch.

A block is [T, N]: each of N games contributes T decisions of the learning policy, whoever's seat they
were. `actor.py` plays, `central.py` plays beside a GPU, `learner.py` learns.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ludus import algos
from ludus.algos import Actor, Central, Learner, Plan, Policy, Seating
from ludus.core.block import Column
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.ranges import Count, NotNegative, Positive, Share, Whole
from ludus.core.rules import Bot, Rules
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.search.bot import player_names

if TYPE_CHECKING:
    from ludus.config import Config as TrainConfig


@dataclass(frozen=True)
class Config:
    """PPO settings."""

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
    """A bot, or the game's champion, that the policy imitates at first (behaviour cloning). Default: none."""
    teacher_coef: NotNegative = 1.0
    """Coefficient of the imitation loss at the start of the run; it decays to 0 by `teacher_until`."""
    teacher_until: Share = 0.1
    """Share of the run after which imitation ends."""
    play_futures: Whole = 0
    """Futures on which an agent tries its likeliest actions in matches and against people, if it is not told
    how far to look ahead (`--think`). For native games and networks without memory."""


STRETCH = 16
"""Decisions of one seat in a row through which a network's memory is learned."""


class Ppo(algos.Algorithm):
    settings_type = Config
    renamed: ClassVar = {
        "gae": "gae_lambda",
        "clip": "clip_range",
        "entropy": "entropy_coef",
        "entropy_end": "entropy_coef_end",
        "value": "value_coef",
        "teacher_weight": "teacher_coef",
    }

    def refuse(self, config: "TrainConfig", game: Game) -> None:
        super().refuse(config, game)
        if (teacher := config.settings.teacher) and teacher not in player_names(game):
            choice = ", ".join(player_names(game))
            raise Usage(f"{game.name} has no bot {teacher!r} to learn from: choose from {choice}")
        if config.settings.play_futures and (game.rules is None or config.net.memory):
            raise Usage(
                "--ppo.play-futures is for native games and networks without memory: leave it out for "
                f"{game.name}"
            )
        # A seat's last decision in a block is not known yet.
        if (config.steps - game.spec.seats) * config.rows < 2:
            raise Usage(
                f"steps is {config.steps}, too few to learn from: take at least {game.spec.seats + 2}"
            )

    def bots(self, settings: Config) -> set[str]:
        return {settings.teacher} - {""}

    def columns(self, config: "TrainConfig", spec: Spec) -> list[Column]:
        action = Column(
            "action", spec.box[0].shape if spec.box else (), np.dtype(np.float32 if spec.box else np.int32)
        )
        obs = Column("obs", spec.obs_shape, spec.obs_dtype)
        if spec.stack:
            obs = Column("frames", spec.obs_shape[1:], spec.obs_dtype, before=spec.stack - 1)
        found = [
            obs,
            Column("legal", (spec.actions,), np.dtype(bool)),
            action,
            Column("logp", (), np.dtype(np.float32)),
            Column("value", (), np.dtype(np.float32)),  # what the policy expected when it chose
            Column("seat", (), np.dtype(np.int8)),
            Column(
                "reward", (spec.seats,), np.dtype(np.float32)
            ),  # paid to all seats until the next decision
            Column("ended", (), np.dtype(bool)),  # the game was over, or cut off, before the next decision
            # What a game that was cut off was still worth to each seat; 0 if it was over, NaN if unknown.
            Column("bootstrap", (spec.seats,), np.dtype(np.float32)),
        ]
        if memory := config.net.memory:
            found.append(Column("memory", (2 * memory,), np.dtype(np.float32)))  # before this decision
            found.append(Column("fresh", (), np.dtype(bool)))  # this seat's first decision in its game
        return [*found, Column("teacher", (), np.dtype(np.int32))] if config.settings.teacher else found

    def make_learner(self, config: "TrainConfig", game: Game, device: str) -> Learner:
        from ludus.algos.ppo.learner import PpoLearner
        from ludus.nets.net import Net

        return PpoLearner(game.spec, Net(game.spec, config.net), config.settings, device)

    def make_actor(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray
    ) -> Actor:
        from ludus.algos.ppo.actor import PpoActor

        return PpoActor(plan, index, game, table, seating, beat, self.make_policy(table.spec, plan.net))

    def make_central(self, plan: Plan, game: Game, net: Any, columns: list[Column], overlap: bool) -> Central:
        from ludus.algos.ppo.central import PpoCentral

        return PpoCentral(self, plan, game, net, columns, overlap)

    def make_bot(self, rules: Rules, config: "TrainConfig", policy: Policy, think: str, source: str) -> Bot:
        futures = config.settings.play_futures
        return super().make_bot(rules, config, policy, think or (str(futures) if futures else ""), source)

    def can_be_central(self, config: "TrainConfig") -> bool:
        return True


algorithm = Ppo()
