"""What a search thinks of a game: in the terminal, as pictures, and as hints while playing."""

import re
import sys

import numpy as np
import pytest
from PIL import Image

from commandline import one_line
from ludus import games, match
from ludus.analysis import read_moves, split_moves, study
from ludus.core import seeds
from ludus.search.bot import SearchBot
from ludus.ui.pictures import BOARD, FREE, MARGIN, TITLE
from ludus.ui.thoughts import heat_of

THROWN_AWAY = "b2 a1 c1 a2 c3 a3"
"""X could win at a3 by its third move, but takes c3, and O wins there."""
CROSS = "e9,d10,e10,f10,e11"


# ---- what is found


def test_a_thrown_away_win_is_a_loss_of_value(ludus):
    code, out, err = ludus("analyze", "tictactoe", "--moves", THROWN_AWAY)
    assert code == 0, err
    assert "5. X plays c3 and loses 2.00 against a3\n" in out  # all of this is proven
    assert "4. O plays a2 and loses 1.00 against a3\n" in out
    assert "6. O plays a3, the best move" in out
    assert re.search(r"X +3 +2\.\d+ +move 5, 2\.00", out)
    assert "after the last move: X -1.00, O +1.00" in out


def test_steps_tell_visits_values_and_the_position_after():
    rules = games.open("tictactoe").rules
    actions = read_moves(rules, THROWN_AWAY.split(), 0)
    steps = list(study(rules, SearchBot(rules), actions, 0))
    assert [step.seat for step in steps] == [0, 1, 0, 1, 0, 1] and [step.action for step in steps] == actions
    for step, then in zip(steps, steps[1:], strict=False):
        assert (step.after == then.value).all() and step.after.sum() == pytest.approx(0, abs=1e-5)
        assert sum(idea.visits for idea in step.ideas) >= (200 if step.number == 1 else 1)
        assert sum(idea.share for idea in step.ideas) == pytest.approx(1, abs=1e-5)
    winning = steps[4].ideas[0]
    assert rules.action_text(steps[4].state, winning.action) == "a3" and winning.value == 1


def test_the_end_is_worth_what_the_thinker_plays_for():
    rules = games.open("tictactoe").rules
    actions = read_moves(rules, THROWN_AWAY.split(), 0)
    *_, last = study(rules, SearchBot(rules, utility=lambda score: score / 4), actions, 0)
    assert last.after.tolist() == [-0.25, 0.25]


@pytest.mark.parametrize("game", ["tictactoe", "connect4", "blokus"])
def test_heat_is_the_policy_on_the_cells_that_a_move_takes(game):
    opened = games.open(game)
    rules, screen = opened.rules, opened.make_screen()
    step = next(study(rules, SearchBot(rules), None, 0))
    heat = heat_of(screen, step.state, step.ideas)
    sizes = [len(screen.covers(step.state, idea.action)) for idea in step.ideas]
    shares = [idea.share for idea in step.ideas]
    assert heat.sum() == pytest.approx(np.dot(sizes, shares))
    after = rules.blank(1)
    after[0] = step.state
    rules.play(after, np.array([step.action], np.int32), seeds.rows(0, 1))
    taken = np.argwhere(screen.cells(after[0]) == 0)
    assert sorted(map(tuple, taken.tolist())) == sorted(screen.covers(step.state, step.action))


def test_choosing_is_thinking():
    rules = games.open("connect4").rules
    states = rules.blank(3)
    chosen = SearchBot(rules).choose(states, seeds.rows(1, 3))
    assert (chosen == SearchBot(rules).think(states, seeds.rows(1, 3)).best).all()


# ---- the command


def test_a_game_of_blokus_in_the_terminal(ludus):
    code, out, err = ludus("analyze", "blokus", "--moves", f"{CROSS} j5")
    assert code == 0, err
    second = out.partition("2. O plays j5 and loses ")[2]
    assert float(second[:4]) > 0.05 and re.search(r"worth X [+-]\d\.\d\d, O [+-]\d\.\d\d", second)
    ranks = re.findall(r"^ *(\d+)  (\S+) +(\d+) +\d+ % +([+-]\d\.\d\d|-) ", second, re.M)
    assert [rank for rank, *_ in ranks[:5]] == list("12345")
    assert all("j5" in move.split(",") for _, move, *_ in ranks)
    assert ranks[5][1:] == ("j5", "0", "-")
    assert re.search(r"10 +·  ·  ·  X  X  X  ·", second) and re.search(r" 5 .* 99 ", second)


def test_without_moves_the_search_plays_itself_the_same_way_again(ludus):
    first, again = (ludus("analyze", "tictactoe", "--seed", "4")[1] for _ in range(2))
    assert first == again and first.count("the best move") >= 5 and "loses" not in first


