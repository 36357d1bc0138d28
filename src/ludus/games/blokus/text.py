"""Blokus states and moves as text, and back. Squares are those that people see: the first seat's view."""

from typing import Any

import numpy as np

from ludus.core.errors import Usage
from ludus.core.rules import legal_actions
from ludus.games.blokus.moves import ALL_PLACED, SINGLE_LAST, find_stuck, place, start
from ludus.games.blokus.pieces import NAMES, SHAPE_NUMBER, SHAPES, shape_of

LETTERS = "abcdefghijklmnopqrst"
PASS = "pass"
MOST_LISTED = 10
"""Ways to place a piece that are offered at once."""
FORM = "turn N; points N ...; passes N ...; board ROW/ROW/..., top row first, with . for a free square"

Square = tuple[int, int]
"""Row from the top, and column."""


def square_text(square: Square, side: int) -> str:
    return f"{LETTERS[square[1]]}{side - square[0]}"


def parse_square(word: str, side: int) -> Square:
    letter, number = word[:1], word[1:]
    if letter not in LETTERS[:side] or not number.isascii() or not number.isdigit():
        raise Usage(f"{word!r} is not a square: a column a-{LETTERS[side - 1]} and a row 1-{side}, as in e10")
    if not 1 <= int(number) <= side:
        raise Usage(f"there is no row {number}: rows are 1-{side}, from the bottom")
    return side - int(number), LETTERS.index(letter)


# ---- actions


def placed_squares(rules: Any, seat: int, action: int) -> list[Square]:
    """The squares that a seat's placement covers, in no special order."""
    board = rules.board
    seen = board.ahead[-seat % rules.spec.seats, action]  # by the first seat
    row, column = divmod(int(board.placement_bit[seen]), board.side + 1)
    return [(row + y, column + x) for y, x in SHAPES[board.placement_shape[seen]]]


def action_of(rules: Any, seat: int, squares: list[Square]) -> int | None:
    """The number of a placement for a seat, or None if no piece has this shape."""
    shape, board = SHAPE_NUMBER.get(shape_of(squares)), rules.board
    if shape is None:
        return None
    row, column = np.min(squares, axis=0)
    across = board.side + 1 - board.shape_short[shape]
    return int(board.ahead[seat, board.shape_first[shape] + row * across + column])


def action_text(rules: Any, state: np.void, action: int) -> str:
    """`e9,d10,e10,f10,e11`: from the bottom row up, and in a row from the left."""
    if action == rules.board.placements:
        return PASS
    squares = placed_squares(rules, int(state["turn"]), action)
    return ",".join(square_text(square, rules.board.side) for square in sorted(squares, key=from_below))


def from_below(square: Square) -> Square:
    return -square[0], square[1]


def parse_action(rules: Any, state: np.void, line: str) -> int:
    """All squares of a placement in any order, or a piece and squares it covers, as in `F e9`.

    What the rules forbid is refused with the reason.
    """
    seat = int(state["turn"])
    is_stuck = bool(state["stuck"] >> seat & 1)
    if line.strip().lower() == PASS:
        if not is_stuck:
            raise Usage("you can't pass: a piece of yours still fits")
        return rules.board.placements
    first, _, rest = line.strip().partition(" ")
    is_named = first.upper() in NAMES and (rest or len(first) == 1)  # a lone i3 is a square
    if is_named and not _is_placement(rules, state, line):
        return _named_placement(rules, state, first.upper(), rest)
    squares = _squares(rules, line)
    if not squares:
        raise Usage("a move is the squares to cover, as in e9,d10,e10,f10,e11, a piece and a square, or pass")
    action = action_of(rules, seat, squares)
    if action is None:
        raise Usage(f"{line!r} is no piece: one to five different squares joined at their edges")
    reason = why_not(rules, state, squares, int(rules.board.placement_piece[action]))
    if reason:
        raise Usage(f"{line!r} is not possible: {reason}")
    return action


def _squares(rules: Any, line: str) -> list[Square]:
    return [parse_square(word, rules.board.side) for word in line.lower().replace(",", " ").split()]


def _is_placement(rules: Any, state: np.void, line: str) -> bool:
    """Whether the words are squares that can be covered: I3 and L4 are names of squares and of pieces."""
    try:
        squares = _squares(rules, line)
    except Usage:
        return False
    action = action_of(rules, int(state["turn"]), squares)
    return action is not None and not why_not(rules, state, squares, int(rules.board.placement_piece[action]))


def _named_placement(rules: Any, state: np.void, name: str, rest: str) -> int:
    """The placement of a piece over some squares; a number at the end chooses from several."""
    words = rest.replace(",", " ").split()
    number = int(words.pop()) if len(words) > 1 and words[-1].isascii() and words[-1].isdigit() else None
    if not words:
        raise Usage(f"where? name a square that {name} covers, as in {name} e9")
    seat, squares = int(state["turn"]), set(_squares(rules, " ".join(words)))
    if not state["left"][seat] >> NAMES.index(name) & 1:
        raise Usage(f"your piece {name} is already on the board")
    ways = [
        action
        for action in legal_actions(rules, state).tolist()
        if action < rules.board.placements and piece_name(rules, action) == name
        and squares <= set(placed_squares(rules, seat, action))
    ]  # fmt: skip
    where = f"{name} {' '.join(words)}"
    if not ways:
        raise Usage(f"there is no way to place {name} over {' and '.join(words)} now")
    if number is not None and not 1 <= number <= len(ways):
        raise Usage(f"{where} can be placed in {len(ways)} ways, so there is no {number}")
    if number is None and len(ways) > 1:
        listed = [f"{n}: {action_text(rules, state, way)}" for n, way in enumerate(ways[:MOST_LISTED], 1)]
        if len(ways) > MOST_LISTED:
            listed.append("... (another square of it leaves fewer)")
        raise Usage(
            f"{where} can be placed in {len(ways)} ways, say which as in {where} 1:\n" + "\n".join(listed)
        )
    return ways[(number or 1) - 1]


