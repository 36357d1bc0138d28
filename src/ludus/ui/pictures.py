"""An analysis as PNG files: the board before every move with its heat, and the values over the game."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ludus.analysis import Step
from ludus.core.rules import Rules
from ludus.core.screen import BoardScreen, Screen
from ludus.ui.thoughts import SEEN, headline, heat_of, seat_name, shade, values_text

BOARD, MARGIN, TITLE = 560, 32, 56
"""Pixels: a board's longer side at most, the space around it, and the two lines above it."""
PAPER, FREE, GRID, INK = "#ffffff", "#f3f1ea", "#c9c5b8", "#222222"
COLOURS = ("#2563eb", "#ca8a04", "#dc2626", "#16a34a")
"""Of seats, where a game's screen has none."""
WIDE, HIGH = 900, 420
FONT, SMALL = ImageFont.load_default(15), ImageFont.load_default(12)


class Pictures:
    """A folder that gets a picture for each step; those of an earlier, longer game are removed first."""

    def __init__(self, folder: Path, rules: Rules, screen: Screen) -> None:
        self.folder, self.rules, self.screen = folder, rules, screen
        self.steps: list[Step] = []
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("move-*.png"):
            old.unlink()

    def add(self, step: Step) -> None:
        self.steps.append(step)
        if isinstance(self.screen, BoardScreen):
            lines = headline(self.rules, self.screen, step), f"worth {values_text(self.screen, step.value)}"
            draw_board(self.screen, step, lines).save(self.folder / f"move-{step.number:03}.png")

    def finish(self) -> int:
        """The last picture, the values; and how many there are."""
        values = np.array([*(step.value for step in self.steps), self.steps[-1].after])
        names = [seat_name(self.screen, seat) for seat in range(values.shape[1])]
        colours = self.screen.colours if isinstance(self.screen, BoardScreen) else COLOURS
        draw_curve(values, names, colours).save(self.folder / "values.png")
        return len(list(self.folder.glob("move-*.png"))) + 1


def draw_board(screen: BoardScreen, step: Step, lines: tuple[str, str]) -> Image.Image:
    """Pieces in their colours, heat on the free cells, and a frame around the cells of the move played."""
    owners, (rows, columns) = screen.cells(step.state), screen.labels
    size = BOARD // max(owners.shape)
    wide, high = (size * side for side in owners.shape[::-1])
    image = Image.new("RGB", (max(wide, BOARD) + 2 * MARGIN, high + TITLE + 2 * MARGIN), PAPER)
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        draw.text((MARGIN, 12 + 22 * i), line, INK, FONT)
    heat = heat_of(screen, step.state, step.ideas)
    shades, played = shade(heat), screen.covers(step.state, step.action)
    for row, column in np.ndindex(owners.shape):
        x, y = MARGIN + column * size, TITLE + MARGIN // 2 + row * size
        owner, warm = owners[row, column], heat[row, column] >= SEEN
        fill = screen.colours[owner] if owner >= 0 else tuple(shades[row, column].tolist()) if warm else FREE
        draw.rectangle((x, y, x + size, y + size), fill, GRID)
        if warm:
            ink = "white" if shades[row, column, 1] < 128 else INK
            draw.text((x + size / 2, y + size / 2), f"{100 * heat[row, column]:.0f}", ink, SMALL, "mm")
        if (row, column) in played:
            draw.rectangle((x + 3, y + 3, x + size - 3, y + size - 3), None, screen.colours[step.seat], 3)
    for row, label in enumerate(rows):
        at = MARGIN / 2, TITLE + MARGIN // 2 + (row + 0.5) * size
        draw.text(at, label, INK, SMALL, "mm")
    for column, label in enumerate(columns):
        at = MARGIN + (column + 0.5) * size, TITLE + MARGIN // 2 + high + MARGIN / 2
        draw.text(at, label, INK, SMALL, "mm")
    return image


def draw_curve(values: np.ndarray, names: list[str], colours: tuple[str, ...]) -> Image.Image:
    """What every position was worth to each seat. values: [moves + 1, S], in [-1, 1]"""
    image = Image.new("RGB", (WIDE, HIGH), PAPER)
    draw = ImageDraw.Draw(image)
    left, top, right, bottom = 48, 40, WIDE - 24, HIGH - 40
    last = len(values) - 1

    def place(number: float, value: float) -> tuple[float, float]:
        return left + (right - left) * number / last, top + (bottom - top) * (1 - value) / 2

    for value in (-1, -0.5, 0, 0.5, 1):
        draw.line((place(0, value), place(last, value)), GRID, 2 if value == 0 else 1)
        draw.text((left - 8, place(0, value)[1]), f"{value:+g}", INK, SMALL, "rm")
    for number in range(0, last + 1, max(1, last // 10)):
        draw.text((place(number, -1)[0], bottom + 10), str(number), INK, SMALL, "mt")
    for seat, name in enumerate(names):
        points = [place(number, float(value)) for number, value in enumerate(values[:, seat])]
        draw.line(points, colours[seat], 3, "curve")
        for x, y in points:
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), colours[seat])
        draw.text((left + 90 * seat, 12), name, colours[seat], FONT)
    draw.text((right, 12), "value after so many moves", INK, SMALL, "ra")
    return image
