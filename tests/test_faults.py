"""What goes wrong around a training: children left behind, processes that stop, slow and faulty games."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from commandline import one_line
from ludus import algos, games, machine, match, processes
from ludus.config import overlay, resolve
from ludus.core.errors import Failure, Stopped, Usage
from ludus.evaluation import Evaluator
from ludus.games.adapters import GymTable
from ludus.store import checkpoint
from ludus.store.run import EVENTS, read_config, read_lines
from ludus.training import build, faults, loop
from ludus.training.build import open_game
from ludus.training.layout import lay_out
from ludus.training.loop import train
from ludus.training.meter import Meter
from ludus.training.pools import process
from ludus.training.remote_table import RemoteTable
from ludus.training.stop import Stop
from trainings import Listeners, gone, limit, ludus_command, wait_until, workers_of

POOLS = [{"workers": "2"}, {"workers": "0"}, {"workers": "2", "inference": "central", "device": "cpu"}]


def events(folder: Path, what: str) -> list[dict]:
    return [event for event in read_lines(folder / EVENTS) if event["event"] == what]


def children(pids: Path) -> dict[int, list[psutil.Process]]:
    """What `broken_envs.Family` has started in each worker, where it still is."""
    found: dict[int, list[psutil.Process]] = {}
    for line in pids.read_text().splitlines() if pids.exists() else []:
        worker, child = map(int, line.split())
        if psutil.pid_exists(child):
            found.setdefault(worker, []).append(psutil.Process(child))
    return found


def all_of(found: dict[int, list[psutil.Process]]) -> list[psutil.Process]:
    return [child for some in found.values() for child in some]


# ---- nothing is left behind


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_what_an_environment_started_ends_with_the_training(more, trained, importable, tmp_path):
    pids, alive = tmp_path / "pids", []
    trained(
        "broken_envs:Family", lambda metrics: alive.extend(all_of(children(pids))),
        switches={"pids": str(pids)}, rows=2, decisions=300, **more,
    )  # fmt: skip
    assert len(set(alive)) >= 4 and wait_until(lambda: gone(alive), 5)


def test_what_an_environment_started_ends_with_a_worker_or_learner_that_is_killed(tmp_path):
    pids = tmp_path / "pids"
    words = f"train broken_envs:Family --set pids={pids} --preset test --rows 2 --workers 2 --log-s 0.1"
    command = ludus_command(*words.split(), "--decisions", "1000000000", cwd=Path(__file__).parent)
    command["args"] += ["--run", str(tmp_path / "run")]
    training = subprocess.Popen(**command, stdout=subprocess.PIPE)
    try:
        assert any("decisions" in line for line in iter(training.stdout.readline, ""))
        one, other = workers_of(psutil.Process(training.pid))
        started = children(pids)[one.pid]
        assert len(started) == 4
        one.kill()
        assert wait_until(lambda: gone(started), 20)
        assert wait_until(lambda: len(workers_of(psutil.Process(training.pid))) == 2, 20)
        left = children(pids)[other.pid]
        other.suspend()
        training.kill()
        assert wait_until(lambda: gone([other, *left]), 20)
    finally:
        training.kill()
        training.wait()
        for child in all_of(children(pids)):
            child.kill()


def test_what_a_tables_process_started_ends_with_it(importable, tmp_path):
    game = games.open("broken_envs:Family", pids=str(tmp_path / "pids"))
    table = RemoteTable(processes.make_context(), game, 1)
    table.reset(0)
    started, killed = children(tmp_path / "pids")[table.pid], table.pid
    os.kill(table.pid, signal.SIGKILL)
    table.step(np.zeros(1, np.int32))
    assert table.pid != killed and len(started) == 2 and wait_until(lambda: gone(started), 5)
    after = children(tmp_path / "pids")[table.pid]
    table.close()
    assert wait_until(lambda: gone(after), 5)


@pytest.fixture
def evaluated(tmp_path, fork_server, importable):
    """Train with evaluations: (folder, every reading of the metrics)."""

    def run(game: str, **changes):
        told = {"run": str(tmp_path / "run"), "log_s": 0.0, "rows": 2, "eval_games": 16, **changes}
        config = overlay(resolve(game, "test"), told, "test")
        readings, evaluator = [], Evaluator(config)
        try:
            return train(config, Listeners(readings.append), evaluator), readings
        finally:
            evaluator.close()

    return run


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_what_games_of_a_training_and_its_evaluation_started_ends_with_it(more, evaluated, tmp_path):
    pids = tmp_path / "pids"
    _, readings = evaluated(
        "pair_envs:FamilyPair", decisions=300, eval_every=100, sync=True, switches={"pids": str(pids)}, **more
    )
    assert len([line for line in readings if "eval/random/games" in line]) >= 2
    assert len(pids.read_text().splitlines()) >= 2 * (16 + 2 * 1)  # evaluated, and played in one worker
    assert wait_until(lambda: gone(all_of(children(pids))), 5)


def test_what_games_of_a_match_started_ends_with_it(evaluated, ludus, tmp_path):
    pids = tmp_path / "pids"
    told = {"workers": "0", "decisions": 1, "eval_every": 0, "switches": {"pids": str(pids)}}
    folder, _ = evaluated("pair_envs:FamilyPair", **told)
    pids.unlink()
    code, _, err = ludus("eval", str(folder), "--against", "random", "--games", "8")
    assert code == 0, err
    assert len(pids.read_text().splitlines()) == 2 * 8 and wait_until(lambda: gone(all_of(children(pids))), 5)
    pids.unlink()
    match.bot_alone(games.open("broken_envs:Family", pids=str(pids)), "random", 4, 0)
    assert len(pids.read_text().splitlines()) >= 8 and wait_until(lambda: gone(all_of(children(pids))), 5)


def test_only_what_is_started_inside_belongs_to_a_family():
    family, sleep = processes.Family(), ["sleep", "1000"]
    others = [subprocess.Popen(sleep)]
    with family.joined():
        ours = subprocess.Popen(sleep, env={})  # without a mark
        lost = subprocess.check_output(["sh", "-c", "setsid sleep 1000 >&- & echo $!"])  # without its parent
    others.append(subprocess.Popen(sleep))
    try:
        family.end()
        assert wait_until(lambda: gone([psutil.Process(ours.pid)]), 5)
        assert wait_until(lambda: not psutil.pid_exists(int(lost)) or gone([psutil.Process(int(lost))]), 5)
        assert not any(gone([psutil.Process(other.pid)]) for other in others)
    finally:
        for other in others:
            other.kill()


def test_a_failed_match_leaves_no_process():
    resource_tracker.ensure_running()  # it stays
    before = set(psutil.Process().children())
    with pytest.raises(Failure, match="no bot"):
        match.duel(games.open("tictactoe"), "random", "nobody", 200, cores=2)
    assert wait_until(lambda: gone(list(set(psutil.Process().children()) - before)), 5)


# ---- threads


def test_every_process_of_a_match_has_one_thread_for_its_matrix_products(monkeypatch):
    seen: dict[int, dict[str, str]] = {}
    over, before = threading.Event(), dict(os.environ)
    known = {child.pid for child in psutil.Process().children()}

    def look() -> None:
        while not over.wait(0.02):
            for child in psutil.Process().children():
                if child.pid not in known:
                    try:
                        is_ours = "multiprocessing.spawn" in " ".join(child.cmdline())
                        if is_ours and (environ := child.environ()):  # one that just ended has none any more
                            seen[child.pid] = environ
                    except psutil.Error:
                        pass

    watch = threading.Thread(target=look)
    watch.start()
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    match.duel(games.open("tictactoe"), "random", "random", 200)
    over.set()
    watch.join()
    assert len(seen) == 2
    assert all(processes.ONE_THREAD.items() <= environ.items() for environ in seen.values())
    assert dict(os.environ) == before


def test_every_worker_has_one_thread_for_its_matrix_products(trained):
    seen: list[dict] = []
    trained(
        "tictactoe", lambda metrics: seen.extend(w.environ() for w in workers_of(psutil.Process())),
        workers="2", decisions=2_000,
    )  # fmt: skip
    assert seen and all(processes.ONE_THREAD.items() <= environ.items() for environ in seen)


def test_a_match_takes_the_cores_that_may_be_used(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 1)
    monkeypatch.setattr(match, "ProcessPoolExecutor", None)
    assert match.duel(games.open("tictactoe"), "random", "random", 200).points.shape == (200, 2)


def test_cores_are_counted_in_one_place():
    """`os.cpu_count` also counts cores that a container or `taskset` keeps from us."""
    package = Path(machine.__file__).parent
    assert [file.name for file in package.rglob("*.py") if "cpu_count" in file.read_text()] == ["machine.py"]


@pytest.mark.parametrize(("there", "taken"), [(("spawn",), "spawn"), (("spawn", "forkserver"), "forkserver")])
def test_processes_start_as_the_system_can(there, taken, monkeypatch):
    known = {name: context for name, context in processes.CONTEXTS.items() if name in there}
    monkeypatch.setattr(processes, "CONTEXTS", known)
    assert processes.make_context("auto").get_start_method() == taken
    with pytest.raises(Usage, match="--start-method spawn"):
        processes.make_context("fork")


# ---- stopping


def test_a_worker_that_is_stopped_while_the_learner_saves_is_replaced(trained, monkeypatch):
    monkeypatch.setattr("ludus.training.pools.process.ANSWER_S", 2.0)
    stopped: list[psutil.Process] = []

    def stop_one(metrics: dict) -> None:
        if not stopped and metrics["decisions"] >= 2_000:
            stopped.append(workers_of(psutil.Process())[0])
            stopped[0].suspend()

    often = {"every_s": 0.0, "every_decisions": 500}
    folder, readings = trained(
        "tictactoe", stop_one, workers="2", decisions=6_000, sync=True, checkpoints=often
    )
    assert readings[-1]["decisions"] >= 6_000 and readings[-1]["workers/replaced"] == 1
    assert int(checkpoint.listed(folder)[-1].name) == readings[-1]["decisions"]
    (event,) = events(folder, "worker replaced")
    assert "did not answer" in event["reason"]
    assert gone(stopped)


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_the_clock_ends_a_training_inside_a_block(more, trained, importable, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(Failure, match=r"nothing was learned within --seconds 1 .*block \d+ %"):
        trained("broken_envs:Slow", seconds=1.0, **more)  # a block takes 25 s
    assert time.monotonic() - begun < limit(15)


@pytest.mark.parametrize("more", POOLS[::2], ids=str)
def test_the_clock_ends_a_training_whose_games_hang(more, trained, importable, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(Failure, match="nothing was learned within --seconds 1"):
        trained("broken_envs:Slow", seconds=1.0, switches={"first": 1e6}, **more)
    assert time.monotonic() - begun < limit(15)


@pytest.mark.parametrize("asked", [False, True])
def test_a_stop_does_not_wait_for_an_evaluation_that_hangs(asked, evaluated, tmp_path, monkeypatch):
    for module in ("loop", "stop"):
        monkeypatch.setattr(f"ludus.training.{module}.PATIENCE_S", 0.2)
    bed = tmp_path / "bed"

    def interrupt() -> None:
        assert wait_until(bed.exists, 60)
        os.kill(os.getpid(), signal.SIGINT)

    if asked:
        threading.Thread(target=interrupt, daemon=True).start()
    else:  # the time is over once the evaluation sleeps
        monkeypatch.setattr(Meter, "seconds", lambda meter: 100.0 if bed.exists() else 1.0)
    told = {"workers": "1", "eval_every": 1, "switches": {"bed": str(bed)}}
    with pytest.raises(Stopped) if asked else contextlib.nullcontext():
        evaluated("pair_envs:SleepingPair", **told, **({} if asked else {"seconds": 50.0}))
    assert bed.exists() and checkpoint.has_learned(tmp_path / "run")


def test_an_evaluation_whose_games_hang_is_given_up_and_the_training_goes_on(
    evaluated, tmp_path, monkeypatch
):
    monkeypatch.setattr("ludus.training.remote_table.PATIENCE_S", 0.2)
    monkeypatch.setattr(faults, "START_ROW_S", 0.05)
    monkeypatch.setattr("ludus.training.remote_table.TRIES", 1)
    told = {"workers": "1", "decisions": 2_000, "eval_every": 1, "sync": True}
    folder, readings = evaluated("pair_envs:SleepingPair", switches={"bed": str(tmp_path / "bed")}, **told)
    assert readings[-1]["decisions"] >= 2_000
    (event,) = events(folder, "evaluation failed")
    assert "hung" in event["reason"]


def test_the_first_ctrl_c_is_told_while_a_game_hangs_and_the_second_ends_at_once():
    told = threading.Event()
    with pytest.raises(KeyboardInterrupt), Stop(told.set) as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.asked == "SIGINT" and told.wait(10)
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_ctrl_c_is_heard_inside_a_block(more, trained, importable, monkeypatch):
    monkeypatch.setattr("ludus.training.stop.PATIENCE_S", 0.2)
    said: list[str] = []

    def interrupt(text: str) -> None:
        if "block" in text and not said:
            said.append(text)
            signal.raise_signal(signal.SIGINT)

    begun = time.monotonic()
    with pytest.raises(Stopped, match="stopped at 0 decisions"):
        trained("broken_envs:Slow", status=interrupt, **more)
    assert time.monotonic() - begun < limit(15)


@pytest.mark.parametrize(
    ("game", "more"),
    [
        ("tictactoe", {"ppo": {"epochs": 10**9, "target_kl": 0.0}}),
        ("connect4", {"alphazero": {"replay_ratio": 1e9, "learning_starts": 64}}),
    ],
    ids=str,
)
@pytest.mark.parametrize("sync", [False, True])
def test_a_stop_does_not_wait_for_a_long_update(game, more, sync, trained, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE_S", 0.2)
    trained(game, workers="0", decisions=1)  # compiles
    told = {"workers": "0", "seconds": 3.0, "sync": sync, "run": str(tmp_path / "run"), **more}
    begun = time.monotonic()
    if sync:  # half an update can't be gone on from exactly
        with pytest.raises(Failure, match="nothing was learned"):
            trained(game, **told)
    else:
        trained(game, **told)
    assert time.monotonic() - begun < limit(15)
    assert (int(checkpoint.listed(tmp_path / "run")[-1].name) > 0) == (not sync)


def test_what_happens_before_the_first_metrics_is_told(trained, importable, monkeypatch):
    monkeypatch.setattr(loop, "STATUS_S", 0.0)
    said: list[str] = []
    trained("broken_envs:Slow", status=said.append, workers="2", decisions=64, rows=4, steps=8)
    assert said[0] == "starting 2 workers"
    shares = [int(text.split()[-2]) for text in said if text.startswith("2 workers, first block ")]
    assert len(set(shares)) >= 2 and shares == sorted(shares)


def test_slow_games_that_live_are_not_taken_for_hung(trained, importable, monkeypatch):
    monkeypatch.setattr("ludus.training.pools.process.PATIENCE_S", 0.3)
    monkeypatch.setattr(faults, "START_ROW_S", 0.5)
    told = {"rows": 16, "steps": 4, "decisions": 128, "switches": {"step_s": 0.025}}  # 0.4 s for all rows
    _, readings = trained("broken_envs:Slow", workers="1", **told)
    assert readings[-1]["workers/replaced"] == 0


# ---- games that fail


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_a_game_that_seldom_raises_is_restarted_and_the_fault_is_told(more, trained, importable, tmp_path):
    folder, readings = trained(
        "broken_envs:Seldom", decisions=3_000, switches={"mark": str(tmp_path / "mark")}, **more
    )
    assert readings[-1]["decisions"] >= 3_000 and readings[-1]["workers/replaced"] == 1
    (event,) = events(folder, "worker replaced")
    told = r"step in row 0 raised ValueError: the bridge is out \(.*broken_envs.py:\d+\)"
    assert re.search(told, event["reason"]) and "second" not in event["reason"]


@pytest.mark.parametrize("more", POOLS, ids=str)
def test_a_game_that_always_raises_ends_with_its_fault_and_place(more, trained, importable):
    told = (
        rf"{faults.TRIES + 1} times: .*step in row 0 raised RuntimeError: the bridge is out \(.*envs.py:\d+\)"
    )
    with pytest.raises(Failure, match=told):
        trained("broken_envs:Raising", **more)


@pytest.mark.parametrize("more", POOLS, ids=str)
@pytest.mark.parametrize("cut", [False, True])
def test_infinite_observations_are_named(more, cut, trained, importable, monkeypatch):
    for module in ("pools.process", "pools.local", "remote_table"):
        monkeypatch.setattr(f"ludus.training.{module}.TRIES", 1)
    with pytest.raises(Failure, match=r"broken_envs:Infinite: the observation in row \d+ has inf"):
        trained("broken_envs:Infinite", switches={"cut": cut}, **more)


@pytest.mark.parametrize("more", POOLS[1:], ids=str)
def test_observations_are_looked_at_where_the_table_does_not(more, trained, importable, monkeypatch):
    for module in ("pools.local", "remote_table"):
        monkeypatch.setattr(f"ludus.training.{module}.TRIES", 1)
    monkeypatch.setattr(GymTable, "finite", True)  # and back again
    monkeypatch.setattr(GymTable, "_looked_at", GymTable._looked_at)
    with pytest.raises(Failure, match=r"broken_envs:Unseen: the observation in row \d+ has inf"):
        trained("broken_envs:Unseen", **more)


def test_a_rollback_does_not_turn_the_clock(monkeypatch):
    now = 0.0
    monkeypatch.setattr("ludus.training.meter.time", SimpleNamespace(monotonic=lambda: now))
    meter = Meter(games.open("tictactoe"), 0)
    now = 50.0
    meter.load_state_dict({"decisions": 7, "games": 0, "seconds": 100.0})
    meter.start_clock()
    now += 20
    assert meter.seconds() == 120
    kept = meter.state_dict()
    now += 20
    meter.load_state_dict(kept)
    assert meter.seconds() == 140


# ---- sizes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tictactoe --preset test --rows 1000000000", "--rows"),
        ("tictactoe --algo alphazero --rows 1000000000", "--rows"),  # its speed would be measured first
        ("gym:CartPole-v1 --steps 1000000000", "--rows"),
        ("tictactoe --algo alphazero --alphazero.replay-buffer 1000000000000", "--alphazero.replay-buffer"),
        ("tictactoe --algo alphazero --alphazero.replay-buffer 1000000000000 --sync", "--alphazero.replay-"),
    ],
)
def test_what_does_not_fit_into_memory_is_refused_before_anything_starts(
    words, said, ludus, monkeypatch, tmp_path
):
    for module in (build, loop):
        monkeypatch.setattr(module, "make_pool", lambda *args, **kwargs: pytest.fail("a pool was made"))
    code, _, err = ludus("train", *words.split(), "--run", "run")
    assert code == 2 and f"GiB are free: lower {said}" in one_line(err) and not (tmp_path / "run").exists()


def test_workers_are_as_many_as_there_is_memory_for_their_blocks(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 16)
    monkeypatch.setattr(machine, "memory_bytes", lambda: (64 * 2**30, 16 * 2**30))
    config = overlay(resolve("tictactoe", "test"), {"device": "cpu"}, "test")
    assert lay_out(config, open_game(config)).workers > 8
    config = overlay(config, {"rows": 2**19}, "test")
    assert 1 <= lay_out(config, open_game(config)).workers < 8


def test_workers_leave_room_for_what_the_learner_keeps(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 16)
    monkeypatch.setattr(machine, "memory_bytes", lambda: (64 * 2**30, 16 * 2**30))
    config = resolve("tictactoe", "test", algo="alphazero")
    game = open_game(config)
    (each,) = algos.find("alphazero").kept_bytes(config, game.spec).values()
    large = int(0.8 * 16 * 2**30 * config.settings.replay_buffer / each)
    workers = [
        lay_out(
            overlay(config, {"device": "cpu", "alphazero": {"replay_buffer": room}}, "test"), game
        ).workers
        for room in (config.settings.replay_buffer, large)
    ]
    assert 1 <= workers[1] < workers[0] / 2


def test_only_workers_that_are_there_have_blocks(monkeypatch, trained):
    made: list[int] = []
    shared = process.Shared
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    monkeypatch.setattr(
        "ludus.training.pools.process.Shared",
        lambda context, size: (made.append(size), shared(context, size))[1],
    )
    trained("tictactoe", workers="2", decisions=1_000)
    assert len([size for size in made if size > 10_000]) == 4  # two each: one is played, one learned from


def test_rows_follow_the_measured_speed_and_stay(importable, tmp_path):
    said: list[str] = []

    def sizes(game: str, run: str, **changes) -> tuple[int, int]:
        said.clear()
        told = {"run": str(tmp_path / run), "workers": "0", "log_s": 0.0, **changes}
        folder = train(overlay(resolve(game), told, "test"), Listeners(status=said.append))
        config = read_config(folder)
        return config.rows, config.steps

    slow = {"switches": {"step_s": 0.004}}
    first = sizes("broken_envs:Slow", "slow", decisions=1, **slow)
    assert 4 <= first[0] < 8 and first[1] == 128 and said[0].startswith("measuring")
    assert sizes("broken_envs:Slow", "slow", decisions=first[0] * first[1] + 1, **slow) == first
    assert not any(text.startswith("measuring") for text in said)
    assert sizes("gym:CartPole-v1", "cartpole", decisions=1) == (8, 128)
    assert sizes("broken_envs:Slow", "sync", decisions=1, sync=True, switches={"step_s": 0.0}) == (8, 128)


# ---- scripts


SCRIPT = """
from ludus.config import overlay, resolve
from ludus.training.loop import Audience, train

changes = {"run": "run", "workers": "2", "decisions": 1_000}
print(train(overlay(resolve("tictactoe", "test"), changes, "script"), Audience()))
"""


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_script_without_a_main_guard_trains(from_stdin, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-" if from_stdin else "script.py"], input=SCRIPT, cwd=tmp_path, env=env,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip() == "run", done.stderr
