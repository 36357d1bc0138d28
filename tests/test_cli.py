"""The command line as people use it: what it prints, and with which exit code it ends."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commandline import one_line
from ludus import cli

ENV = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "160", "NO_COLOR": "1"}


# ---- speed of starting


def test_help_is_quick_and_imports_nothing_heavy():
    program = (
        "import sys, ludus, ludus.cli\n"
        "try: ludus.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numba', 'torch', 'gymnasium', 'pettingzoo') if name in sys.modules])"
    )
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program], env=ENV, capture_output=True, text=True)
    after = os.times()
    assert done.stdout.splitlines()[-1] == "[]"
    for command in ("games", "play", "eval", "analyze", "bench", "doctor"):
        assert re.search(rf"\b{command}\b", done.stdout)
    # Of the processor's time, which a busy machine doesn't stretch as it does the clock's.
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.0


# ---- games


def test_games_lists_what_is_there(ludus):
    code, out, _ = ludus("games")
    assert code == 0
    for said in ("tictactoe", "ofc", "270", "random, greedy", "gym:CartPole-v1", "zoo:", "module:Class"):
        assert said in out


def test_a_game_lists_its_switches_with_help(ludus):
    code, out, _ = ludus("games", "ofc")
    assert code == 0
    for said in (
        "seats",
        "2 | 3",
        "stay_middle",
        "true | false",
        "Wild cards in the deck",
        "progressive | flat | off",
    ):
        assert said in out


def test_check_passes_a_good_game(ludus):
    code, out, _ = ludus("games", "--check", "tictactoe")
    assert code == 0 and out.count("ok ") == 9 and "broken" not in out


BROKEN_GAME = '''
"""A game that pays everybody."""
from ludus.games.tictactoe import Options, make_bots
from ludus.games.tictactoe.rules import TicTacToe

class Generous(TicTacToe):
    def score(self, states, out):
        out[:] = 1

def make_rules(options):
    return Generous()
'''


def test_check_names_what_a_users_game_breaks(ludus, tmp_path):
    (tmp_path / "generous_game.py").write_text(BROKEN_GAME)
    code, out, err = ludus("games", "--check", "generous_game")
    assert code == 1
    assert re.search(r"broken +games end.*scores of a zero-sum game add up to \[2", out)
    assert one_line(err) == "ludus: generous_game breaks 1 of 9 promises"


# ---- bad input


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["games", "no_such_game"],
            "unknown game 'no_such_game': choose from blokus, connect4, ofc, tictactoe",
        ),
        (["bench", "no_such_game"], "unknown game 'no_such_game'"),
        (["play", "no_such_game"], "unknown game 'no_such_game'"),
        (["eval", "no_such_game"], "unknown game 'no_such_game'"),
        (["games", "--check", "json"], "without a function `make_rules`"),
        (["games", "--check"], "which game?"),
        (["play", "gym:CartPole-v1"], "play is for native games"),
        (["bench", "gym:NoSuch-v0"], "unknown environment gym:NoSuch-v0"),
        (["bench", "zoo:classic/no_such_v0"], "unknown environment zoo:classic/no_such_v0"),
        (["bench", "nowhere:Env"], "no module 'nowhere'"),
        (["play", "ofc", "--set", "seats=4"], "ofc can't have seats=4: seats is 2 | 3"),
        (["play", "ofc", "--set", "hands=0"], "a session has 1 to 1,000,000 hands, not 0"),
        (["bench", "ofc", "--set", "hands=x"], "hands is a whole number"),
        (["bench", "ofc", "--set", "stay_middle=perhaps"], "stay_middle is true | false"),
        (["bench", "ofc", "--set", "wilds=1"], "ofc has no switch 'wilds': choose from seats, jokers"),
        (["bench", "ofc", "--set", "seats"], "'seats' is not a switch: write it as in seats=2"),
        (["bench", "tictactoe", "--rows", "0"], "both must be above 0"),
        (["play", "ofc", "--seat", "3"], "ofc has no seat 3: choose from 0 to 2"),
        (
            ["play", "tictactoe", "--against", "deepblue"],
            "tictactoe has no bot 'deepblue': choose from random",
        ),
        (["eval", "tictactoe", "--bots", "greedy"], "needs two bots"),
        (["eval", "tictactoe", "--hands", "10"], "not played in hands"),
        (["eval", "tictactoe", "--games", "0"], "too few"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_as_written_is_one_line_and_exit_code_2(ludus, args, said):
    code, _, err = ludus(*args)
    assert code == 2 and said in one_line(err)


@pytest.mark.parametrize(
    "args", [[], ["ply"], ["play"], ["bench", "ofc", "--rows", "many"], ["games", "--nope"]]
)
def test_words_that_no_command_knows_are_exit_code_2(ludus, args):
    code, out, err = ludus(*args)
    assert code == 2 and "Traceback" not in out + err and "--help" in out + err


BROKEN_ENV = """
import gymnasium, numpy as np

