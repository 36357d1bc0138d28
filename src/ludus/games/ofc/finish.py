"""The last two streets: what is left to chance is little, so placements are judged by the boards they make.

Looks only at what the seat to move can see.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import CARDS, FOUL, JOKER, NO_LIMIT, best, best_at_most
from ludus.games.ofc.fantasy import CHANCES
from ludus.games.ofc.hand import ACTIONS, FIRST_ACTIONS, STATE, STREETS, paid_by, place_cards, unseen
from ludus.games.ofc.scoring import (
    BOARD,
    BOTTOM,
    FOUL_COST,
    MIDDLE,
    PAID,
    ROW_SIZE,
    ROW_START,
    SCOOP,
    TOP,
    board_values,
    entry_cards,
    pair_points,
    royalties,
)

OPPONENT_STANDS = 0.75
"""How often a board that is not finished yet will stand."""
OPEN = -2
"""In place of a row's value: it is not finished. A finished board that fouls has FOUL on top."""


# ---- what a finished board wins


@inner
def read_others(state, theirs):
    """Values of the other seats' finished rows. theirs: int64 [seats, 3]

    A Fantasyland board is face down, so nothing is known of it.
    """
    for seat in range(state.seats):
        board, count = state.board[seat], state.count[seat]
        if count[0] + count[1] + count[2] == BOARD:
            if not board_values(board, theirs[seat]):
                theirs[seat, 0] = FOUL
            continue
        for row in range(3):
            start, size = ROW_START[row], ROW_SIZE[row]
            theirs[seat, row] = best(board[start : start + size], size) if count[row] == size else OPEN


@inner
def is_finished(theirs):
    return theirs[0] != OPEN and theirs[1] != OPEN and theirs[2] != OPEN


@inner
def points_from(theirs, values):
    """Points that a standing board wins from another seat: exact if that board is finished, else expected.

    theirs: as `read_others` says, [3]; values: int64 [3]
    """
    if is_finished(theirs):
        return np.float64(pair_points(values, True, theirs, theirs[0] != FOUL))
    rows, win_all, lose_all = 0.0, 1.0, 1.0
    for row in range(3):
        wins = CHANCES[row, values[row] >> 16]
        if theirs[row] != OPEN:
            wins = 0.5 + 0.5 * np.sign(values[row] - theirs[row])
        rows += 2 * wins - 1
        win_all *= wins
        lose_all *= 1 - wins
    return royalties(values) + OPPONENT_STANDS * (rows + SCOOP * (win_all - lose_all))


@inner
def foul_points(theirs, values):
    """The same of a board that fouls. values: anything"""
    if is_finished(theirs):
        return np.float64(pair_points(values, False, theirs, theirs[0] != FOUL))
    return -OPPONENT_STANDS * FOUL_COST


@inner
def board_worth(state, theirs, values, stands):
    """What the seat to move wins with a finished board, Fantasyland included. theirs: [seats, 3]; values: of
    its rows, int64 [3], if it stands"""
    worth = 0.0
    for ahead in range(1, state.seats):
        other = theirs[(state.turn + ahead) % state.seats]
        worth += points_from(other, values) if stands else foul_points(other, values)
    cards = entry_cards(values, state.fantasy) if stands else 0
    if cards:
        worth += PAID[paid_by(state), cards - 14] * (state.seats - 1)
    return worth


# ---- the last street


@inner
def finish_board(state, action, board):
    """The board that an action of the last street completes; False if it doesn't fit. board: uint8 [13]"""
    seat, code = state.turn, action - FIRST_ACTIONS
    first, second, out = code // 9, code // 3 % 3, code % 3
    place = state.count[seat, second] + (first == second)
    if state.count[seat, first] >= ROW_SIZE[first] or place >= ROW_SIZE[second]:
        return False
    for slot in range(BOARD):
        board[slot] = state.board[seat, slot]
    board[ROW_START[first] + state.count[seat, first]] = state.drawn[1 if out == 0 else 0]
    board[ROW_START[second] + place] = state.drawn[1 if out == 2 else 2]
    return True


@inner
def finish_action(state):
    """The last placement that is worth most. No foul if any placement stands."""
    board, values, theirs = np.empty(BOARD, np.uint8), np.empty(3, np.int64), np.empty((3, 3), np.int64)
    chosen, most = -1, -np.inf
    read_others(state, theirs)
    for action in range(FIRST_ACTIONS, ACTIONS):
        if not finish_board(state, action, board):
            continue
        stands = board_values(board, values)
        worth = board_worth(state, theirs, values, stands)
        if chosen < 0 or (stands and worth > most):
            chosen, most = action, worth if stands else -np.inf
    return chosen


@njit
def finish_rows(states, actions, known):
    """Put the best placement into the rows of a last street; which ones they are. known: bool [N]"""
    for i in range(len(states)):
        known[i] = states[i].street == STREETS - 1 and not states[i].over
        if known[i]:
            actions[i] = finish_action(states[i])


