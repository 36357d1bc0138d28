"""The lock of a run: held by the process that trains it, and freed by the system however that ends.

Looking whether it is held needs a shared lock for a moment, on a file that is only read. A training that
starts at that moment tries again, so it is not refused because somebody looked.
"""

import sys
import time
from pathlib import Path
from typing import IO, Any

from ludus.core.errors import Usage

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".lock"
PATIENCE_S, AGAIN_S = 0.5, 0.01


def hold(folder: Path) -> IO[Any]:
    """Held until it is closed. A Usage error if another process trains the run."""
    lock = (folder / LOCK).open("a")
    end = time.monotonic() + PATIENCE_S
    while not _take(lock, shared=False):
        if time.monotonic() > end:
            lock.close()
            raise Usage(f"{folder} is being trained by another process: choose another folder with --run")
        time.sleep(AGAIN_S)
    return lock


def is_running(folder: Path) -> bool:
    try:
        lock = (folder / LOCK).open()
    except OSError:  # nobody has ever trained it here, or we may not look
        return False
    with lock:
        return not _take(lock, shared=True)


def _take(lock: IO[Any], shared: bool) -> bool:
    """False if somebody else has it. Where the file system knows no locks, nobody has."""
    try:
        if sys.platform == "win32":
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return sys.platform != "win32"
    return True
