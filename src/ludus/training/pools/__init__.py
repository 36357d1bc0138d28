"""Pools: where actors play. The loop does not know which pool it has. Each is a file here, found by name.

`receive` gives finished blocks, `release` gives them back to be filled again, `publish` hands out new
weights. A worker that dies, hangs or whose game fails is replaced; its unfinished block is filled anew.
Between `receive` and `release` of all blocks the workers stand still, and `snapshot` tells where.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ludus.algos import Plan
from ludus.core.block import Block, Column
from ludus.core.report import Report
from ludus.training.weights import PastSelves

if TYPE_CHECKING:
    import torch

LOOK_S = 0.25
"""How often a pool that waits looks around."""
LEAVE_S = 0.5
"""How long workers may take to leave: one in the middle of a block doesn't hear that it should."""


class Delivery(NamedTuple):
    """A finished block."""

    worker: int
    slot: int
    block: Block
    version: int  # of the weights that played it
    report: Report


class Health(NamedTuple):
    """How the workers are."""

    workers: int
    replaced: int = 0
    pids: tuple[int, ...] = ()
    reason: str = ""
    """Why the last one was replaced."""
    nodes: Mapping[str, int] = {}
    """Workers by machine, of a pool that has several."""
    dropped: int = 0
    """Blocks that came too late to be learned from."""


@dataclass(frozen=True)
class ClusterPlan:
    """What a pool on several machines is told."""

    address: str = ""
    """"" for this machine alone."""
    modules: tuple[str, ...] = ()
    """Packages that are sent to the nodes."""
    workers: int = 0
    """0 for one on every core."""
    max_lag: int = 1
    """Versions by which the weights of a block may be older than the newest."""
    sync: bool = False
    """The learner waits for every worker."""


def untold(what: str, **details: Any) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class PoolPlan:
    """What every pool is made of."""

    plan: Plan
    columns: list[Column]
    net: "torch.nn.Module"
    """The learner's, for pools that play with it where it is."""
    vector: np.ndarray
    """All its weights, float32 [size]."""
    context: Any
    """How processes start."""
    overlap: bool = False
    """Workers play on while the learner learns."""
    min_blocks: int = 10**6
    """Blocks after which the learner need not wait for more."""
    most: int = 1
    """Workers that there may ever be."""
    log: str = ""
    """File for whatever workers print."""
    cluster: ClusterPlan = ClusterPlan()
    tell: Callable[..., None] = untold
    """Told of what happens, as `Run.event` is."""


def never() -> bool:
    return False


class Pool(Protocol):
    workers: int
    resizable: bool
    reads_vector: bool
    """Whether `publish` reads the weights it is given; beside the learner, its network is enough."""

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """Finished blocks; none if it gave up waiting for them."""
        ...

    def release(self, deliveries: list[Delivery]) -> None: ...

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        """New weights. progress: share of the training that is done"""
        ...

    def publish_past(self, past: PastSelves) -> None: ...

    def resize(self, workers: int) -> None:
        """So many workers from now on, if it is resizable."""
        ...

    def snapshot(self) -> list[dict[str, Any]]:
        """Where each worker stands, for an exact resume; empty if that can't be told."""
        ...

    def restore(self, snapshots: list[dict[str, Any]]) -> None: ...

    def beats(self) -> int:
        """What all actors counted so far, see `Actor.beat`."""
        ...

    def progress(self) -> float | None:
        """How much there is of the blocks that are waited for, 0 to 1; None if nobody plays yet."""
        ...

    def health(self) -> Health: ...

    def close(self) -> None: ...


def make(name: str, plan: PoolPlan) -> Pool:
    """The pool of a file here."""
    return importlib.import_module(f"{__name__}.{name}").make(plan)