class Raises(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}
    def step(self, action):
        raise RuntimeError("the emulator is gone")

class NoNumber(Raises):
    def step(self, action):
        return np.zeros(2, np.float32), float("nan"), False, False, {}
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [("Raises", "step in row 0 raised RuntimeError: the emulator is gone"), ("NoNumber", "reward in row 0")],
)
def test_a_broken_environment_is_one_line_and_exit_code_1(ludus, tmp_path, name, said):
    (tmp_path / "broken_env.py").write_text(BROKEN_ENV)
    code, _, err = ludus("bench", f"broken_env:{name}", "--rows", "2")
    assert code == 1 and said in one_line(err)


def test_unexpected_errors_are_one_line_unless_debugged(ludus, tmp_path):
    (tmp_path / "faulty_game.py").write_text(
        "from ludus.games.tictactoe import Options, make_bots\n"
        "def make_rules(options): raise OSError('disk on\\nfire')"
    )
    code, _, err = ludus("games", "faulty_game")
    assert code == 1
    assert one_line(err) == (
        "ludus: unexpected OSError: disk on fire; run again with --debug for the traceback"
    )
    code, _, err = ludus("--debug", "games", "faulty_game")
    assert code == 1 and "Traceback" in err and "faulty_game.py" in err


def test_interrupting_is_quiet(monkeypatch, capfd):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("ludus.commands.doctor.examine", interrupted)
    monkeypatch.setattr("os.dup2", lambda *args: None)
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor"])
    assert end.value.code == 130 and capfd.readouterr().err == ""


# ---- play


