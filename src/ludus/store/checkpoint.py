"""Checkpoints: points from which a run continues exactly. Loading one never executes code.

    checkpoints/000000250000/   the newest few: weights, trainer state, and a manifest of both
    milestones/000001000000.safetensors   weights only, kept for good
    best.safetensors, best.json   weights only, of the best by the game's own measure

Everything appears under its name whole or not at all: written beside it, flushed to the disk, renamed.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ludus.config import Schedule
from ludus.core.errors import Failure
from ludus.store.lines import is_number

CHECKPOINTS, MILESTONES, BEST = "checkpoints", "milestones", "best"
WEIGHTS, TRAINER, MANIFEST = "weights.safetensors", "trainer.pt", "manifest.json"
UNFINISHED = ".new-"
ARRAY = "npy"


@dataclass(frozen=True)
class Checkpoint:
    decisions: int
    weights: dict[str, Any]
    """Tensors by name, on the CPU."""
    state: dict[str, Any]
    """Numbers, texts, tensors and arrays, in lists and dictionaries."""


@dataclass(frozen=True)
class Best:
    """What is known of the best weights of a run."""

    decisions: int
    measure: float
    name: str = ""
    """What was measured, as "score" or "points/hand"."""


def listed(run: Path) -> list[Path]:
    """Finished checkpoints of a run, oldest first."""
    folder = run / CHECKPOINTS
    found = [path for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def write(run: Path, checkpoint: Checkpoint) -> Path:
    import torch
    from safetensors.torch import save

    trainer = io.BytesIO()
    torch.save(_packed(checkpoint.state), trainer)
    files = {WEIGHTS: save(checkpoint.weights), TRAINER: trainer.getvalue()}
    manifest = {"files": {name: _described(data) for name, data in files.items()}}
    place = run / CHECKPOINTS / f"{checkpoint.decisions:012d}"
    beside = place.with_name(UNFINISHED + place.name)
    shutil.rmtree(beside, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)  # without its parents: a run that was deleted must not come back empty
    beside.mkdir()
    for name, data in {**files, MANIFEST: json.dumps(manifest).encode()}.items():
        _write_flushed(beside / name, data)
    _flush_folder(beside)
    shutil.rmtree(place, ignore_errors=True)  # of a life of this run that was rolled back
    os.rename(beside, place)
    _flush_folder(place.parent)
    return place


def read(place: Path) -> Checkpoint:
    """A checkpoint that is whole; a Failure says why it is not."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        files = json.loads((place / MANIFEST).read_text())["files"]
        for name in (WEIGHTS, TRAINER):
            if _described((place / name).read_bytes()) != files[name]:
                raise Failure(f"{place / name} is not what was written")
        state = torch.load(place / TRAINER, weights_only=True)
        return Checkpoint(int(place.name), load_file(place / WEIGHTS), _unpacked(state))
    except Failure:
        raise
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, EOFError, RuntimeError) as error:
        raise Failure(f"{place} can't be read: {_first_line(error)}") from None
    except Exception as error:  # what torch raises for a pickle that it refuses has no better type
        raise Failure(f"{place} is refused: {_first_line(error)}") from None


