"""What a finished board is worth: values, fouls, royalties, Fantasyland, and the points between two."""

import numpy as np

from ludus.core.jit import njit
from ludus.games.ofc.cards import (
    FOUL,
    FULL_HOUSE,
    NO_LIMIT,
    PAIR,
    QUADS,
    TRIPS,
    best_at_most,
    category,
    lead_rank,
)  # fmt: skip

TOP, MIDDLE, BOTTOM = 0, 1, 2
ROW_SIZE = np.array([3, 5, 5])
ROW_START = np.array([0, 3, 8])
BOARD = 13

MIDDLE_ROYALTY = np.array([0, 0, 0, 2, 4, 8, 12, 20, 30, 50])
BOTTOM_ROYALTY = np.array([0, 0, 0, 0, 2, 4, 6, 10, 15, 25])
SIX, QUEEN = 4, 10

FANTASY_OFF, FANTASY_FLAT, FANTASY_PROGRESSIVE = 0, 1, 2
FANTASY_VALUE = np.array([6.6, 16.7, 38.5, 75.8])
"""Points that 14, 15, 16, 17 cards were measured to be worth against one opponent, for a strong public bot.
Our own champions', below, come to less even in long sessions."""
FANTASY_GAIN = np.array([11.9, 17.3, 23.0, 28.4])
LAST_GAIN = np.array([9.9, 15.7, 21.0, 26.3])
FANTASY_STAY = np.array([0.321, 0.454, 0.596, 0.739])
FANTASY_ENTRY = np.array([0.0191, 0.11, 0.216, 0.0067])
"""Of 14, 15, 16, 17 cards, measured among champions (`bench/fantasyland.py`): points won from an opponent who
plays a normal hand; the same in a session's last hand, where normal hands don't risk a foul for Fantasyland;
how often the seat stays; and how often a normal hand earns them."""
LONG_SESSION = 20
"""Hands to come above which their number makes no difference."""


def _paid() -> np.ndarray:
    """What 14, 15, 16, 17 cards are paid by: FANTASY_VALUE, then their worth with 0, 1, ... hands to come.

    A seat in Fantasyland wins its gain and may stay, but can't earn what a normal hand earns. Row 0 is for
    Fantasyland that is played, so it pays nothing. float64 [2 + LONG_SESSION + 1, 4]
    """
    rows = [np.zeros(4), FANTASY_VALUE, np.zeros(4)]
    for _ in range(LONG_SESSION):
        later = rows[-1]
        gain = FANTASY_GAIN if later.any() else LAST_GAIN
        rows.append(gain + FANTASY_STAY * later - FANTASY_ENTRY @ later)
    return np.array(rows)


PAID = _paid()
FIXED, SESSION = 1, 2
"""Rows of PAID: FANTASY_VALUE, and where those of sessions begin."""

SEATED_OF = 10_000
SEATED_SHARE = 0.15
"""How many seats of a sampled hand are in Fantasyland: fewer than the 40 % among champions, since others
enter less often and its hands take time."""


def _seated() -> np.ndarray:
    """From which of SEATED_OF numbers a seat has 14, 15, 16, 17 cards: as often as in sessions. int64 [4]"""
    share = FANTASY_ENTRY / (1 - FANTASY_STAY)
    share *= SEATED_SHARE / share.sum()
    return np.round(SEATED_OF * (1 - np.cumsum(share[::-1])[::-1])).astype(np.int64)


SEATED = _seated()

SCOOP, FOUL_COST = 3, 6


@njit(inline="always")
def top_royalty(value):
    rank = lead_rank(value)
    if category(value) == TRIPS:
        return 10 + rank
    if category(value) == PAIR and rank >= SIX:
        return rank - SIX + 1
    return 0


@njit
def board_values(board, values):
    """Values of top, middle and bottom of a full board; True if it stands, False if it fouls.

    Bottom first: every row takes the highest value that the row below it allows, so a joker never
    forces a foul. board: uint8 [13]; values: int64 [3]
    """
    limit = NO_LIMIT
    for row in (BOTTOM, MIDDLE, TOP):
        start = ROW_START[row]
        values[row] = best_at_most(board[start : start + ROW_SIZE[row]], ROW_SIZE[row], limit)
        if values[row] == FOUL:
            return False
        limit = values[row]
    return True


@njit(inline="always")
def royalties(values):
    """Royalties of a board that stands."""
    return (
        top_royalty(values[TOP])
        + MIDDLE_ROYALTY[category(values[MIDDLE])]
        + BOTTOM_ROYALTY[category(values[BOTTOM])]
    )


@njit(inline="always")
def top_entry(top, fantasy):
    """How many cards of Fantasyland a normal board that stands has earned by its top; 0 for none."""
    if fantasy == FANTASY_OFF:
        return 0
    kind, rank = category(top), lead_rank(top)
    if kind == TRIPS:
        return 17 if fantasy == FANTASY_PROGRESSIVE else 14
    if kind == PAIR and rank >= QUEEN:
        return 14 + rank - QUEEN if fantasy == FANTASY_PROGRESSIVE else 14
    return 0


@njit(inline="always")
def entry_cards(values, fantasy):
    """The same by all of a board's values."""
    return top_entry(values[TOP], fantasy)


@njit(inline="always")
def stays(values, stay_middle):
    """Whether a Fantasyland board that stands keeps its seat there. A pair on top never does."""
    return (
        category(values[TOP]) == TRIPS
        or category(values[BOTTOM]) >= QUADS
        or (stay_middle and category(values[MIDDLE]) >= FULL_HOUSE)
    )


@njit
def pair_points(mine, stand_mine, theirs, stand_theirs):
    """Points that the first board wins from the second. mine, theirs: row values [3]"""
    if not stand_mine and not stand_theirs:
        return 0
    if not stand_mine:
        return -FOUL_COST - royalties(theirs)
    if not stand_theirs:
        return FOUL_COST + royalties(mine)
    rows = 0
    for row in range(3):
        rows += np.sign(mine[row] - theirs[row])
    scoop = SCOOP * np.sign(rows) if abs(rows) == 3 else 0
    return rows + scoop + royalties(mine) - royalties(theirs)
