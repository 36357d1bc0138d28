"""Playing a game that is known by its table only: by a person in the terminal, or by an agent on a server."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from ludus import games, switches
from ludus.agent import TableAgent
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.game import Game, Visit
from ludus.core.screen import TableScreen
from ludus.core.table import Table, Turn
from ludus.match import run_game
from ludus.search.bot import make_player
from ludus.store.policy import load_policy
from ludus.store.run import read_config, read_weights
from ludus.ui.typed import typed

COMMANDS = "?  help    resign or q  leave the game"
PASSWORD = "SHOWDOWN_PASSWORD"
"""The environment variable with an account's password: a flag would stay in the shell's history."""
ROW = np.zeros(1, np.int64)
Choose = Callable[[np.ndarray, Turn], np.ndarray]
"""Of an agent or bot: rows and turn to actions."""


def opened(game: str, run: str | None, words: list[str]) -> Game:
    if run is not None:
        return run_game(Path(run), game, words)
    return games.open(game, **switches.parsed(game, words))


def chooser(game: Game, table: Table, against: str | None, run: str | None, seed: int) -> tuple[str, Choose]:
    """The agent of a run, or a bot, and its name. Default: the strongest bot."""
    if against is not None and run is not None:
        raise Usage("choose --against or --run, not both")
    if run is None:
        name = against or game.bots[-1]
        if name not in game.bots:
            raise Usage(f"{game.name} has no bot {name!r}: choose from {', '.join(game.bots)}")
        return name, make_player(game, name, table, seeds.rows(seed, 1, "choice")).choose
    config = read_config(Path(run), game.name)
    policy = load_policy(game, config, read_weights(Path(run)), run)
    agent = TableAgent(table, config.net, policy)

    def choose(rows: np.ndarray, turn: Turn) -> np.ndarray:
        agent.forget(turn.ended | turn.truncated)
        return agent.choose(rows, turn)

    return run, choose


def play_table(
    game: Game, seat: int, against: str | None, run: str | None, seed: int | None, record: str | None
) -> None:
    """A person against an agent or bot."""
    if not 0 <= seat < game.spec.seats:
        raise Usage(f"{game.name} has no seat {seat}: choose from 0 to {game.spec.seats - 1}")
    seed = secrets.randbelow(2**31) if seed is None else seed
    screen = game.make_table_screen()
    try:
        file = Path(record or f"{game.name.replace(':', '-')}-{seed}{screen.ending}")
        name, choose = chooser(game, screen.table, against, run, seed)
        console = Console(highlight=False, emoji=False)
        console.print(
            f"[dim]{escape(game.name)}: you have seat {seat}, {escape(name)} the other; seed {seed}[/]"
        )
        TableSession(screen, seat, choose, console).play(seed)
        screen.save(file)
        console.print(f"saved as {file}", style="dim", markup=False, soft_wrap=True)
    finally:
        screen.table.close()


class TableSession:
    """One game of a person."""

    def __init__(self, screen: TableScreen, seat: int, choose: Choose, console: Console) -> None:
        self.screen, self.seat, self.choose, self.console = screen, seat, choose, console

    def play(self, seed: int) -> None:
        self.console.print(f"[dim]{COMMANDS}[/]")
        turn = self.screen.table.reset(seed)
        while True:
            if turn.seat[0] == self.seat:
                action = self._ask(turn)
                if action is None:
                    return self.console.print("You resigned.")
                actions = np.array([action], np.int32)
            else:
                actions = self.choose(ROW, turn)
            turn = self.screen.table.step(actions)
            if turn.finished is not None:
                self.console.print(self.screen.settled(self.seat))
                score = turn.finished.score[0, self.seat]
                told = "won" if score > 0 else "lost" if score < 0 else "neither won nor lost"
                return self.console.print(f"[bold]You {told}.[/]")

    def _ask(self, turn: Turn) -> int | None:
        """The person's action; None to leave."""
        self.console.print(self.screen.show(turn, self.seat))
        choices = self.screen.choices(turn, self.seat)
        actions = list(choices)
        for number, words in enumerate(choices.values(), 1):
            self.console.print(f"{number:3d}  {words}", markup=False)
        while True:
            answer = self._read(f"1 to {len(actions)} > ")
            if answer in ("q", "quit", "exit", "resign"):
                return None
            if answer in ("?", "help"):
                self.console.print(f"{self.screen.help()}\n{COMMANDS}", markup=False)
            elif answer.isdigit() and 1 <= int(answer) <= len(actions):
                return actions[int(answer) - 1]
            elif answer:
                self.console.print(
                    f"[red]{escape(answer)} is not one of the numbers 1 to {len(actions)}.[/] (? helps)"
                )

    def _read(self, prompt: str) -> str:
        return typed(self.console, prompt, markup=False)


def play_online(game: Game, against: str | None, run: str | None, visit: Visit, seed: int | None) -> None:
    """An agent or bot on a server, until it has played its games."""
    if visit.games < 1:
        raise Usage(f"--battles is {visit.games}: it must be 1 or more")
    if visit.opponent and visit.ladder:
        raise Usage("choose --challenge or --ladder, not both")
    seed = secrets.randbelow(2**31) if seed is None else seed
    console = Console(highlight=False, emoji=False, markup=False, soft_wrap=True)
    table = game.online_table(visit, console.print)
    try:
        _, choose = chooser(game, table, against, run, seed)
        turn = table.reset(seed)
        while turn.legal.any():  # none is left after the last game
            turn = table.step(choose(ROW, turn))
    finally:
        table.close()


def password() -> str:
    return os.environ.get(PASSWORD, "")
