"""Blokus: its rules, bots, screen and GTP engine, and settings to train it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ludus.core.game import NativeGame, Stats
from ludus.core.rules import Bot, Rules

if TYPE_CHECKING:
    from ludus.games.blokus.gtp import GtpEngine
    from ludus.games.blokus.screen import BlokusScreen
    from ludus.games.blokus.web import BlokusView


@dataclass(frozen=True)
class Options:
    board: Literal["duo", "classic"] = "duo"
    """Two seats on 14x14, or four on 20x20."""


class Game(NativeGame):
    """Blokus: Duo for two on 14x14, Classic for four on 20x20."""

    options_type = Options
    opening = 2

    def make_rules(self, options: Options) -> Rules:
        from ludus.games.blokus.rules import Blokus

        return Blokus(options)

    def make_bots(self) -> dict[str, Callable[[], Bot]]:
        from ludus.games.blokus.bots import Greedy

        return {"greedy": lambda: Greedy(self.rules)}

    def make_screen(self) -> "BlokusScreen":
        from ludus.games.blokus.screen import BlokusScreen

        return BlokusScreen(self.rules)

    def make_view(self) -> "BlokusView":
        from ludus.games.blokus.web import BlokusView

        return BlokusView(self.rules)

    @cached_property
    def engine(self) -> "GtpEngine":  # type: ignore[override]
        from ludus.games.blokus.gtp import GtpEngine

        return GtpEngine(self)

    def columns(self, stats: Stats) -> dict[str, str]:
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
