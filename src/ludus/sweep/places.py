"""Where trials are trained, one at a time each: processes of this machine, or nodes of a Ray cluster."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ludus.config import Config
from ludus.training.faults import Fault

LEAVE_S = 15.0
"""How long a trial may take to save itself."""


class Reading(NamedTuple):
    """How a trial does."""

    share: float
    """Of the budget that is used."""
    score: float | None
    """Against the first opponent of the evaluation, else the training's own measure; None if neither is
    new."""
    decisions: int
    seconds: float


class Ended(NamedTuple):
    """A trial is over."""

    fault: Fault | None = None
    lost: str = ""
    """Why its process or node is gone; the run goes on elsewhere."""


Message = Reading | Ended


class Place(Protocol):
    def begin(self, config: Config) -> None: ...

    def messages(self) -> Iterator[Message]:
        """What the trial has told since the last call."""
        ...

    def prune(self) -> None:
        """The trial ends at its next line of metrics."""
        ...

    def close(self) -> None:
        """A trial that is being trained saves itself first."""
        ...
