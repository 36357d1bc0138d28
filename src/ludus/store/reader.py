"""What everybody who looks at a run reads: its configuration, state, metrics, events and weights.

Only reads, so a run may be looked at while it is trained, and a copy of a run reads like the run itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ludus.config import Config
from ludus.core.errors import Usage
from ludus.store import checkpoint, lease, lock
from ludus.store.checkpoint import Best
from ludus.store.lines import EVENTS, METRICS, Warn, last_line, lines_back, stream_lines
from ludus.store.run import CONFIG, is_run, peek_config, read_weights

State = Literal["running", "done", "stopped", "failed", "broken off", "weights only"]
"""What the last life of a run came to. broken off: it ended without a word. weights only: of a run that was
given away without its events and checkpoints."""
ENDS: dict[str, State] = {"end": "done", "stopped": "stopped", "failed": "failed"}
BEGINS = ("start", "resume")


class RunReader:
    """A run by its folder: `RunReader("runs/ofc").last`."""

    def __init__(self, folder: str | Path, warn: Warn = lambda text: None) -> None:
        """warn: is told of files and lines that are damaged, and so are skipped"""
        self.folder, self.warn = Path(folder), warn
        if not is_run(self.folder):
            raise Usage(f"{self.folder} is not a run: it has no {CONFIG}")

    @property
    def config(self) -> Config:
        """What the run was told, to look at only: to open its game takes `read_config`."""
        return peek_config(self.folder)

    @property
    def state(self) -> State:
        if lock.is_running(self.folder) or self.heard_s is not None:
            return "running"
        for line in lines_back(self.folder / EVENTS):
            what = line.values["event"] if line.values else ""
            if what in ENDS:
                return ENDS[what]
            if what in BEGINS:
                return "broken off"
        weights_only = checkpoint.has_learned(self.folder) and not checkpoint.listed(self.folder)
        return "weights only" if weights_only else "broken off"

    @property
    def heard_s(self) -> float | None:
        """Of a mirror: seconds since the machine that trains the run gave a sign; None if none does."""
        return lease.heard_s(self.folder)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """All lines of metrics, oldest first; each has `decisions` and `seconds`."""
        return stream_lines(self.folder / METRICS, self.warn)

    @property
    def last(self) -> dict[str, Any] | None:
        """The newest line of metrics, found without reading the others; None before the first."""
        return last_line(self.folder / METRICS, self.warn)

    def events(self) -> Iterator[dict[str, Any]]:
        """What happened, oldest first; each has `event`."""
        return stream_lines(self.folder / EVENTS, self.warn)

    @property
    def best(self) -> Best | None:
        """How good the best weights are; None if there are none yet."""
        best, note = checkpoint.read_best(self.folder), self.folder / f"{checkpoint.BEST}.json"
        if best is None and note.exists():
            self.warn(f"{note} is damaged")
        return best

    def checkpoints(self) -> list[int]:
        """Decisions of the checkpoints from which it can be resumed, oldest first."""
        return [int(place.name) for place in checkpoint.listed(self.folder)]

    def milestones(self) -> list[int]:
        """Decisions of the weights that are kept for good, oldest first."""
        return [int(file.stem) for file in checkpoint.milestones(self.folder)]

    def weights(self, at: str | int = "") -> dict[str, Any]:
        """Arrays by name. at: `best`, or a milestone by its decisions. Default: the newest"""
        return read_weights(self.folder, str(at))


def find_runs(place: Path) -> list[Path]:
    """Runs right under a folder, the oldest first."""
    folders = [folder for folder in place.iterdir() if is_run(folder)] if place.is_dir() else []
    runs = [folder for folder in folders if not folder.name.startswith(".")]  # those are being restored
    return sorted(runs, key=lambda folder: (folder / CONFIG).stat().st_mtime)
