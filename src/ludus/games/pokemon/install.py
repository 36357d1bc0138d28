"""Installs the simulator: the pinned npm package in a cache folder named by its lock. Knows no battles."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ludus.core.errors import Failure, Usage

if os.name == "posix":
    import fcntl

NODE_FILES = Path(__file__).parent / "node"
PINNED = ("package.json", "package-lock.json", "server-config.js")
OLDEST_NODE = 18
NPM_LIMIT_S = 900.0
COMMAND = "ludus pokemon setup"
"""What installs the simulator, as messages name it."""


def find_node() -> str:
    """The Node program to use: $NODE_BIN, or `node` on the path."""
    asked = os.environ.get("NODE_BIN")
    node = shutil.which(asked or "node")
    if node is None:
        where = f"$NODE_BIN is {asked}, which can't be run" if asked else "there is no `node` on the path"
        raise Usage(
            f"Pokémon needs Node {OLDEST_NODE} or newer, and {where}: install it, or set NODE_BIN to it"
        )
    version = _node_version(node)
    if version < OLDEST_NODE:
        raise Usage(f"Pokémon needs Node {OLDEST_NODE} or newer, and {node} is version {version}: update it")
    return node


def _node_version(node: str) -> int:
    """Its major version."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Usage(f"{node} --version failed ({error}): set NODE_BIN to a Node that works") from None
    found = re.match(r"v(\d+)\.", said)
    if not found:
        raise Usage(f"{node} --version says {said.strip()!r}, so it is not Node: set NODE_BIN to one")
    return int(found[1])


def folder() -> Path:
    """Where this version of the simulator is, or will be."""
    digest = hashlib.blake2b(digest_size=8)
    for name in PINNED:
        digest.update((NODE_FILES / name).read_bytes())
    return _root() / digest.hexdigest()


def _root() -> Path:
    home = os.environ.get("LUDUS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(home or Path.home() / ".cache") / "ludus" / "pokemon"


def showdown() -> Path:
    """The installed simulator's folder; a Usage error that says how to install it if it is not there."""
    place = folder() / "node_modules" / "pokemon-showdown"
    if not (place / "dist" / "sim" / "battle.js").is_file():
        raise Usage(f"the Pokémon simulator is not installed: run `{COMMAND}`")
    return place


def install() -> Path:
    """The simulator's folder, after installing it if need be. Only one process does so at a time."""
    find_node()
    place = folder()
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.parent / f"{place.name}.lock"):
        if not place.exists():
            _install_into(place)
    return showdown()


def _install_into(place: Path) -> None:
    # Made beside its final place and renamed at the end: whoever sees the folder sees it complete.
    making = Path(tempfile.mkdtemp(prefix=f"{place.name}.making-", dir=place.parent))
    try:
        for name in PINNED:
            shutil.copy(NODE_FILES / name, making / name)
        _run_npm(making)
        _prepare_server(making / "node_modules" / "pokemon-showdown")
        making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _prepare_server(showdown: Path) -> None:
    """What the server looks for in its own folder, and the package doesn't have."""
    (showdown / "logs" / "repl").mkdir(parents=True, exist_ok=True)
    (showdown / "config").mkdir(exist_ok=True)
    shutil.copy(NODE_FILES / "server-config.js", showdown / "config" / "config.js")


def _run_npm(where: Path) -> None:
    npm = _find_npm()
    command = [npm, "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            command, cwd=where, capture_output=True, text=True, errors="replace", timeout=NPM_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise Failure(
            f"npm did not finish within {NPM_LIMIT_S:.0f} s: check the network, try again"
        ) from None
    except OSError as error:
        raise Usage(f"{npm} can't be run ({error.strerror}): install npm") from None
    if done.returncode:
        raise Failure(f"npm could not install the Pokémon simulator: {_reason(done.stderr)}")


def _find_npm() -> str:
    """The npm beside Node, or the one on the path."""
    beside = Path(find_node()).parent
    npm = shutil.which("npm", path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    if npm is None:
        raise Usage("installing the Pokémon simulator needs npm, which comes with Node: install it")
    return npm


def _reason(stderr: str) -> str:
    """npm's own last words that are not about where its log lies."""
    lines = [line.removeprefix("npm error").strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if line and not line.startswith(("npm warn", "A complete log"))]
    return telling[-1] if telling else "it said nothing"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits for any other process that is installing the same. Without POSIX locks, the rename decides."""
    with path.open("a") as lock:
        if os.name == "posix":
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
