"""Names of players: a bot, or the agent of a run, which weights of it, and how far it looks ahead."""

import re
from pathlib import Path
from typing import NamedTuple

from ludus.store.run import is_run

SUFFIX = re.compile(r"(?:@(?P<at>[^@+]*))?(?:\+(?P<think>[^@+]*))?")


class PlayerName(NamedTuple):
    name: str
    """Of the bot, or the run's folder."""
    is_run: bool
    at: str = ""
    """Which weights of the run: `best`, a milestone, or the newest if empty."""
    think: str = ""
    """How far it looks ahead, as `400`, or how long, as `100ms`."""


def parse_player(text: str) -> PlayerName:
    """`greedy`, `search+2000`, `FOLDER`, `FOLDER@best`, `FOLDER@3000000+100ms`.

    Folders may have + and @ in their names: the longest part that is a run's folder is one.
    """
    ends = [len(text), *(i for i in range(len(text) - 1, 0, -1) if text[i] in "@+")]
    for end in ends:
        suffix = SUFFIX.fullmatch(text, end)
        if suffix and is_run(Path(text[:end])):
            return PlayerName(text[:end], True, suffix["at"] or "", suffix["think"] or "")
    name, _, think = text.partition("+")
    return PlayerName(name, False, "", think)
