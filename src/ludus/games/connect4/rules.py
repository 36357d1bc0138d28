"""The rules of connect four."""

from typing import NamedTuple

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import njit
from ludus.core.rules import States, Streams
from ludus.core.spec import Part, Spec
from ludus.games.connect4.board import CELLS, COLUMNS, ONE, ROWS, STRIDE, dropped, has_four, is_open
from ludus.games.connect4.endgame import solve_rows

STATE = np.dtype(
    [
        ("discs", np.uint64, 2),  # of each seat; bit = column * STRIDE + row from the bottom
        ("moves", np.int8),
        ("winner", np.int8),  # 0 nobody yet, 1 first seat, 2 second seat
    ]
)
MARKS = ".XO"


class Symmetry(NamedTuple):
    """A way to turn a position into one that is worth the same: `new[i] = old[index[i]]`."""

    name: str
    actions: np.ndarray  # int32 [7], for masks and policies: an action is a column

    def turn_planes(self, planes: np.ndarray) -> np.ndarray:
        """Observations [N, 2, 6, 7] turned."""
        return planes[..., self.actions]


SYMMETRIES = (
    Symmetry("same", np.arange(COLUMNS, dtype=np.int32)),
    Symmetry("mirror", np.arange(COLUMNS, dtype=np.int32)[::-1].copy()),
)


@njit
def legal_rows(states, out):
    for i in range(len(states)):
        taken = states[i].discs[0] | states[i].discs[1]
        for column in range(COLUMNS):
            out[i, column] = is_open(taken, column)


@njit
def observe_rows(states, out):
    for i in range(len(states)):
        for plane in range(2):
            discs = states[i].discs[(states[i].moves + plane) % 2]
            for row in range(ROWS):
                for column in range(COLUMNS):
                    bit = np.uint64(column * STRIDE + ROWS - 1 - row)
                    out[i, plane, row, column] = discs >> bit & ONE


@njit
def play_rows(states, actions):
    for i in range(len(states)):
        state = states[i]
        mine = state.moves % 2
        state.discs[mine] |= dropped(state.discs[0] | state.discs[1], actions[i])
        state.moves += 1
        if has_four(state.discs[mine]):
            state.winner = mine + 1


class Connect4:
    spec = Spec(
        game="connect4",
        seats=2,
        actions=COLUMNS,
        parts=(Part("board", (2, ROWS, COLUMNS), kind="board"),),  # my discs, their discs; the top row first
        state=STATE,
        stats=("win", "draw", "moves"),
        chance=False,
    )
    symmetries = SYMMETRIES

    def blank(self, n: int) -> States:
        return np.zeros(n, STATE)

    def deal(self, states: States, rng: Streams) -> None:
        states[:] = np.zeros((), STATE)

    def seat(self, states: States) -> np.ndarray:
        return states["moves"] % 2

    def over(self, states: States) -> np.ndarray:
        return (states["winner"] > 0) | (states["moves"] == CELLS)

    def legal(self, states: States, out: np.ndarray) -> None:
        legal_rows(states, out)

    def observe(self, states: States, out: np.ndarray) -> None:
        observe_rows(states, out)

    def play(self, states: States, actions: np.ndarray, rng: Streams) -> None:
        play_rows(states, actions)

    def score(self, states: States, out: np.ndarray) -> None:
        first = (states["winner"] == 1).astype(np.float32) - (states["winner"] == 2)
        out[:, 0], out[:, 1] = first, -first

    def stats(self, states: States, out: np.ndarray) -> None:
        for seat in range(2):
            out[:, seat, 0] = states["winner"] == seat + 1
            out[:, seat, 1] = states["winner"] == 0
            out[:, seat, 2] = states["moves"]

    def redeal(self, states: States, rng: Streams) -> None:
        pass  # nothing is hidden

    def solve(self, states: States, most: int, out: np.ndarray) -> np.ndarray:
        """As `Solves` in core/rules.py."""
        found = np.zeros(len(states), bool)
        solve_rows(states, most, found, out)
        return found

    def text(self, state: np.void) -> str:
        bits = np.arange(COLUMNS) * STRIDE + np.arange(ROWS)[::-1, None]  # [6, 7], the top row first
        first, second = (int(discs) >> bits & 1 for discs in state["discs"])
        marks = first + 2 * second
        return "/".join("".join(MARKS[mark] for mark in row) for row in marks)

    def parse(self, text: str) -> States:
        marks = text.replace("/", "")
        columns = [marks[column::COLUMNS][::-1] for column in range(COLUMNS)]
        more = marks.count("X") - marks.count("O")
        whole = len(text) == CELLS + ROWS - 1 and len(marks) == CELLS and not set(marks) - set(MARKS)
        if not whole or more not in (0, 1) or any("." in column.rstrip(".") for column in columns):
            raise Usage(
                f"{text!r} is not a position: six rows of . X O from the top, with nothing in the air"
            )
        states = self.blank(1)
        for column, cells in enumerate(columns):
            for row, mark in enumerate(cells.rstrip(".")):
                states[0]["discs"][MARKS.index(mark) - 1] |= ONE << np.uint64(column * STRIDE + row)
        states[0]["moves"] = CELLS - marks.count(".")
        first, second = (has_four(discs) for discs in states[0]["discs"])
        states[0]["winner"] = 1 if first else 2 * second
        return states

    def action_text(self, state: np.void, action: int) -> str:
        return str(action + 1)

    def parse_action(self, state: np.void, text: str) -> int:
        if len(text) != 1 or text not in "1234567":
            raise Usage(f"{text!r} is not a column: 1 to 7")
        return int(text) - 1
