"""Blokus by GTP: what the engine answers, what the client makes of good and bad engines, and matches."""

import os
import re
import shlex
import sys
import time

import numpy as np
import psutil
import pytest

from commandline import one_line
from ludus import games
from ludus.core.duel import Duel
from ludus.core.errors import Failure, Usage
from ludus.core.rules import RandomBot
from ludus.games.blokus.gtp import pentobi, window
from ludus.games.blokus.gtp.client import Client, EnginePlayer
from ludus.games.blokus.gtp.engine import COMMANDS, Engine
from ludus.games.blokus.gtp.match import EngineTable, place, random_opening
from ludus.match import duel

LUDUS = [sys.executable, "-m", "ludus.cli", "gtp", "blokus", "--bot", "greedy"]
FIRST, SECOND = "e9,d10,e10,f10,e11", "i4,h5,i5,j5,i6"


@pytest.fixture(scope="module")
def game():
    return games.open("blokus")


@pytest.fixture(scope="module")
def rules(game):
    return game.rules


@pytest.fixture
def engine(game):
    return Engine(game, lambda game: game.bot("random"))


@pytest.fixture(autouse=True)
def findable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def good(engine: Engine, command: str) -> str:
    reply = engine.answer(command)
    assert reply.startswith("= ") and reply.endswith("\n\n"), reply
    return reply[2:-2]


def bad(engine: Engine, command: str) -> str:
    reply = engine.answer(command)
    assert reply.startswith("? ") and reply.endswith("\n\n"), reply
    return reply[2:-2]


def only_black_can_move(rules) -> list[tuple[int, str]]:
    """The moves of a game up to where white is stuck and black is not."""
    for seed in range(100):
        states, moves = random_opening(rules, 0, 0)
        rng = np.full((1, 2), seed * 2 + 1, np.uint64)
        while not rules.over(states)[0]:
            place(rules, states, int(RandomBot(rules).choose(states, rng)[0]), moves)
            if states[0]["stuck"] == 0b10:
                return moves
    raise AssertionError("white is never stuck first")


# ---- the engine's protocol


def test_replies_carry_the_number_of_their_command(engine):
    assert engine.answer("12 protocol_version\n") == "=12 2\n\n"
    assert engine.answer("13 nonsense\n").startswith("?13 unknown command 'nonsense'")
    assert engine.answer("14\n").startswith("?14 ")
    assert engine.answer("  name\t# a comment\r\n") == "= Ludus\n\n"
    assert engine.answer("clear_board") == "= \n\n"  # twogtp wants the space
    for nothing in ("", "\n", "# only a comment\n", "   \n"):
        assert engine.answer(nothing) is None


