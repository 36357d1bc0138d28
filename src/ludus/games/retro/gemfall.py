"""A scripted player of Gemfall, as a yardstick. It reads the console's memory (addresses: nes/console.s)."""

import numpy as np

from ludus.games.retro.table import RetroTable

THINGS = 10
SHIP_X, SHOT_Y = 0x307, 0x309
KIND, X, Y = 0x310, 0x320, 0x330
GEM, ROCK = 1, 2
SHIP_Y, SHIP_SPEED = 196, 4
DANGER = 26
"""Distance in x at which a rock hits, with some care."""
LOWEST = 206
"""A thing below can't be reached any more."""


class ScriptedPlayer:
    """Goes for the lowest gem that it can still reach, avoids rocks that are near, and always shoots."""

    def __init__(self, table: RetroTable) -> None:
        self.table = table
        names = table.buttons
        self._action = {move: names.index(text) for move, text in ((0, "A"), (-1, "LEFT+A"), (1, "RIGHT+A"))}

    def choose(self) -> np.ndarray:
        """int32 [rows]"""
        moves = [self._move(self.table.memory(row)) for row in range(self.table.rows)]
        return np.array([self._action[move] for move in moves], np.int32)

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
