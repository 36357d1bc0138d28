"""EnvGame: other people's environments (`gym:ID`, `zoo:ID`, `module:Class`) as a Game."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ludus import processes
from ludus.core.film import Chooser, Film
from ludus.core.game import Game, Switches
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.games import adapters


class EnvGame(Game):
    """An environment of Gymnasium or PettingZoo."""

    def __init__(self, name: str, switches: Switches) -> None:
        self.name, self.switches = name, switches

    @cached_property
    def _sample(self) -> Any:
        """A table of one environment, which was made, looked at and closed again."""
        before = processes.children()
        table = self.table(1)
        table.close()
        processes.kill(processes.children() - before)  # what it has started, and left
        return table

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        return self._sample.spec

    def encode(self, seen: Any) -> np.ndarray:
        from ludus.games.adapters.spaces import fitted

        return fitted(self._sample.view, seen, 0, self.name)

    def film(self, make_player: Callable[[Table], Chooser], seed: int) -> Film:
        from ludus.games.adapters.render import rendered

        shown = EnvGame(self.name, {**self.switches, "render_mode": "rgb_array"})
        return rendered(shown, make_player, seed)

    def table(self, rows: int) -> Table:
        kind, _, rest = self.name.partition(":")
        if kind == "gym":
            return adapters.GymTable(rest, rows, **self.switches)
        if kind == "zoo":
            return adapters.ZooTable(rest, rows, **self.switches)
        return adapters.user_table(self.name, rows, **self.switches)
