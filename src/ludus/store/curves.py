"""Curves of a run's metrics: the whole file in a few megabytes, with every peak, and it grows with the file.

A long file is read in parts by several threads. A part that somebody looks at closely is read again.
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ludus.core.jit import njit
from ludus.store.buckets import COUNT, HIGH, HIGH_AT, LOW, LOW_AT, MOST_BUCKETS, SUM, Buckets, grouped
from ludus.store.columns import Keys, read
from ludus.store.scan import NEWLINE, PADDING

CHUNK_BYTES = 1 << 21
"""Small enough for a cache: what is read is parsed while it is there."""
PART_BYTES, THREADS = 1 << 25, 2
"""What a thread reads before it takes the next part, so that none waits long for another."""
LOOK_BYTES = 1 << 16
"""How much is read at a time to find the next line."""
TAIL_BYTES = 64
"""The end of what was read: if it is another now, the file was written anew."""


@dataclass(frozen=True)
class View:
    """A part of the curves, in at most so many points as were asked for."""

    series: dict[str, tuple[np.ndarray, np.ndarray]]
    """Metric -> decisions [points] and values [points]; lowest and highest of each bucket in their order."""
    means: dict[str, np.ndarray]
    """Metric -> [buckets]; NaN where there is none."""
    decisions: np.ndarray
    """[buckets]: where each begins."""
    seconds: np.ndarray
    """[buckets]: the run's clock there."""


