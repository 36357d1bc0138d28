"""Start states: read from files, or made by playing a game's boot once and kept in a cache folder.

Save states are of one emulator version, so those of our own game are never shipped.
"""

import gzip
import os
import tempfile
import zlib
from pathlib import Path

import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.games.retro import buttons
from ludus.games.retro.catalog import Integration, library, rom_sha1
from ludus.games.retro.emulator import Emulator


def chosen_names(integration: Integration, chosen: str | tuple[str, ...]) -> list[str]:
    """Names of start states by option: "default", "all", a name, or a list of names."""
    known = integration.state_names
    if not known:
        raise Usage(f"{integration.game} has no start state: put a .state file into {integration.folder}")
    if chosen == "all":
        return known
    if chosen == "default":
        return [integration.default_state]
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names:
        if name not in known:
            raise Usage(f"{integration.game} has no state {name!r}: choose from {', '.join(known)}")
    return names


def load_states(emulator: Emulator, names: list[str]) -> list[bytes]:
    """Save states by name, each tried in the emulator."""
    found = []
    for name in names:
        file = emulator.integration.state_files.get(name) or _booted(emulator, name)
        state = read_state(file)
        emulator.load(state, name)
        found.append(state)
    return found


def read_state(file: Path) -> bytes:
    try:
        state = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise Failure(f"the state {file} is corrupt ({error}): delete it or get it anew") from None
    if not state:
        raise Failure(f"the state {file} is corrupt (it is empty): delete it or get it anew")
    return state


def cache_folder(integration: Integration) -> Path:
    """Where states of this ROM for this version of the emulator are kept."""
    home = os.environ.get("LUDUS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    sha1 = rom_sha1(integration.rom.read_bytes())
    version = f"{library().__version__.strip()}-{sha1[:10]}"
    return Path(home) / "ludus" / "retro" / integration.game / version


def _booted(emulator: Emulator, name: str) -> Path:
    file = cache_folder(emulator.integration) / f"{name}.state"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, _boot(emulator, emulator.integration.boot[name]))
    return file


def _boot(emulator: Emulator, script: list[list]) -> bytes:
    """A state after a script of [frames, buttons], from switching the console on."""
    integration = emulator.integration
    emulator.load(emulator.power_on)
    for frames, pressed in script:
        emulator.hold(buttons.masks(integration, [pressed])[0], frames)
    emulator.hold(np.zeros(len(integration.buttons), np.uint8), 1)
    return emulator.save()


def _write(file: Path, state: bytes) -> None:
    """All of it or nothing: several workers may make it at once."""
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
        part.write(gzip.compress(state, mtime=0))
    os.replace(part.name, file)
