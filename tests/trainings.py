"""What tests of trainings share: whole trainings, here or in processes of their own, and traces."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ludus import machine, processes
from ludus.config import overlay, resolve
from ludus.training.build import announce, open_game
from ludus.training.loop import Audience, train

EXAMPLES = Path(__file__).parent.parent / "examples"
README = Path(__file__).parent.parent / "README.md"
MEASURED = (
    "seconds",
    "speed/",
    "time/",
    "workers/inference",
    "workers/search",
    "workers/stepping",
    "workers/teaching",
    "workers/writing",
    "workers/waiting",
    "cpu/",
    "memory/",
    "machine/",
)
"""Metrics that the clock and the machine have a say in."""


def reproducible(readings: list[dict]) -> list[dict]:
    return [
        {name: value for name, value in metrics.items() if not name.startswith(MEASURED)}
        for metrics in readings
    ]


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Workers are started by the fork server, which the training starts."""
    return [worker for child in process.children() for worker in child.children()]


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all have ended, be it that nobody has asked yet how."""
    try:
        return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)
    except psutil.NoSuchProcess:
        return gone(processes)


def wait_until(what, seconds: float, pause_s: float = 0.02) -> bool:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(pause_s)
    return True


def limit(seconds: float) -> float:
    """What takes so long on an idle machine may take longer on one that others use too.

    The load says by how much it does where all are equal, and a short computation where others come first.
    """
    begun, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.05:
        pass
    slower = (time.monotonic() - begun) / 0.05
    return seconds * max(1.0, slower, psutil.getloadavg()[0] / machine.cores())


def shared_memory(processes: list[psutil.Process]) -> set[Path]:
    """What these have in use. A file that was removed at once still has its path."""
    maps = {Path(mapped.path) for process in processes for mapped in process.memory_maps()}
    return {path for path in maps if path.is_relative_to("/dev/shm")}


def ludus_command(*words: str, cwd: Path) -> dict:
    """A command as arguments of subprocess: what a user types in a folder."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    return {"args": [sys.executable, "-m", "ludus.cli", *words], "cwd": cwd, "env": env, "text": True}


class Listeners(Audience):
    def __init__(self, report=lambda metrics: None, status=lambda text: None) -> None:
        self.report, self.status = report, status


@pytest.fixture(scope="session")
def fork_server():
    """Trainings share the first one's, in which AlphaZero's workers would find little of what they import."""
    told = overlay(resolve("connect4", "test", algo="alphazero"), {"opponents": "self,greedy"}, "test")
    processes.start_fork_server(announce(told, open_game(told)))


@pytest.fixture
def trained(tmp_path, fork_server):
    """Train with the `test` preset and some changes: (folder, every reading of the metrics)."""
    count = 0

    def run(game: str, screen=None, status=lambda text: None, **changes):
        nonlocal count
        count += 1
        readings: list[dict] = []

        def show(metrics: dict) -> None:
            readings.append(metrics)
            if screen:
                screen(metrics)

        changes = {"run": str(tmp_path / f"run{count}"), "log_s": 0.0, **changes}
        config = overlay(resolve(game, "test", algo=changes.get("algo")), changes, "test")
        return train(config, Listeners(show, status)), readings

    return run


@pytest.fixture
def one_core(monkeypatch):
    """Tests run side by side: threads that wait for each other take five times as long, and processes of a
    match take two seconds to start."""
    monkeypatch.setenv(machine.CORES, "1")


@pytest.fixture
def two_cores(monkeypatch):
    """If there are as many: two workers, unless a test says how many, and two threads in the learner."""
    monkeypatch.setenv(machine.CORES, "2")


@pytest.fixture
def importable(monkeypatch):
    """Make this folder's and the examples' modules importable, here and in workers."""
    for folder in (EXAMPLES, Path(__file__).parent):
        monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def training(request, tmp_path):
    """`ludus train` as a process of its own with two workers, in the middle of its work."""
    flags = ["--preset", "test", "--decisions", "1000000000", "--workers", "2", "--log-s", "0.1"]
    flags += ["--start-method", getattr(request, "param", "forkserver")]
    process = subprocess.Popen(
        **ludus_command("train", "tictactoe", *flags, "--run", str(tmp_path / "run"), cwd=tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    lines = iter(process.stdout.readline, "")
    assert any("decisions" in line for line in lines), process.stderr.read()
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2
    yield process, family
    for member in family:
        if member.is_running():
            member.kill()
    if process.poll() is None:
        process.kill()
    process.communicate()
