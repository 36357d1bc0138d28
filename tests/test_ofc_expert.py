"""OFC's last two streets, what Fantasyland is worth in a session, and the bots and agents that use them."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus import games, match
from ludus.algos.agent import JUDGED, LookAhead, PolicyBot, likeliest
from ludus.core import seeds
from ludus.core.conformance import Play, score_of
from ludus.core.errors import Usage
from ludus.core.rules import RandomBot, Thinks, legal_actions
from ludus.games.ofc.hand import STREETS, place_cards, unseen
from ludus.games.ofc.outcome import CHANCES, STANDS
from ludus.games.ofc.scoring import PAID, SESSION, board_values
from test_ofc_rules import last_decision

sys.path.append(str(Path(__file__).parent.parent / "bench"))
from fantasyland import fitted


def last_streets(rules, seed: int, rows: int = 40, street: int = STREETS - 1) -> np.ndarray:
    """Positions on the last street. Half of the placements were greedy's, so that not all boards foul."""
    bots = games.open("ofc").bot("greedy"), RandomBot(rules)
    play, found = Play(rules, seed=seed, rows=rows), []
    states, rng = play.states, play.rng
    for turn in range(10_000):
        open_rows = np.flatnonzero(~rules.over(states))
        if not len(open_rows):
            return np.concatenate(found)
        some, streams = states[open_rows], rng[open_rows]
        found.append(some[some["street"] == street].copy())
        rules.play(some, bots[turn % 2].choose(some, streams), streams)
        states[open_rows], rng[open_rows] = some, streams
    raise AssertionError("the games never end")


def after(rules, state: np.void, action: int) -> np.ndarray:
    states = rules.blank(1)
    states[0] = state
    rules.play(states, np.array([action], np.int32), seeds.rows(1, 1))
    return states


def finished(rules, states: np.ndarray) -> np.ndarray:
    actions = np.zeros(len(states), np.int32)
    assert rules.finish(states, actions).all()
    return actions


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), seats=st.sampled_from([2, 3]), jokers=st.sampled_from([0, 2]))
def test_the_last_placement_of_a_hand_brings_as_much_as_any(seed, seats, jokers):
    """Who places last knows everything: the rules themselves say what each placement brings."""
    game = games.open("ofc", seats=seats, jokers=jokers, hands=1, fantasyland_hands="valued")
    rules = game.rules
    states = last_streets(rules, seed)
    states = states[states["turn"] == states["button"]]
    for state, action in zip(states, finished(rules, states), strict=True):
        seat = int(state["turn"])
        brought = {a: score_of(rules, after(rules, state, a))[0, seat] for a in legal_actions(rules, state)}
        assert brought[int(action)] == pytest.approx(max(brought.values()), abs=1e-3)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_no_last_placement_fouls_where_one_stands(seed):
    rules = games.open("ofc", hands=1).rules
    states, values, stood = last_streets(rules, seed), np.zeros(3, np.int64), 0
    for state, action in zip(states, finished(rules, states), strict=True):
        boards = {a: after(rules, state, a)[0]["board"][state["turn"]] for a in legal_actions(rules, state)}
        stands = {a: board_values(board, values) for a, board in boards.items()}
        assert stands[int(action)] == any(stands.values())
        stood += any(stands.values())
    assert 0 < stood < len(states)


def test_the_last_placement_is_chosen_by_what_the_seat_sees():
    rules = games.open("ofc", hands=3).rules
    states = last_streets(rules, 3)
    redealt = states.copy()
    rules.redeal(redealt, seeds.rows(5, len(states)))
    assert redealt.tobytes() != states.tobytes()
    assert (finished(rules, states) == finished(rules, redealt)).all()


def with_finished_others(state: np.void, seed: int) -> np.ndarray:
    """The same position, but the other seats have placed all their cards."""
    states = np.array([state])
    deck = np.flatnonzero([int(state["deck"]) >> card & 1 for card in range(54)])
    np.random.default_rng(seed).shuffle(deck)
    for other in range(state["seats"]):
        if other != state["turn"]:
            states[0]["board"][other], deck = deck[:13], deck[13:]
            states[0]["count"][other] = 3, 5, 5
    states["deck"] = sum(1 << int(card) for card in deck)
    return states


