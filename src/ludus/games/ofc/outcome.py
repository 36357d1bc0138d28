"""What a board wins from the other seats': exactly if theirs are finished, else what is expected.

Looks only at what the seat to move can see.
"""

import numpy as np

from ludus.core.jit import inner
from ludus.games.ofc.cards import (
    FLUSH,
    FULL_HOUSE,
    HIGH,
    PAIR,
    QUADS,
    ROYAL,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
    best,
    category,
)
from ludus.games.ofc.hand import paid_by
from ludus.games.ofc.scoring import (
    BOARD,
    BOTTOM,
    BOTTOM_ROYALTY,
    FOUL_COST,
    MIDDLE,
    MIDDLE_ROYALTY,
    PAID,
    ROW_SIZE,
    ROW_START,
    SCOOP,
    TOP,
    board_values,
    royalties,
    top_entry,
    top_royalty,
)

OPEN = -2
"""In place of a row's value: it is not finished."""
KINDS = (ROYAL + 1) << 4
"""A row's category and leading rank (1 to 13), as `value >> 16`."""
STANDS = 0.76
"""How often a normal board stands; one in Fantasyland always does."""

MEASURED = (
    {
        TOP: (
            (HIGH, 1, 0), (HIGH, 11, 2), (HIGH, 12, 7), (HIGH, 13, 25), (PAIR, 1, 39), (PAIR, 9, 44),
            (PAIR, 11, 48), (PAIR, 12, 59), (PAIR, 13, 84), (TRIPS, 1, 99), (TRIPS, 13, 100),
        ),
        MIDDLE: (
            (HIGH, 1, 0), (HIGH, 13, 1), (PAIR, 6, 15), (TWO_PAIR, 2, 24), (TWO_PAIR, 3, 28),
            (TWO_PAIR, 6, 53), (TWO_PAIR, 8, 64), (TWO_PAIR, 10, 69), (TRIPS, 1, 74), (TRIPS, 5, 87),
            (TRIPS, 8, 92), (STRAIGHT, 4, 94), (STRAIGHT, 9, 98), (ROYAL, 13, 100),
        ),
        BOTTOM: (
            (HIGH, 1, 0), (PAIR, 5, 0), (TWO_PAIR, 7, 4), (TWO_PAIR, 9, 9), (TWO_PAIR, 12, 24),
            (TRIPS, 6, 30), (TRIPS, 12, 49), (STRAIGHT, 8, 51), (STRAIGHT, 9, 53), (STRAIGHT, 10, 58),
            (STRAIGHT, 12, 72), (STRAIGHT, 13, 76), (FULL_HOUSE, 5, 78), (FULL_HOUSE, 8, 82),
            (FULL_HOUSE, 12, 92), (QUADS, 12, 99), (ROYAL, 13, 100),
        ),
    },
    {
        TOP: (
            (HIGH, 1, 0), (HIGH, 10, 1), (PAIR, 1, 11), (PAIR, 7, 17), (PAIR, 9, 23), (PAIR, 11, 33),
            (PAIR, 12, 43), (PAIR, 13, 57), (TRIPS, 1, 64), (TRIPS, 8, 75), (TRIPS, 11, 86), (TRIPS, 13, 97),
        ),
        MIDDLE: (
            (HIGH, 1, 0), (PAIR, 10, 1), (TWO_PAIR, 3, 3), (TWO_PAIR, 6, 5), (TWO_PAIR, 12, 17),
            (STRAIGHT, 3, 20), (STRAIGHT, 8, 42), (STRAIGHT, 11, 51), (FLUSH, 1, 56), (FLUSH, 9, 58),
            (FLUSH, 11, 66), (FULL_HOUSE, 1, 85), (FULL_HOUSE, 9, 97), (QUADS, 8, 99), (ROYAL, 13, 100),
        ),
        BOTTOM: (
            (HIGH, 1, 0), (STRAIGHT, 3, 0), (STRAIGHT, 9, 2), (FLUSH, 1, 8), (FLUSH, 8, 9), (FLUSH, 10, 11),
            (FLUSH, 11, 15), (FLUSH, 12, 21), (FLUSH, 13, 33), (FULL_HOUSE, 1, 41), (FULL_HOUSE, 4, 47),
            (FULL_HOUSE, 12, 69), (QUADS, 8, 79), (STRAIGHT_FLUSH, 4, 83), (STRAIGHT_FLUSH, 13, 95),
            (ROYAL, 13, 97),
        ),
    },
)  # fmt: skip
"""Of normal boards and of those in Fantasyland: how many of 100 standing ones of champions have a lower row,
ties by half. By category and leading rank, linear in between. 12,000 hands; docs/ofc.md says how well
that describes whole boards."""


