"""The dashboard of a training: a live screen in a terminal, plain lines elsewhere. Reads metrics only.

Everything has a fixed place that depends on the terminal's size and on the names shown, never on values.
"""

import contextlib
import io
import sys
import textwrap
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from ludus.config import Config
from ludus.store.run import quoted
from ludus.ui.sections import Columns, Section, game_rows, number, sections
from ludus.ui.trend import Metrics, Trends, sparkline

TROUBLES = (
    "worker replaced", "rolled back", "checkpoint skipped", "checkpoint failed", "not exact", "not notified",
    "mirror", "mirror incomplete", "weights only", "moved aside", "damaged lines", "tensorboard failed",
    "evaluation failed", "node joined", "node left", "node refused", "stopping",
)  # fmt: skip
"""Events that are shown, with their reason; how a training ended is told by the command."""
CELL, GAP = 24, 2
"""Least width of a column with a name and a value, and the space between columns."""
HALF = 42
"""Width of the first half of the lines above."""
LINE_S, LINE_SHARE = 10.0, 0.01
"""Plain lines come no closer than this, nor than this share of the time so far."""
STATUS_S = 3.0
"""Seconds between two plain lines of what is being done before the first metrics."""
TROUBLES_SHOWN = 3


class Dashboard:
    """Show a training's metrics as they come. Use as a context."""

    def __init__(
        self, config: Config, columns: Columns = None, history: Iterable[Metrics] = (),
        console: Console | None = None,
    ) -> None:  # fmt: skip
        """history: metrics of the run before it was resumed"""
        self.config, self.columns = config, columns
        self.console = console or Console(highlight=False, emoji=False)
        self.trends, self._history = Trends(), list(history)
        self.metrics: Metrics = {}
        """The newest; a name that was there once stays, so that rows keep their places."""
        self.troubles: list[str] = []
        self._status, self._status_at, self._line_at = "", time.monotonic(), 0.0
        self._pending = False
        self._live: Live | None = None
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()  # of what is shown; taken last, because drawing takes it too

    def __enter__(self) -> "Dashboard":
        if self.console.is_terminal:
            self._live = Live(self, console=self.console, auto_refresh=False, redirect_stderr=False)
            self._stack.enter_context(contextlib.redirect_stderr(_Stderr(self)))
            self._stack.enter_context(self._live)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._pending:
            self._print_line()
        self._status = ""
        if self._live and not self.metrics:
            self._live.transient = True  # it never came to anything: leave no empty panel
        self._refresh()
        self._stack.close()
        self._live = None

    def summary(self, folder: Path, native: bool, stopped: bool) -> None:
        """How a training ended: what came of it, where it is, and what can be done next."""
        if not self.metrics:
            return
        made, spent = self.metrics["decisions"], self.metrics["seconds"]
        lines = [f"{'stopped' if stopped else 'done'} after {made:,} decisions in {clock(spent)}"]
        for trend in self.trends.shown():
            if trend.values:
                value, at = trend.best
                now = f"{trend.label:<16} {trend.value():>16}  {trend.won():>9}"
                lines.append(f"  {now}  best {value:+.2f} at {at:,} decisions")
        more = f"--decisions {2 * made}"
        if self.config.seconds and spent >= self.config.seconds:
            more = f"--seconds {2 * self.config.seconds:.0f}"
        run = quoted(folder)
        commands = [f"ludus eval {run}"]
        if native:
            commands.append(f"ludus play {self.config.game} --run {run}")
        commands.append(f"ludus resume {run}" + ("" if stopped else f" {more}"))
        lines += [f"the run is in {folder}", "next:", *(f"  {command}" for command in commands)]
        for line in lines:
            self.console.print(line, markup=False, soft_wrap=True)

    # ---- what is told

    def expect(self, opponents: Iterable[str]) -> None:
        """There will be evaluations against these."""
        self.trends.expect(opponents)

    def status(self, text: str) -> None:
        """What happens now, as long as there is nothing else to see."""
        with self._lock:
            self._status = text
        if self._live:
            return self._refresh()
        now = time.monotonic()
        if not self.metrics and now - self._status_at >= STATUS_S:
            self._status_at = now
            self.console.print(text, markup=False, soft_wrap=True)

    def tell(self, what: str, details: dict[str, Any]) -> None:
        """An event that people should know of while they watch. May be called from any thread."""
        if what not in TROUBLES:
            return
        text = f"{what}: {details['reason']}"
        with self._lock:
            self.troubles.append(text)
        if self._live:
            self._refresh()
        else:
            self.console.print(text, markup=False, soft_wrap=True)

    def show(self, metrics: Metrics) -> None:
        with self._lock:
            for before in self._history:
                if before.get("decisions", metrics["decisions"]) < metrics["decisions"]:
                    self.trends.read(before)
            self._history = []
            self.metrics, self._status = {**self.metrics, **metrics}, ""
            self.trends.read(metrics)
        if self._live:
            return self._refresh()
        now = time.monotonic()
        self._pending = True
        if now - self._line_at >= max(LINE_S, LINE_SHARE * metrics["seconds"]) or not self._line_at:
            self._line_at = now
            self._print_line()

    def _refresh(self) -> None:
        if self._live:
            self._live.refresh()

    # ---- plain lines

    def _print_line(self) -> None:
        self._pending = False
        self.console.print(self._line(), markup=False, soft_wrap=True)

    def _line(self) -> str:
        metrics = self.metrics
        parts = [
            f"{metrics['decisions']:,} decisions ({100 * self.share():.0f} %, {self.left()} left)",
            f"{metrics['speed/now']:,.0f}/s",
        ]
        parts += [
            " ".join(filter(None, (trend.label, trend.value(), trend.won())))
            for trend in self.trends.shown()
            if trend.values and trend.label != "score"
        ]
        parts.append(
            " ".join(
                f"{name} {value if isinstance(value, str) else number(value)}"
                for name, value in game_rows(metrics, self.columns)
            )
        )
        return "; ".join(filter(None, parts))

    # ---- figures

    def share(self) -> float:
        """Of the budget that is used."""
        by_time = self.metrics["seconds"] / self.config.seconds if self.config.seconds else 0.0
        return min(1.0, max(self.metrics["decisions"] / self.config.decisions, by_time))

    def left(self) -> str:
        share = self.share()
        return clock(self.metrics["seconds"] * (1 / share - 1)) if share else "-"

    # ---- the screen

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        title = f"ludus train {self.config.game} ({self.config.preset})"
        with self._lock:
            width, height = options.max_width - 4, console.height - 3  # the border, and a line for the cursor
            if not self.metrics:
                lines = [Text(self._status or "starting"), *self._trouble_lines(width)]
                yield Panel(Group(*lines), title=title, border_style="cyan")
                return
            head = [*self._head(width), *self._trend_lines(width), *self._trouble_lines(width)]
            body, left_out = arrange(sections(self.metrics, self.columns), width, height - len(head) - 1)
            foot = f"+{left_out} more in metrics.jsonl" if left_out else None
            if not left_out and height - len(head) - len(body) > 2:
                body += [Text(), *_wrapped(self.metrics.get("layout", ""), width, "dim")]
        lines = [*head, Text(), *body]
        yield Panel(Group(*lines), title=title, subtitle=foot, border_style="cyan")

    def _head(self, width: int) -> list[Text]:
        """Progress and speed."""
        metrics, share = self.metrics, self.share()
        tail = f" {100 * share:5.1f} %  {clock(metrics['seconds']):>12} so far  {self.left():>12} left"
        room = max(width - len(tail), 8)
        full = round(share * room)
        limit = f"{self.config.decisions:,}"
        size = max(len(limit), 9)
        made = f"{metrics['decisions']:>{size},} of {limit} decisions"
        pace = f"{metrics['speed/now']:>{size},.0f} decisions/s now"
        lines = [Text.assemble(("━" * full, "green"), ("━" * (room - full), "dim"), (tail, "bold"))]
        lines.append(Text(f"{made:<{HALF}}{metrics['games']:>11,} games"))
        lines.append(Text(f"{pace:<{HALF}}{metrics['speed/overall']:>11,.0f} decisions/s overall"))
        if self._status:
            lines += _wrapped(self._status, width, "dim")
        return lines

    def _trend_lines(self, width: int) -> list[Text]:
        """Is it getting better?"""
        shown = self.trends.shown()
        name = max((cell_len(trend.label) for trend in shown), default=0)
        lines = []
        for trend in shown:
            text = Text(set_cell_size(trend.label, name) + "  ", no_wrap=True)
            if not trend.values:
                lines.append(text.append("not evaluated yet", "dim"))
                continue
            text.append(f"{trend.value():>16}", "bold").append(f"  {trend.won():>9}  ")
            text.append(sparkline(trend.values, max(width - cell_len(text.plain), 0)), "green")
            lines.append(text)
        if best := self._best():
            lines += _wrapped(f"{'best':<{name}}  {best}", width)
        return lines

    def _best(self) -> str:
        judge = self.trends.judge
        if judge is None:
            return ""
        value, made = judge.best
        return f"{value:>+9.2f} {judge.label} at {made:,} decisions"

    def _trouble_lines(self, width: int) -> list[Text]:
        """The newest; all of them are among the run's events."""
        lines: list[Text] = []
        earlier = len(self.troubles) - TROUBLES_SHOWN
        if earlier > 0:
            lines.append(Text(f"+{earlier} earlier troubles in events.jsonl", "yellow"))
        for text in self.troubles[-TROUBLES_SHOWN:]:
            lines += _wrapped(text, width, "bold yellow")
        return lines


