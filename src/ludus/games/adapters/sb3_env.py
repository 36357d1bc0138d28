"""Sb3VecEnv: N native games at once for Stable-Baselines3, with bots in the other seats.

Knows Stable-Baselines3's vector environments; must not know its algorithms, nor ours.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from ludus.core import seeds
from ludus.core.errors import Failure
from ludus.core.rules import Bot, Rules
from ludus.games.adapters.spaces import require_legal

Rows = int | Iterable[int] | None
MOST_DEALS = 100


class Sb3VecEnv(VecEnv):
    """The learner's seat moves on by one with each game of a row; a bot plays the other seats in batches.

    Observations are float32, because Stable-Baselines3 takes any uint8 array of three dimensions for a
    picture and divides it by 255. The last observation of a game is zeros: nobody is to move there.
    """

    def __init__(self, rules: Rules, rows: int, opponent: Bot) -> None:
        spec = rules.spec
        self.rules, self.opponent = rules, opponent
        self.states = rules.blank(rows)
        self.rng = np.zeros((rows, 2), np.uint64)
        self.bot_rng = np.zeros((rows, 2), np.uint64)
        self.seat = np.zeros(rows, np.int64)  # the learner's, in each row
        self._seen = np.zeros((rows, *spec.obs_shape), spec.obs_dtype)
        self._legal = np.zeros((rows, spec.actions), bool)
        self._score = np.zeros((rows, spec.seats), np.float32)
        self._before = np.zeros(rows, np.float32)  # the learner's score at its last decision
        self._actions = np.zeros(rows, np.int32)
        self._seeded = False
        observations = spaces.Box(-np.inf, np.inf, spec.obs_shape, np.float32)
        super().__init__(rows, observations, spaces.Discrete(spec.actions))

    def reset(self) -> np.ndarray:
        seed = self._seeds[0]
        if seed is None and not self._seeded:
            seed = int(np.random.default_rng().integers(2**63))
        if seed is not None:
            self.rng[:] = seeds.rows(seed, self.num_envs, "table")
            self.bot_rng[:] = seeds.rows(seed, self.num_envs, "bots")
            self._seeded = True
        self._reset_seeds()
        self._reset_options()
        self.seat[:] = np.arange(self.num_envs) % self.rules.spec.seats
        self._deal(np.arange(self.num_envs))
        return self._observe()

    def step_async(self, actions: np.ndarray) -> None:
        require_legal(
            np.asarray(actions), list(range(self.num_envs)), self._legal, True, self.rules.spec.game
        )
        self._actions[:] = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        self.rules.play(self.states, self._actions, self.rng)
        self._play_others(np.arange(self.num_envs))
        self.rules.score(self.states, self._score)
        now = self._score[np.arange(self.num_envs), self.seat]
        reward, self._before = now - self._before, now
        over = np.array(self.rules.over(self.states))
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        if over.any():
            rows = np.flatnonzero(over)
            for row in rows:
                infos[row]["terminal_observation"] = np.zeros(self.rules.spec.obs_shape, np.float32)
            self.seat[rows] = (self.seat[rows] + 1) % self.rules.spec.seats
            self._deal(rows)
        return self._observe(), reward, over, infos

    def close(self) -> None:
        pass

    def _deal(self, rows: np.ndarray) -> None:
        """Start games in `rows` and bring each to its learner's first decision."""
        for _ in range(MOST_DEALS):
            states, rng = self.states[rows], self.rng[rows]
            self.rules.deal(states, rng)
            self.states[rows], self.rng[rows] = states, rng
            self._before[rows] = 0
            self._play_others(rows)
            rows = rows[self.rules.over(self.states[rows])]
            if not len(rows):
                return
        raise Failure(
            f"{self.rules.spec.game}: the learner got no decision in {MOST_DEALS} games of row {rows[0]}"
        )

    def _play_others(self, rows: np.ndarray) -> None:
        """Let the bot play in all `rows` at once until each waits for its learner or is over."""
        while True:
            states = self.states[rows]
            waiting = ~self.rules.over(states) & (self.rules.seat(states) != self.seat[rows])
            if not waiting.any():
                return
            rows, states = rows[waiting], states[waiting]
            rng, bot_rng = self.rng[rows], self.bot_rng[rows]
            self.rules.play(states, self.opponent.choose(states, bot_rng), rng)
            self.states[rows], self.rng[rows], self.bot_rng[rows] = states, rng, bot_rng

    def _observe(self) -> np.ndarray:
        self.rules.legal(self.states, self._legal)
        self.rules.observe(self.states, self._seen)
        return self._seen.astype(np.float32)

    def get_attr(self, attr_name: str, indices: Rows = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None for _ in self._get_indices(indices)]
        if attr_name == "action_masks":
            return self.env_method(attr_name, indices=indices)
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Rows = None) -> None:
        raise Failure(
            f"{self.rules.spec.game}: {attr_name!r} can't be set for games that are played together"
        )

    def env_method(self, method_name: str, *args: Any, indices: Rows = None, **kwargs: Any) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(f"{method_name!r} can't be called on games that are played together")
        return [self._legal[row].copy() for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Rows = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]
