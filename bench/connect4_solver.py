"""An exact solver of connect four: alpha-beta over boards of bits, with a transposition table.

A position is `mine`, the discs of the seat to move, and `taken`, those of both, as in the game's rules. Its
value is that of the seat to move: 1 won, 0 drawn, -1 lost, UNSOLVED if the search was given up.
"""

import numba
import numpy as np

from ludus.games.connect4.rules import CELLS, COLUMNS, ONE, ROWS, STRIDE

njit = numba.njit(nogil=True)  # not kept on disk: a recursive function that is loaded from there crashes

UNSOLVED = 2
TABLE = 1 << 24
"""Entries of the transposition table; an odd modulus spreads the keys."""
BOTTOM = np.uint64(sum(1 << column * STRIDE for column in range(COLUMNS)))
BOARD = np.uint64(int(BOTTOM) * ((1 << ROWS) - 1))
ORDER = np.array([3, 2, 4, 1, 5, 0, 6])
"""Columns from the centre: more lines run through it."""
AT_LEAST, AT_MOST, EXACT = 1, 2, 3


def new_table() -> tuple[np.ndarray, np.ndarray]:
    """Keys and what is known of them: kind of bound << 2 | value + 1. uint64 [TABLE], uint8 [TABLE]"""
    return np.zeros(TABLE, np.uint64), np.zeros(TABLE, np.uint8)


@njit
def winning_cells(discs, taken):
    """Empty cells that would complete a line of four, whether a disc can come to rest there yet or not."""
    up = np.uint64(1)
    cells = discs << up & discs << np.uint64(2) & discs << np.uint64(3)
    for stride in (STRIDE, STRIDE - 1, STRIDE + 1):
        one, two, three = np.uint64(stride), np.uint64(2 * stride), np.uint64(3 * stride)
        cells |= discs << one & discs << two & (discs << three | discs >> one)
        cells |= discs >> one & discs >> two & (discs >> three | discs << one)
    return cells & BOARD & ~taken


@njit
def count_bits(bits):
    count = 0
    while bits:
        bits &= bits - ONE
        count += 1
    return count


@njit
def sort_moves(mine, taken, safe, moves):
    """Moves that don't lose at once, those that make the most threats first; how many. moves: uint64 [7]"""
    count, threats = 0, np.zeros(COLUMNS, np.int64)
    for column in ORDER:
        move = safe & np.uint64((1 << ROWS) - 1) << np.uint64(column * STRIDE)
        if not move:
            continue
        found = count_bits(winning_cells(mine | move, taken | move))
        place = count
        while place > 0 and threats[place - 1] < found:
            threats[place], moves[place] = threats[place - 1], moves[place - 1]
            place -= 1
        threats[place], moves[place] = found, move
        count += 1
    return count


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
