"""Blokus by the Go Text Protocol (GTP 2), as Pentobi speaks it: Ludus as an engine, and engines as opponents.

`engine.py` answers commands, `client.py` asks another program, `match.py` plays against it, `pentobi.py`
knows what Pentobi calls things, and `window.py` makes an engine of its window. Knows rules and bots, not how
bots came to be.
"""

import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ludus.core.duel import Duel
from ludus.core.errors import Usage
from ludus.core.rules import Bot

if TYPE_CHECKING:
    from ludus.games.blokus import Game

KINDS = ("pentobi:", "gtp:")


class GtpEngine:
    """`ludus.core.game.Engine` for Blokus."""

    opponents = "pentobi:LEVEL, or gtp:COMMAND for any program that speaks GTP"

    def __init__(self, game: "Game") -> None:
        self.game = game

    def is_name(self, name: str) -> bool:
        return name.startswith(KINDS)

    def check(self, name: str, program: str, seed: int) -> None:
        self.command_line(name, program, seed)

    def command_line(self, name: str, program: str = "", seed: int = 0) -> list[str]:
        """How `pentobi:LEVEL` or `gtp:COMMAND` is started. program: Pentobi's engine, if not on the PATH"""
        from ludus.games.blokus.gtp import pentobi

        kind, _, rest = name.partition(":")
        if kind == "pentobi":
            board = self.game.options.board
            return pentobi.command_line(rest, board, seed % 2**31, program)
        try:
            words = shlex.split(rest)
        except ValueError as problem:
            raise Usage(f"{name!r} is not a command line: {problem}") from None
        if not words:
            raise Usage("which engine? write it as in 'gtp:ludus gtp blokus --bot greedy'")
        return words

    def duel(
        self, challenger: Bot, names: tuple[str, str], deals: int, opening: int, program: str, seed: int,
        report: Callable[[float], None] = lambda share: None,
    ) -> Duel:  # fmt: skip
        from ludus.games.blokus.gtp.match import engine_duel

        command = self.command_line(names[1], program, seed)
        return engine_duel(self.game.rules, challenger, names, command, deals, opening, seed, report)

    def serve(self, make_bot: Callable[["Game"], Bot], seed: int) -> None:
        from ludus.games.blokus.gtp.engine import Engine

        engine = Engine(self.game, make_bot, seed)
        for line in sys.stdin:
            reply = engine.answer(line)
            if reply:
                print(reply, end="", flush=True)
            if engine.has_quit:
                break
