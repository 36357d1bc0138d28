"""Layout: how a machine's cores are used, and how many workers it bears while others use it too."""

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ludus import algos, machine
from ludus.config import Config
from ludus.core.block import block_bytes
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.training import cluster

WORKER_BYTES, TORCH_BYTES = 250 * 2**20, 450 * 2**20
"""What a worker takes beside its blocks, and what torch adds where it needs that."""
ROWS, SLOW_ROWS, STEPS = 128, 8, 64
"""Sizes of blocks. Small batches learn more from games that are slow, which make fewer decisions."""
SEARCHING = 14
"""Groups of games whose searches keep one GPU busy: beside an H200, 13 made 12 % more decisions than ten."""


def filled(config: Config, game: Game) -> Config:
    """With `rows` and `steps` as large as they get, where they are 0."""
    rows = ROWS if game.fast else SLOW_ROWS
    return dataclasses.replace(config, rows=config.rows or rows, steps=config.steps or STEPS)


@dataclass(frozen=True)
class Layout:
    pool: str
    """Name of the pool: local, process, central or ray."""
    workers: int
    overlap: bool
    threads: int
    """Of torch, in the learner."""
    device: str
    why: str


def check(config: Config) -> None:
    """Refuse what can't be laid out on this machine; before anything compiles."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise Usage("--device cuda: torch finds no GPU here; take --device cpu")
    if config.inference == "central" and not algos.find(config.algo).can_be_central(config):
        raise Usage(f"{config.algo} with this network plays in the workers: take --inference local")
    if config.pool == "ray":
        if config.inference == "central" or config.workers == "0":
            raise Usage("--pool ray plays in its workers: take --inference local and --workers of 1 or more")
        cluster.refuse(config.ray_address, config.ray_modules)
    elif config.ray_address or config.ray_modules:
        raise Usage("--ray-address and --ray-modules are of the Ray pool: add --pool ray")


def lay_out(config: Config, game: Game) -> Layout:
    """Workers, torch threads, device and where inference runs, from the cores and memory there are."""
    check(config)
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    able = algos.find(config.algo).can_be_central(config)
    possible = device == "cuda" and able and config.workers != "0" and config.pool != "ray"
    central = config.inference == "central" or (config.inference == "auto" and possible)
    layout = _central(config, game, device) if central else local(config, game, device)
    if config.pool == "ray":
        why = f"workers on a Ray cluster; beside the learner, {layout.why}"
        layout = dataclasses.replace(layout, pool="ray", why=why)
    refuse_too_large(config, game, layout)
    return layout


class Need(NamedTuple):
    size: int
    """Bytes."""
    what: str
    flags: str
    """What to lower."""


def refuse_too_large(config: Config, game: Game, layout: Layout) -> None:
    """Before anything starts: memory that isn't there kills whoever writes to it."""
    workers = max(layout.workers, 1)
    # The learner joins the blocks of all workers to one batch.
    size = workers * (_blocks_bytes(config, game, layout.overlap) + _block_bytes(config, game))
    what = f"blocks of {config.rows:,} rows x {config.steps:,} steps for {counted(workers)}"
    needs = [Need(size, what, "--rows, --steps or --workers")]
    if layout.pool == "central" and layout.device == "cuda":
        _refuse_more(needs, torch.cuda.mem_get_info()[0])
    for setting, size in _kept_bytes(config, game).items():
        flag = f"--{algos.group_of(config.algo)}.{setting.replace('_', '-')}"
        needs.append(Need(size, f"the {setting.replace('_', ' ')}", flag))
    _refuse_more(needs, machine.memory_bytes()[1])


def _refuse_more(needs: list[Need], free: int) -> None:
    needed, most = sum(need.size for need in needs), max(needs)
    if needed > free:
        raise Usage(
            f"{needed / 2**30:,.1f} GiB are needed, most of it for {most.what}, "
            f"but {free / 2**30:,.1f} GiB are free: lower {most.flags}"
        )


def counted(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


def _kept_bytes(config: Config, game: Game) -> dict[str, int]:
    return algos.find(config.algo).kept_bytes(config, game.spec)


def _block_bytes(config: Config, game: Game) -> int:
    return block_bytes(algos.find(config.algo).columns(config, game.spec), config.steps, config.rows)


def _blocks_bytes(config: Config, game: Game, overlap: bool) -> int:
    """Of one worker."""
    return (2 if overlap else 1) * _block_bytes(config, game)


def _central(config: Config, game: Game, device: str) -> Layout:
    cores = machine.usable_cores()
    most = SEARCHING if algos.find(config.algo).searches else cores
    groups = max(2, min(cores - 2, most)) if config.workers == "auto" else max(1, int(config.workers))
    where = "threads" if game.in_threads else "processes"
    why = f"{groups} groups of games in {where}, inference on {device} beside the learner"
    return Layout("central", groups, not config.sync, max(1, cores // 2), device, why)


def local(config: Config, game: Game, device: str) -> Layout:
    """Each worker computes its own choices."""
    cores = machine.usable_cores()
    # Below four cores workers and learner both want all of them, so they take turns.
    overlap = not config.sync and (device == "cuda" or cores >= 4) and config.workers != "0"
    learner = 1 if device == "cuda" else max(1, cores // 3) if overlap else cores
    free = max(1, cores - learner) if overlap else cores
    bearable = _bearable(config, game, overlap)
    workers = min(free, bearable) if config.workers == "auto" else int(config.workers)
    turns = "workers play while the learner learns" if overlap else "workers and learner take turns"
    why = f"{turns} on {cores} cores"
    if workers > free:
        why += f"; {workers} workers are more than the {free} cores left for them"
    return Layout("process" if workers else "local", workers, overlap, learner, device, why)


def _bearable(config: Config, game: Game, overlap: bool) -> int:
    """Workers for which there is memory; at least one."""
    free = machine.memory_bytes()[1] - sum(_kept_bytes(config, game).values())
    each = WORKER_BYTES
    each += TORCH_BYTES if algos.find(config.algo).needs_torch(config, game.spec) else 0
    each += _blocks_bytes(config, game, overlap) + _block_bytes(config, game)
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
        self.workers, self.planned, self.cores = workers, workers, cores
        self.most = max(workers, 2 * cores)
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
        if self.workers < self.planned and others < 0.3 and memory < self.SPARE:
            return 1, "other programs need no cores any more"
        if idle > 1 and waiting > 0.5 and memory < self.SPARE:
            return 1, f"{idle:.1f} cores idle"
        return 0, ""
