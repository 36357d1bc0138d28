"""Which runs may import code or connect to a server: those that the user began on this machine, or said to
trust.

A run's folder may come from anybody, and a game such as `module:Class` or an algorithm's module in its
configuration is code, and so is what a Ray cluster sends; a server may ask for a password. So the user's own
runs are noted when they begin, in a file outside of them that only the user can write.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from ludus import algos, games
from ludus.config import Config
from ludus.core.errors import Usage

_accepted: set[str] = set()
"""Notes of this process, which hold where the file can't be written."""


def refuse_strange_code(folder: Path, config: Config) -> None:
    """Before the game or algorithm of a run is imported because its configuration says so."""
    if (risk := _risk(config)) and not _is_known(_note(folder, config)):
        raise Usage(f"{folder} {risk}: add --trust if you trust this run")


def accept(folder: Path, config: Config, for_good: bool = False) -> None:
    """The user named the run's game, or trusts it; for good, or as long as this process lives."""
    note = _note(folder, config)
    if not _risk(config) or _is_known(note):
        return
    _accepted.add(note)
    if for_good:
        with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
            _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as notes:
                notes.write(f"{note}\n")


def _risk(config: Config) -> str:
    """What the run would do by its configuration; empty if that is harmless."""
    if games.imports_code(config.game):
        return f"was trained on {config.game}, which imports code"
    if algos.imports_code(config.algo):
        return f"was trained by {config.algo}, which imports code"
    if _joins_cluster(config):
        return f"joins the Ray cluster {config.ray_address}, which may send code"
    servers = [value for value in config.switches.values() if isinstance(value, str) and "://" in value]
    return f"connects to {servers[0]}" if servers else ""


def _joins_cluster(config: Config) -> bool:
    return config.pool == "ray" and config.ray_address not in ("", "auto")


def _note(folder: Path, config: Config) -> str:
    """What is trusted: this game, algorithm and cluster with these arguments in this folder, as a hash."""
    what = [str(folder.resolve()), config.game, config.switches]
    if algos.imports_code(config.algo):
        what.append(config.algo)
    if _joins_cluster(config):
        what.append(config.ray_address)
    told = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()


def _is_known(note: str) -> bool:
    if note in _accepted:
        return True
    try:
        return note in _file().read_text().split()
    except (OSError, RuntimeError, UnicodeDecodeError):
        return False


def _file() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "ludus" / "trusted-runs"
