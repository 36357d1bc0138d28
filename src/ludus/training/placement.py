"""Placement: which nodes of a Ray cluster have workers, and how many. Knows nothing of blocks.

With `--workers auto` every core of every node has a worker; a given number of workers is spread over the
nodes. Nodes may come and go.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ludus import processes
from ludus.core.errors import Failure, Usage
from ludus.training import cluster
from ludus.training.pools import ClusterPlan
from ludus.training.ray_worker import RayWorker

NODES_S = 1.0
"""How often we look which nodes there are."""


class Asked(NamedTuple):
    """A block that a worker was asked for: where it and its report will be."""

    report: Any
    block: Any
    version: int


@dataclass
class WorkerHandle:
    """One worker, as the learner sees it."""

    actor: Any
    serial: int
    """No two workers ever have the same."""
    place: str
    """The node it is made for."""
    life: int
    """Workers that had its index before."""
    starting: Any = None
    """What it does before it is ready: saying hello, then making its games."""
    node: str = ""
    """Where it is, once it has said so."""
    pid: int = 0
    ready: bool = False
    asked: list[Asked] = field(default_factory=list)
    held: int = 0
    """Blocks of its that the learner has."""
    since: float = 0.0
    """When its oldest block was begun."""
    proven: bool = False
    """It has delivered a block."""
    late: bool = False
    """The learner does not wait for its next block any more."""
    past: int = 0
    """Which past selves it was told of."""
    pulse: Any = None
    beats: tuple[int, ...] = (0, 0, 0)
    beat_at: float = 0.0


class Placement:
    """Starts workers where cores are free, and forgets them with their node."""

    def __init__(self, wishes: ClusterPlan, beside: int, tell: Callable[..., None]) -> None:
        """beside: workers that fit on the learner's own node. tell: is told of nodes that come and go"""
        import ray

        self._ray, self._wishes, self._beside, self._tell = ray, wishes, beside, tell
        self.home = cluster.own_node()
        self.handles: dict[int, WorkerHandle] = {}
        self.begun = False  # a block was delivered: from now on a node that can't play is left alone
        self._nodes: dict[str, cluster.Node] = {}
        self._refused: set[str] = set()
        self._lives: Counter[int] = Counter()  # workers that there were of each index
        self._serial, self._looked = 0, 0.0
        how: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "concurrency_groups": {"pulse": 1}}
        self._remote: Any = ray.remote(**how)(RayWorker)

    def look_around(self, now: bool = False) -> None:
        """Use nodes that have come, and forget those that have gone. now: else at most once a second"""
        if not now and time.monotonic() - self._looked < NODES_S:
            return
        self._looked = time.monotonic()
        before, self._nodes = self._nodes, cluster.nodes()
        for node in self._nodes.keys() - before.keys():
            if before:
                name, cores = self._nodes[node].name, self._nodes[node].cores
                self._tell("node joined", reason=f"{name} has {cores} cores")
        for node in before.keys() - self._nodes.keys():
            lost = self._forget_all(node)
            self._tell("node left", reason=f"{before[node].name} is gone, with {lost} workers")
        self.staff()

    def staff(self) -> None:
        """Start the workers that are missing. A node's first one compiles for the others."""
        if self._wishes.sync and self.begun:
            return  # who plays is a part of what is reproduced
        for place, count in self._wanted().items():
            here = [handle for handle in self.handles.values() if handle.place == place]
            if not any(handle.ready for handle in here):
                count = 1
            for _ in range(count - len(here)):
                self.spawn(place)

    def spawn(self, place: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        index = next(number for number in range(len(self.handles) + 1) if number not in self.handles)
        actor = self._remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(place, soft=False),
            runtime_env={"env_vars": processes.ONE_THREAD},
        ).remote(index)
        self._serial += 1
        life = self._lives[index]
        self.handles[index] = WorkerHandle(actor, self._serial, place, life, actor.hello.remote())
        self._lives[index] += 1

    def forget(self, index: int) -> None:
        handle = self.handles.pop(index)
        with contextlib.suppress(Exception):  # it is gone already
            self._ray.kill(handle.actor)

    def refuse(self, node: str, why: str) -> None:
        """A node can't play for us. At the beginning that ends the training, later it is left alone."""
        if not self.begun:
            raise Usage(why)
        self._refused.add(node)
        self._forget_all(node)
        self._tell("node refused", reason=why)
        if not self._wanted():
            raise Failure(f"no node is left that can play: {why}")

    def count(self) -> int:
        """Workers that there should be."""
        return sum(self._wanted().values())

    def name(self, handle: WorkerHandle) -> str:
        """Of its node."""
        return self._nodes[handle.place].name

    def by_node(self) -> dict[str, int]:
        """Workers that play, by the name of each node that is used."""
        names = sorted(node.name for node in self._nodes.values() if node.id not in self._refused)
        found = dict.fromkeys(names, 0)
        for handle in self.handles.values():
            if handle.ready and handle.node in self._nodes:
                found[self._nodes[handle.node].name] += 1
        return found

    def _wanted(self) -> dict[str, int]:
        """Workers by node."""
        room = {node.id: node.cores for node in self._nodes.values() if node.id not in self._refused}
        if self._wishes.workers:
            return cluster.spread(self._wishes.workers, room, self.home)
        if self.home in room:
            room[self.home] = min(room[self.home], self._beside)  # the learner needs cores too
        return {node: cores for node, cores in room.items() if cores > 0}

    def _forget_all(self, node: str) -> int:
        """How many workers of a node are forgotten."""
        lost = [index for index, handle in self.handles.items() if handle.place == node]
        for index in lost:
            self.forget(index)
        return len(lost)
