"""Matches: how sure their results are, and that no two of their games are the same."""

import math
import re

import numpy as np
import pytest
from rich.console import Console

from commandline import one_line
from ludus import api, games, match
from ludus.core import statistics
from ludus.core.duel import Duel

TABLE = {
    1: 12.7062,
    2: 4.3027,
    3: 3.1824,
    4: 2.7764,
    9: 2.2622,
    30: 2.0423,
    60: 2.0003,
    120: 1.9799,
    1000: 1.9623,
}


@pytest.mark.parametrize("freedom", TABLE)
def test_students_t_is_as_in_tables(freedom):
    assert statistics.t_quantile(freedom) == pytest.approx(TABLE[freedom], abs=5e-5)


def test_students_t_falls_to_the_normal_quantile_without_a_step():
    found = [statistics.t_quantile(freedom) for freedom in range(1, 400)]
    assert all(a > b for a, b in zip(found, found[1:], strict=False))
    assert statistics.t_quantile(10**9) == pytest.approx(1.959964)
    exact_and_expanded = statistics.EXACT_UP_TO, statistics.EXACT_UP_TO + 1
    assert np.diff([statistics.t_quantile(n) for n in exact_and_expanded])[0] == pytest.approx(
        -6e-5, abs=1e-5
    )


@pytest.mark.parametrize("deals", [2, 3, 10, 100])
def test_the_interval_holds_the_truth_in_95_of_100_matches(deals):
    points = np.random.default_rng(deals).normal(0.3, 2.0, (4000, deals, 2))
    duels = [Duel("a", "b", one, one, {}) for one in points]
    inside = np.mean([abs(duel.mean - 0.3) <= duel.margin for duel in duels])
    assert inside == pytest.approx(0.95, abs=0.015)  # four standard errors


def test_one_deal_has_no_interval(ludus):
    assert Duel("a", "b", np.ones((1, 2)), np.ones((1, 2)), {}).margin == math.inf
    code, out, err = ludus("eval", "tictactoe", "--bots", "greedy", "random", "--games", "1")
    assert code == 0, err
    assert "One deal has no confidence interval" in out and "±" not in out and "nan" not in out


# ---- openings


def test_chance_is_found_in_deals():
    for game in ("tictactoe", "connect4", "blokus"):
        assert match.is_without_chance(games.open(game).rules)
    assert not match.is_without_chance(games.open("ofc").rules)


DICE_GAME = '''
"""Tic-tac-toe in which chance decides who has won: no deal shows it."""
from ludus.core.dice import below
from ludus.games import tictactoe
from ludus.games.tictactoe.rules import TicTacToe

class Dice(TicTacToe):
    def play(self, states, actions, rng):
        super().play(states, actions, rng)
        for i in range(len(states)):
            if states["winner"][i]:
                states["winner"][i] = 1 + below(rng[i], 2)

class Game(tictactoe.Game):
    def make_rules(self, options):
        return Dice()
'''


def test_chance_in_moves_alone_needs_no_opening(tmp_path, monkeypatch):
    (tmp_path / "dice_game.py").write_text(DICE_GAME)
    monkeypatch.syspath_prepend(tmp_path)
    game = games.open("dice_game")
    assert not match.is_without_chance(game.rules) and match.opening_of(game, None) == 0


def test_matches_without_chance_begin_with_random_moves():
    """Two players that always do the same, in a game that doesn't say how its matches begin."""
    game = games.open("tictactoe")
    assert match.opening_of(game, None) == 2 and match.opening_of(game, 0) == 0
    assert match.opening_of(games.open("ofc"), None) == 0
    duel = match.duel(game, "greedy", "greedy", 40, cores=1)
    assert len(np.unique(duel.points, axis=0)) > 1


# ---- what people see


def test_progress_goes_to_the_end():
    shares = []
    match.duel(games.open("tictactoe"), "greedy", "random", 60, 0, 1, None, shares.append)
    assert shares == sorted(shares) and len(shares) > 3 and shares[-1] == 1.0


def test_progress_at_a_table_goes_to_the_end(ludus, monkeypatch):
    from ludus.commands import eval as command

    shares = []
    match.bot_alone(games.open("gym:CartPole-v1"), "random", 20, 0, shares.append)
    assert shares == sorted(shares) and len(shares) > 3 and shares[-1] == 1.0
    told = {"decisions": 1, "workers": "0", "eval_every": 0}
    run = api.train("zoo:classic/tictactoe_v3", preset="test", run="run", **told)
    screen = Console(force_terminal=True, force_interactive=True, color_system=None, _environ={})
    monkeypatch.setattr(command, "console", screen)
    assert re.search(r"run - random.* 100 %", ludus("eval", str(run), "--games", "8")[1])
    assert re.search(
        r"random.* 100 %", ludus("eval", "gym:CartPole-v1", "--bots", "random", "--games", "4")[1]
    )


def shown(duels, monkeypatch, width: int) -> str:
    from ludus.commands import eval as command

    monkeypatch.setattr(command.console, "_width", width)
    with command.console.capture() as captured:
        command._show(games.open("ofc"), duels)
    return captured.get()


STATS = dict.fromkeys(games.open("ofc").rules.spec.stats, 1.0)


@pytest.mark.parametrize("width", [80, 160])
def test_names_are_never_broken(monkeypatch, width):
    name, points = "a-run-with-a-name-that-is-longer-than-most", np.arange(8.0).reshape(4, 2)
    out = shown(
        [Duel(name, f"runs/{name}-{i}", points, points / 8, STATS) for i in (0, 1)], monkeypatch, width
    )
    assert sum(f"{name}-1" in line for line in out.splitlines()) == 2
    assert "…" not in out and "foul" in out and "seeds of their own" in out


def test_identical_deals_are_told(monkeypatch):
    out = shown([Duel("a", "b", np.ones((5, 2)), np.ones((5, 2)), STATS)], monkeypatch, 80)
    assert "± 0.00" in out and "Every deal ended alike in a - b" in out


def test_what_is_not_a_run_is_said_so(ludus, tmp_path):
    (tmp_path / "empty").mkdir()
    for words, said in (
        (("eval", "runs/nothing"), "runs/nothing does not exist; `ludus runs` lists"),
        (("eval", "empty"), "empty is not a run: it has no config.toml"),
        (("eval", "tictactoe", "--bots", "runs/nothing", "random"), "there is no run in runs/nothing"),
        (("play", "tictactoe", "--run", "runs/nothing"), "runs/nothing is not a run"),
    ):
        code, _, err = ludus(*words)
        assert code == 2 and said in one_line(err)
