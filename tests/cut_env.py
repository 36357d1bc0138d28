"""A game for two, cut off after a number of moves. Each agent sees its own number and the moves made."""

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.env import AECEnv

MOVES = 3


class Cut(AECEnv):
    def __init__(self, moves: int = MOVES, unbounded: bool = False, vectors: bool = False) -> None:
        super().__init__()
        self.metadata = {"name": "cut"}
        self.possible_agents = ["left", "right"]
        self.moves = moves
        bound = np.inf if unbounded else 1.0
        self.space = spaces.Box(-2 * bound, bound, (2,), np.float32) if vectors else spaces.Discrete(2)
        self.actions: list = []

    def observation_space(self, agent):
        return spaces.Box(-9, 9, (2,), np.float32)

    def action_space(self, agent):
        return self.space

    def observe(self, agent):
        return np.array([self.possible_agents.index(agent) + 1, self.made], np.float32)

    def reset(self, seed=None, options=None):
        self.agents, self.made = self.possible_agents[:], 0
        self.rewards = self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]

    def step(self, action):
        if self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.actions.append(action)
        self.made += 1
        self.truncations = dict.fromkeys(self.agents, self.made == self.moves)
        self.agent_selection = self.agents[self.made % 2]
