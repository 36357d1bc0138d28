"""Tic-tac-toe: the smallest complete game, made to be copied."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ludus.core.game import NativeGame
from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.tictactoe.screen import TicTacToeScreen


@dataclass(frozen=True)
class Options:
    """Tic-tac-toe has no rule switches."""


class Game(NativeGame):
    """Tic-tac-toe: the smallest complete game, made to be copied."""

    options_type = Options

    def make_rules(self, options: Options) -> Rules:
        from ludus.games.tictactoe.rules import TicTacToe

        return TicTacToe()

    def make_bots(self) -> dict[str, Callable[[], Bot]]:
        from ludus.games.tictactoe.bots import Greedy

        return {"greedy": lambda: Greedy(self.rules)}

    def make_screen(self) -> "TicTacToeScreen":
        from ludus.games.tictactoe.screen import TicTacToeScreen

        return TicTacToeScreen(self.rules)
