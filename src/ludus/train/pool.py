"""Pools: where the workers are. The loop does not know which pool it has.

`receive` gives finished blocks, `release` gives them back to be filled again, `publish` hands out new
weights. A worker that dies or hangs is replaced; its unfinished block is filled anew.
"""

import contextlib
import os
import sys
import time
import traceback
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context, parent_process
from typing import Any, NamedTuple, Protocol

import numpy as np

from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure
from ludus.train.weights import Past, Shared, Weights
from ludus.train.worker import Plan, Report, Worker

PATIENCE_S = 60.0
"""A worker that makes no decision for so long counts as hung."""
TRIES = 5
"""Deaths of one worker without a finished block in between that end the run."""


class Delivery(NamedTuple):
    """A finished block."""

    worker: int
    slot: int
    block: Block
    version: int  # of the weights that played it
    report: Report


class Pool(Protocol):
    workers: int
    past: Past

    def receive(self) -> list[Delivery]: ...

    def release(self, deliveries: list[Delivery]) -> None: ...

    def publish(self, vector: np.ndarray, version: int) -> None: ...

    def health(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class LocalPool:
    """One worker in this process: everything under one debugger."""

    workers = 1

    def __init__(self, plan: Plan, columns: list[Column], vector: np.ndarray, past: Past) -> None:
        self.past = past
        self._worker = Worker(plan, 0, past)
        self._block = Block(columns, plan.steps, plan.rows)
        self.publish(vector, 0)

    def receive(self) -> list[Delivery]:
        report = self._worker.fill(self._block)
        return [Delivery(0, 0, self._block, self._version, report)]

    def release(self, deliveries: list[Delivery]) -> None:
        pass

    def publish(self, vector: np.ndarray, version: int) -> None:
        self._worker.policy.load(vector)
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
        *, slots: int, min_blocks: int,
    ) -> None:  # fmt: skip
        self.plan, self.workers, self.past = plan, plan.workers, past
        self.replaced, self.min_blocks, self.slots = 0, min_blocks, slots
        self._columns, self._context = columns, context
        self._weights = Weights(context, len(vector))
        self._weights.write(vector, 0)
        self._beats = Shared(context, 8 * self.workers)
        size = block_bytes(columns, plan.steps, plan.rows)
        self._memory = [[Shared(context, size) for _ in range(slots)] for _ in range(self.workers)]
        self._blocks = [
            [Block(columns, plan.steps, plan.rows, memory.memory) for memory in row] for row in self._memory
        ]
        self._ready: list[Delivery] = []
        self._seats = [self._hire(index, 0) for index in range(self.workers)]
        for index in range(self.workers):
            for slot in range(slots):
                self._ask(index, slot)

    def receive(self) -> list[Delivery]:
        """At least `min_blocks` finished blocks, in the order of their workers."""
        while len(self._ready) < self.min_blocks:
            self._listen()
        ready, self._ready = sorted(self._ready, key=lambda delivery: delivery.worker), []
        return ready

    def release(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._ask(delivery.worker, delivery.slot)

    def publish(self, vector: np.ndarray, version: int) -> None:
        self._weights.write(vector, version)

    def health(self) -> dict[str, Any]:
        pids = [seat.process.pid for seat in self._seats]
        return {"workers": self.workers, "replaced": self.replaced, "pids": pids}

    def close(self) -> None:
        for seat in self._seats:
            try:
                seat.pipe.send(None)
            except OSError:
                continue
        for seat in self._seats:
            seat.process.join(2)
            if seat.process.is_alive():
                seat.process.kill()
                seat.process.join()
            seat.pipe.close()

    def _hire(self, index: int, generation: int) -> _Seat:
        # A replacement must not replay what its predecessor played.
        plan = replace(self.plan, seed=self.plan.seed + generation * 1_000_003)
        ours, theirs = self._context.Pipe()
        args = (
            plan,
            index,
            self._columns,
            self._memory[index],
            self._weights,
            self.past,
            self._beats,
            theirs,
        )
        process = self._context.Process(target=serve, args=args, name=f"ludus-worker-{index}", daemon=True)
        process.start()
        theirs.close()
        return _Seat(process, ours, beat_at=time.monotonic())

    def _ask(self, index: int, slot: int) -> None:
        seat = self._seats[index]
        seat.asked.append(slot)
        with contextlib.suppress(OSError):  # it has just died: `_listen` will see it and ask its successor
            seat.pipe.send(slot)

    def _listen(self) -> None:
        """Take what has come; replace the dead and the hung."""
        awake = connection.wait([seat.pipe for seat in self._seats], timeout=1.0)
        for index, seat in enumerate(self._seats):
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
        beats, now = self._beats.array(np.int64, (self.workers,)), time.monotonic()
        for index, seat in enumerate(self._seats):
            if beats[index] != seat.beat or not seat.asked:
                seat.beat, seat.beat_at = int(beats[index]), now
            elif now - seat.beat_at > PATIENCE_S:
                self._replace(index, f"made no decision for {PATIENCE_S:.0f} s")

    def _replace(self, index: int, why: str) -> None:
        old = self._seats[index]
        old.process.kill()
        old.process.join()
        old.pipe.close()
        deaths = old.deaths + 1
        words = old.last_words.strip()
        if deaths > TRIES or "ludus.core.errors" in words:
            last = words.splitlines()[-1] if words else "it said nothing"
            raise Failure(f"worker {index} {why} {deaths} times: {last}") from RuntimeError(words)
        self.replaced += 1
        seat = self._hire(index, self.replaced)
        seat.deaths, seat.last_words = deaths, words
        self._seats[index] = seat
        for slot in old.asked:
            self._ask(index, slot)


def serve(plan, index, columns, memory, weights, past, beats, pipe) -> None:
    """A worker process: fill the blocks it is asked for until told to stop or left alone."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner decides when to stop
    if "torch" in sys.modules:  # forked from the learner, with its threads
        sys.modules["torch"].set_num_threads(1)
    try:
        beat = beats.array(np.int64, (plan.workers,))[index : index + 1]
        worker = Worker(plan, index, past, beat)
        blocks = [Block(columns, plan.steps, plan.rows, shared.memory) for shared in memory]
        known = -1
        while (slot := _asked(pipe)) is not None:
            vector, version = weights.read()
            if version != known:
                worker.policy.load(vector)
                known = version
            pipe.send((slot, version, worker.fill(blocks[slot])))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the learner is gone
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


def _asked(pipe: connection.Connection) -> int | None:
    """The next slot to fill. A forked worker holds the other end of its own pipe, which thus never closes."""
    learner = parent_process()
    if learner is not None and pipe not in connection.wait([pipe, learner.sentinel]):
        raise EOFError
    return pipe.recv()


def make_context(start: str = "forkserver") -> Any:
    """How processes start: each with one thread for its matrix products, since there is one for each core."""
    os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
    context = get_context(start)
    if start == "forkserver":
        context.set_forkserver_preload(["ludus.train.pool", "ludus.nets.plain", "numba"])
    return context
