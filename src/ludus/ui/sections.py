"""What a training's metrics are called on the screen, in which groups and in which order."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ludus.ui.trend import Metrics, plays_others

Columns = Callable[[Mapping[str, float]], Mapping[str, str | float]] | None
"""A game's own way to show its statistics."""

LABELS = {
    "losses/policy": "policy loss",
    "losses/value": "value loss",
    "policy/entropy": "entropy",
    "policy/kl": "approx. KL",
    "policy/clipped": "clip fraction",
    "value/explained": "explained variance",
    "learner/learning_rate": "learning rate",
    "losses/grad_norm": "grad norm",
    "policy/lag": "policy lag",
    "policy/dropped": "blocks too old",
    "nodes/count": "nodes",
    "replay/size": "replay size",
    "replay/age": "replay age",
    "losses/score": "score loss",
    "losses/owner": "ownership loss",
    "policy/searched_entropy": "search entropy",
    "policy/lag_ratio": "off-policy ratio",
    "learner/epochs": "epochs",
    "learner/updates": "updates",
    "speed/simulations": "simulations/s",
    "speed/games_min": "games/min",
    "search/fill": "search batch fill",
    "cost/total": "cost",
    "cost/per_million": "cost per million",
    "cost/hours": "hours",
}
"""Important ones first. Others are called as their metric is."""
IN_HEAD = ("speed/now", "speed/overall")
UPDATE = ("waiting for workers", "learning", "publishing", "evaluating", "reporting", "saving")
"""Phases of an update that follow each other; others are parts of them."""


SIZES = ((1e3, "k"), (1e6, "M"), (1e9, "G"))
Rows = list[tuple[str, str | float]]
"""Names and values; numbers are written as exactly as there is room for."""


class Section(NamedTuple):
    title: str
    rows: Rows


def sections(metrics: Metrics, columns: Columns) -> list[Section]:
    """The important ones first."""
    found = [
        Section("game", game_rows(metrics, columns)),
        Section("learning", _numbers(metrics, ("losses/", "policy/", "value/", "replay/", "learner/"))),
        Section("learner's time", _shares(metrics, "time/", UPDATE)),
        Section("workers' time", _shares(metrics, "workers/", ())),
        Section("machine", _machine(metrics)),
        Section("workers by node", _numbers(metrics, ("nodes/",))),
        Section("games", _numbers(metrics, ("speed/", "search/"))),
        Section("opponents", _opponents(metrics)),
        Section("cost", _numbers(metrics, ("cost/",))),
    ]
    return [section for section in found if section.rows]


def game_rows(metrics: Metrics, columns: Columns) -> Rows:
    """What people watch in this game."""
    stats = {name[5:]: value for name, value in metrics.items() if name.startswith("game/")}
    if not stats:
        return []
    shown: dict[str, str | float] = {"score": f"{stats.pop('score'):+.2f}"}
    own = columns(stats) if columns else stats
    return list({**shown, **own}.items())


def number(value: float, room: int = 10) -> str:
    """As exactly as `room` characters allow; five are enough for a sign and the size of any number."""
    size = abs(value)
    if value == 0 or 1e-3 <= size < 999.5:
        forms = [f"{value:.3g}", f"{value:.2g}", f"{value:.1g}", f"{value:.0f}"]
    elif 1 <= size < 999.5e9:
        unit, letter = next((unit, letter) for unit, letter in SIZES if size < 999.5 * unit)
        forms = [f"{value:,.0f}", *(f"{value / unit:.{digits}g}{letter}" for digits in (3, 2, 1))]
        forms[-1] = f"{value / unit:.0f}{letter}"
    else:
        exact = [f"{value:.{digits}e}" for digits in (2, 1, 0)]
        forms = [text.replace("e-0", "e-").replace("e+0", "e+").replace("e+", "e") for text in exact]
    return next((text for text in forms if len(text) <= room), forms[-1])


def _numbers(metrics: Metrics, prefixes: tuple[str, ...]) -> Rows:
    order = list(LABELS)
    names = [name for name in metrics if name.startswith(prefixes) and name not in IN_HEAD]
    names.sort(key=lambda name: order.index(name) if name in LABELS else len(order))
    return [(LABELS.get(name, _plain(name)), metrics[name]) for name in names if _is_number(metrics[name])]


def _plain(name: str) -> str:
    return name.partition("/")[2].replace("_", " ").replace("/", " ")


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _shares(metrics: Metrics, prefix: str, whole: tuple[str, ...]) -> Rows:
    """Of a process's time. whole: the parts that add up to all of it, if not all do; they are always shown"""
    counted = ("workers/count", "workers/replaced")
    spent = dict.fromkeys(whole, 0.0) | {
        name[len(prefix) :]: value
        for name, value in metrics.items()
        if name.startswith(prefix) and name not in counted and _is_number(value)
    }
    total = sum(value for name, value in spent.items() if not whole or name in whole)
    called = {"waiting for workers": "waiting"}
    return [
        (called.get(name, name.replace("_", " ")), f"{100 * value / max(total, 1e-9):.1f} %")
        for name, value in spent.items()
    ]


def _machine(metrics: Metrics) -> Rows:
    return [
        ("cores busy", f"{metrics['cpu/all']:.2f}"),
        ("memory", f"{metrics['memory/bytes'] / 2**30:.2f} GiB"),
        ("workers", metrics["workers/count"]),
        ("replaced workers", metrics["workers/replaced"]),
        ("learner's cores", f"{metrics['cpu/learner']:.2f}"),
        ("workers' cores", f"{metrics['cpu/workers']:.2f}"),
    ]


def _opponents(metrics: Metrics) -> Rows:
    """Who sits in the seats, and how they are rated; nothing if the policy plays only itself."""
    if not plays_others(metrics):
        return []
    seats = [(name, f"{100 * value:.1f} %") for name, value in metrics.items() if name.startswith("seated/")]
    rated = [(name, f"{value:.1f}") for name, value in metrics.items() if name.startswith("rating/")]
    return [
        *((f"{name.partition('/')[2]}, seats", text) for name, text in seats),
        *((f"{name.partition('/')[2]}, rating", text) for name, text in rated),
    ]
