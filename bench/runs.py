"""What it costs that runs can be trusted, as `figure NAME VALUE UNIT`. `runs.py SECONDS` shortens the soak.

Costs of one or two percent drown in the noise of comparing speeds, so they are measured where they arise:
the time that the loop spends on them, and the processor time of the thread that writes beside it.
"""

import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from figures import figure
from ludus import algos
from ludus.config import overlay, resolve
from ludus.store.run import EVENTS, METRICS, read_lines
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import lay_out
from ludus.training.loop import Audience, train
from ludus.training.pools.process import ProcessPool
from ludus.training.profile import Profile

SOAK_S, KILLS = 600.0, 200


def costs(folder: Path, seconds: float = 60.0) -> None:
    changes = {"run": str(folder), "seconds": seconds, "decisions": 10**9, "checkpoints": {"every_s": 10.0}}
    train(overlay(resolve("ofc"), changes, "bench"), Audience())
    last = read_lines(folder / METRICS)[-1]
    beside = sum(event["cpu_s"] for event in read_lines(folder / EVENTS) if event["event"] == "checkpoint")
    figure("runs.checkpoint_cost", 100 * (last["time/saving"] + beside) / last["seconds"], "%")
    figure("runs.logging_cost", 100 * last["time/reporting"] / last["seconds"], "%")


def profile_cost(folder: Path, seconds: float = 30.0) -> None:
    """The time that a profiled training spends on noting where its time went."""
    spent, add = 0.0, Profile.add

    def timed_add(self: Profile, *args: Any) -> None:
        nonlocal spent
        start = time.perf_counter()
        add(self, *args)
        spent += time.perf_counter() - start

    Profile.add = timed_add  # type: ignore[method-assign]
    changes = {"run": str(folder), "seconds": seconds, "decisions": 10**9, "profile": True}
    train(overlay(resolve("ofc"), changes, "bench"), Audience())
    Profile.add = add  # type: ignore[method-assign]
    figure("runs.profile_cost", 100 * spent / seconds, "%")


def recovery(rounds: int = 5) -> None:
    """From the death of a worker to the first decision of its successor."""
    config = overlay(resolve("ofc"), {"workers": "2"}, "bench")
    game = open_game(config)
    net = algos.find(config.algo).make_learner(config, game, "cpu").net
    pool = make_pool(config, game, net, lay_out(config, game), flat_weights(net))
    assert isinstance(pool, ProcessPool)
    took = []
    for _ in range(rounds):
        pool.release(pool.receive())
        replaced, beats = pool.replaced, pool._beats.array(np.int64, (-1,))
        psutil.Process(pool.health().pids[0]).kill()
        start = time.perf_counter()
        while pool.replaced == replaced:
            pool._listen()
        while not pool._handles[0].ready:
            pool._listen()
        while not beats[0]:
            time.sleep(0.005)
        took.append(time.perf_counter() - start)
    pool.close()
    figure("runs.recovery", max(took), "s")


def soak(folder: Path, seconds: float) -> None:
    """Kill workers at random moments all the time, and see that every decision is counted once."""
    rng, kills, readings, memory, over = random.Random(0), 0, [], [], threading.Event()
    learner = psutil.Process()

    def kill_sometimes() -> None:
        nonlocal kills
        while kills < KILLS and not over.wait(rng.expovariate(1.2 * KILLS / seconds)):
            workers = [w for child in learner.children() for w in child.children()]
            if readings and workers:
                rng.choice(workers).kill()
                kills += 1

    class Reader(Audience):
        def report(self, metrics: dict[str, Any]) -> None:
            """Of what lives on: the learner, and the process that workers are forked from."""
            readings.append(metrics)
            memory.append(sum(one.memory_info().rss for one in (learner, *learner.children())))

    killer = threading.Thread(target=kill_sometimes)
    killer.start()
    changes = {"run": str(folder), "seconds": seconds, "decisions": 10**9, "log_s": 1.0, "workers": "2"}
    config = overlay(resolve("ofc"), changes, "bench")
    try:
        train(config, Reader())
    finally:
        over.set()
        killer.join()
    block = config.rows * config.steps
    learned = {reading["decisions"] % block for reading in readings}
    if learned != {0}:
        sys.exit(f"decisions were lost or counted twice: {learned}")
    tenth = max(1, len(memory) // 10)
    growth = np.median(memory[-tenth:]) / np.median(memory[tenth : 2 * tenth]) - 1
    figure("runs.kills", kills, "workers")
    figure("runs.kills.replaced", readings[-1]["workers/replaced"], "workers")
    figure("runs.kills.speed", readings[-1]["speed/overall"], "decisions/s")
    figure("runs.kills.longest_wait", max(np.diff([reading["seconds"] for reading in readings])), "s")
    figure("runs.kills.memory", 100 * growth, "% growth")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SOAK_S
    with tempfile.TemporaryDirectory() as folder:
        costs(Path(folder) / "costs")
        profile_cost(Path(folder) / "profile")
        recovery()
        soak(Path(folder) / "soak", seconds)


if __name__ == "__main__":
    main()
