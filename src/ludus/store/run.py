"""A run: a folder with everything a training produced. Others may read it while it is written."""

import contextlib
import dataclasses
import importlib.metadata
import os
import shlex
import shutil
import time
import tomllib
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

import ludus
from ludus import algos
from ludus.config import Config, default_algo, overlay, plain, upgraded
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint, trust
from ludus.store.disk import reason, writing
from ludus.store.lines import EVENTS, METRICS, LineWriter, damage, drop_tail
from ludus.store.lines import read_lines as read_lines
from ludus.store.lock import LOCK, hold
from ludus.store.log import OLD_LOG, write_line

CONFIG, LOG, TENSORBOARD = "config.toml", "log.txt", "tensorboard"
CHECKPOINTS = checkpoint.CHECKPOINTS
NEWEST = "newest"
TRACES = (METRICS, EVENTS, LOG, OLD_LOG, TENSORBOARD, LOCK, CHECKPOINTS)
"""What a training leaves in its folder before it is accepted."""
FIXED = {
    "game": "it was trained on another game",
    "switches": "it was trained under other rules",
    "algo": "it was trained in another way",
    "net": "its weights would not fit",
    "seed": "its randomness began elsewhere",
}
"""What can't change in a run that goes on, and why."""


FREE = (
    "run", "decisions", "seconds", "workers", "pool", "ray_address", "ray_modules", "inference", "device",
    "start_method", "log_s", "checkpoints",
    "notify", "notify_minutes", "notify_decisions", "mirror", "tensorboard", "profile", "price_per_hour",
)  # fmt: skip
"""What may differ between two commands that train the same: how long, where, and who hears of it."""

COMPARED = [field.name for field in dataclasses.fields(Config) if field.name not in FREE]


