"""`ludus games`: the list, one game in detail, or whether a game keeps the contract."""

import inspect
from types import ModuleType

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ludus import games, switches
from ludus.core import conformance
from ludus.core.errors import Failure, Usage

console = Console(highlight=False)


def show(name: str | None, check: bool) -> None:
    if name is None and check:
        raise Usage("which game? Write it as in ludus games --check tictactoe")
    if name is None:
        _list()
        return
    if ":" in name:
        raise Usage(f"{name} is not a native game: `ludus bench {name}` tries it out")
    if check:
        _check(name)
    else:
        _describe(name, games.find(name))


def _list() -> None:
    table = Table("game", "seats", "actions", "observation", "bots", "what it is", box=None, pad_edge=False)
    for name in games.names():
        spec = games.rules(name).spec
        shape = " x ".join(map(str, spec.obs_shape))
        bots = ", ".join(games.bot_names(name))
        table.add_row(
            f"[bold]{name}", str(spec.seats), str(spec.actions), f"{shape} {spec.obs_dtype}", bots,
            escape(_first_line(games.find(name))),
        )  # fmt: skip
    console.print(table)
    console.print("\n[bold]ludus games GAME[/] lists a game's rule switches. Commands also take:")
    console.print("  gym:ID          a Gymnasium environment, as in gym:CartPole-v1")
    console.print("  zoo:ID          a PettingZoo environment, as in zoo:classic/connect_four_v3")
    console.print("  module:Class    an environment of your own, of either kind")
    console.print("  module          a native game of your own, made like ludus/games/tictactoe")


def _describe(name: str, game: ModuleType) -> None:
    rules = games.rules(name)
    spec = rules.spec
    console.print(f"[bold]{name}[/]: {escape(_first_line(game))}")
    hidden = "part of the game is hidden" if spec.hidden else "everything is open"
    console.print(
        f"{spec.seats} seats, {spec.actions} actions, {hidden}; bots: {', '.join(games.bot_names(name))}"
    )
    found = switches.listed(game.Options)
    if not found:
        console.print("It has no rule switches.")
        return
    table = Table("switch", "choices", "default", "what it does", box=None, pad_edge=False)
    for switch in found:
        table.add_row(
            f"[bold]{switch.name}", escape(switch.choices), str(switch.default), escape(switch.help)
        )
    console.print("\nRule switches, set as in --set " + escape(f"{found[0].name}={found[0].default}") + ":")
    console.print(table)


def _check(name: str) -> None:
    rules = games.rules(name)
    games.warm_up(name, rules)
    broken = 0
    for promise, problem in conformance.check(rules):
        broken += problem is not None
        console.print("[green]ok     [/] " if problem is None else "[red]broken [/] ", end="")
        console.print(escape(promise if problem is None else f"{promise}: {problem}"))
    if broken:
        raise Failure(f"{name} breaks {broken} of {len(conformance.CHECKS)} promises")


def _first_line(game: ModuleType) -> str:
    return (inspect.getdoc(game) or "").partition("\n")[0]
