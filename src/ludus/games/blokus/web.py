"""Blokus in a browser: the board with everybody's pieces, drawn by the `web.js` beside this file."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ludus.core.view import BoardView, Json, Move
from ludus.games.blokus.pieces import NAMES, PIECES
from ludus.games.blokus.screen import BlokusScreen
from ludus.games.blokus.text import seen_bit


class BlokusView(BoardView):
    """As of a board, with the pieces that are left. A pass takes no cells."""

    def __init__(self, rules: Any) -> None:
        super().__init__(rules, BlokusScreen(rules))
        self.side = rules.board.side

    def show(self, state: np.void, seat: int | None, recent: Sequence[Move] = ()) -> Json:
        return {
            **super().show(state, seat, recent),
            "seat": int(state["turn"]) if seat is None else seat,
            "pieces": PIECES,
            "left": [self._left(state, other) for other in range(self.rules.spec.seats)],
            "points": state["points"].tolist(),
            "stuck": [bool(state["stuck"] >> other & 1) for other in range(self.rules.spec.seats)],
            "corners": self._corners(state, int(state["turn"]) if seat is None else seat),
        }

    def _left(self, state: np.void, seat: int) -> list[str]:
        return [name for number, name in enumerate(NAMES) if state["left"][seat] >> number & 1]

    def _corners(self, state: np.void, seat: int) -> list[int]:
        """Free cells where the seat may go on from."""
        marks, bits = self.screen.cells(state).ravel(), state["corners"][seat]
        return [
            cell
            for cell in range(self.side**2)
            if marks[cell] < 0 and seen_bit(self.rules, bits, seat, divmod(cell, self.side))
        ]
