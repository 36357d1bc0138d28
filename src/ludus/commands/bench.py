"""`ludus bench`: how fast a table steps on one core, and where the time goes."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from ludus import games, switches
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.core.table import RulesTable, Table

console = Console(highlight=False, emoji=False)


class Timed:
    """Rules that count the time spent in each of their functions."""

    def __init__(self, rules: Any) -> None:
        self.rules, self.spec = rules, rules.spec
        self.spent_ns: dict[str, int] = defaultdict(int)

    def __getattr__(self, name: str) -> Callable:
        function = getattr(self.rules, name)

        def timed(*args: Any) -> Any:
            start = time.perf_counter_ns()
            result = function(*args)
            self.spent_ns[name] += time.perf_counter_ns() - start
            return result

        return timed


class Chooser:
    """Random legal actions for a table, fast enough not to be what is measured."""

    def __init__(self, table: Table, seed: int) -> None:
        from ludus.core.dice import legal_choice

        self.box, self.legal_choice = table.spec.box, legal_choice
        self.rng, self.random = seeds.rows(seed, table.rows), seeds.generator(seed)
        self.rows, self.actions = table.rows, np.zeros(table.rows, np.int32)

    def choose(self, legal: np.ndarray) -> np.ndarray:
        if self.box is None:
            self.legal_choice(legal, self.rng, self.actions)
            return self.actions
        low, high = (np.clip(edge, -1e3, 1e3) for edge in self.box)  # a box may have no edges
        return self.random.uniform(low, high, (self.rows, *low.shape)).astype(np.float32)


def measure(game: str, rows: int, seconds: float, words: list[str]) -> None:
    if rows < 1 or seconds <= 0:
        raise Usage(f"{rows} rows for {seconds} s can't be measured: both must be above 0")
    opened = games.open(game, **switches.parsed(game, words))
    opened.warm_up()
    table = opened.table(rows)
    run_for(table, 0.2)
    decisions, took = run_for(table, seconds)
    speed = decisions / took
    console.print(f"{game}: [bold]{speed:,.0f}[/] decisions/s on one core ({rows:,} rows, {took:.1f} s)")
    if opened.rules is not None:
        _show_parts(opened.rules, rows, min(seconds, 2.0))
    table.close()


def run_for(table: Table, seconds: float) -> tuple[int, float]:
    """Decisions made and seconds taken, choosing included."""
    turn, chooser, steps = table.reset(0), Chooser(table, 1), 0
    chooser.choose(turn.legal)  # compiled now if it ever has to be
    start = time.perf_counter()
    while (took := time.perf_counter() - start) < seconds:
        turn = table.step(chooser.choose(turn.legal))
        steps += 1
    return steps * table.rows, took


def _show_parts(rules: Rules, rows: int, seconds: float) -> None:
    timed = Timed(rules)
    decisions, took = run_for(RulesTable(timed, rows), seconds)  # type: ignore[arg-type]
    grid = Grid("part", "ns/decision", "share", box=None, pad_edge=False)
    rest = took * 1e9
    for name, spent in sorted(timed.spent_ns.items(), key=lambda item: -item[1]):
        if name == "blank":
            continue
        rest -= spent
        grid.add_row(name, f"{spent / decisions:,.1f}", f"{spent / took / 1e7:.0f} %")
    grid.add_row("choosing, table", f"{rest / decisions:,.1f}", f"{rest / took / 1e7:.0f} %")
    console.print(grid)
