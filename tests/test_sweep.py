"""Sweeps: spaces as people write them, trials as ordinary runs, and a sweep that goes on after a kill."""

import dataclasses
import subprocess
from pathlib import Path

import pytest

from commandline import one_line
from ludus import machine
from ludus.config import overlay, resolve
from ludus.core.errors import Usage
from ludus.store.reader import RunReader
from ludus.store.run import peek_config
from ludus.sweep.places import Ended
from ludus.sweep.ray_place import RayTrials
from ludus.sweep.space import Setting, applied, parse
from trainings import limit, ludus_command, wait_until

optuna = pytest.importorskip(
    "optuna", reason="OPTUNA IS NOT INSTALLED: sweeps are not tested, see `.[sweep]`"
)

from ludus.sweep.study import STEPS, Study  # noqa: E402

TINY = ["--preset", "test", "--rows", "8", "--steps", "8", "--workers", "0", "--log-s", "0"]
TINY += ["--eval-games", "4"]
SPACE = ["--space", "ppo.learning_rate=log:1e-4:1e-2", "net.activation=choice:relu,tanh"]


@pytest.fixture
def base():
    return resolve("tictactoe", "test")


def test_a_space_is_read(base):
    words = ["ppo.learning-rate=log:1e-4:1e-2", "ppo.gae_lambda=0.9:1", "ppo.epochs=1:8"]
    rate, gae, epochs = parse(words, base)
    assert rate == Setting("ppo.learning_rate", 1e-4, 1e-2, log=True)
    assert (gae.low, gae.high, gae.log, gae.whole) == (0.9, 1.0, False, False)
    assert epochs.whole and epochs.ends() == [1, 8]
    (layers,) = parse(["net.hidden=choice:[8,8],[16,16]"], base)
    assert layers.ends() == [[8, 8], [16, 16]]
    config = applied(base, {"net.hidden": [16, 16], "ppo.learning_rate": 0.5})
    assert config.net.hidden == (16, 16) and config.settings.learning_rate == 0.5


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("ppo.learning_rate", "is not a setting and its values"),
        ("ppo.learning_rate=log:0:1", "above 0"),
        ("ppo.learning_rate=log:1e-2:1e-4", "below the second"),
        ("ppo.learning_rate=log:1e-4", "a lowest and a highest"),
        ("ppo.learning_rate=a:b", "a lowest and a highest"),
        ("ppo.epochs=1.5:2", "whole number"),
        ("ppo.epochs=0:2", "must be at least 1"),
        ("ppo.gamma=0.5:1.5", "at most 1"),
        ("ppo.clip=0:1", "unknown setting ppo.clip"),
        ("ppo=0:1", "is a group"),
        ("net.activation=relu:tanh", "choice:"),
        ("net.activation=choice:relu", "two values or more"),
        ("net.activation=choice:relu,sigmund", "sigmund"),
        ("game=choice:ofc,tictactoe", "can't vary game"),
    ],
)
def test_a_bad_space_is_refused_in_one_line(word, line, base):
    with pytest.raises(Usage) as refused:
        parse([word], base)
    assert line in str(refused.value) and "\n" not in str(refused.value)


def test_hopeless_trials_are_pruned_and_the_best_is_found(base, tmp_path):
    study = Study(tmp_path, parse(["ppo.learning_rate=log:1e-4:1e-2"], base), base)

    def train(scores: list[float]) -> str:
        trial = study.next_trial(99, set())
        for step, score in enumerate(scores, 1):
            if trial.note(step / STEPS, score, 100 * step, float(step)):
                assert step < STEPS
                break
        return trial.finish()

    for best in range(4):
        assert train([float(best)] * STEPS) == f"done at {best:+.3f}"
    assert train([-1.0] * STEPS).startswith("pruned")
    assert train([9.0] * STEPS) == "done at +9.000"
    assert [trial.value for trial in study.complete] == [9, 3, 2, 1, 0]
    assert set(study.importance()) == {"ppo.learning_rate"}
    again = Study(tmp_path, study.settings, base)
    assert len(again.trials) == 6 and again.next_trial(6, set()) is None
    with pytest.raises(Usage, match="holds a sweep with seed 0, not 1"):
        Study(tmp_path, study.settings, dataclasses.replace(base, seed=1))


