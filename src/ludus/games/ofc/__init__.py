"""Open-Face Chinese poker: its rules, bots and screen, and settings to train it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ludus.core.game import NativeGame, Stats
from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.ofc.screen import OfcScreen
    from ludus.games.ofc.web import OfcView


@dataclass(frozen=True)
class Options:
    seats: Literal[2, 3] = 3
    """Players."""
    jokers: Literal[0, 2] = 2
    """Wild cards in the deck."""
    fantasyland: Literal["progressive", "flat", "off"] = "progressive"
    """Cards in Fantasyland: 14 to 17 by the top row, always 14, or no Fantasyland."""
    fantasyland_hands: Literal["played", "valued", "sampled"] = "played"
    """Play Fantasyland hands; pay what they were measured to be worth and skip them; or, for training, let
    each game be any one hand of a session: seats may be in Fantasyland, and what is earned is paid by its
    worth in the hands to come."""
    last_street: Literal["played", "exact", "expected"] = "played"
    """Let seats place the cards of the last street; or, for training, let the rules place them as well as
    they can be, as trained agents do. expected: and pay each seat the mean over all last draws, not what
    one of them brings."""
    stay_middle: bool = False
    """A full house or better in the middle also stays in Fantasyland."""
    hands: int = 10
    """Hands in a session, which is one game: the button moves, Fantasyland carries over."""


class Game(NativeGame):
    """Pineapple Open-Face Chinese poker for two or three, with jokers and Fantasyland."""

    options_type = Options
    evaluated: ClassVar = {"hands": 10, "fantasyland_hands": "played", "last_street": "played"}
    measure_name = "points/hand"

    def make_rules(self, options: Options) -> Rules:
        from ludus.games.ofc.rules import Ofc

        return Ofc(options)

    def make_bots(self) -> dict[str, Callable[[], Bot]]:
        from ludus.games.ofc.bots import Greedy, Rollout
        from ludus.games.ofc.expert import Expert

        made = {"greedy": Greedy, "rollout": Rollout, "expert": Expert}
        return {name: functools.partial(bot, self.rules) for name, bot in made.items()}

    def make_screen(self) -> "OfcScreen":
        from ludus.games.ofc.screen import OfcScreen

        return OfcScreen(self.rules)

    def make_view(self) -> "OfcView":
        from ludus.games.ofc.web import OfcView

        return OfcView(self.rules)

    @property
    def unit(self) -> tuple[str, int]:
        return "hand", 1 if self.options.fantasyland_hands == "sampled" else self.options.hands

    def measure(self, stats: Stats) -> float:
        """How good a policy is by its own games: what its boards earn a hand, Fantasyland and fouls included.

        Royalties are earned, and fouls paid for, once for each opponent; `value` counts all of them already.
        """
        from ludus.games.ofc.scoring import FOUL_COST

        hands = max(stats["hands"] + stats["fl_hands"], 1e-9)
        from_each = stats["royalties"] + stats["fl_royalties"] - FOUL_COST * stats["fouls"]
        return (stats["opponents"] * from_each + stats["value"]) / hands

    def columns(self, stats: Stats) -> dict[str, str]:
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
