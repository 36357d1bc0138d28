"""What a search thinks of a game, move by move. Knows rules and thinkers; how it looks is for `ui` to say."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.rules import Rules, States, Streams, legal_actions
from ludus.search import Result, Thinker


@dataclass(frozen=True)
class Idea:
    """An action as the search sees it."""

    action: int
    visits: int
    share: float  # of the policy
    value: float  # to the seat to move; means nothing without visits


@dataclass(frozen=True)
class Step:
    """One move of a game, and what the search thought of it."""

    number: int  # from 1
    state: np.void  # before the move
    seat: int
    action: int  # that was played
    ideas: list[Idea]  # of the search, the best first
    value: np.ndarray  # float32 [S]: what the position was worth to every seat
    after: np.ndarray  # float32 [S]: and what the next one is
    lost: float  # by the seat that moved, against the search's best move


def ideas_of(found: Result, row: int = 0) -> list[Idea]:
    """All actions of a row: the one that would be played, and then by visits."""
    count = found.counts[row]
    columns = (
        part[row, :count].tolist() for part in (found.actions, found.visits, found.policy, found.means)
    )
    ideas = [Idea(*each) for each in zip(*columns, strict=True)]
    return sorted(ideas, key=lambda idea: (idea.action != found.best[row], -idea.visits, -idea.share))


def split_moves(text: str) -> list[str]:
    """Moves stand apart by blanks or in lines of their own; # begins a comment."""
    return [word for line in text.splitlines() for word in line.partition("#")[0].split()]


def read_moves(rules: Rules, words: list[str], seed: int, row: int = 0) -> list[int]:
    """The actions of a game as it was written down. row: which deal of the seed"""
    states, chance = start(rules, seed, row)
    actions = []
    for number, word in enumerate(words, 1):
        try:
            actions.append(_read_move(rules, states, word))
        except Usage as problem:
            where = rules.text(states[0])
            raise Usage(f"move {number} ({word}): {problem}; the position is {where}") from None
        rules.play(states, np.array(actions[-1:], np.int32), chance)
    return actions


def _read_move(rules: Rules, states: States, word: str) -> int:
    if rules.over(states)[0]:
        raise Usage("the game is over before it")
    action = rules.parse_action(states[0], word)
    if action not in legal_actions(rules, states[0]):
        raise Usage("not possible here")
    return action


def start(rules: Rules, seed: int, row: int = 0) -> tuple[States, Streams]:
    """A deal and the stream of its chance, as the row-th of games that are dealt side by side."""
    states, chance = rules.blank(1), seeds.rows(seed, row + 1, "deal")[row:]
    rules.deal(states, chance)
    return states, chance


def study(
    rules: Rules, thinker: Thinker, actions: list[int] | None, seed: int, row: int = 0
) -> Iterator[Step]:
    """Think about every position of a game; without actions, the thinker plays both sides of it.

    What a move lost is told by thinking about the position after it and the one after the best move, for
    just as long: within one search, a move that looks bad is hardly looked at.
    """
    states, chance = start(rules, seed, row)
    found, value = _think(rules, thinker, states, seed, 0)
    number = 0
    while found and (actions is None or number < len(actions)):
        best, seat = int(found.best[0]), int(rules.seat(states)[0])
        action = best if actions is None else actions[number]
        number, before, other, some_rng = number + 1, states.copy(), states.copy(), chance.copy()
        rules.play(states, np.array([action], np.int32), chance)
        then, after = _think(rules, thinker, states, seed, number)
        lost = 0.0
        if action != best:
            rules.play(other, np.array([best], np.int32), some_rng)
            _, instead = _think(rules, thinker, other, seed, number)
            lost = max(0.0, float(instead[seat] - after[seat]))
        yield Step(number, before[0], seat, action, ideas_of(found), value, after, lost)
        found, value = then, after


def _think(
    rules: Rules, thinker: Thinker, states: States, seed: int, number: int
) -> tuple[Result | None, np.ndarray]:
    """What was found and the value for every seat; of a game that is over, what its score is worth to the
    thinker."""
    if rules.over(states)[0]:
        score = np.zeros((1, rules.spec.seats), np.float32)
        rules.score(states, score)
        return None, thinker.utility(score)[0]
    found = thinker.think(states.copy(), seeds.rows(seed, 1, "think", number))
    return found, found.value[0]