class _Stderr(io.TextIOBase):
    """What is written while the screen is live: whole lines stay above it, others are its status."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard, self.text, self.real = dashboard, "", sys.stderr

    def write(self, text: str) -> int:
        *lines, self.text = (self.text + text).split("\n")
        for line in lines:
            self.dashboard.console.print(line, markup=False, soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        if self.text:
            self.dashboard.status(self.text.strip())

    def fileno(self) -> int:
        return self.real.fileno()


def arrange(found: list[Section], width: int, height: int) -> tuple[list[Text], int]:
    """Sections in columns of one width, the important ones first: lines, and how many rows found no place."""
    count = max(1, (width + GAP) // (CELL + GAP))
    cell = (width - GAP * (count - 1)) // count
    for space in (1, 0):
        columns: list[list[Text]] = [[] for _ in range(count)]
        left_out = 0
        for section in found:
            left_out += _place(section, min(columns, key=len), cell, height, space)
        if not left_out:
            break
    return [
        Text((" " * GAP), no_wrap=True).join(
            column[line] if line < len(column) else Text(" " * cell) for column in columns
        )
        for line in range(max(map(len, columns)))
    ], left_out


def _place(section: Section, column: list[Text], cell: int, height: int, space: int) -> int:
    """Write what fits below what is there; how many rows don't."""
    blank = space if column else 0
    rows = [_cell(name, value, cell) for name, value in section.rows]
    if len(column) + blank + 1 + len(rows[0]) > height:
        return len(rows)
    column += [Text(" " * cell)] * blank
    column.append(Text(set_cell_size(section.title, cell), "bold cyan"))
    for place, lines in enumerate(rows):
        if len(column) + len(lines) > height:
            return len(rows) - place
        column += lines
    return 0


def _cell(name: str, value: str | float, width: int) -> list[Text]:
    """A name on the left and its value on the right; in lines of their own if the name is long."""
    room = width - cell_len(name) - 1
    text = value if isinstance(value, str) else number(value, room)
    if room >= max(cell_len(text), 5):
        return [Text(f"{name} ").append(text.rjust(room), "bold")]
    names = [Text(set_cell_size(line, width)) for line in textwrap.wrap(name, width)]
    text = value if isinstance(value, str) else number(value)
    return names + [Text(line.rjust(width), "bold") for line in textwrap.wrap(text, width)]


def _wrapped(text: str, width: int, style: str = "") -> list[Text]:
    return [Text(line, style) for line in textwrap.wrap(text, width, drop_whitespace=False)]


def clock(seconds: float) -> str:
    """As 03:04:05, or 2 d 03:04:05."""
    days, rest = divmod(int(seconds), 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text