def test_every_listed_command_is_known_and_answers(engine):
    words = {"COLOR": "b", "MOVE": FIRST, "GAME": "Blokus Duo", "COMMAND": "name"}
    listed = good(engine, "list_commands").split()
    assert listed == list(COMMANDS)
    for name in listed:
        good(engine, "clear_board")
        if name == "undo":
            good(engine, f"play b {FIRST}")
        good(engine, " ".join([name, *(words[takes] for takes in COMMANDS[name])]))
        assert good(engine, f"known_command {name}") == "true"
    assert good(engine, "known_command nonsense") == "false" and engine.has_quit


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("play b", "syntax error: write play COLOR MOVE"),
        ("clear_board now", "syntax error: write clear_board"),
        ("play q a1", "unknown colour 'q': choose from b, w"),
        ("play 1 a1", "unknown colour"),
        (f"play w {SECOND}", "it is the turn of b, not of w"),
        ("play b a1", "illegal move: 'a1' is not possible: your first piece must cover e10"),
        ("play b e10,e12", "illegal move"),
        ("play b banana", "illegal move: 'banana' is not a square"),
        ("play b pass", "illegal move: you can't pass"),
        ("genmove w", "it is the turn of b"),
        ("genmove b w", "unknown colour 'b w'"),
        ("undo", "cannot undo"),
        ("set_game Go", "unknown game 'Go': choose from Blokus Duo, Blokus"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(engine, command, said):
    before = good(engine, "showboard")
    assert said in bad(engine, command)
    assert good(engine, "showboard") == before and len(engine.past) == 1


def test_moves_are_played_and_taken_back(engine):
    empty = good(engine, "showboard")
    good(engine, f"play BLACK {FIRST.upper()}")
    assert "illegal move" in bad(engine, f"play w {FIRST}")
    good(engine, f"play white {SECOND}")
    assert good(engine, "final_score") == "0"
    chosen = good(engine, "reg_genmove b")
    assert chosen in good(engine, "all_legal b").split() and good(engine, "final_score") == "0"
    shown = good(engine, "showboard")
    move = good(engine, "genmove b")
    assert good(engine, "final_score") == f"B+{len(move.split(','))}"
    good(engine, "undo")
    assert good(engine, "showboard") == shown
    good(engine, "undo")
    good(engine, "undo")
    assert good(engine, "showboard") == empty


def test_all_legal_lists_any_colour(engine):
    for colour in "bw":
        assert len(good(engine, f"all_legal {colour}").splitlines()) == 414
    good(engine, f"play b {FIRST}")
    moves = good(engine, "all_legal b").split()
    assert len(moves) == len(set(moves)) > 50 and FIRST not in moves


def test_passes_may_be_sent_or_not(rules, engine):
    moves = only_black_can_move(rules)
    for seat, move in moves:  # whoever was skipped in them is not mentioned
        good(engine, f"play {'bw'[seat]} {move}")
    score = good(engine, "final_score")
    assert good(engine, "genmove w") == "pass" and good(engine, "all_legal w") == ""
    good(engine, "play w pass")
    assert "has no placement left" in bad(engine, f"play w {SECOND}")
    assert "you can't pass" in bad(engine, "play b pass")
    assert good(engine, "final_score") == score
    while (move := good(engine, "genmove b")) != "pass":
        if len(engine.past) % 2:
            good(engine, "play w PASS")
    assert rules.over(engine.past[-1])[0] and good(engine, "genmove w") == "pass"
    assert int(engine.past[-1][0]["points"][0]) > 0
    good(engine, "undo")
    assert good(engine, "genmove b") != "pass"


def test_classic_has_four_colours(engine):
    good(engine, "set_game Blokus")
    for colour in ("1", "yellow", "3", "GREEN"):
        assert good(engine, f"genmove {colour}") != "pass"
    assert re.fullmatch(r"\d+ \d+ \d+ \d+", good(engine, "final_score"))
    assert "unknown colour 'b'" in bad(engine, "genmove b")
    good(engine, "set_game Blokus Duo")
    assert len(good(engine, "all_legal b").splitlines()) == 414


# ---- Ludus against Ludus, in processes


def test_a_game_of_an_engine_with_itself_ends_as_by_our_rules(rules):
    states, moves = random_opening(rules, 0, 0)
    with Client(LUDUS) as client:
        assert client.ask("name") == "Ludus"
        while not rules.over(states)[0]:
            move = client.ask(f"genmove {'bw'[states[0]['turn']]}")
            place(rules, states, rules.parse_action(states[0], move), moves)
        ahead = int(states[0]["points"][0]) - int(states[0]["points"][1])
        assert client.ask("final_score") == (
            f"B+{ahead}" if ahead > 0 else f"W+{-ahead}" if ahead < 0 else "0"
        )
        assert client.ask("genmove b") == client.ask("genmove w") == "pass"
        assert client.ask("quit") == "" and client.process.wait(60) == 0


def test_eval_plays_an_engine_and_tells_all_that_counts(ludus):
    command = ["eval", "blokus", "--games", "6", "--against", f"gtp:{shlex.join(LUDUS)}"]
    code, out, err = ludus(*command, "--bots", "random")
    assert code == 0, err
    assert "6 games a match, every deal once in each of 2 seats" in out
    assert re.search(r"won \d+\.\d ± \d+\.\d % of games; .* by seat [+-]", out)
    assert re.search(
        r"random \d+\.\d ms a move \(at most \d+\.\d\); .*greedy \d+\.\d ms a move \(at most", out
    )
    for column in ("win", "draw", "first", "later"):
        assert column in out


# ---- openings and seats


class Least:
    """Always the legal action of the lowest number: a bot, and by `choose` with a history an engine."""

    def __init__(self, rules) -> None:
        self.rules, self.histories = rules, []

    def choose(self, states, _) -> np.ndarray:
        legal = np.zeros((1, self.rules.spec.actions), bool)
        self.rules.legal(states, legal)
        return legal.argmax(1)


class LeastEngine(Least):
    def choose(self, state, history):
        self.histories.append(list(history))
        return int(super().choose(np.array([state]), None)[0])


def test_a_pair_of_equals_gives_opposite_seats_and_the_same_game(rules, monkeypatch):
    engine = LeastEngine(rules)
    table = EngineTable(rules, Least(rules), engine)
    monkeypatch.setattr(table, "_compare", lambda state, history: None)
    opening = random_opening(rules, 3, 1)
    first, second = (table.play(seat, *opening, seed=0) for seat in range(2))
    assert first[0] == -second[0] and first[1] == 1 - second[1]
    column = rules.spec.stats.index("first")
    assert first[2][column] == 1 and second[2][column] == 0
    assert all(history[:3] == opening[1] for history in engine.histories)
    # After three moves the second seat is to move: the engine when the bot has the first one.
    assert len(engine.histories[0]) == 3


def test_openings_differ_and_are_the_same_for_the_same_seed(rules):
    moves = [random_opening(rules, 2, seed)[1] for seed in (1, 2, 1)]
    assert moves[0] == moves[2] != moves[1] and [seat for seat, _ in moves[0]] == [0, 1]


def test_only_what_is_new_is_told(rules):
    asked = []

    class Recorder:
        name = "recorder"

        def ask(self, command):
            asked.append(command)
            return SECOND

    player = EnginePlayer(rules, Recorder())
    states, moves = random_opening(rules, 0, 0)
    place(rules, states, rules.parse_action(states[0], FIRST), moves)
    place(rules, states, player.choose(states[0], moves), moves)
    player.tell([*moves, (0, "g12")])
    player.tell([(0, "e10")])
    assert asked == [
        "set_game Blokus Duo", f"play b {FIRST}", "genmove w", "play b g12", "clear_board", "play b e10",
    ]  # fmt: skip


# ---- engines that are not as they should be


@pytest.fixture
def fake(tmp_path):
    """The name of an engine that does one thing when it should move, and says yes to everything else."""

    def fake(at_genmove: str) -> str:
        script = tmp_path / "fake.py"
        script.write_text(
            "import sys, time\n"
            "for line in sys.stdin:\n"
            f"    if line.startswith('genmove'): {at_genmove}\n"
            "    else: print('= \\n', flush=True)\n"
        )
        return f"gtp:{shlex.join([sys.executable, str(script)])}"

    return fake


def random_against(game, engine: str) -> Duel:
    return game.engine.duel(game.bot("random"), ("random", engine), 2, game.opening, "", 0)


@pytest.mark.parametrize(
    ("at_genmove", "said"),
    [
        ("sys.exit('out of luck')", "ended at `genmove w` with exit code 1: out of luck"),
        ("print('hello', flush=True)", "answered `genmove w` with 'hello', which is not GTP"),
        ("print('? tired\\n', flush=True)", "refused `genmove w`: tired"),
        ("print('= banana\\n', flush=True)", "answered `genmove w` with 'banana': 'banana' is not a square"),
        ("print('= a1\\n', flush=True)", "answered `genmove w` with 'a1': 'a1' is not possible"),
        ("print('= pass\\n', flush=True)", "answered `genmove w` with 'pass': you can't pass"),
        ("print('=\\n', flush=True)", "answered `genmove w` with ''"),
    ],
)
def test_a_bad_engine_ends_the_match_in_one_line(game, fake, at_genmove, said):
    with pytest.raises(Failure) as failure:
        random_against(game, fake(at_genmove))
    assert said in str(failure.value) and os.path.basename(sys.executable) in str(failure.value)


def test_an_engine_that_hangs_is_not_waited_for(fake, game):
    start = time.monotonic()
    command = game.engine.command_line(fake("time.sleep(60)"))
    said = pytest.raises(Failure, match=r"did not answer `genmove b` within 0\.5 s")
    with Client(command, patience_s=0.5) as client, said:
        client.ask("genmove b")
    assert time.monotonic() - start < 10 and client.process.returncode is not None


def test_an_engine_that_counts_by_other_rules_is_found(rules):
    table = EngineTable(rules, RandomBot(rules), EnginePlayer(rules, Counts("B+99")))
    with pytest.raises(Failure, match="answered `final_score` with 'B\\+99', it is 0"):
        table._compare(random_opening(rules, 0, 0)[0][0], [])


class Counts:
    name = "abacus"

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def ask(self, command: str) -> str:
        return self.reply


def test_resigning_loses(game, fake):
    duel = random_against(game, fake("print('= resign\\n', flush=True)"))
    assert (
        duel.note.endswith("the engine resigned 4 games")
        and (duel.won == 1).all()
        and (duel.points >= 1).all()
    )
    assert duel.stats["win"] == 1 and duel.stats["draw"] == 0 and duel.stats["first_win"] == 0.5


def test_engines_that_are_not_there_are_one_line(ludus, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pentobi, "GAMES", str(tmp_path))
    for told in (
        ["pentobi:5"],
        ["pentobi:5", "--set", "board=classic"],
        ["pentobi:5", "--engine", "elsewhere"],
    ):
        code, _, err = ludus("eval", "blokus", "--bots", "greedy", "--against", *told)
        name = "elsewhere" if "--engine" in told else "pentobi-gtp"
        assert code != 0 and f"{name!r} is not here: install Pentobi" in one_line(err)
    code, _, err = ludus("eval", "blokus", "--bots", "random", "--against", "gtp:no-such-engine -x")
    assert code != 0 and "can't start the engine `no-such-engine -x`: No such file" in one_line(err)


def test_openings_longer_than_sense_are_refused():
    with pytest.raises(Usage, match="an opening has 0 to 12 moves, not 40"):
        duel(games.open("blokus"), "random", "random", 2, opening=40)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pentobi:10", "no level '10': choose pentobi:1 to pentobi:9"),
        ("pentobi:", "no level ''"),
        ("gtp:", "which engine?"),
        ("gtp:'x", "is not a command line"),
    ],
)
def test_engines_that_cannot_be_are_refused(game, name, said):
    with pytest.raises(Usage, match=re.escape(said)):
        game.engine.check(name, "", 0)


