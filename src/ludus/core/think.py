"""How far a player looks ahead, as people write it: `400`, `100ms`, `2s`."""

import re

from ludus.core.errors import Usage

NO_LOOK_AHEAD = "0"
"""The first choices of an agent's network, to see what looking ahead brings."""


def parse_amount(text: str) -> tuple[int, float]:
    """A number, or 0 and seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|)", text)
    if not found or not float(found[1]) or ("." in found[1] and not found[2]):
        raise Usage(
            f"{text!r} is neither a number of positions to look at, as 400, nor a time, as 100ms or 2s"
        )
    number, unit = float(found[1]), found[2]
    return (0, number / (1000 if unit == "ms" else 1)) if unit else (int(number), 0.0)


def parse_futures(text: str, name: str) -> int:
    """A number, for a player that can't look at the clock. name: of the player"""
    number, seconds = parse_amount(text)
    if seconds:
        raise Usage(f"{name} looks into a number of futures, not for a time: say +64, not +{text}")
    return number
