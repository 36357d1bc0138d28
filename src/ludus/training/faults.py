"""What goes wrong where games are played: how it is told, how often it is borne, how long we wait."""

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ludus.core.errors import Failure, Usage

TRIES, KILLED_TRIES = 5, 25
"""Failures in a row, without a finished block in between, that a worker may have; more if it was killed from
outside, which is not its game's fault."""
REPLACED_SEED = 1_000_003
"""A replacement must not replay what its predecessor played: its seed is so much further."""
START_ROW_S = 5.0
"""More patience for every game of a table before its first step, which makes and starts them."""
SLOWER = 10
"""How many times slower than the slowest step so far a step may be."""
TRACEBACK_CHARS = 8000
"""Of the end of a traceback: a message that fits a pipe's buffer never blocks who writes or reads it."""


class Fault(NamedTuple):
    """An exception, as it is told to another process."""

    line: str
    traceback: str
    final: bool
    """Trying again can't help: it was asked for something impossible."""

    @classmethod
    def of(cls, error: BaseException) -> "Fault":
        words = "".join(traceback.format_exception(error))[-TRACEBACK_CHARS:]
        return cls(one_line(error), words, isinstance(error, Usage))


def one_line(error: BaseException) -> str:
    """What happened, and the file and line where it did."""
    lines = str(error).strip().splitlines()
    said = lines[0] if lines else ""
    if not isinstance(error, Failure):
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    elif error.__cause__ is None:
        return said  # found by a check of ours: our own line would tell nothing
    while error.__cause__ is not None:
        error = error.__cause__
    places = traceback.extract_tb(error.__traceback__)
    return f"{said} ({places[-1].filename}:{places[-1].lineno})" if places else said


def patience_s(least_s: float, rows: int, slowest_s: float | None) -> float:
    """How long to wait for a sign of life: longer before the first step, then by the slowest step so far."""
    return least_s + START_ROW_S * rows if slowest_s is None else max(least_s, SLOWER * slowest_s)


def in_time(calls: Sequence[Callable[[], Any]], seconds: float) -> list[Any]:
    """What the calls give, made side by side, or their exceptions; TimeoutError for one that takes longer.

    The thread of such a call goes on until its pipe ends.
    """
    found: list[Any] = [TimeoutError() for _ in calls]

    def run(place: int) -> None:
        try:
            found[place] = calls[place]()
        except BaseException as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return found.copy()
