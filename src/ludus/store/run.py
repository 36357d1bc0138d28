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

import ludus
from ludus.config import Config, overlay
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.log import write_line

CONFIG, METRICS, EVENTS, LOG = "config.toml", "metrics.jsonl", "events.jsonl", "log.txt"
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
        self._metrics = (folder / METRICS).open("a", buffering=1)
        self._events = (folder / EVENTS).open("a", buffering=1)

    @classmethod
    def open(cls, config: Config) -> "Run":
        """A new run, or the one that is there already if the configuration still fits it."""
        folder = folder_of(config)
        if is_run(folder):
            refuse_misfit(read_config(folder), config, folder)
        folder.mkdir(parents=True, exist_ok=True)
        values = dataclasses.asdict(config)
        libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
        values["versions"] = {"ludus": ludus.__version__, **libraries}
        replace_file(folder / CONFIG, tomli_w.dumps(values))
        return cls(folder, config)

    def metrics(self, values: dict[str, Any]) -> None:
        self._write(self._metrics, values)

    def event(self, what: str, **details: Any) -> None:
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
        for file in (self._metrics, self._events):
            with contextlib.suppress(OSError):  # what could not be written when due can't be written now
                file.close()

    def _write(self, file: Any, values: dict[str, Any]) -> None:
        """A full disk costs a line, not the training."""
        try:
            file.write(json.dumps(values) + "\n")
        except OSError as error:
            write_line(self.folder / LOG, "learner", f"a line was lost: {error.strerror}")


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


def read_config(folder: Path) -> Config:
    if not is_run(folder):
        raise Usage(f"{folder} is not a run: it has no {CONFIG}")
    try:
        values = tomllib.loads((folder / CONFIG).read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{folder / CONFIG} is not TOML: {error}") from None
    values.pop("versions", None)
    return overlay(Config(), values, str(folder / CONFIG))


def read_weights(folder: Path) -> dict[str, Any]:
    """Of the newest checkpoint whose weights are whole."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    for place in reversed(checkpoint.listed(folder)):
        try:
            return load_file(place / checkpoint.WEIGHTS)
        except (OSError, SafetensorError):
            continue
    raise Failure(f"{folder} has no checkpoint with readable weights yet")
