"""A game of two seats that is not zero-sum: one chooses, the other answers, and both get a point for every
answer that is the same."""

from dataclasses import dataclass

import numpy as np

from ludus.core.errors import Usage
from ludus.core.game import NativeGame
from ludus.core.spec import Part, Spec

ROUNDS, CHOICES = 4, 3
STATE = np.dtype([("chosen", np.int8, (2 * ROUNDS,)), ("moves", np.int8)])


@dataclass(frozen=True)
class Options:
    pass


class Together:
    spec = Spec(
        "together", seats=2, actions=CHOICES, parts=(Part("obs", (CHOICES, 2, ROUNDS), kind="board"),),
        state=STATE, stats=("moves",), zero_sum=False, chance=False,
    )  # fmt: skip

    def blank(self, n):
        return np.zeros(n, STATE)

    def deal(self, states, rng):
        states[:] = np.zeros((), STATE)

    def seat(self, states):
        return states["moves"] % 2

    def over(self, states):
        return states["moves"] == 2 * ROUNDS

    def legal(self, states, out):
        out[:] = True

    def observe(self, states, out):
        made = np.arange(2 * ROUNDS) < states["moves"][:, None]
        for choice in range(CHOICES):
            planes = (states["chosen"] == choice) & made
            out[:, choice] = planes.reshape(-1, ROUNDS, 2).transpose(0, 2, 1)

    def play(self, states, actions, rng):
        states["chosen"][np.arange(len(states)), states["moves"]] = actions
        states["moves"] += 1

    def score(self, states, out):
        pairs = states["chosen"].reshape(-1, ROUNDS, 2)
        answered = np.arange(ROUNDS) < states["moves"][:, None] // 2
        out[:] = ((pairs[..., 0] == pairs[..., 1]) & answered).sum(1, keepdims=True)

    def stats(self, states, out):
        out[..., 0] = states["moves"][:, None]

    def redeal(self, states, rng):
        pass

    def text(self, state):
        return "".join(map(str, state["chosen"][: state["moves"]])) or "-"

    def parse(self, text):
        if text != "-" and (not text or set(text) - set("012") or len(text) > 2 * ROUNDS):
            raise Usage(f"{text!r} is not a list of choices, as 0112")
        states = self.blank(1)
        chosen = [] if text == "-" else [int(word) for word in text]
        states[0]["chosen"][: len(chosen)], states[0]["moves"] = chosen, len(chosen)
        return states

    def action_text(self, state, action):
        return str(action)

    def parse_action(self, state, text):
        if text not in ("0", "1", "2"):
            raise Usage(f"{text!r} is not a choice: 0, 1 or 2")
        return int(text)


class Game(NativeGame):
    """Two seats that choose the same."""

    options_type = Options

    def make_rules(self, options):
        return Together()
