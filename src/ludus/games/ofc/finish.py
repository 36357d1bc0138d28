"""The last two streets: what is left to chance is little, so placements are judged by the boards they make.

Looks only at what the seat to move can see.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import (
    CARDS,
    EMPTY,
    FOUL,
    JOKER,
    JOKER_VALUES,
    best,
    highest_at_most,
    joker_values,
    sets_of,
)
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


RATED = np.dtype(
    [
        ("value", np.int64),  # not limited by the row below
        ("sure", np.float64),  # all that it wins if the board stands, but for scoops
        ("wins", np.float64, 2),  # how likely it wins against each of the others
        ("losses", np.float64, 2),
        ("others", np.int64),  # values that its jokers can give it; UNLISTED before anyone asked
        ("values", np.int32, JOKER_VALUES),
        ("cards", np.uint8, 5),
    ],
    align=True,
)
"""A row of the board, as it may become."""
UNLISTED = -1


@inner
def rate(state, theirs, stand, row, value, rated):
    """What a row of some value wins. theirs, stand: as `read_others` says; rated: RATED, written"""
    rated.value = value
    rated.sure = own_worth(state, row, value)
    for ahead in range(state.seats - 1):
        win, loss = row_chances(state, theirs, ahead, row, value)
        rated.wins[ahead], rated.losses[ahead] = win, loss
        rated.sure += stand[ahead] * (win - loss)


@inner
def rate_row(state, theirs, stand, row, first, second, rated):
    """A row with one or two more cards, or as it is if they are EMPTY."""
    held, start, size = state.count[state.turn, row], ROW_START[row], ROW_SIZE[row]
    for place in range(held):
        rated.cards[place] = state.board[state.turn, start + place]
    if held < size:
        rated.cards[held] = first
    if held + 1 < size and second != EMPTY:
        rated.cards[held + 1] = second
    rated.others = 0
    for place in range(size):
        if rated.cards[place] >= JOKER:
            rated.others = UNLISTED
    rate(state, theirs, stand, row, best(rated.cards, size), rated)


@inner
def limit_row(state, theirs, stand, row, rated, limit, limited):
    """The same row with the highest value below a limit that its jokers allow; False if there is none."""
    if rated.others == UNLISTED:
        rated.others = joker_values(rated.cards, ROW_SIZE[row], rated.values)
    value = highest_at_most(rated.values, rated.others, limit)
    if value != FOUL:
        rate(state, theirs, stand, row, value, limited)
    return value != FOUL


@inner
def join(state, row, below, joined):
    """Two rows as one: what they win together. The value is the upper one's."""
    joined.value = row.value
    joined.sure = row.sure + below.sure
    for ahead in range(state.seats - 1):
        joined.wins[ahead] = row.wins[ahead] * below.wins[ahead]
        joined.losses[ahead] = row.losses[ahead] * below.losses[ahead]


@inner
def scooped_worth(state, stand, upper, lower):
    """What all three rows win, of which two are joined."""
    worth = upper.sure + lower.sure
    for ahead in range(state.seats - 1):
        all_won, all_lost = upper.wins[ahead] * lower.wins[ahead], upper.losses[ahead] * lower.losses[ahead]
        worth += stand[ahead] * SCOOP * (all_won - all_lost)
    return worth


@inner
def board_of_rows(state, theirs, stand, top, middle, bottom, spare):
    """What three rows win, where jokers lower upper ones if need be; -inf if they foul. spare: RATED [3]"""
    if middle.value > bottom.value:
        if not limit_row(state, theirs, stand, MIDDLE, middle, bottom.value, spare[0]):
            return -np.inf
        middle = spare[0]
    if top.value > middle.value:
        if not limit_row(state, theirs, stand, TOP, top, middle.value, spare[1]):
            return -np.inf
        top = spare[1]
    join(state, middle, bottom, spare[2])
    return scooped_worth(state, stand, top, spare[2])


