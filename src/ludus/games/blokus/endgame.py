"""The exact end of a game of Duo: alpha-beta over the points that the seat to move ends up ahead.

A node is bounded by the pieces that still fit somewhere, and a table keeps what was found of positions that
other orders of moves reach too.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.blokus.moves import (
    ALL_PLACED,
    OFFSET_COUNT,
    PIECE_COUNT,
    SINGLE_LAST,
    act,
    is_over,
    list_placements,
    shift_boards,
)
from ludus.games.blokus.pieces import PIECE_SIZE

OPEN = 40
"""Placements open to both seats together, up to which it is tried: 2,000 nodes then solve 95 % of the
champion's positions, and above it few."""
DEPTH = 2 * PIECE_COUNT + 4
"""Plies that are left at most, with passes."""
TABLE = 1 << 12
"""Positions that are remembered."""
MOST = 1000
"""More than any difference of points."""
FOUND = np.dtype([("key", np.uint64), ("low", np.int16), ("high", np.int16), ("action", np.int32)])
"""What is known of a position: bounds of its value, and the best action so far."""
MIX, MIX_LEFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@inner
def most_points(board, state, seat):
    """A bound of what a seat still gets: all its pieces that fit among its free squares."""
    words = state.free.shape[1]
    free, corners = np.empty((OFFSET_COUNT, words), np.uint64), np.empty((OFFSET_COUNT, words), np.uint64)
    shift_boards(board, state, seat, free, corners)
    points, all_fit = 0, True
    for piece in range(PIECE_COUNT):
        if state.left[seat] >> piece & 1:
            if fits(board, piece, free):
                points += PIECE_SIZE[piece]
            else:
                all_fit = False
    return points + ALL_PLACED + SINGLE_LAST if all_fit and points else points


@njit
def fits(board, piece, free):
    """Whether some shape of a piece has room, wherever a seat may go on from. free: of `shift_boards`"""
    offsets = board.shape_offsets
    for shape in range(board.piece_shapes[piece], board.piece_shapes[piece + 1]):
        a, b, c = offsets[shape, 0], offsets[shape, 1], offsets[shape, 2]
        d, e = offsets[shape, 3], offsets[shape, 4]
        for w in range(free.shape[1]):
            if free[a, w] & free[b, w] & free[c, w] & free[d, w] & free[e, w]:
                return True
    return False


@inner
def position_key(state):
    """64 bits of a position, whose turn follows from the pieces that are placed and from who is stuck: that
    two of one search share them is as good as impossible."""
    key = np.uint64(1)
    for seat in range(state.mine.shape[0]):
        for word in range(state.mine.shape[1]):
            key = (key ^ state.mine[seat, word]) * MIX
            key ^= key >> np.uint64(29)
        key = (key ^ np.uint64(state.left[seat])) * MIX_LEFT
        key ^= key >> np.uint64(31)
    return key


@njit
def lead(board, stack, actions, ply, alpha, beta, tried, table):
    """Points that the seat to move at stack[ply] ends up ahead with best play of both; alpha-beta, fail-soft.

    stack: the positions down to here; actions: int32 [DEPTH, P + 1]; tried: int64 [2], nodes and how many
    there may be: with more, what comes back means nothing
    """
    state = stack[ply]
    seat = np.int64(state.turn)
    other = 1 - seat
    ahead = np.int64(state.points[seat]) - np.int64(state.points[other])
    if is_over(state):
        return ahead
    if state.stuck >> seat & 1:
        stack[ply + 1] = state
        stack[ply + 1].turn = other
        return -lead(board, stack, actions, ply + 1, -beta, -alpha, tried, table)
    tried[0] += 1
    if tried[0] > tried[1]:
        return ahead
    key = position_key(state)
    entry = table[key & np.uint64(TABLE - 1)]
    low, high, first = np.int64(-MOST), np.int64(MOST), np.int64(-1)
    if entry.key == key:
        low, high, first = np.int64(entry.low), np.int64(entry.high), np.int64(entry.action)
    high = min(high, ahead + most_points(board, state, seat))
    low = max(low, ahead - (0 if state.stuck >> other & 1 else most_points(board, state, other)))
    if high <= alpha:
        return high
    if low >= beta or low == high:
        return low
    count = list_placements(board, state, seat, actions[ply])
    best, chosen = np.int64(-MOST), first
    for k in range(count, -1, -1):  # what was best before, then large pieces, which have the last numbers
        action = first if k == count else np.int64(actions[ply, k])
        if action < 0 or (action == first and k < count):
            continue
        stack[ply + 1] = state
        act(board, stack[ply + 1], action)
        value = -lead(board, stack, actions, ply + 1, -beta, -max(alpha, best), tried, table)
        if tried[0] > tried[1]:
            return best
        if value > best:
            best, chosen = value, action
            if best >= min(beta, high):
                break
    entry.key, entry.action = key, chosen
    entry.low = best if best > alpha else low
    entry.high = best if best < beta else high
    return best


@njit
def solve_rows(board, states, most, found, out):
    """Leads after best play of both, where `most` nodes find them. found: bool [N]; out: float32 [N, 2]"""
    stack, table = np.empty(DEPTH, states.dtype), np.empty(TABLE, FOUND)
    actions, tried = np.empty((DEPTH, board.placements + 1), np.int32), np.empty(2, np.int64)
    for i in range(len(states)):
        placements = 0
        for seat in range(2):
            if not states[i].stuck >> seat & 1:
                placements += list_placements(board, states[i], seat, actions[0])
        found[i] = placements <= OPEN
        if found[i]:
            tried[0], tried[1] = 0, most
            for entry in range(TABLE):  # so that it never matters which positions were solved before
                table[entry].key = 0
            stack[0] = states[i]
            ahead = lead(board, stack, actions, 0, -MOST, MOST, tried, table)
            found[i] = tried[0] <= most
            seat = np.int64(states[i].turn)
            out[i, seat], out[i, 1 - seat] = ahead, -ahead
