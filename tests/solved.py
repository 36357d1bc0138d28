"""Positions whose perfect moves are known, and how much of them a network knows without a search."""

import functools
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ludus import games
from ludus.agent import Agent
from ludus.core import seeds
from ludus.core.conformance import legal_of, observation_of, score_of
from ludus.core.rules import Rules

sys.path.append(str(Path(__file__).parent.parent / "bench"))
import connect4_positions


class Solved(NamedTuple):
    rules: Rules
    states: np.ndarray  # [N], none of them over
    value: np.ndarray  # [N]: 1 won, 0 drawn, -1 lost for the seat to move
    perfect: np.ndarray  # bool [N, A]: legal moves that keep that value


def connect4() -> Solved:
    return Solved(games.open("connect4").rules, *connect4_positions.load())


def played(rules: Rules, states: np.ndarray, actions: np.ndarray | list[int]) -> np.ndarray:
    after = states.copy()
    rules.play(after, np.asarray(actions, np.int32), seeds.rows(0, len(states)))
    return after


def minimax(rules: Rules, state: np.ndarray, known: dict[bytes, float]) -> float:
    """The final score of the seat to move; every move is tried. Of two seats. state: [1]"""
    if rules.over(state)[0]:
        return float(score_of(rules, state)[0, rules.seat(state)[0]])
    if (key := state.tobytes()) not in known:
        moves = np.flatnonzero(legal_of(rules, state)[0])
        known[key] = max(-minimax(rules, played(rules, state, [move]), known) for move in moves)
    return known[key]


@functools.cache
def tictactoe() -> Solved:
    """All positions that play can reach, by plain minimax."""
    rules, known = games.open("tictactoe").rules, {}

    def solve(state: np.ndarray) -> int:
        key = state.tobytes()
        if key not in known:
            if rules.over(state)[0]:
                return -1 if state["winner"][0] else 0
            moves = np.flatnonzero(legal_of(rules, state)[0])
            after = state.repeat(len(moves))
            rules.play(after, moves.astype(np.int32), seeds.rows(0, len(moves)))
            values = np.array([-solve(after[k : k + 1]) for k in range(len(moves))])
            known[key] = values.max(), moves[values == values.max()]
        return known[key][0]

    solve(rules.blank(1))
    states = np.frombuffer(b"".join(known), rules.spec.state).copy()
    perfect = np.zeros((len(states), rules.spec.actions), bool)
    for row, (_, right) in zip(perfect, known.values(), strict=True):
        row[right] = True
    return Solved(rules, states, np.array([value for value, _ in known.values()]), perfect)


def known_without_search(agent: Agent, solved: Solved) -> tuple[float, float]:
    """The share of perfect first choices where not every move is one, and how values go with the truth."""
    legal, obs = legal_of(solved.rules, solved.states), observation_of(solved.rules, solved.states)
    right = solved.perfect[np.arange(len(obs)), agent.act(obs, legal)]
    is_choice = (solved.perfect != legal).any(1)
    correlation = np.corrcoef(agent.policy.value(obs), solved.value)[0, 1]
    return float(right[is_choice].mean()), float(correlation)
