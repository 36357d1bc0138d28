"""ProcessPlace: trains trials in a process of this machine."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ludus import machine, processes
from ludus.config import Config
from ludus.core.errors import Stopped
from ludus.store.log import take_output
from ludus.sweep.places import LEAVE_S, Ended, Message, Place
from ludus.sweep.trial import run_trial
from ludus.training import preload
from ludus.training.faults import Fault

STOP = "stop"


def local(count: int, log: Path, modules: Sequence[str]) -> list[Place]:
    """So many processes, each with its share of the cores. modules: see `build.announce`"""
    cores = max(1, machine.usable_cores() // count)
    # The fork server may have started before they were known.
    variables = {machine.CORES: str(cores), preload.GAME: os.environ[preload.GAME]}
    return [ProcessPlace(number, variables, log, modules) for number in range(count)]


class ProcessPlace:
    def __init__(self, number: int, variables: dict[str, str], log: Path, modules: Sequence[str]) -> None:
        self._context: Any = processes.make_context()
        self._args = (number, variables, str(log), list(modules))
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


def serve(pipe: Connection, number: int, variables: dict[str, str], log: str, modules: list[str]) -> None:
    """A process: train what is asked for, one after the other."""
    os.environ.update(variables)
    take_output(Path(log), f"place-{number}")
    processes.start_fork_server(modules)  # of the trials' workers, which imports while we begin the first
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
