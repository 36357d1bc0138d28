"""Where a run goes on: its newest intact checkpoint, or weights alone if that is all there is.

Nothing that was learned is given up silently: a run that has weights never starts from random ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.checkpoint import BEST, Checkpoint
from ludus.store.lines import METRICS, lines_back
from ludus.store.run import load_weights


@dataclass(frozen=True)
class Bare:
    """Weights without their optimizer, schedules and games."""

    name: str
    """`best`, or the number of a milestone."""
    decisions: int
    weights: dict[str, Any]
    """Arrays by name."""
    meter: dict[str, float]
    """What was counted when they were saved, as far as the metrics tell."""


def find(folder: Path, at: str, warn: Callable[[str], None]) -> Checkpoint | Bare | None:
    """None for a run that has nothing yet. at: weights to go on from if every checkpoint is damaged"""
    damage: list[str] = []

    def note(text: str) -> None:
        damage.append(text)
        warn(text)

    kept = checkpoint.newest(folder, note)
    if kept is not None:
        if at:
            raise Usage(
                f"{folder} has an intact checkpoint of {kept.decisions:,} decisions: "
                "leave out --weights to go on from it"
            )
        return kept
    files = _weights(folder)
    if damage and not at:
        offer = f"go on from weights alone by --weights {' or '.join(files)}, or " if files else ""
        raise Failure(
            f"no checkpoint of {folder} can be read ({damage[0].partition(';')[0]}): {offer}"
            "bring a copy of it back (`ludus resume URL` does so from its mirror)"
        )
    if at and at not in files:
        raise Usage(f"{folder} has no weights {at!r}: choose from {', '.join(files) or 'none'}")
    if not files:
        return None
    name = at or max(files, key=lambda name: files[name])
    return Bare(name, files[name], load_weights(_file(folder, name)), _counted(folder, files[name]))


def _weights(folder: Path) -> dict[str, int]:
    """Names of what there is beside the checkpoints, and after how many decisions each was saved."""
    found = {str(int(file.stem)): int(file.stem) for file in checkpoint.milestones(folder)}
    if checkpoint.best_file(folder).exists():
        best = checkpoint.read_best(folder)
        found[BEST] = best.decisions if best else int(_counted(folder)["decisions"])
    return found


def _file(folder: Path, name: str) -> Path:
    if name == BEST:
        return checkpoint.best_file(folder)
    return folder / checkpoint.MILESTONES / f"{int(name):012d}.safetensors"


def _counted(folder: Path, decisions: float = float("inf")) -> dict[str, float]:
    """What the metrics say at so many decisions, or at their end."""
    for line in lines_back(folder / METRICS):
        if line.values is not None and line.values["decisions"] <= decisions:
            return {key: line.values.get(key, 0) for key in ("decisions", "games", "seconds")}
    return {"decisions": 0, "games": 0, "seconds": 0.0}
