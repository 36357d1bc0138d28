"""Buckets: many lines of metrics in a few megabytes, with every peak.

A bucket is some lines that follow each other, at first one. When there are too many buckets, two become one.
A bucket keeps the lowest, highest and mean value of every metric, and where in the file it begins.
"""

import numpy as np

from ludus.core.jit import njit
from ludus.store.columns import MOST_KEYS

MOST_BUCKETS = 4096
LOW, LOW_AT, HIGH, HIGH_AT, SUM, COUNT = range(6)
"""What a bucket keeps of a metric. _AT: at which decision."""


class Buckets:
    def __init__(self, most: int = MOST_BUCKETS, size: int = 1) -> None:
        """most: an even number. size: lines of a bucket, a power of two; `append` may close one before"""
        self.most, self.size, self.lines = most, size, 0
        self.kept = empty(0, most)
        """[buckets, 6, metrics] float64: the metrics of a line are compared and added several at a time."""
        self.begins = np.zeros(most, np.int64)
        """[buckets]: the byte of the file where each begins."""
        self.clock = np.zeros((2, most))
        """[decisions and seconds, buckets]: of the first line of each."""
        self.newest = np.full(MOST_KEYS, np.nan)
        """[metrics]: the last value of each."""
        self._places = 0
        """Lines that would be there if all buckets but the last were full."""

    @property
    def count(self) -> int:
        return -(-self._places // self.size)

    def add(self, values: np.ndarray, begins: np.ndarray) -> None:
        """values: [lines, metrics], decisions and seconds first. begins: [lines], bytes of the file"""
        self._widen(values.shape[1])
        self.lines += len(values)
        while len(values):
            if self._places == self.most * self.size:
                self._halve()
            fits = min(len(values), self.most * self.size - self._places)
            _gather(values[:fits], self._places, self.size, self.kept, self.newest)
            first = np.arange(-self._places % self.size, fits, self.size)
            into = (self._places + first) // self.size
            self.begins[into], self.clock[:, into] = begins[first], values[first, :2].T
            self._places += fits
            values, begins = values[fits:], begins[fits:]

    def append(self, other: "Buckets") -> None:
        """Lines that follow ours, and that were gathered elsewhere; `other` is of no use afterwards."""
        while self.size < other.size:
            self._halve()
        while other.size < self.size:
            other._halve()
        while self.count + other.count > self.most:
            self._halve()
            other._halve()
        self._widen(other.kept.shape[2])
        into, there = slice(self.count, self.count + other.count), slice(other.count)
        self.kept[into, :, : other.kept.shape[2]] = other.kept[there]
        self.begins[into], self.clock[:, into] = other.begins[there], other.clock[:, there]
        self.newest = np.where(np.isnan(other.newest), self.newest, other.newest)
        self._places = self.count * self.size + other._places
        self.lines += other.lines

    def _widen(self, metrics: int) -> None:
        if (missing := metrics - self.kept.shape[2]) > 0:
            self.kept = np.concatenate((self.kept, empty(missing, self.most)), axis=2)

    def _halve(self) -> None:
        """Two buckets become one."""
        count, half = self.count, -(-self.count // 2)
        merged = grouped(self.kept[:count], 2)
        self.kept[:half], self.kept[half:count] = merged, empty(merged.shape[2], count - half)
        self.begins[:half] = self.begins[:count:2]
        self.clock[:, :half] = self.clock[:, :count:2]
        self.size *= 2


def empty(metrics: int, buckets: int) -> np.ndarray:
    kept = np.zeros((buckets, 6, metrics))
    kept[:, LOW], kept[:, HIGH] = np.inf, -np.inf
    return kept


def grouped(kept: np.ndarray, step: int) -> np.ndarray:
    """[buckets, 6, metrics] -> [buckets / step rounded up, 6, metrics]"""
    if step == 1:
        return kept
    buckets, _, metrics = kept.shape
    merged = empty(metrics, -(-buckets // step))
    _merge(kept, step, merged)
    return merged


@njit
def _gather(values: np.ndarray, places: int, size: int, kept: np.ndarray, newest: np.ndarray) -> None:
    """values: [lines, metrics]. places: where the first line goes. kept: [buckets, 6, metrics]"""
    for line in range(values.shape[0]):
        into, decisions = kept[(places + line) // size], values[line, 0]
        low, low_at, high, high_at = into[LOW], into[LOW_AT], into[HIGH], into[HIGH_AT]
        total, count = into[SUM], into[COUNT]
        for metric in range(values.shape[1]):  # without branches, so that it is compiled to vectors
            value = values[line, metric]
            lower, higher, there = value < low[metric], value > high[metric], value == value
            low[metric] = value if lower else low[metric]
            low_at[metric] = decisions if lower else low_at[metric]
            high[metric] = value if higher else high[metric]
            high_at[metric] = decisions if higher else high_at[metric]
            total[metric] += value if there else 0.0
            count[metric] += 1.0 if there else 0.0
            newest[metric] = value if there else newest[metric]


@njit
def _merge(kept: np.ndarray, step: int, merged: np.ndarray) -> None:
    for bucket in range(kept.shape[0]):
        one, into = kept[bucket], merged[bucket // step]
        for metric in range(kept.shape[2]):
            if one[LOW, metric] < into[LOW, metric]:
                into[LOW, metric], into[LOW_AT, metric] = one[LOW, metric], one[LOW_AT, metric]
            if one[HIGH, metric] > into[HIGH, metric]:
                into[HIGH, metric], into[HIGH_AT, metric] = one[HIGH, metric], one[HIGH_AT, metric]
            into[SUM, metric] += one[SUM, metric]
            into[COUNT, metric] += one[COUNT, metric]
