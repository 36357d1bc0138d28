"""RemoteTable: a table whose games live in a process of their own, for games that hold the GIL.

Central inference steps it from a thread. Turns lie in shared memory; only signs go across. If the
process dies or hangs, another takes its place, and the games that were in it count as cut off.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import numpy as np

from ludus import games, processes
from ludus.core import seeds
from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure, Usage
from ludus.core.game import Game
from ludus.core.report import Cancelled
from ludus.core.spec import Spec
from ludus.core.table import Finished, LastSeen, Table, Turn, refuse_infinite
from ludus.store.log import take_output
from ludus.training.faults import KILLED_TRIES, TRIES, Fault, patience_s
from ludus.training.pools import LEAVE_S
from ludus.training.weights import Shared

SPINS = 100
"""How often a side looks for the other's sign before it sleeps: waking it costs more than a short step."""
NAP_S = 0.05
"""Longest sleep without a look: a sign given at the moment of falling asleep is not lost."""
PATIENCE_S = 60.0
"""A process that answers nothing for so long counts as hung, unless its games are known to be as slow."""
PROVEN_STEPS = 128
"""Steps, about a block's, after which failures of earlier processes don't count any more."""
CALLER, SERVER = 0, 1
ALL, RESET, STOP = -1, -2, -3
TURN = ("obs", "legal", "seat", "reward", "ended", "truncated")
_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))


