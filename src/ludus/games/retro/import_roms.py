"""Finds the ROMs of known games in a folder, by SHA-1 alone, and puts them where games look for theirs.

Files are read and compared; nothing in them is run.
"""

import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ludus.core.errors import Failure, Usage
from ludus.games.retro import catalog

MOST_BYTES = 64 << 20
"""No console game is larger; what is isn't read."""


class Match(NamedTuple):
    """What became of a file."""

    file: str  # of a file in an archive: archive.zip/name
    game: str  # "" if it is no known ROM
    said: str


def import_roms(folder: str | Path, places: Sequence[Path] | None = None) -> list[Match]:
    """Every file below the folder, and whether it is the ROM of a game. places: of integrations"""
    root = Path(folder)
    if not root.exists():
        raise Usage(f"there is no folder {root}")
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    if not files:
        raise Usage(f"{root} has no files")
    known = _known(places)
    return [_match(name, data, known) for file in files for name, data in _contents(file, root)]


def report(matches: list[Match]) -> str:
    """What to tell the user: a line for every file, and a sum."""
    lines = [f"{match.file}: {match.said}" for match in matches]
    imported = len({match.game for match in matches if match.game})
    lines.append(f"{imported} games imported from {len(matches)} files")
    if not imported:
        lines.append(
            "A ROM must be the very dump that the game's integration was written for: compare its SHA-1 with "
            "the game's rom.sha. `ludus retro import` looks into .zip, but not into .7z or .rar archives."
        )
    return "\n".join(lines)


def _known(places: Sequence[Path] | None) -> dict[str, Path]:
    """SHA-1 -> the folder of its game."""
    return {sha1: folder for folder in catalog.games(places).values() for sha1 in catalog.known_sha1s(folder)}


def _contents(file: Path, root: Path) -> Iterator[tuple[str, bytes | str]]:
    """A file, or those in an archive, each with its bytes or with why it could not be read."""
    name = file.name if file == root else str(file.relative_to(root))
    try:
        if file.stat().st_size > MOST_BYTES:
            yield name, "larger than any console game"
        elif file.suffix.lower() == ".zip":
            yield from _unzipped(name, file)
        else:
            yield name, file.read_bytes()
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        yield name, f"can't be read: {error}"


def _unzipped(name: str, file: Path) -> Iterator[tuple[str, bytes | str]]:
    yield name, file.read_bytes()  # arcade games are archives themselves
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            with archive.open(entry) as inner:
                data = inner.read(MOST_BYTES + 1)
            inner_name = f"{name}/{entry.filename}"
            yield inner_name, data if len(data) <= MOST_BYTES else "larger than any console game"


def _match(name: str, data: bytes | str, known: dict[str, Path]) -> Match:
    if isinstance(data, str):
        return Match(name, "", data)
    suffix = Path(name).suffix.lower()
    sha1 = catalog.rom_sha1(data)
    folder = known.get(sha1)
    if folder is None:
        return Match(name, "", "an archive" if suffix == ".zip" else f"no known game (SHA-1 {sha1})")
    suffix = _suffix(folder.name, suffix)
    if suffix == ".nes" and not data.startswith(catalog.NES_MARK):
        return Match(name, "", f"{folder.name}, but without the header that emulators need")
    _write(folder / f"rom{suffix}", data)
    return Match(name, folder.name, f"imported as {folder.name}")


def _suffix(game: str, given: str) -> str:
    """What the emulator expects of this game's console, whatever the file was called."""
    system = game.rpartition("-v")[0].rpartition("-")[2]
    info = catalog.library().data.EMU_INFO.get(system)
    return f".{info['ext'][0]}" if info else given


def _write(target: Path, data: bytes) -> None:
    """All of it or nothing."""
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            part = Path(folder, target.name)
            part.write_bytes(data)
            os.replace(part, target)
    except OSError as error:
        raise Failure(f"{target} can't be written: {error.strerror}") from None