def test_pentobi_is_started_as_it_should_be(game, ludus):
    found = game.engine.command_line("pentobi:3", sys.executable, 7)
    assert found[1:] == ["--quiet", "--game", "duo", "--level", "3", "--seed", "7", "--nobook", "--noresign"]
    code, _, err = ludus("eval", "tictactoe", "--bots", "greedy", "--against", "pentobi:3")
    assert code == 2 and "tictactoe has no bot 'pentobi:3'" in one_line(err)


# ---- Pentobi's window, if it is installed

SHOWN = pentobi.find_window()
has_window = pytest.mark.skipif(SHOWN is None, reason="Pentobi is not installed")


def window_client(level: int, seed: int) -> Client:
    assert SHOWN is not None
    return Client([sys.executable, window.__file__, SHOWN, "--level", str(level), "--seed", str(seed)])


def moves_of_window(level, seed, count):
    """What it plays with itself after the first two moves."""
    with window_client(level, seed) as client:
        client.ask("set_game Blokus Duo")
        client.ask(f"play b {FIRST}")
        client.ask(f"play w {SECOND}")
        return [client.ask(f"genmove {'bw'[n % 2]}") for n in range(count)]


@has_window
def test_pentobis_window_plays(game, monkeypatch):
    """Legal moves to the end, where both count the same: else there would be no result."""
    monkeypatch.setattr(pentobi, "PROGRAM", "no-such-engine")
    found = game.engine.duel(game.bot("random"), ("random", "pentobi:1"), 2, 2, "", 0)
    assert found.points.shape == (2, 2) and found.won.mean() < 0.5


