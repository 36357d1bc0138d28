"""Meter: what a training did, how fast, and where the time went. Only this run's own decisions count."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from ludus.core.spec import Spec


class Meter:
    def __init__(self, spec: Spec, layout: str) -> None:
        self.spec, self.layout = spec, layout
        self.decisions = self.games = 0
        self._begun = self._read_at = time.monotonic()
        self._read_decisions = 0
        self._phases: dict[str, float] = defaultdict(float)
        self._since = _Sums(spec)
        self._processes: dict[int, psutil.Process] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._phases[name] += time.perf_counter() - start

    def progress(self, decisions: int, seconds: float) -> float:
        """Share of the budget that is used, 0 to 1."""
        by_time = (time.monotonic() - self._begun) / seconds if seconds else 0.0
        return min(1.0, max(self.decisions / decisions, by_time))

    def spent(self, decisions: int, seconds: float) -> bool:
        return self.progress(decisions, seconds) >= 1

    def add(self, deliveries: list, version: int) -> None:
        self.decisions += sum(delivery.block.decisions for delivery in deliveries)
        for delivery in deliveries:
            self.games += delivery.report.games
            self._since.add(delivery, version)

    def due(self, every_s: float) -> bool:
        return time.monotonic() - self._read_at >= every_s

    def read(self, losses: dict[str, float], health: dict[str, Any]) -> dict[str, Any]:
        """Everything since the last reading, as one flat dictionary."""
        now = time.monotonic()
        elapsed, since = now - self._begun, max(now - self._read_at, 1e-9)
        metrics: dict[str, Any] = {
            "seconds": elapsed,
            "decisions": self.decisions,
            "games": self.games,
            "speed/now": (self.decisions - self._read_decisions) / since,
            "speed/overall": self.decisions / max(elapsed, 1e-9),
            "layout": self.layout,
            "workers/count": health["workers"],
            "workers/replaced": health["replaced"],
            **{f"time/{name}": spent for name, spent in self._phases.items()},
            **self._since.means(),
            **self._usage(health["pids"]),
            **losses,
        }
        self._read_at, self._read_decisions, self._since = now, self.decisions, _Sums(self.spec)
        return metrics

    def _usage(self, pids: list[int]) -> dict[str, float]:
        """CPU of each process since the last reading, in cores, and memory of all."""
        pids = [psutil.Process().pid, *pids]
        cpu, memory = [], 0
        for pid in pids:
            try:
                process = self._processes.setdefault(pid, psutil.Process(pid))
                cpu.append(process.cpu_percent() / 100)
                memory += process.memory_info().rss
            except psutil.Error:
                cpu.append(0.0)
        self._processes = {pid: process for pid, process in self._processes.items() if pid in pids}
        return {
            "cpu/learner": cpu[0], "cpu/workers": sum(cpu[1:]), "cpu/all": sum(cpu), "memory/bytes": memory,
        }  # fmt: skip


class _Sums:
    """What workers reported between two readings."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.games = self.seats = self.blocks = self.lag = 0
        self.score, self.stats = 0.0, np.zeros(len(spec.stats))
        self.seconds: dict[str, float] = defaultdict(float)
        self.seated: dict[str, int] = defaultdict(int)

    def add(self, delivery: Any, version: int) -> None:
        report = delivery.report
        self.games += report.games
        self.seats += report.seats
        self.score += report.score
        self.stats += report.stats
        self.blocks += 1
        self.lag += version - 1 - delivery.version
        for name, spent in report.seconds.items():
            self.seconds[name] += spent
        for name, count in report.seated.items():
            self.seated[name] += count

    def means(self) -> dict[str, float]:
        """Means for each game and seat of the learning policy."""
        found = {f"workers/{name}": spent for name, spent in self.seconds.items()}
        found["policy/lag"] = self.lag / max(self.blocks, 1)
        total = sum(self.seated.values())
        found |= {f"seated/{name}": count / total for name, count in self.seated.items() if total}
        if self.seats:
            found["game/score"] = self.score / self.seats
            found |= {
                f"game/{name}": float(s)
                for name, s in zip(self.spec.stats, self.stats / self.seats, strict=True)
            }
        return found