def newest(run: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest intact one; those that are not are told and passed over."""
    for place in reversed(listed(run)):
        try:
            return read(place)
        except Failure as failure:
            warn(f"{failure}; looking for one before")
    return None


def has_learned(run: Path) -> bool:
    """Whether there is anything in it that somebody may miss."""
    known = any(int(place.name) for place in listed(run)) or milestones(run)
    return bool(known) or best_file(run).exists()


def milestones(run: Path) -> list[Path]:
    """Weights that are kept for good, oldest first."""
    found = [file for file in (run / MILESTONES).glob("*.safetensors") if file.stem.isdigit()]
    return sorted(found, key=lambda file: int(file.stem))


def best_file(run: Path) -> Path:
    return run / f"{BEST}.safetensors"


def read_best(run: Path) -> Best | None:
    """None if there is no best yet, or if best.json does not tell how good it is."""
    try:
        note = json.loads((run / f"{BEST}.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or not all(is_number(note.get(key)) for key in ("decisions", "measure")):
        return None
    return Best(int(note["decisions"]), float(note["measure"]), str(note.get("name", "")))


def best_so_far(run: Path, remembered: float = -math.inf) -> float:
    """What a new best must exceed. remembered: what the newest checkpoint knows of it

    Infinite if there is a best and nobody knows how good it is: then it stays.
    """
    if not best_file(run).exists():
        return -math.inf
    if best := read_best(run):
        return best.measure
    return remembered if math.isfinite(remembered) else math.inf


def write_weights(file: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save

    write_whole(file, save(weights))


def write_whole(file: Path, data: bytes) -> None:
    """Readers see the old content or the new one, never half of it, even after a power cut."""
    beside = file.with_name(UNFINISHED + file.name)
    try:
        _write_flushed(beside, data)
        os.replace(beside, file)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    _flush_folder(file.parent)


def thin_out(run: Path, keep: int, newest: int) -> None:
    """Remove all but the newest.

    newest: the one just written. Later ones could not be read when the run went on, so they don't count.
    """
    places = listed(run)
    known = [place for place in places if int(place.name) <= newest]
    for place in set(places) - set(known[-max(keep, 1) :]):
        shutil.rmtree(place, ignore_errors=True)


def sweep(run: Path) -> None:
    """Remove what was never finished, also by a life of this run that was killed."""
    for folder in (run, run / CHECKPOINTS, run / MILESTONES):
        for path in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


class Saver:
    """Writes beside the training. A write that fails is told, and what was there before stays."""

    def __init__(
        self, run: Path, schedule: Schedule, decisions: int, told: Callable[[str, dict[str, Any]], None]
    ) -> None:
        """decisions: made before. told: is given what happened and its details"""
        self.run, self.schedule, self.told = run, schedule, told
        self.failed = ""
        """Why the last write failed; empty if it did not."""
        self._writing: threading.Thread | None = None
        self._milestone = decisions // schedule.milestone if schedule.milestone else 0

    @property
    def busy(self) -> bool:
        return self._writing is not None and self._writing.is_alive()

    def save(self, checkpoint: Checkpoint, best: Best | None, best_weights: dict[str, Any]) -> None:
        """best: if there is a new one, with these weights"""
        self.wait()
        self._writing = threading.Thread(target=self._save, args=(checkpoint, best, best_weights))
        self._writing.start()

    def wait(self) -> None:
        if self._writing:
            self._writing.join()

    def _save(self, checkpoint: Checkpoint, best: Best | None, best_weights: dict[str, Any]) -> None:
        begun = time.thread_time()
        try:
            write(self.run, checkpoint)
            self._save_milestone(checkpoint)
            if best is not None:
                write_weights(best_file(self.run), best_weights)
                write_whole(self.run / f"{BEST}.json", json.dumps(asdict(best)).encode())
            thin_out(self.run, self.schedule.keep, checkpoint.decisions)
            sweep(self.run)
        except Exception as error:
            sweep(self.run)  # on a full disk, halves of each try would be all that fits
            self.failed = getattr(error, "strerror", None) or _first_line(error)
            self.told("checkpoint failed", {"decisions": checkpoint.decisions, "reason": self.failed})
            return
        self.failed = ""
        cpu_s = round(time.thread_time() - begun, 4)
        self.told("checkpoint", {"decisions": checkpoint.decisions, "cpu_s": cpu_s})
        if best is not None:
            self.told("best", asdict(best))

    def _save_milestone(self, checkpoint: Checkpoint) -> None:
        every = self.schedule.milestone
        if every and checkpoint.decisions // every > self._milestone:
            file = self.run / MILESTONES / f"{checkpoint.decisions:012d}.safetensors"
            file.parent.mkdir(exist_ok=True)
            if not file.exists():  # of an earlier life: what is kept for good is not written over
                write_weights(file, checkpoint.weights)
            self._milestone = checkpoint.decisions // every


def _described(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _write_flushed(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    if os.name == "nt":  # where folders can't be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def _packed(tree: Any) -> Any:
    """Arrays as tensors of bytes, because torch's safe loading knows no arrays."""
    import torch

    if isinstance(tree, np.ndarray):
        data = io.BytesIO()
        np.save(data, tree, allow_pickle=False)
        return {ARRAY: torch.frombuffer(bytearray(data.getvalue()), dtype=torch.uint8)}
    if isinstance(tree, dict):
        return {name: _packed(branch) for name, branch in tree.items()}
    return [_packed(branch) for branch in tree] if isinstance(tree, list) else tree


def _unpacked(tree: Any) -> Any:
    if isinstance(tree, dict):
        if set(tree) == {ARRAY}:
            return np.load(io.BytesIO(tree[ARRAY].numpy().tobytes()), allow_pickle=False)
        return {name: _unpacked(branch) for name, branch in tree.items()}
    return [_unpacked(branch) for branch in tree] if isinstance(tree, list) else tree
