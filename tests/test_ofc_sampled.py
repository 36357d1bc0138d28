"""OFC in training: games that are any one hand of a session."""

import numpy as np
import pytest

from ludus import games, gym_env
from ludus.core import seeds
from ludus.core.conformance import Play, legal_of, observation_of
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.games.ofc.cards import EMPTY
from ludus.games.ofc.fantasy import solve
from ludus.games.ofc.hand import REPEATS, STATS
from ludus.games.ofc.scoring import PAID, SEATED_SHARE, SESSION

ROWS = 4000
LAST_HAND = 429
"""Of an observation, docs/ofc.md"""


def deal(**switches) -> np.ndarray:
    rules = games.open("ofc", fantasyland_hands="sampled", **switches).rules
    states = rules.blank(ROWS)
    rules.deal(states, seeds.rows(3, ROWS))
    return states


def test_every_place_in_a_session_comes_up_and_seats_are_in_fantasyland():
    states = deal(hands=10)
    assert set(states["hand"].tolist()) == set(range(10))
    cards = states["fantasy_cards"]
    assert set(np.unique(cards).tolist()) >= {0, 15, 16} and (cards == 0).any(1).all()
    share = (cards > 0).mean()  # a little less, since hands without a normal seat are dealt anew
    assert abs(share - SEATED_SHARE) < 0.03
    hands = (states["fantasy_hand"][cards > 0] < 54).sum(1)
    assert (hands == cards[cards > 0]).all()


def test_rules_without_fantasyland_or_with_14_cards_are_kept():
    assert not deal(fantasyland="off")["fantasy_cards"].any()
    assert set(np.unique(deal(fantasyland="flat")["fantasy_cards"]).tolist()) == {0, 14}


def test_a_game_is_one_hand_and_pays_what_fantasyland_is_worth_in_those_to_come():
    game = games.open("ofc", fantasyland_hands="sampled", hands=3)
    assert game.unit == ("hand", 1)
    rules, greedy, rng = game.rules, game.bot("greedy"), seeds.rows(4, ROWS)
    states = rules.blank(ROWS)
    rules.deal(states, rng)
    while not rules.over(states).all():
        rows = np.flatnonzero(~rules.over(states))
        some, streams = states[rows], rng[rows]
        rules.play(some, greedy.choose(some, streams), streams)
        states[rows], rng[rows] = some, streams
    stats = {name: states["stats"][:, :, place] for place, name in enumerate(STATS)}
    assert (stats["hands"] + stats["fl_hands"] == 1).all()
    for to_come in range(3):
        at = states["hand"] == 3 - to_come  # it is over, so one more than it was
        got = (stats["entries"] + stats["fl_stays"])[at] > 0
        paid = stats["value"][at] / 2
        assert got.any() and not paid[~got].any()
        assert np.isin(paid[got].round(2), PAID[SESSION + to_come].round(2).astype(np.float32)).all()
    assert np.allclose(states["points"].sum(1), 0, atol=1e-3)


def finish(rules: Rules, states: np.ndarray, rng: np.ndarray) -> None:
    """Play every game to its end."""
    while len(rows := np.flatnonzero(~rules.over(states))):
        some, streams = states[rows], rng[rows]
        rules.play(some, legal_of(rules, some).argmax(1), streams)
        states[rows], rng[rows] = some, streams


def test_fantasyland_hands_come_again_with_other_cards_for_the_rest_and_are_set_alike():
    rules, rng = games.open("ofc", fantasyland_hands="sampled", hands=3).rules, seeds.rows(6, 400)
    states = rules.blank(400)
    rules.deal(states, rng)
    first, seated = states.copy(), states["fantasy_cards"] > 0
    boards = []
    for again in range(REPEATS + 1):
        assert (states["hand"] == first["hand"]).all()
        assert (np.sort(states["fantasy_hand"]) == np.sort(first["fantasy_hand"])).all()
        assert again == 0 or (states["drawn"] != first["drawn"]).any(1).mean() > 0.9
        for state in states:
            out = [*state["drawn"], *state["fantasy_hand"].ravel()]
            deck = [card for card in range(54) if int(state["deck"]) >> card & 1]
            assert sorted([*deck, *(int(card) for card in out if card != EMPTY)]) == list(range(54))
        finish(rules, states, rng)
        boards.append(states["board"][seated])
        rules.deal(states, rng)
    assert all((board == boards[0]).all() for board in boards)
    changed = (np.sort(states["fantasy_hand"]) != np.sort(first["fantasy_hand"])).any(2)
    assert changed[seated].all()


