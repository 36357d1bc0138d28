"""A table in another process plays as one here does, and outlives the death of its process."""

import os
import signal
import time

import numpy as np
import pytest

from ludus import games, processes
from ludus.core.errors import Failure
from ludus.training import remote_table
from ludus.training.remote_table import RemoteTable


@pytest.fixture
def remote(monkeypatch):
    """Make a remote table that is closed at the end."""
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    made = []

    def make(game: str, rows: int = 4) -> RemoteTable:
        made.append(RemoteTable(processes.make_context(), games.open(game), rows))
        return made[-1]

    yield make
    for table in made:
        table.close()


def assert_same(first, second) -> None:
    for name in ("obs", "legal", "seat", "reward", "ended", "truncated"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    assert (first.finished is None) == (second.finished is None)
    for mine, other in zip(first.finished or (), second.finished or (), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert (first.last_obs is None) == (second.last_obs is None)
    for mine, other in zip(first.last_obs or (), second.last_obs or (), strict=True):
        np.testing.assert_array_equal(mine, other)


GAMES = ["gym:CartPole-v1", "gym:Pendulum-v1", "zoo:classic/connect_four_v3", "cut_env:Cut"]


@pytest.mark.parametrize("game", GAMES)
def test_it_plays_the_same_games_as_a_table_here(game, remote):
    far, near = remote(game), games.open(game).table(4)
    rng = np.random.default_rng(0)
    assert_same(far.reset(3), turn := near.reset(3))
    for _ in range(210):  # longer than Pendulum's limit of 200
        if near.spec.box:
            actions = rng.uniform(-2, 2, (4, 1)).astype(np.float32)
        else:
            actions = np.array([rng.choice(np.flatnonzero(row)) for row in turn.legal], np.int32)
        assert_same(far.step(actions), turn := near.step(actions))
    near.close()


def test_some_rows_can_move_alone(remote):
    far, near = remote("gym:CartPole-v1"), games.open("gym:CartPole-v1").table(4)
    far.reset(1), near.reset(1)
    actions, rows = np.array([1, 0], np.int32), np.array([0, 2])
    assert_same(far.step(actions, rows), near.step(actions, rows))
    near.close()


def test_when_its_process_is_killed_the_games_are_cut_off_and_others_begin(remote):
    table = remote("gym:CartPole-v1")
    before = table.reset(1).obs.copy()
    os.kill(table.pid, signal.SIGKILL)
    time.sleep(0.1)
    turn = table.step(np.zeros(4, np.int32))
    assert turn.truncated.all() and not turn.ended.any() and table.replaced == 1
    assert turn.last_obs is None  # what the action in between would have led to, nobody knows
    assert not np.array_equal(turn.obs, before)
    assert not table.step(np.zeros(4, np.int32)).truncated.any()


def test_a_process_that_hangs_is_replaced(remote, monkeypatch):
    table = remote("gym:CartPole-v1")
    table.reset(1)
    table.step(np.zeros(4, np.int32))
    monkeypatch.setattr(remote_table, "PATIENCE_S", 0.3)
    os.kill(table.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    assert table.step(np.zeros(4, np.int32)).truncated.all()
    assert time.monotonic() - stopped < 20


def test_a_game_that_always_fails_ends_with_its_own_words(remote):
    table = remote("broken_envs:Raising")
    with pytest.raises(Failure, match="the bridge is out"):
        table.reset(0)
        for _ in range(20):
            table.step(np.zeros(4, np.int32))
