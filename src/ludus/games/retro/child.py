"""ChildTable: a RetroTable in a process of its own.

For a process that has an emulator already, or that must outlive its emulator. Frames and save states lie in
memory that both processes share; messages are small. After every step the child writes a snapshot there, into
one of two places by turns, and the parent trusts the one that the last answer named. If the child dies or
hangs, another one goes on from there and repeats the step: nobody sees a difference.
"""

import mmap
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import connection, current_process
from pathlib import Path
from typing import Any

import numpy as np

from ludus import processes
from ludus.core import seeds
from ludus.core.block import Block, Column, block_bytes
from ludus.core.errors import Failure, Usage
from ludus.core.table import Table, Turn
from ludus.games.retro import buttons, catalog
from ludus.games.retro.frames import LENGTH
from ludus.games.retro.options import Options
from ludus.games.retro.table import RetroTable, make_spec

TRIES = 4
"""Children that may die one after the other at the same question."""
PATIENCE_S = 60.0
"""A child that answers nothing for so long counts as hung."""
START_S = 120.0
"""The same for a child that starts: it imports libraries first."""
LEAVE_S = 1.0
TURN = ("reward", "ended", "truncated")


class Died(Exception):
    """The child is gone."""


class Memory:
    """Arrays by name in a file that has no name any more once both sides have opened it."""

    def __init__(self, like: Mapping[str, tuple[tuple[int, ...], str]], path: str = "") -> None:
        """like: shape and dtype of each array. path: of the other side's file"""
        columns = [Column(name, shape, np.dtype(dtype)) for name, (shape, dtype) in like.items()]
        self.path = path
        if not path:
            shared = Path("/dev/shm")
            handle, self.path = tempfile.mkstemp(
                prefix="ludus-retro-", dir=shared if shared.is_dir() else None
            )
            os.truncate(handle, block_bytes(columns, 1, 1))
        else:
            handle = os.open(path, os.O_RDWR)
        block = Block(columns, 1, 1, mmap.mmap(handle, 0))
        os.close(handle)
        self.arrays = {name: block[name][0, 0] for name in like}

    def forget_name(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def snapshot(self, place: int) -> dict[str, np.ndarray]:
        """The arrays of one of the two snapshots."""
        prefix = f"{place}/"
        return {name[len(prefix) :]: array for name, array in self.arrays.items() if name.startswith(prefix)}


class ChildTable(Table):
    """Same games as a RetroTable of the same seed."""

    def __init__(self, game: str, rows: int, options: Options | None = None) -> None:
        self.options, self.rows, self.replaced = options or Options(), rows, 0
        self.integration = catalog.find(game, self.options.scenario)
        self.spec = make_spec(self.integration, self.options)
        self.buttons = buttons.names(self.integration, self.options.buttons)
        self._context = processes.make_context()
        self._legal = np.ones((rows, self.spec.actions), bool)
        self._seat = np.zeros(rows, np.int8)
        self._place: int | None = None  # of the snapshot to go on from
        self._seed = 0
        self._recordings: dict[int, str] = {}
        self._dead = False
        self._restoring: dict[str, np.ndarray] | None = None  # what the next child has not taken over yet
        try:
            self._spawn()
        except Died as error:
            raise Failure(f"{self.spec.game}: the emulator {error}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def reset(self, seed: int) -> Turn:
        self._seed, self._place, self._restoring = seed, None, None
        return self._ask_turn("reset", seed)

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        return self._ask_turn("step", actions, rows)

    def snapshot(self) -> dict[str, np.ndarray]:
        if self._restoring is not None:
            return self._restoring
        if self._place is None:
            return {}
        return {name: array.copy() for name, array in self._memory.snapshot(self._place).items()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> Turn:
        return self._ask_turn("restore", snapshot)

    def record(self, row: int, file: str) -> None:
        self._ask("record", row, str(Path(file).absolute()))
        self._recordings[row] = str(Path(file).absolute())

    def read(self, row: int, *variables: str) -> list[int]:
        return self._ask("read", row, *variables)

    def memory(self, row: int) -> np.ndarray:
        return self._ask("memory", row)

    def screen(self, row: int) -> np.ndarray:
        return self._ask("screen", row)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._pipe.send(("stop",))
        processes.end(self._process, LEAVE_S)
        self._pipe.close()

    def _ask_turn(self, *message: Any) -> Turn:
        answer = self._ask(*message)
        if isinstance(answer, Turn):  # of new games, because the old ones are lost
            return answer
        self._place, at, finished, last_obs = answer
        for row in finished.rows.tolist() if finished else ():
            self._recordings.pop(row, None)
        stack, arrays = self.options.frame_stack, self._memory.arrays
        obs = arrays["ring"][:, at - stack + 1 : at + 1]
        reward, ended, truncated = (arrays[name] for name in TURN)
        return Turn(obs, self._legal, self._seat, reward, ended, truncated, finished, last_obs)

    def _ask(self, *message: Any) -> Any:
        """The child's answer, from another child if this one dies."""
        for _ in range(TRIES):
            try:
                if self._dead and self._replace() and message[0] == "step":
                    return self._cut_off()
                return self._exchange(message)
            except Died as error:
                self._dead, reason = True, error
        raise Failure(f"{self.spec.game}: the emulator {reason}, {TRIES} times in a row")

    def _exchange(self, message: tuple[Any, ...]) -> Any:
        try:
            self._pipe.send(message)
        except OSError:
            raise Died(self._how_it_died()) from None
        return self._answer()

    def _answer(self, patience_s: float | None = None) -> Any:
        """patience_s: default PATIENCE_S"""
        connection.wait([self._pipe, self._process.sentinel], patience_s or PATIENCE_S)
        try:
            if not self._pipe.poll():
                raise Died(self._how_it_died())
            kind, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise Died(self._how_it_died()) from None
        if kind == "ok":
            return answer
        raise (Usage if kind == "usage" else Failure)(answer)

    def _how_it_died(self) -> str:
        self._process.join(0.2)
        code = self._process.exitcode
        return "hung" if code is None else f"died (exit code {code})"

    def _spawn(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        args = (self.integration.game, self.rows, self.options, os.environ.get(catalog.PLACES, ""), theirs)
        self._process = self._context.Process(target=serve, args=args, name="ludus-emulator")
        with _may_have_children():
            self._process.start()
        theirs.close()
        try:
            self._memory = Memory(self._answer(START_S))
            try:
                self._exchange((self._memory.path,))
            finally:
                self._memory.forget_name()
        except Failure:
            self.close()
            raise

    def _replace(self) -> bool:
        """A new child that goes on from the last snapshot. True if there is none though games have begun."""
        kept, begun = self.snapshot(), self._place is not None
        self._restoring = kept
        processes.end(self._process)
        self._pipe.close()
        self.replaced += 1
        self._spawn()
        if kept:
            self._place = self._exchange(("restore", kept))[0]
        for row, file in self._recordings.items():
            self._exchange(("record", row, file))
        self._dead, self._restoring = False, None
        return begun and not kept

    def _cut_off(self) -> Turn:
        turn = self.reset(seeds.derive(self._seed, "replaced", self.replaced))
        return turn._replace(truncated=np.ones(self.rows, bool))


@contextmanager
def _may_have_children() -> Iterator[None]:
    """multiprocessing forbids it to workers, for fear of orphans; those of `ludus.processes` never are."""
    config = current_process()._config  # type: ignore[attr-defined]
    before = config.get("daemon")
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = before


# ---- in the child


def serve(game: str, rows: int, options: Options, places: str, pipe: Any) -> None:
    """places: as the parent's environment has them now; a fork server's may be older"""
    os.environ[catalog.PLACES] = places
    try:
        table = RetroTable(game, rows, options)
        pipe.send(("ok", _layout(table)))
        memory = Memory(_layout(table), pipe.recv()[0])
        pipe.send(("ok", None))
        table.ring.move_to(memory.arrays["ring"])
        _answer_all(table, memory, pipe)
        table.close()
    except Failure as error:
        pipe.send(("usage" if isinstance(error, Usage) else "failure", str(error)))
    except EOFError:
        pass


def _layout(table: RetroTable) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shapes and dtypes: the frames, the turn and two snapshots."""
    size = table.options.size
    like: dict[str, tuple[tuple[int, ...], str]] = {"ring": ((table.rows, LENGTH, size, size), "u1")}
    like |= {
        "reward": ((table.rows, 1), "f4"),
        "ended": ((table.rows,), "?"),
        "truncated": ((table.rows,), "?"),
    }
    kept = table.room()
    return like | {f"{place}/{name}": (a.shape, a.dtype.str) for place in (0, 1) for name, a in kept.items()}


def _answer_all(table: RetroTable, memory: Memory, pipe: Any) -> None:
    place = 0
    while (message := pipe.recv())[0] != "stop":
        try:
            answer = getattr(table, message[0])(*message[1:])
        except Failure as error:  # of what was asked: the games are as they were
            pipe.send(("usage" if isinstance(error, Usage) else "failure", str(error)))
            continue
        if isinstance(answer, Turn):
            place = 1 - place
            for name in TURN:
                memory.arrays[name][...] = getattr(answer, name)
            if kept := memory.snapshot(place):
                table.save_into(kept)
            answer = (place, table.ring.at, answer.finished, answer.last_obs)
        pipe.send(("ok", answer))
