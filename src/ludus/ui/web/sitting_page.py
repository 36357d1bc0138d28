"""The page of a game that is being played or watched."""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import background_tasks, ui
from nicegui.events import GenericEventArguments

from ludus.core.errors import Failure, Usage
from ludus.core.game import CHAMPION
from ludus.ui.web.deal import THINKING
from ludus.ui.web.game import GameElement, Json, describe, script_of
from ludus.ui.web.live_sitting import LiveSitting
from ludus.ui.web.recordings import game_of
from ludus.ui.web.sitting import MOST_WORD, YOU, Setup, Sitting
from ludus.ui.web.sittings import RUN, Sittings

FASTEST = next(iter(THINKING))
NOT_SWITCHES = ("id", "against", "think", "token", "recording")
"""What an address may say beside rule switches."""
MOST_BUTTONS = 16


class SittingPage:
    """Shows a sitting, and tells it what its visitor does. mode: `play`, or `watch` without a person in it"""

    def __init__(self, sittings: Sittings, game: str, mode: str) -> None:
        self.sittings, self.game, self.mode = sittings, game, mode
        self.sitting: Sitting | None = None
        client = ui.context.client
        self.asked = dict(client.request.query_params)
        self.element = GameElement(mode)
        for event, act in {"play": self._play, "hint": self._hint, "begin": self._begin,
                           "describe": self._describe, "hold": self._hold}.items():  # fmt: skip
            self.element.on(event, act)
        self.element.on("undo", lambda: self._do(lambda sitting: sitting.undo()))
        self.element.on("pause", lambda: self.sitting and self.sitting.pause())
        self.element.on("step", lambda: self.sitting and self.sitting.step())
        client.on_delete(self._leave)
        background_tasks.create(self._open())

    # ---- games

    async def _open(self) -> None:
        """The game that the address names, or a new one."""
        found = self.sittings.find(self.asked.get("id", ""), self.game)
        await self._try(self._take(found) if found else self._start())

    async def _start(self) -> None:
        """A new game as the address wants it: switches by name, and `against` for the other seats."""
        switches = {name: value for name, value in self.asked.items() if name not in NOT_SWITCHES}
        given = {"seats": [], "rules": switches, "think": self.asked.get("think", FASTEST)}
        about = await describe(self.sittings, self.game, Setup.read(self.game, given).rules)
        if recording := self.asked.get("recording", ""):
            return await self._replay(recording, about)
        others = self.asked.get("against") or (CHAMPION if about["champion"] else about["bots"][-1])
        alone = about["seats"] == 1 and "against" in self.asked  # then who is named plays
        first = YOU if self.mode == "play" and not alone else others
        await self._sit({**given, "seats": [first, others]}, about)

    async def _replay(self, recording: str, about: Json) -> None:
        self.sittings.recording(recording)  # refuses what is not in the list
        if game_of(recording) != self.game.partition(":")[0]:
            raise Usage(f"{recording} is no recording of {self.game}")
        setup = Setup(self.game, (about["bots"][0],), FASTEST, (), recording)
        await self._take(self.sittings.begin(setup), about)

    async def _sit(self, given: Json, about: Json | None = None) -> None:
        setup = Setup.read(self.game, given)
        about = about or await describe(self.sittings, self.game, setup.rules)
        known = {*about["bots"], *(RUN + run for run in about["runs"])}
        known |= ({CHAMPION} if about["champion"] else set()) | ({YOU} if self.mode == "play" else set())
        seats = seated(setup.seats, about)
        for seat in seats:
            if seat not in known:
                raise Usage(f"{seat} can't play here: choose from {', '.join(sorted(known))}")
        if about["hidden"] and seats.count(YOU) > 1:
            raise Usage("cards are hidden in this game, so only one seat can be yours")
        await self._take(self.sittings.begin(Setup(self.game, seats, setup.think, setup.rules)), about)

    async def _take(self, sitting: Sitting, about: Json | None = None) -> None:
        about = about or await describe(self.sittings, self.game, sitting.setup.rules)
        self._leave()
        self.sitting = sitting
        sitting.listeners.add(self._show)
        setup = {"seats": list(sitting.setup.seats), "think": sitting.setup.think}
        self.element.show(about=about, script=script_of(self.game, about), setup=setup, names=sitting.names)
        with self.element:
            ui.navigate.history.replace(f"/{self.mode}/{self.game}?id={sitting.name}")
        await sitting.open()

    def _leave(self) -> None:
        if self.sitting is not None:
            self.sitting.listeners.discard(self._show)
        if isinstance(self.sitting, LiveSitting):
            self.sitting.hold(())  # nobody is there to let go

    def _show(self) -> None:
        names = ("position", "hints", "status", "problem", "thinking", "paused")
        if self.sitting is not None:
            self.element.show(**{name: getattr(self.sitting, name) for name in names})

    # ---- what the person does

    async def _play(self, event: GenericEventArguments) -> None:
        given = event.args
        if isinstance(given, list) and len(given) == 2 and all(type(each) is int for each in given):
            await self._do(lambda sitting: sitting.play(*given))

    def _hold(self, event: GenericEventArguments) -> None:
        held = event.args
        if isinstance(self.sitting, LiveSitting) and isinstance(held, list) and len(held) <= MOST_BUTTONS:
            self.sitting.hold(str(button)[:MOST_WORD] for button in held)

    async def _hint(self, event: GenericEventArguments) -> None:
        adviser = str(event.args)[:200]
        await self._do(lambda sitting: sitting.hint(adviser))

    async def _begin(self, event: GenericEventArguments) -> None:
        await self._try(self._sit(event.args))

    async def _describe(self, event: GenericEventArguments) -> None:
        """Other rules were chosen: perhaps other seats and players."""
        await self._try(self._offer(event.args))

    async def _offer(self, rules: Any) -> None:
        setup = Setup.read(self.game, {"seats": [], "rules": rules, "think": FASTEST})
        about = await describe(self.sittings, self.game, setup.rules)
        now = self.sitting.setup if self.sitting else Setup(self.game, (YOU,), FASTEST, ())
        self.element.show(about=about, setup={"seats": list(seated(now.seats, about)), "think": now.think})

    async def _do(self, what: Callable[[Sitting], Awaitable[None]]) -> None:
        if self.sitting is not None:
            await what(self.sitting)

    async def _try(self, what: Awaitable[None]) -> None:
        try:
            await what
        except Failure as failure:
            self.element.show(problem=str(failure))


def seated(seats: tuple[str, ...], about: Json) -> tuple[str, ...]:
    """As many as the game has: those who were named, and then the last of the others again."""
    others = [seat for seat in seats if seat != YOU] or about["bots"]
    return (*seats, *[others[-1]] * about["seats"])[: about["seats"]]
