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


OPENING = 2
"""First moves of a match that are made at random: there is no chance in the game to tell matches apart."""

PRESETS: dict[str, dict] = {
    "default": {
        "algo": "alphazero",
        "decisions": 500_000,
        "rows": 64,
        "steps": 16,
        "opponents": "self:0.95,past:0.03,greedy:0.02",
        "net": {"channels": 32, "blocks": 3},
        "alphazero": {"score_weight": 0.0, "score_scale": 1.0},
    },
    "test": {
        "decisions": 2_000,
        "rows": 16,
        "steps": 8,
        "net": {"channels": 8, "blocks": 1},
        "alphazero": {
            "search": {"simulations": 8},
            "fast_simulations": 4,
            "minibatch": 64,
            "learning_starts": 256,
        },
    },
    "quick": {"seconds": 90.0, "net": {"blocks": 2}},
    "gpu": {"decisions": 10_000_000, "rows": 512, "steps": 4, "alphazero": {"minibatch": 1024}},
}


def make_rules(options: Options) -> Rules:
    from ludus.games.connect4.rules import Connect4

    return Connect4()


def make_bots(rules: Rules) -> dict[str, Callable[[], Bot]]:
    from ludus.games.connect4.bots import Greedy

    return {"greedy": lambda: Greedy(rules)}


def make_screen(rules: Rules) -> "Connect4Screen":
    from ludus.games.connect4.screen import Connect4Screen

    return Connect4Screen(rules)
