"""Runs people can trust: they go on exactly, keep what they promised to keep, and survive what happens."""

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from ludus.algos.ppo.learner import PpoLearner
from ludus.core.errors import Failure, Stopped, Usage
from ludus.store import checkpoint
from ludus.store.checkpoint import Checkpoint
from ludus.store.run import CONFIG, EVENTS, LOG, METRICS, read_lines, read_weights
from ludus.training.pools.process import ProcessPool
from trainings import limit, reproducible, wait_until, workers_of


def events(folder: Path, what: str) -> list[dict]:
    return [event for event in read_lines(folder / EVENTS) if event["event"] == what]


def newest_bytes(folder: Path) -> bytes:
    return (checkpoint.listed(folder)[-1] / checkpoint.WEIGHTS).read_bytes()


class After:
    """A screen that does something once a number of readings came."""

    def __init__(self, readings: int, what) -> None:
        self.left, self.what = readings, what

    def __call__(self, metrics: dict) -> None:
        self.left -= 1
        if self.left == 0:
            self.what()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


# ---- going on


SEARCHED = {
    "algo": "alphazero", "rows": 8, "steps": 16, "decisions": 1_024,
    "opponents": "self:0.4,past:0.3,greedy:0.3", "net": {"channels": 8, "blocks": 2},
    "alphazero": {"search": {"simulations": 6}, "fast_simulations": 2, "minibatch": 32, "replay_buffer": 600,
                  "learning_starts": 200, "sampling_moves": 2, "random_openings": 0.5, "replay_ratio": 1.0},
    "checkpoints": {"every_s": 0.0, "every_decisions": 300},
}  # fmt: skip
EXACT = {
    "sync": True, "decisions": 6_000, "opponents": "self:0.4,past:0.3,random:0.3",
    "checkpoints": {"every_s": 0.0, "every_decisions": 2_000},
}  # fmt: skip


