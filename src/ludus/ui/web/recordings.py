"""Recordings: files of games that can be played again, found in the folder of the runs and in the runs' own.

A browser names one as it is listed here, never by a path.
"""

from pathlib import Path

from ludus import games
from ludus.store.reader import find_runs

MOST = 100


def recordings(runs: Path) -> dict[str, Path]:
    """Name -> file, the newest first."""
    places, endings = [runs, *find_runs(runs)], {ending for _, ending in kinds()}
    files = [file for place in places for ending in endings for file in place.glob(f"*{ending}")]
    files.sort(key=lambda file: -file.stat().st_mtime)
    return {file.relative_to(runs).as_posix(): file for file in files[:MOST]}


def kinds() -> list[tuple[str, str]]:
    """Games that have recordings, and how their files end."""
    return [(name, ending) for name in games.page_names() if (ending := games.find(name).recordings)]


def game_of(name: str) -> str:
    """The game whose recording this is, by how its file ends."""
    return next((game for game, ending in kinds() if name.endswith(ending)), "")
