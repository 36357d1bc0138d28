"""What the next moves decide is found by the rules alone, as plain minimax says, and nothing else is."""

import functools

import numpy as np
import pytest

from ludus import games
from ludus.core import seeds
from ludus.core.conformance import legal_of
from ludus.search import Search, SearchConfig
from ludus.search.bot import SEARCH, warm_up
from ludus.search.evaluators import win_share
from ludus.search.lookahead import plies_within, prove

TICTACTOE, CONNECT4, BLOKUS = (games.open(name).rules for name in ("tictactoe", "connect4", "blokus"))


def after(rules, states, actions):
    played = states.copy()
    rules.play(played, np.array(actions, np.int32), seeds.rows(0, len(states)))
    return played


def flat(states, actions, counts, rng, logits, values):
    """An evaluator that knows nothing."""
    logits[:], values[:] = 0, 0


def all_tictactoe():
    """Every position that play can reach, also those that are over."""
    level, found = TICTACTOE.blank(1), []
    while len(level):
        found.append(level)
        level = level[~TICTACTOE.over(level)]
        rows, actions = np.nonzero(legal_of(TICTACTOE, level))
        level = np.unique(after(TICTACTOE, level[rows], actions)) if len(rows) else level[:0]
    return np.concatenate(found)


@functools.cache
def decided(text, plies):
    """The value for the seat to move if so many plies decide it, else None; one move at a time."""
    state = TICTACTOE.parse(text)
    if TICTACTOE.over(state)[0]:
        return -1 if state["winner"][0] else 0
    if plies == 0:
        return None
    values = [
        decided(TICTACTOE.text(after(TICTACTOE, state, [action])[0]), plies - 1)
        for action in np.flatnonzero(legal_of(TICTACTOE, state)[0])
    ]
    if -1 in values:
        return 1
    return None if None in values else max(-value for value in values)


@pytest.mark.parametrize("plies", [0, 1, 2])
def test_what_few_plies_decide_is_proven_and_nothing_else(plies):
    states = all_tictactoe()
    proven, values = prove(TICTACTOE, win_share, states, plies)
    right = [decided(TICTACTOE.text(state), plies) for state in states]
    assert proven.tolist() == [value is not None for value in right]
    own = values[np.arange(len(states)), TICTACTOE.seat(states)]
    assert own[proven].tolist() == [value for value in right if value is not None]
    assert (values.sum(1) == 0).all()


def test_the_fewer_actions_a_game_has_the_further_it_is_looked_ahead():
    spare = SearchConfig().lookahead
    assert [plies_within(spare, rules.spec.actions) for rules in (TICTACTOE, CONNECT4, BLOKUS)] == [2, 3, 0]
    assert plies_within(0, 7) == 0 and plies_within(10**6, 1) == 0


def test_a_double_threat_is_seen_with_one_leaf_for_each_move():
    states = CONNECT4.parse("......./......./......./......./.OO..../.XX....")
    for lookahead in (0, 400):
        config = SearchConfig(7, c_puct=10.0, first_play_reduction=0.0, lookahead=lookahead)
        search = Search(CONNECT4, 1, config, flat)
        search.start(states)
        result = search.run(seeds.rows(0, 1))
        assert result.proven[0] == (lookahead > 0)
    assert result.best[0] == 3 and result.value[0].tolist() == [1, -1]


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_where_all_is_lost_no_move_loses_at_once_if_another_holds_out(root):
    states = all_tictactoe()
    states = states[[decided(TICTACTOE.text(state), 9) == -1 for state in states] & ~TICTACTOE.over(states)]
    search = Search(TICTACTOE, len(states), SearchConfig(500, root=root), flat)
    search.start(states)
    result, checked = search.run(seeds.rows(0, len(states))), 0
    for state, best in zip(states, result.best, strict=True):
        moves = np.flatnonzero(legal_of(TICTACTOE, state[None])[0])
        at_once = [
            decided(TICTACTOE.text(after(TICTACTOE, state[None], [move])[0]), 1) == 1 for move in moves
        ]
        checked += any(at_once) and not all(at_once)
        assert all(at_once) or not at_once[list(moves).index(best)]
    assert result.proven.all() and checked > 10


def test_a_warm_up_covers_games_that_go_on(monkeypatch):
    """Else what keeps a tree would be compiled within somebody's first move."""
    from ludus import search

    kept, follow_games = [], search.follow_games
    monkeypatch.setattr(search, "follow_games", lambda *args: (kept.append(1), follow_games(*args))[1])
    for name in ("connect4", "tictactoe"):
        kept.clear()
        warm_up(games.open(name), [SEARCH])
        assert kept
