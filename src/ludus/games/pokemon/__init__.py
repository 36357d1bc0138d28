"""Pokémon battles on the real Showdown simulator, in Node processes that play many battles each."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ludus.core import game
from ludus.core.errors import Usage
from ludus.core.game import Player, Switches
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.games.pokemon.rewards import Rewards

if TYPE_CHECKING:
    from ludus.core.screen import TableScreen
    from ludus.core.view import TableView
    from ludus.games.pokemon.table import PokemonTable


@dataclass(frozen=True)
class Options(Rewards):
    team: str = "random"
    """random, for formats that make teams, or a file or folder of teams to draw from."""
    max_turns: int = 300
    """Turns after which a battle is cut off."""
    fast_simulator: bool = True
    """The simulator with faster look-ups, which plays exactly as the untouched one."""
    processes: int = 1
    """Node processes of each worker."""
    backend: Literal["bridge", "websocket"] = "bridge"
    """Where training plays: in Node processes of its own, or on Showdown servers."""
    servers: str = ""
    """Showdown servers of the websocket backend, with commas between them; a port may be a range, as in
    ws://127.0.0.1:8000-8001/showdown/websocket. Default: each worker starts one of its own."""


FORMAT = "gen9randombattle"


class Game(game.Game):
    """Pokémon battles on the Showdown simulator; pokemon:gen1randombattle and the like for another format."""

    options_type = Options
    page = "table"

    def __init__(self, name: str, switches: Switches) -> None:
        known = [field.name for field in fields(Options)]
        for switch in switches:
            if switch not in known:
                raise Usage(f"{name} has no switch {switch!r}: choose from {', '.join(known)}")
        self.name, self.switches, self.options = name, switches, Options(**switches)
        self.format = name.partition(":")[2] or FORMAT

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        table = self._table(1)
        table.close()
        return table.spec

    def for_evaluation(self) -> "Game":
        """Matches don't need servers: both backends show and play the same."""
        kept = {name: value for name, value in self.switches.items() if name not in ("backend", "servers")}
        return Game(self.name, kept)

    @property
    def bots(self) -> list[str]:
        from ludus.games.pokemon.bots import BOTS

        return list(BOTS)

    def player(self, name: str, table: Table, rng: np.ndarray) -> Player:
        from ludus.games.pokemon.bots import BOTS, BotPlayer

        if name == game.RANDOM or name not in BOTS:
            return super().player(name, table, rng)
        return BotPlayer(BOTS[name](), rng)

    def table(self, rows: int) -> Table:
        from ludus.games.pokemon.server import addresses

        online = self.options.backend == "websocket"
        return self._table(rows, servers=addresses(self.options.servers) if online else ())

    def _table(self, rows: int, **more: Any) -> "PokemonTable":
        from ludus.games.pokemon.table import PokemonTable

        told = self.options
        table = PokemonTable(
            rows, self.format, processes=told.processes, team=told.team, max_turns=told.max_turns,
            rewards=told, fast=told.fast_simulator, game=self.name, **more,
        )  # fmt: skip
        self.spec = table.spec  # so that nobody starts a process only to ask for it
        return table

    def make_table_screen(self) -> "TableScreen":
        from ludus.games.pokemon.screen import BattleScreen

        return BattleScreen(self._table(1, lines=True))

    def make_table_view(self) -> "TableView":
        from ludus.games.pokemon.web import BattleView

        return BattleView(self._table(1, lines=True))

    def online_table(self, visit: game.Visit, say: Callable[[str], None]) -> Table:
        from ludus.games.pokemon import teams
        from ludus.games.pokemon.online import OnlineTable
        from ludus.games.pokemon.watch import Watcher

        watcher = Watcher(self.format, teams=teams.given(self.options.team))
        try:
            return OnlineTable(self.name, watcher, self.format, visit, say)
        except BaseException:
            watcher.close()
            raise

    def columns(self, stats: game.Stats) -> dict[str, str | float]:
        shown: dict[str, str | float] = {
            "turns": f"{stats['turns']:.1f}",
            "fainted": f"{stats['fainted']:.2f}",
            "switches": f"{stats['switches']:.1f}",
        }
        paid = {name: mean for name, mean in stats.items() if name.startswith("reward_") and mean}
        return shown | {f"{name.removeprefix('reward_')} paid": mean for name, mean in paid.items()}

    @classmethod
    def commands(cls) -> dict[str, Callable[..., None]]:
        return {"setup": set_up, "server": serve}


def set_up() -> None:
    """Install the simulator (npm ci into a cache folder); nothing happens if it is there already."""
    from ludus.games.pokemon import install

    print(f"the simulator is in {install.install()}")


def serve(port: int = 8000) -> None:
    """A local Showdown server for people and bots, on 127.0.0.1 only, until Ctrl-C.

    Args:
        port: Where it listens.
    """
    import time

    from ludus.games.pokemon.server import Server

    with Server(port) as server:
        print(f"{server.address} (Ctrl-C ends it)", flush=True)
        while server.process.poll() is None:
            time.sleep(0.5)
    raise Usage("the server ended by itself")


def parts() -> tuple[Any, ...]:
    """What a seat observes: ids and numbers of twelve Pokémon, and the field."""
    from ludus.core.spec import Part
    from ludus.games.pokemon import layout

    sizes = tuple(len(layout.vocabulary()[layout.KIND_OF[name]]) for name in layout.IDS)
    types = layout.OBS.fields
    assert types is not None
    ids, numbers, field = (types[name][0] for name in ("ids", "numbers", "field"))
    return (
        Part("ids", ids.shape, np.dtype(np.int16), "tokens", vocabulary=sizes),
        Part("numbers", numbers.shape, np.dtype(np.float32), of="ids"),
        Part("field", field.shape, np.dtype(np.float32)),
    )