def mean_of_last_draws(rules, start: np.ndarray, action: int) -> float:
    """What a placement brings if the best one follows, over all draws, by playing each of them."""
    placed, seat = start.copy(), start[0]["turn"]
    place_cards(placed[0], action)
    bits = int(unseen(placed[0]))
    draws = list(combinations([card for card in range(54) if bits >> card & 1], 3))
    ends = np.repeat(placed, len(draws))
    ends["drawn"][:, :3], ends["street"] = draws, STREETS - 1
    rules.play(ends, finished(rules, ends), seeds.rows(1, len(ends)))
    return float(score_of(rules, ends)[:, seat].mean(dtype=np.float64))


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32), jokers=st.sampled_from([0, 2]))
def test_placements_before_the_last_are_worth_what_all_last_draws_bring(seed, jokers):
    """All others are done, so the rules know all; but the other's Fantasyland is not in `worth`."""
    rules = games.open("ofc", seats=2, jokers=jokers, hands=1, fantasyland_hands="valued").rules
    states = last_streets(rules, seed, 6, STREETS - 2)
    for state in states[states["turn"] == states["button"]]:
        start = with_finished_others(state, seed)
        ideas = np.array(legal_actions(rules, start[0]), np.int32)
        (worth,), judged = rules.judge(start, ideas[None])
        brought = np.array([mean_of_last_draws(rules, start, int(idea)) for idea in ideas])
        assert judged.all() and np.allclose(brought - brought[0], worth - worth[0], atol=1e-3)


def test_a_certain_foul_pays_those_who_will_stand():
    """Whoever is in Fantasyland stands for sure, others with three boards of four."""
    rules = games.open("ofc", fantasyland_hands="sampled").rules
    states = last_streets(rules, 3, 300, STREETS - 2)
    seen = set()
    for state in states:
        ideas = np.array(legal_actions(rules, state), np.int32)
        (worth,), judged = rules.judge(np.array([state]), ideas[None])
        assert judged.all()
        if np.ptp(worth) > 1e-9 or len(ideas) < 6:  # no two cards alike save it
            continue
        found = worth[0]
        others = [seat for seat in range(3) if seat != state["turn"]]
        in_fantasy = sum(bool(state["fantasy_cards"][seat]) for seat in others)
        assert found == pytest.approx(-6 * (in_fantasy + STANDS * (2 - in_fantasy)))
        seen.add(in_fantasy)
    assert seen >= {0, 1}


def test_rows_win_more_often_the_higher_they_are_and_less_against_fantasyland():
    kinds = [kind for kind in range(CHANCES.shape[2]) if 1 <= kind & 15 <= 13]
    assert (np.diff(CHANCES[:, :, kinds]) >= 0).all()
    assert (CHANCES[1] <= CHANCES[0] + 0.02).all() and CHANCES.min() >= 0 and CHANCES.max() <= 1


def test_an_agent_takes_the_best_of_its_ideas_before_the_last_street():
    game = games.open("ofc", hands=1)
    states = last_streets(game.rules, 5, street=STREETS - 2)
    agent = match.player("champion", game)
    ideas = likeliest(agent.first(states)[2], JUDGED)
    worth, judged = game.rules.judge(states, ideas)
    assert judged.all() and (worth.argmax(1) > 0).any()
    for player in (agent, match.player("champion+1", game)):
        chosen = player.choose(states, seeds.rows(1, len(states)))
        assert (chosen == ideas[np.arange(len(ideas)), worth.argmax(1)]).all()


def test_other_streets_are_not_known():
    rules = games.open("ofc").rules
    play = Play(rules)
    assert not rules.finish(play.states, np.zeros(len(play.states), np.int32)).any()
    assert not rules.judge(play.states, np.zeros((len(play.states), 2), np.int32))[1].any()


@pytest.mark.parametrize(("hands", "top"), [(1, False), (10, True)])
def test_fantasyland_counts_only_if_there_is_a_next_hand(hands, top):
    """The king makes a pair on top, and Fantasyland; or a straight flush, with more royalties."""
    boards = ["Ks 2c/Ah Ad 2d 3c 5s/9h Th Jh Qh", "3h 5d 6h/8d 8s Tc Js 2s/Ac As Kc 7c 4s"]
    rules, states = last_decision(boards, "8c 2h Kh", hands=hands)
    chosen = rules.action_text(states[0], int(finished(rules, states)[0]))
    assert ("Kh:t" in chosen) == top, chosen


def test_a_cut_session_ends_with_its_hand_and_pays_fantasyland():
    rules = games.open("ofc", hands=10).rules
    states = rules.blank(200)
    rules.deal(states, seeds.rows(1, 200))
    states["hand"] = np.arange(200) % 10
    rules.cut(states)
    assert (states["valued"] == SESSION + 9 - np.arange(200) % 10).all()
    greedy, rng = games.open("ofc").bot("greedy"), seeds.rows(2, 200)
    while not rules.over(states).all():
        rules.play(states, greedy.choose(states, rng), rng)
    assert (states["hand"] == np.arange(200) % 10 + 1).all()
    value = rules.spec.stats.index("value")
    entries = rules.spec.stats.index("entries")
    for state in states:
        paid = PAID[state["valued"]]
        for seat in range(3):
            earned = 0 if not state["stats"][seat, entries] else state["stats"][seat, value] / 2
            assert earned == 0 or np.isclose(paid, earned).any()
    assert states["stats"][:, :, entries].any()


