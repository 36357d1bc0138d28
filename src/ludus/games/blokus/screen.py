"""Blokus as people see it: the board in colour, and the pieces that are left."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ludus.core.screen import Cell
from ludus.games.blokus.pieces import NAMES, PIECES
from ludus.games.blokus.text import LETTERS, board_marks, piece_name, placed_squares, seen_bit

COLOURS = ("#2563eb", "#ca8a04", "#dc2626", "#16a34a")
FRESH = ("#93c5fd", "#fde047", "#fca5a5", "#86efac")
"""Lighter ones, for pieces that were just placed."""
HALVES = {"..": " ", "#.": "▀", ".#": "▄", "##": "█"}
"""Two squares, one above the other, as one character."""


class BlokusScreen:
    def __init__(self, rules: Any) -> None:
        self.rules, self.marks, self.side = rules, rules.layout.marks, rules.board.side
        self.colours = COLOURS[: len(self.marks)]
        self.labels: tuple[Sequence[str], Sequence[str]] = (
            [str(self.side - row) for row in range(self.side)],
            LETTERS[: self.side],
        )

    def cells(self, state: np.void) -> np.ndarray:
        return board_marks(self.rules, state)

    def covers(self, state: np.void, action: int) -> list[Cell]:
        if action == self.rules.board.placements:
            return []
        return placed_squares(self.rules, int(state["turn"]), action)

    def show(self, state: np.void, seat: int, fresh: Sequence[Cell] = ()) -> RenderableType:
        table = Table.grid(padding=(0, 4))
        table.add_column(no_wrap=True)  # the board stays whole, and what is beside it wraps
        table.add_column()
        table.add_row(self._board(state, seat, fresh), Group(*self._seats(state, seat)))
        return Group("", table, Text("your pieces:", "dim"), self._pieces(state, seat))

    def _board(self, state: np.void, seat: int, fresh: Sequence[Cell] = ()) -> Group:
        """Squares in the colour of their seat, fresh ones with a *; + where the seat may go on from."""
        marks, lines = board_marks(self.rules, state), []
        for row in range(self.side):
            line = Text.assemble((f"{self.labels[0][row]:>2} ", "dim"))
            for column in range(self.side):
                owner = marks[row, column]
                if (row, column) in fresh:
                    line.append(f"{self.marks[owner]}*", f"bold #000000 on {FRESH[owner]}")
                elif owner >= 0:
                    line.append(f"{self.marks[owner]} ", f"bold #ffffff on {COLOURS[owner]}")
                elif seen_bit(self.rules, state["corners"][seat], seat, (row, column)):
                    line.append("+ ", f"bold {COLOURS[seat]}")
                else:
                    line.append("· ", "dim")
            lines.append(line)
        lines.append(Text("   " + " ".join(LETTERS[: self.side]), "dim"))
        return Group(*lines)

    def _seats(self, state: np.void, seat: int) -> Iterator[Text]:
        for other in range(self.rules.spec.seats):
            name = f"{self.marks[other]} " + (f"you (seat {other})" if other == seat else f"seat {other}")
            left = [piece for n, piece in enumerate(NAMES) if state["left"][other] >> n & 1]
            stuck = ", has no move left" if state["stuck"] >> other & 1 else ""
            yield Text(name, f"bold {COLOURS[other]}")
            yield Text(f"{state['points'][other]} points{stuck}")
            yield Text(f"{len(left)} pieces left: {' '.join(left)}\n", "dim")

    def _pieces(self, state: np.void, seat: int) -> Group:
        left = [name for n, name in enumerate(NAMES) if state["left"][seat] >> n & 1]
        return Group(*(self._drawn(left[start : start + 11], seat) for start in range(0, len(left), 11)))

    def _drawn(self, names: list[str], seat: int) -> Table:
        """Pieces side by side, each with its name below."""
        table = Table.grid(padding=(0, 2))
        table.add_row(*(Text("\n".join(halves(PIECES[name])), COLOURS[seat]) for name in names))
        table.add_row(*(Text(name, "dim") for name in names))
        return table

    def expects(self, state: np.void) -> str:
        if state["stuck"] >> state["turn"] & 1:
            return "none of your pieces fits: pass"
        return "a piece and a square (F e9), or all squares (d9,e9,e10)"

    def help(self, state: np.void) -> str:
        legal = np.zeros((1, self.rules.spec.actions), bool)
        self.rules.legal(np.array([state]), legal)
        found = np.flatnonzero(legal[0])
        if found[0] == self.rules.board.placements:
            return "None of your pieces fits, so you can only pass."
        counts = np.bincount(self.rules.board.placement_piece[found], minlength=len(NAMES))
        fits = ", ".join(f"{name} ({count})" for name, count in zip(NAMES, counts, strict=True) if count)
        return "\n".join(
            [
                "A piece must touch a corner of your own pieces and none of their edges (+ marks such "
                "corners); the first one covers your start point. Pieces may be turned and flipped.",
                "F e9 places the piece F so that it covers e9. If there are several ways to do that, name "
                "more of its squares (F e9 e11), or take one by its number in the list (F e9 2).",
                f"Ways to place your pieces now: {fits}.",
            ]
        )

    def told(self, state: np.void, action: int) -> RenderableType:
        if action == self.rules.board.placements:
            return "passes"
        return f"{piece_name(self.rules, action)} to {self.rules.action_text(state, action)}"

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> RenderableType | None:
        if not self.rules.over(np.array([after]))[0]:
            return None
        points = after["points"].tolist()
        names = ["you" if other == seat else f"seat {other}" for other in range(len(points))]
        winners = [name for name, own in zip(names, points, strict=True) if own == max(points)]
        told = ", ".join(f"{name} {own}" for name, own in zip(names, points, strict=True))
        won = f"a draw between {' and '.join(winners)}"
        if len(winners) == 1:
            won = "you win" if winners == ["you"] else f"{winners[0]} wins"
        return Group("", self._board(after, seat), f"Nobody can move. Points: {told}; {won}.")


def halves(drawing: str) -> list[str]:
    """A drawing of PIECES, two rows in one line."""
    rows = drawing.split("/")
    if len(rows) % 2:
        rows.append("." * len(rows[0]))
    return [
        "".join(HALVES[a + b] for a, b in zip(*rows[i : i + 2], strict=True)) for i in range(0, len(rows), 2)
    ]
