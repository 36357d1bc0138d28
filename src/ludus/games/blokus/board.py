"""The two boards as tables: squares as bits, placements as numbers, and how seats and symmetries turn them.

Every seat keeps the board in its own view, turned so that its start point is where the first seat's is. The
squares, bits and action numbers here are all in the view of some seat; the first seat's view is the board
as people see it.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from ludus.games.blokus.pieces import OFFSETS, PIECE_SHAPES, SHAPE_NUMBER, SHAPE_OFFSETS, SHAPE_PIECE, SHAPES

WORD = 64


class Layout(NamedTuple):
    """What makes a board; a row of bits has one bit more than the board has columns, which is never free."""

    side: int
    seats: int
    start: tuple[int, int]  # row from the top and column, in a seat's own view
    quarters: int  # quarter turns from a seat's view to the next seat's
    marks: str  # a letter for each seat

    @property
    def words(self) -> int:
        return -(-self.side * (self.side + 1) // WORD)


LAYOUTS = {
    "duo": Layout(side=14, seats=2, start=(4, 4), quarters=2, marks="XO"),
    "classic": Layout(side=20, seats=4, start=(0, 0), quarters=1, marks="BYRG"),
}


class Board(NamedTuple):
    """What compiled rules need to know. S seats, P placements, side * side squares, B bits."""

    side: int
    placements: int  # the number of placements, which is also the number of the action that passes
    inside: np.ndarray  # uint64 [words]: the bits that are squares
    start_bit: int
    bit_row: np.ndarray  # int32 [B]
    around: np.ndarray  # int16 [B, 8]: bits at the four edges, then the four corners; itself where none is
    square_bit: np.ndarray  # int16 [S, side * side]: bit of my squares in the view of the seat so far ahead
    offset_bits: np.ndarray  # int64 [15]
    piece_shapes: np.ndarray  # int64 [22]
    shape_offsets: np.ndarray  # uint8 [91, 5]
    shape_first: np.ndarray  # int32 [91]: the number of its first placement
    shape_short: np.ndarray  # int32 [91]: bits of a row that can't be its corner
    placement_shape: np.ndarray  # uint8 [P]
    placement_piece: np.ndarray  # uint8 [P]
    placement_bit: np.ndarray  # int16 [P]: of the corner of its box
    ahead: np.ndarray  # int32 [S, P + 1]: the same action in the view of the seat so far ahead


class Symmetry(NamedTuple):
    """A way to turn a position into one that is worth the same: `new[i] = old[index[i]]`."""

    name: str
    actions: np.ndarray  # int32 [P + 1], for masks and policies
    squares: np.ndarray  # int32 [side * side], for planes of squares

    def turn_planes(self, planes: np.ndarray) -> np.ndarray:
        """Observations [N, planes, side, side] turned; the last quarter tells of pieces and stays."""
        image = planes.copy()
        of_squares = planes.shape[1] * 3 // 4
        flat = planes[:, :of_squares].reshape(len(planes), of_squares, len(self.squares))
        image[:, :of_squares] = flat[:, :, self.squares].reshape(image[:, :of_squares].shape)
        return image


def turned(row: Any, column: Any, side: int, quarters: int) -> tuple[Any, Any]:
    """Turned counter-clockwise, which brings the top right corner to the top left."""
    for _ in range(quarters % 4):
        row, column = side - 1 - column, row
    return row, column


@functools.cache
def make_board(name: str) -> Board:
    layout = LAYOUTS[name]
    side, stride = layout.side, layout.side + 1
    bits = np.arange(layout.words * WORD)
    rows, columns = (part.ravel() for part in np.indices((side, side)))
    shape, corner_row, corner_column = _placements(side)
    fits = np.array([_room(number, side) for number in range(len(SHAPES))])
    first = np.concatenate([[0], np.cumsum(fits.prod(1))[:-1]])
    views = [turned(rows, columns, side, layout.quarters * seat) for seat in range(layout.seats)]
    return Board(
        side=side,
        placements=len(shape),
        inside=_bitboard(rows * stride + columns, layout.words),
        start_bit=layout.start[0] * stride + layout.start[1],
        bit_row=(bits // stride).astype(np.int32),
        around=_around(side, layout.words),
        square_bit=np.array([row * stride + column for row, column in views], np.int16),
        offset_bits=np.array([row * stride + column for row, column in OFFSETS]),
        piece_shapes=PIECE_SHAPES,
        shape_offsets=SHAPE_OFFSETS,
        shape_first=first.astype(np.int32),
        shape_short=(stride - fits[:, 1]).astype(np.int32),
        placement_shape=shape.astype(np.uint8),
        placement_piece=SHAPE_PIECE[shape],
        placement_bit=(corner_row * stride + corner_column).astype(np.int16),
        ahead=np.array(
            [
                _renumbered(side, lambda y, x, seat=seat: turned(y, x, side, layout.quarters * seat))
                for seat in range(layout.seats)
            ]
        ),
    )


@functools.cache
def symmetries(name: str) -> tuple[Symmetry, ...]:
    """Those that keep every seat's start point and the order of the seats. The first changes nothing."""
    layout = LAYOUTS[name]
    squares = np.arange(layout.side**2, dtype=np.int32)
    same = Symmetry("same", np.arange(make_board(name).placements + 1, dtype=np.int32), squares)
    if name == "classic":  # its diagonal would reverse the order in which the others move
        return (same,)
    flipped = squares.reshape(layout.side, layout.side).T.ravel()
    return same, Symmetry("diagonal", _renumbered(layout.side, lambda y, x: (x, y)), flipped)


