"""Asking another program: a GTP engine in a process of its own, and that engine as a player of Blokus.

Whatever an engine does not do as it should ends the match, with its name, the command and the reply: a move
that can't be read is never replaced by another.
"""

import contextlib
import queue
import shlex
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.games.blokus.gtp.pentobi import COLOURS, VARIANTS

PATIENCE_S = 300.0
"""For one reply. Pentobi's level 7 takes 1.4 s a move, higher ones more; Ludus may have to compile first."""
Move = tuple[int, str]
"""Seat, and what it placed."""


class Client:
    """A running engine. Close it, or use it in a `with`."""

    def __init__(self, command: list[str], patience_s: float = PATIENCE_S) -> None:
        self.name, self.patience_s = Path(command[0]).name, patience_s
        # Its stderr goes to a file: a pipe that nobody reads would block it.
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            self.said.close()
            raise Usage(f"can't start the engine `{shlex.join(command)}`: {error.strerror}") from None
        assert self.process.stdin is not None and self.process.stdout is not None
        self.hears, self.speaks = self.process.stdin, self.process.stdout
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, command: str) -> str:
        """What the engine replies, without the signs of the protocol."""
        try:
            self.hears.write(f"{command}\n")
            self.hears.flush()
        except OSError:
            raise self._death(command) from None
        status, *more = self._reply(command)
        text = "\n".join([status[1:].strip(), *more]).strip()
        if status[0] == "?":
            raise Failure(f"{self.name} refused `{command}`: {text}")
        return text

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.hears.write("quit\n")
            self.hears.close()
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()

    def _listen(self) -> None:
        with self.speaks as lines:
            for line in lines:
                self.lines.put(line.rstrip())
        self.lines.put(None)

    def _reply(self, command: str) -> list[str]:
        """Lines up to an empty one; empty ones before the reply don't count."""
        end, found = time.monotonic() + self.patience_s, list[str]()
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failure(
                    f"{self.name} did not answer `{command}` within {self.patience_s:g} s"
                ) from None
            if line is None:
                raise self._death(command)
            if line:
                if not found and line[0] not in "=?":  # don't wait for an end that may never come
                    raise Failure(f"{self.name} answered `{command}` with {line!r}, which is not GTP")
                found.append(line)
            elif found:
                return found

    def _death(self, command: str) -> Failure:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self.said.seek(0)
        last = self.said.read().decode(errors="replace").strip().splitlines()[-1:]
        return Failure(
            f"{self.name} ended at `{command}` with exit code {self.process.returncode}"
            + "".join(f": {words}" for words in last)
        )


class EnginePlayer:
    """An engine that knows the game so far, and is asked for its moves."""

    def __init__(self, rules: Any, client: Client) -> None:
        self.rules, self.client, self.colours = rules, client, COLOURS[rules.spec.seats]
        self.told: list[Move] = []
        client.ask(f"set_game {VARIANTS[rules.options.board]}")

    def choose(self, state: np.void, history: list[Move]) -> int | None:
        """Its placement in `state`, to which `history` led; None if it resigns."""
        self.tell(history)
        command = f"genmove {self.colours[state['turn']]}"
        reply = self.client.ask(command)
        if reply.lower() == "resign":
            return None
        try:
            action = self.rules.parse_action(state, reply)
        except Usage as problem:
            raise Failure(f"{self.client.name} answered `{command}` with {reply!r}: {problem}") from None
        self.told.append((int(state["turn"]), self.rules.action_text(state, action)))
        return action

    def tell(self, history: list[Move]) -> None:
        """What it has not been told yet; everything if it is in another game. Passes it finds by itself."""
        if history[: len(self.told)] != self.told:
            self.client.ask("clear_board")
            self.told = []
        for seat, move in history[len(self.told) :]:
            self.client.ask(f"play {self.colours[seat]} {move}")
        self.told = list(history)