@pytest.mark.parametrize("to_come", [1, 3])
def test_fantasyland_pays_what_champions_earn_with_it(to_come):
    """Sessions that end so many hands later. 15 and 16 cards are met often enough to tell.

    Hands in which all seats are in Fantasyland are over at once, so nobody sees how they begin.
    """
    hands = 2 + to_come
    rules = games.open("ofc", hands=hands).native("played").rules
    champion, sessions = match.player("champion+0", games.open("ofc")), 3000
    states, rng = rules.blank(sessions), seeds.rows(1, sessions)
    rules.deal(states, rng)
    cards, points = np.full((sessions, 3), -1, np.int8), np.zeros((sessions, 3))
    while (alive := np.flatnonzero(~rules.over(states))).size:
        some, streams = states[alive], rng[alive]
        before = some["hand"].copy()
        rules.play(some, champion.choose(some, streams), streams)
        states[alive], rng[alive] = some, streams
        begun = alive[(before < 2) & (some["hand"] == 2)]
        cards[begun], points[begun] = states["fantasy_cards"][begun], states["points"][begun]
    seen = (cards >= 0).all(1)
    gain, margin = fitted(cards[seen], (states["points"] - points)[seen])
    assert np.all(np.abs(gain - PAID[SESSION + to_come])[1:3] < 3 * margin[1:3])
    assert (margin[1:3] < 0.2 * gain[1:3]).all()


def test_fantasyland_after_the_last_hand_pays_nothing():
    assert not PAID[SESSION].any()


def test_expert_beats_greedy_by_far():
    """By 16 points a hand, with a standard error of about 3 here."""
    game = games.open("ofc", hands=1, fantasyland_hands="valued")
    expert, greedy = match.player("expert+32", game), game.bot("greedy")
    points = match.played(match.game_steps(game.rules, [expert, greedy, greedy], 150, 2))["points"]
    assert points[:, 0].mean() > 3


def test_expert_thinks_as_far_as_told():
    game = games.open("ofc")
    expert = match.player("expert+7", game)
    assert isinstance(expert, Thinks) and expert.futures == 7
    with pytest.raises(Usage, match="expert looks into a number of futures"):
        match.player("expert+1s", game)


# ---- look-ahead of a policy


class Ignorant:
    """A policy to which all actions are equal."""

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def logits(self, obs: np.ndarray) -> np.ndarray:
        return np.zeros((len(obs), self.actions), np.float32)

    def value(self, obs: np.ndarray) -> np.ndarray:
        return np.zeros(len(obs), np.float32)


@pytest.mark.parametrize(("futures", "seconds"), [(64, 0.0), (10**6, 0.2)])
def test_looking_ahead_finds_a_win(futures, seconds):
    rules = games.open("tictactoe").rules
    states = rules.blank(1)
    rules.deal(states, seeds.rows(0, 1))
    for cell in ("b2", "c1", "a1", "b1"):  # c3 wins
        rules.play(states, np.array([rules.parse_action(states[0], cell)], np.int32), seeds.rows(0, 1))
    policy = Ignorant(rules.spec.actions)
    action = LookAhead(rules, policy, futures, seconds).choose(states, seeds.rows(1, 1))
    assert rules.action_text(states[0], int(action[0])) == "c3"
    first = PolicyBot(rules, policy).choose(states, seeds.rows(1, 1))
    assert rules.action_text(states[0], int(first[0])) != "c3"


def test_looking_ahead_sees_no_hidden_cards():
    game = games.open("ofc", hands=3)
    agent = match.player("champion+16", game)
    play = Play(game.rules, rows=6)
    for number, (states, _) in enumerate(play.decisions(most=6)):
        redealt = states.copy()
        game.rules.redeal(redealt, seeds.rows(number, len(states), "redeal"))
        seen, other = (agent.choose(s, seeds.rows(1, len(states))) for s in (states, redealt))
        assert (seen == other).all()


def test_an_agent_ends_its_hands_as_the_rules_know():
    game = games.open("ofc", hands=1)
    states = last_streets(game.rules, 4)
    chosen = match.player("champion", game).choose(states, seeds.rows(1, len(states)))
    assert (chosen == finished(game.rules, states)).all()
