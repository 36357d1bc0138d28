"""Environments as films: what their `render()` shows, decision by decision."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.core.film import Chooser, Film, is_over, one_game
from ludus.core.game import Game
from ludus.core.table import Table

FPS = 30.0
"""Of environments that don't say how fast they are."""


def rendered(game: Game, make_player: Callable[[Table], Chooser], seed: int) -> Film:
    """game: opened with a `render_mode`"""
    try:
        table: Any = game.table(1)
    except Failure as error:
        if "render" not in str(error):
            raise
        raise Usage(f'{game.name} can\'t render pictures (render_mode="rgb_array"): {error}') from None
    env = table.envs[0]
    fps = (getattr(env, "metadata", None) or {}).get("render_fps") or FPS
    return Film(float(fps), _pictures(table, env, game.name, make_player, seed))


def _pictures(
    table: Table, env: Any, name: str, make_player: Callable[[Table], Chooser], seed: int
) -> Iterator[np.ndarray]:
    try:
        for turn in one_game(table, make_player(table), seed):
            if not is_over(turn):  # else the next game has begun
                yield _picture(env, name)
    finally:
        table.close()


def _picture(env: Any, name: str) -> np.ndarray:
    try:
        seen = np.asarray(env.render())
    except Exception as error:
        raise Usage(f"{name} can't render pictures: {type(error).__name__}: {error}") from error
    if seen.dtype != np.uint8 or seen.ndim != 3 or seen.shape[2] < 3:
        raise Usage(f"{name} can't render pictures: its render() gives no array uint8 [H, W, 3]")
    return seen[:, :, :3]
