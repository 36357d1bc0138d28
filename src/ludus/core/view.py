"""How a browser sees a game: what its `make_view()` gives, and what is shown without one.

A view turns positions into JSON. A JavaScript module draws it: `web.js` beside the game's class,
or one that draws any board or text (`ui/web/static`). Its default export is a function `mount(root, play)`,
which gives an object with `update(position, hints)`; clicks end in `play(action)`.

Games without rules have a `TableView` (decision by decision) or are `Live` (in real time) instead.
"""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ludus.core.rules import Rules, legal_actions
from ludus.core.screen import BoardScreen, Screen
from ludus.core.table import Table, Turn

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]
WIDTH = 100
"""Characters in a line of text that stands for a picture."""


class Move(NamedTuple):
    state: np.void  # before it
    action: int


class View(Protocol):
    """A game as one seat may see it in a browser; seat None looks on and sees all. `state` is one row."""

    def show(self, state: np.void, seat: int | None, recent: Sequence[Move] = ()) -> Json:
        """The position. `moves` lists what the seat may do now: an action, then whatever tells it apart.

        recent: since the seat last decided. Who looks on may do what the seat to move may, so that thoughts
        about it can be drawn.
        """
        ...

    def settled(self, before: np.void, action: int, after: np.void, seat: int | None) -> Json | None:
        """What an action brought to an end (a hand, the game), explained to `seat`; `text` at least."""
        ...


class TableView(Protocol):
    """One game at a table, as one seat may see it in a browser; seat None looks on and sees all."""

    @property
    def table(self) -> Table:
        """Of one row."""
        ...

    def follow(self, turn: Turn) -> None:
        """The next decision. All are told in order; none is told after the end of the game."""
        ...

    def show(self, seat: int | None) -> Json:
        """What is known now. `moves` lists what the seat may do, as for `View.show`."""
        ...

    def words(self, action: int) -> str:
        """A legal action, as the one to decide reads it."""
        ...


class Live(Protocol):
    """A game in real time, as pictures."""

    picture_s: float
    """From one picture to the next, at the game's own speed."""
    buttons: Sequence[str]
    """What a person can press; nothing if nobody can."""

    def advance(self, held: Sequence[str]) -> bool:
        """Go on to the next picture. False: the game is over. held: the buttons that are pressed"""
        ...

    def picture(self) -> bytes:
        """The newest, as PNG."""
        ...

    def facts(self) -> Json:
        """What people want to know beside the picture, as `{"score": 3}`."""
        ...

    def close(self) -> None: ...


def default_view(rules: Rules, screen: Screen) -> View:
    return BoardView(rules, screen) if isinstance(screen, BoardScreen) else PlainView(rules, screen)


def moves_of(rules: Rules, state: np.void, seat: int | None) -> list[int]:
    """The legal actions, if the seat is to move or looks on."""
    over = rules.over(np.array([state]))[0]
    mover = int(rules.seat(np.array([state]))[0])
    if over or seat not in (None, mover):
        return []
    found: list[int] = legal_actions(rules, state).tolist()
    return found


class BoardView:
    """A board of cells. A move is an action and the cells that it takes, numbered row by row."""

    def __init__(self, rules: Rules, screen: BoardScreen) -> None:
        self.rules, self.screen = rules, screen
        self.columns = len(screen.labels[1])

    def show(self, state: np.void, seat: int | None, recent: Sequence[Move] = ()) -> Json:
        cells = self.screen.cells(state)
        return {
            "rows": list(self.screen.labels[0]),
            "columns": list(self.screen.labels[1]),
            "cells": cells.ravel().tolist(),
            "marks": list(self.screen.marks),
            "colours": list(self.screen.colours),
            "fresh": [cell for move in recent for cell in self._covered(*move)],
            "moves": [
                [action, *self._covered(state, action)] for action in moves_of(self.rules, state, seat)
            ],
        }

    def _covered(self, state: np.void, action: int) -> list[int]:
        return [row * self.columns + column for row, column in self.screen.covers(state, action)]

    def settled(self, before: np.void, action: int, after: np.void, seat: int | None) -> Json | None:
        said = None if seat is None else self.screen.settled(before, action, after, seat)
        lines = as_text(said).splitlines() if said else []
        return {"text": lines[-1]} if lines else None  # those above it draw the board, which is there already


class PlainView:
    """The screen as text. A move is an action and its text."""

    def __init__(self, rules: Rules, screen: Screen) -> None:
        self.rules, self.screen = rules, screen

    def show(self, state: np.void, seat: int | None, recent: Sequence[Move] = ()) -> Json:
        mover = int(self.rules.seat(np.array([state]))[0])
        return {
            "text": as_text(self.screen.show(state, mover if seat is None else seat)),
            "moves": [
                [action, self.rules.action_text(state, action)]
                for action in moves_of(self.rules, state, seat)
            ],
        }

    def settled(self, before: np.void, action: int, after: np.void, seat: int | None) -> Json | None:
        said = None if seat is None else self.screen.settled(before, action, after, seat)
        return {"text": as_text(said)} if said else None


def as_text(what: "RenderableType") -> str:
    """What a screen shows, without its colours."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=WIDTH, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(what)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")
