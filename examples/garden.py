"""An environment with a Dict observation: an image, a vector and tokens, each read in its own way.

    ludus train examples.garden:Garden

Walk over the garden to the plant that is ripe. The image shows the garden from above, the vector how much
time is left, the tokens what stands where.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SIDE, PIXELS, PLANTS = 6, 4, 3
YOU, GREEN, RIPE = range(3)
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


class Garden(gymnasium.Env):
    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (SIDE * PIXELS, SIDE * PIXELS, 1), np.uint8),
            "left": spaces.Box(0, 1, (1,), np.float32),
            # Ids, one row for each thing: what it is, and its row and column. The first is you.
            "things": spaces.MultiDiscrete(np.full((PLANTS + 1, 3), [3, SIDE, SIDE])),
        }
    )
    action_space = spaces.Discrete(len(MOVES))

    def __init__(self, steps: int = 30) -> None:
        self.steps = steps

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        cells = self.np_random.choice(SIDE * SIDE, PLANTS + 1, replace=False)
        self.place, *self.plants = (np.array(divmod(int(cell), SIDE)) for cell in cells)
        self.ripe, self.taken = int(self.np_random.integers(PLANTS)), 0
        return self._observe(), self._info()

    def step(self, action: int) -> tuple[dict, float, bool, bool, dict]:
        before = np.abs(self.place - self.plants[self.ripe]).sum()
        self.place = self.place + MOVES[int(action)]
        self.taken += 1
        after = np.abs(self.place - self.plants[self.ripe]).sum()
        found = bool(after == 0)
        reward = 1.0 if found else 0.1 * float(before - after)
        return self._observe(), reward, found, self.taken >= self.steps and not found, self._info()

    def _observe(self) -> dict[str, np.ndarray]:
        image, things = np.zeros((SIDE, SIDE), np.uint8), [(YOU, *self.place)]
        for number, plant in enumerate(self.plants):
            kind = RIPE if number == self.ripe else GREEN
            things.append((kind, *plant))
            image[tuple(plant)] = 80 * kind
        image[tuple(self.place)] = 255
        return {
            "image": image.repeat(PIXELS, 0).repeat(PIXELS, 1)[:, :, None],
            "left": np.array([1 - self.taken / self.steps], np.float32),
            "things": np.array(things),
        }

    def _info(self) -> dict[str, np.ndarray]:
        """Which moves stay inside the garden."""
        there = self.place + MOVES
        return {"action_mask": ((there >= 0) & (there < SIDE)).all(1)}
