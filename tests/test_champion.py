"""The trained agents that come with games: found by the name `champion` wherever players are named."""

from pathlib import Path

import numpy as np
import pytest

from commandline import one_line
from ludus import games, match, search
from ludus.agent import load
from ludus.api import evaluate, train
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.search import Thinker
from ludus.store.player import full_name, parse_player
from ludus.store.run import read_config

WITH = ["blokus", "connect4", "ofc"]
DUO = str(games.open("blokus").champion)


def test_games_know_their_champions():
    assert [name for name in games.names() if games.open(name).champion] == WITH


@pytest.mark.parametrize("name", [*WITH, "tictactoe"])
def test_people_are_told_of_it(name, ludus):
    code, out, _ = ludus("games", name)
    assert code == 0 and ("--against champion" in out) == (name in WITH)


def test_rules_that_differ_may_have_a_champion_of_their_own():
    duo, classic = games.open("blokus", board="duo"), games.open("blokus", board="classic")
    assert read_config(classic.champion).switches == {"board": "classic"}
    assert str(duo.champion) == DUO and read_config(duo.champion).switches == {}
    assert games.open("ofc", seats=2).champion == games.open("ofc").champion  # the only one


def test_an_environment_has_none():
    assert games.open("gym:CartPole-v1").champion is None


@pytest.mark.parametrize(
    ("name", "switches"), [*((name, {}) for name in WITH), ("blokus", {"board": "classic"})]
)
def test_a_champion_is_an_agent_that_can_be_loaded(name, switches):
    agent = load(games.open(name, **switches).champion, think="4")
    states, streams = agent.game.rules.blank(2), seeds.rows(0, 2)
    agent.game.rules.deal(states, streams)
    legal = np.zeros((2, agent.spec.actions), bool)
    agent.game.rules.legal(states, legal)
    assert legal[np.arange(2), agent.choose(states, streams)].all()


def test_its_name_is_read_like_a_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path("/game/champion")
    assert parse_player("champion", own) == ("champion", own, "", "")
    assert parse_player("champion+64", own) == ("champion", own, "", "64")
    assert parse_player("champion@best+100ms", own) == ("champion", own, "best", "100ms")
    assert parse_player("champion+64") == ("champion", None, "", "64")
    assert parse_player("champions", own).run is None


def test_a_run_that_is_called_champion_is_meant_by_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("champion").mkdir()
    Path("champion/config.toml").write_text("")
    assert parse_player("champion", Path("/game/champion")).run == Path("champion")


def test_a_name_that_would_mean_another_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "a+64"):
        Path(folder).mkdir()
        Path(folder, "config.toml").write_text("")
    assert full_name("a", "best", "100ms") == "a@best+100ms"
    with pytest.raises(Usage, match="a\\+64 is the folder of another run"):
        full_name("a", think="64")


def test_ofc_champion_beats_random(ludus, one_core):
    """By 35 ± 4 points a hand in these deals."""
    duel = match.duel(games.open("ofc"), "champion+0", "random", 20, seed=1, cores=1)
    assert duel.mean / 10 > 20
    code, out, err = ludus("eval", "ofc", "--bots", "champion+0", "random", "--hands", "60")
    assert code == 0 and "ranking: champion+0 > random" in out, err


def test_a_run_is_evaluated_against_the_champion(ludus, one_core, tmp_path):
    few = {"decisions": 64, "rows": 2, "steps": 8, "eval_every": "0", "workers": "0"}
    train("ofc", preset="test", run=tmp_path / "run", **few)
    code, out, err = ludus("eval", "run", "--against", "champion+0", "--hands", "30")
    assert code == 0 and "run - champion+0: won" in out, err
    code, out, err = ludus(
        "eval", "run", "--against", "champion", "champion+2", "--think", "0", "--hands", "30"
    )
    assert code == 0 and "run+0 - champion+0: won" in out and "run+0 - champion+2: won" in out, err
    words = ("eval", "ofc", "--bots", "champion+2", "champion", "--think", "0", "--hands", "30")
    code, out, err = ludus(*words)
    assert code == 0 and "champion+2 - champion+0: won" in out, err
    (duel,) = evaluate(tmp_path / "run", "champion", games=3)
    assert duel.opponent == "champion" and duel.points.size == 3


def test_people_play_it(ludus):
    code, out, err = ludus("play", "ofc", "--against", "champion", "--seed", "1", typed="q\n")
    assert code == 0 and "champion the others" in out and "You left the game" in out, err
    code, out, err = ludus("play", "blokus", "--against", "champion", "--think", "2", typed="hint\nq\n")
    assert code == 0 and "champion+2 the others" in out and "hint: " in out, err


def test_it_thinks_in_blokus(ludus):
    assert isinstance(match.player("champion+8", games.open("blokus")), Thinker)
    code, out, err = ludus(
        "analyze", "blokus", "--bot", "champion", "--think", "2", "--moves", "e8,d9,e9,f9,e10"
    )
    assert code == 0 and "after the last move" in out, err


def test_it_plays_by_the_text_protocol(ludus, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("genmove b\nset_game Blokus\ngenmove 1\nquit\n"))
    code, out, err = ludus("gtp", "blokus", "--bot", "champion", "--think", "2")
    moved, changed, moved_again = out.split("\n\n")[:3]
    assert code == 0 and moved.startswith("= ") and "," in moved, err
    assert changed.strip() == "=" and "a20" in moved_again  # Classic has a champion of its own


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("play", "ofc", "--against", "champion", "--set", "seats=2"),
            "champion was trained with seats=3, so",
        ),
        (("eval", "ofc", "--bots", "champion", "greedy", "--set", "seats=2"), "can't play with seats=2"),
        (("eval", "blokus", "--bots", DUO, "greedy", "--set", "board=classic"), "with board=classic"),
        (("gtp", "blokus", "--run", DUO, "--set", "board=classic"), "was trained with board=duo"),
        (("analyze", "blokus", "--run", DUO, "--set", "board=classic"), "board=classic"),
        (("eval", "tictactoe", "--bots", "champion", "random"), "tictactoe has no bot 'champion'"),
        (
            ("eval", "ofc", "--bots", "champ", "random"),
            "choose from random, greedy, rollout, expert, champion",
        ),
        (("eval", "ofc", "--bots", "champion+1h", "random"), "neither a number of positions"),
        (("eval", "ofc", "--bots", "champion@7", "random"), "has no weights of '7'"),
    ],
)
def test_what_it_cannot_do_is_one_line(words, said, ludus):
    code, _, err = ludus(*words)
    assert code == 2 and said in one_line(err), err


def test_what_a_search_compiles_is_ready_before_the_first_move(monkeypatch):
    """Else a second of thinking would be a second of compiling."""
    asked: list[str] = []
    for name in ("descend", "descend_apart", "follow_games"):
        real = getattr(search, name)
        monkeypatch.setattr(search, name, lambda *args, n=name, real=real: asked.append(n) or real(*args))
    match.player("champion+1s", games.open("blokus"))
    assert set(asked) == {"descend", "descend_apart", "follow_games"}
