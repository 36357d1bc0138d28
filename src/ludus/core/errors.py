"""How a command can end before its time, in the user's words: for the CLI, one line and an exit code."""


class Failure(Exception):
    """Something went wrong while doing what was asked (exit code 1)."""

    exit_code = 1


class Stopped(Failure):
    """Somebody asked it to stop, and it saved what it had (exit code 130)."""

    exit_code = 130


class Usage(Failure):
    """What was asked for can't be done as written (exit code 2)."""

    exit_code = 2
