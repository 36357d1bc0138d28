"""RayPlace: trains trials on a node of a Ray cluster, and brings their runs here."""

import contextlib
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ludus import machine, processes
from ludus.config import Config
from ludus.core.errors import Usage
from ludus.sweep.places import LEAVE_S, Ended, Message, Place
from ludus.sweep.trial import run_trial
from ludus.training import cluster
from ludus.training.faults import Fault

ASK_S = 0.3
"""How often a trial is asked how it does."""
TOKEN = ".sweep"
"""A file in the sweep's folder: who finds its content there has the same folder."""


def on_ray(count: int, folder: Path) -> list[Place]:
    """count: 0 for one on each node. Call `cluster.connect` before"""
    nodes = [node for node in cluster.nodes().values() if node.cores > 0]
    if not nodes:
        raise Usage("the Ray cluster has no cores for trials: add nodes, or give them more --num-cpus")
    count = count or len(nodes)
    total, smallest = sum(node.cores for node in nodes), min(node.cores for node in nodes)
    cores = max(1, min(total // count, smallest))
    if count * cores > total:
        raise Usage(f"--parallel {count} is more than the {total} cores of the Ray cluster")
    return [RayPlace(cores, folder) for _ in range(count)]


class RayPlace:
    """An actor on a node. Where the sweep's folder is not shared, its run is brought here at the end."""

    def __init__(self, cores: int, folder: Path) -> None:
        import ray

        self._ray: Any = ray
        self._folder = folder
        how: dict[str, Any] = {
            "num_cpus": cores, "concurrency_groups": {"talk": 1}, "scheduling_strategy": "SPREAD",
            "runtime_env": {"env_vars": {**processes.ONE_THREAD, machine.CORES: str(cores)}},
        }  # fmt: skip
        self._remote: Any = ray.remote(**how)(RayTrials)
        self._start()

    def _start(self) -> None:
        self._actor = self._remote.remote()
        self._hello: Any = self._actor.hello.remote()
        self._asked: Any = None
        self._asked_at = 0.0

    def begin(self, config: Config) -> None:
        self._config: Config = config
        token = self._folder.joinpath(TOKEN).read_text()
        self._actor.run.remote(config, str(self._folder), token)

    def messages(self) -> Iterator[Message]:
        try:
            yield from self._heard()
        except self._ray.exceptions.RayError as error:
            self._start()
            yield Ended(lost=f"its node failed: {' '.join(str(error).split())[:200]}")

    def _heard(self) -> Iterator[Message]:
        if self._hello is not None and self._ray.wait([self._hello], timeout=0)[0]:
            node, versions = self._ray.get(self._hello)
            self._hello = None
            if why := cluster.mismatch(node, versions):
                raise Usage(why)
        if self._asked is None and time.monotonic() - self._asked_at > ASK_S:
            self._asked = self._actor.told.options(concurrency_group="talk").remote()
        if self._asked is not None and self._ray.wait([self._asked], timeout=0)[0]:
            told, self._asked, self._asked_at = self._ray.get(self._asked), None, time.monotonic()
            for message in told:
                if isinstance(message, Ended):
                    self._bring()
                yield message

    def prune(self) -> None:
        self._actor.stop.options(concurrency_group="talk").remote()

    def close(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            if self._hello is None:
                self._ray.get(self._actor.stop.options(concurrency_group="talk").remote(), timeout=LEAVE_S)
                self._ray.wait([self._actor.hello.remote()], timeout=LEAVE_S)  # after the training
        self._ray.kill(self._actor)

    def _bring(self) -> None:
        """The files of a run that was trained where the sweep's folder is not."""
        for name, data in self._ray.get(self._actor.files.remote()).items():
            file = Path(self._config.run, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


class RayTrials:
    """Runs on a node: trains one trial at a time."""

    def __init__(self) -> None:
        self._told: list[Message] = []
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._elsewhere: Path | None = None

    def hello(self) -> tuple[str, dict[str, str]]:
        return platform.node(), cluster.versions()

    def run(self, config: Config, folder: str, token: str) -> None:
        self._stop.clear()
        ended = Ended()
        try:
            run_trial(self._placed(config, Path(folder), token), self._tell, self._stop.is_set)
        except Exception as error:
            ended = Ended(Fault.of(error))
        self._tell(ended)

    def told(self) -> list[Message]:
        with self._lock:
            told, self._told = self._told, []
        return told

    def stop(self) -> None:
        self._stop.set()

    def files(self) -> dict[str, np.ndarray]:
        """Those of the last run, if it is not where the sweep is: bytes by name, uint8 [size]."""
        place, self._elsewhere = self._elsewhere, None
        if place is None:
            return {}
        files = [file for file in place.rglob("*") if file.is_file()]
        found = {str(file.relative_to(place)): np.fromfile(file, np.uint8) for file in files}
        shutil.rmtree(place.parent, ignore_errors=True)
        return found

    def _placed(self, config: Config, folder: Path, token: str) -> Config:
        mark = folder / TOKEN
        if mark.is_file() and mark.read_text() == token:
            return config
        self._elsewhere = Path(tempfile.mkdtemp(prefix="ludus-trial-")) / "run"
        return replace(config, run=str(self._elsewhere))

    def _tell(self, message: Message) -> None:
        with self._lock:
            self._told.append(message)
