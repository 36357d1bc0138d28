"""Checks that rules keep the contract of `core/rules.py`. Every game passes them by being found.

Each check is a function of the rules that raises `Broken`; its docstring is what it promises.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ludus.core import seeds
from ludus.core.afterstates import PARTS, described
from ludus.core.dice import legal_choice
from ludus.core.errors import Failure, Usage
from ludus.core.rules import Advances, Rules, States
from ludus.core.table import RulesTable
from ludus.core.view import View

ROWS = 24
LONGEST = 20_000
"""Decisions after which a randomly played game counts as one that never ends."""


class Broken(Failure):
    """A promise of the contract that the rules don't keep."""


def check(rules: Rules, view: View | None = None) -> Iterator[tuple[str, str | None]]:
    """What each check promises, and what is wrong (None if nothing)."""
    checks: list[tuple[Callable[..., None], tuple[Any, ...]]] = [(promise, (rules,)) for promise in CHECKS]
    for promise, given in [*checks, *([(check_view, (rules, view))] if view else [])]:
        problem = None
        try:
            promise(*given)
        except Broken as broken:
            problem = str(broken)
        except Exception as error:
            problem = f"raised {type(error).__name__}: {error}"
        yield (promise.__doc__ or promise.__name__).strip(), problem


def demand(true: bool | np.bool_, otherwise: str) -> None:
    if not true:
        raise Broken(otherwise)


class Play:
    """Random play of ROWS games, one decision at a time, that a check can look into."""

    def __init__(self, rules: Rules, seed: int = 1, rows: int = ROWS) -> None:
        self.rules = rules
        self.states = rules.blank(rows)
        self.rng = seeds.rows(seed, rows, "game")
        self.choices = seeds.rows(seed, rows, "choice")
        rules.deal(self.states, self.rng)

    def decisions(self, most: int = LONGEST) -> Iterator[tuple[States, np.ndarray]]:
        """Before each decision: the states of all unfinished games, and an action for each."""
        for _ in range(most):
            alive = np.flatnonzero(~self.rules.over(self.states))
            if not len(alive):
                return
            states, rng, choices = self.states[alive], self.rng[alive], self.choices[alive]
            legal = legal_of(self.rules, states.copy())
            demand(legal.any(1).all(), f"no legal action, but not over: {self.rules.text(states[0])}")
            actions = np.zeros(len(alive), np.int32)
            legal_choice(legal, choices, actions)
            yield states.copy(), actions
            self.rules.play(states, actions, rng)
            self.states[alive], self.rng[alive], self.choices[alive] = states, rng, choices
        if most == LONGEST:
            raise Broken(f"a game did not end within {LONGEST} random decisions")


def legal_of(rules: Rules, states: States, dirt: bool = False) -> np.ndarray:
    legal = np.full((len(states), rules.spec.actions), dirt)
    rules.legal(states, legal)
    return legal


def observation_of(rules: Rules, states: States, dirt: int = 0) -> np.ndarray:
    obs = np.full((len(states), *rules.spec.obs_shape), dirt, rules.spec.obs_dtype)
    rules.observe(states, obs)
    return obs


def score_of(rules: Rules, states: States) -> np.ndarray:
    score = np.zeros((len(states), rules.spec.seats), np.float32)
    rules.score(states, score)
    return score


def has_padding(state: np.dtype) -> bool:
    """Whether a record has bytes that belong to no field."""
    return state.fields is not None and state.itemsize > sum(
        kind[0].itemsize for kind in state.fields.values()
    )


def shapes(rules: Rules) -> None:
    """shapes and types are as the spec says, and outputs are written in full"""
    spec = rules.spec
    demand(spec.seats >= 1 and spec.actions >= 1, "a game needs a seat and an action")
    demand(
        spec.state is not None and not has_padding(spec.state), "states have padding, which copies may lose"
    )
    for states, _ in Play(rules).decisions():
        demand(states.dtype == spec.state, f"states are {states.dtype}, the spec says {spec.state}")
        seat, over = rules.seat(states), rules.over(states)
        demand(seat.dtype == np.int8 and seat.shape == (len(states),), "seat must give int8 [N]")
        demand(over.dtype == bool and over.shape == (len(states),), "over must give bool [N]")
        demand(((seat >= 0) & (seat < spec.seats)).all(), f"seat gave {seat} of {spec.seats} seats")
        for name, given in (("seat", seat), ("over", over)):
            view = np.may_share_memory(given, states)
            demand(not view, f"{name} gives a view of the states, which changes with them: give a copy")
        same = (legal_of(rules, states) == legal_of(rules, states, dirt=True)).all()
        demand(same, "legal leaves parts of its output unwritten")
        same = (observation_of(rules, states) == observation_of(rules, states, dirt=99)).all()
        demand(same, "observe leaves parts of its output unwritten")