def why_not(rules: Any, state: np.void, squares: list[Square], piece: int) -> str | None:
    """Which rule forbids a placement to the seat to move, if any."""
    seat, side = int(state["turn"]), rules.board.side
    marks = board_marks(rules, state)
    if not state["left"][seat] >> piece & 1:
        return f"your piece {NAMES[piece]} is already on the board"
    for square in squares:
        if marks[square] >= 0:
            return f"{square_text(square, side)} is taken"
        if not seen_bit(rules, state["free"][seat], seat, square):
            return f"{square_text(square, side)} shares an edge with a piece of yours"
    if not any(seen_bit(rules, state["corners"][seat], seat, square) for square in squares):
        if (marks == seat).any():
            return "it touches no corner of a piece of yours"
        return f"your first piece must cover {square_text(start_square(rules, seat), side)}"
    return None


# ---- states


def seen_bit(rules: Any, bits: np.ndarray, seat: int, square: Square) -> bool:
    """Whether a square that people see is in a seat's bits. bits: uint64 [words]"""
    bit = int(rules.board.square_bit[seat, square[0] * rules.board.side + square[1]])
    return bool(int(bits[bit // 64]) >> bit % 64 & 1)


def start_square(rules: Any, seat: int) -> Square:
    where = np.flatnonzero(rules.board.square_bit[seat] == rules.board.start_bit)[0]
    return divmod(int(where), rules.board.side)


def board_marks(rules: Any, state: np.void) -> np.ndarray:
    """The seat on each square as people see it, or -1. int8 [side, side]"""
    board = rules.board
    marks = np.full(board.side**2, -1, np.int8)
    for seat in range(rules.spec.seats):
        bits = board.square_bit[seat].astype(np.uint64)
        taken = state["mine"][seat][bits >> np.uint64(6)] >> (bits & np.uint64(63)) & np.uint64(1)
        marks[taken == 1] = seat
    return marks.reshape(board.side, board.side)


def state_text(rules: Any, state: np.void) -> str:
    letters = np.array([*rules.layout.marks, "."])
    rows = "/".join("".join(letters[row]) for row in board_marks(rules, state))
    points, passes = (" ".join(map(str, state[name].tolist())) for name in ("points", "passes"))
    return f"turn {state['turn']}; points {points}; passes {passes}; board {rows}"


def parse_state(rules: Any, line: str) -> np.ndarray:
    """A state [1] from a line of `state_text`. Pieces of a seat never share an edge, so squares show them."""
    try:
        words = [field.split() for field in line.split(";")]
        if [word[0] for word in words] != ["turn", "points", "passes", "board"]:
            raise ValueError(line)
        turn, points, passes = int(words[0][1]), [*map(int, words[1][1:])], [*map(int, words[2][1:])]
        rows = words[3][1].split("/")
        marks = np.array([[(rules.layout.marks + ".").index(mark) for mark in row] for row in rows])
        if marks.shape != (rules.board.side,) * 2 or {len(points), len(passes)} != {rules.spec.seats}:
            raise ValueError(line)
        states = rules.blank(1)
        start(rules.board, states[0])
        states[0]["turn"], states[0]["passes"] = range(rules.spec.seats).index(turn), passes
    except (ValueError, IndexError, OverflowError):
        raise Usage(f"{line!r} is not a Blokus state: {FORM}") from None
    for seat in range(rules.spec.seats):
        _set_pieces(rules, states[0], seat, np.argwhere(marks == seat).tolist())
        _set_points(rules, states[0], seat, points[seat])
    find_stuck(rules.board, states[0])
    return states


def _set_pieces(rules: Any, state: np.void, seat: int, squares: list[list[int]]) -> None:
    left = {(row, column) for row, column in squares}
    if left and start_square(rules, seat) not in left:
        raise Usage(f"seat {seat} of this Blokus state does not cover its start point")
    while left:
        piece = _joined(left)
        left -= set(piece)
        action = action_of(rules, seat, piece)
        where = square_text(piece[0], rules.board.side)
        if action is None:
            raise Usage(f"what seat {seat} has at {where} is no piece")
        if not state["left"][seat] >> int(rules.board.placement_piece[action]) & 1:
            raise Usage(f"what seat {seat} has at {where} is there twice")
        place(rules.board, state, seat, action)


def _joined(squares: set[Square]) -> list[Square]:
    """One square and all that hang together with it by edges."""
    found = [min(squares)]
    for row, column in found:
        beside = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
        found += (beside & squares) - set(found)
    return found


def _set_points(rules: Any, state: np.void, seat: int, points: int) -> None:
    """Only the order of the last pieces is not to be seen on the board."""
    squares = int(np.bitwise_count(state["mine"][seat]).sum())
    allowed = [squares]
    if state["left"][seat] == 0:
        allowed = [squares + ALL_PLACED, squares + ALL_PLACED + SINGLE_LAST]
    if points not in allowed:
        raise Usage(
            f"seat {seat} of this Blokus state has {' or '.join(map(str, allowed))} points, not {points}"
        )
    state["points"][seat] = points


def piece_name(rules: Any, action: int) -> str:
    return NAMES[rules.board.placement_piece[action]]
