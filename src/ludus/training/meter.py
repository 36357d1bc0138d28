"""Meter: what a training did, how fast, and where the time went. Only this run's own decisions count."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import psutil

from ludus import machine
from ludus.core.game import Game
from ludus.core.spec import Spec
from ludus.training.pools import Delivery, Health
from ludus.training.profile import Profile

RATING = "rating"


class Meter:
    def __init__(self, game: Game, start: int, profile: Profile | None = None) -> None:
        """start: decisions that were made before this process began. profile: is told of every phase"""
        self.profile = profile
        self.game, self.spec, self.start = game, game.spec, start
        self.decisions, self.games, self._seconds_before = start, 0, 0.0
        self._begun = self._read_at = time.monotonic()
        self._clock_runs = False
        self._read_decisions = start
        self._rows: dict[int, int] = {}  # games side by side, by worker
        self._ended = self._read_ended = 0  # games since all began at once, now and at the last reading
        self._is_settled = False
        self._last: dict[str, float] = {}
        self._waited, self._waited_at = 0.0, self._begun
        psutil.cpu_percent()  # the next reading counts from here
        self._phases: dict[str, float] = defaultdict(float)
        self._since = _Sums(game.spec)
        self._processes: dict[int, psutil.Process] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start, began = time.perf_counter(), time.time()
        yield
        spent = time.perf_counter() - start
        self._phases[name] += spent
        if self.profile:
            self.profile.add("learner", name, began, spent)

    def start_clock(self) -> None:
        """Only now: what was set up before is not training."""
        self._begun = self._read_at = self._waited_at = time.monotonic()
        self._clock_runs = True

    def seconds(self) -> float:
        """Clock time of the run, over all times it was started."""
        return self._seconds_before + (time.monotonic() - self._begun if self._clock_runs else 0.0)

    def progress(self, decisions: int, seconds: float) -> float:
        """Share of the budget that is used, 0 to 1."""
        by_time = self.seconds() / seconds if seconds else 0.0
        return min(1.0, max(self.decisions / decisions, by_time))

    def spent(self, decisions: int, seconds: float) -> bool:
        return self.progress(decisions, seconds) >= 1

    def add(self, deliveries: list[Delivery], version: int) -> None:
        self.decisions += sum(delivery.block.decisions for delivery in deliveries)
        for delivery in deliveries:
            self.games += delivery.report.games
            self._ended += delivery.report.games
            self._rows[delivery.worker] = delivery.block.rows
            self._since.add(delivery, version)
            if self.profile:
                self.profile.add_block(delivery.worker, delivery.report, delivery.block.decisions)

    def due(self, every_s: float) -> bool:
        return time.monotonic() - self._read_at >= every_s

    def read(self, losses: dict[str, float], health: Health) -> dict[str, Any]:
        """Everything since the last reading, as one flat dictionary."""
        now = time.monotonic()
        elapsed, since = now - self._begun, max(now - self._read_at, 1e-9)
        metrics: dict[str, Any] = {
            "seconds": self.seconds(),
            "decisions": self.decisions,
            "games": self.games,
            "speed/now": (self.decisions - self._read_decisions) / since,
            "speed/overall": (self.decisions - self.start) / max(elapsed, 1e-9),
            "speed/games_min": 60 * self._since.games / since,
            **{f"speed/{name}": count / since for name, count in self._since.counts.items()},
            "workers/count": health.workers,
            "workers/replaced": health.replaced,
            **_nodes(health),
            **{f"time/{name}": spent for name, spent in self._phases.items()},
            **self._since.means(),
            **self._usage(health.pids),
            **losses,
        }
        self._read_at, self._read_decisions, self._since = now, self.decisions, _Sums(self.spec)
        self._is_settled = self._read_ended >= sum(self._rows.values())
        self._read_ended = self._ended
        self._last = {name: value for name, value in metrics.items() if name.startswith("game/")}
        return metrics

    def cost(self, price: float, seconds: float) -> dict[str, float]:
        """price: of an hour. seconds: that were trained"""
        hours = seconds / 3600
        millions = max(self.decisions, 1) / 1e6
        return {
            "cost/hours": hours,
            "cost/total": price * hours,
            "cost/per_million": price * hours / millions,
        }

    def measure(self, rated: dict[str, float]) -> float | None:
        """How good the policy is, as far as its own games tell; None if they don't."""
        stats = {name[5:]: value for name, value in self._last.items()}
        if self._own_measure:
            return self.game.measure(stats | {"opponents": self.spec.seats - 1}) if stats else None
        return stats.get("score") if self.spec.seats == 1 else rated.get("rating/self")

    @property
    def is_settled(self) -> bool:
        """Whether `measure` can be trusted: the first games to end, after all began at once, are short ones.
        OFC's looked two points a hand better than those that followed."""
        return self._is_settled or self.measured == RATING

    @property
    def measured(self) -> str:
        """What `measure` is, in a word."""
        if self._own_measure:
            return self.game.measure_name or "points"
        return "score" if self.spec.seats == 1 else RATING

    @property
    def _own_measure(self) -> bool:
        """Whether the game says how good a policy is."""
        return type(self.game).measure is not Game.measure

    def room(self, ours: float) -> dict[str, float]:
        """What the machine has left. ours: cores that this training uses"""
        total, free = machine.memory_bytes()
        cores, now = machine.usable_cores(), time.monotonic()
        # Inside a container the machine's load is not ours to see.
        busy = psutil.cpu_percent() / 100 * cores if machine.core_quota() is None else ours
        waited = self._phases["waiting for workers"]
        share = (waited - self._waited) / max(now - self._waited_at, 1e-9)
        self._waited, self._waited_at = waited, now
        return {
            "memory": 1 - free / total, "others": max(0.0, busy - ours), "idle": max(0.0, cores - busy),
            "waiting": share,
        }  # fmt: skip

    def begin_games_anew(self) -> None:
        self._ended = self._read_ended = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions, "games": self.games, "seconds": self.seconds(), "ended": self._ended
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.decisions = self._read_decisions = state["decisions"]
        self.games = state["games"]
        self._ended = self._read_ended = state.get("ended", 0)
        if not self._clock_runs:  # else a training is rolled back, and its time was spent all the same
            self.start, self._seconds_before = self.decisions, state["seconds"]
        self._since = _Sums(self.spec)

    def _usage(self, pids: Sequence[int]) -> dict[str, float]:
        """CPU of each process since the last reading, in cores, and memory of all."""
        learner = psutil.Process().pid
        cpu: dict[int, float] = {learner: 0.0}
        memory = 0
        for pid in _families([learner, *pids]):
            with suppress(psutil.Error):  # it has just ended
                cpu[pid] = self._cores(pid)
                memory += self._processes[pid].memory_info().rss
        self._processes = {pid: process for pid, process in self._processes.items() if pid in cpu}
        total = sum(cpu.values())
        return {
            "cpu/learner": cpu[learner], "cpu/workers": total - cpu[learner], "cpu/all": total,
            "memory/bytes": memory,
        }  # fmt: skip

    def _cores(self, pid: int) -> float:
        """Cores that a process used since the last reading, or since it was started if this is its first."""
        if pid in self._processes:
            return self._processes[pid].cpu_percent() / 100
        process = self._processes[pid] = psutil.Process(pid)
        process.cpu_percent()  # its next reading counts from here
        times = process.cpu_times()
        return (times.user + times.system) / max(time.time() - process.create_time(), 0.1)


