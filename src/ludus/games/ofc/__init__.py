"""Pineapple Open-Face Chinese poker for two or three, with jokers and Fantasyland."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.ofc.screen import OfcScreen


@dataclass(frozen=True)
class Options:
    seats: Literal[2, 3] = 3
    jokers: Literal[0, 2] = 2
    """Wild cards in the deck."""
    fantasyland: Literal["progressive", "flat", "off"] = "progressive"
    """Cards in Fantasyland: 14 to 17 by the top row, always 14, or no Fantasyland."""
    fantasyland_hands: Literal["played", "valued"] = "played"
    """Play Fantasyland hands, or pay what they were measured to be worth and skip them (fast training)."""
    stay_middle: bool = False
    """A full house or better in the middle also stays in Fantasyland."""
    hands: int = 10
    """Hands in a session, which is one game: the button moves, Fantasyland carries over."""


PRESETS: dict[str, dict] = {
    "default": {
        "decisions": 20_000_000,
        "switches": {"hands": 1, "fantasyland_hands": "valued"},
        "rows": 128,
        "steps": 60,  # four hands of three seats
        "net": {"hidden": (320, 256)},
        "ppo": {
            "gamma": 1.0,
            "gae_lambda": 0.98,
            "epochs": 2,
            "learning_rate": 1e-3,
            "learning_rate_end": 0.02,
            "entropy_coef": 0.035,
            "entropy_coef_end": 0.03,
            "minibatch": 1536,
            "teacher_until": 0.2,
            "teacher": "greedy",  # without one, 20 M decisions never find Fantasyland (docs/performance.md)
        },
    },
    "test": {
        "decisions": 20_000,
        "rows": 16,
        "steps": 30,
        "net": {"hidden": (64,)},
        "ppo": {"minibatch": 240},
    },
    "quick": {"decisions": 10_000_000, "seconds": 120.0},
    "gpu": {"decisions": 1_000_000_000, "rows": 4096, "steps": 30, "ppo": {"minibatch": 65_536}},
}


EVALUATED = {"hands": 10, "fantasyland_hands": "played"}
"""What evaluation changes of the switches a run was trained with: Fantasyland is always played."""


def make_rules(options: Options) -> Rules:
    from ludus.games.ofc.rules import Ofc

    return Ofc(options)


def make_bots(rules: Rules) -> dict[str, Callable[[], Bot]]:
    from ludus.games.ofc.bots import Greedy, Rollout

    return {"greedy": lambda: Greedy(rules), "rollout": lambda: Rollout(rules)}


def make_screen(rules: Rules) -> "OfcScreen":
    from ludus.games.ofc.screen import OfcScreen

    return OfcScreen(rules)


def unit(rules: Rules) -> tuple[str, int]:
    """What results are counted by, and how many of them a game has."""
    return "hand", rules.options.hands  # type: ignore[attr-defined]


MEASURE = "points/hand"


def measure(stats: dict[str, float]) -> float:
    """How good a policy is by its own games: what its boards earn a hand, Fantasyland and fouls included.

    Royalties are earned, and fouls paid for, once for each opponent; `value` counts all of them already.
    """
    from ludus.games.ofc.scoring import FOUL_COST

    hands = max(stats["hands"] + stats["fl_hands"], 1e-9)
    from_each = stats["royalties"] + stats["fl_royalties"] - FOUL_COST * stats["fouls"]
    return (stats["opponents"] * from_each + stats["value"]) / hands


def columns(stats: dict[str, float]) -> dict[str, str]:
    """What people watch, from the means of a session: normal hands first, then those in Fantasyland."""
    hands, fantasy = max(stats["hands"], 1e-9), stats["fl_hands"]
    return {
        "foul %": f"{100 * stats['fouls'] / hands:.1f}",
        "royalty": f"{stats['royalties'] / hands:.2f}",
        "win %": f"{100 * stats['wins'] / hands:.1f}",
        "15+ %": f"{100 * stats['big'] / hands:.1f}",
        "FL entry %": f"{100 * stats['entries'] / hands:.1f}",
        "FL stay %": f"{100 * stats['fl_stays'] / fantasy:.1f}" if fantasy else "-",
        "FL royalty": f"{stats['fl_royalties'] / fantasy:.1f}" if fantasy else "-",
    }
