"""ProcessPool: worker processes that fill blocks in shared memory."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import numpy as np

from ludus import processes
from ludus.algos import Plan
from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure, Usage
from ludus.store.log import take_output
from ludus.training.faults import KILLED_TRIES, REPLACED_SEED, TRIES, Fault, in_time, patience_s
from ludus.training.pools import LEAVE_S, LOOK_S, Delivery, Health, PoolPlan, never
from ludus.training.weights import Past, PastSelves, Shared, Weights
from ludus.training.worker import make_actor

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung, unless its games are known to be as slow."""
ANSWER_S = 5.0
"""How long workers that stand still may take to tell where, or to be told."""
READY, SNAPSHOT = "ready", "snapshot"


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

    resizable, reads_vector = True, True

    def __init__(self, made_of: PoolPlan) -> None:
        self.plan, self.replaced, context = made_of.plan, 0, made_of.context
        self.min_blocks, self.slots = made_of.min_blocks, 2 if made_of.overlap else 1
        self._columns, self._context, self._log = made_of.columns, context, made_of.log
        self._past = Past(context, made_of.vector)
        self._weights = Weights(context, len(made_of.vector))
        self._weights.write(made_of.vector, 0, 0.0)
        self._beats = Shared(context, 24 * made_of.most)
        self._memory: dict[int, list[Shared]] = {}  # of workers that are there
        self._blocks: dict[int, list[Block]] = {}
        self._ready: list[Delivery] = []
        self._handles: dict[int, WorkerHandle] = {}
        self._started, self._reason = False, ""
        self.resize(self.plan.workers)

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

    def publish(self, vector: np.ndarray, version: int, progress: float) -> None:
        self._weights.write(vector, version, progress)

    def publish_past(self, past: PastSelves) -> None:
        self._past.publish(past)

    def beats(self) -> int:
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

    def health(self) -> Health:
        pids = tuple(handle.process.pid for handle in self._handles.values())
        return Health(self.workers, self.replaced, pids, self._reason)

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
            plan, index, self._columns, self._memory[index], self._weights, self._past, self._beats, theirs,
            self._log,
        )  # fmt: skip
        process = self._context.Process(target=serve, args=args, name=f"ludus-worker-{index}", daemon=True)
        process.needs_main = plan.game.startswith("__main__:")
        process.start()
        theirs.close()
        return WorkerHandle(process, ours, beat_at=time.monotonic())

    def _counts(self) -> np.ndarray:
        """int64 [most, 3]: what every actor counts, see `Actor.beat`."""
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


def serve(
    plan: Plan, index: int, columns: list[Column], memory: list[Shared], weights: Weights, past: Past,
    beats: Shared, pipe: connection.Connection, log: str,
) -> None:  # fmt: skip
    """A worker process: fill the blocks it is asked for until told to stop or left alone."""
    if log:
        take_output(Path(log), f"worker-{index}")
    try:
        beat = beats.array(np.int64, (-1,)).reshape(-1, 3)[index]
        actor, table = make_actor(plan, index, past, beat)
        blocks = [Block(columns, plan.steps, plan.rows, shared.memory) for shared in memory]
        known = -1
        pipe.send(READY)
        while (asked := pipe.recv()) is not None:
            if asked == SNAPSHOT:
                pipe.send(actor.snapshot())
                continue
            if isinstance(asked, dict):
                actor.restore(asked)
                continue
            vector, version, progress = weights.read()
            if version != known:
                actor.load(vector, progress)
                known = version
            pipe.send((asked, version, actor.fill(blocks[asked])))
        table.close()
    except BaseException as error:
        pipe.send(Fault.of(error))
        raise


make = ProcessPool
