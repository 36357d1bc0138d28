"""An environment that only a policy with memory can play: a cue at the start decides the last action."""

import gymnasium
import numpy as np

WAIT = 4


class Cue(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue, self.at = int(self.np_random.integers(2)), 0
        return np.array([2 * self.cue - 1, 0], np.float32), {}

    def step(self, action):
        self.at += 1
        last = self.at > WAIT
        seen = np.array([0, self.at / (WAIT + 1)], np.float32)
        return seen, float(last and action == self.cue), last, False, {}
