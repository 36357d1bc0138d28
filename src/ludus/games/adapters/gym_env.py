"""GymEnv: a native game as a Gymnasium environment with one learner. Must not know tables or training."""

from typing import Any

import gymnasium
import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.core.rules import Bot, Rules
from ludus.games.adapters.one_game import OneGame
from ludus.games.adapters.spaces import box_of

MOST_DEALS = 100


class GymEnv(gymnasium.Env):
    """One seat is the learner's; a bot plays the others.

    The reward is the learner's change of score since its last decision, so rewards sum to its final
    score. An illegal action raises `Failure` and changes nothing: `info["action_mask"]` and
    `action_masks()` say what is legal. When the game is over the observation and mask are zeros.
    """

    def __init__(
        self, rules: Rules, opponent: Bot, seat: int | None = None, render_mode: str | None = None
    ) -> None:
        """seat: the learner's; None draws one at each reset."""
        spec = rules.spec
        if seat is not None and not 0 <= seat < spec.seats:
            raise Usage(f"{spec.game} has no seat {seat}: choose from 0..{spec.seats - 1}")
        if render_mode not in (None, "ansi"):
            raise Usage(f"{spec.game} can't be rendered as {render_mode!r}: choose 'ansi'")
        self.metadata = {"render_modes": ["ansi"], "render_fps": 1}
        self.observation_space = box_of(spec.obs_shape, spec.obs_dtype)
        self.action_space = gymnasium.spaces.Discrete(spec.actions)
        self.render_mode = render_mode
        self.game, self.opponent = OneGame(rules), opponent
        self.seat = 0
        self._fixed_seat = seat
        self._score = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self.game.seeded:
            self.game.seed(int(self.np_random.integers(2**63)))
        for _ in range(MOST_DEALS):
            drawn = int(self.np_random.integers(self.game.spec.seats))
            self.seat = drawn if self._fixed_seat is None else self._fixed_seat
            self._score = 0.0
            self.game.deal()
            self.game.play_others(self.opponent, self.seat)
            if not self.game.over():
                return self.game.observe(), self._info()
        raise Failure(f"{self.game.spec.game}: seat {self.seat} got no decision in {MOST_DEALS} games")

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.game.play(action)
        self.game.play_others(self.opponent, self.seat)
        before, self._score = self._score, float(self.game.score()[self.seat])
        return self.game.observe(), self._score - before, self.game.over(), False, self._info()

    def action_masks(self) -> np.ndarray:
        """bool [A], by the name sb3-contrib looks for."""
        return self.game.legal()

    def render(self) -> str | None:  # type: ignore[override]
        return self.game.text() if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        # int8, because `action_space.sample(mask)` takes nothing else.
        return {"action_mask": self.game.legal().astype(np.int8), "seat": self.seat}
