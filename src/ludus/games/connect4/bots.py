"""Bots for connect four."""

from typing import Any

import numpy as np

from ludus.core.dice import below
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.games.connect4.board import COLUMNS, dropped, has_four, is_open


@inner
def completing(mine, taken):
    """A column that completes a line of `mine`, or -1."""
    for column in range(COLUMNS):
        if is_open(taken, column) and has_four(mine | dropped(taken, column)):
            return column
    return -1


@inner
def open_column(taken, stream):
    while True:
        column = below(stream, COLUMNS)
        if is_open(taken, column):
            return column


@njit
def greedy_rows(states, rng, out):
    for i in range(len(states)):
        mine, theirs = states[i].moves % 2, (states[i].moves + 1) % 2
        discs = states[i].discs
        taken = discs[0] | discs[1]
        column = completing(discs[mine], taken)
        if column < 0:
            column = completing(discs[theirs], taken)
        if column < 0:
            one, other = open_column(taken, rng[i]), open_column(taken, rng[i])
            middle = COLUMNS // 2
            column = one if abs(one - middle) < abs(other - middle) else other
        out[i] = column


class Greedy:
    """Wins if it can, stops a loss if it must, and otherwise takes the more central of two random columns."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        greedy_rows(states, rng, actions)
        return actions