# ---- the street before it


@njit
def open_rows(state, rows):
    """In which row each of the last two cards will be. rows: int64 [2], written"""
    found = 0
    for row in range(3):
        for _ in range(state.count[state.turn, row], ROW_SIZE[row]):
            rows[found] = row
            found += 1


@inner
def rate_rows(state, cards, n, values, jokers):
    """What each row may become with a card of n in its open slot, if it has one; a complete row is the same
    with all of them. values: int64 [3, n], unlimited by the row below; jokers: bool [3, n]"""
    hand = np.empty(5, np.uint8)
    for row in range(3):
        start, held = ROW_START[row], state.count[state.turn, row]
        wild = False
        for place in range(held):
            hand[place] = state.board[state.turn, start + place]
            wild |= hand[place] >= JOKER
        for k in range(n):
            if held < ROW_SIZE[row]:
                hand[held] = cards[k]
            elif k > 0:
                values[row, k], jokers[row, k] = values[row, 0], jokers[row, 0]
                continue
            values[row, k] = best(hand, ROW_SIZE[row])
            jokers[row, k] = wild or (held < ROW_SIZE[row] and cards[k] >= JOKER)


@inner
def limited_rows(board, cards_of, values, jokers, limits, limited, found):
    """Values of a finished board by what its rows may become; whether it stands. found: int64 [3], written

    cards_of: which card each row was given. limits, limited: int64 [3, n], the limit that a row with a joker
    met last, and what that left of it
    """
    limit = NO_LIMIT
    for row in (BOTTOM, MIDDLE, TOP):
        k = cards_of[row]
        value = values[row, k]
        if value > limit and not jokers[row, k]:
            return False
        if value > limit:
            if limits[row, k] != limit:
                start, size = ROW_START[row], ROW_SIZE[row]
                limited[row, k] = best_at_most(board[start : start + size], size, limit)
                limits[row, k] = limit
            value = limited[row, k]
        if value == FOUL:
            return False
        found[row] = limit = value
    return True


@inner
def pairs_worth(state, cards, n, worth):
    """What each two of n cards bring as the last of a board, in their better order. worth: float64 [n, n],
    where the second is before the first"""
    board, found, theirs = np.empty(BOARD, np.uint8), np.empty(3, np.int64), np.empty((3, 3), np.int64)
    rows, slots, cards_of = np.empty(2, np.int64), np.empty(2, np.int64), np.zeros(3, np.int64)
    values, jokers = np.empty((3, n), np.int64), np.empty((3, n), np.bool_)
    limits, limited = np.full((3, n), -1), np.empty((3, n), np.int64)
    read_others(state, theirs)
    open_rows(state, rows)
    one_row = rows[0] == rows[1]
    for k in range(2):
        slots[k] = ROW_START[rows[k]] + state.count[state.turn, rows[k]] + (one_row and k)
    if not one_row:
        rate_rows(state, cards, n, values, jokers)
    for slot in range(BOARD):
        board[slot] = state.board[state.turn, slot]
    for i in range(n):
        for j in range(i):
            worth[i, j] = -np.inf
            for order in range(1 if one_row else 2):
                first, second = (j, i) if order else (i, j)
                board[slots[0]], board[slots[1]] = cards[first], cards[second]
                cards_of[rows[0]], cards_of[rows[1]] = first, second
                if one_row:
                    stands = board_values(board, found)
                else:
                    stands = limited_rows(board, cards_of, values, jokers, limits, limited, found)
                worth[i, j] = max(worth[i, j], board_worth(state, theirs, found, stands))


@inner
def draws_worth(state):
    """What the last draw brings, over all that it may be. The state: cards are placed, and none drawn."""
    cards, n, bits = np.empty(CARDS, np.uint8), 0, unseen(state)
    for card in range(CARDS):
        if bits >> np.uint64(card) & np.uint64(1):
            cards[n] = card
            n += 1
    worth = np.empty((n, n))
    pairs_worth(state, cards, n, worth)
    total = 0.0
    for i in range(n):
        for j in range(i):
            for k in range(j):
                total += max(worth[i, j], worth[i, k], worth[j, k])
    return total / (n * (n - 1) * (n - 2) / 6)


@njit
def judge_rows(states, ideas, worth, judged):
    """ideas: int32 [N, K], below 0 for none; worth: float64 [N, K] and judged: bool [N], written"""
    trial = np.empty(1, STATE)
    for i in range(len(states)):
        judged[i] = states[i].street == STREETS - 2 and not states[i].over
        for k in range(ideas.shape[1]):
            worth[i, k] = -np.inf
            if judged[i] and ideas[i, k] >= 0:
                trial[0] = states[i]
                place_cards(trial[0], ideas[i, k])
                worth[i, k] = draws_worth(trial[0])
