"""Finds a console game: its integration files, its ROM and its start states. Opens no emulator."""

import difflib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core import extras
from ludus.core.errors import Failure, Usage

OURS = Path(__file__).parent / "integrations"
OWN_GAME = "Gemfall-Nes-v0"
PLACES = "LUDUS_RETRO"
"""The variable with folders of one's own."""
NES_MARK, NES_HEADER_BYTES = b"NES\x1a", 16
"""A NES ROM's header is not part of its SHA-1, because collections differ in it."""


@dataclass(frozen=True)
class Integration:
    """Everything that is known of a game before it runs."""

    game: str
    folder: Path
    rom: Path
    buttons: tuple[str | None, ...]
    """Of the console, in the emulator's order; None for a place without a button."""
    combos: tuple[tuple[tuple[str, ...], ...], ...]
    """Groups of button combinations. An action takes one combination of each group."""
    scenario: dict[str, Any]
    """How rewards and ends are computed."""
    scenario_file: Path
    variables: tuple[str, ...]
    """Names of what is read from the console's memory."""
    state_files: dict[str, Path]
    boot: dict[str, list[list[Any]]]
    """Start states that are made by playing: name -> [frames, buttons] in turn."""
    default_state: str

    @property
    def data_file(self) -> Path:
        return self.folder / "data.json"

    @property
    def scripted(self) -> bool:
        """Whether Lua computes its rewards. Lua's variables are no part of a save state."""
        return "scripts" in self.scenario

    @property
    def state_names(self) -> list[str]:
        return sorted({*self.state_files, *self.boot})


def library() -> Any:
    """stable-retro, or how to install it."""
    try:
        import stable_retro  # type: ignore[import-untyped]
    except ImportError as error:
        raise extras.missing("retro", "stable-retro") from error
    return stable_retro


def folders() -> list[Path]:
    """Where integrations are looked for: $LUDUS_RETRO (folders of your own), ours, stable-retro's."""
    own = [Path(part) for part in os.environ.get(PLACES, "").split(os.pathsep) if part]
    return [*own, OURS, Path(library().data.path()) / "stable"]


def games(places: Sequence[Path] | None = None) -> dict[str, Path]:
    """Every game that there are integration files for -> its folder. The first place wins."""
    found: dict[str, Path] = {}
    for place in reversed(places or folders()):
        if place.is_dir():
            found |= {path.parent.name: path.parent for path in sorted(place.glob("*/rom.sha"))}
    return found


def with_rom() -> list[str]:
    """Games whose ROM is there; whether it is intact is seen when it is opened."""
    endings = set(library().data.EMU_EXTENSIONS)
    known = games()
    return [
        name for name in sorted(known) if any(file.suffix in endings for file in known[name].glob("rom.*"))
    ]


def find(game: str, scenario: str = "scenario", places: Sequence[Path] | None = None) -> Integration:
    """The integration of a game whose ROM is there and intact."""
    folder = _folder(game, games(places))
    metadata = _read_json(folder / "metadata.json") if (folder / "metadata.json").exists() else {}
    rom = _rom(game, folder, metadata)
    core = library().get_system_info(library().get_romfile_system(str(rom)))
    scenario_file = folder / f"{scenario}.json"
    if not scenario_file.exists():
        names = sorted(file.stem for file in folder.glob("*.json") if file.stem not in ("data", "metadata"))
        raise Usage(f"{game} has no scenario {scenario!r}: choose from {', '.join(names)}")
    manifest = _read_json(scenario_file)
    files = {file.stem: file for file in sorted(folder.glob("*.state")) if not file.stem.startswith("_")}
    boot = metadata.get("boot", {})
    names = sorted({*files, *boot})
    default = metadata.get("default_state") or (names[0] if names else "")
    combos = tuple(
        tuple(tuple(combo) for combo in group) for group in manifest.get("actions") or core["actions"]
    )
    return Integration(
        game, folder, rom, tuple(core["buttons"]), combos, manifest, scenario_file,
        tuple(_read_json(folder / "data.json")["info"]), files, boot, default,
    )  # fmt: skip


def rom_sha1(rom: bytes) -> str:
    return hashlib.sha1(rom[NES_HEADER_BYTES:] if rom.startswith(NES_MARK) else rom).hexdigest()


def known_sha1s(folder: Path) -> list[str]:
    """Of the ROMs that a game's integration was written for."""
    return (folder / "rom.sha").read_text().split()


def _folder(game: str, known: dict[str, Path]) -> Path:
    if game in known:
        return known[game]
    if f"{game}-v0" in known:
        raise Usage(f"unknown console game {game!r}: its name ends with its version, {game}-v0")
    bare = {re.sub(r"-v\d+$", "", name).lower(): name for name in known}
    close = difflib.get_close_matches(re.sub(r"-v\d+$", "", game).lower(), bare, 3, 0.6)
    advice = f"did you mean {' or '.join(bare[name] for name in close)}?" if close else f"try {OWN_GAME}"
    raise Usage(f"unknown console game {game!r}: {advice}")


def _rom(game: str, folder: Path, metadata: dict[str, Any]) -> Path:
    extensions = library().data.EMU_EXTENSIONS
    names = [metadata.get("original_rom_name", ""), *(f"rom{extension}" for extension in extensions)]
    rom = next((folder / name for name in names if name and (folder / name).is_file()), None)
    if rom is None:
        raise Usage(f"No ROM for {game}: run `ludus retro import DIR` on the folder that has it")
    if rom_sha1(rom.read_bytes()) not in known_sha1s(folder):
        raise Failure(f"The ROM of {game} is corrupt (its SHA-1 is not the known one): import it again")
    return rom


def _read_json(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Failure(f"{file} can't be read: {error}") from None
