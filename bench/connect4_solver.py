"""An exact solver of connect four: alpha-beta over boards of bits, with a transposition table.

A position is `mine`, the discs of the seat to move, and `taken`, those of both, as in the game's rules. Its
value is that of the seat to move: 1 won, 0 drawn, -1 lost, UNSOLVED if the search was given up.
"""

import numba
import numpy as np

from ludus.games.connect4.board import (
    BOARD,
    BOTTOM,
    CELLS,
    COLUMNS,
    ONE,
    ROWS,
    STRIDE,
    count_bits,
    winning_cells,
)  # fmt: skip
from ludus.games.connect4.endgame import sort_moves

njit = numba.njit(nogil=True)  # not kept on disk: a recursive function that is loaded from there crashes

UNSOLVED = 2
TABLE = 1 << 24
"""Entries of the transposition table; an odd modulus spreads the keys."""
AT_LEAST, AT_MOST, EXACT = 1, 2, 3


def new_table() -> tuple[np.ndarray, np.ndarray]:
    """Keys and what is known of them: kind of bound << 2 | value + 1. uint64 [TABLE], uint8 [TABLE]"""
    return np.zeros(TABLE, np.uint64), np.zeros(TABLE, np.uint8)


@njit
def search(mine, taken, stones, low, high, keys, known, nodes):
    """The value of a position in which the seat to move can't win at once, within low and high.

    nodes: int64 [2], how many were searched and how many may be
    """
    nodes[0] += 1
    if nodes[0] > nodes[1]:
        return UNSOLVED
    theirs = mine ^ taken
    open_cells = (taken + BOTTOM) & BOARD
    threats = winning_cells(theirs, taken)
    forced = open_cells & threats
    if forced:
        if forced & (forced - ONE):
            return -1
        open_cells = forced
    safe = open_cells & ~(threats >> ONE)  # never below a cell where they win
    if not safe:
        return -1 if stones < CELLS else 0
    if stones >= CELLS - 2:
        return 0
    key = mine + taken
    entry = key % np.uint64(TABLE - 1)
    if keys[entry] == key:
        bound, value = known[entry] >> 2, np.int64(known[entry] & 3) - 1
        if bound == EXACT or (bound == AT_LEAST and value >= high) or (bound == AT_MOST and value <= low):
            return value
    moves = np.empty(COLUMNS, np.uint64)
    count, best, start = sort_moves(mine, taken, safe, moves), -1, low
    for i in range(count):
        value = search(theirs, taken | moves[i], stones + 1, -high, -low, keys, known, nodes)
        if value == UNSOLVED:
            return UNSOLVED
        best = max(best, -value)
        low = max(low, best)
        if low >= high:
            break
    keys[entry] = key
    known[entry] = (AT_LEAST if best >= high else AT_MOST if best <= start else EXACT) << 2 | best + 1
    return best


@njit
def solve(mine, taken, stones, low, high, keys, known, most_nodes):
    """The value of a position that is not over, within low and high."""
    if winning_cells(mine, taken) & (taken + BOTTOM) & BOARD:
        return 1
    nodes = np.array([0, most_nodes])
    return search(mine, taken, stones, low, high, keys, known, nodes)


@njit
def keeps_value(mine, taken, column, value, keys, known, most_nodes):
    """Whether a move keeps the value of a position: 1 or 0, UNSOLVED if that was given up."""
    stones = count_bits(taken)
    inside = np.uint64((1 << ROWS) - 1) << np.uint64(column * STRIDE)
    move = (taken & inside) + (ONE << np.uint64(column * STRIDE))
    if value == -1 or winning_cells(mine, taken) & move:
        return 1
    if stones + 1 == CELLS:
        return np.int64(value == 0)
    # No move is worth more than the position, so it is enough to know whether this one is worth less.
    after = solve(mine ^ taken, taken | move, stones + 1, -value, 1 - value, keys, known, most_nodes)
    return UNSOLVED if after == UNSOLVED else np.int64(-after >= value)
