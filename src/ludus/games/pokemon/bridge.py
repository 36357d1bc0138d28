"""Bridge: Node processes that play battles, from Python's side. Knows processes and lines, no observations.

Every process gets one line per tick and answers each with one line, which the bytes of its observations
follow. It is used again for every battle, and replaced if it dies, hangs or says what nobody can read; the
battles it had are lost then.
"""

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
import weakref
from dataclasses import dataclass, field
from typing import IO, Any

import psutil

from ludus.core.errors import Failure, Usage
from ludus.games.pokemon import install

if os.name == "posix":
    import fcntl

PIPE_BYTES = 1 << 20
"""Two ticks fit into a pipe of this size, so neither side waits for the other to read."""
NODE_FLAGS = ("--max-semi-space-size=64", "--single-threaded-gc", "--v8-pool-size=1")
PATIENCE_S = 60.0
"""A process that answers nothing for so long counts as hung."""
LEAVE_S = 1.0
TRIES = 3
"""A process that is lost so often in a row before its first answer can't work here."""
Message = dict[str, Any]


class Lost(Failure):
    """A process that can't be used any more."""


@dataclass(frozen=True)
class Setup:
    """What all battles of a process share."""

    format: str = "gen9randombattle"
    max_turns: int = 300
    fast: bool = True
    """Whether to use the layer that makes the simulator faster (node/fast.js)."""
    lines: bool = False
    """Whether to send the protocol lines of every battle, for logs and replays."""
    teams: tuple[tuple[str, str], ...] = ()
    """Name and text of each team to draw from; empty: the format makes teams at random."""
    watching: bool = False
    """Whether the battles are played elsewhere, so that no teams are needed here."""


@dataclass
class Meters:
    """Sums over all processes, those that were replaced too."""

    processes: int = 0
    """Started."""
    lost: dict[str, int] = field(default_factory=dict)
    """Processes that were replaced, by reason."""
    starts: int = 0
    """Battles."""
    ticks: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    simulator_ms: float = 0.0
    """Of CPU, as the two below."""
    encoding_ms: float = 0.0
    """Reading the simulator's lines and writing observations, in Node."""
    serialisation_ms: float = 0.0
    """Reading and writing messages, in Node."""
    unavailable: int = 0
    """Choices that turned out to be impossible, as a switch of a Pokémon that is trapped unseen."""
    invalid: int = 0
    """Choices that should never have been offered."""
    defaults: int = 0
    """Decisions without any choice that we know of, made by the simulator."""

    def add(self, before: Message, now: Message) -> None:
        """now: what a process has counted since its start"""
        for name, ours in NAMES.items():
            setattr(self, ours, getattr(self, ours) + now[name] - before.get(name, 0))


NAMES = {
    "starts": "starts",
    "ticks": "ticks",
    "bytesIn": "bytes_in",
    "bytesOut": "bytes_out",
    "simulatorMs": "simulator_ms",
    "encodingMs": "encoding_ms",
    "serialisationMs": "serialisation_ms",
    "unavailable": "unavailable",
    "invalid": "invalid",
    "defaults": "defaults",
}


