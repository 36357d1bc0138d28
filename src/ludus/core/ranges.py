"""Which values a setting may have, said beside it as in `gamma: Share = 0.99`; checked for all together."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from ludus.core.errors import Usage


@dataclass(frozen=True)
class Range:
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    """Whether `low` itself is left out."""
    open_high: bool = False
    word: str = ""
    """Said instead of a number, for settings that are text."""

    def has(self, value: Any) -> bool:
        if isinstance(value, str):
            if value == self.word:
                return True
            if not value.isdecimal():
                return False
            value = int(value)
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below and math.isfinite(value)  # a comparison with NaN is False

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.open_low else f"at least {self.low:g}"
        high = f"below {self.high:g}" if self.open_high else f"at most {self.high:g}"
        ends = [text for text, end in ((low, self.low), (high, self.high)) if math.isfinite(end)]
        return (f"{self.word} or " if self.word else "") + (" and ".join(ends) or "finite")


Finite = Annotated[float, Range()]
NotNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, open_low=True)]
Share = Annotated[float, Range(0, 1)]
Whole = Annotated[int, Range(0)]
Count = Annotated[int, Range(1)]


def check(settings: Any, group: str = "") -> None:
    """Refuse the first value of a configuration, and of its groups, that is out of its range."""
    kinds = get_type_hints(type(settings), include_extras=True)
    for field in dataclasses.fields(settings):
        value, name = getattr(settings, field.name), group + field.name
        if dataclasses.is_dataclass(value):
            check(value, f"{name}.")
        else:
            _check(value, kinds[field.name], name)


def _check(value: Any, kind: Any, name: str) -> None:
    if isinstance(value, tuple):
        for part in value:
            _check(part, get_args(kind)[0], name)
        return
    marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    for mark in marks:
        if isinstance(mark, Range) and not mark.has(value):
            endless = isinstance(value, float) and not math.isfinite(value)
            raise Usage(f"--{name.replace('_', '-')} is {value}, but must be {'finite' if endless else mark}")
