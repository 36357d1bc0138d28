"""Where trials are trained, one at a time each: processes of this machine, or nodes of a Ray cluster."""

import contextlib
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ludus import machine, processes
from ludus.config import Config
from ludus.core.errors import Stopped, Usage
from ludus.store.log import take_output
from ludus.sweep.trial import Reading, run_trial
from ludus.training import cluster
from ludus.training.faults import Fault

STOP = "stop"
LEAVE_S = 15.0
"""How long a trial may take to save itself."""
ASK_S = 0.3
"""How often a trial on another machine is asked how it does."""


class Ended(NamedTuple):
    """A trial is over."""

    fault: Fault | None = None
    lost: str = ""
    """Why its process or node is gone; the run goes on elsewhere."""


Message = Reading | Ended


class Place(Protocol):
    def begin(self, config: Config) -> None: ...

    def messages(self) -> Iterator[Message]:
        """What the trial has told since the last call."""
        ...

    def prune(self) -> None:
        """The trial ends at its next line of metrics."""
        ...

    def close(self) -> None:
        """A trial that is being trained saves itself first."""
        ...


def local(count: int, log: Path) -> list[Place]:
    """So many processes, each with its share of the cores."""
    context = processes.make_context("auto", ["ludus.sweep.places"])
    cores = max(1, machine.usable_cores() // count)
    return [ProcessPlace(context, number, cores, log) for number in range(count)]


class ProcessPlace:
    def __init__(self, context: Any, number: int, cores: int, log: Path) -> None:
        self._context, self._args = context, (number, cores, str(log))
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs, *self._args))
        self._process.start()
        theirs.close()

    def begin(self, config: Config) -> None:
        self._pipe.send(config)

    def messages(self) -> Iterator[Message]:
        try:
            while self._pipe.poll():
                yield self._pipe.recv()
        except (EOFError, OSError):
            processes.end(self._process)
            self._pipe.close()
            code = self._process.exitcode
            self._start()
            yield Ended(lost=f"its process died (exit code {code})")

    def prune(self) -> None:
        with contextlib.suppress(OSError):  # it has just died
            self._pipe.send(STOP)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        if self._process.is_alive():
            self._process.terminate()  # a training saves itself then
        processes.end(self._process, LEAVE_S)
        self._pipe.close()


def serve(pipe: Connection, number: int, cores: int, log: str) -> None:
    """A process: train what is asked for, one after the other."""
    os.environ[machine.CORES] = str(cores)
    take_output(Path(log), f"place-{number}")
    while (config := pipe.recv()) is not None:
        ended = Ended()
        try:
            run_trial(config, pipe.send, pipe.poll)
        except Stopped:
            return  # the sweep ends, and this trial goes on when the sweep does
        except Exception as error:
            ended = Ended(Fault.of(error))
        if pipe.poll() and pipe.recv() is None:
            return
        pipe.send(ended)


# ---- on Ray


def on_ray(config: Config, count: int, folder: Path) -> list[Place]:
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


TOKEN = ".sweep"
"""A file in the sweep's folder: who finds its content there has the same folder."""


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
