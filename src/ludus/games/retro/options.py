"""Options of console games: what the agent sees, which buttons it has, where games start and what is paid."""

from dataclasses import dataclass, fields
from typing import Any

from ludus.core.errors import Usage

REWARD_PARTS = ("integration", "score", "life_lost", "life_gained", "time")
"""What a step's reward is the sum of. Every part is reported for each finished game."""
SHAPING = ("life_lost", "life_gained", "time")
"""Parts that are there to learn by, and are left out of results."""


@dataclass(frozen=True)
class Options:
    buttons: str | tuple[str, ...] = "discrete"
    """Actions: "discrete" for every combination that the game's integration allows, or a list such as
    ("", "RIGHT", "RIGHT+A"). "filtered" lets the same combinations through, so it means the same here."""
    frame_skip: int = 4
    """Emulated frames per decision."""
    sticky: float = 0.0
    """Probability that a frame repeats the buttons of the frame before (Machado et al. 2018)."""
    noop_max: int = 30
    """Games start after 0 to so many frames without buttons, so that they differ."""
    size: int = 84
    """Width and height of an observed frame."""
    frame_stack: int = 4
    """Frames in an observation, the newest last."""
    states: str | tuple[str, ...] = "default"
    """Start states: "default", "all", or a list of names."""
    prioritised: float = 0.0
    """Share of games whose start state is drawn by how badly games from it went lately; others: uniformly."""
    scenario: str = "scenario"
    """Name of the integration's file of rewards and ends, without .json."""
    integration: float = 1.0
    """Weight of the reward that the integration computes."""
    score: float = 0.0
    """Paid per point of the variable `score`."""
    life_lost: float = 0.0
    """Paid per lost life; usually negative."""
    life_gained: float = 0.0
    """Paid per gained life."""
    time: float = 0.0
    """Paid per decision; usually negative."""
    idle_steps: int = 0
    """Cut a game off after so many decisions without any of the integration's reward. 0: never."""
    max_steps: int = 0
    """Cut a game off after so many decisions. 0: never."""
    separate: bool = False
    """Run the emulator in a process of its own, which is replaced without losing a frame if it dies."""

    def __post_init__(self) -> None:
        limits = {
            "frame_skip": (1, 60), "sticky": (0, 0.99), "noop_max": (0, 3600), "size": (16, 256),
            "frame_stack": (1, 16), "prioritised": (0, 1), "idle_steps": (0, 10**9), "max_steps": (0, 10**9),
        }  # fmt: skip
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise Usage(f"retro: {name} is {value}, not in {least}..{most}")


def make_options(**switches: Any) -> Options:
    """Options from plain values, as they come from a command line or a file."""
    known = [field.name for field in fields(Options)]
    for name in switches:
        if name not in known:
            raise Usage(f"console games have no option {name!r}: choose from {', '.join(known)}")
    lists = {name: tuple(value) for name, value in switches.items() if isinstance(value, list)}
    return Options(**switches | lists)
