"""The command line as people use it: what it prints, and with which exit code it ends."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from commandline import one_line
from ludus import cli, games

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


def test_python_runs_the_package_as_the_command_line():
    done = subprocess.run([sys.executable, "-m", "ludus", "games"], env=ENV, capture_output=True, text=True)
    assert done.returncode == 0 and "tictactoe" in done.stdout


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
    assert code == 0 and out.count("ok ") == 13 and "broken" not in out


BROKEN_GAME = '''
"""A game that pays everybody."""
from ludus.games import tictactoe
from ludus.games.tictactoe.rules import TicTacToe

class Generous(TicTacToe):
    def score(self, states, out):
        out[:] = 1

class Game(tictactoe.Game):
    def make_rules(self, options):
        return Generous()
'''


def test_check_names_what_a_users_game_breaks(ludus, tmp_path):
    (tmp_path / "generous_game.py").write_text(BROKEN_GAME)
    code, out, err = ludus("games", "--check", "generous_game")
    assert code == 1
    assert re.search(r"broken +games end.*scores of a zero-sum game add up to \[2", out)
    assert one_line(err) == "ludus: generous_game breaks 1 of 13 promises"


# ---- bad input


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["games", "no_such_game"],
            "unknown game 'no_such_game': choose from blokus, connect4, ofc, pokemon, retro, tictactoe",
        ),
        (["bench", "no_such_game"], "unknown game 'no_such_game'"),
        (["play", "no_such_game"], "unknown game 'no_such_game'"),
        (["eval", "no_such_game"], "unknown game 'no_such_game'"),
        (["games", "--check", "json"], "without a class `Game`"),
        (["games", "--check"], "which game?"),
        (["play", "gym:CartPole-v1"], "can't be played here: that is for native games"),
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
        "from ludus.games import tictactoe\n"
        "class Game(tictactoe.Game):\n"
        "    def make_rules(self, options): raise OSError('disk on\\nfire')"
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
    assert "'tttt' is not a placement: it has 4 letters for 5 cards; write a row (t, m, b) for each" in out
    assert "'ttttt' is not possible: top has room for 3, not 5" in out
    assert "showdown of hand 1" in out
    total = re.findall(r"(?:you|seat \d) ([+-]\d+)", out.partition("This hand:")[2])[:3]
    hand = [float(points) for points in total]
    final = [float(points) for points in re.findall(r"[+-]\d+", out.partition("Final score:")[2])]
    assert len(final) == 3 and hand == final and sum(final) == 0
    assert "seat 0" not in out.partition("showdown")[2]
    for pair in ("you against seat 1", "you against seat 2", "seat 1 against seat 2"):
        assert re.search(rf"{pair}: [+-]\d+  \(", out)


def test_discards_of_others_stay_hidden(ludus):
    """Everything that is printed before the showdown names only cards that this seat may know."""
    from ludus import games
    from ludus.games.ofc.screen import OfcScreen

    out = play_ofc(ludus, 5, "seats=2")
    before = out.partition("showdown")[0]
    cards = set(re.findall(r"[2-9TJQKA][♣♦♥♠]|X[12]", before))
    # 13 on each board; of discards only the four of this seat, in a deck of 54 with 34 dealt.
    assert len(cards) == 13 + 13 + 4
    rules = games.open("ofc", seats=2).rules
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

    rules = games.open("ofc", seats=2).rules
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
    assert len(re.findall(r"[2-9TJQKA][♣♦♥♠]|X[12]", shown)) == drawn


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


def test_a_long_match_into_a_file_says_how_far_it_is(ludus, monkeypatch):
    monkeypatch.setattr("ludus.commands.eval.TOLD_EVERY_S", 0.0)
    code, out, err = ludus("eval", "tictactoe", "--bots", "random", "--against", "greedy", "--games", "400")
    assert code == 0 and "played after" not in out
    assert "random - greedy: 100% played after 0 min" in err


def test_eval_without_look_ahead_plays_as_many_games_as_bots_do(ludus):
    code, out, err = ludus("eval", "connect4", "--bots", "champion+0", "--against", "random")
    assert code == 0, err
    assert "1,000 games a match" in out


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


# ---- play: taking back, pausing, recording


def test_undo_goes_back_to_the_previous_decision(ludus):
    typed = "undo\nb2\nundo\nb2\na1\na2\na3\nc1\nc2\nc3\nb1\nb3"
    code, out, err = ludus("play", "tictactoe", "--against", "greedy", "--seed", "1", typed=typed)
    assert code == 0, err
    assert "There is nothing to take back" in out and "Taken back" in out
    answers = re.findall(r"seat 1: O to (\w\d)", out)
    assert answers[0] == answers[1], "the same move again was answered otherwise"
    assert out.count("tictactoe: you have seat 0, greedy the others; seed 1") >= 3  # above each board


def test_taking_back_says_what_was_seen(ludus):
    _, out, _ = ludus("play", "ofc", "--against", "greedy", "--seed", "3", typed="tmmbb\nundo\ntmmbb\nq")
    assert "Taken back: this is your previous decision. You have seen cards that were hidden then." in out
    boards = re.findall(r"your cards: (.*)", out)
    assert boards[0] == boards[2] and boards[1] == boards[3]


def test_hands_wait_for_the_person(ludus, monkeypatch):
    """At a terminal every showdown but the last is followed by a pause."""
    later = "\n".join(f"{a}{b}-" for a in "bmt" for b in "bmt")
    typed = "\n".join(["tmmbb", later, later, later, later, "q"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    _, out, _ = ludus("play", "ofc", "--against", "greedy", "--seed", "3", "--set", "hands=2", typed=typed)
    shown = out.partition("showdown of hand 1")[2]
    assert "Enter goes on" in shown.partition("hand 2 of 2")[0]


def test_a_recorded_game_can_be_analyzed(ludus, tmp_path):
    moves = "4\n4\n4\n1\n2\n3\n5\n6\n7\n" * 4
    for seed, seat in (("1", "0"), ("5", "1")):
        args = ("play", "connect4", "--against", "greedy", "--seed", seed, "--seat", seat)
        code, out, err = ludus(*args, "--record", "games.txt", typed=moves)
        assert code == 0 and "recorded in games.txt" in out, err
    ludus("play", "ofc", "--seed", "1", "--against", "greedy", "--record", "games.txt", typed="tmmbb\nq")
    lines = (tmp_path / "games.txt").read_text().splitlines()
    assert len(lines) == 3 and lines[2].endswith("# unfinished")
    assert re.fullmatch(
        r"ludus play connect4 --seed 5 --seat 1 --against greedy( \| \d)+ # seat 0 .*", lines[1]
    )
    code, out, err = ludus("analyze", "connect4", "--file", "games.txt", "--think", "20")
    assert code == 0, err
    played = re.findall(r"^\d+\. [XO] plays (\d)", out, re.M)
    assert played == re.findall(r"\| (\d)", lines[1])
    code, _, err = ludus("analyze", "tictactoe", "--file", "games.txt")
    assert code == 2 and one_line(err) == "ludus: games.txt holds no game of tictactoe"
    code, _, err = ludus("play", "connect4", "--record", "no/such/folder", typed="q")
    assert code == 2 and "can't record the game in no/such/folder" in one_line(err)


def test_a_record_of_any_game_reads_back():
    from ludus import games, records
    from ludus.analysis import read_moves
    from ludus.core import seeds
    from ludus.core.conformance import Play

    for game, options in (
        ("ofc", {"seats": 2, "hands": 1, "stay_middle": True}),
        ("blokus", {"board": "duo"}),
    ):
        rules = games.open(game, **options).rules
        play, moves, actions = Play(rules, rows=1), [], []
        play.states, play.rng = rules.blank(1), seeds.rows(9, 1, "deal")
        rules.deal(play.states, play.rng)
        for states, chosen in play.decisions():
            moves.append(rules.action_text(states[0], int(chosen[0])))
            actions.append(int(chosen[0]))
        record = records.Record(game, 9, 0, "runs/my run", options, moves, "you +1")
        again = records.last(f"# mine\n{record.line()}\n", game, "a file")
        assert again == record and read_moves(rules, again.moves, again.seed) == actions


# ---- whom to play, and under which rules


def test_the_strongest_bot_thinks_as_long_as_told(ludus):
    _, out, _ = ludus("play", "tictactoe", "--think", "30", "--seed", "1", typed="b2\nq")
    assert "search+30 the others" in out
    code, _, err = ludus("play", "ofc", "--against", "rollout", "--think", "5", typed="q")
    assert code == 2 and "rollout doesn't look ahead" in one_line(err)
    code, _, err = ludus("play", "ofc", "--think", "5s", typed="q")
    assert code == 2 and "expert looks into a number of futures" in one_line(err)


@pytest.fixture(scope="module")
def three_seats(tmp_path_factory):
    """A run of OFC for three seats, with jokers=0, that has learned nothing."""
    from ludus.config import overlay, resolve
    from ludus.training.loop import Audience, train

    folder = tmp_path_factory.mktemp("runs") / "a+run@home"
    told = {
        "run": str(folder),
        "decisions": 1,
        "workers": "0",
        "steps": 4,
        "rows": 2,
        "switches": {"jokers": 0},
    }
    train(overlay(resolve("ofc", "test"), told, "test"), Audience())
    return folder


def test_a_run_plays_by_the_rules_it_was_trained_on(ludus, three_seats):
    run = str(three_seats)
    code, out, err = ludus("play", "ofc", "--run", run, "--seed", "1", "--record", "x", typed="tmmbb\nq")
    assert code == 0, err
    assert "hand 1 of 10" in out  # as evaluated: in full
    assert " jokers=0 " in Path("x").read_text() and "fantasyland_hands=played" in Path("x").read_text()
    _, out, _ = ludus("play", "ofc", "--run", run, "--set", "hands=3", typed="q")
    assert "hand 1 of 3" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("play blokus --run RUN", "is a run of ofc, not of blokus"),
        ("eval blokus --run RUN", "is a run of ofc, not of blokus"),
        ("gtp blokus --run RUN", "is a run of ofc, not of blokus"),
        ("analyze blokus --run RUN", "is a run of ofc, not of blokus"),
        ("eval blokus --bots RUN greedy", "is a run of ofc, not of blokus"),
        ("play ofc --run RUN --set seats=2", "trained with seats=3, so its network can't play with seats=2"),
        ("eval RUN --set seats=2", "trained with seats=3, so its network can't play with seats=2"),
        ("eval ofc --bots RUN greedy --set seats=2", "seats=3, so its network can't play with seats=2"),
        ("analyze ofc --run RUN", "does not search, so it has no thoughts to show"),
        ("eval RUN --hands 0", "0 is too few to play"),
        ("train ofc --workers -1", "--workers is -1, but must be auto or at least 0"),
        ("analyze blokus --png /dev/null/x", "can't write pictures to /dev/null/x"),
        ("eval ofc --opening 99", "an opening has 0 to 12 moves, not 99"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_compiles(ludus, three_seats, monkeypatch, words, said):
    from ludus.core.game import NativeGame

    monkeypatch.setattr(NativeGame, "warm_up", lambda *args: pytest.fail("compiled before it was refused"))
    code, _, err = ludus(*(str(three_seats) if word == "RUN" else word for word in words.split()))
    assert code == 2 and said in one_line(err)


# ---- flags


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("ply", "unknown command ply: choose from games, play, eval"),
        ("play", "ludus play needs GAME; see ludus play --help"),
        ("bench ofc --rows many", "--rows: 'many' is not a whole number"),
        ("games --nope", "unknown flag --nope; see ludus games --help"),
        ("eval ofc --hand 3", "unknown flag --hand: did you mean --hands?"),
        (
            "train ofc --quick",
            "unknown flag --quick: did you mean --preset quick?; see ludus train ofc --help",
        ),
        ("train ofc --ppo.epoch 3", "unknown flag --ppo.epoch: did you mean --ppo.epochs?"),
        ("train ofc --decisions 1.5", "--decisions: '1.5' is not a whole number"),
        ("train ofc --decisions", "missing value for argument '--decisions'"),
    ],
)
@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_flags_that_cannot_be_read_are_one_line(ludus, monkeypatch, is_terminal, encoding, args, said):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stdout: is_terminal)
    monkeypatch.setattr(type(sys.stdout), "encoding", encoding)
    code, out, err = ludus(*args.split())
    assert code == 2 and said in one_line(err) and out == ""


@pytest.mark.parametrize("text", ["1000000", "1_000_000", "1e6"])
def test_whole_numbers_as_people_write_them(text):
    from ludus.commands.train import parse

    assert parse(["ofc", "--decisions", text]).decisions == 1_000_000


def test_the_version(ludus):
    import ludus as package

    assert ludus("--version")[:2] == (0, f"ludus {package.__version__}\n")


# ---- without the packages of the extras


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from ludus import cli
cli.main({args!r})
"""
TORCH = ("torch", "safetensors", "openskill")
TRAIN = "pip install -c constraints.txt -e '.[train]' in the project's folder"


