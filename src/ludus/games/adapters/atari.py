"""Atari games of ale-py as they are usually learned (Mnih et al. 2015). Knows Gymnasium's wrappers only."""

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.wrappers import AtariPreprocessing, ClipReward, FrameStackObservation

from ludus.core.errors import Usage


def make_atari(
    make: Callable[..., gymnasium.Env],
    /,
    *,
    preprocess: bool = True,
    frame_skip: int = 4,
    frame_stack: int = 4,
    screen_size: int = 84,
    noop_max: int = 30,
    terminal_on_life_loss: bool = False,
    clip_rewards: bool = False,
    **kwargs: Any,
) -> gymnasium.Env:
    """Every fourth frame, grey, 84x84, the last four of them, after up to 30 steps of doing nothing.

    make: makes the plain environment of `kwargs`; it is all there is without `preprocess`. Lost lives end an
    episode only if asked for: scores are then those of whole games (Machado et al. 2018).
    """
    try:
        import ale_py
        import cv2  # noqa: F401  (what AtariPreprocessing shrinks frames with)
    except ImportError as error:
        raise Usage(
            f"Atari games need {error.name}: pip install ale-py opencv-python-headless (extra `atari`)"
        ) from None
    gymnasium.register_envs(ale_py)
    if not preprocess:
        return make(**kwargs)
    env: gymnasium.Env = AtariPreprocessing(
        make(frameskip=1, **kwargs), noop_max, frame_skip, screen_size, terminal_on_life_loss
    )
    if clip_rewards:
        env = ClipReward(env, -1, 1)
    return FrameStackObservation(env, frame_stack)
