"""Opens a table of console games, in this process or in one of its own."""

from typing import Any

from ludus.games.retro.child import ChildTable
from ludus.games.retro.emulator import is_free
from ludus.games.retro.options import make_options
from ludus.games.retro.table import RetroTable


def open_table(game: str, rows: int, **switches: Any) -> RetroTable | ChildTable:
    """switches: fields of `Options`. A process has one emulator: further tables get theirs in a child."""
    options = make_options(**switches)
    if options.separate or not is_free():
        return ChildTable(game, rows, options)
    return RetroTable(game, rows, options)