@has_window
def test_pentobis_window_plays_the_same_for_the_same_seed():
    first = moves_of_window(1, 5, 4)
    assert first == moves_of_window(1, 5, 4) and len(set(first)) == 4


@has_window
def test_pentobis_window_says_what_it_cannot():
    with window_client(1, 0) as client:
        for command, said in (("set_game Blokus", "plays Blokus Duo only"), ("juggle", "unknown command")):
            with pytest.raises(Failure, match=said):
                client.ask(command)
        client.ask("set_game Blokus Duo")
        with pytest.raises(Failure, match="has not played for W"):
            client.ask("genmove w")


@has_window
def test_pentobis_window_that_dies_is_one_line():
    with window_client(1, 0) as client:
        client.ask("set_game Blokus Duo")
        (shown,) = psutil.Process(client.process.pid).children()
        shown.kill()
        with pytest.raises(Failure, match="Pentobi ended with exit code -9"):
            client.ask("genmove b")


IN_VAIN = """
import os, pathlib, re, socket, sys

style = pathlib.Path(os.environ["HOME"], "GtpStyle", "ApplicationWindow.qml").read_text()
port = int(re.search(r"127\\.0\\.0\\.1:(\\d+)", style)[1])
for said in ("ready/0/", "points/1/7", "points/2/-3"):
    socket.create_connection(("127.0.0.1", port)).close()
    door = socket.create_connection(("127.0.0.1", port))
    door.sendall(f"GET /{said} HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n".encode())
    assert door.makefile("rb").read().endswith(b"0")
"""


