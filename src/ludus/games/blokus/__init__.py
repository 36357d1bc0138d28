"""Blokus: Duo for two on 14x14, Classic for four on 20x20."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.blokus.screen import BlokusScreen


@dataclass(frozen=True)
class Options:
    board: Literal["duo", "classic"] = "duo"
    """Two seats on 14x14, or four on 20x20."""


OPENING = 2
"""First moves of a match that are made at random: there is no chance in the game to tell matches apart."""

PRESETS: dict[str, dict] = {
    "default": {
        "algo": "alphazero",
        "decisions": 500_000,  # three hours on two cores
        "rows": 64,
        "steps": 16,
        "opponents": "self:0.95,past:0.03,greedy:0.02",
        "net": {"channels": 64, "blocks": 4},
        "alphazero": {"search": {"c_scale": 1.0}},  # as in all its results; 0.1 was not better
    },
    "test": {
        "decisions": 512,
        "rows": 8,
        "steps": 16,
        "net": {"channels": 8, "blocks": 1},
        "alphazero": {
            "search": {"simulations": 4},
            "fast_simulations": 2,
            "minibatch": 32,
            "learning_starts": 128,
        },
    },
    "quick": {
        "seconds": 180.0,
        "steps": 4,
        "opponents": "self:0.6,greedy:0.4",  # somebody who knows a little is worth a thousand games alone
        "net": {"channels": 32, "blocks": 3},
        "alphazero": {
            "search": {"simulations": 24, "considered": 12},
            "fast_simulations": 6,
            "score_weight": 0.5,
            "minibatch": 128,
            "replay_buffer": 40_000,
            "learning_starts": 1_000,
        },
    },
    "gpu": {
        "decisions": 30_000_000,
        "seconds": 1_500.0,
        "rows": 512,
        "steps": 4,
        "opponents": "self:0.97,past:0.02,greedy:0.01",
        "net": {"channels": 96, "blocks": 6},
        "checkpoints": {"every_s": 150.0, "milestone": 500_000},
        "alphazero": {
            "search": {"simulations": 48},
            "fast_simulations": 12,
            "learning_rate": 1.5e-3,
            "minibatch": 1024,
            "replay_buffer": 600_000,
        },
    },
}


def make_rules(options: Options) -> Rules:
    from ludus.games.blokus.rules import Blokus

    return Blokus(options)


def make_bots(rules: Rules) -> dict[str, Callable[[], Bot]]:
    from ludus.games.blokus.bots import Greedy

    return {"greedy": lambda: Greedy(rules)}


def make_screen(rules: Rules) -> "BlokusScreen":
    from ludus.games.blokus.screen import BlokusScreen

    return BlokusScreen(rules)


def columns(stats: dict[str, float]) -> dict[str, str]:
    """What people watch. The first seat has an advantage, so wins from the others are shown apart."""
    first, later = max(stats["first"], 1e-9), max(1 - stats["first"], 1e-9)
    return {
        "win %": f"{100 * stats['win']:.1f}",
        "draw %": f"{100 * stats['draw']:.1f}",
        "win % first": f"{100 * stats['first_win'] / first:.1f}",
        "win % later": f"{100 * (stats['win'] - stats['first_win']) / later:.1f}",
        "squares": f"{stats['squares']:.1f}",
        "pieces left": f"{stats['left']:.1f}",
        "passes": f"{stats['passes']:.1f}",
        "all placed %": f"{100 * stats['all']:.1f}",
    }
