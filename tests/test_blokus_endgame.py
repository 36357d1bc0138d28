"""The end of a game of Duo is solved as plain minimax solves it, whatever is solved beside it."""

import numpy as np
import pytest

import ludus
import solved
from ludus import games
from ludus.core import seeds
from ludus.core.conformance import legal_of
from ludus.core.rules import RandomBot
from ludus.games.blokus import endgame
from ludus.search import Search, SearchConfig
from ludus.search.evaluators import win_share

GAME = games.open("blokus")
RULES = GAME.rules


def endgames(seed, games=16, plies=6):
    """The last positions of games between greedy bots that begin at random."""
    states, rng = RULES.blank(games), seeds.rows(seed, games)
    RULES.deal(states, rng)
    greedy, seen = GAME.native("played").bot("greedy"), [[] for _ in range(games)]
    while (going := np.flatnonzero(~RULES.over(states))).size:
        for i in going:
            seen[i].append(states[i].copy())
        bot = RandomBot(RULES) if len(seen[0]) < 4 else greedy
        states[going] = solved.played(RULES, states[going], bot.choose(states[going], rng[going]))
    return np.array([state for one in seen for state in one[-plies:]], RULES.spec.state)


def open_placements(states):
    """How many there are for both seats together, int64 [N]."""
    total = np.zeros(len(states), np.int64)
    for seat in range(2):
        some = states.copy()
        some["turn"] = seat
        legal = legal_of(RULES, some)
        total += legal.sum(1) - legal[:, -1]
    return total


@pytest.mark.parametrize("seed", range(6))
def test_leads_are_those_of_minimax(seed):
    states = endgames(seed, plies=9)
    states = states[open_placements(states) <= 24]
    scores = np.zeros((len(states), 2), np.float32)
    assert RULES.solve(states, 2_000, scores).all() and len(states) > 5
    known: dict[bytes, float] = {}
    right = [solved.minimax(RULES, states[i : i + 1], known) for i in range(len(states))]
    assert scores[np.arange(len(states)), states["turn"]].tolist() == right
    assert (scores.sum(1) == 0).all() and len(set(right)) > 2


@pytest.mark.parametrize("seed", range(2))
def test_a_lead_is_the_best_of_those_after_each_move(seed):
    """Of positions too large for plain minimax."""
    states, checked = endgames(seed, games=64, plies=12), 0
    scores = np.zeros((len(states), 2), np.float32)
    for i in np.flatnonzero(RULES.solve(states, 2_000, scores) & (open_placements(states) > 20)):
        actions = np.flatnonzero(legal_of(RULES, states[i : i + 1])[0])
        after = solved.played(RULES, states[np.full(len(actions), i)], actions)
        theirs = np.zeros((len(after), 2), np.float32)
        if RULES.solve(after, 10_000, theirs).all():
            assert scores[i, states[i]["turn"]] == theirs[:, states[i]["turn"]].max()
            checked += 1
    assert checked > 10


def test_what_narrow_windows_leave_in_the_table_misleads_nobody():
    states = endgames(5, plies=7)
    scores = np.zeros((len(states), 2), np.float32)
    states, scores = states[found := RULES.solve(states, 500, scores)], scores[found]
    stack, actions = RULES.blank(endgame.DEPTH), np.zeros((endgame.DEPTH, RULES.spec.actions), np.int32)
    for state, score in zip(states, scores, strict=True):
        right, table, tried = int(score[state["turn"]]), np.zeros(endgame.TABLE, endgame.FOUND), [0, 10**9]
        windows = [(right + shift, right + shift + 1) for shift in (9, -9, 3, -3, 0)]
        for alpha, beta in [*windows, (-endgame.MOST, endgame.MOST)]:
            stack[0] = state
            value = endgame.lead(RULES.board, stack, actions, 0, alpha, beta, np.array(tried), table)
            assert value <= alpha >= right or value >= beta <= right or value == right
        assert value == right


def test_a_position_is_solved_alike_alone_or_in_any_company():
    states = endgames(7, plies=12)
    for most in (3, 100, 2_000):
        scores, alone = np.zeros((2, len(states), 2), np.float32)
        found = RULES.solve(states, most, scores)
        single = [RULES.solve(states[i : i + 1], most, alone[i : i + 1])[0] for i in range(len(states))]
        assert found.tolist() == single and 0 < found.sum() < len(states)
        assert (scores[found] == alone[found]).all()


def test_fewer_positions_find_less_and_nothing_else():
    states = endgames(8, plies=9)
    few, many = np.zeros((2, len(states), 2), np.float32)
    some, more = RULES.solve(states, 20, few), RULES.solve(states, 2_000, many)
    assert (more | ~some).all() and some.sum() < more.sum()
    assert (few[some] == many[some]).all()


def test_four_seats_have_no_solver():
    rules = games.open("blokus", board="classic").rules
    assert not rules.solve(rules.blank(2), 100, np.zeros((2, 4), np.float32)).any()


def test_a_search_ends_its_games_perfectly():
    """Its evaluator knows nothing, so all it knows is solved."""

    def flat(states, actions, counts, rng, logits, values):
        logits[:], values[:] = 0, 0

    states = endgames(9, plies=5)
    counts = legal_of(RULES, states).sum(1)
    states = states[(open_placements(states) <= 30) & (counts > 1)]
    lead = np.zeros((len(states), 2), np.float32)
    assert RULES.solve(states, 2_000, lead).all() and len(states) > 10
    own = np.arange(len(states)), states["turn"]
    search = Search(
        RULES, len(states), SearchConfig(40, endgame=2_000), flat, lambda score: np.tanh(score / 200)
    )
    search.start(states)
    result = search.run(seeds.rows(0, len(states)))
    assert result.proven.all() and result.value[own] == pytest.approx(np.tanh(lead[own] / 200))
    after, scores = solved.played(RULES, states, result.best), np.zeros((len(states), 2), np.float32)
    assert RULES.solve(after, 2_000, scores).all() and (scores[own] == lead[own]).all()
    blind = Search(RULES, len(states), SearchConfig(40), flat, win_share)
    blind.start(states)
    assert not blind.run(seeds.rows(0, len(states))).proven.all()


def test_agents_solve_endgames():
    assert ludus.load(GAME.champion, think="40").bot.config.endgame > 0
