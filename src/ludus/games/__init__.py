"""Finds and opens games. A game is a folder here (or an importable module of the same shape): there is no
list to edit. The folder's `__init__` has a class `Game`, of which `tictactoe` is the smallest example.

`open` decides what kind of game a name means; nobody else asks.
"""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

from ludus.core.errors import Usage
from ludus.core.game import Game

KINDS = "gym:ID, zoo:ID, module:Class of your own environment, or the module of your own game"
NOT_GAMES = ("adapters",)
VARIANT = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""What may stand behind the colon of a game that a browser names: neither a path nor a module."""


def names() -> list[str]:
    """Of the games that come with Ludus."""
    found = (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
    return sorted(set(found) - set(NOT_GAMES))


def native_names() -> list[str]:
    """Of those that have Rules."""
    return [name for name in names() if (folder(name) / "rules.py").exists()]


def page_names() -> list[str]:
    """Of those that a browser can play."""
    return [name for name in names() if find(name).page != "none"]


def has_page(name: str) -> bool:
    """Whether a browser can play it. Imports nothing that the name chooses."""
    kind, colon, variant = name.partition(":")
    if kind not in page_names():
        return False
    return not colon or (find(kind).page != "rules" and VARIANT.fullmatch(variant) is not None)


def folder(name: str) -> Path:
    """Of a game that comes with Ludus."""
    return Path(__path__[0], name)


def open(name: str, /, **switches: Any) -> Game:
    """Everything about a game: `open("ofc", seats=2)`, `open("gym:CartPole-v1")`, `open("my_env:MyEnv")`."""
    return find(name)(name, switches)


def find(name: str) -> Any:
    """The class of a game: of a folder here, of environments, or of a module of one's own."""
    kind, _, rest = name.partition(":")
    if kind in names():
        return importlib.import_module(f"{__name__}.{kind}").Game
    if rest:
        from ludus.games.adapters.game import EnvGame

        return EnvGame
    from ludus.games.adapters import load

    found = load.imported(name)
    if found is None:
        raise Usage(f"unknown game {name!r}: choose from {', '.join(names())}; {KINDS}")
    if not (isinstance(getattr(found, "Game", None), type) and issubclass(found.Game, Game)):
        raise Usage(f"{name!r} is a module without a class `Game` of ludus.core.game, so it is not a game")
    return found.Game


def is_name(text: str) -> bool:
    """Whether a text is written as the name of a game, whatever there is on disk."""
    return ":" in text or text in names()


def imports_code(name: str) -> bool:
    """Whether opening this game imports a module that its name chooses.

    Such a name is code: it may come from the command line, but not from a file that somebody else made.
    """
    kind, _, rest = name.partition(":")
    if kind in names():
        return False
    if kind in ("gym", "zoo") and rest:
        from ludus.games.adapters import load

        return load.imports_code(kind, rest)
    return True
