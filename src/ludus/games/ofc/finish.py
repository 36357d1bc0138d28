"""The last two streets: what is left to chance is little, so placements are judged by the boards they make.

Looks only at what the seat to move can see.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import CARDS, FOUL, JOKER, NO_LIMIT, best, best_at_most
from ludus.games.ofc.hand import ACTIONS, FIRST_ACTIONS, STATE, STREETS, place_cards, unseen
from ludus.games.ofc.outcome import (
    board_worth,
    own_worth,
    points_fouling,
    read_others,
    row_chances,
)
from ludus.games.ofc.scoring import (
    BOARD,
    BOTTOM,
    FOUL_COST,
    MIDDLE,
    ROW_SIZE,
    ROW_START,
    SCOOP,
    TOP,
    board_values,
)

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
    board, values = np.empty(BOARD, np.uint8), np.empty(3, np.int64)
    theirs, stand, pays = np.empty((2, 3), np.int64), np.empty(2), np.empty(2)
    chosen, most = -1, -np.inf
    read_others(state, theirs, stand, pays)
    for action in range(FIRST_ACTIONS, ACTIONS):
        if not finish_board(state, action, board):
            continue
        stands = board_values(board, values)
        worth = board_worth(state, theirs, stand, pays, values, stands)
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
def rate_rows(state, cards, n, theirs, stand, values, jokers, sure, wins, losses):
    """What each row may become: with each of n cards in its open slot, with each two of them in both (the
    second before the first), or as it is. Values are not limited by the row below.

    theirs, stand: as `read_others` says. values: int64 [3, K]; jokers: bool [3, K], whether the row has one;
    sure: float64 [3, K], all that it wins but for scoops; wins, losses: float64 [2, 3, K], how likely it wins
    against each of the others. All are written.
    """
    hand = np.empty(5, np.uint8)
    for row in range(3):
        start, held = ROW_START[row], state.count[state.turn, row]
        wild = False
        for place in range(held):
            hand[place] = state.board[state.turn, start + place]
            wild |= hand[place] >= JOKER
        room = ROW_SIZE[row] - held
        k = 0
        for i in range(n if room else 1):
            for j in range(i if room == 2 else 1):
                if room:
                    hand[held] = cards[i]
                if room == 2:
                    hand[held + 1] = cards[j]
                value = best(hand, ROW_SIZE[row])
                values[row, k] = value
                jokers[row, k] = wild or (room and cards[i] >= JOKER) or (room == 2 and cards[j] >= JOKER)
                sure[row, k] = own_worth(state, row, value)
                for ahead in range(state.seats - 1):
                    win, loss = row_chances(state, theirs, ahead, row, value)
                    wins[ahead, row, k], losses[ahead, row, k] = win, loss
                    sure[row, k] += stand[ahead] * (win - loss)
                k += 1


@inner
def limited_rows(board, at, values, limits, limited, found):
    """Values of a finished board whose rows are too high but for their jokers; whether it stands.

    at: what each row became. limits, limited: int64 [3, K], the limit that a row met last, and what that left
    of it; found: int64 [3]. Written are all but the first.
    """
    limit = NO_LIMIT
    for row in (BOTTOM, MIDDLE, TOP):
        k = at[row]
        found[row] = values[row, k]
        if found[row] > limit:
            if limits[row, k] != limit:
                start, size = ROW_START[row], ROW_SIZE[row]
                limited[row, k] = best_at_most(board[start : start + size], size, limit)
                limits[row, k] = limit
            found[row] = limited[row, k]
        if found[row] == FOUL:
            return False
        limit = found[row]
    return True


@inner
def pairs_worth(state, cards, n, worth):
    """What each two of n cards bring as the last of a board, in their better order. worth: float64 [n, n],
    where the second is before the first"""
    board, found = np.empty(BOARD, np.uint8), np.empty(3, np.int64)
    theirs, stand, pays = np.empty((2, 3), np.int64), np.empty(2), np.empty(2)
    read_others(state, theirs, stand, pays)
    rows, slots, at = np.empty(2, np.int64), np.empty(2, np.int64), np.zeros(3, np.int64)
    open_rows(state, rows)
    one_row = rows[0] == rows[1]
    kinds = n * (n - 1) // 2 if one_row else n
    values, jokers, sure = (
        np.empty((3, kinds), np.int64),
        np.empty((3, kinds), np.bool_),
        np.empty((3, kinds)),
    )
    wins, losses = np.empty((2, 3, kinds)), np.empty((2, 3, kinds))
    limits, limited = np.full((3, kinds), -1), np.empty((3, kinds), np.int64)
    rate_rows(state, cards, n, theirs, stand, values, jokers, sure, wins, losses)
    for k in range(2):
        slots[k] = ROW_START[rows[k]] + state.count[state.turn, rows[k]] + (one_row and k)
    for slot in range(BOARD):
        board[slot] = state.board[state.turn, slot]
    fouled, paid = points_fouling(state, stand, pays), 0.0
    for ahead in range(state.seats - 1):
        paid += (1 - stand[ahead]) * FOUL_COST - stand[ahead] * pays[ahead]
    for i in range(n):
        for j in range(i):
            most = fouled
            for order in range(1 if one_row else 2):
                first, second = (j, i) if order else (i, j)
                at[rows[0]], at[rows[1]] = first, second
                if one_row:
                    at[rows[0]] = i * (i - 1) // 2 + j
                top, middle, bottom = at[TOP], at[MIDDLE], at[BOTTOM]
                low, mid, high = values[TOP, top], values[MIDDLE, middle], values[BOTTOM, bottom]
                if low <= mid <= high:
                    brought = paid + sure[TOP, top] + sure[MIDDLE, middle] + sure[BOTTOM, bottom]
                    for ahead in range(state.seats - 1):
                        win, loss = wins[ahead], losses[ahead]
                        all_won = win[TOP, top] * win[MIDDLE, middle] * win[BOTTOM, bottom]
                        all_lost = loss[TOP, top] * loss[MIDDLE, middle] * loss[BOTTOM, bottom]
                        brought += stand[ahead] * SCOOP * (all_won - all_lost)
                elif (mid > high and not jokers[MIDDLE, middle]) or (low > mid and not jokers[TOP, top]):
                    continue
                else:
                    board[slots[0]], board[slots[1]] = cards[first], cards[second]
                    if not limited_rows(board, at, values, limits, limited, found):
                        continue
                    brought = board_worth(state, theirs, stand, pays, found, True)
                most = max(most, brought)
            worth[i, j] = most


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
def placement_worth(state, action):
    """The same of a placement of the street before."""
    trial = np.empty(1, STATE)
    trial[0] = state
    place_cards(trial[0], action)
    return draws_worth(trial[0])


@njit
def judge_rows(states, ideas, worth, judged):
    """ideas: int32 [N, K], below 0 for none; worth: float64 [N, K] and judged: bool [N], written"""
    for i in range(len(states)):
        judged[i] = states[i].street == STREETS - 2 and not states[i].over
        for k in range(ideas.shape[1]):
            worth[i, k] = -np.inf
            if judged[i] and ideas[i, k] >= 0:
                worth[i, k] = placement_worth(states[i], ideas[i, k])
