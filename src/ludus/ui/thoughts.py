"""What a search thinks, in the terminal: its best moves as a table, and a heat map of the board."""

import numpy as np
from rich.table import Table
from rich.text import Text

from ludus.analysis import Idea, Step
from ludus.core.rules import Rules
from ludus.core.screen import BoardScreen, Screen

COLD, HOT = np.array([253, 224, 239]), np.array([142, 1, 82])
"""Pink to purple, because no game's pieces have these colours."""
SEEN = 0.005
"""What is less than this, of the policy or of a value, is not shown."""


def headline(rules: Rules, screen: Screen, step: Step) -> str:
    """`3. X plays e9,d10 and loses 0.12 against e10,e11`"""
    best = step.ideas[0].action
    said = f"{step.number}. {seat_name(screen, step.seat)} plays {rules.action_text(step.state, step.action)}"
    if step.action == best:
        return f"{said}, the best move"
    if step.lost < SEEN:
        return f"{said}, as good as {rules.action_text(step.state, best)}"
    return f"{said} and loses {step.lost:.2f} against {rules.action_text(step.state, best)}"


def values_text(screen: Screen, values: np.ndarray) -> str:
    return ", ".join(f"{seat_name(screen, seat)} {value:+.2f}" for seat, value in enumerate(values))


def seat_name(screen: Screen, seat: int) -> str:
    return screen.marks[seat] if isinstance(screen, BoardScreen) else f"seat {seat}"


def idea_table(
    rules: Rules, state: np.void, ideas: list[Idea], count: int, played: int | None = None
) -> Table:
    """The best `count`, and the one that was played wherever it stands."""
    table = Table("", "move", "visits", "share", "value", box=None, pad_edge=False)
    for column in (0, 2, 3, 4):
        table.columns[column].justify = "right"
    if played is not None and all(idea.action != played for idea in ideas):
        ideas = [*ideas, Idea(played, 0, 0.0, 0.0)]  # the search kept only the likelier ones
    for rank, idea in enumerate(ideas, 1):
        if rank <= count or idea.action == played:
            value = f"{idea.value:+.2f}" if idea.visits else "-"
            style = "bold" if idea.action == played else ""
            move = Text(rules.action_text(state, idea.action))
            table.add_row(
                str(rank), move, f"{idea.visits:,}", f"{100 * idea.share:.0f} %", value, style=style
            )
    return table


def heat_of(screen: BoardScreen, state: np.void, ideas: list[Idea]) -> np.ndarray:
    """How much of the policy falls on each cell. float64 [rows, columns]"""
    heat = np.zeros(screen.cells(state).shape)
    for idea in ideas:
        for cell in screen.covers(state, idea.action):
            heat[cell] += idea.share
    return heat


def shade(heat: np.ndarray) -> np.ndarray:
    """A colour for each cell, against the hottest. uint8 [rows, columns, 3]"""
    warmth = np.sqrt(heat / max(heat.max(), SEEN))[:, :, None]  # the root, so that second thoughts show too
    return (COLD + warmth * (HOT - COLD)).astype(np.uint8)


def heat_map(screen: BoardScreen, state: np.void, heat: np.ndarray) -> Text:
    """The board with percents of the policy where it is free, in colours and in figures."""
    owners, shades, (rows, columns) = screen.cells(state), shade(heat), screen.labels
    text = Text()
    for row, label in enumerate(rows):
        text.append(f"{label:>2} ", "dim")
        for column in range(len(columns)):
            owner, share = owners[row, column], heat[row, column]
            if share >= SEEN:
                red, green, blue = shades[row, column]
                ink = "#ffffff" if green < 128 else "#000000"
                text.append(f"{min(99, 100 * share):3.0f}", f"{ink} on #{red:02x}{green:02x}{blue:02x}")
            elif owner >= 0:
                text.append(f"{screen.marks[owner]:>3}", f"bold #ffffff on {screen.colours[owner]}")
            else:
                text.append("  ·", "dim")
        text.append("\n")
    return text.append("   " + "".join(f"{label:>3}" for label in columns), "dim")
