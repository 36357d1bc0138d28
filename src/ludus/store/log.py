"""The log of a run: one file with everybody's lines, each with its time and who wrote it.

It is bounded: a full log becomes the old log, and a process that prints without end is cut short.
"""

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OLD_LOG = "log.1.txt"
MOST_BYTES = 10_000_000
"""Of the log; then it takes the place of the old log, and a new one begins."""
LINES_PER_S = 100
"""That one process may print into the log; others are left out and counted."""
LINE_BYTES = 4096
"""A longer line is broken into several."""


def write_line(file: Path, who: str, line: str) -> None:
    """One write in append mode, so that lines of several processes never mix."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):  # a full disk must not stop a training
        handle = _open(file)
        try:
            if os.fstat(handle).st_size >= MOST_BYTES:
                _rotate(file, handle)
                os.close(handle)
                handle = _open(file)
            os.write(handle, f"{stamp} {who}: {line}\n".encode(errors="replace"))
        finally:
            os.close(handle)


def _open(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def _rotate(file: Path, handle: int) -> None:
    """handle: the full log. Of several processes that find it full, one renames it."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), os.stat(file)):
            os.replace(file, file.with_name(OLD_LOG))


def take_output(file: Path, who: str) -> None:
    """Send all that this process prints to the log, whether by Python, by C or by its children."""
    read_end, write_end = os.pipe()
    for stream in (1, 2):
        os.dup2(write_end, stream)
    os.close(write_end)
    threading.Thread(target=_copy, args=(read_end, Output(file, who)), daemon=True).start()


def _copy(read_end: int, output: "Output") -> None:
    kept = b""  # the beginning of a line
    while chunk := os.read(read_end, 2**16):
        *lines, kept = re.split(rb"[\r\n]+", kept + chunk)
        if len(kept) > LINE_BYTES:
            lines, kept = [*lines, kept], b""
        for line in lines:
            for start in range(0, len(line), LINE_BYTES):
                output.add(line[start : start + LINE_BYTES])
    output.add(kept)


class Output:
    """Lines of one process on their way to the log: so many in a second, and the number of the others."""

    def __init__(self, file: Path, who: str) -> None:
        self.file, self.who = file, who
        self._lock = threading.Lock()
        self._second, self._written, self._left_out = 0.0, 0, 0

    def add(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if not text:
            return
        with self._lock:
            now = time.monotonic()
            if now - self._second >= 1:
                self._tell()
                self._second, self._written = now, 0
            if self._written < LINES_PER_S:
                self._written += 1
                write_line(self.file, self.who, text)
                return
            if not self._left_out:  # told even if nothing else is ever printed
                timer = threading.Timer(1.0, self._tell_later)
                timer.daemon = True
                timer.start()
            self._left_out += 1

    def _tell_later(self) -> None:
        with self._lock:
            self._tell()

    def _tell(self) -> None:
        if self._left_out:
            write_line(self.file, self.who, f"{self._left_out:,} lines left out")
            self._left_out = 0
