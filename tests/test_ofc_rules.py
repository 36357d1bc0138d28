"""A session of OFC: actions, dealing, Fantasyland, what seats see, and text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus import games, match
from ludus.core import seeds
from ludus.core.conformance import Play, legal_of, observation_of, score_of
from ludus.core.errors import Usage
from ludus.core.rules import RandomBot
from ludus.games.ofc.cards import EMPTY, parse_cards
from ludus.games.ofc.hand import STATS
from ludus.games.ofc.scoring import FANTASY_VALUE

NEVER = {"fantasyland": "off"}


def cards_of(state: np.void) -> list[int]:
    """Every card that has left the deck."""
    cards = [*state["drawn"], *state["discards"].ravel(), *state["fantasy_hand"].ravel()]
    for seat in range(state["seats"]):
        if state["fantasy_cards"][seat] == 0:
            cards += [*state["board"][seat]]
    return [int(card) for card in cards if card != EMPTY]


def stat(states: np.ndarray, name: str) -> np.ndarray:
    """One statistic of every seat [N, 3]."""
    return states["stats"][:, :, STATS.index(name)]


def last_decision(boards: list[str], drawn: str, **switches) -> tuple:
    """A one-hand session before the last placement: the last seat (0) has three cards to place."""
    rules = games.open("ofc", seats=len(boards), **switches).rules
    order = [*boards]
    seat_text = [
        f"board {board}; out; fantasy 0; points 0; stats {' '.join(['0'] * len(STATS))}" for board in order
    ]
    line = "; ".join([f"hand 0; button 0; turn 0; street 4; drawn {drawn}", *seat_text])
    return rules, rules.parse(line)


def place(rules, states: np.ndarray, action: str) -> np.ndarray:
    rules.play(states, np.array([rules.parse_action(states[0], action)], np.int32), seeds.rows(1, 1))
    return states


def test_there_are_232_ways_to_place_the_first_five_cards():
    play = Play(games.open("ofc").rules)
    legal = legal_of(play.rules, play.states)
    assert (legal[:, :243].sum(1) == 232).all() and not legal[:, 243:].any()


def test_an_action_id_has_one_meaning():
    rules = games.open("ofc").rules
    for number, (states, _) in enumerate(Play(rules, rows=2).decisions()):
        legal = np.flatnonzero(legal_of(rules, states[:1])[0])
        first = states[0]["street"] == 0
        assert (legal < 243).all() if first else (legal >= 243).all()
        texts = {rules.action_text(states[0], int(action)) for action in legal}
        assert len(texts) == len(legal)
        if number > 40:
            break


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    seats=st.sampled_from([2, 3]),
    jokers=st.sampled_from([0, 2]),
    fantasyland=st.sampled_from(["progressive", "flat", "off"]),
    hands=st.sampled_from([1, 4]),
)
def test_random_play_keeps_the_deck_and_the_rows(seed, seats, jokers, fantasyland, hands):
    rules = games.open("ofc", seats=seats, jokers=jokers, fantasyland=fantasyland, hands=hands).rules
    play = Play(rules, seed=seed, rows=4)
    for states, _ in play.decisions():
        for state in states:
            cards = cards_of(state)
            assert len(cards) == len(set(cards)) and max(cards) < 52 + jokers
            assert len(cards) + int(state["deck"]).bit_count() == 52 + jokers
            assert (state["count"] <= [3, 5, 5]).all()
            drawn = [card for card in state["drawn"] if card != EMPTY]
            assert drawn == sorted(drawn) and len(drawn) == (5 if state["street"] == 0 else 3)
    assert (play.states["hand"] == hands).all()
    assert (score_of(rules, play.states).sum(1) == 0).all()


def test_a_hand_has_five_decisions_for_each_seat():
    play = Play(games.open("ofc", hands=1, **NEVER).rules)
    assert sum(len(actions) for _, actions in play.decisions()) == 15 * len(play.states)


def test_left_of_the_button_acts_first_and_the_button_moves():
    rules = games.open("ofc", hands=6, **NEVER).rules
    buttons = []
    for states, _ in Play(rules, rows=1).decisions():
        state = states[0]
        if state["street"] == 0 and not state["count"].any():
            assert state["turn"] == (state["button"] + 1) % 3
            buttons.append(int(state["button"]))
    assert len(buttons) == 6
    assert all(after == (before + 1) % 3 for before, after in zip(buttons, buttons[1:], strict=False))


def test_cards_come_equally_often():
    play = Play(games.open("ofc").rules, rows=4000)
    drawn = np.bincount(play.states["drawn"].ravel(), minlength=54)[:54]
    expected = 4000 * 5 / 54
    assert (np.abs(drawn - expected) < 5 * np.sqrt(expected)).all()


def test_the_state_does_not_know_what_comes_next():
    rules = games.open("ofc").rules
    for states, actions in Play(rules, rows=8).decisions(most=3):
        one, other = states.copy(), states.copy()
        rules.play(one, actions, seeds.rows(1, len(states)))
        rules.play(other, actions, seeds.rows(2, len(states)))
        assert (one["drawn"] != other["drawn"]).any(1).all()


BOARD = "Qs Qd 2h / 7c 7d 9h Jc / 3s 4d 5h 6c"  # a straight or nothing at the bottom
THEIRS = "2c 3d 4h / 8c 8d 9c Jd Ks / As Ad 5d 6d Th"


def test_showdown_pays_the_points_between_boards():
    rules, states = last_decision([BOARD.replace("7c 7d", "Kc Kd"), THEIRS], "7h 8h 9s", hands=1, **NEVER)
    after = place(rules, states, "7h:b 8h:m 9s:-")
    # top QQ over 4, middle KK over 88, bottom straight over aces: 3 + 3, royalties 7 + 2
    assert rules.over(after)[0]
    assert score_of(rules, after)[0].tolist() == [15, -15]
    assert stat(after, "royalties")[0].tolist() == [9, 0, 0]
    assert stat(after, "wins")[0].tolist() == [1, 0, 0] and stat(after, "big")[0].tolist() == [1, 0, 0]


def test_a_foul_pays_six_and_the_others_royalties():
    rules, states = last_decision([BOARD, THEIRS], "7h 8h 9s", hands=1, **NEVER)
    after = place(rules, states, "7h:b 8h:m 9s:-")  # queens above sevens
    assert score_of(rules, after)[0].tolist() == [-6, 6]
    assert stat(after, "fouls")[0].tolist() == [1, 0, 0]


def entered(**switches) -> np.ndarray:
    rules, states = last_decision([BOARD.replace("7c 7d", "Kc Kd"), THEIRS], "7h 8h 9s", hands=2, **switches)
    return place(rules, states, "7h:b 8h:m 9s:-")


def test_queens_on_top_deal_fourteen_cards_and_no_decisions():
    after = entered()
    assert after["fantasy_cards"][0].tolist() == [14, 0, 0]
    assert (after["fantasy_hand"][0][0] != EMPTY).sum() == 14
    assert after["turn"][0] == 1 and stat(after, "entries")[0].tolist() == [1, 0, 0]


def test_fantasyland_off_or_valued_deals_none():
    assert entered(fantasyland="off")["fantasy_cards"][0].tolist() == [0, 0, 0]
    valued = entered(fantasyland_hands="valued")
    assert valued["fantasy_cards"][0].tolist() == [0, 0, 0]
    assert valued["points"][0][:2].tolist() == pytest.approx([15 + FANTASY_VALUE[0], -15 - FANTASY_VALUE[0]])
    assert stat(valued, "points")[0].tolist() == [15, -15, 0]  # what was played, without the value


def test_fantasyland_carries_over_is_played_and_may_stay():
    game = games.open("ofc", hands=60)
    final = match.played(match.game_steps(game.rules, [game.bot("greedy")] * 3, 64, seed=3))
    assert (stat(final, "hands") + stat(final, "fl_hands") == 60).all()
    played, stayed, came = (stat(final, name).sum() for name in ("fl_hands", "fl_stays", "entries"))
    assert 0 < stayed < played
    # every Fantasyland hand was earned on the hand before; only the session's last hand goes unplayed
    assert came + stayed - 64 * 3 <= played <= came + stayed
    assert stat(final, "fl_royalties").sum() / played > 5


def with_fantasy_seat() -> tuple:
    rules = games.open("ofc", hands=2).rules
    cards = "As Ad 2c 2d 3h 4s 5c 6d 7h 8s 9c Td Jh Qs"
    zeros = " ".join(["0"] * len(STATS))
    line = f"""hand 1; button 2; turn 1; street 1; drawn Kc Kd Ks;
        board / / ; out; fantasy 14 {cards}; points 0; stats {zeros};
        board 3c / 4c 4d / 5d 5h; out; fantasy 0; points 0; stats {zeros};
        board 3d / 6c 6h / 7c 7d; out; fantasy 0; points 0; stats {zeros}"""
    return rules, rules.parse(" ".join(line.split()))


def test_hidden_cards_stay_hidden():
    rules, states = with_fantasy_seat()
    before = observation_of(rules, states)
    seen = set(parse_cards("Kc Kd Ks 3c 4c 4d 5d 5h 3d 6c 6h 7c 7d"))
    for seed in range(20):
        redealt = states.copy()
        rules.redeal(redealt, seeds.rows(seed, 1))
        hand = set(redealt[0]["fantasy_hand"][0][:14].tolist())
        assert hand != set(states[0]["fantasy_hand"][0][:14].tolist()) and not hand & seen
        assert (observation_of(rules, redealt) == before).all()


def test_a_redeal_leaves_what_the_seat_knows():
    rules = games.open("ofc").rules
    for number, (states, _) in enumerate(Play(rules, rows=8).decisions(most=60)):
        redealt = states.copy()
        rules.redeal(redealt, seeds.rows(number, len(states)))
        for before, after in zip(states, redealt, strict=True):
            assert (before["board"] == after["board"]).all() and (before["drawn"] == after["drawn"]).all()
            assert (before["discards"][before["turn"]] == after["discards"][before["turn"]]).all()
            cards = cards_of(after)
            assert len(cards) == len(set(cards)) == len(cards_of(before))


def test_text_of_a_placement_in_both_forms():
    rules, states = last_decision([BOARD, THEIRS], "7h 8h 9s", **NEVER)
    assert rules.parse_action(states[0], "9s:- 7h:b 8h:m") == rules.parse_action(states[0], "bm-")


@pytest.mark.parametrize(
    "wrong", ["", "bm", "bmt", "b--", "7h:b 8h:m", "7h:b 8h:m As:-", "7h:b 7h:m 9s:-", "xyz"]
)
def test_a_placement_that_means_nothing_is_explained(wrong):
    rules, states = last_decision([BOARD, THEIRS], "7h 8h 9s", **NEVER)
    with pytest.raises(Usage):
        rules.parse_action(states[0], wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("bm", "'bm' is not a placement: it has 2 letters for 3 cards"),
        ("bxm", "'x' is no row"),
        ("bmt", "it discards 0 cards, not 1"),
        ("tt-", "'tt-' is not possible: top is full"),
        ("bb-", "'bb-' is not possible: bottom has room for 1, not 2"),
    ],
)
def test_a_placement_is_refused_with_the_reason(wrong, said):
    rules, states = last_decision([BOARD, THEIRS], "7h 8h 9s", **NEVER)
    with pytest.raises(Usage, match=said):
        rules.parse_action(states[0], wrong)


def test_jokers_and_suits_are_read_as_they_are_shown():
    rules, states = last_decision([BOARD, THEIRS], "7h 8h X1", **NEVER)
    assert rules.parse_action(states[0], "★1:- 7♥:b, 8h:m") == rules.parse_action(states[0], "bm-")


@pytest.mark.parametrize("broken", ["As As Kd", "X1 2s 3s", "7h 8h 9x", "7h 8h 9s 2c 3c 4c"])
def test_a_state_that_cannot_be_is_refused(broken):
    with pytest.raises(Usage):
        last_decision([BOARD, THEIRS], broken, jokers=0)


@pytest.mark.parametrize(
    "switches",
    [
        {"seats": 4},
        {"jokers": 1},
        {"fantasyland": "x"},
        {"hands": 0},
        {"colour": 1},
        {"fantasyland_hands": "x"},
    ],
)
def test_wrong_switches_are_explained(switches):
    with pytest.raises(Usage):
        games.open("ofc", **switches)


def test_rollout_beats_greedy_beats_random():
    game = games.open("ofc", hands=1, fantasyland_hands="valued")
    rules, greedy, rollout = game.rules, game.bot("greedy"), game.bot("rollout")
    points = match.played(match.game_steps(rules, [greedy, RandomBot(rules), RandomBot(rules)], 400, 1))[
        "points"
    ]
    assert points[:, 0].mean() > 10
    points = match.played(match.game_steps(rules, [rollout, greedy, greedy], 150, 2))["points"]
    assert points[:, 0].mean() > 2


def test_the_best_is_measured_by_what_fantasyland_really_pays():
    """Boards earn from each opponent; Fantasyland is worth what was paid for its cards, or played."""
    measure, nothing = games.open("ofc").measure, dict.fromkeys(STATS, 0.0) | {"hands": 1.0, "opponents": 1.0}
    valued = entered(fantasyland_hands="valued")
    earned = {name: float(stat(valued, name)[0][0]) for name in STATS}
    assert measure(nothing | earned) == pytest.approx(earned["royalties"] + FANTASY_VALUE[0])
    more = {"value": FANTASY_VALUE[3]}  # seventeen cards, not fourteen
    assert measure(nothing | earned | more) == pytest.approx(earned["royalties"] + FANTASY_VALUE[3])
    against_two = nothing | {"opponents": 2.0}
    assert measure(against_two | {"fouls": 1.0}) == -12
    played = against_two | {"royalties": 7.0, "entries": 1.0, "fl_hands": 1.0, "fl_royalties": 15.0}
    assert measure(played) == 2 * (7 + 15) / 2
