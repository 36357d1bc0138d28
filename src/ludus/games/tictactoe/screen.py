"""Tic-tac-toe as people see it: a board with a letter for each column and a number for each row."""

import numpy as np

COLOURS = {".": "dim", "X": "bold #0891b2", "O": "bold #d97706"}


class TicTacToeScreen:
    marks, colours, labels = "XO", ("#0891b2", "#d97706"), ("321", "abc")

    def __init__(self, rules):
        self.rules = rules

    def cells(self, state):
        return state["cells"].reshape(3, 3).astype(np.int8) - 1

    def covers(self, state, action):
        return [divmod(action, 3)]

    def show(self, state, seat, fresh=()):
        lines = []
        for row, marks in enumerate(self.rules.text(state).split("/")):
            styles = [COLOURS[mark] + " reverse" * ((row, at) in fresh) for at, mark in enumerate(marks)]
            cells = (f"[{style}]{mark}[/]" for style, mark in zip(styles, marks, strict=True))
            lines.append(f"  [dim]{'321'[row]}[/] {' '.join(cells)}")
        return "\n".join([*lines, "    [dim]a b c[/]"])

    def expects(self, state):
        return f"{'XO'[state['moves'] % 2]} to a cell, as in b2"

    def help(self, state):
        free = [self.rules.action_text(state, cell) for cell in range(9) if state["cells"][cell] == 0]
        return "Three in a line win. Free cells: " + " ".join(free)

    def told(self, state, action):
        return f"{'XO'[state['moves'] % 2]} to {self.rules.action_text(state, action)}"

    def settled(self, before, action, after, seat):
        if after["winner"]:
            won = "you win" if after["winner"] == seat + 1 else "you lose"
            return f"{self.show(after, 0)}\n{'XO'[after['winner'] - 1]} has three in a line: {won}."
        return f"{self.show(after, 0)}\nNobody wins." if after["moves"] == 9 else None
