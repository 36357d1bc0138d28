"""Connect four as people see it: the board, with a number below each column."""

from typing import Any

import numpy as np
from rich.console import RenderableType

from ludus.core.screen import Cell
from ludus.games.connect4.board import CELLS
from ludus.games.connect4.rules import MARKS

COLOURS = {".": "dim", "X": "bold #dc2626", "O": "bold #eab308"}


class Connect4Screen:
    marks, colours, labels = "XO", ("#dc2626", "#eab308"), ([""] * 6, "1234567")

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def cells(self, state: np.void) -> np.ndarray:
        rows = self.rules.text(state).split("/")
        return np.array([[MARKS.index(mark) - 1 for mark in row] for row in rows], np.int8)

    def covers(self, state: np.void, action: int) -> list[Cell]:
        return [(int((self.cells(state)[:, action] < 0).sum()) - 1, action)]

    def show(self, state: np.void, seat: int, fresh: Any = ()) -> RenderableType:
        lines = []
        for row, marks in enumerate(self.rules.text(state).split("/")):
            styles = [COLOURS[mark] + " reverse" * ((row, at) in fresh) for at, mark in enumerate(marks)]
            cells = (f"[{style}]{mark}[/]" for style, mark in zip(styles, marks, strict=True))
            lines.append("  " + " ".join(cells))
        return "\n".join([*lines, "  [dim]1 2 3 4 5 6 7[/]"])

    def expects(self, state: np.void) -> str:
        return f"{'XO'[state['moves'] % 2]} to a column, 1 to 7"

    def help(self, state: np.void) -> str:
        top = self.rules.text(state).split("/")[0]
        free = [str(column + 1) for column, mark in enumerate(top) if mark == "."]
        return "Discs fall to the lowest free cell; four in a line win. Open columns: " + " ".join(free)

    def told(self, state: np.void, action: int) -> RenderableType:
        return f"{'XO'[state['moves'] % 2]} to column {self.rules.action_text(state, action)}"

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> RenderableType | None:
        if after["winner"]:
            won = "you win" if after["winner"] == seat + 1 else "you lose"
            return f"{self.show(after, 0)}\n{'XO'[after['winner'] - 1]} has four in a line: {won}."
        return f"{self.show(after, 0)}\nNobody wins." if after["moves"] == CELLS else None
