"""Playing in the terminal: the loop that shows, asks and explains. How a game looks is the game's own affair:
its `make_screen()` gives that, and without one the text forms of the rules are shown.
"""

import dataclasses
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from ludus import match, records
from ludus.agent import use_all_cores
from ludus.analysis import ideas_of, start
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.rules import Bot, Remembers, Rules, States, Streams, begin, legal_actions
from ludus.core.screen import BoardScreen, Cell, Screen
from ludus.search import Thinker
from ludus.search.bot import bot_names, make_bot, warm_up
from ludus.store.player import full_name, parse_player
from ludus.ui import table_play
from ludus.ui.thoughts import heat_map, heat_of, idea_table
from ludus.ui.typed import typed

COMMANDS = "?  help    hint  what a strong player would do    undo  take back    q  quit"
HINTS = 3
ONLY = np.zeros(1, np.int64)
"""The number of the one game that is played."""


class Quit(Exception):
    """The person has had enough."""


class TakeBack(Exception):
    """The person wants the previous decision back."""


def play_in_terminal(
    game: str, seat: int, against: str | None, run: str | None, think: str, seed: int | None,
    record: str | None, words: list[str], row: int = 0,
) -> None:  # fmt: skip
    if against is not None and run is not None:
        raise Usage("choose --against or --run, not both")
    opened = table_play.opened(game, run, words)
    if opened.rules is None:
        if think:
            raise Usage(f"{game} can't be looked ahead in: leave out --think")
        return table_play.play_table(opened, seat, against, run, seed, record)
    native, names = opened.native("played here"), bot_names(opened)
    rules = native.rules
    if not 0 <= seat < rules.spec.seats:
        raise Usage(f"{game} has no seat {seat}: choose from 0 to {rules.spec.seats - 1}")
    name = full_name(run or against or names[-1], think=think)
    opponent = match.player(name, native)
    use_all_cores()
    adviser = opponent if isinstance(opponent, Thinker) else make_bot(native, names[-1])
    if record is not None:
        records.refuse_unwritable(Path(record))
    warm_up(native, {parse_player(name).name, names[-1]} & set(names))
    seed = secrets.randbelow(2**31) if seed is None else seed
    heading = f"{game}: you have seat {seat}, {name} the others; seed {seed}"
    session = Session(rules, native.make_screen(), seat, opponent, adviser, seed, heading, row)
    try:
        session.run()
    except Quit:
        session.console.print("You left the game.")
    finally:
        if record is not None and session.moves:
            told = dataclasses.asdict(native.options)
            result = session.result or "unfinished"
            records.append(
                Path(record), records.Record(game, seed, seat, name, told, session.moves, result, row)
            )
            session.console.print(f"recorded in {record}", style="dim", markup=False, soft_wrap=True)


@dataclass
class Moment:
    """The game before one of the person's decisions."""

    states: States
    rng: Streams
    choice_rng: Streams
    fresh: list[Cell]
    moves: int  # made so far
    answers: int  # of the opponent


