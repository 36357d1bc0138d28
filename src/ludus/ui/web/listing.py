"""The runs of a folder by their names, as lists show them. One listing serves all visitors."""

import threading
from contextlib import suppress
from pathlib import Path

from ludus.core.errors import Failure
from ludus.store.lines import EVENTS, METRICS
from ludus.store.reader import find_runs
from ludus.store.run import CONFIG
from ludus.store.summary import Summary, summarize

LOOKED_AT = (CONFIG, METRICS, EVENTS, "best.json")
Signature = tuple[tuple[int, int], ...]


class Listing:
    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self._known: dict[str, tuple[Signature, Summary]] = {}
        self._lock = threading.Lock()

    def folder(self, name: str) -> Path | None:
        """Of a run that is in the folder now; a name that is not in the list leads nowhere."""
        return next((folder for folder in self._folders() if folder.name == name), None)

    def names(self) -> list[str]:
        return [folder.name for folder in self._folders()]

    def read(self) -> list[Summary]:
        """The newest first. A run whose files are as they were is not read again, unless it is running."""
        with self._lock:
            found: dict[str, tuple[Signature, Summary]] = {}
            for folder in self._folders():
                signature, before = _signature(folder), self._known.get(folder.name)
                if before and before[0] == signature and before[1].state != "running":
                    found[folder.name] = before
                    continue
                with suppress(Failure, OSError):  # it was deleted a moment ago
                    found[folder.name] = signature, summarize(folder)
            self._known = found
            return [summary for _, summary in reversed(found.values())]

    def _folders(self) -> list[Path]:
        try:
            return find_runs(self.runs)
        except OSError:  # a run was deleted while we looked
            with suppress(OSError):
                return find_runs(self.runs)
            return []


def _signature(folder: Path) -> Signature:
    """What changes when anything is written: sizes and times."""
    found = []
    for name in LOOKED_AT:
        try:
            about = (folder / name).stat()
            found.append((about.st_size, about.st_mtime_ns))
        except OSError:
            found.append((-1, 0))
    return tuple(found)
