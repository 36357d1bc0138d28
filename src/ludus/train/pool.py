"""Pools: where the workers are. The loop does not know which pool it has.

`receive` gives finished blocks, `release` gives them back to be filled again, `publish` hands out new
weights. A worker that dies, hangs or whose game fails is replaced; its unfinished block is filled anew.
Between `receive` and `release` of all blocks the workers stand still, and `snapshot` tells where.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ludus import processes
from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure, Usage
from ludus.store.log import take_output
from ludus.train.faults import KILLED_TRIES, TRIES, Fault, in_time, patience_s
from ludus.train.weights import Past, Shared, Weights
from ludus.train.worker import Cancelled, Plan, Report, make_worker

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung, unless its games are known to be as slow."""
LOOK_S = 0.25
"""How often a pool that waits looks around."""
LEAVE_S = 0.5
"""How long workers may take to leave: one in the middle of a block doesn't hear that it should."""
ANSWER_S = 5.0
"""How long workers that stand still may take to tell where, or to be told."""
READY, SNAPSHOT = "ready", "snapshot"
REPLACED_SEED = 1_000_003
"""A replacement must not replay what its predecessor played: its seed is so much further."""


class Delivery(NamedTuple):
    """A finished block."""

    worker: int
    slot: int
    block: Block
    version: int  # of the weights that played it
    report: Report


def never() -> bool:
    return False