@pytest.mark.parametrize(
    ("game", "more"),
    [
        ("tictactoe", {"workers": "2"}),
        ("tictactoe", {"workers": "0", "net": {"hidden": (8,), "memory": 8}}),
        ("tictactoe", {"workers": "2", "inference": "central"}),
        ("ofc", {"workers": "2", "ppo": {"teacher": "greedy", "minibatch": 240}}),
        ("connect4", {"workers": "0", **SEARCHED}),
        ("connect4", {"workers": "2", **SEARCHED}),
        ("connect4", {"workers": "2", "inference": "central", "device": "cpu", **SEARCHED}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_interrupted_and_resumed_is_never_interrupted_bit_for_bit(game, more, trained, tmp_path):
    told = {**EXACT, **more}
    whole, _ = trained(game, **told)
    folder = tmp_path / "broken"
    for readings in (1, 2):  # before the first checkpoint by count, and after it
        with pytest.raises(Stopped, match="resume"):
            trained(game, After(readings, interrupt), run=str(folder), **told)
    trained(game, run=str(folder), **told)
    assert len(events(folder, "stopped")) == len(events(folder, "resume")) == 2
    assert newest_bytes(folder) == newest_bytes(whole)
    lines = [read_lines(run / METRICS) for run in (folder, whole)]
    assert reproducible(lines[0]) == reproducible(lines[1])


def test_killed_at_any_moment_and_resumed_is_never_interrupted(trained, tmp_path):
    """kill -9 leaves no chance to save: what came after the last checkpoint is done again."""
    told = {**EXACT, "workers": "2", "decisions": 20_000, "eval_every": "0"}
    whole, _ = trained("tictactoe", **told)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    flags = "--preset test --sync --workers 2 --decisions 20000 --opponents self:0.4,past:0.3,random:0.3"
    flags += (
        " --checkpoints.every-s 0 --checkpoints.every-decisions 2000 --log-s 0 --eval-every 0 --run broken"
    )
    command = [sys.executable, "-m", "ludus.cli", "train", "tictactoe", *flags.split()]
    rng, folder = random.Random(5), tmp_path / "broken"

    def ready(process: subprocess.Popen, before: list[Path], writing: bool) -> bool:
        """It writes a checkpoint, or has made another one; or it has ended."""
        if writing:
            found = any((folder / checkpoint.CHECKPOINTS).glob(f"{checkpoint.UNFINISHED}*"))
        else:
            found = checkpoint.listed(folder)[-1:] != before[-1:]
        return found or process.poll() is not None

    for writing in (False, True, True):
        before = checkpoint.listed(folder)
        process = subprocess.Popen(
            command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        any(b"decisions" in line for line in process.stdout)  # it has begun to learn
        assert wait_until(partial(ready, process, before, writing), limit(60), 0.0 if writing else 0.02)
        time.sleep(0 if writing else rng.random() * 0.3)
        process.kill()
        process.communicate()
    with suppress(Usage):  # it is finished
        trained("tictactoe", run=str(folder), **told)
    assert newest_bytes(folder) == newest_bytes(whole)
    lines = [read_lines(run / METRICS) for run in (folder, whole)]
    assert reproducible(lines[0]) == reproducible(lines[1])
    assert len(events(folder, "resume")) >= 2


def test_without_sync_a_resumed_run_plays_other_games_than_before(trained, tmp_path):
    folder = str(tmp_path / "run")
    told = {"workers": "2", "run": folder, "decisions": 20_000}
    with pytest.raises(Stopped):
        trained("ofc", After(3, interrupt), **told)
    stopped = events(Path(folder), "stopped")[0]["decisions"]
    _, readings = trained("ofc", **told)
    assert readings[0]["decisions"] > stopped > 0
    assert events(Path(folder), "resume")[0]["decisions"] == stopped
    assert readings[-1]["speed/overall"] <= (20_960 - stopped) / 0.05  # only what was made since counts


def test_a_finished_run_says_so_and_goes_on_when_given_more(trained):
    folder, _ = trained("tictactoe", workers="0", decisions=2_000)
    with pytest.raises(Usage, match="finished after 2,048"):
        trained("tictactoe", workers="0", decisions=2_000, run=str(folder))
    _, readings = trained("tictactoe", workers="0", decisions=4_000, run=str(folder))
    assert readings[0]["decisions"] > 2_048 and readings[-1]["decisions"] >= 4_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"net": {"hidden": (16,)}}, r"net\.hidden \(16,\) instead of \(64,\): its weights would not fit"),
        ({"seed": 3}, "seed 3"),
        ({"switches": {"hands": 2}}, r"switches\.hands 2 instead of 10: .*other rules"),
        ({"algo": "alphazero"}, r"algo alphazero instead of ppo: .*another way|alphazero plays native games"),
    ],
)
def test_a_configuration_that_no_longer_fits_says_which_field_and_why(changes, words, trained):
    folder, _ = trained("ofc", workers="0", decisions=1_000)
    before = newest_bytes(folder)
    with pytest.raises(Usage, match=words):
        trained("ofc", workers="0", decisions=9_000, run=str(folder), **changes)
    assert newest_bytes(folder) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"inference": "central"},
        {"workers": "1"},
        {"rows": 8},
        {"opponents": "self,random"},
        {"ppo": {"epochs": 1}},
    ],
    ids=str,
)
def test_whatever_else_may_change_in_a_run_that_goes_on(changes, trained):
    folder, _ = trained("tictactoe", workers="2", decisions=2_000, sync=True)
    told = {"workers": "2", "sync": True, **changes}
    _, readings = trained("tictactoe", decisions=4_000, run=str(folder), **told)
    assert readings[0]["decisions"] > 2_000 and readings[-1]["decisions"] >= 4_000
    assert readings[-1]["workers/replaced"] == 0  # none died of games that don't fit any more


