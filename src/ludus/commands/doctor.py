"""`ludus doctor`: what this machine has, what is missing, and the command that gets it."""

import platform
from importlib import metadata
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from ludus import __version__, games, machine
from ludus.core import extras, jit, seeds
from ludus.core.errors import Failure

console = Console(highlight=False, emoji=False)
GIB = 2**30
WORKERS, ROWS = 8, 4096


def examine() -> None:
    _line("ludus", __version__)
    _line("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    missing = _packages()
    quota = machine.core_quota()
    limit = f", of which a container grants {quota:g}" if quota is not None else ""
    _line("cores", f"{machine.cores()}{limit}")
    total, free = machine.memory_bytes()
    _line("memory", f"{total / GIB:.1f} GiB, {free / GIB:.1f} GiB free")
    folder = jit.cache_folder(Path(jit.__file__).parent)
    _line("compiled code", f"{_size_bytes(folder) / 2**20:.1f} MiB for this version in {folder}")
    _line("random streams", _streams())
    for name in games.names():
        _line(f"game {name}", _readiness(name))
    for fix, names in missing.items():
        console.print(f"[yellow]missing[/] {', '.join(names)}: {escape(fix)}", soft_wrap=True)
    if not missing:
        console.print("nothing optional is missing")


def _packages() -> dict[str, list[str]]:
    """Tell the version of every package of every extra; of those that are missing, by how to get them."""
    missing: dict[str, list[str]] = {}
    for package in dict.fromkeys(name for names in extras.packages().values() for name in names):
        try:
            _line(package, metadata.version(package))
        except metadata.PackageNotFoundError:
            missing.setdefault(extras.fix(package), []).append(package)
    return missing


def _line(what: str, value: str) -> None:
    console.print(f"{what:<18} {escape(value)}", soft_wrap=True)


def _readiness(name: str) -> str:
    """Whether a game can be opened, or what it needs first."""
    try:
        seats = games.open(name).spec.seats
    except Failure as missing:
        return str(missing)
    return f"ready, {seats} seat{'s' if seats > 1 else ''}"


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _streams() -> str:
    """Whether the workers of one run would play different games."""
    streams = [seeds.rows(0, ROWS, "worker", worker, "table") for worker in range(WORKERS)]
    starts, steps = (np.concatenate([stream[:, i] for stream in streams]) for i in (0, 1))
    distinct = len(np.unique(starts)) == len(starts) and len(np.unique(steps)) == len(steps)
    verdict = "all different" if distinct else "NOT all different: please report this"
    return f"{WORKERS} workers x {ROWS:,} rows are {verdict}"