def readers_only_read(rules: Rules) -> None:
    """legal, observe, seat, over, score, stats and text change no state"""
    stats = np.zeros((ROWS, rules.spec.seats, len(rules.spec.stats)), np.float32)
    for states, _ in Play(rules).decisions():
        before = states.tobytes()
        legal_of(rules, states), observation_of(rules, states), score_of(rules, states)
        rules.seat(states), rules.over(states), rules.text(states[0])
        rules.stats(states, stats[: len(states)])
        demand(states.tobytes() == before, "a function that should only read changed a state")


def ends(rules: Rules) -> None:
    """games end, with a legal action until then and finite scores"""
    play = Play(rules)
    for _ in play.decisions():
        pass
    score = score_of(rules, play.states)
    demand(np.isfinite(score).all(), "a final score is not finite")
    if rules.spec.zero_sum:
        demand(np.abs(score.sum(1)).max() < 1e-3, f"scores of a zero-sum game add up to {score.sum(1)}")


def alone(rules: Rules) -> None:
    """many games at once go as each would alone"""
    together, streams = Play(rules, rows=8), seeds.rows(1, 8, "game")
    ones = []
    for row in range(8):
        state, rng = rules.blank(1), streams[row : row + 1].copy()
        rules.deal(state, rng)
        ones.append((state, rng))
    for states, actions in together.decisions():
        alive = [pair for pair in ones if not rules.over(pair[0])[0]]
        demand(len(alive) == len(states), "a game ended at another time than alone")
        for i, (state, rng) in enumerate(alive):
            demand(
                state.tobytes() == states[i : i + 1].tobytes(), f"row {i} differs from the same game alone"
            )
            rules.play(state, actions[i : i + 1], rng)
    for row, (state, _) in enumerate(ones):
        same = state.tobytes() == together.states[row : row + 1].tobytes()
        demand(same, f"row {row} ended otherwise than the same game alone")


def seeded(rules: Rules) -> None:
    """the same seed gives the same game"""
    first, second = Play(rules, seed=5), Play(rules, seed=5)
    for (states, actions), (again, actions_again) in zip(first.decisions(), second.decisions(), strict=True):
        demand(
            states.tobytes() == again.tobytes() and (actions == actions_again).all(), "the same seed differs"
        )


def copies(rules: Rules) -> None:
    """a copied state is a copied game"""
    for states, actions in Play(rules).decisions():
        before, rng = states.tobytes(), seeds.rows(9, len(states))
        results = []
        for _ in range(2):
            copy, stream = states.copy(), rng.copy()
            rules.play(copy, actions, stream)
            results.append(copy.tobytes())
        demand(results[0] == results[1], "two copies of a state went different ways with the same chance")
        demand(states.tobytes() == before, "playing a copy changed the original")


def chance(rules: Rules) -> None:
    """without chance (spec.chance), a move always leads to the same state"""
    if rules.spec.chance:
        return
    for number, (states, actions) in enumerate(Play(rules).decisions()):
        results = []
        for way in range(4):
            after = states.copy()
            rules.play(after, actions, seeds.rows(number, len(states), "chance", way))
            results.append(after.tobytes())
        demand(len(set(results)) == 1, "spec.chance is False, but play depends on its stream")


def hides(rules: Rules) -> None:
    """what a seat sees does not depend on what it can't see"""
    changed = False
    for number, (states, _) in enumerate(Play(rules).decisions()):
        redealt = states.copy()
        rules.redeal(redealt, seeds.rows(number, len(states), "redeal"))
        changed |= redealt.tobytes() != states.tobytes()
        same = (observation_of(rules, redealt) == observation_of(rules, states)).all()
        demand(same, "the observation changed when only hidden things changed")
        same = (legal_of(rules, redealt) == legal_of(rules, states)).all()
        demand(same, "the legal actions changed when only hidden things changed")
        demand((rules.seat(redealt) == rules.seat(states)).all(), "redeal changed the seat to move")
    demand(changed == rules.spec.hidden, f"spec.hidden is {rules.spec.hidden}, but redeal says otherwise")


def refuses(rules: Rules) -> None:
    """an illegal action is refused at the table, and no row changes"""
    table = RulesTable(rules, 4)
    turn = table.reset(3)
    for wrong in (-1, rules.spec.actions, *np.flatnonzero(~turn.legal[2])[:1]):
        actions = turn.legal.argmax(1).astype(np.int32)
        actions[2] = wrong
        before = table.states.tobytes()
        try:
            table.step(actions)
        except Failure:
            demand(table.states.tobytes() == before, "a refused action changed a row")
            continue
        raise Broken(f"the table took the illegal action {wrong}")


