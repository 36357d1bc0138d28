"""Playing in the terminal: the loop that shows, asks and explains. How a game looks is the game's own affair:
its folder may offer `make_screen(rules)`, and without one the text forms of the rules are shown.
"""

import secrets
import sys

import numpy as np
from rich.console import Console
from rich.markup import escape

from ludus import games, match, switches
from ludus.analysis import ideas_of
from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.rules import Bot, Rules, begin, legal_actions
from ludus.search import Thinker
from ludus.ui.screen import BoardScreen, Cell, Screen, screen_of
from ludus.ui.thoughts import heat_map, heat_of, idea_table

COMMANDS = "?  help      hint  what a strong player would do      q  quit"
HINTS = 3


class Quit(Exception):
    """The person has had enough."""


def play_in_terminal(game: str, seat: int, against: str | None, seed: int | None, words: list[str]) -> None:
    if ":" in game:
        raise Usage(f"{game} can't be played here: play is for native games ({', '.join(games.names())})")
    rules = games.rules(game, **switches.parsed(game, words))
    if not 0 <= seat < rules.spec.seats:
        raise Usage(f"{game} has no seat {seat}: choose from 0 to {rules.spec.seats - 1}")
    names = games.bot_names(game)
    against = against or names[-1]
    opponent = match.player(against, game, rules)
    adviser = opponent if isinstance(opponent, Thinker) else games.bot(names[-1], game, rules)
    games.warm_up(game, rules, {against, names[-1]} & set(names))
    seed = secrets.randbelow(2**31) if seed is None else seed
    session = Session(rules, screen_of(game, rules), seat, opponent, adviser, seed)
    session.console.print(f"[bold]{game}[/]: you have seat {seat}, {against} the others; seed {seed}")
    session.console.print(f"[dim]{COMMANDS}[/]")
    try:
        session.run()
    except Quit:
        session.console.print("You left the game.")


class Session:
    """One person's game against a bot."""

    def __init__(
        self, rules: Rules, screen: Screen, seat: int, opponent: Bot, adviser: Bot, seed: int
    ) -> None:
        self.rules, self.screen, self.seat = rules, screen, seat
        self.adviser, self.choose = adviser, begin(opponent, 1)
        self.console = Console(highlight=False)
        self.fresh: list[Cell] = []  # taken since the person last decided
        self.states = rules.blank(1)
        self.rng, self.luck = seeds.rows(seed, 1, "deal"), seeds.rows(seed, 1, "choice")
        rules.deal(self.states, self.rng)

    def run(self) -> None:
        while not self.rules.over(self.states)[0]:
            mover = int(self.rules.seat(self.states)[0])
            if mover == self.seat:
                action, self.fresh = self._ask(), []
            else:
                action = int(self.choose(np.zeros(1, np.int64), self.states.copy(), self.luck)[0])
                self.console.print(f"[dim]seat {mover}:[/]", self.screen.told(self.states[0], action))
                if isinstance(self.screen, BoardScreen):
                    self.fresh += self.screen.covers(self.states[0], action)
            before = self.states.copy()
            self.rules.play(self.states, np.array([action], np.int32), self.rng)
            settled = self.screen.settled(before[0], action, self.states[0])
            if settled is not None:
                self.console.print(settled)
        self._tell_result()

    def _ask(self) -> int:
        """Ask until the answer is a legal action."""
        state = self.states[0]
        if isinstance(self.screen, BoardScreen):
            self.console.print(self.screen.show(state, self.seat, self.fresh))
        else:
            self.console.print(self.screen.show(state, self.seat))
        while True:
            answer = self._read(f"[bold]{escape(self.screen.expects(state))}[/] > ")
            if answer in ("q", "quit", "exit"):
                raise Quit
            if answer in ("?", "help"):
                self.console.print(self.screen.help(state) + f"\n[dim]{COMMANDS}[/]")
            elif answer == "hint":
                self._hint(state)
            elif answer:
                chosen = self._understood(state, answer)
                if chosen is not None:
                    return chosen

    def _hint(self, state: np.void) -> None:
        states, luck = self.states.copy(), seeds.rows(0, 1, "hint")
        if not isinstance(self.adviser, Thinker):
            action = int(self.adviser.choose(states, luck)[0])
            return self.console.print(f"hint: {escape(self.rules.action_text(state, action))}")
        ideas = ideas_of(self.adviser.think(states, luck))
        self.console.print(f"hint: {escape(self.rules.action_text(state, ideas[0].action))}")
        self.console.print(idea_table(self.rules, state, ideas, HINTS))
        if isinstance(self.screen, BoardScreen):
            self.console.print(heat_map(self.screen, state, heat_of(self.screen, state, ideas)))

    def _understood(self, state: np.void, answer: str) -> int | None:
        try:
            action = self.rules.parse_action(state, answer)
        except Usage as problem:
            self.console.print(f"[red]{escape(str(problem))}[/]")
            return None
        if action in legal_actions(self.rules, state):
            return action
        self.console.print(f"[red]{escape(answer)} is not possible here.[/] {self.screen.help(state)}")
        return None

    def _read(self, prompt: str) -> str:
        self.console.print(prompt, end="")
        try:
            answer = input().strip()
        except EOFError:
            self.console.print()
            raise Failure("input ended before the game was over (q quits)") from None
        if not sys.stdin.isatty():
            self.console.print(escape(answer))  # so that the output of piped moves reads like a game
        return answer

    def _tell_result(self) -> None:
        score = np.zeros((1, self.rules.spec.seats), np.float32)
        self.rules.score(self.states, score)
        said = ", ".join(
            f"{'you' if seat == self.seat else f'seat {seat}'} {points:+g}"
            for seat, points in enumerate(score[0].tolist())
        )
        self.console.print(f"[bold]Final score:[/] {said}")