def test_how_long_to_think_is_a_part_of_the_players_name(ludus, monkeypatch):
    asked = []
    monkeypatch.setattr(
        match, "player", lambda name, game: asked.append(name) or SearchBot(game.rules, simulations=20)
    )
    _, out, _ = ludus("analyze", "tictactoe", "--moves", "b2", "--think", "20")
    assert asked == ["search+20"] and "1. X plays b2" in out


def test_a_game_in_a_file_with_comments(ludus, tmp_path):
    (tmp_path / "game.txt").write_text("# from a book\nb2  # the middle\na1 c1\n")
    code, out, err = ludus("analyze", "tictactoe", "--file", "game.txt")
    assert code == 0, err
    assert "3. X plays c1" in out and "4. " not in out
    assert split_moves("b2 # c1\n\na1") == ["b2", "a1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tictactoe", "--moves", "b2 b2"], "move 2 (b2): not possible here; the position is .../.X./..."),
        (["tictactoe", "--moves", "b2 z9"], "move 2 (z9): 'z9' is not a cell"),
        (["tictactoe", "--moves", f"{THROWN_AWAY} c2"], "move 7 (c2): the game is over before it"),
        (["blokus", "--moves", f"{CROSS} a1"], "move 2 (a1): 'a1' is not possible: your first piece must"),
        (["tictactoe", "--moves", "b2", "--file", "x"], "--moves and --file are two games"),
        (["tictactoe", "--file", "nowhere.txt"], "can't read the game nowhere.txt: No such file"),
        (["tictactoe", "--moves", " "], "there are no moves in --moves"),
        (["tictactoe", "--bot", "greedy"], "greedy does not search"),
        (["connect4", "--bot", "champion", "--think", "0"], "leave out --think 0"),
        (["tictactoe", "--run", "nowhere"], "nowhere is not a run"),
        (["ofc"], "no bot searches it, because part of the game is hidden"),
        (["gym:CartPole-v1"], "can't be analyzed: that is for native games"),
    ],
)
def test_what_cannot_be_analyzed_is_one_line(ludus, words, said):
    code, out, err = ludus("analyze", *words)
    assert code == 2 and said in one_line(err) and "plays" not in out


# ---- pictures


def test_pictures_show_pieces_heat_and_values(ludus, tmp_path):
    (tmp_path / "png").mkdir()
    (tmp_path / "png" / "move-009.png").write_text("of an earlier game")
    code, out, err = ludus("analyze", "blokus", "--moves", f"{CROSS} j5", "--png", "png")
    assert code == 0, err
    assert "3 pictures in png" in out
    pictures = {file.name: Image.open(file).convert("RGB") for file in (tmp_path / "png").iterdir()}
    assert sorted(pictures) == ["move-001.png", "move-002.png", "values.png"]
    assert pictures["move-001.png"].size == (BOARD + 2 * MARGIN, BOARD + TITLE + 2 * MARGIN)

    def colour(name: str, row: int, column: int) -> str:
        """Of a place in a cell that nothing is written on."""
        size = BOARD // 14
        at = MARGIN + column * size + 8, TITLE + MARGIN // 2 + row * size + 8
        return "#{:02x}{:02x}{:02x}".format(*pictures[name].getpixel(at))

    e10, j5, n1, blue = (4, 4), (9, 9), (13, 13), "#2563eb"
    assert colour("move-001.png", *e10) not in (FREE, blue) and colour("move-001.png", *j5) == FREE
    assert colour("move-002.png", *e10) == blue and colour("move-002.png", *j5) not in (FREE, blue)
    assert colour("move-001.png", *n1) == colour("move-002.png", *n1) == FREE
    assert len(pictures["values.png"].getcolors(2**24)) > 10


def test_pictures_without_pillow_are_told_what_is_missing(ludus, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr(
        games.find("tictactoe"), "warm_up", lambda *args: pytest.fail("compiled before it was refused")
    )
    code, _, err = ludus("analyze", "tictactoe", "--png", "png")
    assert code == 2 and "--png needs pillow: pip install -c constraints.txt -e '.[png]'" in one_line(err)


# ---- hints


def test_hints_show_the_best_moves_and_a_heat_map(ludus):
    code, out, err = ludus("play", "tictactoe", "--seed", "1", typed="hint\nq")
    assert code == 0, err
    hint = out.partition("hint: ")[2]
    visits = [int(number) for number in re.findall(r"^\d  [abc][123] +(\d+) ", hint, re.M)]
    assert len(visits) == 3 and visits == sorted(visits, reverse=True)
    assert hint[:2] == re.search(r"^1  (..)", hint, re.M)[1]
    assert len(re.findall(r"^ [123] ( +\d+){3}$", hint, re.M)) == 3


def test_the_move_just_made_stands_out(ludus):
    _, out, _ = ludus("play", "blokus", "--seed", "1", typed=f"{CROSS}\nq")
    told = out.partition("seat 1: ")[2]
    squares = told.partition(" to ")[2].splitlines()[0].split(",")
    assert told.count("O*") == len(squares) and "X*" not in out
