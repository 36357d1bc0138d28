"""The last street, exactly: all own cards are known, so each placement is judged by the board it makes.

Looks only at what the seat to move can see.
"""

import numpy as np

from ludus.core.jit import njit
from ludus.games.ofc.cards import best
from ludus.games.ofc.fantasy import CHANCES
from ludus.games.ofc.hand import ACTIONS, FIRST_ACTIONS, STREETS, paid_by
from ludus.games.ofc.scoring import (
    BOARD,
    PAID,
    ROW_SIZE,
    ROW_START,
    SCOOP,
    board_values,
    entry_cards,
    pair_points,
    royalties,
)

OPPONENT_STANDS = 0.75
"""How often a board that is not finished yet will stand."""


@njit
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


@njit
def points_from(state, other, values):
    """Points that a standing board wins from another seat: exact if that board is finished, else expected.

    A Fantasyland board is face down, so nothing is known of it. values: int64 [3]
    """
    if state.count[other, 0] + state.count[other, 1] + state.count[other, 2] == BOARD:
        theirs = np.empty(3, np.int64)
        stands = board_values(state.board[other], theirs)
        return np.float64(pair_points(values, True, theirs, stands))
    rows, win_all, lose_all = 0.0, 1.0, 1.0
    for row in range(3):
        wins = CHANCES[row, values[row] >> 16]
        if state.count[other, row] == ROW_SIZE[row]:
            start = ROW_START[row]
            theirs_now = best(state.board[other, start : start + ROW_SIZE[row]], ROW_SIZE[row])
            wins = 0.5 + 0.5 * np.sign(values[row] - theirs_now)
        rows += 2 * wins - 1
        win_all *= wins
        lose_all *= 1 - wins
    return royalties(values) + OPPONENT_STANDS * (rows + SCOOP * (win_all - lose_all))


@njit
def finish_action(state):
    """The last placement that is worth most, Fantasyland included. No foul if any placement stands."""
    board, values = np.empty(BOARD, np.uint8), np.empty(3, np.int64)
    chosen, most, others = -1, -np.inf, state.seats - 1
    for action in range(FIRST_ACTIONS, ACTIONS):
        if not finish_board(state, action, board):
            continue
        if not board_values(board, values):
            if chosen < 0:
                chosen = action
            continue
        worth = 0.0
        for ahead in range(1, state.seats):
            worth += points_from(state, (state.turn + ahead) % state.seats, values)
        cards = entry_cards(values, state.fantasy)
        if cards:
            worth += PAID[paid_by(state), cards - 14] * others
        if worth > most:
            chosen, most = action, worth
    return chosen


@njit
def finish_rows(states, actions, known):
    """Put the best placement into the rows of a last street; which ones they are. known: bool [N]"""
    for i in range(len(states)):
        known[i] = states[i].street == STREETS - 1 and not states[i].over
        if known[i]:
            actions[i] = finish_action(states[i])
