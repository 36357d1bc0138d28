"""ZooEnv: a native game as a PettingZoo environment. Must not know tables, bots or training."""

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.env import AECEnv

from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.games.adapters.one_game import OneGame
from ludus.games.adapters.spaces import box_of


class ZooEnv(AECEnv):
    """Every seat is an agent, `seat_0` and on. Rewards are changes of score.

    An agent that is not to move observes zeros and an all-zero mask, because rules observe only for the
    seat to move; so does everyone once the game is over. An illegal action raises `Failure` and changes
    nothing.
    """

    def __init__(self, rules: Rules, render_mode: str | None = None) -> None:
        super().__init__()
        spec = rules.spec
        if render_mode not in (None, "ansi"):
            raise Usage(f"{spec.game} can't be rendered as {render_mode!r}: choose 'ansi'")
        self.metadata = {"name": spec.game, "render_modes": ["ansi"], "is_parallelizable": False}
        self.render_mode = render_mode
        self.game = OneGame(rules)
        self.possible_agents = [f"seat_{seat}" for seat in range(spec.seats)]
        self.agents: list[str] = []
        self.action_spaces: dict[str, spaces.Space] = {
            agent: spaces.Discrete(spec.actions) for agent in self.possible_agents
        }
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": box_of(spec.obs_shape, spec.obs_dtype),
                    "action_mask": spaces.Box(0, 1, (spec.actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        if seed is None and not self.game.seeded:
            seed = int(np.random.default_rng().integers(2**63))
        if seed is not None:
            self.game.seed(seeds.derive(seed, "zoo"))
        self.game.deal()
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._score = np.zeros(len(self.agents), np.float32)  # [seats]
        self.agent_selection = self.agents[self.game.seat()]

    def step(self, action: Any) -> None:
        if self.agents and self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.game.play(action)
        self._cumulative_rewards[self.agent_selection] = 0.0
        before, self._score = self._score, self.game.score()
        self.rewards = dict(zip(self.agents, (self._score - before).tolist(), strict=True))
        self._accumulate_rewards()
        if self.game.over():
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[0]
        else:
            self.agent_selection = self.agents[self.game.seat()]

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        spec = self.game.spec
        if agent == self.agent_selection:
            seen, legal = self.game.observe(), self.game.legal()
        else:
            seen, legal = np.zeros(spec.obs_shape, spec.obs_dtype), np.zeros(spec.actions, bool)
        return {"observation": seen, "action_mask": legal.astype(np.int8)}

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def render(self) -> str | None:  # type: ignore[override]
        return self.game.text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        pass
