"""Boards of bits: a column has seven, of which the highest is never set.

The empty bit above each column keeps lines from running over into the next one.
"""

import numpy as np

from ludus.core.jit import inner, njit

COLUMNS, ROWS = 7, 6
CELLS = COLUMNS * ROWS
STRIDE = ROWS + 1
ONE = np.uint64(1)
BOTTOM = np.uint64(sum(1 << column * STRIDE for column in range(COLUMNS)))
BOARD = np.uint64(int(BOTTOM) * ((1 << ROWS) - 1))


@njit
def has_four(discs):
    """Whether four discs are in a line: up, across, or along a diagonal."""
    for step in (1, STRIDE, STRIDE - 1, STRIDE + 1):
        pairs = discs & discs >> np.uint64(step)
        if pairs & pairs >> np.uint64(2 * step):
            return True
    return False


@njit(inline="always")
def is_open(taken, column):
    return taken >> np.uint64(column * STRIDE + ROWS - 1) & ONE == 0


@inner
def dropped(taken, column):
    """The bit at which a disc comes to rest, as a board. taken: the discs of both seats"""
    bottom = ONE << np.uint64(column * STRIDE)
    inside = (ONE << np.uint64(ROWS)) - ONE << np.uint64(column * STRIDE)
    return (taken & inside) + bottom


@njit
def winning_cells(discs, taken):
    """Empty cells that would complete a line of four, whether a disc can come to rest there yet or not."""
    cells = discs << np.uint64(1) & discs << np.uint64(2) & discs << np.uint64(3)
    for stride in (STRIDE, STRIDE - 1, STRIDE + 1):
        one, two, three = np.uint64(stride), np.uint64(2 * stride), np.uint64(3 * stride)
        cells |= discs << one & discs << two & (discs << three | discs >> one)
        cells |= discs >> one & discs >> two & (discs >> three | discs << one)
    return cells & BOARD & ~taken


@inner
def count_bits(bits):
    count = 0
    while bits:
        bits &= bits - ONE
        count += 1
    return count
