"""Your own algorithm in one file: REINFORCE with a value baseline, for any game with discrete actions.

    ludus train gym:CartPole-v1 --algo examples.reinforce

It is trained in parallel, resumed exactly, evaluated and exported as the others are.
docs/adding-an-algorithm.md walks through it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.algos import Algorithm, Learner, Plan, Seating
from ludus.algos.actor import StepActor
from ludus.core.block import Block, Column
from ludus.core.game import Game
from ludus.core.spec import Spec
from ludus.core.table import Table, Turn


@dataclass(frozen=True)
class Config:
    """REINFORCE settings."""

    learning_rate: float = 2e-3
    """Learning rate of Adam."""
    gamma: float = 0.99
    """Discount factor per decision."""
    entropy_coef: float = 0.01
    """Entropy coefficient."""


class ReinforceActor(StepActor):
    """`StepActor` steps the games; this says what the policy decides and what the learner needs to know."""

    def decide(self, turn: Turn, block: Block, t: int) -> np.ndarray:
        actions, _, _ = self.policy.act(turn.obs, turn.legal, self.rng)
        block["obs"][t], block["legal"][t] = turn.obs, turn.legal
        block["action"][t], block["seat"][t] = actions, turn.seat
        return actions

    def note(self, turn: Turn, block: Block, t: int) -> None:
        """After the step: what it paid to every seat, and whether a game ended."""
        block["reward"][t], block["ended"][t] = turn.reward, turn.ended | turn.truncated


def returns(seat: np.ndarray, reward: np.ndarray, ended: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted return of every decision [T, N], up to the end of its game or of the block.

    seat, ended: [T, N]; reward: [T, N, seats]
    """
    rows, out = np.arange(seat.shape[1]), np.zeros(seat.shape, np.float32)
    later = np.zeros(reward.shape[1:], np.float32)  # what each seat gets from its next decision on
    for t in reversed(range(len(seat))):
        later[ended[t]] = 0
        later += reward[t]
        out[t] = later[rows, seat[t]]
        later[rows, seat[t]] *= gamma
    return out


class ReinforceLearner:
    def __init__(self, spec: Spec, net: Any, config: Config, device: str) -> None:
        import torch

        self.spec, self.net, self.config, self.device = spec, net.to(device), config, device
        self.optimizer = torch.optim.Adam(net.parameters(), lr=config.learning_rate)
        self.phase, self.cancelled = None, lambda: False  # set by the training
        self.progress, self.rate_scale = 0.0, 1.0

    def learn(self, blocks: list[Block], off_policy: bool) -> dict[str, float]:
        import torch

        def joined(name: str) -> torch.Tensor:
            parts = [torch.from_numpy(block[name]).flatten(0, 1) for block in blocks]
            return torch.cat(parts).to(self.device)

        found = [returns(b["seat"], b["reward"], b["ended"], self.config.gamma) for b in blocks]
        target = torch.from_numpy(np.concatenate([each.ravel() for each in found])).to(self.device)
        logits, value = self.net(joined("obs"), joined("legal"))
        logs = logits.log_softmax(1)
        advantage = (target - value).detach()
        chosen = logs.gather(1, joined("action").long()[:, None])[:, 0]
        policy_loss = -(chosen * advantage / (advantage.std() + 1e-8)).mean()
        value_loss = (value - target).square().mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_scale * (1 - self.progress) * self.config.learning_rate
        self.optimizer.zero_grad()
        loss = policy_loss + 0.5 * value_loss / target.var().clamp_min(1)
        (loss - self.config.entropy_coef * entropy).backward()
        self.optimizer.step()
        return {
            "losses/policy": policy_loss.item(), "losses/value": value_loss.item(),
            "policy/entropy": entropy.item(),
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), "rate_scale": self.rate_scale}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.rate_scale = state["rate_scale"]


class Reinforce(Algorithm):
    settings_type = Config

    def columns(self, config: Any, spec: Spec) -> list[Column]:
        """What a block holds of each decision."""
        return [
            Column("obs", spec.obs_shape, spec.obs_dtype),
            Column("legal", (spec.actions,), np.dtype(bool)),
            Column("action", (), np.dtype(np.int32)),
            Column("seat", (), np.dtype(np.int8)),
            Column("reward", (spec.seats,), np.dtype(np.float32)),
            Column("ended", (), np.dtype(bool)),
        ]

    def make_actor(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray
    ) -> ReinforceActor:
        return ReinforceActor(plan, index, table, seating, beat, self.make_policy(table.spec, plan.net))

    def make_learner(self, config: Any, game: Game, device: str) -> Learner:
        from ludus.nets.net import Net

        return ReinforceLearner(game.spec, Net(game.spec, config.net), config.settings, device)


algorithm = Reinforce()
