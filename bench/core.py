"""The figures that training stands on, each printed as `figure NAME VALUE UNIT`. Runs for about two minutes.

Processes that it spawns import this file, so what only one figure needs is imported there.
"""

import os
import statistics
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np

from figures import figure, measured, short
from ludus import games
from ludus.core.seeds import generator

ROWS = 1024
TARGETS = {
    "ofc.table": "at least 1,000,000",
    "ofc.table.scaling": "at least 1.8",
    "table.overhead": "under 10",
    "ofc.fl14": "under 0.5",
    "ofc.fl17": "under 5",
    "worker.start": "under 1.5",
}


# ---- the table


def table_speed(windows: int = 6) -> None:
    """Random play, everything counted: choosing, play, score, deal, legal, observe."""
    table = games.open("ofc").table(ROWS)
    speed(table)
    figure("ofc.table", max(speed(table) for _ in range(windows)), "decisions/s")


def speed(table, seconds: float = 1.0) -> float:
    from ludus.commands.bench import run_for

    decisions, took = run_for(table, seconds)
    return decisions / took


def serve_speed(pipe: Connection) -> None:
    """A process that measures its own table whenever it is asked to."""
    table = games.open("ofc").table(ROWS)
    speed(table)
    pipe.send(0.0)
    while pipe.recv():
        pipe.send(speed(table))


def table_scaling(rounds: int = 7) -> None:
    """Two processes at once against each alone, in turns; the best of each, since other load only slows."""
    context = get_context("spawn")
    pipes, processes = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=serve_speed, args=(theirs,), daemon=True))
        processes[-1].start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    alone, both = [], []
    for _ in range(rounds):
        alone.append([asked([pipe])[0] for pipe in pipes])
        both.append(sum(asked(pipes)))
    for pipe in pipes:
        pipe.send(False)
    figure("ofc.table.scaling", max(both) / np.max(alone, axis=0).mean(), "x")


def asked(pipes: list[Connection]) -> list[float]:
    for pipe in pipes:
        pipe.send(True)
    return [pipe.recv() for pipe in pipes]


# ---- a table of Python environments


def table_overhead(steps: int = 300, rounds: int = 9) -> None:
    """64 environments in a table against the same in the plainest loop that also keeps their results."""
    from ludus.games.adapters import GymTable
    from slow_env import Slow

    table, envs = GymTable(Slow, 64), [Slow() for _ in range(64)]
    table.reset(0)
    actions = generator(0).integers(0, 4, (steps, 64)).astype(np.int32)
    slower = []
    for _ in range(rounds):
        plain = plain_loop(envs, actions)
        start = time.perf_counter()
        for row in actions:
            table.step(row)
        slower.append(100 * ((time.perf_counter() - start) / plain - 1))
    figure("table.overhead", statistics.median(slower), "%")


def plain_loop(envs: list, actions: np.ndarray) -> float:
    obs, reward, ended = np.zeros((64, 8), np.float32), np.zeros(64, np.float32), np.zeros(64, bool)
    for env in envs:
        env.reset()
    start = time.perf_counter()
    for row in actions:
        for i, env in enumerate(envs):
            seen, reward[i], over, cut, _ = env.step(int(row[i]))
            ended[i] = over or cut
            if ended[i]:
                seen, _ = env.reset()
            obs[i] = seen
    return time.perf_counter() - start


# ---- Fantasyland


def fantasyland(cards: int, jokers: int, deals: int) -> None:
    from ludus.games.ofc.fantasy import solve
    from ludus.games.ofc.scoring import FANTASY_VALUE

    random, out = generator(1, cards, jokers), np.empty(17, np.uint8)
    hands = [deal(random, cards, jokers) for _ in range(deals)]
    solve(hands[0], cards, FANTASY_VALUE[cards - 14], False, out)
    start = time.perf_counter()
    for hand in hands:
        solve(hand, cards, FANTASY_VALUE[cards - 14], False, out)
    took_ms = 1e3 * (time.perf_counter() - start) / deals
    figure(f"ofc.fl{cards}{'.jokers' if jokers else ''}", took_ms, "ms")


def deal(random: np.random.Generator, cards: int, jokers: int) -> np.ndarray:
    """Random cards of the 52 with so many jokers among them. uint8 [17]"""
    hand = np.full(17, 255, np.uint8)
    hand[: cards - jokers] = np.sort(random.permutation(52)[: cards - jokers])
    hand[cards - jokers : cards] = 52 + np.arange(jokers)
    return hand


# ---- workers


def step_once(pipe: Connection) -> None:
    table = games.open("ofc").table(64)
    turn = table.reset(0)
    table.step(turn.legal.argmax(1).astype(np.int32))
    pipe.send(True)


def worker_start(rounds: int = 5) -> None:
    """From asking for a process to its first step, with compiled code on disk."""
    context, took = get_context("spawn"), []
    for _ in range(rounds + 1):
        ours, theirs = context.Pipe()
        start = time.perf_counter()
        process = context.Process(target=step_once, args=(theirs,))
        process.start()
        ours.recv()
        took.append(time.perf_counter() - start)
        process.join()
    figure("worker.start", statistics.median(took[1:]), "s")


def main() -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): figures may be low", file=sys.stderr)
    games.open("ofc").warm_up()
    table_speed()
    table_scaling()
    table_overhead()
    for cards, deals in ((14, 2000), (15, 1000), (16, 600), (17, 300)):
        fantasyland(cards, 0, deals)
    fantasyland(14, 2, 300)
    fantasyland(17, 2, 60)
    worker_start()
    grid = Grid("figure", "value", "unit", "target", box=None, pad_edge=False)
    for name, (value, unit) in measured.items():
        grid.add_row(name, short(value), unit, TARGETS.get(name, ""))
    Console().print("", grid)


if __name__ == "__main__":
    main()
