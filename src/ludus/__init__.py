"""Ludus trains agents for games in parallel, and lets people watch and play them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ludus.core.adapters import GymEnv, Sb3VecEnv, ZooEnv
    from ludus.core.rules import Bot, Rules
    from ludus.core.table import Table

__version__ = "0.1.0"


def table(game: str, rows: int, **switches: Any) -> Table:
    """Rows of any game side by side: a native one, `gym:ID`, `zoo:ID` or `module:Class`."""
    from ludus import games

    return games.table(game, rows, **switches)


def gym_env(
    game: str,
    opponents: str | Bot = "random",
    seat: int | None = None,
    render_mode: str | None = None,
    **switches: Any,
) -> GymEnv:
    """A native game as a Gymnasium environment; bots play the other seats."""
    from ludus import games
    from ludus.core.adapters import GymEnv

    rules = games.rules(game, **switches)
    return GymEnv(rules, _bot(opponents, game, rules), seat, render_mode)


def zoo_env(game: str, render_mode: str | None = None, **switches: Any) -> ZooEnv:
    """A native game as a PettingZoo environment."""
    from ludus import games
    from ludus.core.adapters import ZooEnv

    return ZooEnv(games.rules(game, **switches), render_mode)


def sb3_env(game: str, rows: int, opponents: str | Bot = "random", **switches: Any) -> Sb3VecEnv:
    """Rows of a native game as a Stable-Baselines3 vector environment; bots play the other seats."""
    from ludus import games
    from ludus.core.adapters import Sb3VecEnv

    rules = games.rules(game, **switches)
    return Sb3VecEnv(rules, rows, _bot(opponents, game, rules))


def _bot(opponents: str | Bot, game: str, rules: Rules) -> Bot:
    from ludus import games

    return games.bot(opponents, game, rules) if isinstance(opponents, str) else opponents
