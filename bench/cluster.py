"""Training on Ray and sweeps, as `figure NAME VALUE UNIT`; six minutes. Nodes are processes here.

`python bench/cluster.py sweep` measures one part.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

import psutil

from figures import figure, measured, short
from ludus import algos, machine
from ludus.config import Config, overlay, resolve
from ludus.store.reader import RunReader
from ludus.training import cluster as joined
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import lay_out
from ludus.training.loop import Audience, train
from ludus.training.pools import Pool

TARGETS = {
    "ray.vs_process": "at least 0.85",
    "ray.recovery": "at most 10",
    "sweep.overhead": "at least 0.9",
}
STORE = 400 * 2**20
CALLS = 2000
WARM_S = 8.0
"""Seconds of a training that are left out: workers start, and the first blocks are slow."""


class Speeds(Audience):
    """The decisions of a training at every line of metrics."""

    def __init__(self, act: Callable[[dict[str, Any]], bool]) -> None:
        """act: told of each line, True ends the training"""
        self.readings: list[tuple[float, int]] = []
        self.act = act

    def report(self, metrics: dict[str, Any]) -> bool:
        self.readings.append((time.monotonic(), metrics["decisions"]))
        return self.act(metrics)

    def speed(self) -> float:
        """Decisions/s after the beginning."""
        kept = self._kept()
        (begun, before), (ended, after) = kept[0], kept[-1]
        return (after - before) / (ended - begun)

    def enough(self, seconds: float) -> bool:
        return self.took() > WARM_S + seconds and len(self._kept()) > 4

    def _kept(self) -> list[tuple[float, int]]:
        return [reading for reading in self.readings if reading[0] >= self.readings[0][0] + WARM_S]

    def took(self) -> float:
        """Seconds since the first line."""
        return time.monotonic() - self.readings[0][0]


@contextmanager
def nodes(cores: list[int]) -> Iterator[Any]:
    """A cluster with a node for each number, as processes here."""
    from ray.cluster_utils import Cluster

    before = set(psutil.Process().children(recursive=True))
    found = Cluster()
    try:
        for count in cores:
            head = {"include_dashboard": False} if found.head_node is None else {}
            found.add_node(num_cpus=count, object_store_memory=STORE, node_ip_address="127.0.0.1", **head)
        yield found
    finally:
        family = set(psutil.Process().children(recursive=True)) - before
        found.shutdown()
        for process in family:
            if process.is_running():
                process.kill()


def ofc(folder: Path, **changes: Any) -> Config:
    fixed = {"run": str(folder), "decisions": 10**9, "eval_every": "0", "log_s": 0.5}
    return overlay(resolve("ofc"), {**fixed, **changes}, "bench")


# ---- speed


def beside_processes(folder: Path, seconds: float = 15.0, rounds: int = 2) -> None:
    """The same training with as many workers, in turns, because other load comes and goes."""
    workers = str(machine.usable_cores())
    ratios = []
    for number in range(rounds):
        speeds = {}
        for pool in ("ray", "auto"):
            told = Speeds(lambda metrics: told.enough(seconds))  # noqa: B023
            train(ofc(folder / f"{pool}{number}", pool=pool, workers=workers), told)
            speeds[pool] = told.speed()
        ratios.append(speeds["ray"] / speeds["auto"])
        print(f"ray {speeds['ray']:,.0f} decisions/s, processes {speeds['auto']:,.0f}", flush=True)
    figure("ray.vs_process", statistics.mean(ratios), "of the process pool's speed")


def blocks(folder: Path, seconds: float = 8.0) -> None:
    """Blocks from another node into the learner, which learns nothing: it reads each of them once."""
    with nodes([1, 2]) as cluster:
        config = ofc(folder, pool="ray", ray_address=cluster.address, workers="2", rows=512, steps=64)
        pool = pool_of(config)
        pool.release(pool.receive())
        me = psutil.Process()
        start, before, read = time.perf_counter(), me.cpu_times(), 0
        while time.perf_counter() - start < seconds:
            taken = pool.receive()
            for delivery in taken:
                for column in delivery.block.columns:
                    delivery.block[column.name].view("uint8").sum(dtype="uint64")
                    read += delivery.block[column.name].nbytes
            pool.release(taken)
        took, after = time.perf_counter() - start, me.cpu_times()
        cpu = after.user + after.system - before.user - before.system
        pool.close()
    figure("ray.blocks", read / took, "bytes/s, as fast as two workers play")
    figure("ray.blocks.cpu", cpu / (read / 1e9), "CPU s/GB of the learner, reading each byte once")
    carried(folder)


def carried(folder: Path, size: int = 8 * 2**20, count: int = 100) -> None:
    """The object store alone: blocks that are there already, from one node to another."""
    import numpy as np

    with nodes([1, 2]) as cluster:
        joined.connect(cluster.address)
        import ray

        @ray.remote(num_cpus=2)
        class Source:
            def block(self, size: int) -> np.ndarray:
                return np.zeros(size, np.uint8)

        source, me = Source.remote(), psutil.Process()

        def take(size: int, count: int) -> float:
            """Seconds for blocks of a size, five on their way."""
            start = time.perf_counter()
            waiting = [source.block.remote(size) for _ in range(4)]
            for _ in range(count):
                waiting.append(source.block.remote(size))
                assert ray.get(waiting.pop(0)).nbytes == size
            return time.perf_counter() - start

        take(size, 1)
        before = me.cpu_times()
        took = take(size, count)
        after = me.cpu_times()
        figure("ray.calls", CALLS / take(1024, CALLS), "blocks/s that the learner asks for and takes")
        joined.leave()
    gigabytes = count * size / 1e9
    cpu = after.user + after.system - before.user - before.system
    figure("ray.store", gigabytes * 1e9 / took, "bytes/s through the object store into the learner")
    figure("ray.store.cpu", cpu / gigabytes, "CPU s/GB of the learner's process")


def pool_of(config: Config) -> Pool:
    game = open_game(config)
    net = algos.find(config.algo).make_learner(config, game, "cpu").net
    return make_pool(config, game, net, lay_out(config, game), flat_weights(net))


# ---- a node dies


def recovery(folder: Path) -> None:
    """From a killed node to nine tenths of the speed that the nodes left had before."""
    killed = 0.0
    with nodes([1, 1, 1]) as cluster:

        def act(metrics: dict[str, Any]) -> bool:
            nonlocal killed
            now = time.monotonic()
            if not killed and metrics["workers/count"] == 3 and told.took() > 2 * WARM_S:
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
                killed = time.monotonic()
            return bool(killed) and now - killed > 15

        told = Speeds(act)
        train(ofc(folder, pool="ray", ray_address=cluster.address, seconds=120.0, log_s=0.0), told)
    before = [reading for reading in told.readings if reading[0] <= killed]
    before = (
        [reading for reading in before if reading[0] > killed - WARM_S] if len(before) > 20 else before[-5:]
    )
    usual = (before[-1][1] - before[0][1]) / (before[-1][0] - before[0][0])
    # Of three nodes' speed the two that are left owe two thirds.
    wanted = 0.9 * usual * 2 / 3
    for (begun, made), (ended, later) in windows([r for r in told.readings if r[0] > killed], 1.0):
        if (later - made) / (ended - begun) >= wanted:
            return figure("ray.recovery", max(0.0, begun - killed), "s")
    figure("ray.recovery", float("inf"), "s")


def windows(readings: list[tuple[float, int]], seconds: float) -> Iterator[tuple[Any, Any]]:
    """Each reading, and the first one that is so much later."""
    for number, reading in enumerate(readings):
        later = next((other for other in readings[number:] if other[0] - reading[0] >= seconds), None)
        if later:
            yield reading, later


# ---- sweeps


def sweep_overhead(folder: Path, trials: int = 4, seconds: float = 25.0) -> None:
    """The time that trials trained, with their evaluations, of all the time that the command took."""
    open_game(ofc(folder))  # compiles, if nobody has yet: that happens once for a version
    command = [sys.executable, "-m", "ludus.cli", "sweep", "ofc", "--preset", "quick", "--run", str(folder)]
    command += ["--decisions", "1000000000", "--seconds", str(seconds), "--trials", str(trials)]
    start = time.perf_counter()
    subprocess.run([*command, "--space", "ppo.learning_rate=log:1e-4:1e-2"], check=True)
    took = time.perf_counter() - start
    runs = [RunReader(run) for run in sorted(folder.glob("trial-*"))]
    trained = [(run.last or {})["seconds"] for run in runs]
    starts = [next(iter(run.events()))["time"] for run in runs]
    print(f"{took:.1f} s: trials trained {', '.join(f'{one:.1f}' for one in trained)} s", flush=True)
    between = [later - begun - one for begun, later, one in zip(starts, starts[1:], trained, strict=False)]
    figure("sweep.between", statistics.mean(between), "s from the end of a trial to the start of the next")
    figure("sweep.overhead", sum(trained) / took, "of the time is training")


PARTS = {"speed": beside_processes, "blocks": blocks, "recovery": recovery, "sweep": sweep_overhead}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", choices=PARTS, help="one part; default: all of them")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as place:
        for name in [only] if only else PARTS:
            PARTS[name](Path(place) / name)
    for name, target in TARGETS.items():
        if name in measured:
            print(f"{name}: {short(measured[name][0])}, {target}")


if __name__ == "__main__":
    main()