def advances(rules: Rules) -> None:
    """a step in one call is the same as its parts, one after the other"""
    if not isinstance(rules, Advances):
        return
    at_once, in_parts = RulesTable(rules, ROWS), RulesTable(rules, ROWS)
    in_parts.advances = None
    turn, expected = at_once.reset(4), in_parts.reset(4)
    choices, actions, games = seeds.rows(4, ROWS, "choice"), np.zeros(ROWS, np.int32), 0
    while games < 3 * ROWS:
        for name in ("obs", "legal", "seat", "reward", "ended"):
            demand((getattr(turn, name) == getattr(expected, name)).all(), f"advance gives another {name}")
        demand(at_once.states.tobytes() == in_parts.states.tobytes(), "advance gives other states")
        if turn.finished and expected.finished:
            games += len(turn.finished.rows)
            for given, right in zip(turn.finished, expected.finished, strict=True):
                demand(bool(np.all(given == right)), "advance tells otherwise how games ended")
        legal_choice(turn.legal, choices, actions)
        turn, expected = at_once.step(actions), in_parts.step(actions)


def afterstates(rules: Rules) -> None:
    """afterstates of legal actions are described, each from its own decision"""
    kind = rules.spec.afterstates
    if kind is None:
        return
    shape = (rules.spec.actions, PARTS)
    demand(kind.combine.shape == shape, f"combine is {kind.combine.shape}, not {shape}")
    for states, _ in Play(rules).decisions():
        obs, legal = observation_of(rules, states), legal_of(rules, states)
        features, places, _ = described(kind, obs)
        unwritten = np.full_like(features, np.nan)
        kind.describe(obs, places, unwritten)
        demand(bool(np.isfinite(unwritten).all()), "a description is not finite, or not written in full")
        there = (places[:, np.arange(PARTS), kind.combine] >= 0).all(2)
        demand(not (legal & ~there).any(), "a legal action leads to an option that is not described")
        few, actions = legal[np.asarray(kind.has_few(obs))], np.arange(rules.spec.actions)
        is_few = np.isin(actions, actions[kind.few_actions]) & (kind.combine < kind.few).all(1)
        demand(not few[:, ~is_few].any(), "a decision that is said to have few options has others")
        alone, own, _ = described(kind, obs[:1])
        same = features[places[0][places[0] >= 0]] == alone[own[0][own[0] >= 0]]
        demand(bool(same.all()), "a description depends on other decisions")


def speaks(rules: Rules) -> None:
    """states and actions have a text form that reads back as the same"""
    for states, _ in Play(rules, rows=4).decisions():
        for state in states:
            text = rules.text(state)
            demand("\n" not in text and rules.parse(text)[0].tobytes() == state.tobytes(), f"misread: {text}")
            for action in np.flatnonzero(legal_of(rules, states[:1])[0])[:40]:
                said = rules.action_text(states[0], int(action))
                demand(rules.parse_action(states[0], said) == action, f"action misread: {said}")
    for parse in (rules.parse, lambda text: rules.parse_action(states[0], text)):
        try:
            parse("no such text")
        except Usage:
            continue
        raise Broken("text that means nothing must raise ludus.core.errors.Usage")


CHECKS: tuple[Callable[[Rules], None], ...] = (
    shapes, readers_only_read, ends, alone, seeded, copies, chance, hides, refuses, advances, afterstates,
    speaks,
)  # fmt: skip


def check_view(rules: Rules, view: View) -> None:
    """a browser is shown every legal action of the seat to move, and nothing that is hidden from it"""
    for states, _ in Play(rules, rows=2).decisions():
        redealt = states.copy()
        rules.redeal(redealt, seeds.rows(7, len(states)))
        for state, other in zip(states, redealt, strict=True):
            seat = int(rules.seat(np.array([state]))[0])
            shown = json.dumps(view.show(state, seat))
            offered = sorted(move[0] for move in json.loads(shown)["moves"])
            legal = np.flatnonzero(legal_of(rules, np.array([state]))[0]).tolist()
            demand(offered == legal, f"the page offers {offered[:9]} of the legal {legal[:9]}")
            demand(shown == json.dumps(view.show(other, seat)), "the page shows what is hidden from the seat")
            for idle in set(range(rules.spec.seats)) - {seat}:
                demand(not view.show(state, idle)["moves"], f"seat {idle} is offered moves of seat {seat}")
            demand(bool(view.show(state, None)["moves"]), "who looks on is shown no moves")
