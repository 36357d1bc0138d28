"""Bots for Blokus."""

from typing import Any

import numpy as np

from ludus.core.dice import below
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.games.blokus.moves import list_actions, place
from ludus.games.blokus.pieces import PIECE_SIZE


@inner
def count_bits(word):
    word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
    word = word + (word >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(word * np.uint64(0x0101010101010101) >> np.uint64(56))


@inner
def corners_after(board, state, trial, action):
    """Corners to go on from that the seat to move has after a placement. trial: room for a state [1]"""
    trial[0] = state
    place(board, trial[0], np.int64(state.turn), np.int64(action))
    corners = 0
    for word in range(state.corners.shape[1]):
        corners += count_bits(trial[0].corners[state.turn, word])
    return corners


@inner
def greedy_action(board, state, stream, actions, trial):
    count = list_actions(board, state, actions)
    chosen, most, equals = actions[count - 1], -1, 0
    if chosen == board.placements:
        return chosen
    largest = PIECE_SIZE[board.placement_piece[chosen]]
    for n in range(count - 1, -1, -1):  # the largest pieces have the highest numbers
        if PIECE_SIZE[board.placement_piece[actions[n]]] < largest:
            break
        corners = corners_after(board, state, trial, actions[n])
        if corners > most:
            most, equals = corners, 0
        if corners == most:
            equals += 1
            if below(stream, equals) == 0:
                chosen = actions[n]
    return chosen


@njit
def greedy_rows(board, states, rng, out):
    actions, trial = np.empty(board.placements + 1, np.int32), states[:1].copy()
    for i in range(len(states)):
        out[i] = greedy_action(board, states[i], rng[i], actions, trial)


class Greedy:
    """The largest piece that fits, where it leaves the most corners to go on from; any of equals."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        greedy_rows(self.rules.board, states, rng, actions)
        return actions
