"""Layout: how a machine's cores are used, and how many workers it bears while others use it too."""

import dataclasses
from dataclasses import dataclass

import torch

from ludus import algos, machine
from ludus.config import Config
from ludus.core.block import block_bytes
from ludus.core.errors import Usage
from ludus.core.spec import Spec

WORKER_BYTES, TORCH_BYTES = 250 * 2**20, 450 * 2**20
"""What a worker takes beside its blocks, and what torch adds where it needs that."""
ROWS, ENV_ROWS, STEPS = 128, 8, 64
"""Blocks of games that are fast. Small batches learn more from environments in Python, which make fewer
decisions."""


def filled(config: Config) -> Config:
    """With `rows` and `steps` as large as they get, where they are 0."""
    rows = ENV_ROWS if ":" in config.game else ROWS
    return dataclasses.replace(config, rows=config.rows or rows, steps=config.steps or STEPS)


@dataclass(frozen=True)
class Layout:
    workers: int
    overlap: bool
    threads: int
    """Of torch, in the learner."""
    device: str
    central: bool
    why: str


def check(config: Config) -> None:
    """Refuse what can't be laid out on this machine; before anything compiles."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise Usage("--device cuda: torch finds no GPU here; take --device cpu")
    if config.inference == "central" and config.net.memory:
        raise Usage("a network with memory plays in the workers: take --inference local")


def lay_out(config: Config, spec: Spec) -> Layout:
    """Workers, torch threads, device and where inference runs, from the cores and memory there are."""
    check(config)
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    possible = device == "cuda" and not config.net.memory and config.workers != "0"
    central = config.inference == "central" or (config.inference == "auto" and possible)
    layout = _central(config, device) if central else local(config, spec, device)
    _refuse_too_large(config, spec, layout)
    return layout


def _refuse_too_large(config: Config, spec: Spec, layout: Layout) -> None:
    """Before anything starts: a block that doesn't fit kills whoever writes to it."""
    workers, free = max(layout.workers, 1), machine.memory_bytes()[1]
    if layout.central and layout.device == "cuda":
        free = min(free, torch.cuda.mem_get_info()[0])
    # The learner joins the blocks of all workers to one batch.
    needed = workers * (_blocks_bytes(config, spec, layout.overlap) + _block_bytes(config, spec))
    if needed > free:
        raise Usage(
            f"blocks of {config.rows:,} rows x {config.steps:,} steps for {workers} workers need "
            f"{needed / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB are free: "
            "lower --rows, --steps or --workers"
        )


def _block_bytes(config: Config, spec: Spec) -> int:
    return block_bytes(algos.find(config.algo).columns(config, spec), config.steps, config.rows)


def _blocks_bytes(config: Config, spec: Spec, overlap: bool) -> int:
    """Of one worker."""
    return (2 if overlap else 1) * _block_bytes(config, spec)


def _central(config: Config, device: str) -> Layout:
    cores = machine.usable_cores()
    groups = max(2, cores - 2) if config.workers == "auto" else max(1, int(config.workers))
    where = "processes" if ":" in config.game else "threads"
    why = f"{groups} groups of games in {where}, inference on {device} beside the learner"
    overlap = config.algo == "alphazero" and not config.sync
    return Layout(groups, overlap, max(1, cores // 2), device, True, why)


def local(config: Config, spec: Spec, device: str) -> Layout:
    """Each worker computes its own choices."""
    cores = machine.usable_cores()
    # Below four cores workers and learner both want all of them, so they take turns.
    overlap = not config.sync and (device == "cuda" or cores >= 4) and config.workers != "0"
    learner = 1 if device == "cuda" else max(1, cores // 3) if overlap else cores
    free = max(1, cores - learner) if overlap else cores
    bearable = _bearable(config, spec, overlap)
    workers = min(free, bearable) if config.workers == "auto" else int(config.workers)
    turns = "workers play while the learner learns" if overlap else "workers and learner take turns"
    why = f"{turns} on {cores} cores"
    if workers > free:
        why += f"; {workers} workers are more than the {free} cores left for them"
    return Layout(workers, overlap, learner, device, False, why)


def _bearable(config: Config, spec: Spec, overlap: bool) -> int:
    """Workers for which there is memory; at least one."""
    _, free = machine.memory_bytes()
    plain = config.algo == "ppo" and config.net.is_plain(spec)
    each = WORKER_BYTES + (0 if plain else TORCH_BYTES)
    each += _blocks_bytes(config, spec, overlap) + _block_bytes(config, spec)
    return max(1, int(0.8 * free // each))


class Sizer:
    """Fewer workers when memory runs short or others need the cores, more when cores idle.

    Acts only on what lasted for some readings, and then waits for its effect.
    """

    FULL, SPARE = 0.8, 0.7
    """Shares of memory from which on there are too many workers, and up to which there may be more."""
    LASTS = 3
    """Readings for which a reason must last."""

    def __init__(self, workers: int, cores: int) -> None:
        self.workers, self.cores, self.most = workers, cores, max(workers, 2 * cores)
        self._wish, self._lasted = 0, 0

    def advise(self, memory: float, others: float, idle: float, waiting: float) -> tuple[int, str]:
        """How many workers there should be, and why it changed ("" if not).

        memory: share in use. others, idle: cores that other programs use, and that nobody does.
        waiting: share of the learner's time in which it waits for workers
        """
        wish, why = self._wished(memory, others, idle, waiting)
        self._lasted = self._lasted + 1 if wish == self._wish else 1
        self._wish = wish
        if not wish or self._lasted < self.LASTS or not 1 <= self.workers + wish <= self.most:
            return self.workers, ""
        self.workers, self._lasted = self.workers + wish, 0
        return self.workers, why

    def _wished(self, memory: float, others: float, idle: float, waiting: float) -> tuple[int, str]:
        if memory > self.FULL:
            return -1, f"{100 * memory:.0f} % of the memory is in use"
        if others > 0.6 and self.workers > self.cores - others:
            return -1, f"other programs use {others:.1f} cores"
        if idle > 1 and waiting > 0.5 and memory < self.SPARE:
            return 1, f"{idle:.1f} cores idle"
        return 0, ""
