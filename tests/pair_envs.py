"""Games for two that fail, for the tests of what evaluations do then."""

import multiprocessing
import subprocess
import time
from pathlib import Path

from broken_envs import note
from cut_env import Cut


class FamilyPair(Cut):
    """Starts a child that would outlive it in its first two games; the second leads a session of its own."""

    def __init__(self, pids: str) -> None:
        super().__init__()
        self.pids, self.games = pids, 0

    def reset(self, seed=None, options=None):
        super().reset()
        if self.games < 2:
            note(self.pids, subprocess.Popen(["sleep", "1000"], start_new_session=self.games == 1))
        self.games += 1


class SleepingPair(Cut):
    """Falls asleep for ever at its first step, except in workers."""

    def __init__(self, bed: str) -> None:
        super().__init__()
        self.bed = bed

    def step(self, action):
        if not multiprocessing.current_process().name.startswith("ludus-worker"):
            Path(self.bed).touch()
            time.sleep(10**9)
        super().step(action)
