"""An environment as slow as many are (20 µs a step, in pure Python) with as many actions as a board game."""

import time

import gymnasium
import numpy as np

VIEWS, FEATURES, ACTIONS, LEGAL, STEPS = 64, 128, 243, 30, 200

# Made once and cycled through, so that a step costs no more than its 20 µs.
_random = np.random.default_rng(0)
OBS = list(_random.random((VIEWS, FEATURES), np.float32))
MASKS = list(_random.random((VIEWS, ACTIONS)) < LEGAL / ACTIONS)
INFO_MASKS = [mask.astype(np.int8) for mask in MASKS]
"""int8, because `action_space.sample(mask)` takes nothing else."""
WORTH = (np.stack(MASKS) * _random.random((VIEWS, ACTIONS))).tolist()
"""What each action pays in each view: nothing if it is illegal, so that one who can't mask may still play."""


class Masked(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (FEATURES,), np.float32)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, mask_in_info: bool = True) -> None:
        """mask_in_info: off for those who don't read it there but would copy or send it."""
        self.mask_in_info = mask_in_info
        self.view, self.left = 0, STEPS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.view, self.left = int(self.np_random.integers(VIEWS)), STEPS
        return OBS[self.view], self._info()

    def step(self, action):
        until = time.perf_counter_ns() + 20_000
        reward = WORTH[self.view][action]
        self.view = (self.view + 1) % VIEWS
        self.left -= 1
        result = OBS[self.view], reward, self.left == 0, False, self._info()
        while time.perf_counter_ns() < until:
            pass
        return result

    def action_masks(self) -> np.ndarray:
        """bool [A], by the name sb3-contrib looks for."""
        return MASKS[self.view]

    def _info(self) -> dict[str, np.ndarray]:
        # A new one each time, because vector environments write into it.
        return {"action_mask": INFO_MASKS[self.view]} if self.mask_in_info else {}
