"""The one reader of runs: while they are written, of copies, of damaged ones, and under any name."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import ludus as package
from commandline import one_line
from ludus.api import train
from ludus.config import resolve
from ludus.core.errors import Failure, Usage
from ludus.store.lines import EVENTS, METRICS
from ludus.store.reader import RunReader, find_runs
from ludus.store.run import Run

NAMES = ["two  words", "[x]{0}", "a@b+c", "-übung", "a:b:#1%$*", "it's 数"]
"""What a shell, markup, flags or our own names of players could misread."""
SMALL = {"decisions": 600, "workers": "0", "rows": 4, "steps": 8, "eval_every": "0", "log_s": 0.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A finished training."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    schedule = {"every_decisions": 200, "milestone": 200}
    return train("tictactoe", preset="test", run=folder, checkpoints=schedule, **SMALL)


def test_it_reads_all_of_a_finished_run(run):
    reader = package.RunReader(str(run))
    assert reader.config.game == "tictactoe" and reader.state == "done"
    lines = list(reader.metrics())
    made = [line["decisions"] for line in lines]
    assert made == sorted(made) and made[-1] >= 600 and reader.last == lines[-1]
    events = [line["event"] for line in reader.events()]
    assert events[0] == "start" and events[-1] == "end"
    assert reader.checkpoints()[-1] == made[-1] and reader.milestones()
    assert reader.best is not None and reader.best.name == "rating" and reader.best.decisions in made


def test_weights_are_those_that_were_asked_for(run):
    reader = RunReader(run)
    newest, first = reader.weights(), reader.weights(reader.milestones()[0])
    assert newest.keys() == first.keys()
    assert any((newest[name] != first[name]).any() for name in newest)
    kept = reader.weights(str(reader.milestones()[0]))
    assert all(np.array_equal(first[name], kept[name]) for name in first)
    with pytest.raises(Usage, match="has no weights of '7'"):
        reader.weights(7)


def test_a_copy_reads_like_the_run(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns(".lock"))
    here, there = RunReader(run), RunReader(copy)
    assert there.state == "done" and there.config == here.config and there.best == here.best
    assert list(there.metrics()) == list(here.metrics()) and there.checkpoints() == here.checkpoints()


def test_a_run_is_read_while_it_is_written(tmp_path):
    run = Run(tmp_path / "run", resolve("tictactoe", "test"))
    run.accept()
    reader = RunReader(run.folder)
    assert reader.state == "running" and reader.last is None and list(reader.metrics()) == []
    run.event("start")
    for number in range(3):
        run.metrics({"decisions": number, "seconds": 0.5})
        assert reader.last == {"decisions": number, "seconds": 0.5}
    with (run.folder / METRICS).open("a") as file:
        file.write('{"decisions": 3, "sec')  # in the middle of a line
    assert reader.last["decisions"] == 2 and len(list(reader.metrics())) == 3
    run.close()
    assert reader.state == "broken off"


def test_damage_is_told_and_skipped(run, tmp_path):
    copy, said = shutil.copytree(run, tmp_path / "copy"), []
    reader = RunReader(copy, said.append)
    whole = list(reader.metrics())
    lines = (copy / METRICS).read_bytes().splitlines(keepends=True)
    (copy / METRICS).write_bytes(b"".join([*lines, b"nonsense\n"]))
    (copy / EVENTS).write_bytes(b'{"no": "event"}\n' + (copy / EVENTS).read_bytes())
    (copy / "best.json").write_text("[]")
    assert list(reader.metrics()) == whole and reader.last == whole[-1] and reader.best is None
    assert next(reader.events())["event"] == "start" and reader.state == "done"
    assert len(said) == 3 and all("damaged" in text for text in said)


def test_what_is_no_run_is_told_at_once(tmp_path):
    with pytest.raises(Usage, match="is not a run"):
        RunReader(tmp_path)
    (tmp_path / "config.toml").write_text("=")
    with pytest.raises(Failure, match="is not TOML"):
        _ = RunReader(tmp_path).config


def test_runs_are_found_by_age_without_hidden_ones(tmp_path):
    for age, name in enumerate(["b", ".restored", "a", "c"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text("")
        os.utime(tmp_path / name / "config.toml", (age, age))
    assert [folder.name for folder in find_runs(tmp_path)] == ["b", "a", "c"]
    assert find_runs(tmp_path / "nowhere") == []


# ---- names of runs


@pytest.mark.parametrize("name", NAMES)
def test_a_run_may_have_any_name(name, ludus, one_core, monkeypatch):
    monkeypatch.setattr("ludus.machine.usable_cores", lambda: 1)  # matches need no processes
    typed = f"./{name}" if name.startswith("-") else name
    flags = ["--preset", "test", "--workers", "0", "--eval-every", "0"]
    code, out, err = ludus("train", "tictactoe", *flags, "--decisions", "600", "--run", typed)
    assert code == 0 and f"the run is in {name}\n" in out, err
    code, out, err = ludus("resume", typed, "--decisions", "1200")
    assert code == 0 and "done after 1,536 decisions" in out, err
    few = ("--games", "4")
    code, out, err = ludus("eval", typed, "--against", "random", *few)
    assert code == 0 and f"{name} - random: won" in out, err
    code, out, err = ludus("eval", "tictactoe", "--run", typed, "--at", "newest", "--against", "random", *few)
    assert code == 0 and f"{name}@newest - random: won" in out, err
    code, out, err = ludus("eval", "tictactoe", "--bots", "random", typed, *few)
    assert code == 0 and f"random - {name}: won" in out, err
    assert name in out.partition("ranking: ")[2], out
    code, out, err = ludus("play", "tictactoe", "--run", typed, "--record", "game", typed="q\n")
    assert code == 0 and f"{name} the others" in out, err
    code, out, err = ludus("export", typed, "--csv")
    assert code == 0 and f"the metrics are in {name}/metrics.csv" in out, err
    assert len(Path(name, "metrics.csv").read_text().splitlines()) == 1 + len(list(RunReader(name).metrics()))
    code, out, err = ludus("runs", ".")
    assert code == 0 and name in out and "done" in out, err


@pytest.mark.parametrize(
    ("name", "pasted"), [("two words", "'two words'"), ("-x", "./-x"), ("runs/a", "runs/a")]
)
def test_next_commands_can_be_pasted(name, pasted, ludus):
    flags = ["--preset", "test", "--workers", "0", "--eval-every", "0", "--decisions", "600"]
    _, out, _ = ludus("train", "tictactoe", *flags, f"--run={name}")
    assert f"ludus eval {pasted}\n" in out and f"ludus resume {pasted} --decisions" in out
    code, _, err = ludus("train", "tictactoe", *flags, "--ppo.minibatch", "7", f"--run={name}")
    assert code == 2 and f"`ludus resume {pasted}`" in one_line(err)


def test_a_name_that_is_no_run_is_still_one_line(ludus):
    code, _, err = ludus("resume", "-x")
    assert code == 2 and "say which run goes on" in one_line(err)
    code, _, err = ludus("train", "tictactoe", "--run", "-x")
    assert code == 2 and "is written as in --run=-x" in one_line(err)
    Path("-x").mkdir()
    code, _, err = ludus("export", "-x")
    assert code == 2 and "the folder -x is written ./-x" in one_line(err)
    code, _, err = ludus("eval", "two  words/x")
    assert code == 2 and "two  words/x does not exist" in one_line(err)