def _chances() -> np.ndarray:
    """float64 [2, 3, KINDS]: against normal boards, and against those in Fantasyland."""
    found = np.zeros((2, 3, KINDS))
    for against, rows in enumerate(MEASURED):
        for row, points in rows.items():
            places = [category * 13 + rank for category, rank, _ in points]
            for kind in range(KINDS):
                place = (kind >> 4) * 13 + min(kind & 15, 13)
                found[against, row, kind] = np.interp(place, places, [share for *_, share in points]) / 100
    return found


CHANCES = _chances()


@inner
def read_others(state, theirs, stands, pays):
    """What is known of the other seats, in the order in which they come after the seat to move.

    theirs: int64 [2, 3], values of their rows, OPEN where they aren't finished; stands: float64 [2], how
    likely they stand; pays: float64 [2], royalties of those that are finished
    """
    for ahead in range(state.seats - 1):
        seat = (state.turn + 1 + ahead) % state.seats
        board, count, rows = state.board[seat], state.count[seat], theirs[ahead]
        pays[ahead] = 0.0
        if count[0] + count[1] + count[2] == BOARD:
            is_standing = board_values(board, rows)
            stands[ahead] = 1.0 if is_standing else 0.0
            pays[ahead] = royalties(rows) if is_standing else 0.0
            continue
        # A Fantasyland board lies face down, so nothing is known of it but that it stands.
        stands[ahead] = 1.0 if state.fantasy_cards[seat] else STANDS
        for row in range(3):
            start, size = ROW_START[row], ROW_SIZE[row]
            rows[row] = best(board[start : start + size], size) if count[row] == size else OPEN


@inner
def row_chances(state, theirs, ahead, row, value):
    """How likely a row wins against another seat's, and loses, if both boards stand."""
    other = theirs[ahead, row]
    if other == OPEN:
        in_fantasy = state.fantasy_cards[(state.turn + 1 + ahead) % state.seats] > 0
        wins = CHANCES[int(in_fantasy), row, value >> 16]
        return wins, 1 - wins
    return 1.0 if value > other else 0.0, 1.0 if value < other else 0.0


@inner
def points_standing(stands, pays, wins, losses):
    """Points from another seat, but for one's own royalties. stands, pays: of that seat; wins, losses: [3]"""
    rows = wins[0] + wins[1] + wins[2] - losses[0] - losses[1] - losses[2]
    scoop = wins[0] * wins[1] * wins[2] - losses[0] * losses[1] * losses[2]
    return stands * (rows + SCOOP * scoop - pays) + (1 - stands) * FOUL_COST


@inner
def points_fouling(state, stands, pays):
    total = 0.0
    for ahead in range(state.seats - 1):
        total -= stands[ahead] * (FOUL_COST + pays[ahead])
    return total


@inner
def own_worth(state, row, value):
    """What a row of a standing board brings whatever the others have: royalties and Fantasyland."""
    if row == TOP:
        cards = top_entry(value, state.fantasy)
        brings = top_royalty(value) + (PAID[paid_by(state), cards - 14] if cards else 0.0)
    elif row == MIDDLE:
        brings = float(MIDDLE_ROYALTY[category(value)])
    else:
        brings = float(BOTTOM_ROYALTY[category(value)])
    return (state.seats - 1) * brings


@inner
def board_worth(state, theirs, stands, pays, values, is_standing):
    """What the seat to move wins with a finished board, Fantasyland included. values: of its rows, if it
    stands; the rest as `read_others` says"""
    if not is_standing:
        return points_fouling(state, stands, pays)
    wins, losses, worth = np.empty(3), np.empty(3), 0.0
    for row in range(3):
        worth += own_worth(state, row, values[row])
    for ahead in range(state.seats - 1):
        for row in range(3):
            wins[row], losses[row] = row_chances(state, theirs, ahead, row, values[row])
        worth += points_standing(stands[ahead], pays[ahead], wins, losses)
    return worth
