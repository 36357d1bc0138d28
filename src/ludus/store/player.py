"""Names of players: a bot, the game's champion or a run's agent, its weights, and how far it looks ahead."""

import re
from pathlib import Path
from typing import NamedTuple

from ludus.core.errors import Usage
from ludus.core.game import CHAMPION
from ludus.store.run import is_run

SUFFIX = re.compile(r"(?:@(?P<at>[^@+]*))?(?:\+(?P<think>[^@+]*))?")


class PlayerName(NamedTuple):
    name: str
    """As people write it: of a bot, `champion`, or a run's folder."""
    run: Path | None = None
    """The folder, if it is the agent of a run."""
    at: str = ""
    """Which weights of the run: `best`, a milestone, or the newest if empty."""
    think: str = ""
    """How far it looks ahead, as `400`, or how long, as `100ms`."""


def parse_player(text: str, champion: Path | None = None) -> PlayerName:
    """`greedy`, `search+2000`, `champion`, `champion+64`, `FOLDER`, `FOLDER@best`, `FOLDER@3000000+100ms`.

    Folders may have + and @ in their names: the longest part that is a run's folder is one.
    champion: the run of the game's, if it has one
    """
    ends = [len(text), *(i for i in range(len(text) - 1, 0, -1) if text[i] in "@+")]
    for end in ends:
        name, suffix = text[:end], SUFFIX.fullmatch(text, end)
        run = Path(name) if is_run(Path(name)) else champion if name == CHAMPION else None
        if suffix and run:
            return PlayerName(name, run, suffix["at"] or "", suffix["think"] or "")
    name, _, think = text.partition("+")
    return PlayerName(name, think=think)


def full_name(name: str, at: str = "", think: str = "") -> str:
    """A player with its weights and how far it looks ahead, as `parse_player` reads it."""
    text = name + (f"@{at}" if at else "") + (f"+{think}" if think else "")
    if text != name and is_run(Path(text)):
        raise Usage(f"{text} is the folder of another run, so it can't mean {name}: rename one of them")
    return text