class Node:
    """One process."""

    def __init__(self, setup: Setup) -> None:
        self.heard, self.room = bytearray(), memoryview(bytearray(PIPE_BYTES))
        self.meters: Message = {}
        self.ticks_sent = self.ticks_heard = 0
        # Its stderr goes to a file: a pipe that nobody reads would block it.
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115
        speed = "fast" if setup.fast else "plain"
        program = str(install.NODE_FILES / "bridge.js")
        command = [install.find_node(), *NODE_FLAGS, program, str(install.showdown()), speed]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=0
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        _enlarge(self.stdin)
        _enlarge(self.stdout)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.stdout, selectors.EVENT_READ)
        self._end = weakref.finalize(self, _end, self.process, self.selector, self.stderr)
        self._write({
            "format": setup.format, "maxTurns": setup.max_turns, "lines": setup.lines,
            "watching": setup.watching, "teams": [list(team) for team in setup.teams] or None,
        })  # fmt: skip

    def hello(self) -> Message:
        """What it says about the format; a Usage error if it can't be played."""
        said = self._read(time.monotonic() + PATIENCE_S)
        if "problem" in said:
            raise Usage(f"pokemon: {said['problem']}")
        return said["ready"]

    def send(self, message: Message) -> None:
        """Ask for one tick."""
        self._write({"tick": self.ticks_sent, **message})
        self.ticks_sent += 1

    def receive(self, patience_s: float) -> Message:
        """The answer to the oldest tick that has none yet; its `decisions` are the bytes of observations."""
        if not self.ticks_heard:  # the first loads what the format needs
            patience_s = max(patience_s, PATIENCE_S)
        until = time.monotonic() + patience_s
        said = self._read(until)
        if said.get("tick") != self.ticks_heard:
            raise Lost("it answered a tick that it was not asked")
        self.ticks_heard += 1
        said["decisions"] = self._read_bytes(said["bytes"], until)
        return said

    def close(self) -> None:
        self._end()

    def _write(self, message: Message) -> None:
        try:
            self.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError:
            raise Lost(self._last_words()) from None

    def _read(self, until: float) -> Message:
        while (end := self.heard.find(b"\n")) < 0:
            self._hear(until)
        line = self.heard[:end]
        del self.heard[: end + 1]
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise Lost(f"it said what is not JSON: {bytes(line[:60])!r}")
        return said

    def _read_bytes(self, count: int, until: float) -> bytearray:
        while len(self.heard) < count:
            self._hear(until)
        found = self.heard[:count]
        del self.heard[:count]
        return found

    def _hear(self, until: float) -> None:
        """Wait for more."""
        if not self.selector.select(max(0.0, until - time.monotonic())):
            raise Lost("it did not answer in time")
        count = os.readv(self.stdout.fileno(), [self.room])
        if not count:
            raise Lost(self._last_words())
        self.heard += self.room[:count]

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LEAVE_S)
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").splitlines()
        errors = [line for line in lines if "Error" in line]
        return f"it ended with code {self.process.poll()}" + (f": {errors[-1]}" if errors else "")


def _enlarge(pipe: IO[bytes]) -> None:
    if os.name == "posix" and hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
        with contextlib.suppress(OSError):  # more than this user may have
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _end(process: subprocess.Popen, selector: selectors.BaseSelector, stderr: IO[bytes]) -> None:
    """A process leaves when its stdin is closed; one that is stuck does not."""
    selector.close()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(LEAVE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stderr.close()


class Pool:
    """Processes that play the same format."""

    def __init__(self, setup: Setup, processes: int, patience_s: float = PATIENCE_S) -> None:
        self.setup, self.patience_s = setup, patience_s
        self.meters = Meters()
        self.ready: Message = {}
        self._nodes: list[Node] = []
        self._lost_in_a_row = 0
        try:
            for _ in range(processes):
                self._nodes.append(self._start())
            for node in self._nodes:  # all load at once, then each says hello
                self.ready = node.hello()
        except Lost as lost:
            self.close()
            raise Failure(f"the Pokémon simulator does not start: {lost}") from None
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._nodes)

    def _start(self) -> Node:
        self.meters.processes += 1
        return Node(self.setup)

    def send(self, index: int, message: Message) -> None:
        """Ask a process for a tick. If it is lost, `receive` says so."""
        with contextlib.suppress(Lost):
            self._nodes[index].send(message)

    def receive(self, index: int) -> Message | None:
        """The answer to the oldest tick of a process. None: it was lost with all its battles and ticks, and
        another has taken its place."""
        node = self._nodes[index]
        try:
            said = node.receive(self.patience_s)
        except Lost as lost:
            self._replace(index, str(lost))
            return None
        self.meters.add(node.meters, said["meters"])
        node.meters = said["meters"]
        self._lost_in_a_row = 0
        return said

    def _replace(self, index: int, reason: str) -> None:
        self.meters.lost[reason] = self.meters.lost.get(reason, 0) + 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row > TRIES:
            raise Failure(f"the Pokémon simulator was lost {self._lost_in_a_row} times in a row: {reason}")
        old = self._nodes[index]
        old.process.kill()
        old.close()
        try:
            self._nodes[index] = self._start()
            self._nodes[index].hello()
        except Lost as lost:
            self._replace(index, str(lost))

    def pids(self) -> list[int]:
        return [node.process.pid for node in self._nodes]

    def cpu_s(self) -> float:
        """Processor time of the processes that run now."""
        total = 0.0
        for pid in self.pids():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system
        return total

    def close(self) -> None:
        for node in self._nodes:
            node.close()
        self._nodes.clear()
