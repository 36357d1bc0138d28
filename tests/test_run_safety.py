"""Nothing that was learned is lost: whatever is missing, damaged, full, deleted or asked for by mistake."""

import contextlib
import fcntl
import io
import json
import os
import resource
import shutil
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from commandline import one_line
from ludus.commands import runs as runs_command
from ludus.core import jit
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint, lock
from ludus.store.lines import EVENTS, METRICS, LineWriter, last_line, lines_back, read_lines
from ludus.store.player import parse_player
from ludus.store.reader import RunReader
from ludus.store.run import CONFIG, Run, read_config, read_weights
from ludus.training.meter import Meter
from test_runs import After, events, tear
from trainings import limit, wait_until

TRAIN = ("train", "tictactoe", "--preset", "test", "--workers", "0", "--log-s", "0", "--run", "run")
NOBODY = 65534
SAVES = {"every_s": 0.0, "every_decisions": 500, "keep": 20, "milestone": 1_000}


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != lock.LOCK)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@contextlib.contextmanager
def small_files(limit: int):
    """No file may grow beyond so many bytes: what a full disk looks like."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_run(folder: Path, **values) -> Path:
    """A run without a training."""
    folder.mkdir(parents=True)
    told = {"game": "tictactoe", "decisions": 1_000, **values}
    (folder / CONFIG).write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items()))
    return folder


# ---- weights without checkpoints


@pytest.fixture
def given_away(trained):
    """A run that has its best weights and nothing else, as one that is published."""
    folder, _ = trained("tictactoe", workers="0", decisions=2_000, checkpoints=SAVES)
    for name in (METRICS, EVENTS, "log.txt", "best.json"):
        (folder / name).unlink()
    for name in ("checkpoints", "milestones"):
        shutil.rmtree(folder / name)
    return folder


def test_a_run_with_weights_only_goes_on_from_them_and_keeps_them(given_away, trained):
    before, weights = (given_away / "best.safetensors").read_bytes(), read_weights(given_away)
    trained("tictactoe", workers="0", decisions=2_000, run=str(given_away), checkpoints=SAVES)
    (told,) = events(given_away, "weights only")
    assert "best" in told["reason"] and "new optimizer" in told["reason"]
    first = checkpoint.read(checkpoint.listed(given_away)[0])
    for name, array in weights.items():
        np.testing.assert_array_equal(first.weights[name].numpy(), array)
    assert (given_away / "best.safetensors").read_bytes() == before


def test_weights_without_a_configuration_are_not_written_over(given_away, trained):
    (given_away / CONFIG).unlink()
    before = files(given_away)
    with pytest.raises(Usage, match=r"holds weights but no config\.toml"):
        trained("tictactoe", workers="0", run=str(given_away))
    assert files(given_away) == before


@pytest.mark.parametrize("left", ["best", "milestones"])
def test_decisions_are_counted_on_from_the_weights_that_are_left(left, trained):
    folder, _ = trained("tictactoe", workers="0", decisions=3_000, checkpoints=SAVES)
    best, stones = checkpoint.read_best(folder), checkpoint.milestones(folder)
    shutil.rmtree(folder / "checkpoints")
    if left == "best":
        shutil.rmtree(folder / "milestones")
    start = best.decisions if left == "best" else max(best.decisions, int(stones[-1].stem))
    _, readings = trained("tictactoe", workers="0", decisions=5_000, run=str(folder), checkpoints=SAVES)
    assert events(folder, "resume")[0]["decisions"] == start > 0
    assert readings[0]["decisions"] == start + 512
    seconds = [line["seconds"] for line in read_lines(folder / METRICS)]
    assert seconds == sorted(seconds)  # time is counted on as well


def test_a_run_with_damaged_checkpoints_only_is_refused_unless_told_from_where_to_go_on(trained):
    folder, _ = trained("tictactoe", workers="0", decisions=2_000, checkpoints=SAVES)
    for place in checkpoint.listed(folder):
        tear(place)
    before = {name: data for name, data in files(folder).items() if name not in (EVENTS, "log.txt")}
    told = {"workers": "0", "decisions": 4_000, "run": str(folder), "checkpoints": SAVES}
    with pytest.raises(Failure, match=r"no checkpoint of .* can be read.*--weights .*best"):
        trained("tictactoe", **told)
    now = {name: data for name, data in files(folder).items() if name not in (EVENTS, "log.txt")}
    assert now == before and RunReader(folder).state == "done"


def test_the_command_line_says_from_which_weights_to_go_on(ludus):
    schedule = ("--checkpoints.every-s", "0", "--checkpoints.every-decisions", "500")
    assert ludus(*TRAIN, *schedule, "--decisions", "2000")[0] == 0
    best = checkpoint.read_best(Path("run"))
    code, _, err = ludus("resume", "run", "--decisions", "4000", "--weights", "best")
    assert code == 2 and "has an intact checkpoint" in one_line(err)
    for place in checkpoint.listed(Path("run")):
        tear(place)
    code, _, err = ludus("resume", "run", "--decisions", "4000")
    assert code == 1 and "--weights best" in one_line(err)
    code, out, err = ludus("resume", "run", "--decisions", "4000", "--weights", "best")
    assert code == 0 and "weights only: there is no checkpoint" in out, err
    assert events(Path("run"), "resume")[-1]["decisions"] == best.decisions


def test_a_training_starts_from_the_weights_of_another_run(trained, ludus, tmp_path):
    first, _ = trained("tictactoe", workers="0", decisions=2_000)
    still = {"ppo": {"learning_rate": 0.0}, "workers": "0", "decisions": 500}
    second, _ = trained("tictactoe", **still, start_from=f"{first}")
    before, after = (read_weights(folder) for folder in (first, second))
    assert before.keys() == after.keys()
    learned = [name for name in before if "weight" in name and "value" not in name]
    assert learned and all(np.array_equal(before[name], after[name]) for name in learned)
    for wrong, why in (
        ("nothing", "no run's folder"),
        (str(first), "its net.hidden is (32,), not (24,)"),
    ):
        run = tmp_path / "refused"
        words = ["--preset", "test", "--workers", "0", "--net.hidden", "24", "--run", str(run)]
        code, _, err = ludus("train", "tictactoe", *words, "--start-from", wrong)
        assert code != 0 and why in one_line(err) and not run.exists()


def test_what_another_run_knows_of_observations_is_kept(trained):
    first, _ = trained("gym:CartPole-v1", workers="0", decisions=3_000)
    second, _ = trained("gym:CartPole-v1", workers="0", decisions=1, start_from=str(first))
    before, after = (read_weights(folder)["obs_std"] for folder in (first, second))
    assert np.allclose(before, after, rtol=0.01) and not np.allclose(before, 1, rtol=0.01)


# ---- the best


def test_a_worse_best_never_replaces_a_better_one(trained, monkeypatch):
    monkeypatch.setattr(Meter, "measure", lambda self, rated: self.decisions)
    folder, _ = trained("tictactoe", workers="0", decisions=1_000)
    (folder / "best.json").write_text(json.dumps({"decisions": 7, "measure": 1e9}))
    before = files(folder)
    trained("tictactoe", workers="0", decisions=3_000, run=str(folder), checkpoints=SAVES)
    after = files(folder)
    assert all(after[name] == before[name] for name in ("best.safetensors", "best.json"))


def test_games_that_end_first_are_not_the_best(trained, monkeypatch):
    """They are the short ones. Something is kept all the same, and gives way."""
    monkeypatch.setattr(Meter, "measure", lambda self, rated: -self.decisions)
    folder, readings = trained("ofc", workers="0", decisions=480, checkpoints=SAVES)
    first = checkpoint.read_best(folder)
    assert len(readings) == 1 and (first.decisions, first.name) == (480, "points/hand of its first games")
    _, readings = trained("ofc", workers="0", decisions=2_400, run=str(folder), checkpoints=SAVES)
    best, rows = checkpoint.read_best(folder), 16
    usual = [later["decisions"] for earlier, later in pairwise(readings) if earlier["games"] >= rows]
    assert (best.decisions, best.name) == (usual[0], "points/hand")


def test_a_best_that_could_not_be_saved_is_saved_the_next_time(trained, monkeypatch):
    monkeypatch.setattr(Meter, "measure", lambda self, rated: 5.0)
    write, failed = checkpoint.write_weights, []

    def write_weights(file: Path, weights) -> None:
        if file.stem == checkpoint.BEST and not failed:
            failed.append(file)
            raise OSError(28, "No space left on device")
        write(file, weights)

    monkeypatch.setattr(checkpoint, "write_weights", write_weights)
    folder, _ = trained("tictactoe", workers="0", decisions=2_000, checkpoints=SAVES)
    assert failed and events(folder, "checkpoint failed")
    assert checkpoint.read_best(folder).measure == 5.0 and (folder / "best.safetensors").exists()


def test_what_could_not_be_replaced_is_replaced_the_next_time(trained, monkeypatch):
    """Of its first games, though they looked better."""
    monkeypatch.setattr(Meter, "measure", lambda self, rated: 5.0 if self.is_settled else 9.0)
    write, failed = checkpoint.write_weights, []

    def write_weights(file: Path, weights) -> None:
        if file.stem == checkpoint.BEST and file.exists() and not failed:
            failed.append(file)
            raise OSError(28, "No space left on device")
        write(file, weights)

    monkeypatch.setattr(checkpoint, "write_weights", write_weights)
    schedule = {**SAVES, "every_decisions": 400}  # after the first reading
    folder, _ = trained("ofc", workers="0", decisions=3_000, checkpoints=schedule)
    assert failed and checkpoint.read_best(folder).measure == 5.0


def test_a_milestone_is_kept_for_good_even_if_the_run_comes_by_again(trained):
    folder, _ = trained("tictactoe", workers="0", decisions=3_000, checkpoints=SAVES)
    for place in checkpoint.listed(folder):
        if int(place.name):
            tear(place)
    stones = {stone: stone.read_bytes() for stone in checkpoint.milestones(folder)}
    trained(
        "tictactoe",
        workers="0",
        decisions=3_000,
        run=str(folder),
        checkpoints=SAVES,
        ppo={"clip_range": 0.01},
    )
    assert stones and {stone: stone.read_bytes() for stone in stones} == stones


# ---- listing and pruning


def listing(monkeypatch, place: Path, width: int = 80, **flags) -> str:
    with monkeypatch.context() as patch:
        console = Console(width=width, highlight=False, force_terminal=False)
        patch.setattr(runs_command, "console", console)
        with console.capture() as said:
            runs_command.show(place, flags.pop("prune", False), **flags)
    return said.get()


def test_pruning_lists_first_and_never_removes_weights(tmp_path, monkeypatch):
    for name in ("empty", "published", "stone", "exported"):
        write_run(tmp_path / "runs" / name)
    (tmp_path / "runs/empty/checkpoints/000000000000").mkdir(parents=True)
    (tmp_path / "runs/empty/checkpoints/000000000000/weights.safetensors").touch()
    (tmp_path / "runs/published/best.safetensors").touch()
    (tmp_path / "runs/stone/milestones").mkdir()
    (tmp_path / "runs/stone/milestones/000000001000.safetensors").touch()
    (tmp_path / "runs/exported/policy.onnx").touch()
    said = listing(monkeypatch, tmp_path / "runs", prune=True)
    assert "empty has learned nothing" in said.replace("\n", "") and "add --yes" in said
    assert len(list((tmp_path / "runs").iterdir())) == 4
    said = listing(monkeypatch, tmp_path / "runs", prune=True, yes=True)
    assert "removed" in said
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"published", "stone", "exported"}


@pytest.mark.parametrize(("typed", "left"), [("", 1), ("n\n", 1), ("y\n", 0)])
def test_pruning_asks_people(typed, left, tmp_path, monkeypatch):
    write_run(tmp_path / "runs/empty")
    write_run(tmp_path / "runs/other")
    (tmp_path / "runs/other/best.safetensors").touch()
    answer = io.StringIO(typed)
    answer.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", answer)
    assert "remove 1? [y/N]" in listing(monkeypatch, tmp_path / "runs", prune=True)
    assert len(os.listdir(tmp_path / "runs")) == 1 + left


@pytest.mark.parametrize("config", [b"\xff\xfe", b"decisions =", b"unknown = 1"], ids=repr)
def test_a_damaged_configuration_is_told_and_the_other_runs_are_listed(config, tmp_path, monkeypatch):
    write_run(tmp_path / "whole")
    (write_run(tmp_path / "damaged") / CONFIG).write_bytes(config)
    said = listing(monkeypatch, tmp_path)
    assert "whole" in said and "damaged/config.toml" in said


@pytest.mark.parametrize(
    ("lives", "expected"),
    [
        (["start", "checkpoint", "end", "checkpoint"], "done"),
        (["start", "end", "resume", "checkpoint"], "broken off"),
        (["start", "stopped", "resume", "failed"], "failed"),
        (["start", "end", "resume", "stopped", "mirror incomplete"], "stopped"),
        ([], "broken off"),
    ],
)
def test_the_state_is_that_of_the_last_life(lives, expected, tmp_path):
    folder = write_run(tmp_path / "run")
    (folder / EVENTS).write_text("".join(json.dumps({"event": what}) + "\n" for what in lives))
    assert RunReader(folder).state == expected


def test_looking_at_a_run_stops_no_training_and_writes_nothing(tmp_path):
    folder = write_run(tmp_path / "run")
    assert RunReader(folder).state == "broken off" and os.listdir(folder) == [CONFIG]
    config = read_config(folder)
    Run(folder, config).close()
    looking = (folder / lock.LOCK).open()
    fcntl.flock(looking, fcntl.LOCK_SH)  # somebody looks, and is slow
    assert not lock.is_running(folder) and RunReader(folder).state == "broken off"
    threading.Timer(0.1, looking.close).start()
    Run(folder, config).close()  # waits a moment, and is not refused
    held = Run(folder, config)
    assert lock.is_running(folder)
    held.close()
    assert not lock.is_running(folder)


def test_runs_are_readable_at_80_columns(tmp_path, monkeypatch):
    name = "a-run-with-a-very-long-name-" + "x" * 40
    folder = write_run(tmp_path / name, decisions=1, seconds=100.0)
    (folder / METRICS).write_text('{"decisions": 1536000, "seconds": 50.0}\n')
    (folder / "best.json").write_text('{"decisions": 5, "measure": 195.3, "name": "points/hand"}')
    short = write_run(tmp_path / "short", decisions=1_000_000, seconds=60.0)
    (short / METRICS).write_text('{"decisions": 330000, "seconds": 60.1}\n')
    (short / EVENTS).write_text('{"event": "start"}\n{"event": "end"}\n')
    text = listing(monkeypatch, tmp_path)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in text
    assert "".join(line[:30].split(" ")[0] for line in lines[1:]).replace("short", "").startswith(name[:20])
    folded = "".join(
        line.split(" ")[0] for line in lines if "short" not in line and not line.startswith("run")
    )
    assert folded == name
    row = next(line for line in lines if "195 points/hand" in line).split()
    assert "1,536,000" in row and row[row.index("1,536,000") + 1] == "100"
    row = next(line for line in lines if line.startswith("short")).split()
    assert "done" in row and row[row.index("330,000") + 1] == "100"


def test_the_best_says_what_was_measured(trained):
    for game, name in (("tictactoe", "rating"), ("gym:CartPole-v1", "score"), ("ofc", "points/hand")):
        folder, _ = trained(game, workers="0", decisions=2_000, checkpoints=SAVES)
        assert checkpoint.read_best(folder).name == name


# ---- damage


DAMAGE = [b"null\n", b"{}\n", b"[]\n", b"\xff\xfe\x80\n", b'{"decisions": "many", "event": 3}\n', b'{"deci']


@pytest.mark.parametrize("damage", DAMAGE, ids=repr)
def test_damaged_lines_are_skipped_and_told(damage, ludus):
    assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
    run = Path("run")
    for name in (METRICS, EVENTS):
        (run / name).write_bytes(damage + (run / name).read_bytes() + damage)
    (run / "best.json").write_bytes(damage)
    whole = damage.endswith(b"\n")
    code, out, err = ludus("runs", ".")
    assert code == 0 and "done" in out and "1,024" in out, err
    assert "best.json is damaged" in out and ("damaged line skipped" in out) == whole
    code, out, err = ludus("export", "run", "--csv")
    assert code == 0, err
    assert f"{2 if whole else 1} damaged line" in out or not whole
    code, out, err = ludus("resume", "run", "--decisions", "2000")
    assert code == 0 and ("damaged lines:" in out) == whole, err
    assert events(run, "resume") and read_lines(run / METRICS)[-1]["decisions"] >= 2_000


def test_the_last_line_of_a_huge_file_is_found_at_once(tmp_path):
    file = tmp_path / METRICS
    with file.open("wb") as out:
        out.truncate(2 * 10**9)  # a hole, which costs no room
        out.seek(0, os.SEEK_END)
        out.write(b'\n{"decisions": 1, "seconds": 1}\n{"decisions": 2, "seconds": 2}\nnull\n{"dec')
    begun = time.monotonic()
    assert last_line(file) == {"decisions": 2, "seconds": 2}
    assert time.monotonic() - begun < limit(1)


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_lines_read_backwards_are_those_read_forwards(block, tmp_path, monkeypatch):
    monkeypatch.setattr("ludus.store.lines.BLOCK_BYTES", block)
    file = tmp_path / METRICS
    lines = [{"decisions": i, "seconds": i, "text": "x" * (i % 19)} for i in range(50)]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert [line.values for line in lines_back(file)] == lines[::-1]
    ends = [line.end for line in lines_back(file)]
    assert ends[0] == file.stat().st_size and ends == sorted(ends, reverse=True)
    writer = LineWriter(file)
    writer.write({"decisions": 50, "seconds": 0})
    writer.close()
    assert len(read_lines(file)) == 51


# ---- disks


@pytest.mark.parametrize("limit", [0, 1_000, 4_000])
def test_a_disk_without_room_is_one_line_and_leaves_nothing(limit, ludus, trained, tmp_path):
    trained("tictactoe", workers="0", decisions=500, run=str(tmp_path / "warm"))  # all is compiled
    shutil.rmtree(tmp_path / "warm")
    with small_files(limit):
        code, _, err = ludus(*TRAIN[:-1], "deep/run")
    assert code == 1 and "deep/run" in one_line(err) and "File too large: free some space" in err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_no_listing_and_export_says_what_to_do(ludus):
    assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
    before = files(Path("run"))
    with small_files(0):
        code, out, err = ludus("runs", ".")
        assert code == 0 and "done" in out, err
        code, _, err = ludus("export", "run", "--csv")
    assert code == 1 and "can't write to run: File too large: free some space" in one_line(err)
    assert files(Path("run")) == before


def test_a_folder_that_cant_be_made_is_one_line(ludus, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = ludus(*TRAIN[:-1], "file/run")
    assert code == 1 and "can't write to file/run: Not a directory" in one_line(err)


@contextlib.contextmanager
def as_nobody():
    """root may write anywhere."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


