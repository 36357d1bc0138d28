"""Environments that fail, for the tests of what training does then."""

import contextlib
import os
import subprocess
import time

import gymnasium
import numpy as np

from ludus.games.adapters import GymTable


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


class Family(Talking):
    """Starts children that would outlive it: one like any other, and one that leads a session of its own."""

    def __init__(self, pids: str) -> None:
        note(pids, *(subprocess.Popen(["sleep", "1000"], start_new_session=own) for own in (False, True)))


def note(pids: str, *children: subprocess.Popen) -> None:
    """Who has started whom."""
    with open(pids, "a") as file:
        file.write("".join(f"{os.getpid()} {child.pid}\n" for child in children))


class Slow(Talking):
    """Takes its time for every step, and for ever if it is told so."""

    def __init__(self, step_s: float = 0.05, first: float = 0.0) -> None:
        self.step_s, self.first = step_s, first

    def step(self, action):
        time.sleep(self.first or self.step_s)
        self.first = 0.0
        return super().step(action)


def is_first(mark: str) -> bool:
    """Whether no other process asked before: only one can make a folder."""
    try:
        os.mkdir(mark)
    except FileExistsError:
        return False
    return True


class Seldom(Talking):
    """Raises once, at the tenth step of the process that comes first."""

    def __init__(self, mark: str) -> None:
        self.mark, self.steps = mark, 0

    def step(self, action):
        self.steps += 1
        if self.steps == 10 and is_first(self.mark):
            raise ValueError("the bridge is out\nsecond line")
        return super().step(action)


class Infinite(Talking):
    def __init__(self, cut: bool = False) -> None:
        self.cut, self.steps = cut, 0

    def step(self, action):
        self.steps += 1
        seen = np.array([0, np.inf if self.steps == 20 else 1], np.float32)
        return seen, 0.0, False, self.cut, {}


class Unseen(Infinite):
    """At tables that don't look at observations, in whatever process they are."""

    def __init__(self) -> None:
        super().__init__(cut=True)
        GymTable.finite = False
        GymTable._looked_at = lambda table, turn: turn
