"""Connect four: seven columns, six rows, four in a line win."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.connect4.screen import Connect4Screen


@dataclass(frozen=True)
class Options:
    """Connect four has no rule switches."""


def make_rules(options: Options) -> Rules:
    from ludus.games.connect4.rules import Connect4

    return Connect4()


def make_bots(rules: Rules) -> dict[str, Callable[[], Bot]]:
    from ludus.games.connect4.bots import Greedy

    return {"greedy": lambda: Greedy(rules)}


def make_screen(rules: Rules) -> "Connect4Screen":
    from ludus.games.connect4.screen import Connect4Screen

    return Connect4Screen(rules)
