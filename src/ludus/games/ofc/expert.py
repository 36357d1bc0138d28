"""The bot `expert`: rollouts that end with an exact last street and know what Fantasyland is worth."""

from typing import Any

import numpy as np

from ludus.core.dice import next64
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.core.think import parse_futures
from ludus.games.ofc.bots import ROW_SETS, SETS, best_rated, rate_actions
from ludus.games.ofc.cards import HIGH, PAIR, best, category
from ludus.games.ofc.finish import finish_action
from ludus.games.ofc.hand import (
    ACTIONS,
    FIRST_ACTIONS,
    FIRST_DRAW,
    LATER_DRAW,
    STATE,
    STREETS,
    act,
    cut_session,
    paid_by,
    redeal_hidden,
)
from ludus.games.ofc.scoring import PAID, ROW_SIZE, TOP, top_entry

EARNED, HOPED = 1.0, 0.3
"""Shares of Fantasyland's worth that a top row is rated by: with what it takes, and with one card of it."""


@inner
def fantasy_hope(state, cards, hope):
    """What Fantasyland adds to the top with each set of the drawn cards. hope: [SETS]"""
    row, held = paid_by(state), state.count[state.turn, TOP]
    hand = np.empty(held + cards, np.uint8)
    for i in range(held):
        hand[i] = state.board[state.turn, i]
    for chosen in range(1 << cards):
        count = held
        for card in range(cards):
            if chosen >> card & 1:
                hand[count] = state.drawn[card]
                count += 1
        hope[chosen] = 0.0
        if count > ROW_SIZE[TOP]:
            continue
        value, share = best(hand, count), EARNED
        if category(value) == HIGH:
            value, share = value | PAIR << 20, HOPED if count < ROW_SIZE[TOP] else 0.0
        entry = top_entry(value, state.fantasy)
        if entry:
            hope[chosen] = share * PAID[row, entry - 14]


@inner
def rate_for_fantasy(state, ratings):
    """Greedy's ratings with Fantasyland added; the best of them. ratings: [270]"""
    first = state.street == 0
    hope = np.empty(SETS)
    chosen = rate_actions(state, ratings)
    fantasy_hope(state, FIRST_DRAW if first else LATER_DRAW, hope)
    for action in range(0 if first else FIRST_ACTIONS, FIRST_ACTIONS if first else ACTIONS):
        ratings[action] += hope[ROW_SETS[action, TOP]]
        if ratings[action] > ratings[chosen]:
            chosen = action
    return chosen


@inner
def play_out(state, action, stream):
    """Points that an action brings in one redealt future: ratings decide, and exactly the last street."""
    seat = state.turn
    ratings = np.empty(ACTIONS)
    redeal_hidden(state, stream)
    while True:
        act(state, action, stream)
        if state.over:
            return state.points[seat]
        last = state.street == STREETS - 1
        action = finish_action(state) if last else rate_for_fantasy(state, ratings)


@inner
def keep_best(candidates, total, alive, keep):
    """Move the `keep` candidates with the highest totals to the front, best first."""
    for place in range(keep):
        top = place
        for other in range(place + 1, alive):
            if total[other] > total[top]:
                top = other
        candidates[place], candidates[top] = candidates[top], candidates[place]
        total[place], total[top] = total[top], total[place]


@inner
def expert_action(state, stream, futures, width):
    """The action that brings the most points, by sequential halving: the last ones see all the futures.

    Candidates meet the same futures, so that luck of the cards cancels.
    """
    if state.street == STREETS - 1:
        return finish_action(state)
    ratings, total = np.empty(ACTIONS), np.zeros(width)
    rate_for_fantasy(state, ratings)
    candidates = best_rated(ratings, width)
    alive = 0
    while alive < width and ratings[candidates[alive]] > -np.inf:
        alive += 1
    trials, start = np.empty(1, STATE), np.empty(1, STATE)
    start[0] = state
    cut_session(start[0])
    start[0].points[:] = 0
    future = np.empty(2, np.uint64)
    seen, until = 0, max(1, futures // 8)
    while alive > 1 and seen < futures:
        for _ in range(seen, until):
            # A stream of its own: neighbours in one stream would share their cards.
            place, step = next64(stream), next64(stream) | np.uint64(1)
            for c in range(alive):
                trials[0] = start[0]
                future[0], future[1] = place, step
                total[c] += play_out(trials[0], candidates[c], future)
        seen, until = until, min(2 * until, futures)
        keep_best(candidates, total, alive, (alive + 1) // 2)
        alive = (alive + 1) // 2
    return candidates[np.argmax(total[:alive])]


@njit
def expert_rows(states, rng, futures, width, out):
    for i in range(len(states)):
        out[i] = expert_action(states[i], rng[i], futures, width)


class Expert:
    """Monte-Carlo with sequential halving: plays for Fantasyland where it pays, and ends hands exactly."""

    def __init__(self, rules: Any, futures: int = 200, width: int = 20) -> None:
        self.rules, self.futures, self.width = rules, futures, width

    def limit(self, think: str) -> None:
        """Futures that the best candidates are tried on."""
        self.futures = parse_futures(think, "expert")

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions = np.zeros(len(states), np.int32)
        expert_rows(states, rng, self.futures, self.width, actions)
        return actions
