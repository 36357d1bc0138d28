"""Films: one game as pictures, and pictures as a GIF or MP4 file. Needs no display."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from ludus.core import extras
from ludus.core.errors import Failure, Usage
from ludus.core.table import Table, Turn

KINDS = (".gif", ".mp4")
GIF_FPS = 20.0
"""Pictures per second of a GIF, at most: many viewers slow down what has more."""
GIF_COLOURS = 64
MOST_DECISIONS = 20_000
"""Of a film: some games never end."""


class Chooser(Protocol):
    """An agent or a bot at a table."""

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray: ...


class Film(NamedTuple):
    fps: float
    pictures: Iterator[np.ndarray]
    """uint8 [H, W, 3] each, all of one size. The game is played while they are read."""


def one_game(table: Table, player: Chooser, seed: int) -> Iterator[Turn]:
    """Turns of row 0, from the start of its first game to the one after its last decision."""
    rows, turn = np.arange(table.rows), table.reset(seed)
    yield turn
    for _ in range(MOST_DECISIONS):
        turn = table.step(player.choose(rows, turn))
        yield turn
        if is_over(turn):
            return


def is_over(turn: Turn) -> bool:
    return bool(turn.ended[0] or turn.truncated[0])


def refuse_unknown_kind(file: Path) -> None:
    if file.suffix not in KINDS:
        raise Usage(f"{file}: a video ends with {' or '.join(KINDS)}")


def write_video(file: Path, film: Film) -> int:
    """Gives the number of pictures that the film has."""
    refuse_unknown_kind(file)
    counted = _Counted(film.pictures)
    first = next(counted, None)
    if first is None:
        raise Failure(f"{file}: the game has no pictures")
    file.parent.mkdir(parents=True, exist_ok=True)
    (_write_gif if file.suffix == ".gif" else _write_mp4)(file, first, counted, film.fps)
    return counted.count


class _Counted(Iterator[np.ndarray]):
    def __init__(self, pictures: Iterator[np.ndarray]) -> None:
        self.pictures, self.count = pictures, 0

    def __next__(self) -> np.ndarray:
        picture = next(self.pictures)
        self.count += 1
        return picture


def _write_mp4(file: Path, first: np.ndarray, rest: Iterable[np.ndarray], fps: float) -> None:
    try:
        import imageio_ffmpeg  # type: ignore[import-untyped]
    except ImportError as error:
        raise extras.missing("MP4 video", "imageio-ffmpeg") from error
    height, width = first.shape[:2]
    writer = imageio_ffmpeg.write_frames(str(file), (width, height), fps=fps, macro_block_size=2)
    writer.send(None)
    for picture in chain([first], rest):
        writer.send(np.ascontiguousarray(picture))
    writer.close()


def _write_gif(file: Path, first: np.ndarray, rest: Iterable[np.ndarray], fps: float) -> None:
    try:
        from PIL import Image
    except ImportError as error:
        raise extras.missing("GIF", "pillow") from error
    every = max(1, round(fps / GIF_FPS))
    shown = (picture for place, picture in enumerate(chain([first], rest)) if place % every == 0)
    images = (Image.fromarray(picture).quantize(GIF_COLOURS) for picture in shown)
    next(images).save(file, save_all=True, append_images=images, duration=round(1000 * every / fps), loop=0)