def test_a_folder_that_may_only_be_read_is_listed_but_not_trained(ludus, monkeypatch):
    with tempfile.TemporaryDirectory() as place:  # pytest's own is closed to others
        os.chmod(place, 0o755)
        monkeypatch.chdir(place)
        assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
        Path("cache").mkdir()
        Path("cache").chmod(0o777)  # mkdir keeps to the umask
        monkeypatch.setattr(jit, "cache_folder", lambda source: Path(place) / "cache")
        for path in (*Path("run").rglob("*"), Path("run")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with as_nobody():
            assert "done" in ludus("runs", ".")[1]
            code, _, err = ludus("resume", "run", "--decisions", "2000")
        Path("run").chmod(0o755)
    assert code == 1 and "can't write to run: Permission denied" in one_line(err)


def test_a_run_can_be_evaluated_while_it_trains_and_the_disk_is_full(ludus):
    assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
    before, held = files(Path("run")), Run(Path("run"), read_config(Path("run")))
    with small_files(4096):  # room for what processes lock each other with
        code, out, err = ludus("eval", "run", "--against", "random", "--games", "4")
    held.close()
    assert code == 0 and "random" in out, err
    assert files(Path("run")) == before


class Windows:
    """Its `os`: folders can't be opened there."""

    name = "nt"

    def __getattr__(self, name: str):
        return getattr(os, name)

    def open(self, path, flags):
        if Path(path).is_dir():
            raise PermissionError(f"{path} is a folder")
        return os.open(path, flags)


def test_files_are_written_where_folders_cant_be_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "os", Windows())
    checkpoint.write_whole(tmp_path / "file", b"whole")
    assert files(tmp_path) == {"file": b"whole"}


