"""`ludus doctor`: what this machine has, what is missing, and the command that gets it."""

import platform
from importlib import metadata
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from ludus import __version__, machine
from ludus.core import jit, seeds

console = Console(highlight=False)
GIB = 2**30
NEEDED = ("numpy", "numba", "gymnasium", "pettingzoo", "tyro", "rich", "psutil")
OPTIONAL = {
    "torch": "train",
    "safetensors": "train",
    "openskill": "train",
    "stable-baselines3": "sb3",
    "sb3-contrib": "sb3",
    "pygame-ce": "classic",
    "rlcard": "classic",
    "pillow": "png",
    "pytest": "dev",
}
WORKERS, ROWS = 8, 4096


def examine() -> None:
    _line("ludus", __version__)
    _line("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for package in NEEDED:
        _line(package, metadata.version(package))
    missing: dict[str, list[str]] = {}
    for package, extra in OPTIONAL.items():
        try:
            _line(package, metadata.version(package))
        except metadata.PackageNotFoundError:
            missing.setdefault(extra, []).append(package)
    quota = machine.core_quota()
    limit = f", of which a container grants {quota:g}" if quota is not None else ""
    _line("cores", f"{machine.cores()}{limit}")
    total, free = machine.memory_bytes()
    _line("memory", f"{total / GIB:.1f} GiB, {free / GIB:.1f} GiB free")
    folder = jit.cache_folder(Path(jit.__file__).parent)
    _line("compiled code", f"{_size_bytes(folder) / 2**20:.1f} MiB for this version in {folder}")
    _line("random streams", _streams())
    for extra, packages in missing.items():
        fix = escape(f"pip install -c constraints.txt -e '.[{extra}]' in the project's folder")
        console.print(f"[yellow]missing[/] {', '.join(packages)}: {fix}")
    if not missing:
        console.print("nothing optional is missing")


def _line(what: str, value: str) -> None:
    console.print(f"{what:<18} {escape(value)}", soft_wrap=True)


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _streams() -> str:
    """Whether the workers of one run would play different games."""
    streams = [seeds.rows(0, ROWS, "worker", worker, "table") for worker in range(WORKERS)]
    starts, steps = (np.concatenate([stream[:, i] for stream in streams]) for i in (0, 1))
    distinct = len(np.unique(starts)) == len(starts) and len(np.unique(steps)) == len(steps)
    verdict = "all different" if distinct else "NOT all different: please report this"
    return f"{WORKERS} workers x {ROWS:,} rows are {verdict}"
