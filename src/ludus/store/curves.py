"""Curves of a run's metrics: the whole file in a few megabytes, with every peak, and it grows with the file.

Lines are gathered in buckets of equal size, at first of one line. When there are MOST_BUCKETS, two become
one. A bucket keeps the lowest, highest and mean value of every metric, and where in the file it begins, so
that a part that somebody looks at closely is read again.
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ludus.core.jit import njit
from ludus.store.columns import MOST_KEYS, NEWLINE, WORD, Columns, Keys, read

MOST_BUCKETS = 4096
CHUNK_BYTES = 1 << 20
"""Small enough for a core's cache: what is read is parsed while it is there."""
THREADS = 2
TAIL_BYTES = 64
"""The end of what was read: if it is another now, the file was written anew."""
LOW, LOW_AT, HIGH, HIGH_AT, SUM, COUNT = range(6)
"""What a bucket keeps of a metric. _AT: at which decision."""


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
        self.begin()

    def begin(self) -> None:
        """As if nothing had been read."""
        self.keys = Keys()
        self.lines, self.damaged, self.offset, self.bucket_lines = 0, 0, self._start, 1
        self.generation = getattr(self, "generation", 0) + 1
        """How often the file was read from its beginning."""
        self._tail = b""
        self._kept = _empty(len(self.keys.names), self._most)
        """[buckets, metrics, 6] float64: what is written together lies together."""
        self._begins = np.zeros(self._most, np.int64)
        """[buckets]: the byte of the file where each begins."""
        self._clock = np.zeros((2, self._most))
        """[decisions and seconds, buckets]: of the first line of each."""
        self._newest = np.full(MOST_KEYS, np.nan)
        """[metrics]: the last value of each."""

    @property
    def last(self) -> dict[str, float]:
        """The newest value of every metric that has one."""
        found = zip(self.keys.names, self._newest.tolist(), strict=False)
        return {name: value for name, value in found if not math.isnan(value)}

    @property
    def buckets(self) -> int:
        return -(-self.lines // self.bucket_lines)

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
            for found, offset in self._parsed(handle.fileno(), size):
                self._add(found, offset)
            self._remember(handle.fileno())
        return self.lines - before

    def _was_rewritten(self, handle: int) -> bool:
        """As when a run goes on from an earlier checkpoint, or gives way to a new one."""
        tail = os.pread(handle, len(self._tail), self.offset - len(self._tail))
        return tail != self._tail

    def _remember(self, handle: int) -> None:
        length = min(TAIL_BYTES, self.offset - self._start)
        self._tail = os.pread(handle, length, self.offset - length)

    def _parsed(self, handle: int, size: int) -> Iterator[tuple[Columns, int]]:
        """Columns of the new lines, and where in the file their text begins, in order."""
        chunks = self._chunks(handle, size)
        for data, offset in chunks:  # alone: it finds the keys, and mostly it is all there is
            yield read(data, self.keys), offset
            break
        else:
            return
        if size - self.offset < CHUNK_BYTES:
            yield from ((read(data, self.keys), offset) for data, offset in chunks)
            return
        with ThreadPoolExecutor(THREADS) as threads:
            waiting: list[tuple[Future[Columns], int]] = []
            for data, offset in chunks:
                waiting.append((threads.submit(read, data, self.keys), offset))
                if len(waiting) > THREADS:
                    done, offset = waiting.pop(0)
                    yield done.result(), offset
            for done, offset in waiting:
                yield done.result(), offset

    def _chunks(self, handle: int, size: int) -> Iterator[tuple[np.ndarray, int]]:
        """Whole lines, and where they begin; a last line without its end stays for the next time."""
        length, turn = min(CHUNK_BYTES, size - self.offset), 0
        buffers = [np.empty(length + WORD, np.uint8)]
        while self.offset < size:
            if turn == len(buffers) and turn <= 2 * THREADS:
                buffers.append(np.empty(length + WORD, np.uint8))
            turn %= len(buffers)
            data = buffers[turn]
            count = os.preadv(handle, [data[: min(length, size - self.offset)].data], self.offset)
            whole = _end_of_lines(data[:count])
            if whole:
                turn += 1
                self.offset += whole
                yield data[: whole + WORD], self.offset - whole
            elif count < length or length >= size - self.offset:
                return
            else:  # a line longer than any of ours
                length, turn = 2 * length, 0
                buffers = [np.empty(length + WORD, np.uint8)]

    def _add(self, found: Columns, offset: int) -> None:
        self.damaged += found.damaged
        values = found.values
        if (missing := values.shape[1] - self._kept.shape[1]) > 0:
            self._kept = np.concatenate((self._kept, _empty(missing, self._most)), axis=1)
        at = 0
        while at < len(values):
            if self.lines == self._most * self.bucket_lines:
                self._halve()
            fits = min(len(values) - at, self._most * self.bucket_lines - self.lines)
            part = slice(at, at + fits)
            _gather(values[part], self.lines, self.bucket_lines, self._kept, self._newest)
            first = np.arange(at, at + fits)[-self.lines % self.bucket_lines :: self.bucket_lines]
            into = (self.lines + first - at) // self.bucket_lines
            self._begins[into] = found.starts[first] + offset
            self._clock[:, into] = values[first, :2].T
            self.lines, at = self.lines + fits, at + fits

    def _halve(self) -> None:
        """Two buckets become one."""
        half = self._most // 2
        merged = _grouped(self._kept, 2)
        self._kept[:half], self._kept[half:] = merged, _empty(merged.shape[1], half)
        self._begins[:half] = self._begins[::2]
        self._clock[:, :half] = self._clock[:, ::2]
        self.bucket_lines *= 2

    # ---- what people see

    def view(self, points: int, low: float = -np.inf, high: float = np.inf) -> View:
        """Between two decisions, in at most `points` buckets; read again if it is but a part of a bucket."""
        first, last = self._range(low, high)
        if self.bucket_lines > 1 and 2 * (last - first) < points:
            return self._closer(first, last).view(points, low, high)
        step = max(1, -(-(last - first) // points))
        kept = _grouped(self._kept[first:last], step)
        series, means = {}, {}
        for column, name in enumerate(self.keys.names[: kept.shape[1]]):
            of_one = kept[:, column].T
            if of_one[COUNT].any():
                series[name] = _zigzag(of_one)
                means[name] = of_one[SUM] / np.where(of_one[COUNT], of_one[COUNT], np.nan)
        return View(series, means, self._clock[0, first:last:step], self._clock[1, first:last:step])

    def _range(self, low: float, high: float) -> tuple[int, int]:
        """Buckets between two decisions, and one on each side."""
        begins = self._clock[0, : self.buckets]
        first, last = np.searchsorted(begins, low, "right") - 1, np.searchsorted(begins, high, "right") + 1
        return max(0, int(first) - 1), min(self.buckets, int(last))

    def _closer(self, first: int, last: int) -> "Curves":
        """The lines of some buckets, in buckets of their own."""
        end = int(self._begins[last]) if last < self.buckets else self.offset
        part = Curves(self.file, int(self._begins[first]))
        part.refresh(end)
        return part


def _empty(metrics: int, buckets: int) -> np.ndarray:
    kept = np.zeros((buckets, metrics, 6))
    kept[..., LOW], kept[..., HIGH] = np.inf, -np.inf
    return kept


@njit
def _end_of_lines(data: np.ndarray) -> int:
    """Of the last line that is whole; 0 if none is."""
    end = len(data)
    while end and data[end - 1] != NEWLINE:
        end -= 1
    return end


@njit
def _gather(values: np.ndarray, lines: int, bucket_lines: int, kept: np.ndarray, newest: np.ndarray) -> None:
    """values: [lines, metrics]. lines: how many were there before. kept: [buckets, metrics, 6]"""
    for line in range(values.shape[0]):
        into = kept[(lines + line) // bucket_lines]
        decisions = values[line, 0]
        for metric in range(values.shape[1]):
            value = values[line, metric]
            if not np.isnan(value):
                if value < into[metric, LOW]:
                    into[metric, LOW] = value
                    into[metric, LOW_AT] = decisions
                if value > into[metric, HIGH]:
                    into[metric, HIGH] = value
                    into[metric, HIGH_AT] = decisions
                into[metric, SUM] += value
                into[metric, COUNT] += 1
                newest[metric] = value


def _grouped(kept: np.ndarray, step: int) -> np.ndarray:
    """[buckets, metrics, 6] -> [buckets / step rounded up, metrics, 6]"""
    if step == 1:
        return kept
    buckets, metrics, _ = kept.shape
    merged = _empty(metrics, -(-buckets // step))
    _merge(kept, step, merged)
    return merged


@njit
def _merge(kept: np.ndarray, step: int, merged: np.ndarray) -> None:
    for bucket in range(kept.shape[0]):
        for metric in range(kept.shape[1]):
            one, into = kept[bucket, metric], merged[bucket // step, metric]
            if one[LOW] < into[LOW]:
                into[LOW], into[LOW_AT] = one[LOW], one[LOW_AT]
            if one[HIGH] > into[HIGH]:
                into[HIGH], into[HIGH_AT] = one[HIGH], one[HIGH_AT]
            into[SUM] += one[SUM]
            into[COUNT] += one[COUNT]


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
