"""Pools: where the workers are. The loop does not know which pool it has.

`receive` gives finished blocks, `release` gives them back to be filled again, `publish` hands out new
weights. A worker that dies or hangs is replaced; its unfinished block is filled anew. Between `receive`
and `release` of all blocks the workers stand still, and `snapshot` tells where.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure
from ludus.store.log import take_output
from ludus.train.weights import Past, Shared, Weights
from ludus.train.worker import Plan, Report, make_worker

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung."""
LOOK_S = 0.25
"""How often a pool that waits looks around."""
LEAVE_S = 0.5
"""How long workers may take to leave: one in the middle of a block doesn't hear that it should."""
SNAPSHOT = "snapshot"
TRIES, KILLED_TRIES = 5, 25
"""Deaths of one worker without a finished block in between that end the run; more of them if it was killed
from outside, which is not its game's fault."""


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

    def release(self, deliveries: list[Delivery]) -> None: ...

    def publish(self, vector: np.ndarray, version: int, taught: bool = True) -> None:
        """New weights. taught: whether the teacher's choices are still wanted"""
        ...

    def health(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class LocalPool:
    """One worker in this process: everything under one debugger."""

    workers = 1

    def __init__(self, plan: Plan, columns: list[Column], vector: np.ndarray, past: Past) -> None:
        self.past = past
        self._worker = make_worker(plan, 0, past)
        self._block = Block(columns, plan.steps, plan.rows)
        self.publish(vector, 0)

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        report = self._worker.fill(self._block)
        return [Delivery(0, 0, self._block, self._version, report)]

    def release(self, deliveries: list[Delivery]) -> None:
        pass

    def snapshot(self) -> list[dict[str, Any]]:
        return [self._worker.snapshot()]

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        self._worker.restore(snapshots[0])

    def publish(self, vector: np.ndarray, version: int, taught: bool = True) -> None:
        self._worker.policy.load(vector)
        self._worker.taught = taught
        self._version = version

    def health(self) -> dict[str, Any]:
        return {"workers": 0, "replaced": 0, "pids": []}

    def close(self) -> None:
        self._worker.table.close()


@dataclass
class _Seat:
    """One worker process, as the pool sees it."""

    process: Any
    pipe: connection.Connection
    asked: list[int] = field(default_factory=list)  # slots it has yet to fill, in order
    beat: int = -1
    beat_at: float = 0.0
    deaths: int = 0
    last_words: str = ""


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
        self._beats = Shared(context, 8 * most)
        size = block_bytes(columns, plan.steps, plan.rows)
        self._memory = [[Shared(context, size) for _ in range(slots)] for _ in range(most)]
        self._blocks = [
            [Block(columns, plan.steps, plan.rows, memory.memory) for memory in row] for row in self._memory
        ]
        self._ready: list[Delivery] = []
        self._seats: dict[int, _Seat] = {}
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
            elif delivery.worker in self._seats and not self._seats[delivery.worker].asked:
                self._dismiss(delivery.worker)

    def resize(self, workers: int) -> None:
        """So many workers from now on; those too many leave once their blocks are learned from."""
        self.workers = workers
        for index in range(workers):
            if index not in self._seats:
                self._seats[index] = self._hire(index)
                if self._started:
                    self._ask_all(index)

    def snapshot(self) -> list[dict[str, Any]]:
        if self.slots > 1 or any(seat.asked for seat in self._seats.values()):
            return []
        found = []
        for index, seat in self._seats.items():
            try:
                seat.pipe.send(SNAPSHOT)
                found.append(seat.pipe.recv())
            except (EOFError, OSError):  # it has just died, and its games with it
                self._replace(index, "died")
                return []
        return found

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        for seat, snapshot in zip(self._seats.values(), snapshots, strict=False):
            seat.pipe.send(snapshot)

    def publish(self, vector: np.ndarray, version: int, taught: bool = True) -> None:
        self._weights.write(vector, version, taught)

    def beats(self) -> int:
        """Steps that all workers made so far; of those that search, leaves that they valued."""
        return int(self._beats.array(np.int64, (-1,)).sum())

    def health(self) -> dict[str, Any]:
        pids = [seat.process.pid for seat in self._seats.values()]
        return {"workers": self.workers, "replaced": self.replaced, "pids": pids, "reason": self._reason}

    def close(self) -> None:
        for seat in self._seats.values():
            with contextlib.suppress(OSError):
                seat.pipe.send(None)
        until = time.monotonic() + LEAVE_S  # for all together: each its own would add up
        for index in list(self._seats):
            self._dismiss(index, until - time.monotonic())

    def _start(self) -> None:
        """Ask for the first blocks; not before, so that workers can be restored."""
        if not self._started:
            self._started = True
            for index in self._seats:
                self._ask_all(index)

    def _dismiss(self, index: int, patience_s: float = LEAVE_S) -> None:
        seat = self._seats.pop(index)
        with contextlib.suppress(OSError):
            seat.pipe.send(None)
        seat.process.join(max(0.0, patience_s))
        if seat.process.is_alive():
            seat.process.kill()
            seat.process.join()
        seat.pipe.close()

    def _hire(self, index: int) -> _Seat:
        # A replacement must not replay what its predecessor played.
        plan = replace(self.plan, seed=self.plan.seed + self.replaced * 1_000_003)
        ours, theirs = self._context.Pipe()
        args = (
            plan, index, self._columns, self._memory[index], self._weights, self.past, self._beats, theirs,
            self._log,
        )  # fmt: skip
        process = self._context.Process(target=serve, args=args, name=f"ludus-worker-{index}", daemon=True)
        process.start()
        theirs.close()
        return _Seat(process, ours, beat_at=time.monotonic())

    def _ask_all(self, index: int) -> None:
        for slot in range(self.slots):
            self._ask(index, slot)

    def _ask(self, index: int, slot: int) -> None:
        seat = self._seats[index]
        seat.asked.append(slot)
        with contextlib.suppress(OSError):  # it has just died: `_listen` will see it and ask its successor
            seat.pipe.send(slot)

    def _listen(self) -> None:
        """Take what has come; replace the dead and the hung."""
        awake = connection.wait([seat.pipe for seat in self._seats.values()], timeout=LOOK_S)
        for index, seat in list(self._seats.items()):
            if seat.pipe not in awake:
                continue
            try:
                message = seat.pipe.recv()
            except (EOFError, OSError):
                self._replace(index, "died")
                continue
            if isinstance(message, str):
                seat.last_words = message
                continue
            slot, version, report = message
            seat.asked.remove(slot)
            seat.deaths = 0
            self._ready.append(Delivery(index, slot, self._blocks[index][slot], version, report))
        self._replace_hung()

    def _replace_hung(self) -> None:
        beats, now = self._beats.array(np.int64, (len(self._memory),)), time.monotonic()
        for index, seat in list(self._seats.items()):
            if beats[index] != seat.beat or not seat.asked:
                seat.beat, seat.beat_at = int(beats[index]), now
            elif now - seat.beat_at > PATIENCE_S:
                self._replace(index, f"made no decision for {PATIENCE_S:.0f} s")

    def _replace(self, index: int, why: str) -> None:
        old = self._seats[index]
        old.process.join(0.1)  # one that died leaves its reason
        killed = old.process.exitcode == -9
        old.process.kill()
        old.process.join()
        old.pipe.close()
        deaths = old.deaths + 1
        words = old.last_words.strip()
        if deaths > (KILLED_TRIES if killed else TRIES) or "ludus.core.errors" in words:
            last = words.splitlines()[-1] if words else "it said nothing"
            raise Failure(f"worker {index} {why} {deaths} times: {last}") from RuntimeError(words)
        self.replaced += 1
        self._reason = f"worker {index} {why}"
        seat = self._hire(index)
        seat.deaths, seat.last_words = deaths, words
        self._seats[index] = seat
        for slot in old.asked:
            self._ask(index, slot)


def serve(plan, index, columns, memory, weights, past, beats, pipe, log) -> None:
    """A worker process: fill the blocks it is asked for until told to stop or left alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_learner, daemon=True).start()
    if log:
        take_output(Path(log), f"worker-{index}")
    if "torch" in sys.modules:  # forked from the learner, with its threads
        sys.modules["torch"].set_num_threads(1)
    try:
        beat = beats.array(np.int64, (-1,))[index : index + 1]
        worker = make_worker(plan, index, past, beat)
        blocks = [Block(columns, plan.steps, plan.rows, shared.memory) for shared in memory]
        known = -1
        while (asked := pipe.recv()) is not None:
            if asked == SNAPSHOT:
                pipe.send(worker.snapshot())
                continue
            if isinstance(asked, dict):
                worker.restore(asked)
                continue
            vector, version, worker.taught = weights.read()
            if version != known:
                worker.policy.load(vector)
                known = version
            pipe.send((asked, version, worker.fill(blocks[asked])))
        worker.table.close()
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


def _end_with_learner() -> None:
    """A worker in the middle of a long block must not outlive the learner either."""
    learner = parent_process()
    if learner is not None:
        connection.wait([learner.sentinel])
        os._exit(0)


def make_context(start: str = "forkserver", torch_too: bool = False) -> Any:
    """How processes start: each with one thread for its matrix products, since there is one for each core.

    torch_too: they will all need it, so that it is there before they are
    """
    os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
    context = get_context(start)
    if start == "forkserver":
        modules = ["ludus.train.pool", "ludus.nets.plain", "ludus.train.preload"]
        context.set_forkserver_preload(
            [*modules, "ludus.algos.alphazero.evaluators"] if torch_too else modules
        )
    return context
