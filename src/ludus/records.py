"""Games as lines of text: `ludus play --record` and `ludus eval --record` write them, `ludus analyze --file`
and the web page read them.

A line is the command that deals the same game, then its moves, each after a bar; what comes after ` # ` says
how it ended:

    ludus play connect4 --seed 7 --seat 0 --against greedy | 4 | 4 | 3 # unfinished
"""

import shlex
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ludus import switches
from ludus.core.errors import Usage
from ludus.core.game import NativeGame
from ludus.core.rules import States

COMMAND = ["ludus", "play"]
BAR = " | "
MOST_ROWS = 100_000
"""Deals of one seed."""


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
    row: int = 0  # which deal of the seed

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
        if self.row:
            words += ["--row", str(self.row)]
        if self.switches:
            words += ["--set", *(f"{name}={value}" for name, value in self.switches.items())]
        return BAR.join([shlex.join(words), *self.moves]) + f" # {self.result}"


class Recorder:
    """Records of a match: equal deals side by side, once for each seat of the challenger."""

    def __init__(self, game: NativeGame, challenger: str, opponent: str, seed: int) -> None:
        self.game, self.seed, self.records = game, seed, list[Record]()
        self.challenger, self.opponent = Path(challenger).name, Path(opponent).name  # of runs, the folder
        self.seat, self.moves = 0, list[list[str]]()

    def begin(self, seat: int, games: int) -> None:
        self.seat, self.moves = seat, [[] for _ in range(games)]

    def add(self, rows: np.ndarray, states: States, actions: np.ndarray) -> None:
        """Moves in some of the games. rows: int64 [N]"""
        for row, state, action in zip(rows.tolist(), states, actions.tolist(), strict=True):
            self.moves[row].append(self.game.rules.action_text(state, action))

    def end(self, score: np.ndarray) -> None:
        """score: float32 [games, seats]"""
        told = asdict(self.game.options)
        for row, (moves, points) in enumerate(zip(self.moves, score.tolist(), strict=True)):
            names = [self.challenger if seat == self.seat else self.opponent for seat in range(len(points))]
            result = ", ".join(f"{name} {one:+g}" for name, one in zip(names, points, strict=True))
            self.records.append(
                Record(self.game.name, self.seed, self.seat, self.opponent, told, moves, result, row)
            )


def append(file: Path, *records: Record) -> None:
    try:
        with file.open("a") as out:
            out.writelines(record.line() + "\n" for record in records)
    except OSError as error:
        raise Usage(f"can't record the game in {file}: {error.strerror}") from None


def refuse_unwritable(file: Path) -> None:
    """Before the game, not after it."""
    append(file)


def is_record(text: str) -> bool:
    return any(line.startswith(shlex.join(COMMAND)) for line in text.splitlines())


def last(text: str, game: str, source: str) -> Record:
    """The last record of a game in a file."""
    lines = [line for line in text.splitlines() if line.startswith(shlex.join([*COMMAND, game]) + " ")]
    if not lines:
        raise Usage(f"{source} holds no game of {game}")
    return parse(lines[-1], source)


def parse(line: str, source: str, known: Collection[str] | None = None) -> Record:
    """One record. source: for errors. known: games that it may be of, where others must not be imported"""
    told, _, result = line.rpartition(" # ")
    head, *moves = (told or line).split(BAR)
    try:
        ludus, play, name, *flags = shlex.split(head)
        at = flags.index("--set") if "--set" in flags else len(flags)
        values = dict(zip(flags[:at:2], flags[1:at:2], strict=True))
        seed, seat, row = int(values["--seed"]), int(values["--seat"]), int(values.get("--row", 0))
        if [ludus, play] != COMMAND or not 0 <= row < MOST_ROWS:
            raise ValueError(head)
    except (ValueError, KeyError):
        raise Usage(
            f"{source} is not a record of a game as `ludus play --record` writes it: {head}"
        ) from None
    if known is not None and name not in known:
        raise Usage(f"{name} can't be shown here: choose from {', '.join(known)}")
    against, options = values.get("--against", ""), switches.parsed(name, flags[at + 1 :])
    return Record(name, seed, seat, against, options, moves, result, row)
