"""One game's state, which placements are open to a seat, and what playing changes: the compiled core.

A board is a few words of bits (`board.py`). Every seat has three, all in its own view.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.blokus.board import LAYOUTS
from ludus.games.blokus.pieces import NAMES, OFFSETS, PIECE_SIZE, SHAPES

ONE = np.uint64(1)
PIECE_COUNT, SHAPE_COUNT, OFFSET_COUNT = len(NAMES), len(SHAPES), len(OFFSETS)
ALL_PLACED, SINGLE_LAST = 15, 5
"""Points beyond the squares: for placing every piece, and for the single square as the last of them."""


def state_dtype(name: str) -> np.dtype:
    seats, words = LAYOUTS[name].seats, LAYOUTS[name].words
    return np.dtype(
        [
            ("mine", np.uint64, (seats, words)),  # squares that the seat has covered
            ("free", np.uint64, (seats, words)),  # squares that nobody covers and no edge of its own touches
            ("corners", np.uint64, (seats, words)),  # free squares from which it may go on
            ("left", np.uint32, seats),  # pieces still to be placed, as bits
            ("points", np.uint8, seats),
            ("passes", np.uint8, seats),
            ("turn", np.int8),
            ("stuck", np.uint8),  # seats that have no placement, now or ever again, as bits
        ]
    )


STATES = {name: state_dtype(name) for name in LAYOUTS}

DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
LOWEST_BIT = np.zeros(64, np.uint8)
"""The place of a single bit, by the highest six bits of its product with DE_BRUIJN: all 64 differ."""
LOWEST_BIT[(DE_BRUIJN << np.arange(64, dtype=np.uint64)) >> np.uint64(58)] = np.arange(64)


@inner
def shift_boards(board, state, seat, free, corners):
    """A seat's free squares and corners as seen from each offset. Both uint64 [15, words]"""
    for offset in range(OFFSET_COUNT):
        skip, shift = board.offset_bits[offset] >> 6, np.uint64(board.offset_bits[offset] & 63)
        for word in range(state.free.shape[1]):
            free[offset, word] = shifted_word(state.free[seat], word + skip, shift)
            corners[offset, word] = shifted_word(state.corners[seat], word + skip, shift)


@njit(inline="always")
def shifted_word(bits, word, shift):
    """A word of a board that is shifted down by `shift` bits. bits: uint64 [words]"""
    if word >= len(bits):
        return np.uint64(0)
    value = bits[word] >> shift
    if word + 1 < len(bits) and shift > 0:
        value |= bits[word + 1] << (np.uint64(64) - shift)
    return value


@njit(inline="always")
def add_places(board, shape, free, corners, places, origin, filled):
    """Where a shape can stand: all its squares are free, and one of them is a corner to go on from.

    Adds the words with such places, as bits, and where they belong: shape * 8 + word. Returns how many words
    there are now. free, corners: of `shift_boards`; places: uint64, origin: int32 [filled + words]
    """
    offsets = board.shape_offsets
    a, b, c = offsets[shape, 0], offsets[shape, 1], offsets[shape, 2]
    d, e = offsets[shape, 3], offsets[shape, 4]
    for w in range(free.shape[1]):
        bits = free[a, w] & free[b, w] & free[c, w] & free[d, w] & free[e, w]
        bits &= corners[a, w] | corners[b, w] | corners[c, w] | corners[d, w] | corners[e, w]
        places[filled] = bits
        origin[filled] = shape << 3 | w
        filled += bits != 0
    return filled


@inner
def list_placements(board, state, seat, out):
    """Numbers of the placements open to a seat, in order. Returns how many. out: int32 [P]

    First the words in which places are, then the bits of all words in one loop: a loop for each word would
    end after another number of bits each time, and to guess that wrong costs a CPU more than all the rest.
    """
    words = state.free.shape[1]
    free, corners = np.empty((OFFSET_COUNT, words), np.uint64), np.empty((OFFSET_COUNT, words), np.uint64)
    places = np.empty(SHAPE_COUNT * words + 1, np.uint64)
    origin = np.empty(SHAPE_COUNT * words + 1, np.int32)
    shift_boards(board, state, seat, free, corners)
    filled, at, found = 0, 0, 0
    for piece in range(PIECE_COUNT):
        if state.left[seat] >> piece & 1:
            for shape in range(board.piece_shapes[piece], board.piece_shapes[piece + 1]):
                filled = add_places(board, shape, free, corners, places, origin, filled)
    while at < filled:
        bits = places[at]
        shape, word = origin[at] >> 3, origin[at] & 7
        lowest = bits & (~bits + ONE)
        bit = word * 64 + LOWEST_BIT[lowest * DE_BRUIJN >> np.uint64(58)]
        out[found] = board.shape_first[shape] + bit - board.bit_row[bit] * board.shape_short[shape]
        found += 1
        bits ^= lowest
        places[at] = bits
        at += bits == 0
    return found


