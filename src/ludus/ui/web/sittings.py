"""Sittings: games that are being played or watched. All pages that show one see the same.

A sitting is kept as a small file too, so that a restarted server goes on with it.
"""

import asyncio
import functools
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ludus.core.cache import cache_home
from ludus.core.errors import Failure, Usage
from ludus.store.player import full_name
from ludus.store.reader import RunReader
from ludus.ui.web.deal import PERSON, THINKING, Deal
from ludus.ui.web.listing import Listing
from ludus.ui.web.site import Site
from ludus.ui.web.workers import Workers

YOU, RUN = "you", "run "
"""How players are named beside bots: the person, and the agents of runs, as in `run NAME`."""
NAME = re.compile(r"[A-Za-z0-9_-]{12}")
MOST_KEPT = 200
"""Files of sittings; the oldest go first."""
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
        self._moved(action, await self.home.workers.ask("play", self.deal(), self.actions, int(action)))

    async def _answer(self) -> None:
        self.status = f"{self._turn()} is thinking."
        self.publish()
        self._moved(*await self.home.workers.ask("answer", self.deal(), self.actions))

    def _moved(self, action: int, position: Json) -> None:
        self.actions = (*self.actions, action)
        self._shown(position)

    async def _look(self) -> None:
        self._shown(await self.home.workers.ask("position", self.deal(), self.actions))

    def _shown(self, position: Json) -> None:
        self.position, self.hints = {**position, "game": self.name}, None
        turn = self._turn()
        self.position["yours"] = turn == YOU
        self.status = position["ending"] or ("Your turn." if turn == YOU else f"{turn} is to move.")
        self.home.keep(self)
        self.publish()

    async def _advise(self, adviser: str, actions: tuple[int, ...]) -> None:
        deal = self.deal()
        found = await self.home.workers.ask("advise", deal, actions, self.home.player(adviser))
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


class Sittings:
    """All of them, the oldest first."""

    def __init__(self, runs: Path, most: int, workers: Workers) -> None:
        self.listing, self.most, self.workers = Listing(runs), most, workers
        self._open: OrderedDict[str, Sitting] = OrderedDict()
        self.folder = cache_home() / "web-games"

    def begin(self, setup: Setup) -> Sitting:
        for seat in setup.seats:
            self.player(seat)
        return self._add(Sitting(secrets.token_urlsafe(9), setup, secrets.randbelow(2**31), self))

    def find(self, name: str, game: str) -> Sitting | None:
        """One that is open, or that an earlier server kept."""
        if not NAME.fullmatch(name):
            return None
        if name not in self._open:
            try:
                kept = json.loads((self.folder / f"{name}.json").read_text())
                setup = Setup(**{**kept["setup"], **{k: tuple(kept["setup"][k]) for k in ("seats", "rules")}})
                self._add(Sitting(name, setup, kept["seed"], self, tuple(kept["actions"])))
            except (OSError, ValueError, KeyError, TypeError):
                return None
        found = self._open[name]
        return found if found.setup.game == game else None

    def _add(self, sitting: Sitting) -> Sitting:
        idle = [name for name, other in self._open.items() if not other.listeners]
        if len(self._open) >= self.most:
            if not idle:
                raise Failure("too many games are being played now: try again later")
            del self._open[idle[0]]  # its file stays
        self._open[sitting.name] = sitting
        return sitting

    def keep(self, sitting: Sitting) -> None:
        """For a server that is started later; where nothing can be written, games end with this one."""
        told = {"setup": asdict(sitting.setup), "seed": sitting.seed, "actions": sitting.actions}
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.folder / f"{sitting.name}.json"
            file.with_suffix(".new").write_text(json.dumps(told))
            file.with_suffix(".new").replace(file)
            if not sitting.actions:
                self._forget_old()

    def _forget_old(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda each: each.stat().st_mtime)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)

    # ---- players by name

    def run_folders(self) -> tuple[tuple[str, str], ...]:
        found = ((name, self.listing.folder(name)) for name in self.listing.names())
        return tuple((name, str(folder.resolve())) for name, folder in found if folder)

    def player(self, name: str) -> str:
        """As workers read it: agents of runs are looked up in the listing and have a path, bots have none."""
        if name == YOU:
            return PERSON
        if not name.startswith(RUN):
            return name
        folder = self.listing.folder(name.removeprefix(RUN))
        if folder is None:
            raise Usage(f"there is no {name} any more")
        return full_name(str(folder.resolve()), "best" if RunReader(folder).best else "")


@functools.cache
def shared(site: Site) -> Sittings:
    """Those of a site, which all its pages share."""
    from nicegui import app

    sittings = Sittings(site.runs, site.limits.games, Workers())
    app.on_shutdown(sittings.workers.close)
    return sittings
