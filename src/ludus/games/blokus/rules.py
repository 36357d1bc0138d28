"""Blokus as Rules: legal actions, observations, points and statistics, for many games at once."""

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import njit
from ludus.core.rules import States, Streams
from ludus.core.spec import Part, Spec
from ludus.games.blokus import Options, text
from ludus.games.blokus.board import LAYOUTS, make_board, places, symmetries
from ludus.games.blokus.endgame import solve_rows
from ludus.games.blokus.estimate import estimate_rows
from ludus.games.blokus.moves import PIECE_COUNT, STATES, act, list_actions, start

STATS = ("win", "draw", "first", "first_win", "squares", "left", "moves", "passes", "all")
SQUARE_PLANES = 3  # of each seat: its squares, what it may still cover, corners to go on from
PIECE_PLANES = (
    1  # of each seat, after all those: its first squares say which pieces are left, and if it is stuck
)


@njit
def deal_rows(board, states):
    for i in range(len(states)):
        start(board, states[i])


@njit
def play_rows(board, states, actions):
    for i in range(len(states)):
        act(board, states[i], actions[i])


@njit
def legal_rows(board, states, out):
    actions = np.empty(out.shape[1], np.int32)
    for i in range(len(states)):
        for action in range(out.shape[1]):
            out[i, action] = False
        for n in range(list_actions(board, states[i], actions)):
            out[i, actions[n]] = True


@njit
def list_rows(board, states, out, counts):
    actions = np.empty(board.placements + 1, np.int32)
    for i in range(len(states)):
        counts[i] = list_actions(board, states[i], actions)
        for n in range(min(counts[i], out.shape[1])):
            out[i, n] = actions[n]


@njit
def observe_rows(board, states, out):
    """The planes are described in docs/blokus.md. out: uint8 [N, planes, side, side]"""
    squares = board.side * board.side
    planes = out.reshape(len(out), out.shape[1], squares)
    for i in range(len(states)):
        state = states[i]
        seats = state.free.shape[0]
        for ahead in range(seats):
            seat = (state.turn + ahead) % seats
            at = ahead * SQUARE_PLANES
            for square in range(squares):
                bit = board.square_bit[ahead, square]
                word, shift = bit >> 6, np.uint64(bit & 63)
                planes[i, at, square] = state.mine[seat, word] >> shift & np.uint64(1)
                planes[i, at + 1, square] = state.free[seat, word] >> shift & np.uint64(1)
                planes[i, at + 2, square] = state.corners[seat, word] >> shift & np.uint64(1)
            at = seats * SQUARE_PLANES + ahead
            for square in range(squares):
                planes[i, at, square] = state.left[seat] >> square & 1 if square < PIECE_COUNT else 0
            planes[i, at, PIECE_COUNT] = state.stuck >> seat & 1


@njit
def owner_rows(board, states, seat, out):
    """Seats in the order of play from `seat` on, and seen from there. out: bool [N, S, squares]"""
    seats = out.shape[1]
    for i in range(len(states)):
        for ahead in range(seats):
            mine = states[i].mine[(seat[i] + ahead) % seats]
            for square in range(out.shape[2]):
                bit = board.square_bit[ahead, square]
                out[i, ahead, square] = mine[bit >> 6] >> np.uint64(bit & 63) & np.uint64(1)


class Blokus:
    def __init__(self, options: Options) -> None:
        if options.board not in LAYOUTS:
            raise Usage(f"blokus has the boards {', '.join(LAYOUTS)}, not {options.board!r}")
        self.options, self.layout = options, LAYOUTS[options.board]
        self.board, self.symmetries = make_board(options.board), symmetries(options.board)
        seats, side = self.layout.seats, self.layout.side
        shape = (seats * (SQUARE_PLANES + PIECE_PLANES), side, side)
        self.spec = Spec(
            game="blokus",
            seats=seats,
            actions=self.board.placements + 1,  # the last one passes
            parts=(Part("board", shape, kind="board", planes=seats * SQUARE_PLANES),),
            state=STATES[options.board],
            stats=STATS,
            chance=False,
            places=places(self.board),
            owned=True,
        )

    def blank(self, n: int) -> States:
        return np.zeros(n, self.spec.state)

    def deal(self, states: States, rng: Streams) -> None:
        deal_rows(self.board, states)

    def seat(self, states: States) -> np.ndarray:
        return states["turn"].copy()

    def over(self, states: States) -> np.ndarray:
        return states["stuck"] == (1 << self.spec.seats) - 1

    def legal(self, states: States, out: np.ndarray) -> None:
        legal_rows(self.board, states, out)

    def list_legal(self, states: States, out: np.ndarray, counts: np.ndarray) -> None:
        """The legal actions as numbers: as many as there is room for, and how many there are.

        out: int32 [N, room]; counts: int32 [N]
        """
        list_rows(self.board, states, out, counts)

    def observe(self, states: States, out: np.ndarray) -> None:
        observe_rows(self.board, states, out)

    def play(self, states: States, actions: np.ndarray, rng: Streams) -> None:
        play_rows(self.board, states, actions)

    def score(self, states: States, out: np.ndarray) -> None:
        """How far each seat is ahead of the mean of the others: in Duo, the difference."""
        points, seats = states["points"].astype(np.float32), self.spec.seats
        out[:] = (seats * points - points.sum(1, keepdims=True)) / (seats - 1)

    def stats(self, states: States, out: np.ndarray) -> None:
        points = states["points"]
        best = points == points.max(1, keepdims=True)
        alone = best.sum(1, keepdims=True) == 1
        first = np.arange(self.spec.seats) == 0
        left = np.bitwise_count(states["left"])
        found = {
            "win": best & alone,
            "draw": best & ~alone,
            "first": first,
            "first_win": best & alone & first,
            "squares": np.bitwise_count(states["mine"]).sum(2),
            "left": left,
            "moves": PIECE_COUNT - left,
            "passes": states["passes"],
            "all": left == 0,
        }
        for place, name in enumerate(STATS):
            out[:, :, place] = found[name]

    def owners(self, states: States, seat: np.ndarray, out: np.ndarray) -> None:
        """Who covers each square, in the view of a seat. seat: int8 [N]; out: bool [N, seats, squares]"""
        owner_rows(self.board, states, seat, out)

    def redeal(self, states: States, rng: Streams) -> None:
        pass  # nothing is hidden

    def estimate(
        self,
        states: States,
        actions: np.ndarray,
        counts: np.ndarray,
        rng: Streams,
        logits: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """For search without a network, as `Evaluator` in search/evaluators.py."""
        estimate_rows(self.board, states, actions, counts, rng, logits, values)

    def solve(self, states: States, most: int, out: np.ndarray) -> np.ndarray:
        """As `Solves` in core/rules.py: the ends of games of Duo."""
        found = np.zeros(len(states), bool)
        if self.spec.seats == 2:
            solve_rows(self.board, states, most, found, out)
        return found

    def text(self, state: np.void) -> str:
        return text.state_text(self, state)

    def parse(self, line: str) -> States:
        return text.parse_state(self, line)

    def action_text(self, state: np.void, action: int) -> str:
        return text.action_text(self, state, action)

    def parse_action(self, state: np.void, line: str) -> int:
        return text.parse_action(self, state, line)
