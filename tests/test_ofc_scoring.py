"""Fouls by brute force; royalties, points and Fantasyland by cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from ludus.games.ofc.cards import parse_cards
from ludus.games.ofc.scoring import (
    FANTASY_FLAT,
    FANTASY_OFF,
    FANTASY_PROGRESSIVE,
    board_values,
    entry_cards,
    pair_points,
    royalties,
    stays,
)  # fmt: skip


class Board:
    def __init__(self, text: str) -> None:
        self.values = np.zeros(3, np.int64)
        self.stands = board_values(np.array(parse_cards(text.replace("/", " ")), np.uint8), self.values)

    def against(self, other: "Board") -> int:
        return pair_points(self.values, self.stands, other.values, other.stands)


PLAIN = "2c 3d 4h / 7c 8d 9h Jc Ks / As Ad 5h 6c Th"  # no royalties
STRONG = "Kc Kd 2h / Ac Ah 9c 9d 3s / 5s 6s 7s 8s Ts"  # 8 top, 0 middle, 4 bottom
FOULED = "Qc Qd 2s / 7h 8h 9s Js 3c / 4c 4d 4s 5c 5d"


@given(st.lists(st.sampled_from(range(54)), min_size=13, max_size=13, unique=True), st.booleans())
def test_fouls_are_what_brute_force_says(cards, in_order):
    if in_order:  # sorted boards stand about half of the time, and put pairs where they matter
        cards = sorted(cards)
    board, values = np.array(cards, np.uint8), np.zeros(3, np.int64)
    top, middle, bottom = tuple(cards[:3]), tuple(cards[3:8]), tuple(cards[8:])
    assert board_values(board, values) == oracle.stands(top, middle, bottom)


def test_top_trips_foul_against_lower_middle_trips():
    assert not Board("9s 9d 9h / 8s 8d 8h 2c 3c / As Ad Ah Ac 2s").stands
    assert Board("8s 8d 8h / 9s 9d 9h 2c 3c / As Ad Ah Ac 2s").stands


def test_equal_rows_do_not_foul():
    assert Board("2s 3d 4h / Ac Kd Qh Js 9c / Ad Ks Qc Jh 9d").stands


@pytest.mark.parametrize(
    "board",
    [
        "Qs Qd X1 / Ks Kd 2h 3c 4s / As Ad 5h 6c 7s",  # queens, not trips
        "2s 3d X1 / 5s 6d 8h 9c Ks / As Ad 5h 6c 7s",  # must be less than a pair
        "2s 3d 4h / Ks Kd Kh 3c X1 / As 2d 3h 4c 5s",  # trips of kings would be quads
        "2s X1 X2 / 4s 4d 6h 7c 8s / As Ad 5h 6c 7s",
    ],
)
def test_joker_never_forces_a_foul(board):
    assert Board(board).stands


def test_a_joker_that_cannot_help_fouls():
    assert not Board("As Ad X1 / Ks Kd 2h 3c 4s / 2s 2d 5h 6c 7s").stands


@pytest.mark.parametrize(
    ("board", "points"),
    [
        (PLAIN, 0),
        ("5c 5d 2h / 7c 7d 9h Jc Ks / As Ad 3h 6c Th", 0),
        ("6c 6d 2h / 7c 7d 9h Jc Ks / As Ad 3h 5c Th", 1),
        ("Ac Ad 2h / 7c 7d 9h 9c Ks / 3s 4d 5h 6c 7h", 9 + 0 + 2),
        ("2c 2d 2h / 7c 7d 7h Jc Ks / 3s 4d 5h 6c 7s", 10 + 2 + 2),
        ("Ac Ad Ah / 3s 4d 5h 6c 7s / 2s 4s 8s Ts Ks", 22 + 4 + 4),
        ("2c 3c 4d / 3s 5s 8s Ts Ks / 7c 7d 7h Jc Jd", 0 + 8 + 6),
        ("2c 3c 4d / 9s 9d 9h Tc Td / 7c 7d 7h 7s Jd", 0 + 12 + 10),
        ("2c 3c 4d / 9s 9d 9h 9c Td / 3s 4s 5s 6s 7s", 0 + 20 + 15),
        ("2c 3c 4d / 4s 5s 6s 7s 8s / Th Jh Qh Kh Ah", 0 + 30 + 25),
        ("2c 3c 4d / Ts Js Qs Ks As / Th Jh Qh Kh Ah", 0 + 50 + 25),
    ],
)
def test_royalties(board, points):
    assert Board(board).stands
    assert royalties(Board(board).values) == points


@pytest.mark.parametrize(
    ("mine", "theirs", "points"),
    [
        (PLAIN, PLAIN, 0),
        (STRONG, PLAIN, 3 + 3 + 12),  # all rows, scoop, royalties
        (STRONG, FOULED, 6 + 12),
        (PLAIN, FOULED, 6),
        (FOULED, FOULED, 0),
        # top and bottom won, middle lost: +1, and 7 - 0 royalties
        ("Qc Qd 2h / Ac Ah 9c 8d 3s / Ks Kd Kh 8s Ts", "2c 3d 4h / As Ad Th Tc 5s / Js Jd Jh 6c 7d", 1 + 7),
    ],
)
def test_points_between_two(mine, theirs, points):
    assert Board(mine).against(Board(theirs)) == points
    assert Board(theirs).against(Board(mine)) == -points


@pytest.mark.parametrize(
    ("top", "progressive"),
    [("Jc Jd 2h", 0), ("Qc Qd 2h", 14), ("Kc Kd 2h", 15), ("Ac Ad 2h", 16), ("2c 2d 2h", 17)],
)
def test_fantasyland_is_entered_by_the_top_row(top, progressive):
    values = Board(f"{top} / 3c 4d 5h 6c 7s / 3s 5s 8s 9s Js").values
    assert entry_cards(values, FANTASY_PROGRESSIVE) == progressive
    assert entry_cards(values, FANTASY_FLAT) == (14 if progressive else 0)
    assert entry_cards(values, FANTASY_OFF) == 0


def test_staying_needs_trips_on_top_or_quads_at_the_bottom():
    full_middle = Board("Ac Ad 2h / 9s 9d 9h Tc Td / Ks Kd Kh 3c 3d")
    assert not stays(full_middle.values, False)  # a pair of aces does not keep you there
    assert stays(full_middle.values, True)
    assert stays(Board("2c 2d 2h / 3c 4d 5h 6c 7s / 3s 5s 8s 9s Js").values, False)
    assert stays(Board("Jc 3d 2h / 3c 4d 5h 6c 7s / 9s 9d 9h 9c Js").values, False)
    assert stays(Board("Jc 3d 2h / 3c 4d 5h 6c 7d / 5s 6s 7s 8s 9s").values, False)
    assert not stays(Board("Jc 3d 2h / 3c 4d 5h 6c 7s / 9s 9d 9h Tc Td").values, False)


def test_help_says_that_equal_rows_stand(ludus):
    code, out, err = ludus("play", "ofc", "--against", "random", typed="?\nq\n")
    assert code == 0 and "equal rows stand" in " ".join(out.split()), err
