"""RayPool: workers on the nodes of a Ray cluster, which may come and go.

A worker gives its block's bytes to Ray's object store; the learner reads them there. Weights and past selves
are put there once and fetched once for each node. With `--workers auto` every core of every node has a
worker; so many workers as are asked for are spread over the nodes. Nothing is named or detached: if the
learner dies, Ray ends all of its workers.
"""

import contextlib
import ctypes
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ludus import processes
from ludus.core.block import Block
from ludus.core.errors import Failure, Usage
from ludus.core.report import Report
from ludus.training import cluster
from ludus.training.faults import KILLED_TRIES, REPLACED_SEED, TRIES, Fault, patience_s
from ludus.training.pools import LEAVE_S, LOOK_S, Delivery, Health, PoolPlan, never
from ludus.training.ray_worker import Hello, PastNews, RayWorker
from ludus.training.weights import PAST_SLOTS, PastSelves

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung, unless its games are known to be as slow."""
NODES_S, PULSE_S = 1.0, 2.0
"""How often we look which nodes there are, and how late workers are."""
START_S = 20.0
"""How long the first update waits for workers that are still starting."""
LATE_S, LATE = 2.0, 4.0
"""The learner goes on without a worker that takes so long for a block, and so many times the usual time."""
GET_S = 10.0
"""How long a block that has come may take to be read: its node may be gone since."""
SEEN = 64
"""Blocks by whose times the usual one is known."""


class Asked(NamedTuple):
    """A block that a worker was asked for: where it and its report will be."""

    report: Any
    block: Any
    version: int


@dataclass
class WorkerHandle:
    """One worker, as the pool sees it."""

    actor: Any
    serial: int
    """No two workers ever have the same."""
    place: str
    """The node it is made for."""
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


class RayPool:
    """Workers wherever there are cores, one core each."""

    resizable, reads_vector = False, True

    def __init__(self, made_of: PoolPlan) -> None:
        self.plan, self._columns, self._vector = made_of.plan, made_of.columns, made_of.vector
        self.min_blocks, self._overlap, self._wishes = made_of.min_blocks, made_of.overlap, made_of.cluster
        self._tell = made_of.tell
        self.replaced = self.dropped = self._serial = 0
        self._reason = ""
        self._handles: dict[int, WorkerHandle] = {}
        self._lives: Counter[int] = Counter()  # workers that there were of each index
        self._failures: Counter[int] = Counter()  # in a row, by index
        self._refused: dict[str, str] = {}  # nodes that can't play for us, and why
        self._nodes: dict[str, cluster.Node] = {}
        self._ready: list[Delivery] = []
        self._took: deque[float] = deque(maxlen=SEEN)
        self._looked = self._pulsed = self._waits_since = 0.0
        self._delivered = False
        self._ours = cluster.connect(self._wishes.address, self._wishes.modules)
        try:
            self._join()
        except BaseException:
            self.close()
            raise

    def _join(self) -> None:
        import ray

        self._ray, self._home = ray, cluster.own_node()
        how: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "concurrency_groups": {"pulse": 1}}
        self._remote: Any = ray.remote(**how)(RayWorker)
        self._past_put: dict[int, tuple[int, Any]] = {}
        self._past_vectors = np.zeros((PAST_SLOTS, len(self._vector)), np.float32)
        self._past_news, self._past_number = PastNews(np.zeros(0), np.zeros(0), {}), 0
        self._first = ray.put(self._vector)
        self.publish(self._vector, 0, 0.0)
        self._begun = time.monotonic()
        self._look_around()
        if not self._wanted():
            raise Usage("the Ray cluster has no cores for workers: add nodes, or give them more --num-cpus")
        self.workers = self._count()

    # ---- what the loop calls

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """A block of every worker that plays, in the order of workers; those that are late come later."""
        self._waits_since = time.monotonic()
        for index in self._handles:
            self._ask(index)
        while self._missing() or not self._ready:
            if give_up():
                return []
            self._listen()
        self._delivered = True
        ready, self._ready = sorted(self._ready, key=lambda delivery: delivery.worker), []
        return ready

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            handle = self._handles.get(delivery.worker)
            if handle and handle.serial == delivery.slot:
                handle.held -= 1
                self._ask(delivery.worker)
        self._look_around()

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        self._weights, self._version, self._progress = self._ray.put(vector), version, progress

    def publish_past(self, past: PastSelves) -> None:
        self._past_number += 1
        for slot in range(PAST_SLOTS):
            if (past.weights[slot] != self._past_vectors[slot]).any():
                self._past_vectors[slot] = past.weights[slot]
                self._past_put[slot] = self._past_number, self._ray.put(past.weights[slot])
        self._past_news = PastNews(past.odds.copy(), past.versions.copy(), dict(self._past_put))

    def resize(self, workers: int) -> None:
        """The cluster decides."""

    def snapshot(self) -> list[dict[str, Any]]:
        """Nodes come and go, so an exact resume can't be promised."""
        return []

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        """Workers begin new games."""

    def beats(self) -> int:
        return sum(handle.beats[0] for handle in self._handles.values())

    def progress(self) -> float | None:
        playing = [handle for handle in self._handles.values() if handle.ready]
        decisions = self.plan.rows * self.plan.steps
        shares = [handle.beats[1] / decisions if handle.asked else 1.0 for handle in playing]
        return statistics.mean(shares) if shares else None

    def health(self) -> Health:
        ready = [handle for handle in self._handles.values() if handle.ready]
        pids = tuple(handle.pid for handle in ready if handle.node == self._home)
        names = sorted(node.name for node in self._nodes.values() if node.id not in self._refused)
        by_node = dict.fromkeys(names, 0)
        for handle in ready:
            if handle.node in self._nodes:
                by_node[self._nodes[handle.node].name] += 1
        return Health(len(ready), self.replaced, pids, self._reason, by_node, self.dropped)

    def close(self) -> None:
        leaving = [handle.actor.leave.remote() for handle in self._handles.values() if handle.ready]
        if leaving:
            self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVE_S)
        for index in list(self._handles):
            self._forget(index)
        self._ready.clear()
        if self._ours:
            cluster.leave()

    # ---- who plays where

    def _wanted(self) -> dict[str, int]:
        """Workers by node."""
        room = {node.id: node.cores for node in self._nodes.values() if node.id not in self._refused}
        if self._wishes.workers:
            return cluster.spread(self._wishes.workers, room, self._home)
        if self._home in room:
            room[self._home] = min(room[self._home], self.plan.workers)  # the learner needs cores too
        return {node: cores for node, cores in room.items() if cores > 0}

    def _count(self) -> int:
        return sum(self._wanted().values())

    def _look_around(self) -> None:
        """Use nodes that have come, and forget those that have gone; at most once a second."""
        now = time.monotonic()
        if now - self._looked < NODES_S:
            return
        self._looked = now
        before, self._nodes = self._nodes, cluster.nodes()
        for node in self._nodes.keys() - before.keys():
            if before:
                name, cores = self._nodes[node].name, self._nodes[node].cores
                self._tell("node joined", reason=f"{name} has {cores} cores")
        for node in before.keys() - self._nodes.keys():
            self._lose_node(before[node])
        self._staff()

    def _lose_node(self, node: cluster.Node) -> None:
        lost = [index for index, handle in self._handles.items() if handle.place == node.id]
        for index in lost:
            self._forget(index)
        self._tell("node left", reason=f"{node.name} is gone, with {len(lost)} workers")

    def _staff(self) -> None:
        """Start the workers that are missing. A node's first one compiles for the others."""
        if self._wishes.sync and self._delivered:
            return  # who plays is a part of what is reproduced
        for place, count in self._wanted().items():
            here = [handle for handle in self._handles.values() if handle.place == place]
            if not any(handle.ready for handle in here):
                count = 1
            for _ in range(count - len(here)):
                self._spawn(place)
        self.workers = self._count()

    def _spawn(self, place: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        index = next(number for number in range(len(self._handles) + 1) if number not in self._handles)
        actor = self._remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(place, soft=False),
            runtime_env={"env_vars": processes.ONE_THREAD},
        ).remote(index)
        self._serial += 1
        self._handles[index] = WorkerHandle(actor, self._serial, place, actor.hello.remote())
        self._lives[index] += 1

    def _forget(self, index: int) -> None:
        handle = self._handles.pop(index)
        with contextlib.suppress(Exception):  # it is gone already
            self._ray.kill(handle.actor)

    # ---- blocks

    def _ask(self, index: int) -> None:
        """As many blocks as a worker may have on the way: it bounds what lies in the object store."""
        handle = self._handles[index]
        elsewhere = handle.node != self._home and not self._wishes.sync
        most = 2 if self._overlap or elsewhere else 1
        while handle.ready and len(handle.asked) + handle.held < most:
            news = self._past_news if handle.past != self._past_number else None
            report, block = handle.actor.fill.options(num_returns=2).remote(
                self._weights, self._version, self._progress, news
            )
            handle.past = self._past_number
            if not handle.asked:
                handle.since = handle.beat_at = time.monotonic()
            handle.asked.append(Asked(report, block, self._version))

    def _missing(self) -> list[WorkerHandle]:
        """Workers whose blocks the learner waits for."""
        if len(self._ready) >= self.min_blocks:
            return []
        there = {delivery.slot for delivery in self._ready}
        missing = [handle for handle in self._handles.values() if handle.serial not in there]
        if self._wishes.sync:
            return missing
        now = time.monotonic()
        usual_s = statistics.median(self._took) if self._took else float("inf")
        for handle in missing:
            waited_s = now - max(handle.since, self._waits_since)
            handle.late = handle.late or waited_s > max(LATE_S, LATE * usual_s)
        starting = not self._delivered and now - self._begun < START_S
        return [handle for handle in missing if (not handle.late if handle.ready else starting)]

    def _listen(self) -> None:
        """Take what has come; replace the dead and the hung."""
        waiting = {}
        for index, handle in self._handles.items():
            if handle.starting is not None:
                waiting[handle.starting] = index
            elif handle.asked:
                waiting[handle.asked[0].block] = index
        if waiting:
            needed = max(1, min(len(waiting), self.min_blocks - len(self._ready), len(self._missing())))
            come, _ = self._ray.wait(list(waiting), num_returns=needed, timeout=LOOK_S, fetch_local=True)
            for ref in come:
                self._hear(waiting[ref], ref)
        else:
            time.sleep(LOOK_S)
        self._look_around()
        self._check_pulses()

    def _hear(self, index: int, ref: Any) -> None:
        handle = self._handles.get(index)
        try:
            if handle and handle.starting == ref:
                self._start_further(index, self._ray.get(ref))
            elif handle and handle.asked and handle.asked[0].block == ref:  # else it was replaced meanwhile
                asked = handle.asked[0]
                report, data = self._ray.get([asked.report, asked.block], timeout=GET_S)
                handle.asked.pop(0)
                self._take(index, report, data, asked.version)
        except self._ray.exceptions.RayError as error:
            self._lose(index, "died", None, str(error))

    def _start_further(self, index: int, said: Any) -> None:
        """A worker has said hello, or made its games."""
        handle = self._handles[index]
        if isinstance(said, Fault):
            return self._lose(index, "failed", said)
        if handle.node:
            handle.starting, handle.ready = None, True
            self._ask(index)
            return self._staff()
        hello = Hello(*said)
        if why := cluster.mismatch(self._nodes[handle.place].name, hello.versions):
            return self._refuse(handle.place, why)
        handle.node, handle.pid, handle.beat_at = hello.node, hello.pid, time.monotonic()
        plan = replace(
            self.plan, seed=self.plan.seed + (self._lives[index] - 1) * REPLACED_SEED,
            workers=max(self.plan.workers, index + 1),
        )  # fmt: skip
        handle.starting = handle.actor.begin.remote(plan, self._columns, self._first)

    def _take(self, index: int, report: Report | Fault, data: np.ndarray, version: int) -> None:
        handle, now = self._handles[index], time.monotonic()
        if isinstance(report, Fault):
            return self._lose(index, "failed", report)
        self._took.append(now - handle.since)
        handle.since = handle.beat_at = now
        handle.late, handle.proven = False, True
        self._failures[index] = 0
        if self._version - version > self._wishes.max_lag:
            self.dropped += 1
            return self._ask(index)
        block = Block(self._columns, self.plan.steps, self.plan.rows, _writable(data))
        handle.held += 1
        self._ready.append(Delivery(index, handle.serial, block, version, report))

    # ---- what goes wrong

    def _check_pulses(self) -> None:
        """Replace workers that hang. Only those that are late are asked."""
        now = time.monotonic()
        if now - self._pulsed < PULSE_S:
            return
        self._pulsed = now
        for index, handle in list(self._handles.items()):
            if handle.pulse is not None and self._ray.wait([handle.pulse], timeout=0)[0]:
                with contextlib.suppress(self._ray.exceptions.RayError):  # it will be seen to have died
                    self._note_pulse(handle, tuple(self._ray.get(handle.pulse)))
                handle.pulse = None
            busy = handle.node and (handle.starting is not None or handle.asked)
            if not busy or now - max(handle.since, handle.beat_at) < PULSE_S:
                continue
            most_s = patience_s(PATIENCE_S, self.plan.rows, handle.beats[2] / 1000 if handle.proven else None)
            if now - handle.beat_at > most_s:
                self._lose(index, f"made no decision for {most_s:.0f} s", None)
            elif handle.pulse is None:
                handle.pulse = handle.actor.pulse.options(concurrency_group="pulse").remote()

    def _note_pulse(self, handle: WorkerHandle, beats: tuple[int, ...]) -> None:
        if beats[0] != handle.beats[0]:
            handle.beat_at = time.monotonic()
        handle.beats = beats

    def _lose(self, index: int, why: str, fault: Fault | None, error: str = "") -> None:
        """Replace a worker; its blocks that are not here yet are lost, and were never counted."""
        handle = self._handles[index]
        self._look_again()
        if self._handles.get(index) is not handle:
            return  # its node has gone, and it with it
        if "ModuleNotFoundError" in error and "ludus" in error:
            missing = "has no Ludus: install it there, or send the learner's with --ray-modules"
            name = self._nodes[handle.place].name
            return self._refuse(handle.place, f"node {name} {missing} {cluster.PACKAGE}")
        self._forget(index)
        self._failures[index] += 1
        said = fault.line if fault else " ".join(error.split())[:300]
        if fault and fault.final:
            raise Usage(said) from RuntimeError(fault.traceback)
        failures, name = self._failures[index], self._nodes[handle.place].name
        if failures > (TRIES if fault else KILLED_TRIES):
            text = f"worker {index} on {name} {why} {failures} times: {said or 'it hung'}"
            if not any(other.ready for other in self._handles.values()):
                raise Failure(text) from (RuntimeError(fault.traceback) if fault else None)
            return self._refuse(handle.place, text)
        self.replaced += 1
        self._reason = f"worker {index} on {name} {why}" + (f": {said}" if said else "")
        self._spawn(handle.place)

    def _look_again(self) -> None:
        self._looked = 0.0
        self._look_around()

    def _refuse(self, node: str, why: str) -> None:
        """A node can't play for us. At the beginning that ends the training, later it is left alone."""
        if not self._delivered:
            raise Usage(why)
        self._refused[node] = why
        for index in [i for i, handle in self._handles.items() if handle.place == node]:
            self._forget(index)
        self._tell("node refused", reason=why)


def _writable(data: np.ndarray) -> Any:
    """The object store's memory as it lies, without the mark that it is read-only.

    Compiled code and torch treat such arrays as another kind. Nobody writes to a block that was delivered.
    """
    memory = (ctypes.c_byte * data.nbytes).from_address(data.ctypes.data)
    memory._kept = data  # type: ignore[attr-defined]
    return memory


make = RayPool
