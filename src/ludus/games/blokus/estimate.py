"""What a search without a network believes of a position. Of a few weights tried, these won most."""

import numpy as np

from ludus.core.dice import next64
from ludus.core.jit import inner, njit
from ludus.games.blokus.bots import count_bits
from ludus.games.blokus.pieces import PIECE_SIZE

CORNER, FREE, TURN = 0.5, 0.5, 1.0
"""What a corner to go on from, a square that may still be covered, and the move are worth, in points."""
LEAD = 12.0
"""Points ahead at which a game is three quarters won."""
SIZE = 0.8
"""How much likelier, as a logarithm, a piece is for each of its squares."""


@inner
def seat_worth(state, seat):
    corners = free = 0
    for word in range(state.corners.shape[1]):
        corners += count_bits(state.corners[seat, word])
        free += count_bits(state.free[seat, word])
    can_move = state.turn == seat and not state.stuck >> seat & 1
    return state.points[seat] + CORNER * corners + FREE * free + TURN * can_move


@njit
def estimate_rows(board, states, actions, counts, rng, logits, values):
    """As `Evaluator` in search/evaluators.py. Luck decides between pieces of equal size."""
    seats = values.shape[1]
    worth = np.empty(seats)
    for i in range(len(states)):
        for seat in range(seats):
            worth[seat] = seat_worth(states[i], seat)
        for seat in range(seats):
            best_other = -np.inf
            for ahead in range(1, seats):
                best_other = max(best_other, worth[(seat + ahead) % seats])
            values[i, seat] = np.tanh((worth[seat] - best_other) / LEAD)
        for k in range(counts[i]):
            passes = actions[i, k] == board.placements
            size = 0 if passes else PIECE_SIZE[board.placement_piece[actions[i, k]]]
            logits[i, k] = SIZE * size + np.float32(next64(rng[i]) >> np.uint64(40)) / np.float32(1 << 24)
