"""Connect four: its rules, bots and screen, and settings to train it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ludus.core.game import NativeGame
from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.connect4.screen import Connect4Screen


@dataclass(frozen=True)
class Options:
    """Connect four has no rule switches."""


class Game(NativeGame):
    """Connect four: seven columns, six rows, four in a line win."""

    options_type = Options
    opening = 2

    def make_rules(self, options: Options) -> Rules:
        from ludus.games.connect4.rules import Connect4

        return Connect4()

    def make_bots(self) -> dict[str, Callable[[], Bot]]:
        from ludus.games.connect4.bots import Greedy

        return {"greedy": lambda: Greedy(self.rules)}

    def make_screen(self) -> "Connect4Screen":
        from ludus.games.connect4.screen import Connect4Screen

        return Connect4Screen(self.rules)
