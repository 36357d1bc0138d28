"""Watcher: battles that are played elsewhere, e.g. on a server, seen by one seat from its protocol lines.

The same tracker and encoder as for our own battles make the observations.
"""

from collections.abc import Iterable

import numpy as np

from ludus.core.errors import Failure
from ludus.games.pokemon import layout
from ludus.games.pokemon.bridge import PATIENCE_S, Message, Pool, Setup

SIDES = ("p1", "p2")


class Watcher:
    """Battles of one format, each under a number that the caller chooses."""

    def __init__(
        self, format: str, patience_s: float = PATIENCE_S, teams: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """teams: name and text of each that will be played"""
        self.pool = Pool(Setup(format, teams=teams, watching=True), 1, patience_s)
        self.teams: list[str | None] = self.pool.ready["teams"] or [None]
        """Packed, as servers take them; None if the format makes them."""
        self.actions: int = self.pool.ready["actions"]
        self._wire = layout.wire(self.actions)

    def begin(self, battle: int, seat: int) -> None:
        """Watch a battle from its first line, as one of its seats."""
        self._ask({"watch": [[int(battle), SIDES[seat]]]})

    def feed(self, battle: int, lines: Iterable[str]) -> None:
        """Protocol lines as the seat gets them, requests (`|request|...`) too."""
        self._ask({"feed": [[int(battle), list(lines)]]})

    def decision(self, battle: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Observation (a record) and legal actions, bool [A]; None if the seat has nothing to decide."""
        said = self._ask({"decide": [int(battle)]})
        found = np.frombuffer(said["decisions"], self._wire)
        return (found["obs"][0], found["legal"][0, : self.actions]) if len(found) else None

    def choice(self, battle: int, action: int) -> str:
        """An action in the words that the simulator and servers take."""
        return self._ask({"act": [int(battle), 0, int(action)]})["choices"][0][1]

    def end(self, battle: int) -> None:
        self._ask({"stop": [int(battle)]})

    def close(self) -> None:
        self.pool.close()

    def _ask(self, message: Message) -> Message:
        self.pool.send(0, message)
        said = self.pool.receive(0)
        if said is None:
            raise Failure("the process that watched the battles was lost: begin them again")
        for battle, problem in said["errors"]:
            raise Failure(f"battle {battle} has lines that can't be read: {problem}")
        return said