def test_trials_are_runs_and_the_best_can_be_trained(ludus):
    flags = ["sweep", "tictactoe", *TINY, "--decisions", "640", *SPACE, "--run", "runs/s"]
    code, out, err = ludus(*flags, "--trials", "3")
    assert code == 0, err
    folders = sorted(Path("runs/s").glob("trial-*"))
    assert [folder.name for folder in folders] == ["trial-000", "trial-001", "trial-002"]
    assert {RunReader(folder).state for folder in folders} == {"done"}
    assert len({peek_config(folder).settings.learning_rate for folder in folders}) == 3
    assert "trial-002" not in out and "ppo.learning_rate" in out and Path("runs/s/sweep.png").stat().st_size
    code, out, err = ludus("train", "tictactoe", "--config", "runs/s/best.toml", "--run", "runs/best")
    assert code == 0, err
    tried = [peek_config(folder) for folder in folders]
    best = peek_config(Path("runs/best"))
    assert dataclasses.replace(best, run="") in [dataclasses.replace(config, run="") for config in tried]
    code, _, err = ludus("sweep", "tictactoe", "--space", "ppo.epochs=1")
    assert code == 2 and "a lowest and a highest value" in one_line(err)


def test_a_trial_on_a_node_without_the_folder_is_brought_back(base, tmp_path):
    """As an actor does it, without Ray."""
    small = {"rows": 8, "steps": 8, "workers": "0", "decisions": 128, "eval_games": 4, "log_s": 0.0}
    node, run = RayTrials(), tmp_path / "sweep" / "trial-000"
    node.run(overlay(base, {**small, "run": str(run)}, "test"), str(tmp_path / "sweep"), "token")
    *readings, ended = node.told()
    assert ended == Ended() and readings[-1].share == 1 and readings[-1].score is not None
    files = node.files()
    assert {"config.toml", "metrics.jsonl"} <= set(files) and not run.exists()
    assert node.files() == {} and node.told() == []


def test_a_killed_sweep_goes_on(tmp_path, ludus, two_cores):
    """Two trials side by side are killed in the middle; they go on from their checkpoints."""
    if machine.usable_cores() < 2:
        pytest.skip("two trials side by side need two cores")
    folder = tmp_path / "s"
    flags = [
        "sweep",
        "tictactoe",
        *TINY,
        "--decisions",
        "40000",
        "--checkpoints.every-decisions",
        "256",
        *SPACE,
    ]
    flags += ["--run", str(folder), "--parallel", "2", "--trials", "2"]
    process = subprocess.Popen(
        **ludus_command(*flags, cwd=tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    trials = [folder / "trial-000", folder / "trial-001"]

    def both_learn() -> bool:
        return all(
            (trial / "config.toml").exists() and RunReader(trial).checkpoints()[-1:] > [0] for trial in trials
        )

    try:
        assert wait_until(lambda: both_learn() or process.poll() is not None, limit(60))
        assert process.poll() is None, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    assert wait_until(lambda: not any(RunReader(trial).state == "running" for trial in trials), limit(10))
    kept = [RunReader(trial).checkpoints()[-1] for trial in trials]
    flags[flags.index("40000")] = str(max(kept) + 640)
    code, out, err = ludus(*flags)
    assert code == 0 and "2 trials are there already, 0 of them complete" in out, err
    for trial in trials:
        events = [event["event"] for event in RunReader(trial).events()]
        assert events.count("start") == events.count("resume") == events.count("end") == 1
    assert len(list(folder.glob("trial-*"))) == 2