class Session:
    """One person's game against a bot."""

    def __init__(
        self, rules: Rules, screen: Screen, seat: int, opponent: Bot, adviser: Bot, seed: int, heading: str,
        row: int = 0,
    ) -> None:  # fmt: skip
        self.rules, self.screen, self.seat = rules, screen, seat
        self.opponent, self.adviser, self.heading = opponent, adviser, heading
        self.choose = begin(opponent, 1)
        self.answered: list[tuple[States, Streams]] = []  # what the opponent decided on, so far
        self.console = Console(highlight=False, emoji=False)
        self.fresh: list[Cell] = []  # taken since the person last decided
        self.past: list[Moment] = []  # before each of the person's decisions so far
        self.moves: list[str] = []
        self.result = ""
        self.states, self.rng = start(rules, seed, row)
        self.choice_rng = seeds.rows(seed, row + 1, "choice")[row:]

    def run(self) -> None:
        self.console.print(f"[dim]{COMMANDS}[/]")
        while not self.rules.over(self.states)[0]:
            mover = int(self.rules.seat(self.states)[0])
            if mover != self.seat:
                self._play(self._answer(mover))
                continue
            now = self._moment()
            try:
                action = self._ask()
            except TakeBack:
                self._take_back()
                continue
            self.past.append(now)
            self.fresh = []
            self._play(action)
        self._tell_result()

    def _answer(self, mover: int) -> int:
        """The opponent's move, told."""
        self.answered.append((self.states.copy(), self.choice_rng.copy()))
        action = int(self.choose(ONLY, self.states.copy(), self.choice_rng)[0])
        self.console.print(f"[dim]seat {mover}:[/]", self.screen.told(self.states[0], action))
        if isinstance(self.screen, BoardScreen):
            self.fresh = self.fresh + self.screen.covers(self.states[0], action)
        return action

    def _play(self, action: int) -> None:
        before = self.states.copy()
        self.moves.append(self.rules.action_text(before[0], action))
        self.rules.play(self.states, np.array([action], np.int32), self.rng)
        settled = self.screen.settled(before[0], action, self.states[0], self.seat)
        if settled is None:
            return
        self.console.print(settled)
        if not self.rules.over(self.states)[0] and sys.stdin.isatty():
            if self._read("[dim]Enter goes on, q quits[/] > ") in ("q", "quit", "exit"):
                raise Quit

    def _moment(self) -> "Moment":
        streams = self.rng.copy(), self.choice_rng.copy()
        return Moment(self.states.copy(), *streams, self.fresh, len(self.moves), len(self.answered))

    def _take_back(self) -> None:
        moment = self.past.pop()
        self.answered = self.answered[: moment.answers]
        if isinstance(self.opponent, Remembers):  # only what it saw until then
            self.choose = begin(self.opponent, 1)
            for states, some_rng in self.answered:
                self.choose(ONLY, states, some_rng.copy())
        self.states, self.rng, self.choice_rng = moment.states, moment.rng, moment.choice_rng
        self.fresh, self.moves = moment.fresh, self.moves[: moment.moves]
        seen = " You have seen cards that were hidden then." if self.rules.spec.hidden else ""
        self.console.print(f"Taken back: this is your previous decision.{seen}")

    def _ask(self) -> int:
        """Ask until the answer is a legal action."""
        state = self.states[0]
        self.console.print(f"[dim]{escape(self.heading)}[/]", soft_wrap=True)
        if isinstance(self.screen, BoardScreen):
            self.console.print(self.screen.show(state, self.seat, self.fresh))
        else:
            self.console.print(self.screen.show(state, self.seat))
        while True:
            answer = self._read(f"[bold]{escape(self.screen.expects(state))}[/] > ")
            if answer in ("q", "quit", "exit"):
                raise Quit
            if answer == "undo" and self.past:
                raise TakeBack
            if answer in ("?", "help"):
                self.console.print(f"{escape(self.screen.help(state))}\n[dim]{COMMANDS}[/]")
            elif answer == "hint":
                self._hint(state)
            elif answer == "undo":
                self.console.print("[red]There is nothing to take back: this is your first decision.[/]")
            elif answer:
                chosen = self._understood(state, answer)
                if chosen is not None:
                    return chosen

    def _hint(self, state: np.void) -> None:
        states, some_rng = self.states.copy(), seeds.rows(0, 1, "hint")
        if not isinstance(self.adviser, Thinker):
            action = int(self.adviser.choose(states, some_rng)[0])
            return self.console.print(f"hint: {escape(self.rules.action_text(state, action))}")
        ideas = ideas_of(self.adviser.think(states, some_rng))
        self.console.print(f"hint: {escape(self.rules.action_text(state, ideas[0].action))}")
        self.console.print(idea_table(self.rules, state, ideas, HINTS))
        if isinstance(self.screen, BoardScreen):
            self.console.print(heat_map(self.screen, state, heat_of(self.screen, state, ideas)))

    def _understood(self, state: np.void, answer: str) -> int | None:
        try:
            action = self.rules.parse_action(state, answer)
        except Usage as problem:
            self.console.print(f"[red]{escape(str(problem))}[/]  (? helps)")
            return None
        if action in legal_actions(self.rules, state):
            return action
        self.console.print(
            f"[red]{escape(answer)} is not possible here.[/] {escape(self.screen.help(state))}"
        )
        return None

    def _read(self, prompt: str) -> str:
        return typed(self.console, prompt)

    def _tell_result(self) -> None:
        score = np.zeros((1, self.rules.spec.seats), np.float32)
        self.rules.score(self.states, score)
        self.result = ", ".join(
            f"{'you' if seat == self.seat else f'seat {seat}'} {points:+g}"
            for seat, points in enumerate(score[0].tolist())
        )
        self.console.print(f"[bold]Final score:[/] {self.result}")
