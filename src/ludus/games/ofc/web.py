"""OFC in a browser: boards, cards and the points of a hand as JSON, drawn by the `web.js` beside this file.

As on the screen, others' discards and Fantasyland cards stay hidden until the showdown.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ludus.core.view import Json, Move, moves_of
from ludus.games.ofc.cards import EMPTY, card_text
from ludus.games.ofc.hand import STREETS, place_cards, set_fantasy
from ludus.games.ofc.scoring import ROW_SIZE
from ludus.games.ofc.screen import Showdown, row_cards
from ludus.games.ofc.text import ROW_NAMES, row_letters


def texts(cards: np.ndarray) -> list[str]:
    return [card_text(int(card)) for card in cards if card != EMPTY]


class OfcView:
    """A move is an action and a letter for each drawn card, as in `mt-`: its row, or - for the discard."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def show(self, state: np.void, seat: int | None, recent: Sequence[Move] = ()) -> Json:
        mover = int(state["turn"])
        seats = range(self.rules.spec.seats)
        return {
            "hand": int(state["hand"]) + 1,
            "hands": int(state["hands"]),
            "street": int(state["street"]) + 1,
            "streets": STREETS,
            "button": int(state["button"]),
            "seat": mover if seat is None else seat,
            "sizes": ROW_SIZE.tolist(),
            "row_names": list(ROW_NAMES),
            "boards": [self._board(state, other, seat in (None, other), recent) for other in seats],
            "drawn": texts(state["drawn"]) if seat in (None, mover) else [],
            "moves": [[action, row_letters(action)] for action in moves_of(self.rules, state, seat)],
        }

    def _board(self, state: np.void, seat: int, mine: bool, recent: Sequence[Move]) -> Json:
        fresh: list[str] = []
        for move in recent:
            if int(move.state["turn"]) == seat and move.state["hand"] == state["hand"]:
                fresh += texts(move.state["drawn"])
        cards, discards = int(state["fantasy_cards"][seat]), state["discards"][seat]
        count = int((discards != EMPTY).sum())
        board = state["board"][seat]
        return {
            "seat": seat,
            "points": float(state["points"][seat]),
            "rows": [[] if cards else texts(row_cards(board, row)) for row in range(3)],
            "fresh": [card for card in fresh if not cards and card in texts(board)],
            "discards": texts(discards) if mine else [""] * count,
            "fantasy": cards,
            "fantasy_hand": texts(state["fantasy_hand"][seat]) if mine else [],
        }

    def settled(self, before: np.void, action: int, after: np.void, seat: int | None) -> Json | None:
        if after["hand"] == before["hand"]:
            return None
        hand = np.array([before])
        place_cards(hand[0], action)
        set_fantasy(hand[0])
        showdown = Showdown(hand[0], -1 if seat is None else seat)
        boards = [self._final(showdown, before, other) for other in range(showdown.seats)]
        lines = [line.plain for line in showdown.lines(before, after)]
        return {
            "title": f"Showdown of hand {int(before['hand']) + 1}",
            "boards": boards,
            "lines": lines,
            "text": lines[-1],
        }

    def _final(self, showdown: Showdown, before: np.void, seat: int) -> Json:
        board = showdown.hand["board"][seat]
        return {
            "name": showdown.names[seat],
            "fantasy": int(before["fantasy_cards"][seat]),
            "foul": not showdown.stands[seat],
            "rows": [
                {"cards": texts(row_cards(board, row)), "name": showdown.row_name(seat, row).plain}
                for row in range(3)
            ],
        }