@pytest.mark.parametrize(
    ("args", "hidden"),
    [
        ("train tictactoe --preset test", TORCH),
        ("eval RUN", TORCH),
        ("play ofc --run RUN", TORCH),
        ("gtp blokus --run BLOKUS", TORCH),
        ("export RUN --onnx", ("onnxruntime",)),
    ],
)
def test_a_missing_extra_is_named_in_one_line(tmp_path, three_seats, args, hidden):
    blokus = games.open("blokus").champion
    names = {"RUN": str(three_seats), "BLOKUS": str(blokus)}
    words = [names.get(word, word) for word in args.split()]
    program = HIDE.format(hidden=hidden, args=words)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENV, capture_output=True, text=True, input="q\n"
    )
    fix = TRAIN if hidden == TORCH else TRAIN.replace("[train]", "[export]")
    assert done.returncode == 2 and fix in one_line(done.stderr), done.stderr


def test_bots_play_without_any_extra(tmp_path):
    program = HIDE.format(hidden=(*TORCH, "PIL"), args=["play", "tictactoe", "--seed", "1"])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENV, capture_output=True, text=True, input="q\n"
    )
    assert done.returncode == 0 and "You left the game." in done.stdout, done.stderr
    program = HIDE.format(
        hidden=TORCH, args=["eval", "tictactoe", "--bots", "greedy", "random", "--games", "4"]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENV, capture_output=True, text=True
    )
    assert done.returncode == 0 and "ranking:" in done.stdout, done.stderr


def test_doctor_knows_every_extra():
    from ludus.core import extras

    found = extras.packages()
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) <= set(found) | {"dev"}
    for package in ("torch", "obstore", "apprise", "onnxruntime", "tensorboard", "pillow", "rlcard"):
        assert extras.extra_of(package), package
    assert extras.extra_of("torch") == "train" and extras.fix("no-such-thing") == "pip install no-such-thing"
