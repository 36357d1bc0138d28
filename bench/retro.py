"""Speed and size of console games, each printed as `figure NAME VALUE UNIT`.

Stepping alone, with random actions: our own NES game, 4 frames a decision, 84x84 grey, 8 games. Ours are in
one process per core; Gymnasium's are in AsyncVectorEnv with the usual wrappers. Both take turns in one run,
so that whatever else the machine does strikes both.
"""

import argparse
import multiprocessing
import os
import statistics
import time
from typing import Any

import numpy as np
import psutil

from figures import figure
from ludus import processes
from ludus.games.retro import catalog, states
from ludus.games.retro.emulator import Emulator

GAME, GAMES = catalog.OWN_GAME, 8


def in_process(function: Any, *args: Any) -> Any:
    """What a function gives in a fresh process: an emulator and its memory end with it."""
    return side_by_side(1, function, *args)[0]


def side_by_side(count: int, function: Any, *args: Any) -> list[Any]:
    context = processes.make_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    started = [context.Process(target=answer, args=(theirs, function, args)) for _, theirs in pipes]
    for process in started:
        process.needs_main = True
        process.start()
    found = [ours.recv() for ours, _ in pipes]
    for process in started:
        process.join()
    return found


def answer(pipe: Any, function: Any, args: tuple) -> None:
    pipe.send(function(*args))


def steps_per_s(rows: int, seconds: float, separate: bool = False) -> float:
    from ludus.games.retro.opening import open_table

    table = open_table(GAME, rows, separate=separate)
    table.reset(0)
    actions = np.random.default_rng(0).integers(0, table.spec.actions, (1000, rows)).astype(np.int32)
    table.step(actions[0])
    begun, steps = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        table.step(actions[steps % 1000])
        steps += 1
    speed = steps * rows / (time.perf_counter() - begun)
    table.close()
    return speed


def memory_mb(rows: int) -> float:
    """Of a process with so many games, without what it shares with others."""
    from ludus.games.retro.opening import open_table

    table = open_table(GAME, rows)
    table.reset(0)
    for _ in range(100):
        table.step(np.zeros(rows, np.int32))
    used = psutil.Process(os.getpid()).memory_full_info().uss / 1e6
    table.close()
    return used


def bytes_per_decision() -> float:
    """Of what a block must keep of an observation: the newest frame, and how many frames are of this game."""
    from ludus.games.retro.opening import open_table

    table = open_table(GAME, GAMES)
    table.reset(0)
    kept = table.ring.frames[:, table.ring.at].nbytes + table.ring.age.nbytes
    table.close()
    return kept / GAMES


def start_state() -> bytes:
    emulator = Emulator(catalog.find(GAME))
    return states.load_states(emulator, ["Level1"])[0]


def make_gym_env(state: bytes) -> Any:
    """stable-retro's environment in the usual wrappers."""
    import gymnasium
    import stable_retro
    from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, ResizeObservation

    class Skip(gymnasium.Wrapper):
        def step(self, action):
            total = 0.0
            for _ in range(4):
                seen, reward, ended, cut, info = self.env.step(action)
                total += reward
                if ended or cut:
                    break
            return seen, total, ended, cut, info

    stable_retro.data.Integrations.add_custom_path(str(catalog.OURS))
    env = stable_retro.RetroEnv(
        GAME, state=stable_retro.State.NONE, render_mode="rgb_array",
        use_restricted_actions=stable_retro.Actions.DISCRETE,
        inttype=stable_retro.data.Integrations.CUSTOM,
    )  # fmt: skip
    env.initial_state = state
    return FrameStackObservation(ResizeObservation(GrayscaleObservation(Skip(env)), (84, 84)), 4)


class GymEnvs:
    """8 environments in 8 processes, kept between measurements."""

    def __init__(self, state: bytes) -> None:
        from functools import partial

        from gymnasium.vector import AsyncVectorEnv

        self.envs = AsyncVectorEnv([partial(make_gym_env, state)] * GAMES, context="spawn")
        self.envs.reset(seed=0)

    def steps_per_s(self, seconds: float) -> float:
        rng = np.random.default_rng(0)
        self.envs.step(rng.integers(0, 6, GAMES))
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            self.envs.step(rng.integers(0, 6, GAMES))
            steps += 1
        return steps * GAMES / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=3, help="of each pair, of which the median counts")
    parser.add_argument("--workers", type=int, default=2, help="processes of ours")
    args = parser.parse_args()
    state = in_process(start_state)
    rival = GymEnvs(state)
    speeds, ratios = [], []
    for _ in range(args.repeats):
        ours = sum(side_by_side(args.workers, steps_per_s, GAMES // args.workers, args.seconds))
        theirs = rival.steps_per_s(args.seconds)
        print(f"ours {ours:.0f}, gymnasium {theirs:.0f} steps/s", flush=True)
        speeds.append(ours)
        ratios.append(ours / theirs)
    rival.envs.close()
    figure("retro.steps", statistics.median(speeds), "decisions/s")
    figure("retro.vs_gym", statistics.median(ratios), "x")
    costs = [
        in_process(steps_per_s, GAMES, args.seconds, True) / in_process(steps_per_s, GAMES, args.seconds)
        for _ in range(args.repeats)
    ]
    figure("retro.separate", statistics.median(costs), "x")
    figure("retro.memory_per_game", (in_process(memory_mb, 9) - in_process(memory_mb, 1)) / 8, "MB")
    figure("retro.bytes_per_decision", in_process(bytes_per_decision), "B")


if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()
