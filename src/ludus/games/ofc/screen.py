"""OFC as people see it: boards in colour, and the points of a hand explained.

Shows a seat what it may know: others' discards and Fantasyland cards stay hidden until the showdown.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ludus.games.ofc.cards import EMPTY, JOKER, RANKS, best, card_text, category, value_text
from ludus.games.ofc.hand import STREETS, place_cards, set_fantasy
from ludus.games.ofc.scoring import (
    BOTTOM,
    BOTTOM_ROYALTY,
    FOUL_COST,
    MIDDLE,
    MIDDLE_ROYALTY,
    ROW_SIZE,
    ROW_START,
    SCOOP,
    TOP,
    board_values,
    entry_cards,
    pair_points,
    royalties,
    stays,
    top_royalty,
)
from ludus.games.ofc.text import ROW_NAMES, ROWS, row_letters

SUITS = (("♣", "green"), ("♦", "bright_blue"), ("♥", "red"), ("♠", "bold white"))
ROYALTY = {
    TOP: top_royalty,
    MIDDLE: lambda v: MIDDLE_ROYALTY[category(v)],
    BOTTOM: lambda v: BOTTOM_ROYALTY[category(v)],
}


def card_mark(card: int) -> Text:
    """Two columns: rank and suit, or a numbered joker, as it is typed."""
    if card == EMPTY:
        return Text("··", "dim")
    if card >= JOKER:
        return Text(card_text(card), "bold magenta")
    suit, colour = SUITS[card % 4]
    return Text(RANKS[card // 4] + suit, colour)


def card_line(cards: np.ndarray) -> Text:
    return Text(" ").join(card_mark(int(card)) for card in cards)


def row_cards(board: np.ndarray, row: int) -> np.ndarray:
    return board[ROW_START[row] : ROW_START[row] + ROW_SIZE[row]]


class OfcScreen:
    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def show(self, state: np.void, seat: int) -> RenderableType:
        others = [(seat + ahead) % state["seats"] for ahead in range(state["seats"])]
        boards = Columns([self._board(state, other, other == seat) for other in others])
        drawn = [int(card) for card in state["drawn"] if card != EMPTY]
        line = Text("your cards: ")
        for number, card in enumerate(drawn, 1):
            line.append(f"  {number} ", "dim").append(card_mark(card))
        mine = state["discards"][seat]
        if (mine != EMPTY).any():
            line.append("     discarded: ", "dim").append(card_line(mine[mine != EMPTY]))
        return Group("", self._heading(state), boards, line)

    def _heading(self, state: np.void) -> Text:
        return Text(
            f"hand {state['hand'] + 1} of {state['hands']}, street {state['street'] + 1} of {STREETS}, "
            f"button at seat {state['button']}"
        )

    def _board(self, state: np.void, seat: int, mine: bool) -> Panel:
        title = f"you (seat {seat})" if mine else f"seat {seat}"
        cards = state["fantasy_cards"][seat]
        if cards and mine:
            hand = state["fantasy_hand"][seat][:cards]
            body = Group(f"Fantasyland, {cards} cards:", card_line(hand[:9]), card_line(hand[9:]))
        elif cards:
            body = Group("Fantasyland:", f"{cards} cards", "face down")
        else:
            body = Group(*(self._row(state["board"][seat], row) for row in range(3)))
        points = f"{state['points'][seat]:+g}"
        return Panel(body, title=title, subtitle=points, width=27 if mine and cards else 23)

    def _row(self, board: np.ndarray, row: int) -> Text:
        indent = "   " if row == TOP else ""
        return Text.assemble((f"{ROWS[row]} ", "dim"), indent, card_line(row_cards(board, row)))

    def expects(self, state: np.void) -> str:
        if state["street"] == 0:
            return "a row (t, m, b) for each of your 5 cards, as in ttmbb"
        return "a row for each of your 3 cards and - for the one you discard, as in mb-"

    def help(self, state: np.void) -> str:
        rooms = ROW_SIZE - state["count"][state["turn"]]
        room = ", ".join(f"{name} {left}" for name, left in zip(ROW_NAMES, rooms, strict=True))
        lines = [
            f"Room: {room}. Letters stand for your cards from left to right: t top, m middle, b bottom.",
            "Cards can be named too: As:t 7d:b X1:- (X1 and X2 are the jokers).",
            "A row may not be stronger than the row below it, or the board fouls; equal rows stand. "
            "QQ or better on top, without a foul, leads to Fantasyland.",
        ]
        return "\n".join(lines)

    def told(self, state: np.void, action: int) -> RenderableType:
        """Which cards went where; a discard is face down."""
        told = Text()
        drawn = [int(card) for card in state["drawn"] if card != EMPTY]
        letters = row_letters(action)
        for row, name in enumerate(ROW_NAMES):
            cards = [card for card, letter in zip(drawn, letters, strict=True) if letter == ROWS[row]]
            if cards:
                told.append(card_line(np.array(cards))).append(f" {name}   ", "dim")
        return told

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> RenderableType | None:
        if after["hand"] == before["hand"]:
            return None
        hand = np.array([before])
        place_cards(hand[0], action)
        set_fantasy(hand[0])
        return Showdown(hand[0], seat).explained(before, after)


class Showdown:
    """One finished hand: what each board is worth, and who pays whom, as told to `reader`."""

    def __init__(self, hand: np.void, reader: int) -> None:
        self.hand, self.seats = hand, int(hand["seats"])
        self.names = ["you" if seat == reader else f"seat {seat}" for seat in range(self.seats)]
        self.reader = reader
        self.values = np.zeros((self.seats, 3), np.int64)
        boards = hand["board"]
        self.stands = [bool(board_values(boards[seat], self.values[seat])) for seat in range(self.seats)]
        for seat in range(self.seats):
            if not self.stands[seat]:  # its rows still have names
                for row in range(3):
                    self.values[seat, row] = best(row_cards(boards[seat], row), ROW_SIZE[row])
        self.won = np.zeros(self.seats)

    def explained(self, before: np.void, after: np.void) -> Panel:
        lines = self.lines(before, after)
        return Panel(Group(self._boards(before), *lines), title=f"showdown of hand {before['hand'] + 1}")

    def lines(self, before: np.void, after: np.void) -> list[Text]:
        """Who pays whom and why, who earns Fantasyland, and the sums."""
        self.won[:] = 0
        lines = [*self._pairs()]
        for seat in range(self.seats):
            lines += self._fantasyland(seat)
        lines.append(Text(f"This hand: {self._points(self.won, '+g')}", "bold"))
        return [*lines, *self._beyond(before, after)]

    def _boards(self, before: np.void) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for seat in range(self.seats):
            fantasy = " (Fantasyland)" if before["fantasy_cards"][seat] else ""
            table.add_column(f"{self.names[seat]}{fantasy}")
        for row, name in enumerate(ROW_NAMES):
            table.add_row(
                name, *(card_line(row_cards(board, row)) for board in self.hand["board"][: self.seats])
            )
            table.add_row("", *(self.row_name(seat, row) for seat in range(self.seats)))
        return table

    def _points(self, points: np.ndarray, form: str) -> str:
        return ", ".join(
            f"{name} {one:{form}}" for name, one in zip(self.names, points.tolist(), strict=True)
        )

    def _does(self, seat: int, verb: str) -> str:
        """`You foul`, `Seat 1 fouls`"""
        return f"{self.names[seat].capitalize()} {verb if seat == self.reader else verb + 's'}"

    def row_name(self, seat: int, row: int) -> Text:
        value = int(self.values[seat, row])
        royalty = int(ROYALTY[row](value)) if self.stands[seat] else 0
        name = value_text(value) + (f", royalty {royalty}" if royalty else "")
        return Text(name, "dim" if self.stands[seat] else "red")

    def _pairs(self) -> Iterator[Text]:
        """A line for each two seats, and their points into `won`."""
        for seat in range(self.seats):
            if not self.stands[seat]:
                yield Text(f"{self._does(seat, 'foul')}: a row is stronger than the row below it.", "red")
        for first in range(self.seats):
            for second in range(first + 1, self.seats):
                stand = self.stands[first], self.stands[second]
                points = int(pair_points(self.values[first], stand[0], self.values[second], stand[1]))
                self.won[first] += points
                self.won[second] -= points
                why = self._why(first, second)
                yield Text(f"{self.names[first]} against {self.names[second]}: {points:+d}  ({why})")

    def _why(self, first: int, second: int) -> str:
        bonus = [int(royalties(self.values[seat])) if self.stands[seat] else 0 for seat in (first, second)]
        if not self.stands[first] and not self.stands[second]:
            return "both foul, nobody pays"
        if not self.stands[first] or not self.stands[second]:
            fouler = second if self.stands[first] else first
            return f"{self._does(fouler, 'foul').lower()}: {FOUL_COST}, and royalties {max(bonus)}"
        signs = np.sign(self.values[first] - self.values[second])
        rows = ", ".join(f"{name} {sign:+d}" for name, sign in zip(ROW_NAMES, signs, strict=True))
        scoop = f", scoop {SCOOP * int(signs[0]):+d}" if abs(signs.sum()) == 3 else ""
        return f"{rows}{scoop}, royalties {bonus[0]} - {bonus[1]}"

    def _fantasyland(self, seat: int) -> Iterator[Text]:
        state = self.hand
        if not self.stands[seat]:
            return
        if state["fantasy_cards"][seat]:
            stay = stays(self.values[seat], state["stay_middle"] == 1)
            does = self._does(seat, "stay") + " in" if stay else self._does(seat, "leave")
            yield Text(f"{does} Fantasyland.", "magenta")
        elif cards := entry_cards(self.values[seat], state["fantasy"]):
            yield Text(f"{self._does(seat, 'earn')} Fantasyland with {cards} cards.", "bold magenta")

    def _beyond(self, before: np.void, after: np.void) -> Iterator[Text]:
        """Points that came with the same action: valued Fantasyland, or hands that nobody had to decide."""
        rest = (after["points"] - before["points"])[: self.seats] - self.won
        said = self._points(rest, "+.4g")
        skipped = int(after["hand"] - before["hand"]) - 1
        if skipped:
            yield Text(f"{skipped} more hand(s) with every seat in Fantasyland: {said}", "magenta")
        elif np.abs(rest).max() > 1e-3:
            yield Text(f"Fantasyland is paid by its value: {said}", "magenta")
