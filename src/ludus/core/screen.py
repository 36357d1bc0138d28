"""How people see a game: what its `make_screen()` gives, and what is shown without one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ludus.core.errors import Usage
from ludus.core.rules import Rules, legal_actions
from ludus.core.table import Table, Turn

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = tuple[int, int]
"""Row from the top, and column."""


class Screen(Protocol):
    """A game as one seat may see it. `state` is one row of states."""

    def show(self, state: np.void, seat: int) -> "RenderableType":
        """The position, before the seat decides."""
        ...

    def expects(self, state: np.void) -> str:
        """What to type now, in a few words."""
        ...

    def help(self, state: np.void) -> str: ...

    def told(self, state: np.void, action: int) -> "RenderableType":
        """Another seat's action in `state`, without what is hidden."""
        ...

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> "RenderableType | None":
        """What an action brought to an end (a hand, the game), explained to `seat`."""
        ...


@runtime_checkable
class BoardScreen(Screen, Protocol):
    """A game on a board of cells: what heat maps and pictures need to know beside."""

    marks: str  # a letter for each seat
    colours: tuple[str, ...]  # of each seat, as #rrggbb
    labels: tuple[Sequence[str], Sequence[str]]  # of rows from the top, and of columns

    def cells(self, state: np.void) -> np.ndarray:
        """The seat that has each cell, or -1. int8 [rows, columns]"""
        ...

    def covers(self, state: np.void, action: int) -> list[Cell]:
        """The cells that the seat to move takes by an action."""
        ...

    def show(self, state: np.void, seat: int, fresh: Sequence[Cell] = ()) -> "RenderableType":
        """The `fresh` cells were taken since the seat last decided, and stand out."""
        ...


class TableScreen(Protocol):
    """A game that is known by its table only, as one seat may see it."""

    ending: str
    """Of the files that `save` writes, as in `.html`."""

    @property
    def table(self) -> Table:
        """Of one row."""
        ...

    def show(self, turn: Turn, seat: int) -> "RenderableType":
        """What happened since the seat last decided, and what it knows now."""
        ...

    def choices(self, turn: Turn, seat: int) -> dict[int, str]:
        """Legal actions in words, in the order in which people number them."""
        ...

    def help(self) -> str: ...

    def settled(self, seat: int) -> "RenderableType":
        """What happened until the end."""
        ...

    def save(self, path: Path) -> None:
        """The first game, for people who want to see it again."""
        ...


class PlainScreen:
    """For games that bring no screen of their own."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def show(self, state: np.void, seat: int) -> "RenderableType":
        if self.rules.spec.hidden:
            raise Usage(f"{self.rules.spec.game} hides cards, so it needs a `make_screen` to be played here")
        from rich.markup import escape

        return escape(self.rules.text(state))

    def expects(self, state: np.void) -> str:
        legal = legal_actions(self.rules, state)
        said = [self.rules.action_text(state, int(action)) for action in legal[:12]]
        return ", ".join(said) + (", ..." if len(legal) > 12 else "")

    def help(self, state: np.void) -> str:
        said = (self.rules.action_text(state, int(action)) for action in legal_actions(self.rules, state))
        return "legal now: " + ", ".join(said)

    def told(self, state: np.void, action: int) -> "RenderableType":
        return self.rules.action_text(state, action)

    def settled(self, before: np.void, action: int, after: np.void, seat: int) -> "RenderableType | None":
        return None
