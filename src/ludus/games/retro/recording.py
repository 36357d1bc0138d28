"""Recordings: a game as .bk2 (its start state and the buttons of every frame), and as GIF or MP4.

A .bk2 takes a few kilobytes and replays exactly, also with stable-retro's own tools. Videos are made of it.
"""

import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.core.film import Chooser, Film, one_game, refuse_unknown_kind, write_video
from ludus.core.table import Table
from ludus.games.retro import catalog
from ludus.games.retro.emulator import Emulator
from ludus.games.retro.judges import make_judge

FPS = 60.0


class Recorder:
    """Writes one game of a row, whichever other rows the emulator plays in between."""

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        if self.file.suffix != ".bk2":
            raise Usage(f"{self.file}: recordings of console games end with .bk2")
        self._movie: Any = None

    @property
    def begun(self) -> bool:
        return self._movie is not None

    def begin(self, emulator: Emulator, state: bytes, idle_frames: int) -> None:
        """A game starts from a state, with some frames without buttons."""
        self.close()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._movie = emulator.new_movie(str(self.file), state)
        for _ in range(idle_frames):
            self.frame(emulator.nothing)

    def frame(self, mask: np.ndarray) -> None:
        """mask: uint8 [buttons]"""
        if not self.begun:
            return
        for button, pressed in enumerate(mask.tolist()):
            self._movie.set_key(button, bool(pressed), 0)
        self._movie.step()

    def close(self) -> None:
        if self._movie is not None:
            self._movie.close()
            self._movie = None


class Frame(NamedTuple):
    """A frame of a recorded game."""

    screen: np.ndarray  # uint8 [H, W, 3]
    reward: float
    done: bool
    emulator: Emulator


def replay(file: str | Path) -> Generator[Frame, None, None]:
    """Play a recording again, frame by frame. This process must not have another emulator."""
    movie = open_movie(file)
    emulator = Emulator(catalog.find(movie.get_game()))
    try:
        emulator.load(movie.get_state(), Path(file).name)
        judge = make_judge(emulator, 1)
        buttons = range(len(emulator.nothing))
        first = True
        while movie.step():
            emulator.hold(np.array([movie.get_key(button, 0) for button in buttons], np.uint8), 1)
            if first:
                judge.begin(0)  # the frame that stands for a reset pays nothing
                first = False
                reward, done = 0.0, False
            else:
                reward, done = judge.frame(0)
            yield Frame(emulator.screen(), reward, done, emulator)
    finally:
        emulator.close()


def open_movie(file: str | Path) -> Any:
    if not Path(file).is_file():
        raise Usage(f"there is no recording {file}")
    try:
        movie = catalog.library().Movie(str(file))
        if not movie.get_state():
            raise RuntimeError("no start state")
    except RuntimeError as error:
        raise Failure(f"{file} is no recording of a console game: {error}") from None
    return movie


def render(recording: str | Path, video: str | Path, scale: int = 1) -> int:
    """Make a GIF or MP4 of a recording. Gives the number of frames played."""
    refuse_unknown_kind(Path(video))
    pictures = (frame.screen.repeat(scale, 0).repeat(scale, 1) for frame in replay(recording))
    return write_video(Path(video), Film(FPS, pictures))


def film(table: Table, make_player: Callable[[Table], Chooser], seed: int) -> Film:
    """A game of the only row, recorded first and played again for its pictures."""
    folder = tempfile.TemporaryDirectory()
    file = str(Path(folder.name, "game.bk2"))
    try:
        table.record(0, file)
        for _ in one_game(table, make_player(table), seed):
            pass
    finally:
        table.close()

    def pictures() -> Iterator[np.ndarray]:
        with folder:
            for frame in replay(file):
                yield frame.screen

    return Film(FPS, pictures())