def test_an_error_of_the_system_is_one_line(ludus, monkeypatch):
    def fail(*args) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(runs_command, "show", fail)
    code, _, err = ludus("runs")
    assert code == 1 and "somewhere: No space left on device: free some space" in one_line(err)


@pytest.mark.parametrize("after", ["deleted", "replaced"])
def test_a_folder_deleted_during_training_is_noticed(after, ludus, monkeypatch, tmp_path):
    config = tmp_path / "copy.toml"

    def delete() -> None:
        shutil.copy(tmp_path / "run" / CONFIG, config)
        shutil.rmtree(tmp_path / "run")
        if after == "replaced":
            (tmp_path / "run").mkdir()
            shutil.copy(config, tmp_path / "run" / CONFIG)

    screen = After(3, delete)
    monkeypatch.setattr("ludus.ui.dashboard.Dashboard.show", lambda self, metrics: screen(metrics))
    code, _, err = ludus(*TRAIN, "--decisions", "10000")
    assert code == 1 and "run was deleted, moved or replaced" in one_line(err)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} - {"copy.toml"}
    assert left == (set() if after == "deleted" else {"run", f"run/{CONFIG}"})


# ---- what is asked for


def test_other_hyperparameters_need_another_folder_or_overwrite(ludus, tmp_path):
    assert ludus(*TRAIN, "--decisions", "1000", "--tensorboard")[0] == 0
    before = files(tmp_path / "run")
    code, _, err = ludus(*TRAIN, "--decisions", "3000", "--ppo.clip-range", "0.3")
    assert code == 2 and "ppo.clip_range 0.2, not 0.3" in one_line(err)
    assert "--run" in err and "--overwrite" in err and "ludus resume run" in err
    code, _, err = ludus(*TRAIN, "--decisions", "3000", "--ppo.clip-range", "0.3", "--opponents", "nobody")
    assert code == 2 and one_line(err)
    code, _, err = ludus(*TRAIN, "--overwrite", "--mirror", "ftp://there")
    assert code == 2 and "a mirror must be" in one_line(err)
    assert files(tmp_path / "run") == before and os.listdir(tmp_path) == ["run"]
    code, out, err = ludus(*TRAIN, "--decisions", "3000", "--ppo.clip-range", "0.3", "--overwrite")
    assert code == 0 and "is now in run.old1" in out, err
    assert files(tmp_path / "run.old1") == before
    assert read_lines(tmp_path / "run" / METRICS)[0]["decisions"] == 512


