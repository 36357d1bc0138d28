"""Button sets: discrete actions as combinations of the console's buttons."""

import functools
import itertools
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from ludus.core.errors import Usage
from ludus.games.retro.catalog import Integration

WHOLE_SETS = ("discrete", "filtered")


def names(integration: Integration, chosen: str | Sequence[str]) -> list[str]:
    """What each action presses, e.g. `["", "RIGHT", "RIGHT+A"]`."""
    if isinstance(chosen, str) and chosen not in WHOLE_SETS:
        raise Usage(f"buttons are {' or '.join(WHOLE_SETS)} or a list of combinations, not {chosen!r}")
    if not isinstance(chosen, str):
        if not chosen:
            raise Usage("the list of button combinations is empty")
        return ["+".join(_parse(integration, text)) for text in chosen]
    groups = sorted((_values(integration, group) for group in integration.combos), key=_all_buttons)
    products = itertools.product(*reversed(groups))
    return [_text(integration, sum(parts)) for parts in products]


def masks(integration: Integration, combinations: Iterable[str]) -> np.ndarray:
    """uint8 [A, B]: which of the console's B buttons each combination presses."""
    rows = [
        [button is not None and button in pressed for button in integration.buttons]
        for pressed in (_parse(integration, text) for text in combinations)
    ]
    return np.array(rows, np.uint8)


def _values(integration: Integration, group: Iterable[Sequence[str]]) -> list[int]:
    """A group's combinations as bits, in stable-retro's order, so that actions have its numbers."""
    return sorted({sum(1 << integration.buttons.index(name) for name in combo) for combo in group})


def _all_buttons(values: Iterable[int]) -> int:
    return functools.reduce(operator.or_, values)


def _text(integration: Integration, bits: int) -> str:
    return "+".join(name for place, name in enumerate(integration.buttons) if name and bits >> place & 1)


def _parse(integration: Integration, text: str) -> list[str]:
    pressed = [part.strip().upper() for part in text.split("+") if part.strip()]
    for button in pressed:
        if button not in integration.buttons:
            known = ", ".join(name for name in integration.buttons if name)
            raise Usage(f"{integration.game} has no button {button!r} (in {text!r}): choose from {known}")
    return pressed
