"""The mirror: a copy of a run in a bucket or in another folder, made in the background.

A checkpoint's manifest is copied last and removed first, so a checkpoint with a manifest is whole.
The mirror knows the files of a run, not what they mean; trouble with it never reaches the training.
"""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ludus.core.errors import Failure
from ludus.store.bucket import FILES, checked_url, list_checkpoints, list_milestones, open_store, reason
from ludus.store.checkpoint import CHECKPOINTS, MANIFEST, MILESTONES, listed, milestones
from ludus.store.lease import Held, Lease, holder
from ludus.store.run import CONFIG, EVENTS, is_run

if TYPE_CHECKING:
    from obstore.store import ObjectStore

UPLOADS_AT_ONCE = 2  # of 5 MB each; more would time out on slow lines


class Mirror:
    """Keeps a copy of a run's folder at url, in a thread of its own, every every_s seconds and when poked.

    on_event hears, from that thread, when copying begins to fail and when it works again. While it fails it
    is tried again after retry_s, then ever more slowly, at last every longest_retry_s.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        every_s: float = 30.0,
        on_event: Callable[[str], None] = lambda text: None,
        retry_s: float = 1.0,
        longest_retry_s: float = 60.0,
    ) -> None:
        self.url, self.folder = checked_url(url), folder
        self._store = open_store(self.url, make=True)
        self._every_s, self._retry_s, self._longest_retry_s = every_s, retry_s, longest_retry_s
        self._on_event = on_event
        self._sent: dict[str, tuple[int, int]] = {}  # file -> size and time of change when it was copied
        self._whole: set[str] = set()  # checkpoints known to be in the mirror
        self._lease, self._refusal = Lease(self._store, folder), ""
        self._looked = threading.Event()  # whether it is known if another machine has the lease
        self._ours = False  # whether what is in the mirror is known to be of this run
        self._last_success: float | None = None
        self._errors, self._failing, self._complete = 0, False, False
        self._wake, self._closing, self._gone = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def refusal(self, wait_s: float) -> str:
        """Why this machine may not copy there: another one does. Empty if it may, or if nobody answers."""
        self._looked.wait(wait_s)
        return self._refusal

    def poke(self) -> None:
        """Copy soon."""
        self._wake.set()

    def close(self, wait_s: float = 30.0) -> bool:
        """Copy everything once more, for at most wait_s; whether all of it is in the mirror."""
        self._closing.set()
        self._wake.set()
        self._thread.join(wait_s)
        self._gone.set()
        return self._complete

    def state(self) -> dict[str, Any]:
        """last_success: Unix time when all was copied, or None; pending: files and checkpoints to copy."""
        files = [name for name in self._files() if self._changed(name)]
        checkpoints = [name for name in _checkpoints(self.folder) if name not in self._whole]
        return {
            "last_success": self._last_success,
            "pending": len(files) + len(checkpoints),
            "errors": self._errors,
            "failing": self._failing,
        }

    def _run(self) -> None:
        try:
            self._copy_until_closed()
        finally:
            with suppress(Exception):  # a lease that can't be given back runs out
                self._lease.release()

    def _copy_until_closed(self) -> None:
        wait_s = self._retry_s
        while not self._gone.is_set():
            self._wake.clear()
            last = self._closing.is_set()  # asked before the copy, which then misses nothing
            copied = self._attempt()
            if last:
                self._complete = copied and self.state()["pending"] == 0
                if self._complete:
                    return
                self._gone.wait(self._retry_s)
            elif copied:
                wait_s = self._retry_s
                self._wake.wait(self._every_s)
            else:
                self._closing.wait(wait_s)  # which no poke shortens: a mirror in trouble is left in peace
                wait_s = min(2 * wait_s, self._longest_retry_s)

    def _attempt(self) -> bool:
        try:
            self._hold_lease()
            self._copy()
        except Exception as error:  # of whatever kind: training goes on
            self._errors += 1
            self._tell(True, f"copying to the mirror {self.url} fails ({reason(error)}): trying again")
            return False
        self._last_success = time.time()
        self._tell(False, f"copying to the mirror {self.url} works again")
        return True

    def _tell(self, failing: bool, text: str) -> None:
        if failing != self._failing:
            self._failing = failing
            with suppress(Exception):
                self._on_event(text)

    def _hold_lease(self) -> None:
        try:
            self._lease.hold()
            self._refusal = ""
        except Held as held:
            self._refusal = str(held)
            raise
        finally:
            self._looked.set()

    def _copy(self) -> None:
        """Checkpoints before metrics: a restored run may know more than its checkpoint, but not less.

        Events before all: a run is known by its first.
        """
        if not is_run(self.folder):
            return
        if not self._ours:
            self._look_around()
        self._copy_file(EVENTS)
        self._copy_file(CONFIG)
        there = list_checkpoints(self._store)
        for name in _checkpoints(self.folder):
            with suppress(Gone):
                self._copy_checkpoint(name, MANIFEST in there.get(name, {}))
        for name in self._files():
            self._copy_file(name)
        if there.keys() - set(_checkpoints(self.folder)):
            self._remove_old()

    def _look_around(self) -> None:
        """What the mirror holds already must be of this run; milestones don't go there twice."""
        if why := _misfit(self._store, self.folder):
            raise Failure(why)
        for entry in list_milestones(self._store):
            mark = self._changed(entry["path"])
            if mark and mark[0] == entry["size"] and mark[1] / 1e9 < entry["last_modified"].timestamp() + 1:
                self._sent[entry["path"]] = mark
        self._ours = True

    def _files(self) -> list[str]:
        """What is copied beside the checkpoints; nothing before the run has begun."""
        if not is_run(self.folder):
            return []
        return [*FILES, *(f"{MILESTONES}/{file.name}" for file in milestones(self.folder))]

    def _changed(self, name: str) -> tuple[int, int] | None:
        """A file's size and time of change, if they are not those of its copy."""
        try:
            stat = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        mark = (stat.st_size, stat.st_mtime_ns)
        return mark if self._sent.get(name) != mark else None

    def _copy_file(self, name: str) -> None:
        mark = self._changed(name)  # before it is read: what is added meanwhile is copied next time
        if mark:
            self._put(name)
            self._sent[name] = mark

    def _copy_checkpoint(self, name: str, there: bool) -> None:
        """there: whether the mirror holds a whole checkpoint of that name."""
        if there and name in self._whole:
            return
        self._whole.discard(name)
        key = f"{CHECKPOINTS}/{name}/{MANIFEST}"
        manifest = self._read(key)
        if not there or self._store.get(key).bytes() != manifest:
            if there:
                self._store.delete(key)
            for file in json.loads(manifest)["files"]:
                self._put(f"{CHECKPOINTS}/{name}/{file}")
            self._put(key)
        self._whole.add(name)

    def _read(self, key: str) -> bytes:
        try:
            return (self.folder / key).read_bytes()
        except FileNotFoundError:
            raise Gone from None

    def _put(self, key: str) -> None:
        path = self.folder / key
        try:
            self._store.put(key, path, max_concurrency=UPLOADS_AT_ONCE)
        except FileNotFoundError:  # also said of a bucket that isn't there
            if not path.exists():
                raise Gone from None
            raise

    def _remove_old(self) -> None:
        """Remove checkpoints that the run has removed, once a newer one is whole in the mirror."""
        there, kept = list_checkpoints(self._store), set(_checkpoints(self.folder))
        whole = [files[MANIFEST] for name, files in there.items() if name in kept and MANIFEST in files]
        for name in there.keys() - kept:
            if whole and max(there[name].values()) <= max(whole):
                for file in sorted(there[name], key=lambda file: file != MANIFEST):
                    self._store.delete(f"{CHECKPOINTS}/{name}/{file}")


