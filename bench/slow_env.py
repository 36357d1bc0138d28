"""An environment as slow as many are: 20 µs a step, in pure Python."""

import time

import gymnasium
import numpy as np


class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self) -> None:
        self.seen, self.left = np.zeros(8, np.float32), 200

    def reset(self, *, seed=None, options=None):
        self.left = 200
        return self.seen, {}

    def step(self, action):
        until = time.perf_counter_ns() + 20_000
        while time.perf_counter_ns() < until:
            pass
        self.left -= 1
        return self.seen, 1.0, self.left == 0, False, {}
