"""Workers: a few processes in which games are played and searched, so that the server never has to wait.

Their code is imported in them alone: the server needs neither compiled rules nor networks.
"""

import asyncio
import importlib
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ludus import processes
from ludus.core.errors import Failure

ENGINE = "ludus.ui.web.engine"
COUNT = 2
WAITING = 50
"""Jobs that may wait or run at the same time."""


class Workers:
    def __init__(self, count: int = COUNT, waiting: int = WAITING, engine: str = ENGINE) -> None:
        """engine: the module whose functions they call"""
        self.count, self.waiting, self.engine, self.jobs = count, waiting, engine, 0
        self._pool: ProcessPoolExecutor | None = None
        self._closed = False

    async def ask(self, what: str, *args: Any) -> Any:
        """What a function of the engine gives. what: its name"""
        if self._closed:
            raise Failure("the page is being closed")
        if self.jobs >= self.waiting:
            raise Failure("too many people are playing now: reload the page in a moment")
        self.jobs += 1
        try:
            return await asyncio.wrap_future(self._running().submit(call, self.engine, what, args))
        except BrokenProcessPool:
            self._pool = None  # the next job starts another one
            raise Failure("the process that played was lost: reload the page to go on") from None
        except Failure:
            raise
        except Exception as error:  # a mistake of ours, or of a game's own code: whoever plays is told
            raise Failure(f"unexpected {type(error).__name__}: {error}") from error
        finally:
            self.jobs -= 1

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = processes.make_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=make_room)
        return self._pool

    def close(self) -> None:
        """At once and for good, whatever they are thinking about: games go on from where they were."""
        self._closed = True
        if self._pool is not None:
            for child in list((self._pool._processes or {}).values()):  # those of others go on
                processes.end(child)
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def make_room() -> None:
    """Of a new worker, for whatever else the machine does: trainings come first."""
    if hasattr(os, "nice"):
        os.nice(5)


def call(engine: str, what: str, args: tuple[Any, ...]) -> Any:
    return getattr(importlib.import_module(engine), what)(*args)
