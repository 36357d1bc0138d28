"""The end of a game of connect four is solved as another solver and plain minimax solve it."""

import numpy as np
import pytest

import solved
from ludus import games
from ludus.core import seeds
from ludus.core.conformance import legal_of
from ludus.core.rules import RandomBot
from ludus.games.connect4 import endgame
from ludus.search.bot import SearchBot

RULES, SOLVED = games.open("connect4").rules, solved.connect4()
MOST = 2_000


def values(states, most=MOST):
    """What was found of each position, bool [N], and what it is worth to the seat to move."""
    scores = np.zeros((len(states), 2), np.float32)
    found = RULES.solve(states, most, scores)
    assert (scores.sum(1) == 0).all()
    return found, scores[np.arange(len(states)), RULES.seat(states)]


def late_positions(seed, empty, count=2_000):
    """Of random games, not over, with so many cells left or fewer."""
    states, rng = RULES.blank(count), seeds.rows(seed, count)
    seen = []
    while (going := np.flatnonzero(~RULES.over(states))).size:
        seen.append(states[going][states["moves"][going] >= 42 - empty])
        some_rng = rng[going]
        states[going] = solved.played(RULES, states[going], RandomBot(RULES).choose(states[going], some_rng))
        rng[going] = some_rng
    return np.concatenate(seen)


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_minimax(seed):
    states, known = late_positions(seed, empty=8), {}
    found, value = values(states)
    assert found.all() and len(states) > 100
    right = [solved.minimax(RULES, states[i : i + 1], known) for i in range(len(states))]
    assert value.tolist() == right and set(right) == {-1, 0, 1}


def test_values_are_those_of_another_solver():
    """Of all depths: few nodes solve most positions with 20 discs and all late ones."""
    found, value = values(SOLVED.states)
    assert (value[found] == SOLVED.value[found]).all()
    moves = SOLVED.states["moves"]
    assert found[moves >= 30].all() and found[moves >= 20].mean() > 0.9 and not found[moves < 12].all()


def test_what_narrow_windows_leave_in_the_table_misleads_nobody():
    states = SOLVED.states[SOLVED.states["moves"] >= 22]
    found, value = values(states)
    windows, checked = [(0, 1), (-1, 0), (-1, 1)], 0
    for state, right in zip(states[found], value[found].astype(int), strict=True):
        seat, table = state["moves"] % 2, np.zeros(endgame.TABLE, endgame.FOUND)
        mine, taken = state["discs"][seat], state["discs"][0] | state["discs"][1]
        if endgame.winning_cells(mine, taken) & (taken + endgame.BOTTOM) & endgame.BOARD:
            continue
        for alpha, beta in windows:
            tried = np.array([0, 10**9])
            seen = endgame.value_of(mine, taken, 42 - int(state["moves"]), alpha, beta, tried, table)
            assert seen <= alpha >= right or seen >= beta <= right or seen == right
        checked += 1
    assert checked > 300


def test_a_position_is_solved_alike_alone_or_in_any_company():
    states = SOLVED.states[::7]
    for most in (5, 200, MOST):
        found, value = values(states, most)
        alone = [values(states[i : i + 1], most) for i in range(len(states))]
        assert found.tolist() == [bool(one[0]) for one, _ in alone] and 0 < found.sum() < len(states)
        assert value[found].tolist() == [one[0] for some, one in alone if some[0]]


def flat(states, actions, counts, rng, logits, values):
    """An evaluator that knows nothing."""
    logits[:], values[:] = 0, 0


def test_a_search_with_it_plays_late_positions_perfectly():
    late = SOLVED.states["moves"] >= 26
    states, perfect = SOLVED.states[late], SOLVED.perfect[late]
    bot = SearchBot(RULES, 50, evaluate=flat, endgame=MOST)
    moves = bot.choose(states, seeds.rows(0, len(states)))
    assert perfect[np.arange(len(states)), moves].all()


def test_where_all_is_lost_it_holds_out():
    """The solver says that every move loses, not which of them loses at once."""
    states = SOLVED.states[(SOLVED.value == -1) & (SOLVED.states["moves"] >= 20)]
    found = SearchBot(RULES, 50, evaluate=flat, endgame=MOST).think(states, seeds.rows(0, len(states)))
    checked = 0
    for i in np.flatnonzero(found.proven):
        moves = np.flatnonzero(legal_of(RULES, states[i : i + 1])[0])
        after = solved.played(RULES, states[np.full(len(moves), i)], moves)
        found_at_once, value = values(after, 1)  # one node sees what the opponent wins at once
        at_once = dict(zip(moves, found_at_once & (value == 1), strict=True))
        if not all(at_once.values()):
            checked += any(at_once.values())
            assert not at_once[found.best[i]]
    assert checked > 50
