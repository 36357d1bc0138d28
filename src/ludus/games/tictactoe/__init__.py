"""Tic-tac-toe: the smallest complete game, made to be copied."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.tictactoe.screen import TicTacToeScreen


@dataclass(frozen=True)
class Options:
    """Tic-tac-toe has no rule switches."""


def make_rules(options: Options) -> Rules:
    from ludus.games.tictactoe.rules import TicTacToe

    return TicTacToe()


def make_bots(rules: Rules) -> dict[str, Callable[[], Bot]]:
    from ludus.games.tictactoe.bots import Greedy

    return {"greedy": lambda: Greedy(rules)}


def make_screen(rules: Rules) -> "TicTacToeScreen":
    from ludus.games.tictactoe.screen import TicTacToeScreen

    return TicTacToeScreen(rules)