def _families(pids: Sequence[int]) -> set[int]:
    """Processes and all that they started: a game's own, such as a simulator, work for the training too."""
    found: set[int] = set()
    for pid in pids:
        if pid not in found:  # psutil looks at all processes of the machine each time: not for every worker
            found.add(pid)
            with suppress(psutil.Error):
                found.update(child.pid for child in psutil.Process(pid).children(recursive=True))
    return found


def _nodes(health: Health) -> dict[str, float]:
    """Of a pool on several machines."""
    if not health.nodes:
        return {}
    by_node = {f"nodes/{name}": count for name, count in health.nodes.items()}
    return {"nodes/count": len(health.nodes), **by_node, "policy/dropped": health.dropped}


class _Sums:
    """What workers reported between two readings."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.games = self.seats = self.blocks = self.lag = 0
        self.score, self.stats = 0.0, np.zeros(len(spec.stats))
        self.counters = np.zeros(len(spec.counters))
        self.seconds: dict[str, float] = defaultdict(float)
        self.seated: dict[str, int] = defaultdict(int)
        self.counts: dict[str, float] = defaultdict(float)
        self.shares: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))

    def add(self, delivery: Delivery, version: int) -> None:
        report = delivery.report
        self.games += report.games
        self.seats += report.seats
        self.score += report.score
        self.stats += report.stats
        if len(report.counters):
            self.counters += report.counters
        self.blocks += 1
        self.lag += version - 1 - delivery.version
        for name, spent in report.seconds.items():
            self.seconds[name] += spent
        for name, count in report.seated.items():
            self.seated[name] += count
        for name, more in report.counts.items():
            self.counts[name] += more
        for name, share in report.shares.items():
            self.shares[name] += share

    def means(self) -> dict[str, float]:
        """Means for each game and seat of the learning policy."""
        found = {f"workers/{name}": spent for name, spent in self.seconds.items()}
        found |= {
            f"table/{name}": float(count)
            for name, count in zip(self.spec.counters, self.counters, strict=True)
        }
        found["policy/lag"] = self.lag / max(self.blocks, 1)
        total = sum(self.seated.values())
        found |= {f"seated/{name}": count / total for name, count in self.seated.items() if total}
        found |= {name: part / whole for name, (part, whole) in self.shares.items()}
        if self.seats:
            found["game/score"] = self.score / self.seats
            found |= {
                f"game/{name}": float(s)
                for name, s in zip(self.spec.stats, self.stats / self.seats, strict=True)
            }
        return found
