"""The 21 pieces and the 91 shapes they make when turned and flipped. Knows no board."""

import numpy as np

PIECES = {
    "1": "#",
    "2": "##",
    "I3": "###",
    "V3": "##/#.",
    "I4": "####",
    "L4": "###/#..",
    "T4": "###/.#.",
    "O": "##/##",
    "Z4": "##./.##",
    "F": ".##/##./.#.",
    "I5": "#####",
    "L5": "####/#...",
    "N": "###./..##",
    "P": "###/##.",
    "T5": "###/.#./.#.",
    "U": "#.#/###",
    "V5": "###/#../#..",
    "W": "##./.##/..#",
    "X": ".#./###/.#.",
    "Y": "####/.#..",
    "Z5": "##./.#./.##",
}
"""Smallest first; the names are Pentobi's."""
NAMES = tuple(PIECES)
MOST_SQUARES = 5

Shape = tuple[tuple[int, int], ...]
"""Sorted (row, column) of its squares, from the corner of the smallest box around them."""


def shape_of(squares: list[tuple[int, int]]) -> Shape:
    top, left = min(row for row, _ in squares), min(column for _, column in squares)
    return tuple(sorted((row - top, column - left) for row, column in squares))


def drawn(piece: str) -> Shape:
    """The squares of a drawing of PIECES."""
    rows = PIECES[piece].split("/")
    return tuple((y, x) for y, row in enumerate(rows) for x, mark in enumerate(row) if mark == "#")


def _shapes(piece: str) -> list[Shape]:
    """All ways to lay a piece down, in a fixed order."""
    found, squares = set(), list(drawn(piece))
    for _ in range(2):
        squares = [(x, y) for y, x in squares]
        for _ in range(4):
            squares = [(-x, y) for y, x in squares]
            found.add(shape_of(squares))
    return sorted(found)


SHAPES: tuple[Shape, ...] = tuple(shape for name in NAMES for shape in _shapes(name))
SHAPE_NUMBER = {shape: number for number, shape in enumerate(SHAPES)}
PIECE_SHAPES = np.cumsum([0, *(len(_shapes(name)) for name in NAMES)])
"""The first shape of each piece, and the end. int64 [22]"""
SHAPE_PIECE = np.repeat(np.arange(len(NAMES)), np.diff(PIECE_SHAPES)).astype(np.uint8)
PIECE_SIZE = np.array([len(drawn(name)) for name in NAMES], np.uint8)

OFFSETS = tuple((y, x) for y in range(MOST_SQUARES) for x in range(MOST_SQUARES - y))
"""Where a shape's squares can be, seen from its corner: five squares in a row and column reach no further."""


def _shape_offsets() -> np.ndarray:
    """Which of OFFSETS each shape covers; small ones repeat their last. uint8 [91, 5]"""
    rows = []
    for shape in SHAPES:
        covered = [OFFSETS.index(square) for square in shape]
        rows.append(covered + covered[-1:] * (MOST_SQUARES - len(covered)))
    return np.array(rows, np.uint8)


SHAPE_OFFSETS = _shape_offsets()