@inner
def can_place(board, state, seat):
    words = state.free.shape[1]
    free, corners = np.empty((OFFSET_COUNT, words), np.uint64), np.empty((OFFSET_COUNT, words), np.uint64)
    places, origin = np.empty(words + 1, np.uint64), np.empty(words + 1, np.int32)
    shift_boards(board, state, seat, free, corners)
    for piece in range(PIECE_COUNT):
        if state.left[seat] >> piece & 1:
            for shape in range(board.piece_shapes[piece], board.piece_shapes[piece + 1]):
                if add_places(board, shape, free, corners, places, origin, 0):
                    return True
    return False


@inner
def list_actions(board, state, out):
    """Numbers of the legal actions of the seat to move, in order. Returns how many: none once all is over.

    out: int32 [P + 1], of which random play fills 210 on average in Duo
    """
    if is_over(state):
        return 0
    if state.stuck >> state.turn & 1:
        out[0] = board.placements
        return 1
    return list_placements(board, state, np.int64(state.turn), out)


@njit(inline="always")
def is_over(state):
    return state.stuck == (1 << state.free.shape[0]) - 1


@njit
def start(board, state):
    for seat in range(state.free.shape[0]):
        for word in range(state.free.shape[1]):
            state.mine[seat, word] = state.corners[seat, word] = 0
            state.free[seat, word] = board.inside[word]
        set_bit(state.corners[seat], board.start_bit)
        state.left[seat] = (1 << PIECE_COUNT) - 1
        state.points[seat] = state.passes[seat] = 0
    state.turn = state.stuck = 0


@njit(inline="always")
def set_bit(bits, bit):
    bits[bit >> 6] |= ONE << np.uint64(bit & 63)


@njit(inline="always")
def clear_bit(bits, bit):
    bits[bit >> 6] &= ~(ONE << np.uint64(bit & 63))


@njit
def place(board, state, seat, placement):
    """A seat covers squares, whoever's turn it is."""
    piece = board.placement_piece[placement]
    for i in range(PIECE_SIZE[piece]):
        bit = square_of(board, placement, i)
        set_bit(state.mine[seat], bit)
        for edge in range(4):
            clear_bit(state.free[seat], board.around[bit, edge])
        for corner in range(4, 8):
            set_bit(state.corners[seat], board.around[bit, corner])
    seats, words = state.free.shape
    for ahead in range(seats):
        other = (seat + ahead) % seats
        for i in range(PIECE_SIZE[piece]):
            clear_bit(state.free[other], square_of(board, board.ahead[ahead, placement], i))
        for word in range(words):
            state.corners[other, word] &= state.free[other, word]
    state.left[seat] &= ~np.uint32(1 << piece)
    state.points[seat] += PIECE_SIZE[piece]
    if state.left[seat] == 0:
        state.points[seat] += ALL_PLACED + (SINGLE_LAST if piece == 0 else 0)


@njit(inline="always")
def square_of(board, placement, i):
    """The bit of a placement's i-th square."""
    offset = board.shape_offsets[board.placement_shape[placement], i]
    return board.placement_bit[placement] + board.offset_bits[offset]


@njit
def find_stuck(board, state):
    """Mark the seats that have nothing left to place. A seat that is stuck stays so: squares only fill up."""
    for seat in range(state.free.shape[0]):
        if not state.stuck >> seat & 1 and not can_place(board, state, seat):
            state.stuck |= 1 << seat


@inner
def act(board, state, action):
    """The seat to move plays. Numbers are widened so that other functions are compiled for one kind only."""
    if action == board.placements:
        state.passes[state.turn] += 1
    else:
        place(board, state, np.int64(state.turn), np.int64(action))
        find_stuck(board, state)
    state.turn = (state.turn + 1) % state.free.shape[0]
