"""Trouble with files: what the system says, in the user's words, and what to do about it."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ludus.core.errors import Failure

NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS)


def reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def advice(error: OSError) -> str:
    if error.errno in NO_ROOM:
        return "free some space there"
    if error.errno in NO_ACCESS:
        return "choose a folder that you may write to"
    return "choose another folder"


def described(error: OSError) -> str:
    """One line about an error that nobody expected."""
    where = f"{error.filename}: " if error.filename else ""
    todo = f": {advice(error)}" if error.errno in (*NO_ROOM, *NO_ACCESS) else ""
    return f"{where}{reason(error)}{todo}"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Where a folder can't be written to, say which one and what to do."""
    try:
        yield
    except OSError as error:
        raise Failure(f"can't write to {place}: {reason(error)}: {advice(error)}") from error
