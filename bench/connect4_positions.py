"""Positions of connect four with their perfect moves, solved once and kept in `connect4_positions.npz`.

`connect4_positions.py` makes that file again, in a few minutes on one core.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from connect4_solver import keeps_value, new_table, solve
from ludus import games
from ludus.core import seeds
from ludus.core.rules import RandomBot, legal_actions

FILE = Path(__file__).parent / "connect4_positions.npz"
EACH = 59
"""Positions of each depth."""
LEAST_STONES = 8
"""Emptier boards take a solver without an opening book minutes each."""


class Solved(NamedTuple):
    """N positions, those with the fewest stones first."""

    states: np.ndarray  # records of the rules [N]
    value: np.ndarray  # int8 [N]: 1 won, 0 drawn, -1 lost for the seat to move
    perfect: np.ndarray  # bool [N, 7]: legal moves that keep that value


def load() -> Solved:
    return Solved(**np.load(FILE))


def drawn_positions(each: int, least_stones: int, seed: int) -> np.ndarray:
    """Distinct open positions of games in which every other move is at random, so many of each depth.

    Random games alone would end soon and be decided by gifts.
    """
    game = games.open("connect4").native("played")
    rules, bots = game.rules, (game.bot("greedy"), RandomBot(game.rules))
    found: dict[int, dict[bytes, np.ndarray]] = {}
    for number in range(50):
        states, rng = rules.blank(400), seeds.rows(seed, 400, "positions", number)
        rules.deal(states, rng)
        while not rules.over(states).all():
            open_rows = np.flatnonzero(~rules.over(states))
            for state in states[open_rows]:
                if state["moves"] >= least_stones:
                    found.setdefault(int(state["moves"]), {})[state.tobytes()] = state.copy()
            coin = rng[open_rows, 0] >> np.uint64(63)
            for side, bot in enumerate(bots):
                rows = open_rows[coin == side]
                if len(rows):
                    some, streams = states[rows], rng[rows]
                    rules.play(some, bot.choose(some, streams), streams)
                    states[rows], rng[rows] = some, streams
    return np.array([state for depth in sorted(found) for state in list(found[depth].values())[:each]])


def solved(states: np.ndarray) -> Solved:
    """The last ones first: what is known of them helps with emptier boards."""
    rules, (keys, known) = games.open("connect4").native("solved").rules, new_table()
    value, perfect = np.zeros(len(states), np.int8), np.zeros((len(states), rules.spec.actions), bool)
    unlimited = 10**15
    for i in reversed(range(len(states))):
        discs, stones = states[i]["discs"], int(states[i]["moves"])
        mine, taken = discs[stones % 2], discs[0] | discs[1]
        value[i] = solve(mine, taken, stones, -1, 1, keys, known, unlimited)
        for action in legal_actions(rules, states[i]):
            perfect[i, action] = keeps_value(mine, taken, int(action), value[i], keys, known, unlimited)
        if i % EACH == 0:
            print(f"{i} positions to go, with {stones} stones and fewer", flush=True)
    return Solved(states, value, perfect)


if __name__ == "__main__":
    np.savez_compressed(FILE, **solved(drawn_positions(EACH, LEAST_STONES, seed=0))._asdict())
