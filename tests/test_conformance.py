"""Every game that is found keeps the contract, and each check finds what it is there for."""

import dataclasses

import numpy as np
import pytest

from ludus import games, match
from ludus.core import conformance
from ludus.core.dice import next64
from ludus.core.rules import RandomBot
from ludus.core.spec import Spec
from ludus.core.table import RulesTable
from ludus.games.tictactoe.rules import STATE, TicTacToe


@pytest.mark.parametrize("promise", conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("game", games.native_names())
def test_every_game_keeps_the_contract(game, promise):
    promise(games.open(game).rules)


@pytest.mark.parametrize(
    "switches",
    [
        {"seats": 2, "jokers": 0},
        {"fantasyland": "flat", "stay_middle": True, "hands": 4},
        {"fantasyland": "off", "hands": 1},
        {"fantasyland_hands": "valued", "hands": 3},
        {"fantasyland_hands": "sampled"},
        {"last_street": "exact", "hands": 3},
        {"last_street": "expected", "fantasyland_hands": "sampled"},
    ],
    ids=str,
)
def test_ofc_keeps_the_contract_with_its_switches(switches):
    problems = {
        said: problem for said, problem in conformance.check(games.open("ofc", **switches).rules) if problem
    }
    assert not problems


# ---- one promise broken at a time


def changed_spec(**changes):
    fields = {name: getattr(TicTacToe.spec, name) for name in Spec.__dataclass_fields__}
    return Spec(**(fields | changes))


class WrongSeatType(TicTacToe):
    def seat(self, states):
        return (states["moves"] % 2).astype(np.int64)


class SeatOutOfRange(TicTacToe):
    def seat(self, states):
        return np.full(len(states), 2, np.int8)


class LeavesDirt(TicTacToe):
    def observe(self, states, out):
        for row, state in enumerate(states):
            for cell in np.flatnonzero(state["cells"]):
                out[row, 0, cell // 3, cell % 3] = 1


class PaddedState(TicTacToe):
    spec = changed_spec(state=np.dtype([("cells", np.uint8, 9), ("moves", np.int16)], align=True))


class ReaderWrites(TicTacToe):
    def legal(self, states, out):
        super().legal(states, out)
        states["moves"] = 0


class StatsWrite(TicTacToe):
    def stats(self, states, out):
        super().stats(states, out)
        states["moves"] += 1


class NoLegalAction(TicTacToe):
    def legal(self, states, out):
        super().legal(states, out)
        out[states["moves"] == 3] = False


class NeverEnds(TicTacToe):
    def over(self, states):
        return np.zeros(len(states), bool)

    def play(self, states, actions, rng):
        pass


class GivesViews(TicTacToe):
    """Plays on after `seat` and `over` were asked, and what they gave changes."""

    STATE = np.dtype([*STATE.descr, ("turn", np.int8), ("ended", bool)])
    spec = changed_spec(state=STATE)

    def blank(self, n):
        return np.zeros(n, self.STATE)

    def deal(self, states, rng):
        states[:] = np.zeros((), self.STATE)

    def play(self, states, actions, rng):
        super().play(states, actions, rng)
        states["turn"], states["ended"] = super().seat(states), super().over(states)

    def seat(self, states):
        return states["turn"]


class GivesOverAsView(GivesViews):
    def seat(self, states):
        return states["turn"].copy()

    def over(self, states):
        return states["ended"]


class Dice(TicTacToe):
    """Says that there is no chance, but a move may be lost."""

    def play(self, states, actions, rng):
        before = states.copy()
        super().play(states, actions, rng)
        lost = np.array([next64(stream) % np.uint64(6) == 0 for stream in rng])
        states["winner"][lost] = before["winner"][lost]


class NotZeroSum(TicTacToe):
    def score(self, states, out):
        out[:] = 1


class EndlessScore(TicTacToe):
    def score(self, states, out):
        out[:] = np.nan


class LooksAtNeighbours(TicTacToe):
    def play(self, states, actions, rng):
        super().play(states, actions, rng)
        states["winner"] = states["winner"].max()


class OwnDice(TicTacToe):
    """Chance that comes from somewhere else than `rng`."""

    dice = np.random.default_rng()

    def deal(self, states, rng):
        super().deal(states, rng)
        states["cells"][:, 0] = self.dice.integers(0, 2, len(states))


class OwnDiceInPlay(TicTacToe):
    dice = np.random.default_rng()

    def play(self, states, actions, rng):
        super().play(states, actions, rng)
        states["winner"] = self.dice.integers(0, 2, len(states))


class Leaks(TicTacToe):
    """A hidden number that the observation gives away."""

    SECRET = np.dtype([*STATE.descr, ("secret", np.uint8)])
    spec = changed_spec(state=SECRET, hidden=True)

    def blank(self, n):
        return np.zeros(n, self.SECRET)

    def deal(self, states, rng):
        states[:] = np.zeros((), self.SECRET)
        self.redeal(states, rng)

    def redeal(self, states, rng):
        for state, stream in zip(states, rng, strict=True):
            state["secret"] = next64(stream) % np.uint64(2)

    def observe(self, states, out):
        super().observe(states, out)
        out[:, 1, 2, 2] |= states["secret"]


class SaysHidden(TicTacToe):
    spec = changed_spec(hidden=True)


class RedealMovesOn(TicTacToe):
    spec = changed_spec(hidden=True)

    def redeal(self, states, rng):
        states["moves"] += 1


class Mumbles(TicTacToe):
    def text(self, state):
        return super().text(state)[::-1]


class MumblesActions(TicTacToe):
    def action_text(self, state, action):
        return super().action_text(state, 8 - action)


class TakesAnyText(TicTacToe):
    def parse_action(self, state, text):
        return 0 if text == "no such text" else super().parse_action(state, text)


class Crashes(TicTacToe):
    def stats(self, states, out):
        raise IndexError("ouch")


class AdvancesWrongly(TicTacToe):
    """Forgets to pay."""

    def advance(self, states, actions, rng, legal, obs, score, reward, over, seat, rows, last):
        self.play(states, actions, rng)
        over[:] = self.over(states)
        ended = np.flatnonzero(over)
        rows[: len(ended)], last[: len(ended)] = ended, states[ended]
        fresh, streams = states[ended], rng[ended]
        self.deal(fresh, streams)
        states[ended], rng[ended] = fresh, streams
        seat[:] = self.seat(states)
        self.legal(states, legal)
        self.observe(states, obs)
        return len(ended)


class Squares:
    """Afterstates of which the first part is the square that is taken."""

    options, features, constants = 9, 1, ()
    few, few_actions = 4, slice(0, 4)
    combine = np.stack([np.arange(9), np.zeros(9), np.zeros(9)], 1).astype(np.int32)

    def there(self, obs):
        found = np.zeros((len(obs), 3, 9), bool)
        found[:, 0], found[:, 1:, 0] = True, True
        return found

    def describe(self, obs, places, out):
        out[:] = 1

    def has_few(self, obs):
        return np.zeros(len(obs), bool)


class AlwaysFew(Squares):
    def has_few(self, obs):
        return np.ones(len(obs), bool)


class MissesSquares(Squares):
    def there(self, obs):
        found = super().there(obs)
        found[:, 0, 4] = False
        return found


class CountsNeighbours(Squares):
    def describe(self, obs, places, out):
        out[:] = len(obs)


class DescribesHalf(Squares):
    def describe(self, obs, places, out):
        out[::2] = 1


class WithAfterstates(TicTacToe):
    afterstates: type = Squares

    def __init__(self):
        self.spec = dataclasses.replace(TicTacToe.spec, afterstates=self.afterstates())


class MissesOptions(WithAfterstates):
    afterstates = MissesSquares


class DescribesNeighbours(WithAfterstates):
    afterstates = CountsNeighbours


class LeavesDescriptionsOut(WithAfterstates):
    afterstates = DescribesHalf


class SaysFew(WithAfterstates):
    afterstates = AlwaysFew


BREAKS = {
    SaysFew: ("afterstates", "said to have few options"),
    MissesOptions: ("afterstates", "an option that is not described"),
    DescribesNeighbours: ("afterstates", "depends on other decisions"),
    LeavesDescriptionsOut: ("afterstates", "not written in full"),
    AdvancesWrongly: ("advances", "another reward"),
    WrongSeatType: ("shapes", "seat must give int8"),
    SeatOutOfRange: ("shapes", "of 2 seats"),
    LeavesDirt: ("shapes", "observe leaves parts"),
    PaddedState: ("shapes", "padding"),
    GivesViews: ("shapes", "seat gives a view"),
    GivesOverAsView: ("shapes", "over gives a view"),
    Dice: ("chance", "spec.chance is False"),
    ReaderWrites: ("readers_only_read", "changed a state"),
    StatsWrite: ("readers_only_read", "changed a state"),
    NoLegalAction: ("ends", "no legal action, but not over"),
    NeverEnds: ("ends", "did not end"),
    NotZeroSum: ("ends", "add up to"),
    EndlessScore: ("ends", "not finite"),
    LooksAtNeighbours: ("alone", "alone"),
    OwnDice: ("seeded", "the same seed differs"),
    OwnDiceInPlay: ("copies", "different ways"),
    Leaks: ("hides", "the observation changed"),
    SaysHidden: ("hides", "spec.hidden is True"),
    RedealMovesOn: ("hides", "redeal changed the seat to move"),
    Mumbles: ("speaks", "misread"),
    MumblesActions: ("speaks", "action misread"),
    TakesAnyText: ("speaks", "must raise"),
    Crashes: ("readers_only_read", "raised IndexError: ouch"),
}


@pytest.mark.parametrize("broken", BREAKS, ids=lambda rules: rules.__name__)
def test_a_broken_promise_is_found(broken, monkeypatch):
    name, said = BREAKS[broken]
    promise = getattr(conformance, name)
    monkeypatch.setattr(conformance, "CHECKS", (promise,))
    [(promised, problem)] = conformance.check(broken())
    assert promised == promise.__doc__.strip()
    assert problem is not None and said in problem


def test_afterstates_that_keep_their_promise_pass():
    conformance.afterstates(WithAfterstates())


def test_a_table_that_takes_anything_is_found(monkeypatch):
    monkeypatch.setattr(conformance.RulesTable, "_refuse_illegal", lambda self, *args: None)
    with pytest.raises(conformance.Broken, match="took the illegal action -1"):
        conformance.refuses(TicTacToe())


def test_every_check_is_shown_to_find_something():
    assert {name for name, _ in BREAKS.values()} | {"refuses"} == {c.__name__ for c in conformance.CHECKS}


class Views(GivesOverAsView):
    def seat(self, states):
        return states["turn"]


def test_rules_that_give_views_play_as_others_do():
    """Tables and matches copy what changes with the states."""
    tables = [RulesTable(rules, 8) for rules in (TicTacToe(), Views())]
    turns = [table.reset(1) for table in tables]
    for _ in range(40):
        actions = turns[0].legal.argmax(1).astype(np.int32)
        before, asked = turns[1], turns[1].seat.copy()
        turns = [table.step(actions) for table in tables]
        assert (turns[0].seat == turns[1].seat).all() and (turns[0].ended == turns[1].ended).all()
        assert (asked == before.seat).all()  # a turn stays what it was
    lineups = [[RandomBot(rules), RandomBot(rules)] for rules in (TicTacToe(), Views())]
    finals = [match.played(match.game_steps(lineup[0].rules, lineup, 30, seed=2)) for lineup in lineups]
    assert (finals[0]["cells"] == finals[1]["cells"]).all() and Views().over(finals[1]).all()
