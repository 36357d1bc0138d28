"""Bots for tic-tac-toe."""

from typing import Any

import numpy as np

from ludus.core.dice import below
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.games.tictactoe.rules import has_line


@inner
def completing(cells, mark):
    """An empty cell that completes a line of `mark`, or -1."""
    for cell in range(9):
        if cells[cell] == 0:
            cells[cell] = mark
            found = has_line(cells, mark)
            cells[cell] = 0
            if found:
                return cell
    return -1


@njit
def greedy_rows(states, rng, out):
    for i in range(len(states)):
        cells = states[i].cells.copy()
        mine = states[i].moves % 2 + 1
        cell = completing(cells, mine)
        if cell < 0:
            cell = completing(cells, 3 - mine)
        while cell < 0:
            guess = below(rng[i], 9)
            if cells[guess] == 0:
                cell = guess
        out[i] = cell


class Greedy:
    """Wins if it can, stops a loss if it must, and otherwise plays anywhere."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        greedy_rows(states, rng, actions)
        return actions
