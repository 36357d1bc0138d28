"""Hand values against the oracle, the known frequencies, and the traps others fell into."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import oracle
from ludus.core.errors import Usage
from ludus.games.ofc.cards import FOUL, NO_LIMIT, best, best_at_most, card_text, parse_cards, value_text


def value(text: str) -> int:
    cards = np.array(parse_cards(text), np.uint8)
    return best(cards, len(cards))


@njit
def count_categories(size):
    counts = np.zeros(10, np.int64)
    hand = np.zeros(5, np.uint8)
    for a in range(52):
        for b in range(a):
            for c in range(b):
                hand[0], hand[1], hand[2] = a, b, c
                if size == 3:
                    counts[best(hand, 3) >> 20] += 1
                    continue
                for d in range(c):
                    for e in range(d):
                        hand[3], hand[4] = d, e
                        counts[best(hand, 5) >> 20] += 1
    return counts


def test_all_five_card_hands_fall_into_the_known_frequencies():
    known = [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 36, 4]
    assert count_categories(5).tolist() == known


def test_all_three_card_hands_fall_into_the_known_frequencies():
    assert count_categories(3).tolist() == [18304, 3744, 0, 52, 0, 0, 0, 0, 0, 0]


def hands(size: int, jokers: int = 0):
    """Distinct cards, often from a narrow deck, where pairs, straights and flushes are common."""
    decks = st.sampled_from(
        [range(52), range(32, 52), range(0, 20), range(0, 52, 4), [*range(0, 8), *range(44, 52)]]
    )
    return decks.flatmap(
        lambda deck: st.lists(
            st.sampled_from(list(deck)), min_size=size - jokers, max_size=size - jokers, unique=True
        )
    ).map(lambda natural: tuple(natural) + oracle.JOKERS[:jokers])


def judged(cards: tuple[int, ...], limit: int = NO_LIMIT) -> int:
    return best_at_most(np.array(cards, np.uint8), len(cards), limit)


@given(st.sampled_from([3, 5]).flatmap(hands), st.sampled_from([3, 5]).flatmap(hands))
def test_order_is_the_oracles(mine, theirs):
    assert (judged(mine) < judged(theirs)) == (oracle.key(mine) < oracle.key(theirs))
    assert (judged(mine) == judged(theirs)) == (oracle.key(mine) == oracle.key(theirs))


@pytest.mark.parametrize("size", [3, 5])
@given(data=st.data(), jokers=st.sampled_from([1, 1, 1, 2]))
def test_jokers_are_the_best_substitution(size, data, jokers):
    cards = data.draw(hands(size, jokers))
    assert judged(cards) == value_of_key(max(oracle.all_keys(cards)), size)


@pytest.mark.parametrize("size", [3, 5])
@given(data=st.data(), jokers=st.sampled_from([1, 1, 1, 2]))
def test_jokers_below_a_limit_are_the_best_substitution_below_it(size, data, jokers):
    cards, other = data.draw(hands(size, jokers)), data.draw(hands(5))
    allowed = [key for key in oracle.all_keys(cards) if key <= oracle.key(other)]
    expected = value_of_key(max(allowed), size) if allowed else FOUL
    assert judged(cards, judged(other)) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@given(data=st.data(), jokers=st.sampled_from([0, 0, 1, 2]))
def test_rows_that_are_not_full_are_the_best_substitution(size, data, jokers):
    """Order flags and greedy's ratings look at these."""
    cards = data.draw(hands(size, min(jokers, size)))
    expected = value_of_key(max(oracle.all_keys(cards)), size)
    assert best(np.array(cards, np.uint8), size) == expected


def test_four_of_a_kind_in_a_row_of_four_and_jokers_alone():
    assert value_text(value("7s 7d 7h 7c")) == value_text(value("7s 7d X1 X2")) == "quads of 7"
    assert value("7s 7d 7h 7c") < value("7s 7d 7h 7c 2s")
    assert value_text(value("X1")) == "high card, A" and value_text(value("X1 X2")) == "pair of A"
    assert best(np.zeros(0, np.uint8), 0) == 0


def value_of_key(key: tuple, size: int) -> int:
    """An oracle's key as our number: category, then the deciding ranks + 1, one hexadecimal digit each."""
    category, order = key
    digits = [category, *(rank + 1 for rank in order)]
    return sum(digit << 20 - 4 * place for place, digit in enumerate(digits))


def test_ace_is_high():
    assert value("As Kd 9h 7c 2s") > value("Ks Qd Jh 9c 8s")
    assert value("As Ad 2h") > value("Ks Kd Qh")
    assert value("As Ad 2h 3c 4s") > value("Ks Kd Qh Jc Ts")


def test_ace_is_low_only_in_the_five_high_straight():
    assert value("As 2d 3h 4c 5s") < value("2d 3h 4c 5s 6d")
    assert value_text(value("As 2d 3h 4c 5s")) == "straight to 5"
    assert value_text(value("Qs Kd Ah 2c 3s")) == "high card, A K Q 3 2"


def test_trips_against_trips_three_cards_against_five():
    assert value("9s 9d 9h") > value("8s 8d 8h Ac Ks")
    assert value("8s 8d 8h") < value("9s 9d 9h 2c 3s")


def test_a_shorter_hand_with_the_same_ranks_is_lower():
    assert value("Qs Qd 9h") < value("Qh Qc 9s 3c 2d")
    assert value("Qs Qd Ah") > value("Qh Qc 9s 3c 2d")


def test_five_of_a_kind_does_not_exist():
    assert value_text(value("As Ad Ah Ac X1")) == "quads of A"
    assert value("As Ad Ah Ac X1") == value("As Ad Ah Ac Ks")


def test_cards_have_text():
    assert [parse_cards(card_text(card))[0] for card in range(54)] == list(range(54))
    assert parse_cards("As Td X1") == parse_cards("A♠ T♦ ★1") == [51, 33, 52]
    for wrong in ("1s", "Ax", "X3", "as"):
        with pytest.raises(Usage, match=wrong):
            parse_cards(wrong)


def test_every_value_has_words():
    seen = {value_text(value(text)).split(",")[0].split(" of")[0].split(" to")[0] for text in (
        "As Kd 9h 7c 2s", "As Ad 9h", "As Ad 9h 9c 2s", "As Ad Ah", "5s 6d 7h 8c 9s", "2s 4s 6s 8s Ts",
        "As Ad Ah 2c 2d", "As Ad Ah Ac 2d", "5s 6s 7s 8s 9s", "Ts Js Qs Ks As",
    )}  # fmt: skip
    assert len(seen) == 10


def test_the_order_of_cards_does_not_matter():
    for order in itertools.permutations(parse_cards("As X1 Kd Qh Js")):
        assert judged(order) == value("As Kd Qh Js X1")
