"""Speed, size and learning of console games, each printed as `figure NAME VALUE UNIT`; about six minutes.

Our own NES game, 4 frames a decision, 84x84 grey, 8 games. Ours are in one process per core. Rivals
(`retro_rivals.py`) take turns with ours in one run, so that whatever else the machine does strikes both.

retro.vs_gym       stepping, against Gymnasium's AsyncVectorEnv with the usual wrappers
retro.vs_turbo     stepping, against stable-retro-turbo, where it is installed
retro.vs_sb3       training, against PPO of Stable-Baselines3 with the same network, games, batch and epochs
retro.memory       of one more game in a process
retro.bytes        of a decision in a block
retro.random, retro.scripted    mean scores

--learn MINUTES trains the preset for so long instead, and compares the agent with both players.
"""

import argparse
import gzip
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import retro_rivals
from figures import figure
from ludus import algos, games, match, processes
from ludus.config import overlay, resolve
from ludus.core.block import block_bytes
from ludus.games.retro import catalog, states
from ludus.games.retro.emulator import Emulator
from ludus.store.reader import RunReader
from ludus.store.run import read_config, read_weights
from ludus.training.loop import Audience, train

GAME, GAMES = f"retro:{catalog.OWN_GAME}", retro_rivals.GAMES
SEED = 1000
"""Of games that scores are compared in: not those of the training."""


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


def steps_per_s(rows: int, seconds: float) -> float:
    table = games.open(GAME, **resolve(GAME).switches).table(rows)
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
    table = games.open(GAME).table(rows)
    table.reset(0)
    for _ in range(100):
        table.step(np.zeros(rows, np.int32))
    used = psutil.Process(os.getpid()).memory_full_info().uss / 1e6
    table.close()
    return used


def bytes_per_decision() -> float:
    """Of a block as the preset has it."""
    config = resolve(GAME)
    columns = algos.find(config.algo).columns(config, games.open(GAME, **config.switches).spec)
    return block_bytes(columns, config.steps, config.rows) / (config.steps * config.rows)


def training_speed(folder: str, workers: int, seconds: float) -> float:
    """Decisions per second of a training, without its start."""
    changes = {
        "run": folder, "workers": str(workers), "rows": GAMES // workers, "steps": retro_rivals.STEPS,
        "seconds": seconds + 5, "decisions": 10**9, "log_s": 0.5,
        "ppo": {"epochs": retro_rivals.EPOCHS, "minibatch": retro_rivals.MINIBATCH, "target_kl": 0.0},
    }  # fmt: skip
    train(overlay(resolve(GAME), changes, "the benchmark"), Audience())
    lines = list(RunReader(Path(folder)).metrics())
    if len(lines) < 2:
        raise SystemExit(f"no two updates in {seconds:.0f} s: the machine is too busy to measure anything")
    first, last = lines[len(lines) // 4], lines[-1]
    return (last["decisions"] - first["decisions"]) / (last["seconds"] - first["seconds"])


def score(who: str, count: int, folder: str = "") -> float:
    """Mean score of a bot, or of a run's agent."""
    game = games.open(GAME, **resolve(GAME).switches)
    if not folder:
        return match.bot_alone(game, who, count, SEED).mean
    run = Path(folder)
    return match.table_duel(game, read_config(run), read_weights(run, ""), "random", count, SEED).mean


@contextmanager
def integration() -> Iterator[str]:
    """A folder with our game and its start state, as other tools need it."""
    state = in_process(start_state)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, catalog.OWN_GAME)
        shutil.copytree(catalog.OURS / catalog.OWN_GAME, copy)
        (copy / f"{retro_rivals.STATE}.state").write_bytes(gzip.compress(state))
        yield folder


def start_state() -> bytes:
    return states.load_states(Emulator(catalog.find(catalog.OWN_GAME)), [retro_rivals.STATE])[0]


def compare_stepping(folder: str, workers: int, seconds: float, repeats: int) -> None:
    rival, has_turbo = retro_rivals.GymEnvs(folder), retro_rivals.TURBO.exists()
    ours, gym, turbo = [], [], []
    for _ in range(repeats):
        ours.append(sum(side_by_side(workers, steps_per_s, GAMES // workers, seconds)))
        gym.append(rival.steps_per_s(seconds))
        turbo += [retro_rivals.ask("turbo", folder, seconds)] if has_turbo else []
        print(f"ours {ours[-1]:.0f}, gymnasium {gym[-1]:.0f} steps/s", *turbo[-1:], flush=True)
    rival.envs.close()
    figure("retro.steps", statistics.median(ours), "decisions/s")
    figure("retro.vs_gym", ratio(ours, gym), "x")
    if turbo:
        figure("retro.vs_turbo", ratio(ours, turbo), "x")
    else:
        print("no stable-retro-turbo: pip install --no-deps --target .turbo stable-retro-turbo")


def compare_training(folder: str, workers: int, seconds: float) -> None:
    ours, theirs = [], []
    for repeat in range(2):
        run = Path(folder, f"run{repeat}")
        ours.append(in_process(training_speed, str(run), workers, seconds))
        theirs.append(retro_rivals.ask("sb3", folder, seconds))
        print(f"ours {ours[-1]:.0f}, Stable-Baselines3 {theirs[-1]:.0f} decisions/s", flush=True)
    figure("retro.train", statistics.median(ours), "decisions/s")
    figure("retro.vs_sb3", ratio(ours, theirs), "x")


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def learn(minutes: float, run: Path, workers: int) -> None:
    """The preset, for so many minutes."""
    changes = {
        "run": str(run), "seconds": 60 * minutes, "decisions": 10**9, "workers": str(workers), "log_s": 5.0,
    }  # fmt: skip
    print(f"training for {minutes:g} minutes in {run}", flush=True)
    in_process(train_for, changes)
    count = 32
    found = {who: in_process(score, who, count) for who in ("random", "scripted")}
    found["agent"] = in_process(score, "", count, str(run))
    for who, mean in found.items():
        figure(f"retro.{who}", mean, "points")
    figure("retro.vs_random", found["agent"] / found["random"], "x")
    figure("retro.vs_scripted", found["agent"] / found["scripted"], "x")
    figure("retro.decisions", (RunReader(run).last or {})["decisions"], "decisions")


def train_for(changes: dict[str, Any]) -> None:
    train(overlay(resolve(GAME), changes, "the benchmark"), Audience())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement of stepping")
    parser.add_argument("--training", type=float, default=25, help="seconds of each measurement of training")
    parser.add_argument("--repeats", type=int, default=3, help="of each pair, of which the median counts")
    parser.add_argument("--workers", type=int, default=2, help="processes of ours")
    parser.add_argument("--learn", type=float, default=0, help="minutes of training")
    parser.add_argument("--run", type=Path, default=Path("runs/gemfall"), help="where --learn puts its run")
    args = parser.parse_args()
    if args.learn:
        if args.run.exists():
            sys.exit(f"{args.run} exists: choose another --run")
        return learn(args.learn, args.run, args.workers)
    with integration() as folder:
        compare_stepping(folder, args.workers, args.seconds, args.repeats)
        compare_training(folder, args.workers, args.training)
    figure("retro.memory", (in_process(memory_mb, 9) - in_process(memory_mb, 1)) / 8, "MB")
    figure("retro.bytes", bytes_per_decision() / 1024, "KB")
    for who in ("random", "scripted"):
        figure(f"retro.{who}", in_process(score, who, 16), "points")


if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()
