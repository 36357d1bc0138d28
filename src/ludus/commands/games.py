"""`ludus games`: the list, one game in detail, or whether a game keeps the contract."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ludus import games, switches
from ludus.core import conformance
from ludus.core.errors import Failure, Usage
from ludus.core.game import CHAMPION, Game, NativeGame
from ludus.core.screen import PlainScreen
from ludus.search.bot import bot_names, player_names

console = Console(highlight=False, emoji=False)


def show(name: str | None, check: bool) -> None:
    if name is None and check:
        raise Usage("which game? Write it as in ludus games --check tictactoe")
    if name is None:
        _list()
        return
    game = games.open(name)
    if check:
        _check(game.native("checked"))
    else:
        _describe(game)


def _list() -> None:
    table = Table("game", "seats", "actions", "observation", "bots", "what it is", box=None, pad_edge=False)
    for name in games.names():
        game = games.open(name)
        try:
            spec, bots = game.spec, ", ".join(player_names(game))
        except Usage:  # it needs a library or program that not everybody has
            said = f"{game.description()} Not ready: `ludus doctor` says what it needs."
            table.add_row(f"[bold]{name}", "", "", "", "", escape(said))
            continue
        shape = ", ".join(f"{' x '.join(map(str, part.shape))} {part.dtype}" for part in spec.parts)
        table.add_row(
            f"[bold]{name}", str(spec.seats), str(spec.actions), shape, bots, escape(game.description())
        )
    console.print(table)
    console.print("\n[bold]ludus games GAME[/] lists a game's rule switches. Commands also take:")
    console.print("  gym:ID          a Gymnasium environment, as in gym:CartPole-v1")
    console.print("  zoo:ID          a PettingZoo environment, as in zoo:classic/connect_four_v3")
    console.print("  module:Class    an environment of your own, of either kind")
    console.print("  module          a native game of your own, made like ludus/games/tictactoe")


def _describe(game: Game) -> None:
    spec = game.spec
    console.print(f"[bold]{game.name}[/]: {escape(game.description())}")
    hidden = "part of the game is hidden" if spec.hidden else "everything is open"
    console.print(f"{spec.seats} seats, {spec.actions} actions, {hidden}; bots: {', '.join(bot_names(game))}")
    if game.champion:
        console.print(f"{CHAMPION}: a trained agent, named like a bot, as in --against {CHAMPION}")
    if game.engine is not None:
        console.print(f"also plays against {escape(game.engine.opponents)}")
    for part in spec.parts:
        shape = " x ".join(map(str, part.shape))
        console.print(f"observation {part.name}: {part.kind}, {shape} {part.dtype}")
    if game.options_type is None:
        console.print("Its switches are the arguments of its environment.")
        return
    found = switches.listed(game.options_type)
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


def _check(game: NativeGame) -> None:
    game.warm_up()
    broken = checked = 0
    nobody_sees_it = game.spec.hidden and isinstance(game.make_screen(), PlainScreen)
    view = None if nobody_sees_it else game.make_view()
    for promise, problem in conformance.check(game.rules, view):
        checked += 1
        broken += problem is not None
        console.print("[green]ok     [/] " if problem is None else "[red]broken [/] ", end="")
        console.print(escape(promise if problem is None else f"{promise}: {problem}"))
    if broken:
        raise Failure(f"{game.name} breaks {broken} of {checked} promises")
