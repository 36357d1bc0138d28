"""`ludus runs` and `ludus export`: what trainings there are, and what can be taken out of them."""

import csv
import io
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ludus import algos, games
from ludus.core import extras
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint, lock
from ludus.store.disk import reason, writing
from ludus.store.reader import RunReader, find_runs
from ludus.store.run import check_fit, read_config
from ludus.store.summary import share_done

console = Console(highlight=False, emoji=False)
WEIGHTS = (".safetensors", ".onnx", ".pt", ".pth")
"""Files that may hold weights."""


def show(place: Path, prune: bool, yes: bool = False) -> None:
    runs = find_runs(place)
    if not runs:
        raise Usage(f"there is no run in {place}")
    if prune:
        _prune([folder for folder in runs if _is_empty(folder)], yes)
        runs = find_runs(place)
    table = Table("run", "game", "state", "decisions", "%", "hours", "best", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # names are never cut
    for column in table.columns[3:]:
        column.justify, column.no_wrap = "right", True
    damaged: list[str] = []
    for folder in runs:
        table.add_row(*map(escape, _row(folder, damaged)))
    console.print(table)
    for text in [*_clusters(runs), *damaged]:
        console.print(text, markup=False, soft_wrap=True)


def _row(folder: Path, damaged: list[str]) -> tuple[str, ...]:
    """damaged: is told of what can't be read"""
    run = RunReader(folder, damaged.append)
    try:
        config = run.config
    except Failure as failure:
        damaged.append(str(failure))
        return folder.name, "?", "damaged", "", "", "", ""
    line = run.last or {"decisions": 0, "seconds": 0.0}
    now, best = run.state, run.best
    return (
        folder.name, config.game, now, f"{line['decisions']:,}",
        "100" if now == "done" else f"{100 * share_done(config, line):.0f}", f"{line['seconds'] / 3600:.2f}",
        f"{best.measure:.3g} {best.name}".rstrip() if best else "",
    )  # fmt: skip


def _clusters(runs: list[Path]) -> Iterator[str]:
    """Where the workers of each run are that is trained on several machines now."""
    for folder in runs:
        run = RunReader(folder)
        line = run.last if run.state == "running" else None
        if line and "nodes/count" in line:
            by_node = ", ".join(f"{name[6:]} {count}" for name, count in _workers_by_node(line).items())
            yield f"{folder.name}: {line['workers/count']} workers on {line['nodes/count']} nodes: {by_node}"


def _workers_by_node(line: dict[str, Any]) -> dict[str, int]:
    return {name: n for name, n in line.items() if name.startswith("nodes/") and name != "nodes/count"}


def _is_empty(folder: Path) -> bool:
    """Whether a run never learned anything, holds no weights of any kind, and nobody is training it."""
    first = folder / checkpoint.CHECKPOINTS / f"{0:012d}"
    weights = (path for path in folder.rglob("*") if path.suffix in WEIGHTS and path.parent != first)
    return not (lock.is_running(folder) or checkpoint.has_learned(folder) or any(weights))


def _prune(empty: list[Path], yes: bool) -> None:
    """Remove runs, once it is clear that this is wanted."""
    if not empty:
        console.print("nothing to remove: every run has learned something or is being trained")
        return
    for folder in empty:
        console.print(f"{folder} has learned nothing", markup=False, soft_wrap=True)
    if not yes and not sys.stdin.isatty():
        console.print("nothing was removed: add --yes to remove them")
        return
    if not yes:
        console.print(f"remove {len(empty)}? [y/N] ", end="", markup=False)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return
    for folder in empty:
        try:
            with lock.hold(folder):  # so that nobody begins to train it now
                shutil.rmtree(folder)
        except OSError as error:
            raise Failure(f"can't remove {folder}: {reason(error)}") from None
        console.print(f"removed {folder}", markup=False, soft_wrap=True)


def export(folder: Path, as_csv: bool, as_onnx: bool) -> None:
    RunReader(folder)  # fails if it is none
    if not (as_csv or as_onnx):
        raise Usage(
            "say what to export: --csv for the metrics, --onnx for the policy, --video FILE for a game of it"
        )
    with writing(folder):
        if as_csv:
            console.print(f"the metrics are in {_write_csv(folder)}", markup=False, soft_wrap=True)
        if as_onnx:
            console.print(f"the policy is in {_write_onnx(folder)}", markup=False, soft_wrap=True)


def _write_csv(folder: Path) -> Path:
    tell = lambda text: console.print(text, markup=False, soft_wrap=True)  # noqa: E731
    lines = list(RunReader(folder, tell).metrics())
    if not lines:
        raise Failure(f"{folder} has no metrics yet")
    names = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(lines)
    file = folder / "metrics.csv"
    checkpoint.write_whole(file, text.getvalue().encode())
    return file


def _write_onnx(folder: Path) -> Path:
    """The policy as a graph from observation and mask to logits and value, checked against torch."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise extras.explain(error, "--onnx") or error from None
    import numpy as np
    import torch

    config = read_config(folder)
    if config.net.memory:
        raise Usage("a policy with memory can't be exported yet")
    table = games.open(config.game, **config.switches).table(2)
    if len(table.spec.parts) > 1:
        raise Usage("a policy that sees several parts can't be exported yet")
    turn = table.reset(0)
    net = algos.find(config.algo).make_module(table.spec, config.net).eval()
    weights = RunReader(folder).weights()
    check_fit(folder, weights, net.state_dict())
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    inputs: dict[str, Any] = {"obs": turn.obs.copy(), "legal": turn.legal.copy()}
    table.close()
    file, beside = folder / "policy.onnx", folder / f"{checkpoint.UNFINISHED}policy.onnx"
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of libraries that nobody asked for
    batch = torch.export.Dim("batch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                net, tuple(torch.from_numpy(array) for array in inputs.values()), str(beside), dynamo=True,
                input_names=list(inputs), output_names=["logits", "value"], verbose=False,
                dynamic_shapes=({0: batch}, {0: batch}), external_data=False,
            )  # fmt: skip
        session = onnxruntime.InferenceSession(str(beside), providers=["CPUExecutionProvider"])
        wanted = {entry.name for entry in session.get_inputs()}
        # Of another size than the example: the batch must not be fixed.
        inputs = {name: np.concatenate([array, array[:1]]) for name, array in inputs.items()}
        ours = net(*(torch.from_numpy(array) for array in inputs.values()))
        theirs = session.run(None, {name: array for name, array in inputs.items() if name in wanted})
        for mine, other in zip(ours, theirs, strict=True):
            if not np.allclose(mine.detach().numpy(), other, rtol=1e-3, atol=1e-4):
                raise Failure(f"{file} does not compute what the policy does")
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)
    return file