class Pool(Protocol):
    workers: int
    past: Past

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """Finished blocks; none if it gave up waiting for them."""
        ...

    def snapshot(self) -> list[dict[str, Any]]:
        """Where each worker stands, for an exact resume; empty if that can't be told."""
        ...

    def restore(self, snapshots: list[dict[str, Any]]) -> None: ...

    def progress(self) -> float | None:
        """How much there is of the blocks that are waited for, 0 to 1; None if nobody plays yet."""
        ...

    def release(self, deliveries: list[Delivery]) -> None: ...

    def publish(self, vector: np.ndarray, version: int, use_teacher: bool = True) -> None:
        """New weights. use_teacher: whether the teacher's choices are still wanted"""
        ...

    def health(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class LocalPool:
    """One worker in this process: everything under one debugger."""

    workers = 1

    def __init__(self, plan: Plan, columns: list[Column], vector: np.ndarray, past: Past) -> None:
        self.past, self._plan, self._vector = past, plan, vector
        self.replaced, self._failures, self._reason = 0, 0, ""
        self._worker = self._make_worker(plan)
        self._block = Block(columns, plan.steps, plan.rows)
        self._whole = True
        self.publish(vector, 0)

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        while True:
            self._worker.cancelled, self._whole = give_up, False
            try:
                report = self._worker.fill(self._block)
            except Cancelled:
                return []
            except Exception as error:
                self._restart(error)
                continue
            self._whole, self._failures = True, 0
            return [Delivery(0, 0, self._block, self._version, report)]

    def release(self, deliveries: list[Delivery]) -> None:
        pass

    def snapshot(self) -> list[dict[str, Any]]:
        return [self._worker.snapshot()] if self._whole else []

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        self._worker.restore(snapshots[0])

    def publish(self, vector: np.ndarray, version: int, use_teacher: bool = True) -> None:
        self._worker.policy.load(vector)
        self._worker.use_teacher = use_teacher
        self._vector, self._version = vector, version

    def progress(self) -> float | None:
        return self._worker.beat[1] / self._block.decisions

    def health(self) -> dict[str, Any]:
        return {"workers": 0, "replaced": self.replaced, "pids": [], "reason": self._reason}

    def close(self) -> None:
        self._worker.table.close()
        processes.kill(self._children)

    def _make_worker(self, plan: Plan) -> Any:
        before = processes.children()
        worker = make_worker(plan, 0, self.past)
        self._children = processes.children() - before
        return worker

    def _restart(self, error: Exception) -> None:
        """New games instead of those that failed."""
        fault = Fault.of(error)
        if fault.final:
            raise error
        self._failures += 1
        if self._failures > TRIES:
            raise Failure(f"the games failed {self._failures} times: {fault.line}") from error
        self.replaced += 1
        self._reason = f"the games failed: {fault.line}"
        with contextlib.suppress(Exception):  # what has failed may fail at this too
            self.close()
        use_teacher = self._worker.use_teacher
        plan = replace(self._plan, seed=self._plan.seed + self.replaced * REPLACED_SEED)
        self._worker = self._make_worker(plan)
        self.publish(self._vector, self._version, use_teacher)


@dataclass
class WorkerHandle:
    """One worker process, as the pool sees it."""

    process: Any
    pipe: connection.Connection
    asked: list[int] = field(default_factory=list)  # slots it has yet to fill, in order
    ready: bool = False  # it has made its games, and listens
    snapshot: dict[str, Any] | None = None  # where it goes on from, once it listens
    beat: int = 0
    beat_at: float = 0.0
    failures: int = 0
    fault: Fault | None = None


class ProcessPool:
    """Worker processes, each with one block (the learner waits for them) or two (they overlap)."""

    def __init__(
        self, plan: Plan, columns: list[Column], vector: np.ndarray, past: Past, context: Any,
        *, slots: int, min_blocks: int, most: int, log: str = "",
    ) -> None:  # fmt: skip
        """most: workers that there may ever be. log: file for whatever they print"""
        self.plan, self.past, self.replaced = plan, past, 0
        self.min_blocks, self.slots = min_blocks, slots
        self._columns, self._context, self._log = columns, context, log
        self._weights = Weights(context, len(vector))
        self._weights.write(vector, 0, True)
        self._beats = Shared(context, 24 * most)
        self._memory: dict[int, list[Shared]] = {}  # of workers that are there
        self._blocks: dict[int, list[Block]] = {}
        self._ready: list[Delivery] = []
        self._handles: dict[int, WorkerHandle] = {}
        self._started, self._reason = False, ""
        self.resize(plan.workers)

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        """At least `min_blocks` finished blocks, in the order of their workers."""
        self._start()
        while len(self._ready) < min(self.min_blocks, self.workers):
            if give_up():
                return []
            self._listen()
        ready, self._ready = sorted(self._ready, key=lambda delivery: delivery.worker), []
        return ready

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            if delivery.worker < self.workers:
                self._ask(delivery.worker, delivery.slot)
            elif delivery.worker in self._handles and not self._handles[delivery.worker].asked:
                self._dismiss(delivery.worker)

    def resize(self, workers: int) -> None:
        """So many workers from now on; those too many leave once their blocks are learned from."""
        self.workers = workers
        for index in range(workers):
            if index not in self._handles:
                self._handles[index] = self._spawn(index)
                if self._started:
                    self._ask_all(index)

    def snapshot(self) -> list[dict[str, Any]]:
        """Empty for a worker that doesn't answer; it is replaced. Before the first block there is nothing to
        tell: workers begin alike from the same seed."""
        handles = dict(self._handles)
        if self.slots > 1 or not self._started or any(handle.asked for handle in handles.values()):
            return []
        for handle in handles.values():
            with contextlib.suppress(OSError):  # it has just died
                handle.pipe.send(SNAPSHOT)
        answers = in_time([handle.pipe.recv for handle in handles.values()], ANSWER_S)
        for (index, handle), answer in zip(handles.items(), answers, strict=True):
            if isinstance(answer, Fault):
                handle.fault = answer  # and its end will be seen
            elif isinstance(answer, TimeoutError):
                self._replace(index, f"did not answer for {ANSWER_S:.0f} s")
            elif isinstance(answer, BaseException):
                self._replace(index, "died")
        return [answer if isinstance(answer, dict) else {} for answer in answers]

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        for handle, snapshot in zip(self._handles.values(), snapshots, strict=False):
            handle.snapshot = snapshot

    def publish(self, vector: np.ndarray, version: int, use_teacher: bool = True) -> None:
        self._weights.write(vector, version, use_teacher)

    def beats(self) -> int:
        """Steps that all workers made so far; of those that search, leaves that they valued."""
        return int(self._counts()[:, 0].sum())

    def progress(self) -> float | None:
        counts, decisions = self._counts(), self.plan.rows * self.plan.steps
        if not any(handle.ready for handle in self._handles.values()):
            return None
        shares = [
            (counts[index, 1] / decisions if handle.ready else 0.0) if handle.asked else 1.0
            for index, handle in self._handles.items()
        ]
        return sum(shares) / len(shares)

    def health(self) -> dict[str, Any]:
        pids = [handle.process.pid for handle in self._handles.values()]
        return {"workers": self.workers, "replaced": self.replaced, "pids": pids, "reason": self._reason}

    def close(self) -> None:
        for handle in self._handles.values():
            with contextlib.suppress(OSError):
                handle.pipe.send(None)
        until = time.monotonic() + LEAVE_S  # for all together: each its own would add up
        for index in list(self._handles):
            self._dismiss(index, until - time.monotonic())

    def _start(self) -> None:
        """Ask for the first blocks; not before, so that workers can be restored."""
        if not self._started:
            self._started = True
            for index in self._handles:
                self._ask_all(index)

    def _dismiss(self, index: int, patience_s: float = LEAVE_S) -> None:
        handle = self._handles.pop(index)
        with contextlib.suppress(OSError):
            handle.pipe.send(None)
        processes.end(handle.process, patience_s)
        handle.pipe.close()
        del self._memory[index], self._blocks[index]

    def _spawn(self, index: int) -> WorkerHandle:
        plan = replace(self.plan, seed=self.plan.seed + self.replaced * REPLACED_SEED)
        if index not in self._memory:
            size = block_bytes(self._columns, plan.steps, plan.rows)
            self._memory[index] = [Shared(self._context, size) for _ in range(self.slots)]
            self._blocks[index] = [
                Block(self._columns, plan.steps, plan.rows, shared.memory) for shared in self._memory[index]
            ]
        self._counts()[index] = 0
        ours, theirs = self._context.Pipe()
        args = (
            plan, index, self._columns, self._memory[index], self._weights, self.past, self._beats, theirs,
            self._log,
        )  # fmt: skip
        process = self._context.Process(target=serve, args=args, name=f"ludus-worker-{index}", daemon=True)
        process.needs_main = plan.game.startswith("__main__:")
        process.start()
        theirs.close()
        return WorkerHandle(process, ours, beat_at=time.monotonic())

    def _counts(self) -> np.ndarray:
        """int64 [most, 3]: what every worker counts, see `Worker`."""
        return self._beats.array(np.int64, (-1,)).reshape(-1, 3)

    def _ask_all(self, index: int) -> None:
        for slot in range(self.slots):
            self._ask(index, slot)

    def _ask(self, index: int, slot: int) -> None:
        handle = self._handles[index]
        handle.asked.append(slot)
        if handle.ready:
            with contextlib.suppress(
                OSError
            ):  # it has just died: `_listen` will see it and ask its successor
                handle.pipe.send(slot)

    def _listen(self) -> None:
        """Take what has come; replace the dead and the hung."""
        awake = connection.wait([handle.pipe for handle in self._handles.values()], timeout=LOOK_S)
        for index, handle in list(self._handles.items()):
            if handle.pipe in awake:
                try:
                    self._hear(index, handle, handle.pipe.recv())
                except TimeoutError:
                    self._replace(index, f"did not listen for {ANSWER_S:.0f} s")
                except (EOFError, OSError):
                    self._replace(index, "failed" if handle.fault else "died")
            elif not handle.process.is_alive() and not handle.pipe.poll():
                self._replace(index, "died")  # while a child of its own holds the pipe
        self._replace_hung()

    def _hear(self, index: int, handle: WorkerHandle, message: Any) -> None:
        if isinstance(message, Fault):
            handle.fault = message
        elif message == READY:
            self._begin(handle)
        else:
            slot, version, report = message
            handle.asked.remove(slot)
            handle.failures, handle.fault = 0, None
            self._ready.append(Delivery(index, slot, self._blocks[index][slot], version, report))

    def _begin(self, handle: WorkerHandle) -> None:
        """It listens now: where it goes on from, and what it is to do."""
        handle.ready, handle.beat_at = True, time.monotonic()
        if handle.snapshot:
            (sent,) = in_time([lambda: handle.pipe.send(handle.snapshot)], ANSWER_S)
            if sent is not None:
                raise sent
            handle.snapshot = None
        for slot in handle.asked:
            handle.pipe.send(slot)

    def _replace_hung(self) -> None:
        counts, now = self._counts(), time.monotonic()
        for index, handle in list(self._handles.items()):
            beat, _, slowest_ms = counts[index].tolist()
            most_s = patience_s(PATIENCE_S, self.plan.rows, slowest_ms / 1000 if beat else None)
            if beat != handle.beat or not handle.asked:
                handle.beat, handle.beat_at = beat, now
            elif now - handle.beat_at > most_s:
                self._replace(index, f"made no decision for {most_s:.0f} s")

    def _replace(self, index: int, why: str) -> None:
        old = self._handles[index]
        old.process.join(0.1)  # one that died leaves its exit code
        code = old.process.exitcode
        processes.end(old.process)
        old.pipe.close()
        failures = old.failures + 1
        said = old.fault.line if old.fault else "" if code is None else f"it said nothing (exit code {code})"
        if code and old.process.needs_main and not old.fault:
            said += ": put what starts the training under `if __name__ == '__main__':`"
        if old.fault and old.fault.final:
            raise Usage(said) from RuntimeError(old.fault.traceback)
        if failures > (KILLED_TRIES if code == -9 and not old.fault else TRIES):
            cause = RuntimeError(old.fault.traceback) if old.fault else None
            raise Failure(f"worker {index} {why} {failures} times: {said or 'it hung'}") from cause
        self.replaced += 1
        self._reason = f"worker {index} {why}" + (f": {said}" if said and code != -9 else "")
        handle = self._handles[index] = self._spawn(index)
        handle.failures, handle.snapshot = failures, old.snapshot
        for slot in old.asked:
            self._ask(index, slot)


def serve(plan, index, columns, memory, weights, past, beats, pipe, log) -> None:
    """A worker process: fill the blocks it is asked for until told to stop or left alone."""
    if log:
        take_output(Path(log), f"worker-{index}")
    try:
        beat = beats.array(np.int64, (-1,)).reshape(-1, 3)[index]
        worker = make_worker(plan, index, past, beat)
        blocks = [Block(columns, plan.steps, plan.rows, shared.memory) for shared in memory]
        known = -1
        pipe.send(READY)
        while (asked := pipe.recv()) is not None:
            if asked == SNAPSHOT:
                pipe.send(worker.snapshot())
                continue
            if isinstance(asked, dict):
                worker.restore(asked)
                continue
            vector, version, worker.use_teacher = weights.read()
            if version != known:
                worker.policy.load(vector)
                known = version
            pipe.send((asked, version, worker.fill(blocks[asked])))
        worker.table.close()
    except BaseException as error:
        pipe.send(Fault.of(error))
        raise


def make_context(start: str = "auto", torch_too: bool = False) -> Any:
    """How processes of a training start. torch_too: they will all need it, so that it is there before them"""
    context = processes.make_context(start)
    if context.get_start_method() == "forkserver":
        modules = ["ludus.train.pool", "ludus.nets.plain", "ludus.train.preload"]
        context.set_forkserver_preload(
            [*modules, "ludus.algos.alphazero.evaluators"] if torch_too else modules
        )
    return context
