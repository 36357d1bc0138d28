"""A local Showdown server, for people and other libraries. It listens on 127.0.0.1 only."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from typing import IO

from ludus.core.errors import Failure, Usage
from ludus.games.pokemon import install

HOST = "127.0.0.1"
PORT = 8000
START_S = 60.0
LEAVE_S = 5.0


class Server:
    """Runs until it is closed."""

    def __init__(self, port: int = PORT) -> None:
        self.port = port
        _refuse_taken(port)
        program = install.showdown() / "pokemon-showdown"
        command = [install.find_node(), str(program), "start", "--skip-build", "--no-security", str(port)]
        self.output = tempfile.TemporaryFile()  # noqa: SIM115
        # A session of its own, because it starts processes itself and all must end together.
        self.process = subprocess.Popen(
            command, cwd=program.parent, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            start_new_session=True,
        )  # fmt: skip
        self._end = weakref.finalize(self, _end, self.process, self.output)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        return f"ws://{HOST}:{self.port}/showdown/websocket"

    def close(self) -> None:
        self._end()

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Failure(
                    f"the Showdown server ended with code {self.process.returncode}: {self._said()}"
                )
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1.0):
                return
            time.sleep(0.1)
        raise Failure(f"the Showdown server did not start within {START_S:.0f} s: {self._said()}")

    def _said(self) -> str:
        self.output.seek(0)
        lines = [line for line in self.output.read().decode(errors="replace").splitlines() if line.strip()]
        return next((line for line in lines if "Error" in line), lines[-1] if lines else "it said nothing")


def free_port() -> int:
    """One that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def addresses(text: str) -> tuple[str, ...]:
    """Servers as people list them: with commas between them, and perhaps a range of ports.

    `ws://127.0.0.1:8000-8001/showdown/websocket` is two servers; nothing is one of our own, `("",)`.
    """
    found = []
    for part in text.split(","):
        ports = re.search(r":(\d+)-(\d+)(?=/|$)", part)
        if ports is None:
            found.append(part.strip())
            continue
        first, last = int(ports[1]), int(ports[2])
        if not first <= last < 1 << 16:
            raise Usage(f"{part.strip()!r} has no range of ports, as in 8000-8001")
        found += [part.strip().replace(ports[0], f":{port}") for port in range(first, last + 1)]
    return tuple(found)


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise Usage(f"port {port} can't be used ({error.strerror}): choose another with --port") from None


def _end(process: subprocess.Popen, output: IO[bytes]) -> None:
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEAVE_S)
    output.close()
