"""What Pentobi calls boards, colours and results, and how it is started."""

import shutil
import sys
from typing import Any

import numpy as np

from ludus.core.errors import Usage
from ludus.games.blokus.gtp import window
from ludus.games.blokus.text import LETTERS, board_marks

VARIANTS = {"duo": "Blokus Duo", "classic": "Blokus"}
COLOURS = {2: "bw", 4: "1234"}
"""By the number of seats; a letter for each."""
ALSO = {2: (("black", "blue"), ("white", "green")), 4: (("blue",), ("yellow",), ("red",), ("green",))}
"""Other names that Pentobi knows them by."""
PROGRAM, WINDOW = "pentobi-gtp", "pentobi"
GAMES = "/usr/games"
"""Where Debian has the window, often not on the PATH."""
LEVELS = range(1, 10)


def command_line(level: str, board: str, seed: int, program: str = "") -> list[str]:
    """Pentobi as an opponent: without its opening book, so that games differ, and to the end of each game.

    program: its engine. Default: the one on the PATH, or else its window, which plays Duo
    """
    if level not in map(str, LEVELS):
        raise Usage(f"Pentobi has no level {level!r}: choose pentobi:{LEVELS[0]} to pentobi:{LEVELS[-1]}")
    if found := shutil.which(program or PROGRAM):
        options = ["--game", board, "--level", level, "--seed", str(seed), "--nobook", "--noresign"]
        return [found, "--quiet", *options]
    if board == "duo" and not program and (shown := find_window()):
        return [sys.executable, window.__file__, shown, "--level", level, "--seed", str(seed)]
    raise Usage(
        f"Pentobi's engine {program or PROGRAM!r} is not here: install Pentobi (apt install pentobi), whose "
        "window plays Duo too, or build the engine from https://github.com/enz/pentobi with cmake "
        f"-DPENTOBI_BUILD_GTP=ON -DPENTOBI_BUILD_GUI=OFF, then put {PROGRAM} on the PATH or name it with "
        "--engine PATH"
    )


def find_window() -> str | None:
    return shutil.which(WINDOW) or shutil.which(WINDOW, path=GAMES)


def parse_colour(word: str, seats: int) -> int:
    """The seat of a colour."""
    for seat, names in enumerate(ALSO[seats]):
        if word.lower() in (COLOURS[seats][seat], *names):
            return seat
    raise Usage(f"unknown colour {word!r}: choose from {', '.join(COLOURS[seats])}")


def score_text(state: np.void) -> str:
    """`B+5`, `W+3` or `0` in Duo, everybody's points in Classic."""
    points = state["points"].tolist()
    if len(points) > 2:
        return " ".join(map(str, points))
    ahead = points[0] - points[1]
    return f"{'B' if ahead > 0 else 'W'}+{abs(ahead)}" if ahead else "0"


def board_text(rules: Any, state: np.void) -> str:
    side, marks = rules.board.side, [*rules.layout.marks, "."]
    columns = "   " + " ".join(LETTERS[:side].upper())
    rows = [
        f"{side - row:2} {' '.join(marks[seat] for seat in seats)}"
        for row, seats in enumerate(board_marks(rules, state))
    ]
    return "\n".join([columns, *rows, columns])
