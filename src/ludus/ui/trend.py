"""Is it getting better: how a training's measures went from its first reading to now."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Metrics = dict[str, Any]
BARS = "▁▂▃▄▅▆▇█"
ALONE = "alone"
"""The opponent of evaluations that are played alone."""


@dataclass
class Trend:
    """One measure over the run."""

    label: str
    values: list[float] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)
    interval: float = 0.0
    """Half of the last value's 95 % interval, if it has one."""
    win: float | None = None
    """Share of the last evaluation's games that were won."""

    def add(self, decisions: int, value: float) -> None:
        self.values.append(value)
        self.decisions.append(decisions)

    @property
    def best(self) -> tuple[float, int]:
        """The best value, and after how many decisions it was reached."""
        place = max(range(len(self.values)), key=self.values.__getitem__)
        return self.values[place], self.decisions[place]

    def value(self) -> str:
        return f"{self.values[-1]:+.2f}" + (f" ± {self.interval:.2f}" if self.interval else "")

    def won(self) -> str:
        return "" if self.win is None else f"{100 * self.win:.0f} % won"


class Trends:
    """All measures that a training's metrics hold."""

    def __init__(self) -> None:
        self.evaluations: dict[str, Trend] = {}
        self.measure = Trend("")

    def expect(self, opponents: Iterable[str]) -> None:
        for name in opponents:
            self.evaluations.setdefault(name, Trend(_against(name)))

    def read(self, metrics: Metrics) -> None:
        made = metrics["decisions"]
        for name in metrics:
            if name.startswith("eval/") and name.endswith("/score"):
                self._evaluated(name[5:-6], metrics)
        rated = metrics.get("measure") == metrics.get("rating/self") and not plays_others(metrics)
        if "measure" in metrics and not rated:  # nobody is rated by games against itself
            self.measure.label = self.measure.label or self._name(metrics)
            self.measure.add(made, metrics["measure"])

    def _evaluated(self, opponent: str, metrics: Metrics) -> None:
        trend = self.evaluations.setdefault(opponent, Trend(_against(opponent)))
        made = metrics["eval/decisions"] if "eval/decisions" in metrics else metrics["decisions"]
        trend.add(made, metrics[f"eval/{opponent}/score"])
        trend.interval = metrics.get(f"eval/{opponent}/score_ci", 0.0)
        trend.win = metrics.get(f"eval/{opponent}/win")

    def _name(self, metrics: Metrics) -> str:
        same = {"game/score": "score", "rating/self": "rating"}
        return next(
            (label for name, label in same.items() if metrics["measure"] == metrics.get(name)), "measure"
        )

    def shown(self) -> list[Trend]:
        """Evaluations first, because their opponents stay the same."""
        return [*self.evaluations.values(), *([self.measure] if self.measure.values else [])]

    @property
    def judge(self) -> Trend | None:
        """What tells best how good the agent is."""
        return next((trend for trend in self.shown() if trend.values), None)


def plays_others(metrics: Metrics) -> bool:
    """Whether others than the learning policy itself have a seat."""
    return any(
        name.startswith("seated/") and name != "seated/self" and share for name, share in metrics.items()
    )


def _against(opponent: str) -> str:
    return "evaluation" if opponent == ALONE else f"against {opponent}"


def sparkline(values: list[float], width: int) -> str:
    """At most `width` bars from the lowest to the highest; where there are more values, means of them."""
    count = min(len(values), width)
    if not count:
        return ""
    cuts = [round(i * len(values) / count) for i in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in zip(cuts, cuts[1:], strict=False)]
    low, spread = min(means), max(means) - min(means)
    top = len(BARS) - 1
    return "".join(BARS[round((mean - low) / spread * top) if spread else top // 2] for mean in means)
