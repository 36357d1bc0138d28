"""A lease on a mirror: which machine copies a run there, so that two never write over each other.

The lease is an object in the mirror that its owner renews. A machine that dies gives no sign of life any
more, and after STALE_S another one may take the lease over.
"""

import contextlib
import hashlib
import json
import platform
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ludus.core.errors import Failure

if TYPE_CHECKING:
    from obstore.store import ObjectStore

LEASE, CLOCK = "lease.json", "lease.clock"
BEAT_S, STALE_S = 30.0, 180.0
"""Seconds between two signs of life, and without one until the owner counts as gone."""
TRIES = 3


class Held(Failure):
    """Another machine has the lease."""


class Lease:
    def __init__(self, store: "ObjectStore", folder: Path) -> None:
        self._store, self._me = store, owner(folder)
        self._taken, self._over = False, threading.Event()
        self._beating: threading.Thread | None = None
        self._renewing = threading.Lock()  # a lease that is given back must not be renewed after it

    def hold(self) -> None:
        """Have it and keep it, or say who has it."""
        if not self._taken:
            self._take()
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="lease", daemon=True)
            self._beating.start()

    def release(self) -> None:
        self._over.set()
        with self._renewing:
            if self._taken:
                self._taken = False
                if _read(self._store).get("owner") == self._me:
                    self._store.delete(LEASE)

    def _beat(self) -> None:
        """Beside the copying, which may take long."""
        while not self._over.wait(BEAT_S):
            try:
                with self._renewing:
                    if self._taken:
                        self._take()
            except Held:
                self._taken = False  # another machine took it while we could not be heard
            except Exception:  # no connection: the copying tells
                continue

    def _take(self) -> None:
        from obstore.exceptions import PreconditionError

        for _ in range(TRIES):
            if self._create():
                break
            held = _read(self._store)
            if held and held.get("owner") != self._me and (age_s := _age_s(self._store)) < STALE_S:
                raise Held(_told(held, age_s))
            try:
                self._replace(held.get("e_tag"))
                break
            except PreconditionError:  # somebody else was faster: look again
                continue
        else:
            raise Held(_told(_read(self._store), 0.0))
        self._taken = True

    def _create(self) -> bool:
        from obstore.exceptions import AlreadyExistsError, NotSupportedError

        try:
            self._store.put(LEASE, self._text(), mode="create")
        except AlreadyExistsError:
            return False
        except (NotImplementedError, NotSupportedError):  # then it is written without a guard
            if _read(self._store):
                return False
            self._store.put(LEASE, self._text())
        return True

    def _replace(self, e_tag: str | None) -> None:
        from obstore.exceptions import NotSupportedError

        if e_tag:
            with contextlib.suppress(NotImplementedError, NotSupportedError):
                self._store.put(LEASE, self._text(), mode={"e_tag": e_tag})
                return
        self._store.put(LEASE, self._text())

    def _text(self) -> bytes:
        """With the time, so that no two are the same."""
        return json.dumps({"owner": self._me, "machine": platform.node(), "time": time.time()}).encode()


def owner(folder: Path) -> str:
    """This folder on this machine: whoever trains there holds the run's lock, so it may take over at once."""
    text = f"{platform.node()} {uuid.getnode()} {folder.resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def holder(store: "ObjectStore", folder: Path) -> str:
    """Why a run must not be trained in this folder now: another machine trains it. Empty if it may."""
    held = _read(store)
    if not held or held.get("owner") == owner(folder):
        return ""
    age_s = _age_s(store)
    return _told(held, age_s) if age_s < STALE_S else ""


def heard_s(folder: Path) -> float | None:
    """Seconds since the last sign of life, if a folder is the mirror of a run that another machine trains."""
    try:
        age_s = max(0.0, time.time() - (folder / LEASE).stat().st_mtime)
    except OSError:
        return None
    return age_s if age_s < STALE_S else None


def _told(held: dict[str, Any], age_s: float) -> str:
    return (
        f"the machine {held.get('machine', '?')} trains it (last sign of life {age_s:.0f} s ago): stop it "
        f"there first; if that machine is gone, try again in {STALE_S / 60:.0f} minutes"
    )


def _read(store: "ObjectStore") -> dict[str, Any]:
    """What the lease says, and the tag of its version; empty if there is none."""
    try:
        found = store.get(LEASE)
    except FileNotFoundError:
        return {}
    said: Any = None
    with contextlib.suppress(ValueError):
        said = json.loads(bytes(found.bytes()))
    return {**(said if isinstance(said, dict) else {}), "e_tag": found.meta["e_tag"]}


def _age_s(store: "ObjectStore") -> float:
    """Since the last sign of life, by the mirror's own clock, because ours may be wrong."""
    try:
        store.put(CLOCK, b"")
        now = store.head(CLOCK)["last_modified"]
        store.delete(CLOCK)
    except Exception:  # of whatever kind: a mirror that may only be read
        now = datetime.now(UTC)
    try:
        return max(0.0, (now - store.head(LEASE)["last_modified"]).total_seconds())
    except FileNotFoundError:
        return STALE_S
