"""Ludus as a GTP engine: a line with a command in, its reply out. Knows one game and the bot that plays it.

A stuck colour is skipped, as Pentobi does it: its pass changes nothing and may be sent or not. So only
placements are moves, and `undo` takes back the last of them.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import ludus
from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.rules import Bot, States
from ludus.games.blokus.gtp.pentobi import COLOURS, VARIANTS, board_text, parse_colour, score_text
from ludus.games.blokus.text import PASS

if TYPE_CHECKING:
    from ludus.games.blokus import Game

COMMANDS: dict[str, tuple[str, ...]] = {
    "protocol_version": (),
    "name": (),
    "version": (),
    "known_command": ("COMMAND",),
    "list_commands": (),
    "quit": (),
    "set_game": ("GAME",),
    "clear_board": (),
    "play": ("COLOR", "MOVE"),
    "genmove": ("COLOR",),
    "reg_genmove": ("COLOR",),
    "all_legal": ("COLOR",),
    "final_score": (),
    "undo": (),
    "showboard": (),
    "cputime": (),  # Pentobi's twogtp asks for it before and after each game
}
"""What each command takes; the last word may hold spaces. `do_COMMAND` answers it."""


class Engine:
    def __init__(self, game: "Game", make_bot: Callable[["Game"], Bot], seed: int = 0) -> None:
        self.game, self.rules, self.make_bot = game, cast(Any, game.rules), make_bot
        self.bot, self.choice_rng = make_bot(game), seeds.rows(seed, 1, "gtp")
        self.has_quit = False
        self.do_clear_board()

    def answer(self, line: str) -> str | None:
        """The reply as it is sent, or None where there is no command."""
        words = line.partition("#")[0].split(None, 1)
        number = ""
        if words and words[0].isdigit():
            number, words = words[0], words[1:] and words[1].split(None, 1)
            if not words:
                return f"?{number} no command\n\n"
        if not words:
            return None
        try:
            return f"={number} {self._do(words[0], ' '.join(words[1:]))}\n\n"
        except Failure as failure:
            return f"?{number} {failure}\n\n"

    def _do(self, name: str, rest: str) -> str:
        if name not in COMMANDS:
            raise Usage(f"unknown command {name!r}")
        takes = COMMANDS[name]
        words = rest.split(None, len(takes) - 1) if takes else rest.split()
        if len(words) != len(takes):
            raise Usage(f"syntax error: write {' '.join([name, *takes])}")
        return getattr(self, f"do_{name}")(*(word.strip() for word in words)) or ""

    # ---- about the engine

    def do_protocol_version(self) -> str:
        return "2"

    def do_name(self) -> str:
        return "Ludus"

    def do_version(self) -> str:
        return ludus.__version__

    def do_known_command(self, name: str) -> str:
        return str(name in COMMANDS).lower()

    def do_list_commands(self) -> str:
        return "\n".join(COMMANDS)

    def do_quit(self) -> None:
        self.has_quit = True

    def do_cputime(self) -> str:
        return f"{time.process_time():.3f}"

    # ---- about the game

    def do_set_game(self, name: str) -> None:
        boards = {variant.lower(): board for board, variant in VARIANTS.items()}
        if name.lower() not in boards:
            raise Usage(f"unknown game {name!r}: choose from {', '.join(VARIANTS.values())}")
        board = boards[name.lower()]
        if board != self.rules.options.board:
            game = type(self.game)(self.game.name, {"board": board})
            self.bot, self.game, self.rules = self.make_bot(game), game, cast(Any, game.rules)
        self.do_clear_board()

    def do_clear_board(self) -> None:
        start = self.rules.blank(1)
        self.rules.deal(start, self.choice_rng)
        self.past: list[States] = [start]  # after each placement

    def do_play(self, colour: str, move: str) -> None:
        states = self._turn_of(colour)
        if states is None:
            if move.lower() != PASS:
                raise Usage(f"illegal move: {colour} has no placement left")
            return
        try:
            action = self.rules.parse_action(states[0], move)
        except Usage as problem:
            raise Usage(f"illegal move: {problem}") from None
        self.rules.play(states, np.array([action], np.int32), self.choice_rng)
        skip_stuck(self.rules, states)
        self.past.append(states)

    def do_genmove(self, colour: str) -> str:
        move = self.do_reg_genmove(colour)
        self.do_play(colour, move)
        return move

    def do_reg_genmove(self, colour: str) -> str:
        states = self._turn_of(colour)
        if states is None:
            return PASS
        action = int(self.bot.choose(states.copy(), self.choice_rng)[0])
        return self.rules.action_text(states[0], action)

    def do_all_legal(self, colour: str) -> str:
        """For any colour, whoever's turn it is; nothing for one that is stuck."""
        states = self.past[-1].copy()
        seat = parse_colour(colour, self.rules.spec.seats)
        if is_stuck(states, seat):
            return ""
        states["turn"] = seat
        legal = np.zeros((1, self.rules.spec.actions), bool)
        self.rules.legal(states, legal)
        return "\n".join(self.rules.action_text(states[0], int(one)) for one in np.flatnonzero(legal))

    def do_final_score(self) -> str:
        return score_text(self.past[-1][0])

    def do_undo(self) -> None:
        if len(self.past) == 1:
            raise Usage("cannot undo: nothing has been placed")
        self.past.pop()

    def do_showboard(self) -> str:
        return "\n" + board_text(self.rules, self.past[-1][0])

    def _turn_of(self, colour: str) -> States | None:
        """A copy of the game in which this colour is to place a piece, or None if it is stuck."""
        seats, states = self.rules.spec.seats, self.past[-1].copy()
        seat = parse_colour(colour, seats)
        if is_stuck(states, seat):
            return None
        turn = int(self.rules.seat(states)[0])
        if turn != seat:
            raise Usage(f"it is the turn of {COLOURS[seats][turn]}, not of {colour}")
        return states


def is_stuck(states: States, seat: int) -> bool:
    return bool(states["stuck"][0] >> seat & 1)


def skip_stuck(rules: Any, states: States) -> None:
    """Pass for seats without a placement, until one has its turn that has any. states: [1]"""
    while not rules.over(states)[0] and is_stuck(states, int(rules.seat(states)[0])):
        rules.play(states, np.array([rules.board.placements], np.int32), np.zeros((1, 2), np.uint64))
