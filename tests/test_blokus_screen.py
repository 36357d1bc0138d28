"""Blokus in the terminal: what is shown, what is refused and why, and how it ends."""

import numpy as np
import pytest
from rich.console import Console

from ludus import cli, games
from ludus.core import seeds
from ludus.core.conformance import Play
from ludus.core.errors import Usage
from ludus.games.blokus.pieces import PIECES
from ludus.games.blokus.screen import BlokusScreen, halves


@pytest.fixture
def play(monkeypatch, capsys):
    """What `ludus play blokus` prints when these lines are typed and then q."""

    def play(*typed: str, switches: tuple[str, ...] = ()) -> str:
        lines = iter([*typed, "q"])
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr("builtins.input", lambda: next(lines))
        cli.main(["play", "blokus", "--seed", "1", *switches])
        return capsys.readouterr().out

    return play


def shown(renderable, width: int = 120) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_moves_are_typed_as_squares_and_answered(play):
    out = play("e9,d10,e10,f10,e11")
    assert "10 · · · X X X · ·" in out and "5 points" in out
    assert "seat 1: " in out and "j5" in out.split("seat 1: ")[1].splitlines()[0]
    assert "20 pieces left" in out and "You left the game." in out


def test_a_piece_and_a_square_are_a_move(play):
    out = play("X", "X e10", "X e9 e11", "L4 j5 k5", "T4 j6 99", "X e10")
    assert "where? name a square that X covers" in out
    assert "X e10 can be placed in 5 ways, say which as in X e10 1:\n1: e10,d11,e11,f11,e12\n2: " in out
    assert "10 · · · X X X · ·" in out and "seat 1: " in out  # e9 and e11 leave one way
    assert "there is no way to place L4 over j5 and k5 now" in out or "L4 j5 k5 can be placed" in out
    assert "your piece X is already on the board" in out


def test_names_of_pieces_that_are_squares_too_are_squares_where_they_can_be():
    rules = games.open("blokus").rules
    states = rules.blank(1)
    rules.deal(states, seeds.rows(0, 1))
    rules.play(states, np.array([rules.parse_action(states[0], "e10")], np.int32), seeds.rows(0, 1))
    assert rules.action_text(states[0], rules.parse_action(states[0], "I5 J5")) == "i5,j5"  # not the piece I5
    long = rules.parse_action(states[0], "I5 j5 j1")
    assert rules.action_text(states[0], long) == "j1,j2,j3,j4,j5"
    with pytest.raises(Usage, match="can be placed in 10 ways"):
        rules.parse_action(states[0], "i5 j5 11")
    chosen = {rules.parse_action(states[0], f"i5 j5 {number}") for number in range(1, 11)}
    assert len(chosen) == 10


def test_corners_to_go_on_from_are_marked(play):
    out = play()
    assert out.count("+") == 1 and "10 · · · · + · ·" in out
    assert "12 · · · + · + · ·" in play("e9,d10,e10,f10,e11")


def test_help_hint_and_reasons(play):
    out = play("?", "hint", "a1", "pass")
    assert "1 (1), 2 (4), I3 (6), V3 (12)" in out
    assert "hint: " in out and "e10" in out.split("hint: ")[1].splitlines()[0]
    assert "'a1' is not possible: your first piece must cover e10" in out
    assert "you can't pass" in out


def test_classic_from_another_seat(play):
    out = play("t1", switches=("--seat", "2", "--set", "board=classic"))
    assert "seat 0: " in out and "R you (seat 2)" in out and "G seat 3" in out


def test_the_largest_board_is_whole_in_a_narrow_terminal():
    rules = games.open("blokus", board="classic").rules
    states = rules.blank(1)
    rules.deal(states, seeds.rows(0, 1))
    assert (
        shown(BlokusScreen(rules).show(states[0], 0), 80).count("· " * 19 + "·") == 19
    )  # and one start point


def test_a_seat_without_a_move_is_told_to_pass():
    rules = games.open("blokus").rules
    screen = BlokusScreen(rules)
    for states, actions in Play(rules, rows=8).decisions():
        passing = np.flatnonzero(actions == rules.spec.actions - 1)
        if len(passing):
            state = states[passing[0]]
            assert screen.expects(state).endswith("pass") and "only pass" in screen.help(state)
            assert screen.told(state, rules.spec.actions - 1) == "passes"
            assert "has no move left" in shown(screen.show(state, state["turn"]))
            return
    pytest.fail("nobody had to pass")


def test_the_end_names_points_and_winner():
    rules = games.open("blokus").rules
    screen = BlokusScreen(rules)
    for states, actions in Play(rules, rows=1).decisions():
        after = states.copy()
        rules.play(after, actions, seeds.rows(0, 1))
        said = screen.settled(states[0], int(actions[0]), after[0], 1)
        assert (said is not None) == rules.over(after)[0]
    first, second = after[0]["points"]
    winner = "a draw" if first == second else "you win" if second > first else "seat 0 wins"
    assert f"Points: seat 0 {first}, you {second}; {winner}" in shown(said)


def test_pieces_are_drawn_two_rows_in_a_line():
    assert halves(PIECES["Z5"]) == ["▀█ ", " ▀▀"] and halves(PIECES["O"]) == ["██"]
