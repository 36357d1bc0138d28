"""`ludus runs` and `ludus export`: what trainings there are, and what can be taken out of them."""

import csv
import logging
import shutil
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ludus import games
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.run import (
    EVENTS,
    METRICS,
    is_run,
    is_running,
    peek_config,
    read_config,
    read_lines,
    read_weights,
)

console = Console(highlight=False)
ENDS = {"end": "done", "stopped": "stopped", "failed": "failed"}


def found(place: Path) -> list[Path]:
    """Runs under a folder, the oldest first."""
    folders = [folder for folder in place.iterdir() if is_run(folder)] if place.is_dir() else []
    runs = [folder for folder in folders if not folder.name.startswith(".")]  # those are being restored
    return sorted(runs, key=lambda folder: (folder / "config.toml").stat().st_mtime)


def state(folder: Path) -> str:
    """running, done, stopped, failed, or broken off: what its last life came to."""
    if is_running(folder):
        return "running"
    ends = [ENDS[event["event"]] for event in read_lines(folder / EVENTS) if event["event"] in ENDS]
    return ends[-1] if ends else "broken off"


def show(place: Path, prune: bool) -> None:
    runs = found(place)
    if not runs:
        raise Usage(f"there is no run in {place}")
    if prune:
        runs = _without_empty(runs)
    table = Table("run", "game", "state", "decisions", "%", "hours", "best", box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.justify = "right"
    for folder in runs:
        table.add_row(*_row(folder))
    console.print(table)


def _row(folder: Path) -> tuple[str, ...]:
    try:
        config = peek_config(folder)
    except Failure as failure:
        return folder.name, "?", str(failure), "", "", "", ""
    lines = read_lines(folder / METRICS)
    made = lines[-1]["decisions"] if lines else 0
    hours = lines[-1]["seconds"] / 3600 if lines else 0.0
    best = read_lines(folder / f"{checkpoint.BEST}.json")
    return (
        folder.name, config.game, state(folder), f"{made:,}", f"{100 * made / config.decisions:.0f}",
        f"{hours:.2f}", f"{best[0]['measure']:.3g}" if best else "",
    )  # fmt: skip


def _without_empty(runs: list[Path]) -> list[Path]:
    """Remove runs that never learned anything and that nobody is training."""
    kept = []
    for folder in runs:
        if is_running(folder) or any(int(place.name) for place in checkpoint.listed(folder)):
            kept.append(folder)
        else:
            shutil.rmtree(folder)
            console.print(f"removed {folder}: it has learned nothing")
    return kept


def export(folder: Path, as_csv: bool, as_onnx: bool) -> None:
    peek_config(folder)
    if not (as_csv or as_onnx):
        raise Usage("say what to export: --csv for the metrics, --onnx for the policy")
    if as_csv:
        console.print(f"the metrics are in {_write_csv(folder)}")
    if as_onnx:
        console.print(f"the policy is in {_write_onnx(folder)}")


def _write_csv(folder: Path) -> Path:
    lines = read_lines(folder / METRICS)
    if not lines:
        raise Failure(f"{folder} has no metrics yet")
    names = list(dict.fromkeys(name for line in lines for name in line))
    file = folder / "metrics.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, names)
        writer.writeheader()
        writer.writerows(lines)
    return file


def _write_onnx(folder: Path) -> Path:
    """The policy as a graph from observation and mask to logits and value, checked against torch."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise Usage(f"--onnx needs {error.name}: pip install onnx onnxscript onnxruntime") from None
    import numpy as np
    import torch

    from ludus.nets.board import BoardPolicy
    from ludus.nets.net import Net

    config = read_config(folder)
    if config.net.memory:
        raise Usage("a policy with memory can't be exported yet")
    table = games.table(config.game, 2, **config.switches)
    turn = table.reset(0)
    net = (BoardPolicy if config.algo == "alphazero" else Net)(table.spec, config.net).eval()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in read_weights(folder).items()})
    inputs: dict[str, Any] = {"obs": turn.obs.copy(), "legal": turn.legal.copy()}
    table.close()
    file = folder / "policy.onnx"
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of libraries that nobody asked for
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, tuple(torch.from_numpy(array) for array in inputs.values()), str(file), dynamo=True,
            input_names=list(inputs), output_names=["logits", "value"], verbose=False,
            dynamic_shapes=({0: batch}, {0: batch}), external_data=False,
        )  # fmt: skip
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    wanted = {entry.name for entry in session.get_inputs()}
    ours = net(*(torch.from_numpy(array) for array in inputs.values()))
    theirs = session.run(None, {name: array for name, array in inputs.items() if name in wanted})
    for mine, other in zip(ours, theirs, strict=True):
        if not np.allclose(mine.detach().numpy(), other, rtol=1e-3, atol=1e-4):
            raise Failure(f"{file} does not compute what the policy does")
    return file
