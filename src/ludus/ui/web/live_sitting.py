"""LiveSitting: a game in real time. It runs on while somebody looks, and visitors fetch its newest picture.

Each visitor asks for one picture at a time, and always gets the newest: nothing is queued for a slow one.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from ludus.core.view import Json
from ludus.ui.web.deal import Deal
from ludus.ui.web.sitting import YOU, Sitting

TELL_S = 0.5
"""Between two messages about scores and the like; pictures have a way of their own."""
WAIT_S = 5.0
"""For the next picture, of a visitor who has the newest."""


class LiveSitting(Sitting):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.held: frozenset[str] = frozenset()
        self.tapped: frozenset[str] = frozenset()
        """Pressed since the last picture, and perhaps let go again."""
        self.picture, self.pictures = b"", 0
        self._came = asyncio.Event()
        self._told_at = 0.0
        self._what: tuple[Deal, str]
        """Who plays, and the file of a recording: looked up once, when it begins."""

    @property
    def names(self) -> list[str]:
        return [self.setup.recording] if self.setup.recording else super().names

    def hold(self, buttons: Iterable[str]) -> None:
        """The buttons that the person presses now."""
        if self.position is None or self._turn() != YOU:
            return
        self.held = frozenset(buttons) & frozenset(self.position["buttons"])
        self.tapped |= self.held

    async def next_picture(self, after: int) -> tuple[int, bytes] | None:
        """The newest picture and its number, once there is another than number `after`."""
        if self.pictures == after:
            try:
                await asyncio.wait_for(self._came.wait(), WAIT_S)
            except TimeoutError:
                return None
        return (self.pictures, self.picture) if self.picture else None

    # ---- what happens

    async def _look(self) -> None:
        recording = self.home.recording(self.setup.recording)
        self._what = self.deal(), recording
        begun = await self.home.workers_of(self).ask("begin", *self._what)
        yours = self.persons and not recording
        self._shown({
            **begun, "buttons": begun["buttons"] if yours else [], "facts": {}, "number": 0, "hidden": True,
            "over": False, "turn": 0, "log": [], "settled": [], "moves": [], "ending": "", "text": "",
        })  # fmt: skip
        self.status = "You play." if yours else f"{self.names[0]} {'runs' if recording else 'plays'}."

    async def _move(self) -> None:
        while self._turn() and self.listeners and not (self.paused and not self._steps):
            began = time.monotonic()
            async with self._lock:
                if not await self._try(self._advance):
                    return
                self._steps = max(0, self._steps - 1)
            assert self.position is not None
            await asyncio.sleep(max(0.0, began + self.position["picture_s"] - time.monotonic()))

    async def _advance(self) -> None:
        assert self.position is not None
        held, self.tapped = tuple(sorted(self.held | self.tapped)), frozenset()
        self.picture, facts, over = await self.home.workers_of(self).ask("advance", *self._what, held)
        self.pictures += 1
        came, self._came = self._came, asyncio.Event()
        came.set()
        self._tell(facts, over)

    def _tell(self, facts: Json, over: bool) -> None:
        assert self.position is not None
        now = time.monotonic()
        if not over and (facts == self.position["facts"] or now < self._told_at + TELL_S):
            return
        self._told_at = now
        turn, number = None if over else 0, self.position["number"] + 1
        self.position = {**self.position, "facts": facts, "over": over, "turn": turn, "number": number}
        said = ", ".join(f"{name} {value}" for name, value in facts.items())
        if over:
            what = "recording" if self.setup.recording else "game"
            self.status = f"The {what} is over: {said}." if said else f"The {what} is over."
            self.position["yours"] = False
        self.publish()

    async def _play(self, action: int) -> None:
        """Nothing: buttons are held, not played."""

    async def _advise(self, adviser: str, actions: tuple[int, ...]) -> None:
        """Nothing: it would be too late."""
