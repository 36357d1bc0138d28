"""Tic-tac-toe as people see it: a board with a letter for each column and a number for each row."""

COLOURS = {".": "dim", "X": "bold cyan", "O": "bold magenta"}


class TicTacToeScreen:
    def __init__(self, rules):
        self.rules = rules

    def show(self, state, seat):
        lines = []
        for number, row in zip("321", self.rules.text(state).split("/"), strict=True):
            marks = " ".join(f"[{COLOURS[mark]}]{mark}[/]" for mark in row)
            lines.append(f"  [dim]{number}[/] {marks}")
        return "\n".join([*lines, "    [dim]a b c[/]"])

    def expects(self, state):
        return f"{'XO'[state['moves'] % 2]} to a cell, as in b2"

    def help(self, state):
        free = [self.rules.action_text(state, cell) for cell in range(9) if state["cells"][cell] == 0]
        return "Three in a line win. Free cells: " + " ".join(free)

    def told(self, state, action):
        return f"{'XO'[state['moves'] % 2]} to {self.rules.action_text(state, action)}"

    def settled(self, before, action, after):
        if after["winner"]:
            return f"{self.show(after, 0)}\n{'XO'[after['winner'] - 1]} has three in a line."
        return f"{self.show(after, 0)}\nNobody wins." if after["moves"] == 9 else None
