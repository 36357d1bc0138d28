"""Console games in a process of their own, killed and not."""

import os
import signal
import time

import numpy as np
import psutil
import pytest

pytest.importorskip("stable_retro")
pytest.importorskip("cv2")

from ludus import processes
from ludus.core.errors import Failure, Usage
from ludus.games.retro import child
from ludus.games.retro.child import ChildTable
from ludus.games.retro.opening import open_table
from ludus.games.retro.options import Options
from ludus.games.retro.table import RetroTable
from test_retro import OURS, digest, opened, random_actions, trace


@pytest.fixture
def expected():
    """What a table in this process gives."""
    options = dict(rows=3, sticky=0.2, states="all", max_steps=30)
    with opened(**options) as table:
        assert isinstance(table, RetroTable)
        actions = random_actions(table, 80)
        first = digest(table.reset(4).obs)
        return options, actions, first, trace(table, actions)


def test_child_plays_the_same_games(expected):
    options, actions, first, lines = expected
    with opened(separate=True, **options) as table:
        assert isinstance(table, ChildTable)
        assert digest(table.reset(4).obs) == first
        assert trace(table, actions) == lines


def test_killed_emulator_comes_back_with_its_games(expected):
    options, actions, _first, lines = expected
    with opened(separate=True, **options) as table:
        table.reset(4)
        seen = []
        for t, chosen in enumerate(actions):
            if t % 20 == 10:
                os.kill(table.pid, signal.SIGKILL)
            seen += trace(table, [chosen])
        assert table.replaced == 4
        assert seen == lines


def test_emulator_killed_in_the_middle_of_a_step(expected, monkeypatch):
    options, actions, _first, lines = expected
    answer, shares = ChildTable._answer, {5: 0.0, 25: 0.5, 45: 0.9}  # of a step's time, by the step
    with opened(separate=True, **options) as table:
        table.reset(4)
        start = time.perf_counter()
        seen = trace(table, actions[:20])
        step_s = (time.perf_counter() - start) / 20

        def kill_and_answer(self, patience_s=None):
            monkeypatch.setattr(ChildTable, "_answer", answer)
            time.sleep(shares[t] * step_s)
            os.kill(self.pid, signal.SIGKILL)
            return answer(self, patience_s)

        for t, chosen in enumerate(actions[20:]):
            if t in shares:
                monkeypatch.setattr(ChildTable, "_answer", kill_and_answer)
            seen += trace(table, [chosen])
        assert table.replaced == 3
        assert seen == lines


def test_emulator_killed_again_before_it_has_its_games_back(expected, monkeypatch):
    options, actions, _first, lines = expected
    exchange, killed = ChildTable._exchange, []

    def exchange_or_kill(self, message):
        if message[0] == "restore" and len(killed) < 2:
            killed.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        return exchange(self, message)

    monkeypatch.setattr(ChildTable, "_exchange", exchange_or_kill)
    with opened(separate=True, **options) as table:
        table.reset(4)
        seen = trace(table, actions[:10])
        os.kill(table.pid, signal.SIGKILL)
        seen += trace(table, actions[10:])
        assert len(killed) == 2
        assert table.replaced == 3
        assert seen == lines


def test_emulator_that_always_dies_is_one_clear_line(monkeypatch):
    exchange = ChildTable._exchange

    def kill(self, message):
        if message[0] == "step":
            os.kill(self.pid, signal.SIGKILL)
        return exchange(self, message)

    with opened(separate=True) as table:
        table.reset(0)
        monkeypatch.setattr(ChildTable, "_exchange", kill)
        with pytest.raises(Failure, match=r"the emulator died \(exit code -9\), 4 times in a row"):
            table.step(np.zeros(2, np.int32))


def test_hung_emulator_is_replaced(expected, monkeypatch):
    options, actions, _first, lines = expected
    monkeypatch.setattr(child, "PATIENCE_S", 3.0)
    with opened(separate=True, **options) as table:
        table.reset(4)
        seen = trace(table, actions[:10])
        os.kill(table.pid, signal.SIGSTOP)
        seen += trace(table, actions[10:])
        assert table.replaced == 1
        assert seen == lines


def test_second_table_of_a_process_gets_a_child_and_snapshots_fit_both():
    with opened(rows=2) as first, opened(rows=2) as second:
        assert isinstance(first, RetroTable)
        assert isinstance(second, ChildTable)
        actions = random_actions(first, 60)
        first.reset(1)
        second.reset(2)
        assert trace(second, actions[:30]) != trace(first, actions[:30])
        second.restore(first.snapshot())
        after = trace(first, actions[30:])
        assert trace(second, actions[30:]) == after
        first.restore(second.snapshot())
        assert first.read(0, "score", "lives") == second.read(0, "score", "lives")
        assert (first.memory(1) == second.memory(1)).all()
        assert first.screen(1).shape == second.screen(1).shape == (224, 240, 3)


def test_child_refuses_in_one_line():
    with pytest.raises(Usage, match="no state 'Nowhere'"):
        open_table(OURS, 1, separate=True, states=["Nowhere"])
    with opened(separate=True) as table:
        table.reset(0)
        with pytest.raises(Failure, match=r"action 9 in row 0 is not in 0\.\.5"):
            table.step(np.array([9, 0], np.int32))
        assert table.step(np.zeros(2, np.int32)).obs.any()  # it goes on


def test_nothing_is_left_behind():
    shared = "/dev/shm"
    before = set(os.listdir(shared)) if os.path.isdir(shared) else set()
    table = ChildTable(OURS, 2, Options())
    pid = table.pid
    table.reset(0)
    assert not {name for name in set(os.listdir(shared)) - before if name.startswith("ludus-retro")}
    table.close()
    assert not psutil.pid_exists(pid)


def _work(pipe):
    """As a worker of a pool does: a daemon, whose emulator is in a process of its own."""
    table = ChildTable(OURS, 2, Options())
    table.reset(0)
    pipe.send((table.pid, digest(table.step(np.zeros(2, np.int32)).obs)))
    time.sleep(600)


def test_emulator_of_a_worker_ends_with_it():
    context = processes.make_context()
    ours, theirs = context.Pipe()
    worker = context.Process(target=_work, args=(theirs,), daemon=True)
    worker.start()
    assert ours.poll(60)
    emulator, seen = ours.recv()
    with opened() as table:
        table.reset(0)
        assert digest(table.step(np.zeros(2, np.int32)).obs) == seen
    os.kill(worker.pid, signal.SIGKILL)
    patience = time.monotonic() + 20
    while psutil.pid_exists(emulator) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not psutil.pid_exists(emulator)
