"""A run: a folder with everything a training produced. Others may read it while it is written."""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import tempfile
import time
import tomllib
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
LOCK = ".lock"
FIXED = {
    "game": "it was trained on another game",
    "switches": "it was trained under other rules",
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
        self._lock = _locked(folder)
        self._metrics = (folder / METRICS).open("a", buffering=1)
        self._events = (folder / EVENTS).open("a", buffering=1)

    @classmethod
    def open(cls, config: Config) -> "Run":
        """A new run, or the one that is there already if the configuration still fits it."""
        folder = folder_of(config)
        if is_run(folder):
            refuse_misfit(read_config(folder), config, folder)
        folder.mkdir(parents=True, exist_ok=True)
        values = dataclasses.asdict(dataclasses.replace(config, notify=()))  # addresses are secrets
        libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
        values["versions"] = {"ludus": ludus.__version__, **libraries}
        run = cls(folder, config)
        replace_file(folder / CONFIG, tomli_w.dumps(values))
        return run

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

    def forget_after(self, decisions: int) -> None:
        """Drop metrics of decisions that are about to be made anew."""
        self._metrics.close()
        kept = [line for line in read_lines(self.folder / METRICS) if line["decisions"] <= decisions]
        replace_file(self.folder / METRICS, "".join(json.dumps(line) + "\n" for line in kept))
        self._metrics = (self.folder / METRICS).open("a", buffering=1)

    def close(self) -> None:
        self._lock.close()
        for file in (self._metrics, self._events):
            with contextlib.suppress(OSError):  # what could not be written when due can't be written now
                file.close()

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


def refuse_misfit(before: Config, now: Config, folder: Path) -> None:
    for name, why in FIXED.items():
        old, new = getattr(before, name), getattr(now, name)
        if old == new:
            continue
        if dataclasses.is_dataclass(old):
            changed = [
                f.name for f in dataclasses.fields(old) if getattr(old, f.name) != getattr(new, f.name)
            ]
            name, old, new = f"{name}.{changed[0]}", getattr(old, changed[0]), getattr(new, changed[0])
        raise Usage(
            f"{folder} can't go on with {name} {new}: {why} ({old}); choose another folder with --run"
        )


def replace_file(file: Path, text: str) -> None:
    """Readers see the old text or the new one, never half of it."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".", delete=False) as beside:
        beside.write(text)
    os.replace(beside.name, file)


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
    if not at:
        return [place / checkpoint.WEIGHTS for place in reversed(checkpoint.listed(folder))]
    if at == checkpoint.BEST:
        return [folder / f"{checkpoint.BEST}.safetensors"]
    stones = sorted((folder / checkpoint.MILESTONES).glob("*.safetensors"))
    wanted = [stone for stone in stones if at.isdigit() and int(stone.stem) >= int(at)]
    if not wanted:
        known = ", ".join(str(int(stone.stem)) for stone in stones)
        raise Usage(
            f"{folder} has no weights of {at!r}: choose best or one of {known or 'no milestones yet'}"
        )
    return wanted[:1]
