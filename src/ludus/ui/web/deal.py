"""Deal: everything about a game but its moves. Server and workers speak of games by it."""

from dataclasses import dataclass

PERSON = ""
"""The player of a seat that somebody at a browser has."""
THINKING: dict[str, tuple[str, str]] = {"0.1 s": ("100ms", ""), "1 s": ("1s", "1s"), "3 s": ("3s", "3s")}
"""About how long a move may take: of those that search, and of policies, which are quick alone."""


@dataclass(frozen=True)
class Deal:
    game: str
    switches: tuple[str, ...]
    """As people write them: `seats=2`."""
    seed: int
    players: tuple[str, ...]
    """For each seat, as `match.player` reads it, or PERSON. Nobody in a game that is only looked at."""
    names: tuple[str, ...]
    """For each seat, as people read it."""
    think: str = "1 s"
    """Of THINKING."""
    row: int = 0
    """Which deal of the seed."""

    @property
    def persons(self) -> list[int]:
        return [seat for seat, player in enumerate(self.players) if player == PERSON]