class Run:
    def __init__(self, folder: Path, config: Config, aside: Path | None = None) -> None:
        """aside: where the run is that was in this folder before, until this one is accepted"""
        self.folder, self.config = folder, config
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        """Told of every event; must return at once."""
        self.readers: list[Callable[[dict[str, Any]], None]] = []
        """Given all metrics; must return at once."""
        self.new = not is_run(folder)
        self._aside = aside
        traces = (folder / name for name in TRACES)
        self._made = [*_missing(folder), *(trace for trace in traces if not trace.exists())]
        with writing(folder):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = hold(folder)
                self._metrics, self._events = LineWriter(folder / METRICS), LineWriter(folder / EVENTS)
            except OSError:
                self._leave_no_trace()
                raise

    @classmethod
    def open(cls, config: Config, overwrite: bool = False) -> "Run":
        """A new run, or the one that is there already if the configuration still fits it.

        Nothing of what is new about it stays unless it is accepted. overwrite: begin a new one in any case;
        the one that is there is moved aside
        """
        folder = folder_of(config)
        if overwrite:
            return cls(folder, config, _move_aside(folder))
        if is_run(folder):
            refuse_misfit(peek_config(folder, config.algo), config, folder)
        elif checkpoint.has_learned(folder):
            raise Usage(
                f"{folder} holds weights but no {CONFIG}, so they could be written over: "
                "choose another folder with --run, or --overwrite to move them aside"
            )
        return cls(folder, config)

    def accept(self) -> None:
        """Training can begin as configured: from now on this is a run."""
        values = plain(dataclasses.replace(self.config, notify=()))  # addresses are secrets
        libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
        values["versions"] = {"ludus": ludus.__version__, **libraries}
        with writing(self.folder):
            checkpoint.write_whole(self.folder / CONFIG, tomli_w.dumps(values).encode())
        trust.accept(self.folder, self.config, for_good=True)
        if self._aside is None:
            return
        if checkpoint.has_learned(self._aside):
            self.event("moved aside", reason=f"the run that was in {self.folder} is now in {self._aside}")
        else:
            shutil.rmtree(self._aside, ignore_errors=True)
        self._aside = None

    def withdraw(self) -> None:
        """A new run that can't be saved is none."""
        if self.new:
            (self.folder / CONFIG).unlink(missing_ok=True)

    def check(self) -> None:
        """Fail if the folder was deleted, moved or replaced since: what is saved there would be lost."""
        if not (self._is_ours() and is_run(self.folder)):
            raise Failure(
                f"{self.folder} was deleted, moved or replaced during its training, so nothing more can be "
                "saved there: train again, or `ludus resume` the folder where it is now"
            )

    def metrics(self, values: dict[str, Any]) -> None:
        self.check()
        self._write(self._metrics, values)
        for reader in self.readers:
            reader(values)

    def event(self, what: str, **details: Any) -> None:
        """May be called from any thread."""
        self._write(self._events, {"time": time.time(), "event": what, **details})
        said = " ".join(f"{name}={value}" for name, value in details.items())
        self._log(f"{what} {said}".rstrip())
        for listener in self.listeners:
            listener(what, details)

    def failed(self, error: Exception) -> None:
        """The last event of a life that ended badly; how it came to that, also in a worker, is in the log."""
        self.event("failed", reason=str(error))
        for line in "".join(traceback.format_exception(error)).splitlines():
            self._log(line)

    def forget_after(self, decisions: int) -> None:
        """Drop metrics of decisions that are about to be made anew."""
        with writing(self.folder):
            damaged = drop_tail(self.folder / METRICS, lambda line: line["decisions"] <= decisions)
        if damaged:
            self.event("damaged lines", reason=damage(self.folder / METRICS, damaged))

    def close(self) -> None:
        for file in (self._metrics, self._events):
            with contextlib.suppress(OSError):  # what could not be written when due can't be written now
                file.close()
        self._leave_no_trace()
        self._lock.close()

    def _leave_no_trace(self) -> None:
        """Unless this is a run."""
        if not self.new or is_run(self.folder):  # which may be another's that has replaced it
            return
        for trace in reversed(self._made):  # folders come before what is in them
            with contextlib.suppress(OSError):  # somebody else's files are in it
                if trace.name not in (CHECKPOINTS, TENSORBOARD):
                    trace.rmdir() if trace.is_dir() else trace.unlink(missing_ok=True)
                else:
                    shutil.rmtree(trace)
        if self._aside is not None:
            with contextlib.suppress(OSError):
                self._aside.rename(self.folder)

    def _is_ours(self) -> bool:
        """Whether the folder is still the one that we hold the lock of."""
        try:
            return os.path.samestat(os.fstat(self._lock.fileno()), (self.folder / LOCK).stat())
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _log(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a log that can't be written stops no training
            if self._is_ours():
                write_line(self.folder / LOG, "learner", text)

    def _write(self, file: LineWriter, values: dict[str, Any]) -> None:
        """A full disk costs a line, not the training."""
        try:
            file.write(values)
        except OSError as error:
            self._log(f"a line was lost: {reason(error)}")


def _missing(folder: Path) -> list[Path]:
    """The folder and those above it that are not there yet, outermost first."""
    return [place for place in (*reversed(folder.parents), folder) if not place.exists()]


def _move_aside(folder: Path) -> Path | None:
    """Where the run in a folder went; None if there is none."""
    if not (is_run(folder) or checkpoint.has_learned(folder)):
        return None
    with writing(folder):
        hold(folder).close()  # refused if somebody trains it
        number = 1
        while (place := folder.with_name(f"{folder.name}.old{number}")).exists():
            number += 1
        folder.rename(place)
    return place


def folder_of(config: Config) -> Path:
    return Path(config.run or f"runs/{config.game.replace(':', '-').replace('/', '-')}-{config.preset}")


def quoted(folder: Path) -> str:
    """As it is written on a command line; a name that begins with - would be read as a flag."""
    return shlex.quote(f"./{folder}" if str(folder).startswith("-") else str(folder))


def keep_sizes(config: Config) -> Config:
    """With `rows` and `steps` of the run that goes on, where they are left to us: they were measured once."""
    folder = folder_of(config)
    if (config.rows and config.steps) or not is_run(folder):
        return config
    before = peek_config(folder)
    return dataclasses.replace(config, rows=config.rows or before.rows, steps=config.steps or before.steps)


def refuse_misfit(before: Config, now: Config, folder: Path) -> None:
    for group, why in FIXED.items():
        for name, old, new in differences(group, getattr(before, group), getattr(now, group)):
            raise Usage(
                f"{folder} can't go on with {name} {new} instead of {old}: {why}; "
                "choose another folder with --run"
            )


def refuse_other(before: Config, now: Config, folder: Path) -> None:
    """Two commands must ask for the same training to go on in one folder."""
    for field in (*(field for field in COMPARED if field != "preset"), "preset"):
        shown = algos.group_of(now.algo) if field == "settings" else field
        for name, old, new in differences(shown, getattr(before, field), getattr(now, field)):
            raise Usage(
                f"{folder} was trained with {name} {old}, not {new}: go on with it by "
                f"`ludus resume {quoted(folder)}`, choose another folder with --run, "
                "or begin anew with --overwrite, which moves it aside"
            )


def differences(name: str, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """Fields that differ, of a group or of one: their names, what they were and what they are."""
    if dataclasses.is_dataclass(old):
        old, new = vars(old), vars(new)
    if not isinstance(old, dict):
        return [(name, old, new)] if old != new else []
    values = [
        (field, old.get(field, "the default"), new.get(field, "the default")) for field in {**old, **new}
    ]
    return [(f"{name}.{field}", before, now) for field, before, now in values if before != now]


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).exists()


def read_config(folder: Path, game: str = "") -> Config:
    """What the run was told, once it is clear that its game may be opened.

    game: what it should have been trained on. Whoever names it may open it; the run alone may not choose
    what code is imported (`trust.py`).
    """
    config = peek_config(folder)
    if game and config.game != game:
        raise Usage(f"{folder} is a run of {config.game}, not of {game}")
    if game and not algos.imports_code(config.algo):
        trust.accept(folder, config)
    trust.refuse_strange_code(folder, config)
    config = peek_config(folder, config.algo)
    if config.notify:  # a run never keeps them; a stranger's would be told what happens here
        raise Usage(f"{folder / CONFIG} has addresses to notify: remove them, and give your own as --notify")
    return config


def peek_config(folder: Path, algo: str = "") -> Config:
    """What the run was told, to look at only: to open its game takes `read_config`.

    algo: the algorithm if it may be imported; else the settings of one that is not our own stay unread
    """
    if not is_run(folder):
        raise Usage(f"{folder} is not a run: it has no {CONFIG}")
    try:
        values = tomllib.loads((folder / CONFIG).read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"{folder / CONFIG} is not TOML: {error}") from None
    values = upgraded(values, str(folder / CONFIG))
    named = values.get("algo", default_algo())
    for what, name in (("a game", values.get("game", "")), ("an algorithm", named)):
        if not (isinstance(name, str) and name.isprintable()):  # it is shown in tables and messages
            raise Failure(f"{folder / CONFIG} names {what} {name!r}, which is none")
    settings = None
    if algo == named or not algos.imports_code(named):
        settings = algos.find(named).settings_type()
    else:
        values.pop(algos.group_of(named), None)
    return overlay(Config(algo=named, settings=settings), values, str(folder / CONFIG))


def trust_run(folder: Path) -> None:
    """Its game may be opened from now on, whatever it imports."""
    trust.accept(folder, peek_config(folder), for_good=True)


def read_weights(folder: Path, at: str = "") -> dict[str, Any]:
    """Of the newest checkpoint whose weights are whole; at: of `best`, or of a milestone by its decisions."""
    for file in _weight_files(folder, at):
        with contextlib.suppress(Failure):
            return load_weights(file)
    raise Failure(f"{folder} has no readable weights {'yet' if not at else f'of {at}'}")


def load_weights(file: Path) -> dict[str, Any]:
    """Arrays by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise Failure(f"{file} can't be read: {error}") from None


def check_fit(source: str | Path, weights: Mapping[str, Any], network: Mapping[str, Any]) -> None:
    """Fail if the weights of a run are not those of a network, by their names and shapes."""
    wrong = [f"{name} is missing" for name in network if name not in weights]
    wrong += [f"{name} is not part of it" for name in weights if name not in network]
    wrong += [
        f"{name} has the shape {tuple(weights[name].shape)}, not {tuple(array.shape)}"
        for name, array in network.items()
        if name in weights and tuple(weights[name].shape) != tuple(array.shape)
    ]
    if wrong:
        raise Failure(
            f"the weights of {source} don't fit the network of its {CONFIG} ({wrong[0]}): "
            "one of them was changed, or is of another version or of other rules"
        )


def _weight_files(folder: Path, at: str) -> list[Path]:
    """Where the weights may be, in order."""
    best = checkpoint.best_file(folder)
    if at in ("", NEWEST):  # a run that was given away may have nothing but its best
        places = reversed(checkpoint.listed(folder))
        found = [
            *(place / checkpoint.WEIGHTS for place in places),
            best,
            *checkpoint.milestones(folder)[::-1],
        ]
        return [file for file in found if file.exists()]
    known = {str(int(file.stem)): file for file in checkpoint.milestones(folder)}
    known |= {checkpoint.BEST: best} if best.exists() else {}
    if at not in known:
        offer = f"choose from {', '.join([NEWEST, *known])}" if known else f"it has the {NEWEST} only"
        raise Usage(f"{folder} has no weights of {at!r}: {offer}")
    return [known[at]]
