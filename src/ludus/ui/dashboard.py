"""The dashboard of a training: a live screen in a terminal, plain lines elsewhere. Reads metrics only."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from ludus.config import Config

Metrics = dict[str, Any]
TROUBLES = (
    "worker replaced", "rolled back", "checkpoint skipped", "checkpoint failed", "not exact", "not notified",
    "mirror", "mirror incomplete", "weights only", "moved aside", "damaged lines", "tensorboard failed",
)  # fmt: skip
"""Events that are shown, with their reason; how a training ended is told by the command."""

PHASES = ("inference", "search", "stepping", "teaching")
"""Of the workers' time."""


class Dashboard:
    """Show a training's metrics as they come. Use as a context."""

    def __init__(self, config: Config, columns: Callable[[dict[str, float]], dict[str, str]] | None) -> None:
        self.config, self.columns = config, columns
        self.console = Console(stderr=False, highlight=False)
        self._live: Live | None = None

    def __enter__(self) -> "Dashboard":
        if self.console.is_terminal:
            self._live = Live(console=self.console, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live:
            self._live.__exit__(*error)

    def tell(self, what: str, details: dict[str, Any]) -> None:
        """A line for an event that people should know of while they watch, which stays."""
        if what in TROUBLES:
            self.console.print(f"{what}: {details['reason']}", markup=False, soft_wrap=True)

    def show(self, metrics: Metrics) -> None:
        if self._live:
            self._live.update(self._screen(metrics), refresh=True)
        else:
            self.console.print(self._line(metrics), soft_wrap=True)

    def _line(self, metrics: Metrics) -> str:
        game = " ".join(f"{name} {text}" for name, text in self._game(metrics).items())
        return (
            f"{metrics['decisions']:,} decisions ({100 * self._share(metrics):.0f} %, "
            f"{self._left(metrics)} left), "
            f"{metrics['speed/now']:,.0f}/s now, {metrics['speed/overall']:,.0f}/s overall, "
            f"{metrics['cpu/all']:.1f} cores{self._search(metrics)}; {game}"
        )

    def _share(self, metrics: Metrics) -> float:
        by_time = metrics["seconds"] / self.config.seconds if self.config.seconds else 0.0
        return min(1.0, max(metrics["decisions"] / self.config.decisions, by_time))

    def _left(self, metrics: Metrics) -> str:
        share = self._share(metrics)
        left = metrics["seconds"] * (1 / share - 1) if share else 0.0
        return time.strftime("%H:%M:%S", time.gmtime(left))

    def _game(self, metrics: Metrics) -> dict[str, str]:
        """What people watch in this game."""
        stats = {name[5:]: value for name, value in metrics.items() if name.startswith("game/")}
        if not stats:
            return {}
        shown = {"score": f"{stats.pop('score'):+.2f}"}
        return shown | (
            self.columns(stats) if self.columns else {name: f"{value:.2f}" for name, value in stats.items()}
        )

    def _screen(self, metrics: Metrics) -> Panel:
        share = self._share(metrics)
        head = Table.grid(padding=(0, 2))
        head.add_row(
            ProgressBar(total=1.0, completed=share, width=40), f"{100 * share:.1f} %",
            f"{self._left(metrics)} left",
            f"[bold]{metrics['decisions']:,}[/] decisions", f"{metrics['games']:,} games",
        )  # fmt: skip
        speed = (
            f"[bold]{metrics['speed/now']:,.0f}[/] decisions/s now, {metrics['speed/overall']:,.0f} overall; "
            f"{metrics['layout']}; policy lag {metrics['policy/lag']:.1f}{self._search(metrics)}"
        )
        groups = Table.grid(padding=(0, 3))
        groups.add_row(
            _column("game", self._game(metrics)),
            _column("learning", _numbers(metrics, ("losses/", "policy/", "value/", "replay/"))),
            _column(
                "time, s",
                _numbers(metrics, ("time/", *(f"workers/{name}" for name in PHASES))),
            ),
            _column("machine", self._machine(metrics)),
            _column("share of seats", _numbers(metrics, ("seated/",))),
            _column("rating", _numbers(metrics, ("rating/",))),
        )
        title = f"ludus train {self.config.game} ({self.config.preset})"
        return Panel(Group(head, speed, "", groups), title=title, border_style="cyan")

    def _search(self, metrics: Metrics) -> str:
        """Of trainings that search."""
        if "speed/simulations" not in metrics:
            return ""
        return (
            f"; {metrics['speed/simulations']:,.0f} simulations/s, "
            f"{metrics['speed/games_min']:,.0f} games/min, batches {100 * metrics['search/fill']:.0f} % full"
        )

    def _machine(self, metrics: Metrics) -> dict[str, str]:
        return {
            "cores busy": f"{metrics['cpu/all']:.2f}",
            "learner": f"{metrics['cpu/learner']:.2f}",
            "workers": f"{metrics['cpu/workers']:.2f} in {metrics['workers/count']}",
            "memory": f"{metrics['memory/bytes'] / 2**30:.2f} GiB",
            "replaced": str(metrics["workers/replaced"]),
        }


def _numbers(metrics: Metrics, prefixes: tuple[str, ...]) -> dict[str, str]:
    return {
        name.partition("/")[2]: f"{value:.3g}"
        for name, value in metrics.items()
        if name.startswith(prefixes) and isinstance(value, float | int)
    }


def _column(title: str, rows: dict[str, str]) -> Table:
    table = Table(title, "", box=None, pad_edge=False, header_style="bold cyan")
    table.columns[1].justify = "right"
    for name, text in rows.items():
        table.add_row(name, text)
    return table
