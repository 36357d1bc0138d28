"""Tic-tac-toe as people see it: a board with a letter for each column and a number for each row."""

from typing import Any

import numpy as np
from rich.console import RenderableType

from ludus.core.screen import Cell

COLOURS = {".": "dim", "X": "bold #0891b2", "O": "bold #d97706"}


class TicTacToeScreen:
    marks, colours, labels = "XO", ("#0891b2", "#d97706"), ("321", "abc")

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def cells(self, state: np.void) -> np.ndarray:
        return state["cells"].reshape(3, 3).astype(np.int8) - 1

    def covers(self, state: np.void, action: int) -> list[Cell]:
        return [divmod(action, 3)]

    def show(self, state: np.void, seat: int, fresh: Any = ()) -> RenderableType:
        lines = []
        for row, marks in enumerate(self.rules.text(state).split("/")):
            styles = [COLOURS[mark] + " reverse" * ((row, at) in fresh) for at, mark in enumerate(marks)]
            cells = (f"[{style}]{mark}[/]" for style, mark in zip(styles, marks, strict=True))
            lines.append(f"  [dim]{'321'[row]}[/] {' '.join(cells)}")
        return "\n".join([*lines, "    [dim]a b c[/]"])

    def expects(self, state: np.void) -> str:
        return f"{'XO'[state['moves'] % 2]} to a cell, as in b2"

    def help(self, state: np.void) -> str:
        free = [self.rules.action_text(state, cell) for cell in range(9) if state["cells"][cell] == 0]
        return "Three in a line win. Free cells: " + " ".join(free)

    def told(self, state: np.void, action: int) -> RenderableType:
        return f"{'XO'[state['moves'] % 2]} to {self.rules.action_text(state, action)}"

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> RenderableType | None:
        if after["winner"]:
            won = "you win" if after["winner"] == seat + 1 else "you lose"
            return f"{self.show(after, 0)}\n{'XO'[after['winner'] - 1]} has three in a line: {won}."
        return f"{self.show(after, 0)}\nNobody wins." if after["moves"] == 9 else None