@pytest.mark.parametrize(
    ("game", "changes", "words"),
    [
        ("ofc", {"steps": 1}, "too few to learn from"),
        ("tictactoe", {"ppo": {"teacher": "nobody"}}, "has no bot 'nobody'"),
        ("gym:CartPole-v1", {"ppo": {"teacher": "greedy"}}, "has no bot 'greedy'"),
        ("tictactoe", {"opponents": "nobody"}, "has no opponent 'nobody'"),
        ("tictactoe", {"algo": "examples.reinforce", "inference": "central"}, "--inference local"),
        ("tictactoe", {"mirror": "ftp://there"}, "a mirror must be"),
        ("tictactoe", {"mirror": "s3://bucket/run"}, "can't look into the mirror"),
        ("tictactoe", {"notify": ("carrierpigeon://coop",)}, "--notify"),
    ],
    ids=str,
)
def test_a_refused_run_leaves_nothing_behind(game, changes, words, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    told = {"workers": "0", "tensorboard": True, **changes}
    with pytest.raises(Failure, match=words):
        trained(game, run=str(tmp_path / "new"), **told)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    with pytest.raises(Failure, match=words):
        trained(game, run=str(tmp_path / "mine"), **told)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["mine", "mine/notes.txt"]


def test_a_refused_resume_does_not_change_the_configuration(trained):
    folder, _ = trained("tictactoe", workers="0", decisions=1_000)
    before = (folder / CONFIG).read_bytes()
    with pytest.raises(Usage, match="mirror"):
        trained("tictactoe", workers="0", decisions=3_000, run=str(folder), mirror="ftp://there")
    with pytest.raises(Usage, match="finished"):
        trained("tictactoe", workers="0", decisions=900, run=str(folder))
    assert (folder / CONFIG).read_bytes() == before


# ---- checkpoints


def test_the_newest_few_and_the_milestones_are_kept_sorted_as_numbers(trained):
    schedule = {"every_s": 0.0, "every_decisions": 500, "keep": 3, "milestone": 2_000}
    folder, _ = trained("tictactoe", workers="0", decisions=12_000, checkpoints=schedule)
    names = [int(path.name) for path in checkpoint.listed(folder)]
    assert names == sorted(names) and len(names) == 3 and names[-1] >= 12_000
    milestones = sorted(int(path.stem) for path in (folder / checkpoint.MILESTONES).iterdir())
    assert len(milestones) == 6
    assert all(0 <= stone - 2_000 * (i + 1) < 512 for i, stone in enumerate(milestones))


def test_the_best_is_kept_by_the_games_own_measure(trained):
    schedule = {"every_s": 0.0, "every_decisions": 500}
    folder, readings = trained("gym:CartPole-v1", workers="0", decisions=20_000, checkpoints=schedule)
    best = json.loads((folder / "best.json").read_text())
    scores = [reading["game/score"] for reading in readings if "game/score" in reading]
    assert best["measure"] == pytest.approx(max(scores))
    assert best["decisions"] == next(r["decisions"] for r in readings if r.get("game/score") == max(scores))
    assert (folder / "best.safetensors").exists()


def tear(place: Path) -> None:
    data = (place / checkpoint.TRAINER).read_bytes()
    (place / checkpoint.TRAINER).write_bytes(data[: len(data) // 2])


def flip(place: Path) -> None:
    data = bytearray((place / checkpoint.WEIGHTS).read_bytes())
    data[-5] ^= 1
    (place / checkpoint.WEIGHTS).write_bytes(data)


def lose_manifest(place: Path) -> None:
    (place / checkpoint.MANIFEST).unlink()


@pytest.mark.parametrize("damage", [tear, flip, lose_manifest])
def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_taken(damage, trained):
    schedule = {"every_s": 0.0, "every_decisions": 500}
    folder, _ = trained("tictactoe", workers="0", decisions=3_000, checkpoints=schedule)
    before, newest = checkpoint.listed(folder)
    damage(newest)
    trained("tictactoe", workers="0", decisions=4_000, run=str(folder), checkpoints=schedule)
    assert newest.name in events(folder, "checkpoint skipped")[0]["reason"]
    assert events(folder, "resume")[0]["decisions"] == int(before.name)


def test_a_damaged_checkpoint_does_not_push_out_those_that_follow_it(trained):
    schedule = {"every_s": 0.0, "every_decisions": 500, "keep": 1}
    folder, _ = trained("tictactoe", workers="0", decisions=1_000, checkpoints=schedule)
    whole, damaged = checkpoint.listed(folder)[0], folder / checkpoint.CHECKPOINTS / "000000009999"
    shutil.copytree(whole, damaged)
    tear(damaged)
    trained("tictactoe", workers="0", decisions=3_000, run=str(folder), checkpoints=schedule)
    assert [int(path.name) for path in checkpoint.listed(folder)] == [3_072]


def test_checkpoints_are_made_by_the_clock_too(trained):
    folder, _ = trained(
        "tictactoe", workers="0", decisions=10**9, seconds=2.5, checkpoints={"every_s": 0.5, "milestone": 0}
    )
    times = [event["time"] for event in events(folder, "checkpoint")]
    assert 4 <= len(times) <= 7 and not (folder / checkpoint.MILESTONES).exists()


def test_milestones_need_no_other_reason_to_save(trained, monkeypatch):
    monkeypatch.setattr("ludus.training.saving.MILESTONE_S", 0.0)
    folder, _ = trained("tictactoe", workers="0", decisions=42_000, checkpoints={"milestone": 10_000})
    assert [int(stone.stem) // 10_000 for stone in checkpoint.milestones(folder)] == [1, 2, 3, 4]


def test_a_milestone_that_was_never_finished_is_not_taken_for_one(trained):
    folder, _ = trained("tictactoe", workers="0", decisions=3_000, checkpoints={"milestone": 1_000})
    (stone,) = checkpoint.milestones(folder)
    shutil.copy(stone, stone.with_name(f"{checkpoint.UNFINISHED}{stone.name}"))
    assert checkpoint.milestones(folder) == [stone]
    assert read_weights(folder, "3072").keys() == read_weights(folder).keys()


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


def test_a_malicious_pickle_in_place_of_the_trainers_state_is_refused(trained, tmp_path):
    folder, _ = trained("tictactoe", workers="0", decisions=1_000)
    place, fuse = checkpoint.listed(folder)[-1], tmp_path / "executed"
    (place / checkpoint.TRAINER).write_bytes(pickle.dumps(Bomb(fuse), 2))
    manifest = json.loads((place / checkpoint.MANIFEST).read_text())
    manifest["files"][checkpoint.TRAINER] = checkpoint._described((place / checkpoint.TRAINER).read_bytes())
    (place / checkpoint.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(Failure, match=r"refused|can't be read"):
        checkpoint.read(place)
    torch.save({"a": Bomb(fuse)}, place / checkpoint.TRAINER)
    manifest["files"][checkpoint.TRAINER] = checkpoint._described((place / checkpoint.TRAINER).read_bytes())
    (place / checkpoint.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(Failure, match=r"refused|can't be read"):
        checkpoint.read(place)
    assert not fuse.exists()


def test_arrays_of_any_kind_come_back_as_they_were(tmp_path):
    records = np.zeros(3, [("cards", "u1", 4), ("score", "f4")])
    records["cards"][1] = 7
    streams = np.array([2**64 - 1, 5], np.uint64)
    state = {"a": [records, streams], "big": 2**100, "text": "x", "none": None, "flag": True}
    checkpoint.write(tmp_path, Checkpoint(5, {"w": torch.ones(2)}, state))
    kept = checkpoint.read(checkpoint.listed(tmp_path)[0])
    assert kept.decisions == 5 and kept.state["big"] == 2**100 and kept.state["none"] is None
    assert kept.state["a"][0].dtype == records.dtype
    np.testing.assert_array_equal(kept.state["a"][0], records)
    np.testing.assert_array_equal(kept.state["a"][1], streams)


def test_a_disk_that_is_full_keeps_the_checkpoint_before_and_says_so(trained, tmp_path):
    folder, _ = trained("tictactoe", workers="0", decisions=2_000)
    before = newest_bytes(folder)
    code = f"""
import resource
from ludus.config import overlay, resolve
from ludus.training.loop import Audience, train
changes = {{"workers": "0", "decisions": 6_000, "log_s": 0.0, "run": {str(folder)!r}}}
config = overlay(resolve("tictactoe", "test"), changes, "")
class Limit(Audience):
    def report(self, metrics):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))
train(config, Limit())
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    (folder / EVENTS).write_text("")
    (folder / LOG).write_text("")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "could not be saved" in done.stderr
    assert str(folder) in done.stderr and "ludus resume" in done.stderr
    assert events(folder, "checkpoint failed")[0]["reason"] == "File too large"
    assert newest_bytes(folder) == before
    checkpoint.read(checkpoint.listed(folder)[-1])
    assert not list(folder.rglob(f"{checkpoint.UNFINISHED}*"))


# ---- faults


def test_a_loss_that_is_not_a_number_rolls_back_once_and_learning_goes_on(trained, monkeypatch):
    learn, calls = PpoLearner.learn, []

    def poisoned(self, blocks, off_policy):
        metrics = learn(self, blocks, off_policy)
        calls.append(1)
        if len(calls) == 6:
            self.net.policy.weight.data.fill_(float("nan"))
            return {**metrics, "losses/policy": float("nan")}
        return metrics

    publish, versions = ProcessPool.publish, []

    def noted(self, vector, version, *rest):
        versions.append(version)
        publish(self, vector, version, *rest)

    monkeypatch.setattr(PpoLearner, "learn", poisoned)
    monkeypatch.setattr(ProcessPool, "publish", noted)
    schedule = {"every_s": 0.0, "every_decisions": 3_000}
    folder, readings = trained("tictactoe", workers="2", decisions=12_000, checkpoints=schedule, sync=True)
    assert versions == sorted(set(versions))  # or blocks of the discarded weights would pass for newer ones
    (rolled,) = events(folder, "rolled back")
    assert 0 < rolled["decisions"] < 6 * 1_024
    assert readings[-1]["decisions"] >= 12_000
    assert all(np.isfinite(array).all() for array in read_weights(folder).values())
    assert checkpoint.read(checkpoint.listed(folder)[-1]).state["learner"]["rate_scale"] == 0.5
    counts = [line["decisions"] for line in read_lines(folder / METRICS)]
    assert counts == sorted(set(counts))


def test_a_loss_that_is_not_a_number_again_ends_the_run_with_an_explanation(trained, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Failure, match=r"lower --ppo\.learning-rate"):
        trained("tictactoe", workers="0", run=str(folder), ppo={"learning_rate": 1e30, "max_grad_norm": 1e30})
    assert len(events(folder, "rolled back")) == 1 and events(folder, "failed")
    assert all(np.isfinite(array).all() for array in read_weights(folder).values())


def test_twenty_workers_killed_at_random_cost_no_learned_step(trained):
    rng, killed = random.Random(1), []

    def kill_one(metrics: dict) -> None:
        if len(killed) < 20 and rng.random() < 0.7:
            workers = workers_of(psutil.Process())
            if workers:
                killed.append(rng.choice(workers))
                killed[-1].kill()

    _, readings = trained("tictactoe", kill_one, workers="2", decisions=60_000)
    assert len(killed) == 20
    assert 15 <= readings[-1]["workers/replaced"] <= 20  # one may be hit twice before it is replaced
    counts = [reading["decisions"] for reading in readings]
    assert all(after - before == 1_024 for before, after in zip(counts, counts[1:], strict=False))
    assert readings[-1]["decisions"] == counts[-1] >= 60_000


def test_a_worker_that_hangs_is_noticed_and_replaced(trained, monkeypatch):
    monkeypatch.setattr("ludus.training.pools.process.PATIENCE_S", 1.0)
    stopped: list[psutil.Process] = []

    def hang_one() -> None:
        stopped.extend(workers_of(psutil.Process())[:1])
        stopped[0].suspend()

    _, readings = trained("tictactoe", After(3, hang_one), workers="2", decisions=20_000)
    assert readings[-1]["workers/replaced"] == 1 and readings[-1]["decisions"] >= 20_000


@pytest.mark.parametrize(
    ("inference", "patience"), [("local", "pools.process.PATIENCE_S"), ("central", "remote_table.PATIENCE_S")]
)
def test_a_game_that_sleeps_for_ever_is_noticed_and_replaced(
    inference, patience, trained, importable, monkeypatch, tmp_path
):
    monkeypatch.setattr(f"ludus.training.{patience}", 5.0)
    bed, begun = tmp_path / "bed", time.monotonic()
    folder, readings = trained(
        "broken_envs:Sleeping", workers="2", decisions=6_000, inference=inference, switches={"bed": str(bed)}
    )
    assert bed.exists() and time.monotonic() - begun > 5
    assert readings[-1]["workers/replaced"] == 1 and readings[-1]["decisions"] >= 6_000
    (event,) = events(folder, "worker replaced")
    assert "made no decision for 5 s" in event["reason"] or "hung" in event["reason"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_within_five_seconds_and_the_run_goes_on(number, training, ludus, tmp_path):
    process, family = training
    asked = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - asked < limit(5)
    assert process.returncode == 130 and "ludus resume" in err and "Traceback" not in err
    assert wait_until(lambda: not any(member.is_running() for member in family), 2)
    made = events(tmp_path / "run", "stopped")[0]["decisions"]
    assert made == int(checkpoint.listed(tmp_path / "run")[-1].name) > 0
    code, _, err = ludus("resume", "run", "--decisions", str(made + 2_000))
    assert code == 0, err
    assert int(checkpoint.listed(tmp_path / "run")[-1].name) >= made + 2_000


def test_what_workers_print_is_in_the_log_with_their_names(trained, importable):
    folder, _ = trained("broken_envs:Talking", workers="2", decisions=2_000)
    log = (folder / LOG).read_text()
    assert "worker-0: from python" in log and "worker-1: from a child" in log
    assert "learner: start" in log


def test_what_tables_in_processes_of_their_own_print_is_in_the_log(trained, importable):
    folder, _ = trained("broken_envs:Talking", inference="central", workers="2", decisions=2_000)
    log = (folder / LOG).read_text()
    assert "table: from python" in log and "table: from a child" in log
