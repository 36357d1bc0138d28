"""Your own environment: any Gymnasium class can be trained, as in `ludus train my_env:Corridor`.

Run that in this folder, or wherever Python can import `my_env`.
"""

import gymnasium
import numpy as np
from gymnasium import spaces


class Corridor(gymnasium.Env):
    """Walk from the middle of a corridor to the treasure. A sign says at which end it is."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)  # where you are, what the sign says
    action_space = spaces.Discrete(3)  # left, stay, right

    def __init__(self, length: int = 4) -> None:  # `--set length=6` gives another one
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # makes self.np_random, the environment's own randomness
        self.place, self.left = 0, 6 * self.length
        self.treasure = self.length * int(self.np_random.choice([-1, 1]))
        return self._observe(), self._info()

    def step(self, action):
        self.place += int(action) - 1
        self.left -= 1
        found = self.place == self.treasure
        reward = 1.0 if found else -0.02
        return self._observe(), reward, found, self.left == 0 and not found, self._info()

    def _observe(self) -> np.ndarray:
        return np.array([self.place / self.length, np.sign(self.treasure)], np.float32)

    def _info(self) -> dict:
        """Optional: which actions are legal. Nobody walks through the walls."""
        return {"action_mask": np.array([self.place > -self.length, True, self.place < self.length])}
