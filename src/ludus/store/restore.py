"""A run brought back from its mirror."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ludus.core.errors import Failure, Usage
from ludus.store.bucket import FILES, list_checkpoints, list_milestones, open_store, reason
from ludus.store.checkpoint import CHECKPOINTS, MANIFEST, MILESTONES
from ludus.store.run import CONFIG, is_run

if TYPE_CHECKING:
    from obstore.store import ObjectStore


def restore(url: str, folder: Path, *, on_event: Callable[[str], None] = lambda text: None) -> None:
    """Bring a mirrored run back, whole or not at all.

    Checkpoints that are damaged in the mirror are left out, of which on_event hears, unless all are.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise Usage(f"{folder} is there already: restore into a new folder")
    store = open_store(url)
    from obstore.exceptions import BaseError

    temporary = folder.with_name(f".{folder.name}.restoring")
    shutil.rmtree(temporary, ignore_errors=True)  # of a restore that was killed
    try:
        temporary.mkdir(parents=True)
        _restore_files(store, temporary, url)
        _restore_milestones(store, temporary)
        _restore_checkpoints(store, temporary, url, on_event)
        if folder.exists():
            folder.rmdir()
        temporary.rename(folder)
    except (BaseError, OSError) as error:
        raise Failure(f"can't restore the run from {url}: {reason(error)}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _restore_files(store: "ObjectStore", folder: Path, url: str) -> None:
    for name in FILES:
        with suppress(FileNotFoundError):
            _download(store, name, folder / name)
        if name.endswith(".jsonl"):
            _cut_half_line(folder / name)
    if not is_run(folder):
        raise Failure(f"{url} holds no run: it has no {CONFIG}")


def _restore_milestones(store: "ObjectStore", folder: Path) -> None:
    for entry in list_milestones(store):
        (folder / MILESTONES).mkdir(exist_ok=True)
        _download(store, entry["path"], folder / entry["path"])
        copied_s = entry["last_modified"].timestamp()
        os.utime(folder / entry["path"], (copied_s, copied_s))  # so it is not copied back as something new


def _cut_half_line(path: Path) -> None:
    """A file that grew while it was copied may end anywhere; the run goes on from whole lines."""
    if path.exists():
        text = path.read_bytes()
        os.truncate(path, text.rfind(b"\n") + 1)


def _restore_checkpoints(
    store: "ObjectStore", folder: Path, url: str, on_event: Callable[[str], None]
) -> None:
    copied = {name: files[MANIFEST] for name, files in list_checkpoints(store).items() if MANIFEST in files}
    damaged = []
    for name in sorted(copied, key=lambda name: copied[name]):
        try:
            _restore_checkpoint(store, name, folder / CHECKPOINTS / name)
        except Damaged as error:
            shutil.rmtree(folder / CHECKPOINTS / name)
            damaged.append(f"checkpoint {name} in {url} is damaged: {error}")
            on_event(damaged[-1])
    if damaged and len(damaged) == len(copied):
        raise Failure(f"no checkpoint can be restored: {damaged[-1]}")


class Damaged(Exception):
    """What is wrong with a checkpoint in the mirror."""


def _restore_checkpoint(store: "ObjectStore", name: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    _fetch(store, name, MANIFEST, folder)
    for file, sha256 in _sums(folder / MANIFEST).items():
        if _fetch(store, name, file, folder) != sha256:
            raise Damaged(f"{file} is not what {MANIFEST} says")


def _fetch(store: "ObjectStore", name: str, file: str, folder: Path) -> str:
    try:
        return _download(store, f"{CHECKPOINTS}/{name}/{file}", folder / file)
    except FileNotFoundError:
        raise Damaged(f"{file} is missing") from None


def _sums(manifest: Path) -> dict[str, str]:
    """The files of a checkpoint and their sha256."""
    try:
        files = json.loads(manifest.read_bytes())["files"]
        sums = {file: str(entry["sha256"]) for file, entry in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Damaged(f"{MANIFEST} can't be read") from None
    if not all(re.fullmatch(r"[\w-][\w.-]*", file) for file in sums):  # a name such as ../x
        raise Damaged(f"{MANIFEST} names files that are not its own")
    return sums


def _download(store: "ObjectStore", key: str, path: Path) -> str:
    """Fetch a file; its sha256."""
    result, digest = store.get(key), hashlib.sha256()
    with path.open("wb") as file:
        for chunk in result.stream():
            file.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()
