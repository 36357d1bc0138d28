"""Bots for OFC. They look only at what the seat to move can see."""

from typing import Any

import numpy as np

from ludus.core.dice import next64
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.games.ofc.cards import COUNT, JOKER, STRAIGHT_TOP, best, category, lead_rank
from ludus.games.ofc.hand import ACTIONS, FIRST_ACTIONS, FIRST_DRAW, LATER_DRAW, STATE, act, redeal_hidden
from ludus.games.ofc.scoring import (
    BOTTOM,
    BOTTOM_ROYALTY,
    MIDDLE,
    MIDDLE_ROYALTY,
    ROW_SIZE,
    ROW_START,
    TOP,
    top_royalty,
)  # fmt: skip
from ludus.games.ofc.text import ROWS, row_letters

STRENGTH = np.array([0.0, 1.0, 2.0, 3.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0])
"""What a made hand is worth beside its royalties, by category: roughly its chance to win the row."""
FLUSH_DRAW = np.array([0.0, 0.0, 0.2, 0.7, 2.0])
STRAIGHT_DRAW = np.array([0.0, 0.0, 0.1, 0.3, 1.0])
"""What one suit, or ranks within one straight, is worth by the number of cards in the row."""
ORDER_COST, FOUL_COST = 20.0, 100.0
LEVELS = 13.0
SETS = 1 << FIRST_DRAW


def _row_sets() -> np.ndarray:
    """The drawn cards that each action puts into each row, as bits. int64 [270, 3]"""
    sets = np.zeros((ACTIONS, 3), np.int64)
    for action in range(ACTIONS):
        for card, letter in enumerate(row_letters(action)):
            if letter != "-":
                sets[action, ROWS.index(letter)] |= 1 << card
    return sets


ROW_SETS = _row_sets()


@inner
def row_worth(cards, count, row):
    """What a row holds and may become, in points; and its value so far."""
    value = best(cards, count)
    kind = category(value)
    worth = STRENGTH[kind] + lead_rank(value) / LEVELS
    if row == TOP:
        return worth + top_royalty(value), value
    worth += MIDDLE_ROYALTY[kind] if row == MIDDLE else BOTTOM_ROYALTY[kind]
    if 1 < count < 5:
        suits, ranks, naturals = 0, 0, 0
        for i in range(count):
            if cards[i] < JOKER:
                suits |= 1 << (cards[i] & 3)
                ranks |= 1 << (cards[i] >> 2)
                naturals += 1
        if suits & (suits - 1) == 0:
            worth += FLUSH_DRAW[count]
        if COUNT[ranks] == naturals and STRAIGHT_TOP[ranks] >= 0:
            worth += STRAIGHT_DRAW[count]
    return worth, value


@inner
def order_cost(upper, lower, room):
    """The price of a row that stands above the one below it, which has `room` cards to come."""
    if upper <= lower:
        return 0.0
    if room == 0:
        return FOUL_COST
    gap = category(upper) - category(lower) + (lead_rank(upper) - lead_rank(lower)) / LEVELS
    return max(gap, 0.0) * ORDER_COST


@inner
def rows_after(state, cards, worth, values, room):
    """Worth, value and room of each row with each set of the drawn cards added. All [3, SETS]"""
    board, mine = state.board[state.turn], state.count[state.turn]
    hand = np.empty(8, np.uint8)
    for row in range(3):
        held = mine[row]
        for i in range(held):
            hand[i] = board[ROW_START[row] + i]
        for chosen in range(1 << cards):
            count = held
            for card in range(cards):
                if chosen >> card & 1 and count < len(hand):
                    hand[count] = state.drawn[card]
                    count += 1
            room[row, chosen] = ROW_SIZE[row] - count
            if count <= ROW_SIZE[row]:
                worth[row, chosen], values[row, chosen] = row_worth(hand, count, row)


@inner
def rate_actions(state, ratings):
    """Rate every action by the board it leaves, -inf if illegal; the best of them. ratings: [270]"""
    first = state.street == 0
    worth = np.empty((3, SETS))
    values = np.empty((3, SETS), np.int64)
    room = np.empty((3, SETS), np.int64)
    rows_after(state, FIRST_DRAW if first else LATER_DRAW, worth, values, room)
    chosen = 0 if first else FIRST_ACTIONS
    ratings[:] = -np.inf
    for action in range(chosen, FIRST_ACTIONS if first else ACTIONS):
        t, m, b = ROW_SETS[action]
        if room[TOP, t] < 0 or room[MIDDLE, m] < 0 or room[BOTTOM, b] < 0:
            continue
        ratings[action] = (
            worth[TOP, t] + worth[MIDDLE, m] + worth[BOTTOM, b]
            - order_cost(values[TOP, t], values[MIDDLE, m], room[MIDDLE, m])
            - order_cost(values[MIDDLE, m], values[BOTTOM, b], room[BOTTOM, b])
        )  # fmt: skip
        if ratings[action] > ratings[chosen]:
            chosen = action
    return chosen


@njit
def greedy_rows(states, out):
    ratings = np.empty(ACTIONS)
    for i in range(len(states)):
        out[i] = rate_actions(states[i], ratings)


@inner
def best_rated(ratings, width):
    """The `width` best rated actions, best first."""
    left = ratings.copy()
    found = np.empty(width, np.int64)
    for place in range(width):
        found[place] = np.argmax(left)
        left[found[place]] = -np.inf
    return found


@inner
def rollout_action(state, stream, futures, width):
    """The action whose greedy continuations bring the most points, over the same futures for all."""
    ratings, total = np.empty(ACTIONS), np.zeros(width)
    rate_actions(state, ratings)
    candidates = best_rated(ratings, width)
    trials = np.empty(1, STATE)
    future = np.empty(2, np.uint64)
    for _ in range(futures):
        next64(stream)
        for c in range(width):
            if ratings[candidates[c]] == -np.inf:
                total[c] = -np.inf
                continue
            trials[0] = state
            future[0], future[1] = stream
            total[c] += play_out(trials[0], candidates[c], future)
    return candidates[np.argmax(total)]


@inner
def play_out(state, action, stream):
    """Points that an action brings in one redealt future of this hand, in which everybody is greedy.

    Fantasyland is paid by its value: the hand at stake is all that this decision can change.
    """
    state.hands = state.hand + 1
    state.valued = 1
    state.points[:] = 0
    seat = state.turn
    ratings = np.empty(ACTIONS)
    redeal_hidden(state, stream)
    act(state, action, stream)
    while not state.over:
        act(state, rate_actions(state, ratings), stream)
    return state.points[seat]


@njit
def rollout_rows(states, rng, futures, width, out):
    for i in range(len(states)):
        out[i] = rollout_action(states[i], rng[i], futures, width)


class Greedy:
    """Places for immediate strength, royalties and draws, and keeps the rows in order."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        greedy_rows(states, actions)
        return actions


class Rollout:
    """Monte-Carlo: tries greedy's best ideas on redealt futures and takes what brings most points."""

    def __init__(self, rules: Any, futures: int = 24, width: int = 10) -> None:
        self.rules, self.futures, self.width = rules, futures, width

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        rollout_rows(states, rng, self.futures, self.width, actions)
        return actions