def test_fantasyland_hands_that_a_search_draws_anew_are_solved_anew():
    rules, rng = games.open("ofc", fantasyland_hands="sampled", hands=1).rules, seeds.rows(7, 400)
    states, setting = rules.blank(400), np.zeros(17, np.uint8)
    for _ in range(2):  # the second hand repeats the first
        rules.deal(states, rng)
        rules.redeal(states, rng)
        seated = states["fantasy_cards"] > 0
        hands = states["fantasy_hand"][seated]
        finish(rules, states, rng)
        for hand, board in zip(hands, states["board"][seated], strict=True):
            solve(hand, int((hand != EMPTY).sum()), 0.0, False, setting)
            assert (board == setting[:13]).all()


def test_a_seed_deals_the_same_hands_after_a_game_is_over():
    env = gym_env("ofc", fantasyland_hands="sampled")
    first, info = env.reset(seed=3)
    over = False
    while not over:
        _, _, over, _, info = env.step(int(info["action_mask"].argmax()))
    assert (env.reset(seed=3)[0] == first).all()


@pytest.mark.parametrize("how", ["played", "sampled"])
def test_an_exact_last_street_is_what_its_best_placements_make_of_it(how):
    """The same games, once with a last street that the rules place, once with seats that place it so."""
    points = []
    for last_street in ("exact", "played"):
        game = games.open("ofc", fantasyland_hands=how, hands=3, last_street=last_street)
        rules, greedy, rng = game.rules, game.bot("greedy"), seeds.rows(5, 200)
        states = rules.blank(200)
        rules.deal(states, rng)
        while not rules.over(states).all():
            rows = np.flatnonzero(~rules.over(states))
            some, streams = states[rows], rng[rows]
            actions = greedy.choose(some, streams)
            assert rules.finish(some, actions).any() <= (last_street == "played")  # nobody is asked for it
            rules.play(some, actions, streams)
            states[rows], rng[rows] = some, streams
        points.append(states["points"].copy())
    assert points[0].any() and (points[0] == points[1]).all()


@pytest.mark.parametrize("how", ["valued", "sampled"])
def test_an_expected_last_street_pays_what_the_placement_before_it_was_worth(how):
    """Hands go as with an exact one; only what they pay is another."""
    ends, switches = [], {"fantasyland_hands": how, "hands": 3}
    for last_street in ("exact", "expected"):
        game = games.open("ofc", last_street=last_street, **switches)
        rules, greedy, rng = game.rules, game.bot("greedy"), seeds.rows(5, 200)
        states, paid = game.rules.blank(200), np.zeros((200, 3))
        rules.deal(states, rng)
        while len(rows := np.flatnonzero(~rules.over(states))):
            some, streams = states[rows], rng[rows]
            actions = greedy.choose(some, streams)
            worth, is_judged = rules.judge(some, actions[:, None])
            paid[rows, some["turn"]] += np.where(is_judged, worth[:, 0], 0)
            rules.play(some, actions, streams)
            states[rows], rng[rows] = some, streams
        ends.append(states.copy())
    assert np.allclose(ends[1]["points"], paid, atol=1e-3) and paid.any()
    assert (ends[0]["board"] == ends[1]["board"]).all() and (ends[0]["stats"] == ends[1]["stats"]).all()


def test_an_expected_last_street_needs_fantasyland_that_is_paid():
    with pytest.raises(Usage, match="fantasyland_hands=sampled"):
        games.open("ofc", last_street="expected").rules  # noqa: B018


def test_agents_are_evaluated_with_a_last_street_that_is_played():
    assert games.open("ofc", last_street="exact").for_evaluation().options.last_street == "played"


@pytest.mark.parametrize("how", ["played", "sampled"])
@pytest.mark.parametrize("to_come", [0, 1, 9])
def test_the_last_hand_is_seen_in_training_as_in_a_session(to_come, how):
    rules = games.open("ofc", hands=10, fantasyland_hands=how).rules
    play = Play(rules, 8, 1)
    play.states["hand"] = 9 - to_come
    seen = observation_of(rules, play.states)
    assert (seen[:, LAST_HAND] == (to_come == 0)).all()
    rules.cut(play.states)
    assert (observation_of(rules, play.states) == seen).all()