class Curves:
    """Of one file of metrics; `refresh` reads what is new in it."""

    def __init__(self, file: Path, start: int = 0, most_buckets: int = MOST_BUCKETS) -> None:
        """start: where in the file to begin"""
        self.file, self._start, self._most = file, start, most_buckets
        self.generation = 0
        """How often the file was read from its beginning."""
        self.begin()

    def begin(self) -> None:
        """As if nothing had been read."""
        self.keys, self.buckets, self.damaged, self.offset = Keys(), Buckets(self._most), 0, self._start
        self.generation += 1
        self._tail = b""

    @property
    def lines(self) -> int:
        return self.buckets.lines

    @property
    def last(self) -> dict[str, float]:
        """The newest value of every metric that has one."""
        found = zip(self.keys.names, self.buckets.newest.tolist(), strict=False)
        return {name: value for name, value in found if not math.isnan(value)}

    # ---- reading

    def refresh(self, end: int | None = None) -> int:
        """Read what was added; how many lines. end: of the file, if not all of it is wanted"""
        try:
            handle = self.file.open("rb", buffering=0)
        except FileNotFoundError:
            return 0
        with handle:
            if self._was_rewritten(handle.fileno()):
                self.begin()
            before, self.damaged = self.lines, 0
            size = os.fstat(handle.fileno()).st_size if end is None else end
            self._read(handle.fileno(), min(size, self.offset + CHUNK_BYTES))  # alone: it finds the keys
            if size - self.offset > PART_BYTES:
                self._read_parts(handle.fileno(), size)
            self._read(handle.fileno(), size)
            self._remember(handle.fileno())
        return self.lines - before

    def _was_rewritten(self, handle: int) -> bool:
        """As when a run goes on from an earlier checkpoint, or gives way to a new one."""
        tail = os.pread(handle, len(self._tail), self.offset - len(self._tail))
        return tail != self._tail

    def _remember(self, handle: int) -> None:
        length = min(TAIL_BYTES, self.offset - self._start)
        self._tail = os.pread(handle, length, self.offset - length)

    def _read(self, handle: int, end: int) -> None:
        self.offset, damaged = _read_lines(handle, self.offset, end, self.keys, self.buckets)
        self.damaged += damaged

    def _read_parts(self, handle: int, size: int) -> None:
        """Up to the last edge between two parts, in several threads."""
        found = {_next_line(handle, edge, size) for edge in range(self.offset + PART_BYTES, size, PART_BYTES)}
        edges = [self.offset, *sorted(found)]
        most = 2 * (1 + self._most // len(edges))
        lines = max(self._most, int((size - self.offset) / self.keys.line_bytes))
        bucket_lines = 1 << (lines // self._most).bit_length() - 1  # so many or twice as many at the end

        def read_part(start: int, end: int) -> tuple[Buckets, int, int]:
            part = Buckets(most, bucket_lines)
            return part, *_read_lines(handle, start, end, self.keys, part)

        with ThreadPoolExecutor(THREADS) as threads:
            parts = threads.map(read_part, edges[:-1], edges[1:])
            for end, (part, offset, damaged) in zip(edges[1:], parts, strict=True):
                self.buckets.append(part)
                self.offset, self.damaged = offset, self.damaged + damaged
                if offset < end:  # the file was cut while it was read
                    break

    # ---- what people see

    def view(self, points: int, low: float = -np.inf, high: float = np.inf) -> View:
        """Between two decisions, in at most `points` buckets; read again if it is but a part of a bucket."""
        kept, clock = self.buckets.kept, self.buckets.clock
        first, last = self._range(low, high)
        if self.buckets.size > 1 and 2 * (last - first) < points:
            return self._closer(first, last).view(points, low, high)
        step = max(1, -(-(last - first) // points))
        kept = grouped(kept[first:last], step)
        series, means = {}, {}
        for column, name in enumerate(self.keys.names[: kept.shape[2]]):
            of_one = kept[:, :, column].T
            if of_one[COUNT].any():
                series[name] = _zigzag(of_one)
                means[name] = of_one[SUM] / np.where(of_one[COUNT], of_one[COUNT], np.nan)
        return View(series, means, clock[0, first:last:step], clock[1, first:last:step])

    def _range(self, low: float, high: float) -> tuple[int, int]:
        """Buckets between two decisions, and one on each side."""
        begins = self.buckets.clock[0, : self.buckets.count]
        first, last = np.searchsorted(begins, low, "right") - 1, np.searchsorted(begins, high, "right") + 1
        return max(0, int(first) - 1), min(len(begins), int(last))

    def _closer(self, first: int, last: int) -> "Curves":
        """The lines of some buckets, in buckets of their own."""
        begins = self.buckets.begins
        end = int(begins[last]) if last < self.buckets.count else self.offset
        part = Curves(self.file, int(begins[first]))
        part.refresh(end)
        return part


def _read_lines(handle: int, start: int, end: int, keys: Keys, buckets: Buckets) -> tuple[int, int]:
    """Whole lines between two bytes of a file into buckets: where they end, and how many are damaged."""
    offset, damaged = start, 0
    for data in _chunks(handle, start, end):
        found = read(data, keys)
        buckets.add(found.values, found.starts + offset)
        offset, damaged = offset + len(data) - PADDING, damaged + found.damaged
    return offset, damaged


def _chunks(handle: int, start: int, end: int) -> Iterator[np.ndarray]:
    """[bytes + PADDING] uint8: whole lines; a last line without its end stays for the next time."""
    length = min(CHUNK_BYTES, end - start)
    data = np.empty(length + PADDING, np.uint8)
    while start < end:
        count = os.preadv(handle, [data[: min(length, end - start)].data], start)
        whole = _end_of_lines(data[:count])
        if whole:
            yield data[: whole + PADDING]
            start += whole
        elif count < length or length >= end - start:
            return
        else:  # a line longer than any of ours
            length *= 2
            data = np.empty(length + PADDING, np.uint8)


@njit
def _end_of_lines(data: np.ndarray) -> int:
    """Of the last line that is whole; 0 if none is."""
    end = len(data)
    while end and data[end - 1] != NEWLINE:
        end -= 1
    return end


def _next_line(handle: int, at: int, size: int) -> int:
    """Where the first line begins that is not before `at`."""
    while at < size and (text := os.pread(handle, LOOK_BYTES, at - 1)):
        if (found := text.find(b"\n")) >= 0:
            return at + found
        at += LOOK_BYTES
    return size


def _zigzag(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """kept: [6, buckets] of one metric -> decisions and values, lowest and highest in their order."""
    kept = kept[:, kept[COUNT] > 0]
    low_first = kept[LOW_AT] <= kept[HIGH_AT]
    points = np.empty((2, 2 * kept.shape[1]))
    low, high = kept[[LOW_AT, LOW]], kept[[HIGH_AT, HIGH]]
    points[:, 0::2] = np.where(low_first, low, high)
    points[:, 1::2] = np.where(low_first, high, low)
    double = np.flatnonzero(kept[LOW_AT] == kept[HIGH_AT]) * 2
    points = np.delete(points, double, axis=1)
    return points[0], points[1]
