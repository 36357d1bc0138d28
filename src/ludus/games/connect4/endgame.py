"""The exact end of a game of connect four: alpha-beta over boards of bits, with a small table.

A position is `mine`, the discs of the seat to move, and `taken`, those of both. Its value is that of the seat
to move: 1 won, 0 drawn, -1 lost.
"""

import numpy as np

from ludus.core.jit import inner, njit
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
)

TABLE = 1 << 12
"""Positions that are remembered."""
COLUMN = np.uint64((1 << ROWS) - 1)
ORDER = np.array([3, 2, 4, 1, 5, 0, 6])
"""Columns from the centre: more lines run through it."""
MIX = np.uint64(0x9E3779B97F4A7C15)
FOUND = np.dtype([("key", np.uint64), ("low", np.int8), ("high", np.int8)])
"""What is known of a position: bounds of its value."""


@inner
def sort_moves(mine, taken, safe, moves):
    """Moves in `safe`, those that make the most threats first; how many. moves: uint64 [7], to be written"""
    count, threats = 0, np.empty(COLUMNS, np.int64)
    for column in ORDER:
        move = safe & COLUMN << np.uint64(column * STRIDE)
        if move:
            found, place = count_bits(winning_cells(mine | move, taken | move)), count
            while place > 0 and threats[place - 1] < found:
                threats[place], moves[place] = threats[place - 1], moves[place - 1]
                place -= 1
            threats[place], moves[place] = found, move
            count += 1
    return count


@njit
def value_of(mine, taken, empty, alpha, beta, tried, table):
    """The value of a position in which the seat to move can't win at once; alpha-beta, fail-soft.

    empty: cells; tried: int64 [2], nodes and how many there may be: with more, what comes back means nothing
    """
    tried[0] += 1
    if tried[0] > tried[1]:
        return np.int64(0)
    theirs = mine ^ taken
    playable, threats = (taken + BOTTOM) & BOARD, winning_cells(theirs, taken)
    forced = playable & threats
    if forced:
        playable = forced
    safe = playable & ~(threats >> ONE)  # not below a cell where they win
    if empty and (not safe or forced & (forced - ONE)):
        return np.int64(-1)
    if empty <= 2:
        return np.int64(0)
    key = mine + taken  # no two positions have the same
    entry = table[key * MIX >> np.uint64(52)]
    low, high = np.int64(-1), np.int64(1)
    if entry.key == key:
        low, high = np.int64(entry.low), np.int64(entry.high)
    if low >= beta or low == high:
        return low
    if high <= alpha:
        return high
    moves = np.empty(COLUMNS, np.uint64)
    best = np.int64(-1)
    for k in range(sort_moves(mine, taken, safe, moves)):
        found = -value_of(theirs, taken | moves[k], empty - 1, -beta, -max(alpha, best), tried, table)
        if tried[0] > tried[1]:
            return best
        best = max(best, found)
        if best >= min(beta, high):
            break
    entry.key = key
    entry.low = best if best > alpha else low
    entry.high = best if best < beta else high
    return best


@njit
def solve_rows(states, most, found, out):
    """Scores after best play of both, where `most` nodes find them. found: bool [N]; out: float32 [N, 2]"""
    table, tried = np.empty(TABLE, FOUND), np.empty(2, np.int64)
    for i in range(len(states)):
        seat = np.int64(states[i].moves) % 2
        mine, taken = states[i].discs[seat], states[i].discs[0] | states[i].discs[1]
        found[i], value = True, np.int64(1)
        if not winning_cells(mine, taken) & (taken + BOTTOM) & BOARD:
            tried[0], tried[1] = 0, most
            for entry in range(TABLE):  # so that it never matters which positions were solved before
                table[entry].key = 0
            empty = CELLS - np.int64(states[i].moves)
            value = value_of(mine, taken, empty, np.int64(-1), np.int64(1), tried, table)
            found[i] = tried[0] <= most
        out[i, seat], out[i, 1 - seat] = value, -value
