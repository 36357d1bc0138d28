"""Environments that fail, for the tests of what training does then."""

import os

import gymnasium
import numpy as np


class Raising(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        raise RuntimeError("the bridge is out")


class Dying(Raising):
    def step(self, action):
        os._exit(3)


class Talking(Raising):
    """Prints, and has a child that prints."""

    def __init__(self) -> None:
        print("from python", flush=True)
        os.system("echo from a child >&2")

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}
