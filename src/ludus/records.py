"""Games as lines of text: `ludus play --record` writes them, `ludus analyze --file` reads them.

A line is the command that deals the same game, then its moves, each after a bar; what comes after ` # ` says
how it ended:

    ludus play connect4 --seed 7 --seat 0 --against greedy | 4 | 4 | 3 # unfinished
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ludus import switches
from ludus.core.errors import Usage

COMMAND = ["ludus", "play"]
BAR = " | "


@dataclass(frozen=True)
class Record:
    """One game from its deal on."""

    game: str
    seed: int
    seat: int  # of the person
    against: str
    switches: dict[str, Any] = field(default_factory=dict)  # all of them, defaults too
    moves: list[str] = field(default_factory=list)
    result: str = "unfinished"

    def line(self) -> str:
        words = [
            *COMMAND,
            self.game,
            "--seed",
            str(self.seed),
            "--seat",
            str(self.seat),
            "--against",
            self.against,
        ]
        if self.switches:
            words += ["--set", *(f"{name}={value}" for name, value in self.switches.items())]
        return BAR.join([shlex.join(words), *self.moves]) + f" # {self.result}"


def append(file: Path, record: Record) -> None:
    try:
        with file.open("a") as out:
            out.write(record.line() + "\n")
    except OSError as error:
        raise Usage(f"can't record the game in {file}: {error.strerror}") from None


def is_record(text: str) -> bool:
    return any(line.startswith(shlex.join(COMMAND)) for line in text.splitlines())


def last(text: str, game: str, source: str) -> Record:
    """The last record of a game in a file."""
    lines = [line for line in text.splitlines() if line.startswith(shlex.join([*COMMAND, game]) + " ")]
    if not lines:
        raise Usage(f"{source} holds no game of {game}")
    told, _, result = lines[-1].rpartition(" # ")
    head, *moves = (told or lines[-1]).split(BAR)
    try:
        name, *flags = shlex.split(head)[len(COMMAND) :]
        at = flags.index("--set") if "--set" in flags else len(flags)
        values = dict(zip(flags[:at:2], flags[1:at:2], strict=True))
        seed, seat = int(values["--seed"]), int(values["--seat"])
    except (ValueError, KeyError):
        raise Usage(
            f"{source} is not a record of a game as `ludus play --record` writes it: {head}"
        ) from None
    return Record(
        name, seed, seat, values.get("--against", ""), switches.parsed(name, flags[at + 1 :]), moves, result
    )
