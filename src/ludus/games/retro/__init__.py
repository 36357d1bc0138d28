"""Console games in an emulator (stable-retro): many games in one emulator by save-state swap."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from tyro.conf import Positional

from ludus.core import game
from ludus.core.errors import Usage
from ludus.core.film import Chooser, Film
from ludus.core.game import Switches
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.games.retro.options import SHAPING, Options, make_options

if TYPE_CHECKING:
    from ludus.core.view import Live
    from ludus.games.retro.catalog import Integration

SCRIPTED = "scripted"


class Game(game.Game):
    """A console game in an emulator, as in retro:Gemfall-Nes-v0, which comes along."""

    options_type = Options
    page = "live"
    recordings = ".bk2"

    def __init__(self, name: str, switches: Switches) -> None:
        self.name, self.switches = name, switches
        self.options = make_options(**switches)

    @cached_property
    def integration(self) -> "Integration":
        from ludus.games.retro import catalog

        return catalog.find(_id(self.name), self.options.scenario)

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        from ludus.games.retro.table import make_spec

        return make_spec(self.integration, self.options)

    def for_evaluation(self) -> "Game":
        """What agents are paid to learn by is not part of their score, unless there is no other."""
        if not (self.options.integration or self.options.score):
            return self
        return Game(self.name, {name: value for name, value in self.switches.items() if name not in SHAPING})

    @property
    def bots(self) -> list[str]:
        from ludus.games.retro.catalog import OWN_GAME

        return [game.RANDOM, SCRIPTED] if _id(self.name) == OWN_GAME else [game.RANDOM]

    def player(self, name: str, table: Table, rng: np.ndarray) -> game.Player:
        if name != SCRIPTED or name not in self.bots:
            return super().player(name, table, rng)
        from ludus.games.retro.child import ChildTable
        from ludus.games.retro.gemfall import ScriptedPlayer
        from ludus.games.retro.table import RetroTable

        if not isinstance(table, RetroTable | ChildTable):
            raise Usage(f"{name} reads the console's memory, which is elsewhere: take --inference local")
        return ScriptedPlayer(table)

    def film(self, make_player: Callable[[Table], Chooser], seed: int) -> Film:
        from ludus.games.retro import recording

        return recording.film(self.table(1), make_player, seed)

    def make_live(self, make_player: Callable[[Table], Chooser] | None, seed: int) -> "Live":
        from ludus.games.retro.opening import open_table
        from ludus.games.retro.web import LiveGame

        return LiveGame(open_table(_id(self.name), 1, **self.switches), make_player, seed)

    def replay(self, recording: Path) -> "Live":
        from ludus.games.retro.web import Replay

        return Replay(recording)

    def native(self, what: str) -> NoReturn:
        recorded = f"`ludus play {self.name} --run RUN --record FILE.bk2` records a game of its agent"
        raise Usage(f"{self.name} can't be {what}: that is for native games; {recorded}")

    def make_table_screen(self) -> NoReturn:
        self.native("played here")

    def table(self, rows: int) -> Table:
        from ludus.games.retro.opening import open_table

        return open_table(_id(self.name), rows, **self.switches)

    def columns(self, stats: game.Stats) -> dict[str, float]:
        """Without what is the same for all: the start, if there is one, and the only part of the reward."""
        paid = [name for name in stats if name.startswith("reward_")]
        one_start = isinstance(self.options.states, str) and self.options.states != "all"
        dull = {*(["start"] if one_start else []), *(paid if len(paid) == 1 else [])}
        return {name: mean for name, mean in stats.items() if name not in dull}

    @classmethod
    def variants(cls) -> list[str]:
        """Those whose ROM is there, beside the one that comes along; none without stable-retro."""
        from ludus.games.retro.catalog import OWN_GAME, with_rom

        with suppress(Usage):
            return [f"{__name__.rpartition('.')[2]}:{name}" for name in with_rom() if name != OWN_GAME]
        return []

    @classmethod
    def presets(cls, name: str) -> dict[str, dict[str, Any]]:
        """Those of all console games, and on top those of this one, by its name in the same file."""
        every = super().presets(name)
        own = every.get(_id(name), {})
        return {preset: game.merged(every.get(preset, {}), own.get(preset, {})) for preset in {*every, *own}}

    @classmethod
    def commands(cls) -> dict[str, Callable[..., None]]:
        return {"import": import_from}


def _id(name: str) -> str:
    from ludus.games.retro.catalog import OWN_GAME

    return name.partition(":")[2] or OWN_GAME


def import_from(folder: Positional[str], /) -> None:
    """Import the ROMs of a folder: says for each file which game it is.

    Args:
        folder: Where they are; its folders and .zip archives are looked into.
    """
    from ludus.games.retro.import_roms import import_roms, report

    print(report(import_roms(folder)))
