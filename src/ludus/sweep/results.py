"""What a sweep found: a table, the importance of each setting, a plot, and the best as a TOML file."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from rich.markup import escape
from rich.table import Table

from ludus.config import plain
from ludus.store.checkpoint import write_whole
from ludus.sweep.study import Study

PLOT, BEST = "sweep.png", "best.toml"
SHOWN = 20
"""Rows of the table."""


def table(study: Study) -> Table:
    """The best trials first, then those that were pruned or failed."""
    keys = [setting.key for setting in study.settings]
    found = Table("trial", "score", *map(escape, keys), "state", "seconds", box=None, pad_edge=False)
    for column in found.columns:
        column.overflow = "fold"
    best = study.complete
    others = [trial for trial in study.trials if trial not in best]
    for trial in [*best, *others][:SHOWN]:
        score = trial.value if trial.value is not None else _last(trial.intermediate_values)
        values = [shown(trial.params.get(key, "")) for key in keys]
        state = trial.user_attrs.get("failed") or trial.state.name.lower()
        seconds = trial.user_attrs.get("seconds", 0.0)
        row = (
            f"{trial.number:03d}",
            "" if score is None else f"{score:+.3f}",
            *values,
            state,
            f"{seconds:.1f}",
        )
        found.add_row(*map(escape, row))
    for column in (found.columns[1], found.columns[-1]):
        column.justify = "right"
    return found


def _last(scores: dict[int, float]) -> float | None:
    return scores[max(scores)] if scores else None


def shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write_best(study: Study) -> Path | None:
    """The best trial's whole configuration, as `ludus train --config` takes it."""
    if not study.complete:
        return None
    best = study.complete[0]
    config = dataclasses.replace(study.config(best.number, study.values(best)), run="", notify=())
    file = study.folder / BEST
    write_whole(file, tomli_w.dumps(plain(config)).encode())
    return file


def plot(study: Study) -> Path | None:
    """The best score so far over trials, and the scores over each setting."""
    from matplotlib.figure import Figure  # without pyplot, which takes longer to import than we draw

    done = sorted(study.complete, key=lambda trial: trial.number)
    if not done:
        return None
    scores = np.array([trial.value for trial in done], float)
    count = 1 + len(study.settings)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure = Figure(figsize=(4 * columns, 3 * rows))
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for place in places[count:]:
        place.axis("off")
    numbers = [trial.number for trial in done]
    places[0].plot(numbers, scores, "o", alpha=0.5, label="trial")
    places[0].step(numbers, np.maximum.accumulate(scores), where="post", label="best so far")
    places[0].set(xlabel="trial", ylabel="score")
    places[0].legend()
    importance = study.importance()
    for place, setting in zip(places[1:], study.settings, strict=False):
        values = [trial.params[setting.key] for trial in done]
        place.plot([str(value) for value in values] if setting.choices else values, scores, "o", alpha=0.6)
        share = f", importance {importance[setting.key]:.2f}" if setting.key in importance else ""
        place.set(xlabel=setting.key + share, ylabel="score")
        if setting.log:
            place.set_xscale("log")
    figure.tight_layout()
    file = study.folder / PLOT
    figure.savefig(file, dpi=120)
    return file