def test_the_same_command_goes_on_whatever_is_not_a_hyperparameter(ludus):
    assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
    more = (
        "--decisions",
        "2000",
        "--seconds",
        "600",
        "--profile",
        "--checkpoints.keep",
        "5",
        "--log-s",
        "0.1",
    )
    Path("told.toml").write_text("[alphazero]\nreplay_ratio = 2.0")  # which ppo does not look at
    code, _, err = ludus(*TRAIN, *more, "--config", "told.toml")
    assert code == 0, err
    code, _, err = ludus("resume", "run", "--decisions", "3000", "--ppo.clip-range", "0.3")
    assert code == 0 and len(events(Path("run"), "resume")) == 2, err


def test_a_run_that_has_learned_nothing_gives_way(ludus, tmp_path):
    write_run(tmp_path / "run")
    code, _, err = ludus(*TRAIN, "--decisions", "1000", "--ppo.clip-range", "0.3")
    assert code == 0 and os.listdir(tmp_path) == ["run"], err


def test_a_resume_that_never_began_does_not_count_as_a_failure(trained, monkeypatch):
    folder, _ = trained("tictactoe", workers="0", decisions=1_000)
    before = files(folder)
    monkeypatch.setattr("ludus.algos.ppo.learner.PpoLearner.load_state_dict", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained("tictactoe", workers="0", decisions=2_000, run=str(folder))
    assert files(folder) == before and RunReader(folder).state == "done"


def test_a_run_goes_on_in_its_own_folder(ludus):
    assert ludus(*TRAIN, "--decisions", "1000")[0] == 0
    code, _, err = ludus("resume", "run", "--run", "other")
    assert code == 2 and "goes on in its own folder" in one_line(err)


@pytest.mark.parametrize("words", [("resume", "--help"), ("resume", "-h"), ("resume", "run", "--help")])
def test_resume_has_help_that_says_what_totals_are(words, ludus, tmp_path):
    write_run(tmp_path / "run")
    code, out, _ = ludus(*words)
    assert code == 0 and "ludus resume" in out and "are totals of the run" in " ".join(out.split())


# ---- which weights


def test_a_milestone_must_be_one_that_exists(ludus, trained, tmp_path):
    trained("tictactoe", workers="0", decisions=2_000, checkpoints=SAVES, run=str(tmp_path / "run"))
    known = [str(int(stone.stem)) for stone in checkpoint.milestones(tmp_path / "run")]
    code, _, err = ludus("eval", "run", "--at", "5", "--games", "10")
    assert code == 2 and all(name in one_line(err) for name in (*known, "best", "newest")) and len(known) == 2
    for at in (*known, "best", "newest"):
        assert read_weights(tmp_path / "run", at)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("64,", "64,\n    64,"), "policy_body.2.weight is missing"),
        (("64,", "32,"), "policy_body.0.weight has the shape (64, 18), not (32, 18)"),
        (("shared = true", "shared = false"), "value_body.0.weight is missing"),
    ],
)
def test_weights_that_dont_fit_are_one_line(change, said, ludus, trained, tmp_path):
    trained("tictactoe", workers="0", decisions=600, net={"hidden": (64,)}, run=str(tmp_path / "run"))
    config = tmp_path / "run" / CONFIG
    assert change[0] in config.read_text()
    config.write_text(config.read_text().replace(*change, 1))
    code, _, err = ludus("eval", "run", "--games", "10", "--against", "random")
    assert code == 1 and said in one_line(err), err


