"""Files of JSON lines: one reader and one writer for everybody. A damaged line costs only itself.

A last line without its end is not damage: it may be in the middle of being written.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

METRICS, EVENTS = "metrics.jsonl", "events.jsonl"
NEEDED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    METRICS: (("decisions", "seconds"), ()),
    EVENTS: ((), ("event",)),
}
"""Which keys a line of a file must have to be of use: numbers, and texts."""
BLOCK_BYTES = 1 << 16
LARGEST = sys.float_info.max
"""A whole number can be larger, and then nobody can draw it."""
Warn = Callable[[str], None]


def read_lines(file: Path, warn: Warn = lambda text: None) -> list[dict[str, Any]]:
    """All objects of a file. warn: is told how many lines are damaged, if any"""
    return list(stream_lines(file, warn))


def stream_lines(file: Path, warn: Warn = lambda text: None) -> Iterator[dict[str, Any]]:
    """As `read_lines`, one by one; damage is told at the end."""
    damaged = 0
    if file.exists():
        with file.open("rb") as texts:
            for text in texts:
                if (line := parsed(text, file.name)) is not None:
                    yield line
                else:
                    damaged += text.endswith(b"\n") and text != b"\n"
    if damaged:
        warn(damage(file, damaged))


def last_line(file: Path, warn: Warn = lambda text: None) -> dict[str, Any] | None:
    """The last object of a file, whose beginning is not read."""
    damaged = 0
    for line in lines_back(file):
        if line.values is not None:
            break
        damaged += line.damaged
    else:
        line = Line(0, None, False)
    if damaged:
        warn(damage(file, damaged))
    return line.values


def damage(file: Path, count: int) -> str:
    return f"{file}: {count} damaged {'lines' if count > 1 else 'line'} skipped"


def parsed(text: bytes, name: str) -> dict[str, Any] | None:
    """A line of the file `name`; None if it is not of use."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    numbers, texts = NEEDED.get(name, ((), ()))
    if not isinstance(line, dict):
        return None
    fits = all(is_number(line.get(key)) for key in numbers)
    return line if fits and all(isinstance(line.get(key), str) for key in texts) else None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


class Line(NamedTuple):
    end: int
    """Where it ends in the file."""
    values: dict[str, Any] | None
    damaged: bool


def lines_back(file: Path) -> Iterator[Line]:
    """The lines of a file from the last to the first; only as much is read as is asked for."""
    if not file.exists():
        return
    with file.open("rb") as data:
        start, rest = data.seek(0, os.SEEK_END), b""
        size = start
        while start:
            step = min(max(BLOCK_BYTES, len(rest)), start)  # a long line is not read again and again
            start -= step
            data.seek(start)
            *first, rest = _split_back(data.read(step) + rest, whole=start == 0)
            for at, text in first:
                end = start + at + len(text)
                values = parsed(text, file.name) if text.strip() else None
                torn = end == size and not text.endswith(b"\n")
                yield Line(end, values, values is None and bool(text.strip()) and not torn)


def _split_back(data: bytes, whole: bool) -> list[Any]:
    """Lines with their places, the last one first, and what is left; whole: nothing comes before it."""
    found: list[Any] = []
    end = len(data)
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if start == 0 and not whole:
            break
        found.append((start, data[start:end]))
        end = start
    return [*found, data[:end]]


def drop_tail(file: Path, keep: Callable[[dict[str, Any]], bool]) -> int:
    """Cut the file after the last line that is kept; how many damaged lines went with the rest."""
    damaged, end = 0, 0
    for line in lines_back(file):
        if line.values is not None and keep(line.values):
            end = line.end
            break
        damaged += line.damaged
    if file.exists() and end < file.stat().st_size:
        os.truncate(file, end)
    return damaged


class LineWriter:
    """Appends whole lines, each with one write, so that threads and processes never mix theirs."""

    def __init__(self, file: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._handle = os.open(file, flags, 0o644)
        self._torn = self._is_torn()

    def write(self, values: dict[str, Any]) -> None:
        """May raise OSError; then the line is lost, and the next one begins on a line of its own."""
        data = b"\n" * self._torn + json.dumps(values).encode() + b"\n"
        self._torn = True
        self._torn = os.write(self._handle, data) < len(data)

    def close(self) -> None:
        os.close(self._handle)

    def _is_torn(self) -> bool:
        """Whether the last line has no end: it was broken off."""
        size = os.lseek(self._handle, 0, os.SEEK_END)
        if size <= 0:
            return False
        os.lseek(self._handle, size - 1, os.SEEK_SET)
        return os.read(self._handle, 1) != b"\n"