class Signal:
    """One end of a line between two processes: each counts its messages up where the other sees it."""

    def __init__(self, signs: np.ndarray, end: int, pipe: connection.Connection, other_ended: Any) -> None:
        """signs: int64 [4] in shared memory: messages of both ends, and which of them sleep."""
        self.signs, self.end, self.other = signs, end, 1 - end
        self.pipe, self.other_ended = pipe, other_ended
        self.heard = 0
        self.fault: Fault | None = None  # what the other end said last

    def tell(self) -> None:
        self.signs[self.end] += 1
        if self.signs[2 + self.other]:
            with suppress(OSError):  # if it has died, `listen` will see it
                self.pipe.send("")

    def listen(self, patience_s: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Wait for the other end's next message; False if it died, took too long or nobody wants it."""
        for _ in range(SPINS):
            if self.signs[self.other] > self.heard:
                break
            _give_way()
        else:
            self.signs[2 + self.end] = 1
            came = self._sleep(time.monotonic() + patience_s, cancelled)
            self.signs[2 + self.end] = 0
            if not came:
                return False
        self.heard += 1
        return True

    def _sleep(self, until: float, cancelled: Callable[[], bool]) -> bool:
        while self.signs[self.other] <= self.heard:
            awake = connection.wait([self.pipe, self.other_ended], NAP_S)
            if self.pipe in awake:
                try:
                    self.fault = self.pipe.recv() or self.fault
                except (EOFError, OSError):
                    return False
            elif self.other_ended in awake or time.monotonic() > until or cancelled():
                return False
        return True


class SharedTurn:
    """The shared memory of one table: signs, what is asked, and the turn that answers."""

    def __init__(self, shared: Shared, spec: Spec, rows: int) -> None:
        self.numbers = shared.array(np.int64, (8,))
        self.signs, self.asked = (
            self.numbers[:4],
            self.numbers[4:],
        )  # asked: rows, seed, finished, entries of last_obs
        self.block = Block(columns(spec), 1, rows, memoryview(shared.memory).cast("B")[64:])

    def __getitem__(self, name: str) -> np.ndarray:
        return self.block[name][0]

    def write(self, turn: Turn) -> None:
        for name in TURN:
            self[name][...] = getattr(turn, name)
        self.asked[3] = 0 if turn.last_obs is None else len(turn.last_obs.rows)
        for part, given in zip(self._last_obs(), turn.last_obs or (), strict=False):
            part[...] = given
        done = turn.finished
        self.asked[2] = 0 if done is None else len(done.rows)
        if done is not None:
            count = len(done.rows)
            self["done"][:count], self["score"][:count], self["stats"][:count] = done[:3]

    def read(self) -> Turn:
        count, turn = self.asked[2], {name: self[name] for name in TURN}
        done = Finished(self["done"][:count], self["score"][:count], self["stats"][:count]) if count else None
        last = LastSeen(*(part.copy() for part in self._last_obs())) if self.asked[3] else None
        return Turn(**turn, finished=done, last_obs=last)  # type: ignore[arg-type]

    def _last_obs(self) -> list[np.ndarray]:
        """The places of its parts, as many as there are entries."""
        parts = (self[name] for name in ("last_row", "last_seat", "last_obs"))
        return [part.reshape(-1, *part.shape[2:])[: self.asked[3]] for part in parts]


def columns(spec: Spec) -> list[Column]:
    number, flag = np.dtype(np.int64), np.dtype(bool)
    box = spec.box[0].shape if spec.box else ()
    return [
        Column("obs", spec.obs_shape, spec.obs_dtype),
        Column("last_obs", (spec.seats, *spec.obs_shape), spec.obs_dtype),
        Column("last_row", (spec.seats,), number),
        Column("last_seat", (spec.seats,), number),
        Column("legal", (spec.actions,), flag),
        Column("seat", (), np.dtype(np.int8)),
        Column("reward", (spec.seats,), np.dtype(np.float32)),
        Column("ended", (), flag),
        Column("truncated", (), flag),
        Column("done", (), number),  # which rows finished a game
        Column("score", (spec.seats,), np.dtype(np.float32)),
        Column("stats", (spec.seats, len(spec.stats)), np.dtype(np.float32)),
        Column("counters", (len(spec.counters),), np.dtype(np.float64)),  # in the first row
        Column("action", box, np.dtype(np.float32 if box else np.int32)),
        Column("moved", (), number),  # rows that move, if not all do
    ]


class RemoteTable(Table):
    finite = True  # its process looks

    def __init__(self, context: Any, game: Game, rows: int, log: str = "") -> None:
        """log: file for whatever the games print"""
        spec = game.spec
        self.spec, self.rows, self.replaced, self.reason = spec, rows, 0, ""
        self.replaced_at = 0.0
        self.cancelled: Callable[[], bool] = lambda: False
        self._unheard = False  # an answer that nobody waited for may still come
        self._slowest_s: float | None = None  # of the process's steps
        self._context, self._made_of = context, (game.name, rows, spec, game.switches, log)
        self._shared = Shared(context, 64 + block_bytes(columns(spec), 1, rows))
        self._shared_turn = SharedTurn(self._shared, spec, rows)
        self._failures, self._seed = 0, 0
        self._counted_before = np.zeros(len(spec.counters))  # by processes that were replaced
        self._spawn()

    @property
    def pid(self) -> int:
        return self._process.pid

    def reset(self, seed: int) -> Turn:
        self._seed = seed
        while not self._ask(RESET):
            self._replace()
        return self._shared_turn.read()

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        self._shared_turn["action"][: len(actions)] = actions
        if rows is not None:
            self._shared_turn["moved"][: len(rows)] = rows
        if self._ask(ALL if rows is None else len(rows)):
            self._steps += 1
            if self._steps >= PROVEN_STEPS:
                self._failures = 0
            return self._shared_turn.read()
        return self._cut_off()

    def counters(self) -> np.ndarray:
        return self._counted_before + self._shared_turn["counters"][0]

    def leave(self) -> None:
        """Tell the process to end; `close` waits for it."""
        self._shared_turn.asked[0] = STOP
        self._signal.tell()

    def close(self, patience_s: float = LEAVE_S) -> None:
        self.leave()
        self._end_process(patience_s)

    def _ask(self, rows: int) -> bool:
        if self._unheard:
            return False
        self._shared_turn.asked[0] = rows
        self._shared_turn.asked[1:2].view(np.uint64)[0] = self._seed
        self._signal.tell()
        begun = time.monotonic()
        if self._signal.listen(patience_s(PATIENCE_S, self.rows, self._slowest_s), self.cancelled):
            if rows != RESET:
                self._slowest_s = max(self._slowest_s or 0.0, time.monotonic() - begun)
            return True
        if self.cancelled():
            self._unheard = True
            raise Cancelled
        return False

    def _cut_off(self) -> Turn:
        """A new process has taken over; those of the old one are lost, and nobody knows what came next."""
        self._replace()
        turn = self.reset(seeds.derive(self._seed, "replaced", self.replaced))
        return turn._replace(reward=np.zeros_like(turn.reward), truncated=np.ones(self.rows, bool))

    def _spawn(self) -> None:
        self._shared_turn.numbers[:] = 0
        self._counted_before += self._shared_turn["counters"][0]
        self._shared_turn["counters"][:] = 0
        self._unheard, self._slowest_s, self._steps = False, None, 0
        pipe, theirs = self._context.Pipe()
        args = (*self._made_of, self._shared, theirs)
        self._process = self._context.Process(target=serve, args=args, name="ludus-table", daemon=True)
        self._process.needs_main = self._made_of[0].startswith("__main__:")
        self._process.start()
        theirs.close()
        self._signal = Signal(self._shared_turn.signs, CALLER, pipe, self._process.sentinel)

    def _replace(self) -> None:
        self._process.join(0.1)  # one that died leaves its exit code
        code = self._process.exitcode
        self._end_process()
        self._failures += 1
        fault = self._signal.fault
        said = fault.line if fault else "hung" if code is None else f"died (exit code {code})"
        if fault and fault.final:
            raise Usage(said) from RuntimeError(fault.traceback)
        if self._failures > (KILLED_TRIES if code == -9 and not fault else TRIES):
            cause = RuntimeError(fault.traceback) if fault else None
            raise Failure(f"a table's process failed {self._failures} times: {said}") from cause
        self.replaced, self.replaced_at = self.replaced + 1, time.monotonic()
        self.reason = f"a table's process {'failed: ' if fault else ''}{said}"
        self._spawn()

    def _end_process(self, patience_s: float = 0.0) -> None:
        processes.end(self._process, patience_s)
        with suppress(EOFError, OSError):
            while self._signal.pipe.poll():
                self._signal.fault = self._signal.pipe.recv() or self._signal.fault
        self._signal.pipe.close()


def serve(
    game: str, rows: int, spec: Spec, switches: dict[str, Any], log: str, shared: Shared, pipe: Any
) -> None:
    """A table's process: answer until told to stop or left alone."""
    parent = parent_process()
    assert parent is not None
    if log:
        take_output(Path(log), "table")
    shared_turn = SharedTurn(shared, spec, rows)
    signal = Signal(shared_turn.signs, SERVER, pipe, parent.sentinel)
    try:
        table = games.open(game, **switches).table(rows)
        while signal.listen(float("inf")) and shared_turn.asked[0] != STOP:
            turn = _answer(table, shared_turn)
            if not table.finite:
                refuse_infinite(turn, spec.game)
            shared_turn.write(turn)
            shared_turn["counters"][0] = table.counters()
            signal.tell()
        table.close()
    except BaseException as error:
        pipe.send(Fault.of(error))
        raise


def _answer(table: Table, shared_turn: SharedTurn) -> Turn:
    count = int(shared_turn.asked[0])
    if count == RESET:
        return table.reset(int(shared_turn.asked[1:2].view(np.uint64)[0]))
    if count == ALL:
        return table.step(shared_turn["action"])
    return table.step(shared_turn["action"][:count], shared_turn["moved"][:count])
