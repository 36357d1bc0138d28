"""Stacks of frames, put together from blocks that keep each frame once."""

import numpy as np
from torch import Tensor

from ludus.core.spec import Padding

BLANK = -1
"""Place of a plane from before its game."""


def places(ended: np.ndarray, stack: int, padding: Padding) -> np.ndarray:
    """Where the planes of each decision are among a block's frames, int64 [T, N, stack].

    The block has frames [stack - 1 + T, N, ...], counted through. ended: bool [T, N]. Planes of the first
    decision are as the game showed them; those of later ones must not reach back beyond a game's start.
    """
    steps, rows = ended.shape
    age = np.full((steps, rows), stack)  # decisions since the game's start, if that is in this block
    for t in range(1, steps):
        age[t] = np.where(ended[t - 1], 0, age[t - 1] + 1)
    back = np.arange(stack - 1, -1, -1)  # of each plane, in steps
    newest = np.arange(stack - 1, stack - 1 + steps)[:, None] * rows + np.arange(rows)  # [T, N]
    found = newest[..., None] - rows * np.minimum(back, age[..., None])
    return np.where(back <= age[..., None], found, BLANK) if padding == "blank" else found


def stacked(frames: Tensor, planes: Tensor) -> Tensor:
    """frames: [F, H, W]; planes: int64 [B, stack], places among them -> [B, stack, H, W]"""
    return frames.index_select(0, planes.flatten()).unflatten(0, planes.shape)
