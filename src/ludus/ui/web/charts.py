"""Which charts a run has: what its metrics are called, which are drawn together, and in which order."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ludus.ui.sections import LABELS, UPDATE
from ludus.ui.trend import ALONE

LEARNING = ("losses/", "policy/", "value/", "replay/", "learner/")
CORES = ("cpu/all", "cpu/learner", "cpu/workers")
TIMES = tuple(f"time/{phase}" for phase in UPDATE)
COUNTED = ("workers/count", "workers/replaced")
NO_CHART = ("decisions", "seconds", "games", "eval/decisions")


@dataclass(frozen=True)
class Chart:
    group: str
    title: str
    series: dict[str, str]
    """Metric -> what it is called in the chart."""
    kind: str = "line"
    """line; spent and busy: shares of a whole, by seconds in all or since the line before."""
    unit: str = ""
    error: str = ""
    """Ends the names of the metrics that say how uncertain a value is."""


def charts(names: Iterable[str]) -> list[dict[str, Any]]:
    """As JSON; names: of the metrics that there are"""
    left = [name for name in names if name not in NO_CHART]
    found: list[Chart] = []

    def take(group: str, title: str, series: dict[str, str], **how: Any) -> None:
        there = {name: label for name, label in series.items() if name in left}
        for name in there:
            left.remove(name)
        if there:
            found.append(Chart(group, title, there, **how))

    def ending(start: str, end: str) -> dict[str, str]:
        inner = {name: name[len(start) : len(name) - len(end)] for name in left if name.startswith(start)}
        return {
            name: _opponent(inner[name]) for name in inner if name.endswith(end) and "/" not in inner[name]
        }

    take("Score", "Evaluation score", ending("eval/", "/score"), error="_ci")
    take("Score", "Games won in evaluations", ending("eval/", "/win"), unit="%", error="_ci")
    take("Score", "Measure", {"measure": "measure"})
    take("Score", "Score in training", {"game/score": "score"})
    take("Score", "Ratings", {name: name[7:] for name in left if name.startswith("rating/")})
    for name in [name for name in left if name.startswith("game/")]:
        take("Game", _called(name), {name: _called(name)})
    for name in sorted((name for name in left if name.startswith(LEARNING)), key=_order):
        take("Learning", _called(name), {name: _called(name)})
    take("Opponents", "Seats", {name: name[7:] for name in left if name.startswith("seated/")}, unit="%")
    take("Speed", "Decisions a second", {"speed/now": "now", "speed/overall": "overall"})
    for name in [name for name in left if name.startswith(("speed/", "search/"))]:
        take("Speed", _called(name), {name: _called(name)})
    take("Where time goes", "Learner", {name: name[5:] for name in TIMES}, kind="spent", unit="%")
    workers = [name for name in left if name.startswith("workers/") and name not in COUNTED]
    take("Where time goes", "Workers", {name: name[8:] for name in workers}, kind="busy", unit="%")
    take("Machine", "Cores in use", {name: name[4:] for name in CORES})
    take("Machine", "Memory", {"memory/bytes": "all processes"}, unit="bytes")
    take("Machine", "Workers", {name: name[8:] for name in COUNTED})
    for name in [name for name in left if not name.startswith(("eval/", "time/"))]:
        take("Other", _called(name), {name: _called(name)})
    return [{"id": str(place), **asdict(chart)} for place, chart in enumerate(found)]


def _opponent(name: str) -> str:
    return "alone" if name == ALONE else f"against {name}"


def _called(name: str) -> str:
    return LABELS.get(name, name.partition("/")[2].replace("_", " ").replace("/", " ") or name)


def _order(name: str) -> int:
    known = list(LABELS)
    return known.index(name) if name in known else len(known)
