"""A run in one line: what lists of runs show. Only the ends of its files are read, however long they are."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.config import Config
from ludus.core.errors import Failure
from ludus.store.lines import METRICS, is_number, parsed
from ludus.store.reader import RunReader

SAMPLES, SAMPLE_BYTES = 40, 1 << 14
"""Lines of which a sparkline is made, and how far a line is looked for."""
SPARK = ("measure", "game/score")
"""What a sparkline shows: the first that there is."""


@dataclass(frozen=True)
class Summary:
    name: str
    game: str
    state: str
    """As `RunReader.state`, or "damaged"."""
    decisions: int = 0
    share: float = 0.0
    """Of the budget that is used, from 0 to 1."""
    seconds: float = 0.0
    speed: float = 0.0
    """Decisions a second; 0 if nobody trains it now."""
    best: str = ""
    spark: tuple[float, ...] = ()
    """How its measure went, from the first line to now."""
    problem: str = ""
    heard_s: int | None = None
    """As `rounded_heard_s`."""


def summarize(folder: Path) -> Summary:
    run = RunReader(folder)
    try:
        config = run.config
    except Failure as failure:
        return Summary(folder.name, "?", "damaged", problem=str(failure))
    line, state, best = run.last or {"decisions": 0, "seconds": 0.0}, run.state, run.best
    return Summary(
        folder.name, config.game, state, int(line["decisions"]),
        1.0 if state == "done" else share_done(config, line), float(line["seconds"]),
        float(line.get("speed/now", 0.0)) if state == "running" else 0.0,
        f"{best.measure:.3g} {best.name}".rstrip() if best else "", spark(folder / METRICS),
        heard_s=rounded_heard_s(run),
    )  # fmt: skip


def rounded_heard_s(run: RunReader) -> int | None:
    """As `RunReader.heard_s`, in steps of ten seconds: pages need not be told of every second."""
    return None if (age_s := run.heard_s) is None else int(age_s) // 10 * 10


def share_done(config: Config, line: dict[str, Any]) -> float:
    """Of the budget that is used, by whichever ends the training first."""
    by_time = line["seconds"] / config.seconds if config.seconds > 0 else 0.0
    return min(1.0, max(line["decisions"] / max(config.decisions, 1), by_time))


def spark(file: Path) -> tuple[float, ...]:
    """Values of some lines, evenly spread over the file."""
    lines: list[dict[str, Any]] = []
    try:
        with file.open("rb") as data:
            size = os.fstat(data.fileno()).st_size
            for place in range(SAMPLES):
                data.seek(size * place // SAMPLES)
                texts = data.read(SAMPLE_BYTES).split(b"\n")[place > 0 : -1]
                line = next(filter(None, (parsed(text, METRICS) for text in texts)), None)
                if line and (not lines or line["decisions"] > lines[-1]["decisions"]):
                    lines.append(line)
    except OSError:
        return ()
    name = next((name for name in SPARK if any(name in line for line in lines)), "")
    return tuple(float(f"{line[name]:.4g}") for line in lines if is_number(line.get(name)))
