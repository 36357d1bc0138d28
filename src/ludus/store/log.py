"""The log of a run: one file with everybody's lines, each with its time and who wrote it."""

import os
import threading
import time
from pathlib import Path


def write_line(file: Path, who: str, line: str) -> None:
    """One write in append mode, so that lines of several processes never mix."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, f"{stamp} {who}: {line}\n".encode())
    except OSError:
        pass  # a full disk must not stop a training
    finally:
        os.close(handle)


def take_output(file: Path, who: str) -> None:
    """Send all that this process prints to the log, whether by Python, by C or by its children."""
    read_end, write_end = os.pipe()
    for stream in (1, 2):
        os.dup2(write_end, stream)
    os.close(write_end)

    def copy() -> None:
        with os.fdopen(read_end, errors="replace") as lines:
            for line in lines:
                write_line(file, who, line.rstrip())

    threading.Thread(target=copy, daemon=True).start()
