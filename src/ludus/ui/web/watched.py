"""A run that somebody looks at: its facts, events and curves, read once for all visitors."""

import tempfile
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.config import plain
from ludus.core.errors import Failure
from ludus.store.lines import EVENTS, METRICS, lines_back
from ludus.store.reader import RunReader
from ludus.store.summary import rounded_heard_s, share_done
from ludus.ui.web import redact
from ludus.ui.web.charts import COUNTED, charts

if TYPE_CHECKING:
    from ludus.store.curves import Curves, View

POINTS, NEW_POINTS = 400, 20
"""Buckets of a whole curve, and of what is new in one."""
EVENTS_SHOWN = 200
TAIL_LINES = 50
"""Lines in which the newest values are looked for before the curves were read."""


@dataclass
class WatchedRun:
    folder: Path
    curves: "Curves" = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _begun: bool = False
    """Whether somebody has the curves, even if there are none yet."""
    _size: int = -1
    """Of the events when they were read."""
    _events: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.curves = _curves(self.folder / METRICS)

    # ---- curves

    def begin(self) -> None:
        """Read what there is, so that it is there when somebody asks."""
        with self._lock:
            self._begin()

    def whole(self) -> dict[str, Any]:
        """All curves, as far as everybody was told."""
        with self._lock:
            self._begin()
            return {**self._place(), **_plotted(self.curves.view(POINTS)), "charts": self._charts()}

    def part(self, low: float, high: float) -> dict[str, Any]:
        """The curves between two decisions, as closely as they are known."""
        with self._lock:
            self._begin()
            return _plotted(self.curves.view(POINTS, low, high))

    def _begin(self) -> None:
        self._begun = True
        if not self.curves.lines:
            self.curves.refresh()

    def news(self) -> dict[str, Any] | None:
        """What was added to the curves since the last time; None if nothing was, or nobody has them yet."""
        with self._lock:
            before = self._place()
            if not self._begun or not self.curves.refresh():
                return None
            if self.curves.generation != before["generation"]:  # it began anew: visitors ask for all
                return {"from": -1, **self._place()}
            added = _curves(self.curves.file, before["offset"])
            added.refresh(self.curves.offset)
            return {"from": before["offset"], **self._place(), **_plotted(added.view(NEW_POINTS))}

    def _place(self) -> dict[str, int]:
        return {
            "generation": self.curves.generation,
            "offset": self.curves.offset,
            "lines": self.curves.lines,
        }

    def _charts(self) -> list[dict[str, Any]]:
        return charts(self.curves.last)

    # ---- facts

    def facts(self) -> dict[str, Any]:
        """What is shown above the curves, and beside them. A Failure if the run is gone or damaged."""
        run = RunReader(self.folder)
        config, state, best = run.config, run.state, run.best
        line: dict[str, Any] = {"decisions": 0, "seconds": 0.0, **self._newest()}
        share = 1.0 if state == "done" else share_done(config, line)
        running = state == "running"
        return {
            "state": state,
            "heard_s": rounded_heard_s(run),
            "game": config.game,
            "algo": config.algo,
            "decisions": line["decisions"],
            "budget": config.decisions,
            "share": share,
            "seconds": line["seconds"],
            "left": line["seconds"] * (1 / share - 1) if running and share else None,
            "games": line.get("games", 0),
            "speed": line.get("speed/now") if running else None,
            "overall": line.get("speed/overall"),
            "best": best and {**asdict(best), "name": redact.text(best.name)},
            "opponents": _opponents(line),
            "checkpoints": run.checkpoints(),
            "milestones": run.milestones(),
        }  # fmt: skip

    def _newest(self) -> dict[str, Any]:
        if found := self.curves.last:
            return dict(found)
        for count, line in enumerate(lines_back(self.folder / METRICS)):
            if count == TAIL_LINES:
                break
            found = {**(line.values or {}), **found}
        return found

    def events(self) -> list[dict[str, Any]]:
        """The newest, newest first: time, what happened, and details without secrets."""
        file = self.folder / EVENTS
        size = file.stat().st_size if file.exists() else 0
        if size != self._size:
            found = []
            for line in lines_back(file):
                if line.values is not None:
                    found.append(_event(line.values))
                if len(found) == EVENTS_SHOWN:
                    break
            self._events, self._size = found, size
        return self._events

    def config(self) -> list[dict[str, Any]]:
        """Groups of settings without secrets; empty if the file is damaged."""
        try:
            values = redact.safe(plain(RunReader(self.folder).config))
        except Failure:
            return []
        groups = {name: value for name, value in values.items() if isinstance(value, dict) and value}
        alone = {name: value for name, value in values.items() if not isinstance(value, dict)}
        return [
            {"title": title, "rows": [[name, _written(value)] for name, value in group.items()]}
            for title, group in {"training": alone, **groups}.items()
        ]


def _curves(file: Path, start: int = 0) -> "Curves":
    """Its compiled code takes a while to load: the server answers before it is there."""
    from ludus.store.curves import Curves

    return Curves(file, start)


def warm_up() -> None:
    """Load what the first visitor would wait for."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / METRICS
        file.write_text("".join(f'{{"decisions": {i}, "seconds": {i}}}\n' for i in range(2 * POINTS)))
        curves = _curves(file)
        curves.refresh()
        curves.view(POINTS)


def _event(values: dict[str, Any]) -> dict[str, Any]:
    values = redact.safe(values)
    details = {name: value for name, value in values.items() if name not in ("time", "event")}
    said = ", ".join(f"{name} {_written(value)}" for name, value in details.items())
    when = values.get("time")
    return {
        "time": when if isinstance(when, int | float) else None,
        "event": values["event"],
        "details": said,
    }


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, list):
        return ", ".join(map(_written, value)) or "none"
    return str(value) if value != "" else "none"


def _opponents(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Who sits in the other seats or was played in evaluations: shares, ratings and scores."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in line.items():
        kind, _, rest = name.partition("/")
        if kind in ("seated", "rating"):
            found.setdefault(rest, {})[kind] = value
        elif kind == "eval" and "/" in rest:
            opponent, _, what = rest.rpartition("/")
            found.setdefault(opponent, {})[what] = value
    return [{"name": name, **values} for name, values in found.items()]


def _plotted(view: "View") -> dict[str, Any]:
    """As JSON for the browser: float32 is as exact as anybody can see, and half as long."""
    drawn = {
        name: [decisions.astype(np.int64), values.astype(np.float32)]
        for name, (decisions, values) in view.series.items()
    }
    shares = ("time/", "workers/")
    means = {
        name: values.astype(np.float32)
        for name, values in view.means.items()
        if name.startswith(shares) and name not in COUNTED
    }
    return {
        "series": drawn,
        "means": means,
        "clock": [view.decisions.astype(np.int64), view.seconds.astype(np.float32)],
    }
