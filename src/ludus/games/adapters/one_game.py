"""OneGame: a single native game, as the environments of other libraries step it.

Rules observe only for the seat to move. So wherever another library asks for more (a seat that is not
to move, a game that is over), the answer is zeros with nothing legal.
"""

import operator
from typing import Any

import numpy as np

from ludus.core import seeds
from ludus.core.errors import Failure
from ludus.core.rules import Bot, Rules


class OneGame:
    def __init__(self, rules: Rules) -> None:
        self.rules, self.spec = rules, rules.spec
        self.states = rules.blank(1)
        self.rng = np.zeros((1, 2), np.uint64)
        self.bot_rng = np.zeros((1, 2), np.uint64)
        self.seeded = self.dealt = False

    def seed(self, seed: int) -> None:
        self.states[:] = self.rules.blank(1)  # a game that is over may leave something for the next
        self.rng[:] = seeds.rows(seed, 1, "table")
        self.bot_rng[:] = seeds.rows(seed, 1, "bots")
        self.seeded = True

    def deal(self) -> None:
        self.rules.deal(self.states, self.rng)
        self.dealt = True

    def seat(self) -> int:
        return int(self.rules.seat(self.states)[0])

    def over(self) -> bool:
        return bool(self.rules.over(self.states)[0])

    def legal(self) -> np.ndarray:
        """bool [A]; nothing is legal before the deal and after the end."""
        out = np.zeros((1, self.spec.actions), bool)
        if self.dealt and not self.over():
            self.rules.legal(self.states, out)
        return out[0]

    def observe(self) -> np.ndarray:
        """[*obs_shape]"""
        out = np.zeros((1, *self.spec.obs_shape), self.spec.obs_dtype)
        if not self.over():
            self.rules.observe(self.states, out)
        return out[0]

    def score(self) -> np.ndarray:
        """float32 [seats]"""
        out = np.zeros((1, self.spec.seats), np.float32)
        self.rules.score(self.states, out)
        return out[0]

    def play(self, action: Any) -> None:
        """Refuses an illegal action and leaves the game as it was."""
        name = self.spec.game
        if not self.dealt:
            raise Failure(f"{name}: no game has been dealt: call reset() first")
        if self.over():
            raise Failure(f"{name}: the game is over: call reset() to start another")
        try:
            number = operator.index(action)
        except TypeError:
            raise Failure(f"{name}: action {action!r} is not a whole number") from None
        if not 0 <= number < self.spec.actions:
            raise Failure(f"{name}: action {number} is not in 0..{self.spec.actions - 1}")
        if not self.legal()[number]:
            raise Failure(f"{name}: action {number} is illegal here: choose one that the action mask allows")
        self.rules.play(self.states, np.array([number], np.int32), self.rng)

    def play_others(self, bot: Bot, seat: int) -> None:
        """Let the bot play until it is `seat`'s turn or the game is over."""
        while not self.over() and self.seat() != seat:
            self.rules.play(self.states, bot.choose(self.states, self.bot_rng), self.rng)

    def text(self) -> str:
        show = getattr(self.rules, "render", self.rules.text)
        return show(self.states[0])