def test_a_connection_that_asks_nothing_is_not_answered(tmp_path):
    """Qt opens one now and then."""
    shown = tmp_path / "shown"
    shown.write_text(f"#!{sys.executable}\n{IN_VAIN}")
    shown.chmod(0o755)
    with Client([sys.executable, window.__file__, str(shown), "--level", "1"]) as client:
        assert [client.ask("final_score") for _ in range(2)] == ["B+7", "W+3"]


# ---- runs


def test_a_game_and_a_run_mean_the_same_as_the_run(ludus, monkeypatch, tmp_path):
    (tmp_path / "config.toml").write_text('game = "tictactoe"\n')
    run, asked = str(tmp_path), []
    monkeypatch.setattr("ludus.commands.eval.evaluate_run", lambda *told: asked.append(told))
    flags = ["--against", "random", "--games", "20", "--think", "100ms"]
    assert ludus("eval", "tictactoe", "--run", run, *flags)[0] == ludus("eval", run, *flags)[0] == 0
    assert asked[0] == asked[1] and "100ms" in asked[0]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["eval", "blokus", "--run", "."], "is a run of tictactoe, not of blokus"),
        (["gtp", "blokus", "--run", "."], "is a run of tictactoe, not of blokus"),
        (["gtp", "blokus", "--run", "nowhere"], "nowhere is not a run"),
        (["gtp", "tictactoe", "--run", "."], "tictactoe has no text protocol"),
        (["gtp", "blokus", "--run", ".", "--bot", "greedy"], "choose --run or --bot"),
        (["gtp", "blokus", "--bot", "deepblue"], "blokus has no bot 'deepblue'"),
    ],
)
def test_runs_and_games_that_do_not_fit_are_one_line(ludus, tmp_path, args, said):
    (tmp_path / "config.toml").write_text('game = "tictactoe"\n')
    code, _, err = ludus(*args)
    assert code == 2 and said in one_line(err)


def test_a_run_plays_as_challenger_and_as_engine(ludus, trained):
    folder, _ = trained("blokus", decisions=1, workers=0)
    engine = shlex.join(
        [sys.executable, "-m", "ludus.cli", "gtp", "blokus", "--run", str(folder), "--think", "4"]
    )
    match = ["--against", f"gtp:{engine}", "--think", "4", "--games", "4"]
    code, out, err = ludus("eval", "blokus", "--run", str(folder), *match)
    assert code == 0, err
    # Both always take their first choice, so each pair is one game twice.
    assert re.search(r"\+0\.00 ± 0\.00", out) and "won 50.0 ± 0.0 % of games" in " ".join(out.split())
    with Client(shlex.split(engine)) as client:
        with pytest.raises(Failure, match=r"refused `set_game Blokus`: .* can't play with board=classic"):
            client.ask("set_game Blokus")
        assert client.ask("genmove b") != "pass"
