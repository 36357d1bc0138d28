"""A run: a folder with everything a training produced. Others may read it while it is written."""

import contextlib
import dataclasses
import importlib.metadata
import json
import shutil
import time
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

try:
    import fcntl
except ImportError:  # Windows: two trainings of one run are not kept apart there
    fcntl = None  # type: ignore[assignment]

import ludus
from ludus.config import Config, overlay
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.log import write_line

CONFIG, METRICS, EVENTS, LOG = "config.toml", "metrics.jsonl", "events.jsonl", "log.txt"
LOCK, TENSORBOARD = ".lock", "tensorboard"
FIXED = {
    "game": "it was trained on another game",
    "switches": "it was trained under other rules",
    "algo": "it was trained in another way",
    "net": "its weights would not fit",
    "seed": "its randomness began elsewhere",
}
"""What can't change in a run that goes on, and why."""


class Run:
    def __init__(self, folder: Path, config: Config) -> None:
        self.folder, self.config = folder, config
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        """Told of every event; must return at once."""
        self.readers: list[Callable[[dict[str, Any]], None]] = []
        """Given all metrics; must return at once."""
        traces = [folder / name for name in (METRICS, EVENTS, LOG, TENSORBOARD, LOCK)]
        self._made = [trace for trace in traces if not trace.exists()]
        self._lock = _locked(folder)
        self._metrics = (folder / METRICS).open("a", buffering=1)
        self._events = (folder / EVENTS).open("a", buffering=1)

    @classmethod
    def open(cls, config: Config) -> "Run":
        """A new run, or the one that is there already if the configuration still fits it.

        Nothing of what is new about it stays unless it is accepted.
        """
        folder = folder_of(config)
        if is_run(folder):
            refuse_misfit(read_config(folder), config, folder)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, config)

    def accept(self) -> None:
        """Training can begin as configured: from now on this is a run."""
        values = dataclasses.asdict(dataclasses.replace(self.config, notify=()))  # addresses are secrets
        libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
        values["versions"] = {"ludus": ludus.__version__, **libraries}
        checkpoint.write_whole(self.folder / CONFIG, tomli_w.dumps(values).encode())

    def metrics(self, values: dict[str, Any]) -> None:
        self._write(self._metrics, values)
        for reader in self.readers:
            reader(values)

    def event(self, what: str, **details: Any) -> None:
        """May be called from any thread."""
        self._write(self._events, {"time": time.time(), "event": what, **details})
        said = " ".join(f"{name}={value}" for name, value in details.items())
        write_line(self.folder / LOG, "learner", f"{what} {said}".rstrip())
        for listener in self.listeners:
            listener(what, details)

    def failed(self, error: Exception) -> None:
        """The last event of a life that ended badly; how it came to that, also in a worker, is in the log."""
        self.event("failed", reason=str(error))
        for line in "".join(traceback.format_exception(error)).splitlines():
            write_line(self.folder / LOG, "learner", line)

    def forget_after(self, decisions: int) -> None:
        """Drop metrics of decisions that are about to be made anew."""
        self._metrics.close()
        kept = [line for line in read_lines(self.folder / METRICS) if line["decisions"] <= decisions]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        checkpoint.write_whole(self.folder / METRICS, text.encode())
        self._metrics = (self.folder / METRICS).open("a", buffering=1)

    def close(self) -> None:
        for file in (self._metrics, self._events):
            with contextlib.suppress(OSError):  # what could not be written when due can't be written now
                file.close()
        if not is_run(self.folder):
            self._leave_no_trace()
        self._lock.close()

    def _leave_no_trace(self) -> None:
        for trace in self._made:
            shutil.rmtree(trace) if trace.is_dir() else trace.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files are in it
            self.folder.rmdir()

    def _write(self, file: Any, values: dict[str, Any]) -> None:
        """A full disk costs a line, not the training."""
        try:
            file.write(json.dumps(values) + "\n")
        except OSError as error:
            write_line(self.folder / LOG, "learner", f"a line was lost: {error.strerror}")


def _locked(folder: Path) -> Any:
    """Held as long as a process trains this run, and freed by the system however that ends."""
    lock = (folder / LOCK).open("a")
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Usage(
                f"{folder} is being trained by another process: choose another folder with --run"
            ) from None
    return lock


def is_running(folder: Path) -> bool:
    if fcntl is None or not (folder / LOCK).exists():
        return False
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def folder_of(config: Config) -> Path:
    return Path(config.run or f"runs/{config.game.replace(':', '-').replace('/', '-')}-{config.preset}")


def keep_sizes(config: Config) -> Config:
    """With `rows` and `steps` of the run that goes on, where they are left to us: they were measured once."""
    folder = folder_of(config)
    if (config.rows and config.steps) or not is_run(folder):
        return config
    before = read_config(folder)
    return dataclasses.replace(config, rows=config.rows or before.rows, steps=config.steps or before.steps)


def refuse_misfit(before: Config, now: Config, folder: Path) -> None:
    for group, why in FIXED.items():
        for name, old, new in _differences(group, getattr(before, group), getattr(now, group)):
            raise Usage(
                f"{folder} can't go on with {name} {new} instead of {old}: {why}; "
                "choose another folder with --run"
            )


def _differences(name: str, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """Fields that differ, of a group or of one: their names, what they were and what they are."""
    if dataclasses.is_dataclass(old):
        old, new = vars(old), vars(new)
    if not isinstance(old, dict):
        return [(name, old, new)] if old != new else []
    values = [
        (field, old.get(field, "the default"), new.get(field, "the default")) for field in {**old, **new}
    ]
    return [(f"{name}.{field}", before, now) for field, before, now in values if before != now]


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Lines of a file that may be in the middle of being written."""
    lines = []
    for text in file.read_text().splitlines() if file.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue  # torn by a crash, or not finished yet
    return lines


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).exists()


def read_config(folder: Path, game: str = "") -> Config:
    """What the run was told; game: what it should have been trained on."""
    if not is_run(folder):
        raise Usage(f"{folder} is not a run: it has no {CONFIG}")
    try:
        values = tomllib.loads((folder / CONFIG).read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{folder / CONFIG} is not TOML: {error}") from None
    values.pop("versions", None)
    config = overlay(Config(), values, str(folder / CONFIG))
    if game and config.game != game:
        raise Usage(f"{folder} is a run of {config.game}, not of {game}")
    return config


def read_weights(folder: Path, at: str = "") -> dict[str, Any]:
    """Of the newest checkpoint whose weights are whole; at: of `best`, or of a milestone by its decisions."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    for file in _weight_files(folder, at):
        try:
            return load_file(file)
        except (OSError, SafetensorError):
            continue
    raise Failure(f"{folder} has no readable weights {'yet' if not at else f'of {at}'}")


def _weight_files(folder: Path, at: str) -> list[Path]:
    best = folder / f"{checkpoint.BEST}.safetensors"
    if not at:  # a run that was given away may have nothing but its best
        return [*(place / checkpoint.WEIGHTS for place in reversed(checkpoint.listed(folder))), best]
    if at == checkpoint.BEST:
        return [best]
    stones = checkpoint.milestones(folder)
    wanted = [stone for stone in stones if at.isdigit() and int(stone.stem) >= int(at)]
    if not wanted:
        known = ", ".join(str(int(stone.stem)) for stone in stones)
        raise Usage(
            f"{folder} has no weights of {at!r}: choose best or one of {known or 'no milestones yet'}"
        )
    return wanted[:1]
