"""What a few moves decide, by the rules alone: every move is tried, so nothing here is a guess."""

from typing import Any

import numpy as np

from ludus.core.rules import Rules, Solves, States
from ludus.search.evaluators import Utility
from ludus.search.tree import WON


def as_bytes(states: States) -> np.ndarray:
    """NumPy copies records field by field, but bytes at once."""
    return states.view(f"V{states.itemsize}")


def as_numbers(states: States) -> np.ndarray:
    """The bytes as compiled code reads them, uint8 [..., size]."""
    return states.view(np.uint8).reshape(*states.shape, states.itemsize)


def picked(states: States, which: Any) -> States:
    """states[which]"""
    return as_bytes(states)[which].view(states.dtype)


def plies_within(most: int, actions: int) -> int:
    """How many plies of a game take no more than so many positions: few, or none, where actions are many."""
    plies = 0
    while actions > 1 and actions ** (plies + 1) <= most:
        plies += 1
    return plies


def prove(
    rules: Rules, utility: Utility, states: States, plies: int, endgame: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Positions whose value is certain, bool [N], and what they are worth to each seat, float32 [N, S]: games
    that are over, those that the game's own solver, if it has one, finishes within `endgame` positions, and
    those that one move wins or all moves decide within `plies`. For games without chance.
    """
    proven = rules.over(states).copy()
    values = np.zeros((len(states), rules.spec.seats), np.float32)
    if proven.any():
        score = values[proven]
        rules.score(picked(states, proven), score)
        values[proven] = utility(score)
    if endgame and isinstance(rules, Solves) and not proven.all():
        rows = np.flatnonzero(~proven)
        score = np.zeros((len(rows), rules.spec.seats), np.float32)
        found = rules.solve(picked(states, rows), endgame, score)
        proven[rows[found]], values[rows[found]] = True, utility(score[found])
    if plies == 0 or proven.all():
        return proven, values
    rows = np.flatnonzero(~proven)
    states = picked(states, rows)
    legal = np.zeros((len(rows), rules.spec.actions), bool)
    rules.legal(states, legal)
    row, action = np.nonzero(legal)
    after = picked(states, row)
    rules.play(after, action.astype(np.int32), np.zeros((len(after), 2), np.uint64))
    known, worth = prove(rules, utility, after, plies - 1)
    own, sure, place = np.full(legal.shape, -np.inf, np.float32), ~legal, np.zeros(legal.shape, np.int64)
    own[legal] = np.where(known, worth[np.arange(len(after)), rules.seat(states)[row]], -np.inf)
    sure[legal], place[legal] = known, np.arange(len(after))
    best = own.argmax(1)
    decided = np.flatnonzero((own.max(1) >= WON) | sure.all(1))
    proven[rows[decided]] = True
    values[rows[decided]] = worth[place[decided, best[decided]]]
    return proven, values
