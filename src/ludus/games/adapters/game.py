"""EnvGame: other people's environments (`gym:ID`, `zoo:ID`, `module:Class`) as a Game."""

from functools import cached_property

from ludus import processes
from ludus.core.game import Game, Switches
from ludus.core.spec import Spec
from ludus.core.table import Table
from ludus.games import adapters


class EnvGame(Game):
    """An environment of Gymnasium or PettingZoo."""

    def __init__(self, name: str, switches: Switches) -> None:
        self.name, self.switches = name, switches

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        """Of one environment, which is made, looked at and closed again."""
        before = processes.children()
        table = self.table(1)
        table.close()
        processes.kill(processes.children() - before)  # what it has started, and left
        return table.spec

    def table(self, rows: int) -> Table:
        kind, _, rest = self.name.partition(":")
        if kind == "gym":
            return adapters.GymTable(rest, rows, **self.switches)
        if kind == "zoo":
            return adapters.ZooTable(rest, rows, **self.switches)
        return adapters.user_table(self.name, rows, **self.switches)