def places(board: Board) -> np.ndarray:
    """A plane for each shape says where its corner goes; the pass comes after them. int64 [P + 1]"""
    row, column = np.divmod(board.placement_bit.astype(np.int64), board.side + 1)
    found = (board.placement_shape.astype(np.int64) * board.side + row) * board.side + column
    return np.append(found, len(SHAPES) * board.side**2)


def _room(shape: int, side: int) -> tuple[int, int]:
    """Rows and columns in which the corner of a shape can be."""
    height, width = np.max(SHAPES[shape], axis=0)
    return side - height, side - width


def _placements(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shape, and row and column of its corner, of every placement in the order of their numbers. [P] each"""
    parts = []
    for number in range(len(SHAPES)):
        rows, columns = np.indices(_room(number, side))
        parts.append(np.array([np.full(rows.size, number), rows.ravel(), columns.ravel()]))
    shape, row, column = np.concatenate(parts, axis=1)
    return shape, row, column


def _renumbered(side: int, move: Any) -> np.ndarray:
    """The number of every action after `move(rows, columns)` of all squares. int32 [P + 1]"""
    shape, row, column = _placements(side)
    numbers = np.empty(len(shape) + 1, np.int32)
    numbers[-1] = len(shape)
    starts = np.searchsorted(shape, np.arange(len(SHAPES) + 1))
    for number, squares in enumerate(SHAPES):
        some = slice(starts[number], starts[number + 1])
        moved = np.array([move(row[some] + y, column[some] + x) for y, x in squares])  # [squares, 2, n]
        corner = moved.min(axis=0)
        after = SHAPE_NUMBER[tuple(sorted((y, x) for y, x in (moved[:, :, 0] - corner[:, 0]).tolist()))]
        numbers[some] = starts[after] + corner[0] * _room(after, side)[1] + corner[1]
    return numbers


def _around(side: int, words: int) -> np.ndarray:
    stride = side + 1
    around = np.repeat(np.arange(words * WORD)[:, None], 8, axis=1)
    steps = ((-1, 0), (0, -1), (0, 1), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1))
    for row, column in np.ndindex(side, side):
        for place, (down, right) in enumerate(steps):
            if 0 <= row + down < side and 0 <= column + right < side:
                around[row * stride + column, place] = (row + down) * stride + column + right
    return around.astype(np.int16)


def _bitboard(bits: np.ndarray, words: int) -> np.ndarray:
    board = np.zeros(words, np.uint64)
    np.bitwise_or.at(board, bits // WORD, np.uint64(1) << (bits % WORD).astype(np.uint64))
    return board
