"""What leaves are worth, and which actions look good there: by a network, by random play, or by the game."""

from collections.abc import Callable

import numpy as np

from ludus.core.duel import wins
from ludus.core.jit import njit
from ludus.core.rules import RandomBot, Rules, States, Streams
from ludus.core.spec import Spec

Evaluator = Callable[[States, np.ndarray, np.ndarray, Streams, np.ndarray, np.ndarray], None]
"""evaluate(states, actions, counts, rng, logits, values), for games that are not over.

actions: int32 [N, A], of which the first counts[i] are legal; logits: float32 [N, A], to be written in the
same places; values: float32 [N, seats], to be written: what each seat expects, in [-1, 1]
"""
Utility = Callable[[np.ndarray], np.ndarray]
"""What final scores are worth to each seat, in [-1, 1]. float32 [N, seats] -> [N, seats]"""


def win_share(score: np.ndarray) -> np.ndarray:
    """1 for a win and -1 for a loss; seats that are first together share the win (of two: 0)."""
    return (2 * wins(score) - 1).astype(np.float32)


def own_evaluator(rules: Rules, utility: Utility) -> Evaluator:
    """What a game's `estimate` says, or random play for games that offer none."""
    return getattr(rules, "estimate", None) or Playouts(rules, utility)


class Playouts:
    """One random game to its end; all actions look equally good."""

    def __init__(self, rules: Rules, utility: Utility = win_share) -> None:
        self.rules, self.utility, self.bot = rules, utility, RandomBot(rules)

    def __call__(
        self, states: States, actions: np.ndarray, counts: np.ndarray, rng: Streams, logits: np.ndarray,
        values: np.ndarray,
    ) -> None:  # fmt: skip
        final, alive = states.copy(), np.arange(len(states))
        while len(alive):
            some, some_rng = final[alive], rng[alive]
            self.rules.play(some, self.bot.choose(some, some_rng), some_rng)
            final[alive], rng[alive] = some, some_rng
            alive = alive[~self.rules.over(some)]
        score = np.zeros(values.shape, np.float32)
        self.rules.score(final, score)
        values[:] = self.utility(score)
        logits[:, : counts.max()] = 0


class Network:
    """A network's view: `forward(obs)` gives logits [N, places] and values, both float32.

    Values are of the seat to move, [N, 1] (the others lose what it wins), or [N, seats] in the order of play.
    """

    def __init__(self, rules: Rules, forward: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
        self.rules, self.forward = rules, forward
        self.places = action_places(rules.spec)

    def __call__(
        self, states: States, actions: np.ndarray, counts: np.ndarray, rng: Streams, logits: np.ndarray,
        values: np.ndarray,
    ) -> None:  # fmt: skip
        spec = self.rules.spec
        obs = np.empty((len(states), *spec.obs_shape), spec.obs_dtype)
        self.rules.observe(states, obs)
        everything, value = self.forward(obs)
        pick_logits(everything, self.places, actions, counts, logits)
        values_by_seat(value, self.rules.seat(states), values)


def action_places(spec: Spec) -> np.ndarray:
    """Where a network's choice tells of each action, int64 [A]."""
    return np.arange(spec.actions) if spec.places is None else spec.places


@njit
def pick_logits(everything, places, actions, counts, out):
    """Those of the legal actions. everything: [N, places]; out: [N, A], its first counts[i] are written"""
    for i in range(len(counts)):
        for k in range(counts[i]):
            out[i, k] = everything[i, places[actions[i, k]]]


@njit
def list_places(rows, actions, counts, places, width, out):
    """Where the logits of legal actions are, in the choices of some rows one after the other.

    rows: int64 [K]; actions: int32 [N, A]; counts: [N]; places: [A]; width: of one choice; out: int32, at
    least as many
    """
    at = 0
    for i in range(len(rows)):
        for k in range(counts[rows[i]]):
            out[at] = i * width + places[actions[rows[i], k]]
            at += 1
    out[at:] = 0


@njit
def spread_logits(found, rows, counts, out):
    """Those of each of the rows. found: float32, one row's after the other's; out: [N, A]"""
    at = 0
    for i in rows:
        for k in range(counts[i]):
            out[i, k] = found[at]
            at += 1


@njit
def values_by_seat(value, seat, out):
    """Values in the order of play (or of the first alone) as values of the seats. out: [N, seats]"""
    seats = out.shape[1]
    for i in range(len(out)):
        for ahead in range(seats):
            at = (seat[i] + ahead) % seats
            if ahead < value.shape[1]:
                out[i, at] = value[i, ahead]
            else:
                out[i, at] = -value[i, 0] / max(1, seats - 1)