def test_a_piped_game_of_tictactoe(tmp_path):
    """A real process with moves on its stdin, one of them illegal and one that means nothing."""
    moves = "b2\nb2\nnonsense\nhint\n?\n" + "\n".join(f"{column}{row}" for column in "abc" for row in "123")
    command = [sys.executable, "-m", "ludus.cli", "play", "tictactoe", "--seed", "1", "--against", "random"]
    done = subprocess.run(command, input=moves, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "b2 is not possible here" in done.stdout
    assert "'nonsense' is not a cell: a column a-c and a row 1-3, as in b2" in done.stdout
    assert "hint: " in done.stdout and "Free cells:" in done.stdout
    assert "Final score: you" in done.stdout


def test_quitting_is_fine_but_running_out_of_input_is_not(ludus):
    code, out, _ = ludus("play", "tictactoe", typed="b2\nq")
    assert code == 0 and "You left the game." in out
    code, _, err = ludus("play", "tictactoe", typed="b2")
    assert code == 1 and one_line(err) == "ludus: input ended before the game was over (q quits)"


def play_ofc(ludus, seed: int, *switches: str) -> str:
    """One hand with moves that try every placement until one fits."""
    later = [f"{a}{b}-" for a in "bmt" for b in "bmt"]
    typed = "\n".join(["tttt", "ttttt", "tmmbb", *later * 8])
    code, out, err = ludus(
        "play", "ofc", "--against", "greedy", "--seed", str(seed), "--set", "hands=1", *switches, typed=typed
    )
    assert code == 0, err
    return out


def test_a_hand_of_ofc_is_explained_to_the_last_point(ludus):
    out = play_ofc(ludus, 3)
    assert "'tttt' is not a placement: a row (t, m, b) for each card" in out
    assert "ttttt is not possible here" in out and "Room: top 3, middle 5, bottom 5" in out
    assert "showdown of hand 1" in out
    hand = [float(points) for points in re.findall(r"seat \d ([+-]\d+)", out.partition("This hand:")[2])[:3]]
    final = [float(points) for points in re.findall(r"[+-]\d+", out.partition("Final score:")[2])]
    assert len(final) == 3 and hand == final and sum(final) == 0
    for pair in ("seat 0 against seat 1", "seat 0 against seat 2", "seat 1 against seat 2"):
        assert re.search(rf"{pair}: [+-]\d+  \(", out)


def test_discards_of_others_stay_hidden(ludus):
    """Everything that is printed before the showdown names only cards that this seat may know."""
    from ludus import games
    from ludus.games.ofc.screen import OfcScreen

    out = play_ofc(ludus, 5, "seats=2")
    before = out.partition("showdown")[0]
    cards = set(re.findall(r"[2-9TJQKA][♣♦♥♠]|★\d", before))
    # 13 on each board; of discards only the four of this seat, in a deck of 54 with 34 dealt.
    assert len(cards) == 13 + 13 + 4
    rules = games.rules("ofc", seats=2)
    states = rules.blank(1)
    states[0]["drawn"], states[0]["street"] = (0, 20, 51, 255, 255), 1
    told = OfcScreen(rules).told(states[0], 243 + 1 * 9 + 2 * 3 + 0)
    assert "2♣" not in told.plain and "7♣ middle" in told.plain and "A♠ bottom" in told.plain


def test_fantasyland_cards_of_others_stay_face_down():
    from rich.console import Console

    from ludus import games
    from ludus.core import seeds
    from ludus.games.ofc.hand import start_hand
    from ludus.games.ofc.screen import OfcScreen

    rules = games.rules("ofc", seats=2)
    states, rng = rules.blank(1), seeds.rows(0, 1)
    rules.deal(states, rng)
    states[0]["fantasy_cards"][1] = 14
    start_hand(states[0], rng[0])
    console = Console(width=120)
    with console.capture() as captured:
        console.print(OfcScreen(rules).show(states[0], 0))
    shown = captured.get()
    assert "Fantasyland:" in shown and "14 cards" in shown and "face down" in shown
    drawn = (states[0]["drawn"] != 255).sum()
    assert len(re.findall(r"[2-9TJQKA][♣♦♥♠]|★\d", shown)) == drawn


# ---- bench, eval, doctor


@pytest.mark.parametrize(
    "game", ["tictactoe", "gym:CartPole-v1", "zoo:classic/connect_four_v3", "gym:Pendulum-v1"]
)
def test_bench_measures_any_table(ludus, game):
    code, out, err = ludus("bench", game, "--rows", "8", "--seconds", "0.1")
    assert code == 0, err
    assert re.search(rf"{game}: [\d,]+ decisions/s on one core", out)
    assert ("ns/decision" in out) == (game == "tictactoe")


def test_eval_ranks_bots(ludus):
    code, out, err = ludus("eval", "tictactoe", "--bots", "random", "greedy", "--games", "400")
    assert code == 0, err
    assert re.search(r"random +greedy +-0\.\d+ ± 0\.\d+", out) and "ranking: greedy > random" in out


def test_eval_of_ofc_counts_hands(ludus):
    code, out, err = ludus(
        "eval", "ofc", "--bots", "greedy", "random", "--hands", "600", "--set", "hands=5", "seats=2"
    )
    assert code == 0, err
    assert "600 hands a match" in out and "ranking: greedy > random" in out
    for column in ("points/hand", "foul", "royalty", "win", "entry", "stay"):
        assert column in out


def test_doctor_says_what_there_is(ludus):
    code, out, _ = ludus("doctor")
    assert code == 0
    for said in (
        "python",
        "numba",
        "cores",
        "memory",
        "compiled code",
        "8 workers x 4,096 rows are all different",
    ):
        assert said in out


def test_doctor_says_how_to_get_what_is_missing(ludus, monkeypatch):
    from importlib import metadata

    real = metadata.version

    def version(package):
        if package == "torch":
            raise metadata.PackageNotFoundError
        return real(package)

    monkeypatch.setattr(metadata, "version", version)
    _, out, _ = ludus("doctor")
    assert "missing torch: pip install -c constraints.txt -e '.[train]'" in out


def test_bench_core_prints_figures_by_name():
    """The names that people follow over time don't change by accident."""
    source = (Path(__file__).parent.parent / "bench" / "core.py").read_text()
    for name in ("ofc.table", "ofc.table.scaling", "table.overhead", "worker.start", "ofc.fl14", "ofc.fl17"):
        assert f'"{name}"' in source
