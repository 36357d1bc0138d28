"""Sitting: one game that is being played or watched, its players, and the pages that show it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ludus import games
from ludus.core.errors import Failure, Usage
from ludus.core.game import Page
from ludus.ui.web.deal import THINKING, Deal

if TYPE_CHECKING:
    from ludus.ui.web.sittings import Sittings

YOU = "you"
"""How the person is named among the players."""
MOST_SEATS, MOST_RULES, MOST_WORD = 8, 20, 100
"""What a browser may send for a new game."""
PACE_S = 0.5
"""Between two moves that are watched."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What was asked for: by names of the listing, never by paths."""

    game: str
    seats: tuple[str, ...]
    think: str
    rules: tuple[str, ...]
    """As people write switches: `seats=2`."""
    recording: str = ""
    """A recorded game to look at, by its name in the list of recordings."""

    @property
    def page(self) -> Page:
        return games.find(self.game).page

    @classmethod
    def read(cls, game: str, given: Any) -> "Setup":
        """What a browser sent, checked."""
        try:
            seats, rules = [str(seat) for seat in given["seats"]], dict(given["rules"])
            words = [f"{name}={value}" for name, value in rules.items()]
            think = str(given["think"])
        except (TypeError, KeyError, ValueError, AttributeError):
            raise Usage("this is not a game that can begin") from None
        if len(seats) > MOST_SEATS or len(words) > MOST_RULES or any(
            len(word) > MOST_WORD for word in (*seats, *words)
        ):  # fmt: skip
            raise Usage("this is not a game that can begin")
        if think not in THINKING:
            raise Usage(f"thinking takes {', '.join(THINKING)}")
        if words and games.find(game).page != "rules":
            raise Usage(f"{game} has no rules to choose here: its runs play as they were trained")
        return cls(game, tuple(seats), think, tuple(words))


class Sitting:
    """One game, its players, and the pages that show it."""

    def __init__(
        self, name: str, setup: Setup, seed: int, home: "Sittings", actions: tuple[int, ...] = ()
    ) -> None:
        self.name, self.setup, self.seed, self.home, self.actions = name, setup, seed, home, actions
        self.position: Json | None = None
        self.hints: Json | None = None
        self.status = self.problem = ""
        self.thinking = False
        self.paused = False
        self.listeners: set[Callable[[], None]] = set()
        self._moving: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._steps = 0

    @property
    def persons(self) -> bool:
        return YOU in self.setup.seats

    @property
    def names(self) -> list[str]:
        """Of all seats, told apart."""
        seats = self.setup.seats
        return [f"{name} (seat {n})" if seats.count(name) > 1 else name for n, name in enumerate(seats)]

    def deal(self) -> Deal:
        """For the workers; fails if a run is gone by now."""
        players = tuple(self.home.player(seat) for seat in self.setup.seats)
        return Deal(self.setup.game, self.setup.rules, self.seed, players, self.setup.seats, self.setup.think)

    # ---- what people do

    async def open(self) -> None:
        """Show where it stands, and let it go on."""
        if self.position is None:
            async with self._lock:
                await self._try(self._look)
        self.go_on()
        self.publish()

    async def play(self, action: int, number: int) -> None:
        """A person's move; number: of the position they saw"""
        async with self._lock:
            if number == len(self.actions) and self._turn() == YOU:
                await self._try(self._play, action)
        self.go_on()

    async def undo(self) -> None:
        """Back to the person's previous decision."""
        async with self._lock:
            if self.position is None or self._is_hidden():
                return
            own = [n for n, (seat, _) in enumerate(self.position["log"]) if self.setup.seats[seat] == YOU]
            if own:
                self.actions = self.actions[: own[-1]]
                await self._try(self._look)
        self.go_on()

    async def hint(self, adviser: str) -> None:
        if self.thinking or self.position is None:
            return
        self.thinking, actions = True, self.actions
        self.publish()
        try:
            await self._try(self._advise, adviser, actions)
        finally:
            self.thinking = False
            self.publish()

    def pause(self) -> None:
        self.paused = not self.paused
        self.go_on()
        self.publish()

    def step(self) -> None:
        self._steps += self.paused
        self.go_on()

    # ---- what happens

    def go_on(self) -> None:
        """Let bots move until it is a person's turn."""
        if self._moving is None or self._moving.done():
            self._moving = asyncio.create_task(self._move())

    async def _move(self) -> None:
        while self._turn() not in ("", YOU) and self.listeners and not (self.paused and not self._steps):
            async with self._lock:
                if self._turn() in ("", YOU) or not await self._try(self._answer):
                    return
                self._steps = max(0, self._steps - 1)
            if not self.persons:
                await asyncio.sleep(PACE_S)

    async def _play(self, action: int) -> None:
        self._moved(
            action, await self.home.workers_of(self).ask("play", self.deal(), self.actions, int(action))
        )

    async def _answer(self) -> None:
        self.status = f"{self._turn()} is thinking."
        self.publish()
        self._moved(*await self.home.workers_of(self).ask("answer", self.deal(), self.actions))

    def _moved(self, action: int, position: Json) -> None:
        self.actions = (*self.actions, action)
        self._shown(position)

    async def _look(self) -> None:
        self._shown(await self.home.workers_of(self).ask("position", self.deal(), self.actions))

    def _shown(self, position: Json) -> None:
        self.position, self.hints = {**position, "game": self.name}, None
        turn = self._turn()
        self.position["yours"] = turn == YOU
        self.status = position["ending"] or ("Your turn." if turn == YOU else f"{turn} is to move.")
        self.home.keep(self)
        self.publish()

    async def _advise(self, adviser: str, actions: tuple[int, ...]) -> None:
        deal = self.deal()
        found = await self.home.workers_of(self).ask("advise", deal, actions, self.home.player(adviser))
        if actions == self.actions:
            self.hints = {**found, "by": adviser}

    async def _try(self, what: Callable[..., Any], *args: Any) -> bool:
        """Whether it worked; if not, everybody is told why."""
        self.problem = ""
        try:
            await what(*args)
        except Failure as failure:
            self.problem = str(failure)
            self.publish()
            return False
        return True

    def _turn(self) -> str:
        """Who is to move, by name; nobody before the game is there and after its end."""
        if self.position is None or self.position["turn"] is None:
            return ""
        return self.setup.seats[self.position["turn"]]

    def _is_hidden(self) -> bool:
        return self.position is not None and self.position["hidden"]

    def publish(self) -> None:
        for listener in list(self.listeners):
            listener()
