"""Blokus once more, slowly and by other means: pieces are grown, not drawn, and nobody turns the board."""

from functools import cache
from typing import NamedTuple

LETTERS = "abcdefghijklmnopqrst"
EDGES = ((1, 0), (-1, 0), (0, 1), (0, -1))
CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
STARTS = {"duo": (14, ["e10", "j5"]), "classic": (20, ["a20", "t20", "t1", "a1"])}


def fixed_polyominoes(most: int) -> set[frozenset]:
    """All ways to join up to `most` squares, each at the origin."""
    found = level = {frozenset([(0, 0)])}
    for _ in range(most - 1):
        level = {
            at_origin(shape | {(x + dx, y + dy)}) for shape in level for x, y in shape for dx, dy in EDGES
        }
        level = {shape for shape in level if shape not in found}
        found = found | level
    return found


def at_origin(shape) -> frozenset:
    left, low = min(x for x, _ in shape), min(y for _, y in shape)
    return frozenset((x - left, y - low) for x, y in shape)


def piece_of(shape) -> tuple:
    """The same for all turned and flipped forms of a piece."""
    forms = []
    for flip in (1, -1):
        turned = [(flip * x, y) for x, y in shape]
        for _ in range(4):
            turned = [(-y, x) for x, y in turned]
            forms.append(sorted(at_origin(turned)))
    return tuple(min(forms))


class Placement(NamedTuple):
    piece: tuple
    squares: int  # bits
    edges: int
    corners: int


@cache
def placements(board: str) -> dict[str, Placement]:
    """Every placement by its text, row by row from the bottom."""
    side, found = STARTS[board][0], {}
    for shape in fixed_polyominoes(5):
        piece = piece_of(shape)
        for dx in range(side - max(x for x, _ in shape)):
            for dy in range(side - max(y for _, y in shape)):
                squares = sorted(((x + dx, y + dy) for x, y in shape), key=lambda square: square[::-1])
                text = ",".join(f"{LETTERS[x]}{y + 1}" for x, y in squares)
                found[text] = Placement(
                    piece, bits(squares, side), around(squares, EDGES, side), around(squares, CORNERS, side)
                )
    return found


def bits(squares, side: int) -> int:
    return sum(1 << side * y + x for x, y in set(squares) if 0 <= x < side and 0 <= y < side)


def around(squares, steps, side: int) -> int:
    return bits({(x + dx, y + dy) for x, y in squares for dx, dy in steps}, side)


def square_bit(text: str, side: int) -> int:
    return 1 << side * (int(text[1:]) - 1) + LETTERS.index(text[0])


class SlowGame:
    def __init__(self, board: str) -> None:
        self.side, starts = STARTS[board]
        self.all = placements(board)
        self.taken = 0
        self.squares, self.edges = [0] * len(starts), [0] * len(starts)
        self.corners = [square_bit(start, self.side) for start in starts]
        self.used: list[set] = [set() for _ in starts]

    def legal(self, seat: int) -> set[str]:
        blocked, corners, used = self.taken | self.edges[seat], self.corners[seat], self.used[seat]
        return {
            text
            for text, placed in self.all.items()
            if not placed.squares & blocked and placed.squares & corners and placed.piece not in used
        }

    def left(self, seat: int) -> set[tuple]:
        return {placed.piece for placed in self.all.values()} - self.used[seat]

    def play(self, seat: int, text: str) -> None:
        placed = self.all[text]
        self.taken |= placed.squares
        self.squares[seat] |= placed.squares
        self.edges[seat] |= placed.edges
        self.corners[seat] |= placed.corners
        self.used[seat].add(placed.piece)
