"""The benchmark's solver of connect four against plain minimax, and its move by move verdict."""

import sys
from functools import cache
from pathlib import Path

import numpy as np

from ludus import games
from ludus.core import seeds
from ludus.core.conformance import Play
from ludus.core.rules import legal_actions

sys.path.append(str(Path(__file__).parent.parent / "bench"))
import connect4_positions
from connect4_solver import UNSOLVED, keeps_value, new_table, solve

RULES = games.open("connect4").rules


def after(state: np.ndarray, action: int) -> np.ndarray:
    states = state.copy()
    RULES.play(states, np.array([action], np.int32), seeds.rows(0, 1))
    return states


@cache
def minimax(game: bytes) -> int:
    state = np.frombuffer(game, RULES.spec.state)
    if RULES.over(state)[0]:
        return -1 if state[0]["winner"] else 0  # the seat to move did not make the last move
    return max(-minimax(after(state, a).tobytes()) for a in legal_actions(RULES, state[0]))


def test_positions_and_moves_are_worth_what_minimax_says():
    keys, known = new_table()
    values = []
    for states, _ in Play(RULES, rows=150).decisions():
        for i in np.flatnonzero(states["moves"] >= 32):
            state = states[i : i + 1]
            discs, moves = state[0]["discs"], int(state[0]["moves"])
            mine, taken = discs[moves % 2], discs[0] | discs[1]
            value = solve(mine, taken, moves, -1, 1, keys, known, 10**6)
            assert value == minimax(state.tobytes())
            values.append(value)
            for action in legal_actions(RULES, state[0]):
                kept = keeps_value(mine, taken, int(action), value, keys, known, 10**6)
                assert kept == (-minimax(after(state, action).tobytes()) == value)
    assert set(values) == {-1, 0, 1}


def test_a_search_that_is_too_long_is_given_up():
    state = Play(RULES, rows=1).states[0]
    assert solve(state["discs"][0], np.uint64(0), 0, -1, 1, *new_table(), 100) == UNSOLVED


def test_the_positions_that_are_kept_were_solved_right():
    states, value, perfect = connect4_positions.load()
    depths, counts = np.unique(states["moves"], return_counts=True)
    assert depths.tolist() == list(range(8, 42)) and (counts == 59).all()
    assert len(np.unique(states)) == len(states) and not RULES.over(states).any()
    for i in np.flatnonzero(states["moves"] >= 35):
        state = states[i : i + 1]
        assert value[i] == minimax(state.tobytes())
        actions = legal_actions(RULES, state[0])
        kept = [action for action in actions if -minimax(after(state, action).tobytes()) == value[i]]
        assert np.flatnonzero(perfect[i]).tolist() == kept