class Gone(Exception):
    """A checkpoint that the run has removed while it was copied."""


def _checkpoints(folder: Path) -> list[str]:
    """The finished checkpoints of a run, newest first."""
    written: dict[str, int] = {}
    for manifest in (folder / CHECKPOINTS).glob(f"*/{MANIFEST}"):
        if not manifest.parent.name.startswith("."):
            with suppress(FileNotFoundError):  # removed meanwhile
                written[manifest.parent.name] = manifest.stat().st_mtime_ns
    return sorted(written, key=lambda name: written[name], reverse=True)


def _misfit(store: "ObjectStore", folder: Path) -> str:
    """Why the run in this folder must not be copied to a mirror; empty if it may."""
    try:
        there = bytes(store.get(EVENTS).bytes())
    except FileNotFoundError:
        return ""
    here = (folder / EVENTS).read_bytes() if (folder / EVENTS).exists() else b""
    if here.partition(b"\n")[0] != there.partition(b"\n")[0]:  # the moment when it began
        return "it holds another run"
    newest = max(
        (int(name) for name, files in list_checkpoints(store).items() if MANIFEST in files), default=0
    )
    if newest > max((int(place.name) for place in listed(folder)), default=0):
        return "it holds a newer checkpoint than the folder does"
    return ""


def misfit(url: str, folder: Path) -> str:
    """Why a run must not be mirrored there: there is another, or it went on elsewhere. Empty if it may."""
    return _asked(url, folder, _misfit)


def trained_elsewhere(url: str, folder: Path) -> str:
    """Why a run must not be trained in this folder now: another machine does. Empty if it may."""
    return _asked(url, folder, holder)


def _asked(url: str, folder: Path, question: Callable[["ObjectStore", Path], str]) -> str:
    store = open_store(url, make=True)
    from obstore.exceptions import BaseError

    try:
        return question(store, folder)
    except (BaseError, OSError) as error:
        raise Failure(f"can't look into the mirror {url}: {reason(error)}") from None