@inner
def pairs_in_one_row(state, theirs, stand, row, cards, n, worth):
    """What each two of n cards bring in one row. worth: [n, n], where the second is before the first"""
    rated, spare = np.empty(3, RATED), np.empty(3, RATED)
    for other in range(3):
        if other != row:
            rate_row(state, theirs, stand, other, EMPTY, EMPTY, rated[other])
    start = ROW_START[row]
    held = state.board[state.turn, start : start + state.count[state.turn, row]]
    suits = sets_of(held, 0, len(held))[4]
    only_ranks = row == TOP or suits & (suits - 1) != 0
    for i in range(n):
        for j in range(i):
            if only_ranks and j > 0 and cards[j] >> 2 == cards[j - 1] >> 2:
                worth[i, j] = worth[i, j - 1]
                continue
            if only_ranks and j < i - 1 and cards[i] >> 2 == cards[i - 1] >> 2:
                worth[i, j] = worth[i - 1, j]
                continue
            rate_row(state, theirs, stand, row, cards[i], cards[j], rated[row])
            worth[i, j] = board_of_rows(state, theirs, stand, rated[TOP], rated[MIDDLE], rated[BOTTOM], spare)


@inner
def join_fixed(state, theirs, stand, row, fixed, upper, lower, both, limited):
    """Joins the row that is full with an open one: the top with the upper, another with the lower one. False
    if they foul. both, limited: RATED, written"""
    under, over = (upper, fixed) if row == TOP else (lower, fixed)
    if row == BOTTOM:
        under, over = fixed, lower
    if over.value <= under.value:
        join(state, over, under, both)
        return True
    if limit_row(state, theirs, stand, TOP if row == TOP else MIDDLE, over, under.value, limited):
        join(state, limited, under, both)
        return True
    return False


@inner
def pairs_in_two_rows(state, theirs, stand, rows, cards, n, worth):
    """The same in two rows, in the better order."""
    upper, lower, both = np.empty(n, RATED), np.empty(n, RATED), np.empty(n, RATED)
    fixed, spare, stands = np.empty(1, RATED), np.empty(3, RATED), np.empty(n, np.bool_)
    row = TOP + MIDDLE + BOTTOM - rows[0] - rows[1]
    rate_row(state, theirs, stand, row, EMPTY, EMPTY, fixed[0])
    for k in range(n):
        rate_row(state, theirs, stand, rows[0], cards[k], EMPTY, upper[k])
        rate_row(state, theirs, stand, rows[1], cards[k], EMPTY, lower[k])
        stands[k] = join_fixed(state, theirs, stand, row, fixed[0], upper[k], lower[k], both[k], spare[0])
    for a in range(n):
        for b in range(n):
            brought = -np.inf
            if row == TOP:
                if upper[a].value <= lower[b].value:
                    if stands[a]:
                        brought = scooped_worth(state, stand, both[a], lower[b])
                elif upper[a].others:
                    brought = board_of_rows(state, theirs, stand, fixed[0], upper[a], lower[b], spare)
            elif stands[b]:
                if upper[a].value <= both[b].value:
                    brought = scooped_worth(state, stand, upper[a], both[b])
                elif upper[a].others:
                    if limit_row(state, theirs, stand, TOP, upper[a], both[b].value, spare[0]):
                        brought = scooped_worth(state, stand, spare[0], both[b])
            if a > b:
                worth[a, b] = max(worth[a, b], brought)
            elif a < b:
                worth[b, a] = max(worth[b, a], brought)


@inner
def draws_worth(state):
    """What the last draw brings, over all that it may be. The state: cards are placed, and none drawn."""
    cards, n, bits = np.empty(CARDS, np.uint8), 0, unseen(state)
    for card in range(CARDS):
        if bits >> np.uint64(card) & np.uint64(1):
            cards[n] = card
            n += 1
    theirs, stand, pays = np.empty((2, 3), np.int64), np.empty(2), np.empty(2)
    read_others(state, theirs, stand, pays)
    rows, worth = np.empty(2, np.int64), np.full((n, n), -np.inf)
    open_rows(state, rows)
    if rows[0] == rows[1]:
        pairs_in_one_row(state, theirs, stand, rows[0], cards, n, worth)
    else:
        pairs_in_two_rows(state, theirs, stand, rows, cards, n, worth)
    fouled, paid = points_fouling(state, stand, pays), 0.0
    for ahead in range(state.seats - 1):
        paid += (1 - stand[ahead]) * FOUL_COST - stand[ahead] * pays[ahead]
    totals = np.zeros(n)  # by the last of three cards: sums that don't wait for each other
    for i in range(n):
        for j in range(i):
            pair = max(worth[i, j], fouled - paid)
            worth[i, j] = pair
            for k in range(j):
                first, second = worth[i, k], worth[j, k]
                most = first if first > second else second
                totals[k] += most if most > pair else pair
    return paid + totals.sum() / (n * (n - 1) * (n - 2) / 6)


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
