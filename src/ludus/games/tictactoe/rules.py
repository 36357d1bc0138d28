"""The rules of tic-tac-toe. Scalar helpers hold them; short loops run them over many games.

Loops are module-level functions because numba never caches functions built inside functions.
"""

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import njit
from ludus.core.rules import States, Streams
from ludus.core.spec import Part, Spec

STATE = np.dtype(
    [
        ("cells", np.uint8, 9),  # 0 empty, 1 first seat, 2 second seat; row by row
        ("moves", np.int8),
        ("winner", np.int8),  # 0 nobody yet, 1 first seat, 2 second seat
    ]
)
LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
MARKS = ".XO"


@njit
def has_line(cells, mark):
    for line in LINES:
        if cells[line[0]] == mark and cells[line[1]] == mark and cells[line[2]] == mark:
            return True
    return False


@njit
def legal_rows(states, out):
    for i in range(len(states)):
        for cell in range(9):
            out[i, cell] = states[i].cells[cell] == 0


@njit
def observe_rows(states, out):
    for i in range(len(states)):
        mine = states[i].moves % 2 + 1
        for cell in range(9):
            mark = states[i].cells[cell]
            out[i, 0, cell // 3, cell % 3] = mark == mine
            out[i, 1, cell // 3, cell % 3] = mark == 3 - mine


@njit
def play_rows(states, actions):
    for i in range(len(states)):
        state = states[i]
        mark = state.moves % 2 + 1
        state.cells[actions[i]] = mark
        state.moves += 1
        if has_line(state.cells, mark):
            state.winner = mark


class TicTacToe:
    spec = Spec(
        game="tictactoe",
        seats=2,
        actions=9,
        parts=(Part("board", (2, 3, 3), kind="board"),),  # my marks, their marks
        state=STATE,
        stats=("win", "draw", "moves"),
        chance=False,
    )

    def blank(self, n: int) -> States:
        return np.zeros(n, STATE)

    def deal(self, states: States, rng: Streams) -> None:
        states[:] = np.zeros((), STATE)

    def seat(self, states: States) -> np.ndarray:
        return states["moves"] % 2

    def over(self, states: States) -> np.ndarray:
        return (states["winner"] > 0) | (states["moves"] == 9)

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

    def text(self, state: np.void) -> str:
        marks = "".join(MARKS[mark] for mark in state["cells"])
        return "/".join((marks[:3], marks[3:6], marks[6:]))

    def parse(self, text: str) -> States:
        marks = text.replace("/", "")
        more = marks.count("X") - marks.count("O")
        if len(text) != 11 or len(marks) != 9 or set(marks) - set(MARKS) or more not in (0, 1):
            raise Usage(f"{text!r} is not a position: three rows of . X O, as in X../.O./...")
        states = self.blank(1)
        states[0]["cells"] = [MARKS.index(mark) for mark in marks]
        states[0]["moves"] = 9 - marks.count(".")
        states[0]["winner"] = 1 if has_line(states[0]["cells"], 1) else 2 * has_line(states[0]["cells"], 2)
        return states

    def action_text(self, state: np.void, action: int) -> str:
        return "abc"[action % 3] + "321"[action // 3]

    def parse_action(self, state: np.void, text: str) -> int:
        if len(text) != 2 or text[0] not in "abc" or text[1] not in "123":
            raise Usage(f"{text!r} is not a cell: a column a-c and a row 1-3, as in b2")
        return "abc".index(text[0]) + 3 * "321".index(text[1])
