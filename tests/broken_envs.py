"""Environments that fail, for the tests of what training does then."""

import contextlib
import os
import time

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


class Sleeping(Talking):
    """Falls asleep for ever at its tenth step, in the one process that finds no bed made yet."""

    def __init__(self, bed: str) -> None:
        self.bed, self.steps = bed, 0

    def step(self, action):
        self.steps += 1
        if self.steps == 10:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.bed)
                time.sleep(10**9)
        return super().step(action)