def test_folders_may_have_plus_and_at_in_their_names(ludus, trained, one_core, tmp_path, monkeypatch):
    for name in ("a", "a+b", "a+b@c", "x@best"):
        write_run(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert parse_player("a") == ("a", Path("a"), "", "")
    assert parse_player("a+64") == ("a", Path("a"), "", "64")
    assert parse_player("a@best+100ms") == ("a", Path("a"), "best", "100ms")
    assert parse_player("a+b") == ("a+b", Path("a+b"), "", "")
    assert parse_player("a+b+64") == ("a+b", Path("a+b"), "", "64")
    assert parse_player("a+b@c@3000+64") == ("a+b@c", Path("a+b@c"), "3000", "64")
    assert parse_player("x@best@best") == ("x@best", Path("x@best"), "best", "")
    assert parse_player("search+2000") == ("search", None, "", "2000")
    trained("tictactoe", workers="0", decisions=600, run=str(tmp_path / "c++@home"))
    code, out, err = ludus("eval", "c++@home", "--at", "best", "--against", "random", "--games", "20")
    assert code == 0 and "c++@home@best" in out, err


# ---- TensorBoard


def test_tensorboard_has_every_step_once_after_a_kill(trained, tmp_path):
    def killed() -> None:
        raise RuntimeError("killed")

    told = {"workers": "0", "decisions": 3_000, "tensorboard": True, "run": str(tmp_path / "run")}
    told["checkpoints"] = {"every_s": 0.0, "every_decisions": 1_000}
    with pytest.raises(RuntimeError, match="killed"):
        trained("tictactoe", After(3, killed), **told)
    time.sleep(1.1)  # files of TensorBoard are read in the order of their seconds
    trained("tictactoe", **told)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path / "run/tensorboard"))
    board.Reload()
    steps = [event.step for event in board.Scalars("losses/policy")]
    assert steps == [line["decisions"] for line in read_lines(tmp_path / "run" / METRICS)]
    assert wait_until(lambda: len(events(tmp_path / "run", "resume")) == 1, 1)
