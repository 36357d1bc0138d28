"""Connect four as people see it: the board, with a number below each column."""

from ludus.games.connect4.rules import CELLS

COLOURS = {".": "dim", "X": "bold red", "O": "bold yellow"}


class Connect4Screen:
    def __init__(self, rules):
        self.rules = rules

    def show(self, state, seat):
        rows = self.rules.text(state).split("/")
        lines = ["  " + " ".join(f"[{COLOURS[mark]}]{mark}[/]" for mark in row) for row in rows]
        return "\n".join([*lines, "  [dim]1 2 3 4 5 6 7[/]"])

    def expects(self, state):
        return f"{'XO'[state['moves'] % 2]} to a column, 1 to 7"

    def help(self, state):
        top = self.rules.text(state).split("/")[0]
        free = [str(column + 1) for column, mark in enumerate(top) if mark == "."]
        return "Discs fall to the lowest free cell; four in a line win. Open columns: " + " ".join(free)

    def told(self, state, action):
        return f"{'XO'[state['moves'] % 2]} to column {self.rules.action_text(state, action)}"

    def settled(self, before, action, after):
        if after["winner"]:
            return f"{self.show(after, 0)}\n{'XO'[after['winner'] - 1]} has four in a line."
        return f"{self.show(after, 0)}\nNobody wins." if after["moves"] == CELLS else None
