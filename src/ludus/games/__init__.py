"""Finds games. A game is a folder here (or an importable module of the same shape): there is no list to edit.

The folder's `__init__` offers `Options` (the rule switches, a frozen dataclass), `make_rules(options)`
and `make_bots(rules)` (a dictionary of name -> function that makes the bot, strongest last); its
docstring's first line is the game's description. It may also offer `make_screen(rules)` (how people
see it, `ui/screen.py`), and for tables of results `unit(rules)` and `columns(stats)`.
"""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ludus.core.adapters import load
from ludus.core.errors import Usage
from ludus.core.rules import Bot, RandomBot, Rules
from ludus.core.table import RulesTable, Table

KINDS = "gym:ID, zoo:ID, module:Class of your own environment, or the module of your own game"


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def find(name: str) -> ModuleType:
    """The module of a native game, by its folder's name here or by its own import path."""
    if name in names():
        return importlib.import_module(f"{__name__}.{name}")
    found = load.imported(name)
    if found is None:
        raise Usage(f"unknown game {name!r}: choose from {', '.join(names())}; {KINDS}")
    for what, kind in (("make_rules", "function"), ("make_bots", "function"), ("Options", "dataclass")):
        if not hasattr(found, what):
            raise Usage(f"{name!r} is a module without a {kind} `{what}`, so it is not a game")
    return found


def imports_code(name: str) -> bool:
    """Whether opening this game imports a module that its name chooses.

    Such a name is code: it may come from the command line, but not from a file that somebody else made.
    """
    kind, _, rest = name.partition(":")
    if kind in ("gym", "zoo") and rest:
        return load.imports_code(kind, rest)
    return name not in names()


def rules(name: str, /, **switches: Any) -> Rules:
    """The rules of a native game; `switches` are the fields of its `Options`."""
    game = find(name)
    known = [field.name for field in dataclasses.fields(game.Options)]
    for switch in switches:
        if switch not in known:
            raise Usage(f"{name} has no switch {switch!r}: choose from {', '.join(known) or 'none'}")
    return game.make_rules(game.Options(**switches))


def table(name: str, rows: int, /, **switches: Any) -> Table:
    """A table of any game: native, `gym:ID`, `zoo:ID` or `module:Class`."""
    kind, _, rest = name.partition(":")
    if not rest:
        return RulesTable(rules(name, **switches), rows)
    from ludus.core import adapters

    if kind == "gym":
        return adapters.GymTable(rest, rows, **switches)
    if kind == "zoo":
        return adapters.ZooTable(rest, rows, **switches)
    return adapters.user_table(name, rows, **switches)


def bot_names(game: str) -> list[str]:
    game_rules = rules(game)
    return ["random", *find(game).make_bots(game_rules), *(["search"] if can_search(game_rules) else [])]


def can_search(game_rules: Rules) -> bool:
    """Whether the game has the bot `search`: knowing all is what makes it strong without a network."""
    return game_rules.spec.seats > 1 and not game_rules.spec.hidden


def bot(name: str, game: str, game_rules: Rules) -> Bot:
    """A bot by name, e.g. `bot("greedy", "ofc", rules("ofc"))`."""
    if name == "random":
        return RandomBot(game_rules)
    if name == "search" and can_search(game_rules):
        from ludus.search.bot import SearchBot

        return SearchBot(game_rules)
    offered = find(game).make_bots(game_rules)
    if name not in offered:
        raise Usage(f"{game} has no bot {name!r}: choose from {', '.join(bot_names(game))}")
    return offered[name]()


def warm_up(name: str, game_rules: Rules, bots: Iterable[str] = ()) -> None:
    """Compile what the rules and bots will need, and say so if it takes this version's first time."""
    from ludus.core import jit, seeds

    folder = Path(find(name).__file__ or "").resolve().parent
    table, spec = RulesTable(game_rules, 2), game_rules.spec
    with jit.announced(name, folder):
        table.reset(0)
        table.step(RandomBot(game_rules).choose(table.states, seeds.rows(0, 2)))
        game_rules.stats(table.states, np.zeros((2, spec.seats, len(spec.stats)), np.float32))
        game_rules.redeal(table.states.copy(), seeds.rows(0, 2))
    for bot_name in set(bots) - {"random"}:
        player = bot(bot_name, name, game_rules)
        with jit.announced(f"{name}'s bot {bot_name}", folder):
            player.choose(table.states.copy(), seeds.rows(0, 2))
