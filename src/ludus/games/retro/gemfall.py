"""A scripted player of Gemfall, as a yardstick. It reads the console's memory (addresses: nes/console.s)."""

from typing import Any

import numpy as np

from ludus.core.errors import Usage
from ludus.core.table import Turn
from ludus.games.retro.child import ChildTable
from ludus.games.retro.table import RetroTable

THINGS = 10
SHIP_X, SHOT_Y = 0x307, 0x309
KIND, X, Y = 0x310, 0x320, 0x330
GEM, ROCK = 1, 2
SHIP_Y, SHIP_SPEED = 196, 4
MOVES = {0: "A", -1: "LEFT+A", 1: "RIGHT+A"}
DANGER = 26
"""Distance in x at which a rock hits, with some care."""
LOWEST = 206
"""A thing below can't be reached any more."""


class ScriptedPlayer:
    """Goes for the lowest gem that it can still reach, avoids rocks that are near, and always shoots."""

    def __init__(self, table: RetroTable | ChildTable) -> None:
        self.table = table
        for needed in MOVES.values():
            if needed not in table.buttons:
                raise Usage(f"the scripted player needs the buttons {', '.join(MOVES.values())}")
        self._action = {move: table.buttons.index(text) for move, text in MOVES.items()}

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        moves = [self._move(self.table.memory(row)) for row in rows.tolist()]
        return np.array([self._action[move] for move in moves], np.int32)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """It knows nothing but what it sees."""

    def _move(self, memory: np.ndarray) -> int:
        ship = int(memory[SHIP_X])
        kinds, xs, ys = (memory[at : at + THINGS].astype(int) for at in (KIND, X, Y))
        low = ys < LOWEST
        rocks = np.flatnonzero((kinds == ROCK) & low & (ys > SHIP_Y - 60))
        gems = np.flatnonzero((kinds == GEM) & low)
        goal = ship
        for gem in gems[np.argsort(-ys[gems])]:
            frames_left = max(0, SHIP_Y - ys[gem]) / 3
            if abs(xs[gem] - ship) <= SHIP_SPEED * frames_left + 18:
                goal = int(xs[gem])
                break
        step = int(np.sign(goal - ship)) if abs(goal - ship) > 8 else 0
        return min((step, 0, -1, 1), key=lambda move: self._danger(ship, move, xs[rocks]))

    def _danger(self, ship: int, move: int, rocks: np.ndarray) -> int:
        """How far the ship would be inside the reach of rocks after a decision."""
        after = np.clip(ship + move * SHIP_SPEED * 4, 12, 228)
        return int(np.maximum(0, DANGER - abs(rocks - after)).sum())
