"""EnvGame: other people's environments (`gym:ID`, `zoo:ID`, `module:Class`) as a Game."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ludus import processes
from ludus.core.errors import Failure
from ludus.core.film import Chooser, Film
from ludus.core.game import Game, Switches, merged
from ludus.core.observation import first_not_finite
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.games import adapters
from ludus.games.adapters.load import ATARI


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

    def for_evaluation(self) -> Game:
        """Atari's scores are counted in full, also where learning clips rewards."""
        if not self.switches.get("clip_rewards") or not self.name.startswith(f"gym:{ATARI}/"):
            return self
        return EnvGame(self.name, {**self.switches, "clip_rewards": False})

    def encode(self, seen: Any) -> np.ndarray:
        from ludus.games.adapters.spaces import fitted

        obs = fitted(self._sample.view, seen, 0, self.name)
        if (found := first_not_finite(obs[None])) is not None:
            raise Failure(f"{self.name}: the observation has {found[1]}, not a finite number")
        return obs

    @classmethod
    def presets(cls, name: str) -> dict[str, dict[str, Any]]:
        """Those of all environments; on top, for Atari, those of games that are learned from pixels."""
        every = super().presets(name)
        kinds = {preset: every[preset] for preset in every if preset != ATARI}
        if not name.startswith(f"gym:{ATARI}/"):
            return kinds
        own = every[ATARI]
        return {preset: merged(kinds.get(preset, {}), own.get(preset, {})) for preset in {*kinds, *own}}

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
