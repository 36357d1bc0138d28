"""Profile: where every process's time went, as a table and as a trace for a browser's trace viewer."""

import json
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

TRACE, TABLE = "trace.json", "profile.json"
MOST = 200_000
"""Spans that the trace holds at most: what comes later is only counted."""


class Profile:
    """Spans of time by process and phase. Times are seconds of the clock that all processes share."""

    def __init__(self) -> None:
        self.totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0])
        self._spans: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, process: str, phase: str, start: float, seconds: float, count: int = 1) -> None:
        with self._lock:
            total = self.totals[process, phase]
            total[0] += seconds
            total[1] += count
            if len(self._spans) < MOST:
                times = {"ts": 1e6 * start, "dur": 1e6 * seconds}
                lane = process if process == "learner" else phase
                self._spans.append({"name": phase, "ph": "X", "pid": process, "tid": lane, **times})

    def add_block(self, worker: int, report: Any, decisions: int) -> None:
        """A worker's block: its phases lie side by side, because each is a sum over many short moments."""
        for phase, seconds in report.seconds.items():
            self.add(f"worker-{worker}", phase, report.begun, seconds, decisions)

    def write(self, folder: Path) -> None:
        (folder / TRACE).write_text(json.dumps({"traceEvents": self._spans}))
        (folder / TABLE).write_text(json.dumps(self.rows()))

    def rows(self) -> list[tuple[str, str, float, int, float]]:
        """Process, phase, seconds, count and microseconds for each; the longest first in each process."""
        found = []
        for (process, phase), (seconds, count) in self.totals.items():
            found.append((process, phase, seconds, int(count), 1e6 * seconds / max(count, 1)))
        return sorted(found, key=lambda row: (row[0], -row[2]))
