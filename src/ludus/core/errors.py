"""The two ways a command can fail, in the user's words. The CLI turns them into one line and an exit code."""


class Failure(Exception):
    """Something went wrong while doing what was asked (exit code 1)."""

    exit_code = 1


class Usage(Failure):
    """What was asked for can't be done as written (exit code 2)."""

    exit_code = 2
