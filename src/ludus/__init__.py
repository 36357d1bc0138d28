"""Ludus trains agents for games in parallel, and lets people watch and play them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ludus.agent import Agent, load
    from ludus.api import evaluate, train
    from ludus.core.rules import Bot
    from ludus.core.table import Table
    from ludus.games.adapters import GymEnv, Sb3VecEnv, ZooEnv
    from ludus.games.adapters.registration import register_envs
    from ludus.store.reader import RunReader

__version__ = "0.1.0"
__all__ = [
    "Agent", "RunReader", "evaluate", "gym_env", "load", "register_envs", "sb3_env", "table", "train",
    "zoo_env",
]  # fmt: skip

HOMES = {
    "Agent": "agent",
    "RunReader": "store.reader",
    "load": "agent",
    "evaluate": "api",
    "train": "api",
    "register_envs": "games.adapters.registration",
}
"""Where to import what, once somebody asks for it: `import ludus` alone must stay fast."""


def __getattr__(name: str) -> Any:
    import importlib

    if name in HOMES:
        return getattr(importlib.import_module(f"ludus.{HOMES[name]}"), name)
    raise AttributeError(f"module 'ludus' has no attribute {name!r}")


def table(game: str, rows: int, **switches: Any) -> Table:
    """Rows of any game side by side: a native one, `gym:ID`, `zoo:ID` or `module:Class`."""
    from ludus import games

    return games.open(game, **switches).table(rows)


def gym_env(
    game: str,
    opponents: str | Bot = "random",
    seat: int | None = None,
    render_mode: str | None = None,
    **switches: Any,
) -> GymEnv:
    """A native game as a Gymnasium environment; bots play the other seats."""
    from ludus import games
    from ludus.games.adapters import GymEnv
    from ludus.search.bot import make_bot

    opened = games.open(game, **switches).native("played as an environment")
    bot = make_bot(opened, opponents) if isinstance(opponents, str) else opponents
    return GymEnv(opened.rules, bot, seat, render_mode)


def zoo_env(game: str, render_mode: str | None = None, **switches: Any) -> ZooEnv:
    """A native game as a PettingZoo environment."""
    from ludus import games
    from ludus.games.adapters import ZooEnv

    return ZooEnv(games.open(game, **switches).native("played as an environment").rules, render_mode)


def sb3_env(game: str, rows: int, opponents: str | Bot = "random", **switches: Any) -> Sb3VecEnv:
    """Rows of a native game as a Stable-Baselines3 vector environment; bots play the other seats."""
    from ludus import games
    from ludus.games.adapters import Sb3VecEnv
    from ludus.search.bot import make_bot

    opened = games.open(game, **switches).native("played as an environment")
    bot = make_bot(opened, opponents) if isinstance(opponents, str) else opponents
    return Sb3VecEnv(opened.rules, rows, bot)


if sys.modules.get("gymnasium"):  # imported before us, as people write it; else `register_envs()` does it
    from ludus.games.adapters.registration import register_envs

    register_envs()
