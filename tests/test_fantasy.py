"""The Fantasyland solver against an exhaustive search, and the traps that such solvers fall into."""

from itertools import combinations

import numpy as np
import pytest

from ludus import games
from ludus.core.jit import njit
from ludus.games.ofc.cards import (
    CARDS,
    EMPTY,
    FOUL,
    FULL_HOUSE,
    JOKER,
    PAIR,
    QUADS,
    STRAIGHT,
    TRIPS,
    TWO_PAIR,
    best,
    best_at_most,
    card_text,
    category,
    parse_cards,
)
from ludus.games.ofc.fantasy import solve
from ludus.games.ofc.hand import set_fantasy
from ludus.games.ofc.scoring import (
    BOARD,
    BOTTOM,
    FANTASY_VALUE,
    MIDDLE,
    TOP,
    board_values,
    royalties,
    stays,
)

DECKS = {
    "all": list(range(JOKER)),
    "nine and up": [card for card in range(JOKER) if card // 4 >= 7],
    "one suit and a few": [card for card in range(JOKER) if card % 4 == 0] + [1, 5, 46, 50],
    "two suits": [card for card in range(JOKER) if card % 4 < 2],
    "five ranks": [card for card in range(JOKER) if card // 4 in (0, 3, 4, 9, 12)],
    "five and below, and aces": [card for card in range(JOKER) if card // 4 in (0, 1, 2, 3, 12)],
}


# --- the search to compare with ----------------------------------------------------------------------------


def exhaustive(cards, stay_value, stay_middle, floor):
    """What the best of all settings is worth, or `floor` if none is worth more."""
    fives, threes = choices(len(cards), 5), choices(len(cards), 3)
    return try_all(cards, fives, threes, stay_value, stay_middle, floor)


def choices(n, size):
    """Every choice of `size` of n cards, as places and as bits. [choices, size], [choices]"""
    places = np.array(list(combinations(range(n), size)))
    return places, (1 << places).sum(axis=1)


@njit
def try_all(cards, fives, threes, stay_value, stay_middle, floor):
    """Every bottom, middle and top, as `board_values` scores them.

    To save time it first asks what the board would be worth with every row at its best, foul or not, and
    goes on if that is not enough.
    """
    (five, five_bits), (three, three_bits) = fives, threes
    best_five = np.array([best(cards[five[i]], 5) for i in range(len(five))])
    best_three = np.array([best(cards[three[i]], 3) for i in range(len(three))])
    highest = best_three.max()
    values = np.empty(3, np.int64)
    most = floor
    for b in range(len(five)):
        values[BOTTOM] = best_five[b]
        for m in range(len(five)):
            values[TOP], values[MIDDLE] = highest, best_five[m]
            if five_bits[b] & five_bits[m] or worth(values, stay_value, stay_middle) <= most:
                continue
            values[MIDDLE] = best_at_most(cards[five[m]], 5, values[BOTTOM])
            if values[MIDDLE] == FOUL:
                continue
            for t in range(len(three)):
                values[TOP] = best_three[t]
                taken = three_bits[t] & (five_bits[b] | five_bits[m])
                if taken or worth(values, stay_value, stay_middle) <= most:
                    continue
                values[TOP] = best_at_most(cards[three[t]], 3, values[MIDDLE])
                if values[TOP] != FOUL:
                    most = max(most, worth(values, stay_value, stay_middle))
    return most


@njit
def worth(values, stay_value, stay_middle):
    return royalties(values) + (stay_value if stays(values, stay_middle) else 0.0)


# --- dealing and setting -----------------------------------------------------------------------------------


def deal(dice, deck, n, jokers):
    """n cards, that many of them jokers, in any order. uint8 [n]"""
    cards = [*dice.permutation(deck)[: n - jokers], *dice.permutation([JOKER, JOKER + 1])[:jokers]]
    return dice.permutation(np.array(cards, np.uint8))


def set_board(cards, stay_value=0.0, stay_middle=False):
    """(worth, board as 13 cards, values of its rows) after the checks that every setting has to pass."""
    cards = np.array(parse_cards(cards) if isinstance(cards, str) else cards, np.uint8)
    out, values = np.zeros(17, np.uint8), np.zeros(3, np.int64)
    value = solve(cards, len(cards), stay_value, stay_middle, out)
    hand = " ".join(card_text(card) for card in cards)
    assert sorted(out[: len(cards)]) == sorted(cards), hand
    assert (out[len(cards) :] == EMPTY).all(), hand
    assert board_values(out[:BOARD], values), hand
    assert value == worth(values, stay_value, stay_middle), hand
    return value, out[:BOARD], values


def texts(cards):
    return {card_text(card) for card in cards}


# --- optimal -----------------------------------------------------------------------------------------------


def assert_optimal(cards, stay_value, stay_middle):
    value, _, _ = set_board(cards, stay_value, stay_middle)
    # The floor is a bit lower, so that the search has to find the same board's worth by itself.
    most = exhaustive(cards, stay_value, stay_middle, value - 0.125)
    assert value == most, " ".join(card_text(card) for card in cards)


@pytest.mark.parametrize("jokers", [0, 1, 2])
@pytest.mark.parametrize("deck", DECKS)
def test_13_cards_are_set_as_well_as_can_be(deck, jokers):
    dice = np.random.default_rng([13, jokers])
    for trial in range(6 - 2 * jokers):
        assert_optimal(deal(dice, DECKS[deck], 13, jokers), float(dice.choice([0.0, 6.6, 75.8])), trial == 1)


@pytest.mark.parametrize("jokers", [0, 1, 2])
@pytest.mark.parametrize("deck", DECKS)
def test_14_cards_are_set_as_well_as_can_be(deck, jokers):
    dice = np.random.default_rng([14, jokers])
    for _ in range(4 if deck == "all" else 2):
        assert_optimal(deal(dice, DECKS[deck], 14, jokers), FANTASY_VALUE[0], False)


@pytest.mark.parametrize("jokers", [0, 1, 2])
def test_15_cards_are_set_as_well_as_can_be(jokers):
    dice = np.random.default_rng([15, jokers])
    assert_optimal(deal(dice, DECKS["all"], 15, jokers), FANTASY_VALUE[1], False)
    assert_optimal(deal(dice, DECKS["all"], 15, jokers), 0.0, True)


@pytest.mark.parametrize("n", [14, 15, 16, 17])
def test_one_more_card_never_makes_it_worse(n):
    dice = np.random.default_rng(n)
    for trial in range(600):
        deck = DECKS[list(DECKS)[trial % len(DECKS)]]
        cards = deal(dice, deck, n, trial % 3)
        stay_value = float(dice.choice([0.0, 3.0, FANTASY_VALUE[n - 14]]))
        fewer, _, _ = set_board(cards[:-1], stay_value, trial % 2 == 1)
        more, _, _ = set_board(cards, stay_value, trial % 2 == 1)
        assert more >= fewer


@pytest.mark.parametrize("n", [14, 15, 16, 17])
def test_a_joker_is_at_least_as_good_as_any_card(n):
    dice = np.random.default_rng(100 + n)
    for _ in range(200):
        cards = deal(dice, DECKS["all"], n, 0)
        natural, _, _ = set_board(cards, FANTASY_VALUE[n - 14])
        for jokers in (1, 2):
            cards[-jokers] = CARDS - jokers
            wild, _, _ = set_board(cards, FANTASY_VALUE[n - 14])
            assert wild >= natural
            natural = wild


def test_the_order_of_the_cards_does_not_matter():
    dice = np.random.default_rng(3)
    for trial in range(100):
        cards = deal(dice, DECKS["all"], 16, trial % 3)
        assert set_board(cards, 38.5)[0] == set_board(dice.permutation(cards), 38.5)[0]


# --- traps -------------------------------------------------------------------------------------------------


def test_a_hand_of_nothing_stands():
    value, _, values = set_board("2c 4d 6h 8s Tc Qd Ah 3s 5c 7h 9d Js Kh")
    assert value >= 0 and values[BOTTOM] >= values[MIDDLE] >= values[TOP]


def test_a_joker_does_not_lift_the_top_above_the_middle():
    # Kings with the joker would be trips over a middle of two pair; the joker goes where it may work.
    value, _, values = set_board("Ks Kd X1 9s 9d 4c 4h 2s Jc Jd Jh 7c 7d")
    assert values[TOP] <= values[MIDDLE]
    assert value == 8 + 12 + 6 == royalties(values)


def test_the_ace_is_low_in_a_straight_and_high_elsewhere():
    _, board, values = set_board("As 2d 3h 4c 5s Kc Kd 9h 9c 7d Qs Jd 8h")
    assert texts(board[8:]) == {"As", "2d", "3h", "4c", "5s"}
    assert category(values[BOTTOM]) == STRAIGHT
    value, board, _ = set_board("As Ad 9h 9c 7d 7s Kc Kd 4h 4s 2c 3d Jh")
    assert {"As", "Ad"} <= texts(board[:3]) and value == 9


def test_no_straight_goes_round_the_ace():
    # K A 2 3 4 would be a straight and worth 2 on the bottom.
    _, _, values = set_board("Ks Ad 2h 3c 4s Kd Ah 2c 3s 8d 8h 9c Jd")
    assert max(category(values[MIDDLE]), category(values[BOTTOM])) < STRAIGHT


def test_trips_on_top_need_higher_trips_below():
    # Aces on top (22) would foul against eights; eights on top (16) stand on aces.
    value, board, values = set_board("As Ad Ah 8c 8d 8h 2s 3s 5s 9s Js 4d 6c")
    assert texts(board[:3]) == {"8c", "8d", "8h"}
    assert category(values[MIDDLE]) == TRIPS
    assert value == 16 + 2 + 4


@pytest.mark.parametrize(
    "cards",
    [
        "2d 2s 3d 4d 4s 6d 7c 8d 9h Ts Qc Kc Ac Ah As",
        "3c 4d 4h 5s 6h 7c 8h 9h Jc Jd Kd As X1",
        "4c 4h 6s 7h 8d 9c 9h Td Th Ts Qs Ad X1",
    ],
)
def test_a_pair_of_aces_stands_on_two_low_pairs(cards):
    # A search that gives up on middles of two pair because trips would foul there finds 10.
    assert set_board(cards, 0.0)[0] == 11
    assert exhaustive(np.array(parse_cards(cards), np.uint8), 0.0, False, 10.0) == 11


def test_a_pair_on_top_does_not_stay():
    value, _, values = set_board("As Ad Kc Kd 9h 9c 7d 7s 4h 4s 2c 3d Jh", 50.0)
    assert category(values[TOP]) == PAIR
    assert value == royalties(values) < 50


def test_trips_on_top_or_quads_on_the_bottom_stay():
    value, _, values = set_board("6s 6d 6h 9s 9d 9h 2s Tc Jc Qc Kc 3c 4d", 50.0)
    assert category(values[TOP]) == TRIPS and value == royalties(values) + 50
    value, _, values = set_board("6s 6d 6h 6c 2s Td Tc Jc Qh 3c 4d Kd 9h", 50.0)
    assert category(values[BOTTOM]) == QUADS and value == royalties(values) + 50


def test_a_full_house_in_the_middle_stays_only_by_that_rule():
    cards = "Ks Kd Kh 9s 9d 7c 7d 7h 5s 5d Ac Jd 2h"
    without, _, _ = set_board(cards, 50.0, False)
    with_it, _, values = set_board(cards, 50.0, True)
    assert without < 50 <= with_it == royalties(values) + 50


def test_staying_is_worth_giving_up_royalties_up_to_its_value():
    # Jacks, a flush and a full house earn 20; quads on the bottom earn 10 and stay.
    cards = "Ac Jd Jc Qh Th 8h 6h 2h 5c 5s 2c 2d 2s 7d"
    value, _, values = set_board(cards, 9.5)
    assert value == 20 and category(values[BOTTOM]) == FULL_HOUSE
    value, _, values = set_board(cards, 10.5)
    assert value == 20.5 and category(values[BOTTOM]) == QUADS


@pytest.mark.parametrize(
    ("hand", "switches", "stays_"),
    [(0, {}, True), (1, {}, False), (1, {"fantasyland_hands": "valued"}, True)],
)
def test_the_last_hand_of_a_session_does_not_pay_for_staying(hand, switches, stays_):
    """As above: a full house earns more, quads stay. Valued Fantasyland is paid at once, even then."""
    rules = games.open("ofc", seats=2, hands=2, **switches).rules
    states = rules.blank(1)
    states["hand"], states["fantasy_cards"] = hand, [15, 0, 0]
    cards = "Ac Jd Jc Qh Th 8h 6h 2h 5c 5s 2c 2d 2s 7d 3s"
    states["fantasy_hand"][0, 0, :15] = sorted(parse_cards(cards))
    set_fantasy(states[0])
    values = np.zeros(3, np.int64)
    assert board_values(states[0]["board"][0], values)
    assert stays(values, False) == stays_


def test_ties_go_to_stronger_rows():
    # No royalties either way, but four pairs make two rows of two pair.
    value, _, values = set_board("2c 2d 3h 3s 4c 4d 5h 5s 7c 9d Jh Ks Qd")
    assert value == 0
    assert category(values[BOTTOM]) == category(values[MIDDLE]) == TWO_PAIR
