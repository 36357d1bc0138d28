"""Watch: agents against agents, and recorded games step by step with what an agent thinks of each move."""

from pathlib import Path
from urllib.parse import quote

from nicegui import background_tasks, ui
from nicegui.events import GenericEventArguments

from ludus import games
from ludus.core.errors import Failure
from ludus.core.game import CHAMPION
from ludus.store.reader import find_runs
from ludus.ui.web.deal import Deal
from ludus.ui.web.frame import page_frame
from ludus.ui.web.game import GameElement, Json, describe, list_games, no_such_game, script_of
from ludus.ui.web.recordings import game_of, kinds, recordings
from ludus.ui.web.site import Site
from ludus.ui.web.sitting_page import SittingPage
from ludus.ui.web.sittings import Sittings, shared

RECORDS = "*.games"
"""Files of recorded games that are listed, in the folder of the runs and in those of the runs."""
NEWEST, MOST_FILES, MOST_BYTES, SHOWN = 20, 20, 1 << 20, 100
"""Games of a file that are listed, files, bytes of a file that are read, characters of a game's name."""


def register(site: Site) -> None:
    sittings = shared(site)

    @ui.page("/watch")
    async def choose() -> None:
        with page_frame("Watch"):
            _heading("Agents against agents")
            await list_games("/watch")
            _list_records(site.runs)

    @ui.page("/watch/{game}")
    async def watch(game: str) -> None:
        if not games.has_page(game):
            return await no_such_game(game)
        with page_frame(f"Watch {game}"):
            SittingPage(sittings, game, "watch")

    @ui.page("/replay")
    def replay(text: str = "") -> None:
        with page_frame("Replay"):
            ReplayPage(sittings, text)


def _heading(text: str) -> None:
    with ui.element("h2"):
        ui.html(text, sanitize=False, tag="span")


def _list_records(runs: Path) -> None:
    _heading("Recorded games")
    found, others = record_files(runs), list(recordings(runs))
    if others:
        with ui.element("ul"):
            for name in others:
                with ui.element("li"):
                    ui.link(name, f"/watch/{game_of(name)}?recording={quote(name)}")
    for name, lines in found:
        ui.label(name)
        with ui.element("ul"):
            for line in lines:
                with ui.element("li"):
                    ui.link(_short(line), f"/replay?text={quote(line)}")
    if not found and not others:
        endings = " or ".join([RECORDS[1:], *(ending for _, ending in kinds())])
        ui.label(
            f"None yet. Files that end in {endings} in the folder of the runs are listed here: "
            "ludus play and ludus eval write them with --record."
        ).classes("note")
    with ui.element("form").props('action="/replay" method="get"').classes("bar"):
        with ui.element("label").props('for="text"'):
            ui.html("A game as text", sanitize=False, tag="span")
        ui.element("input").props('id="text" name="text" required')
        with ui.element("button").classes("main"):
            ui.html("Replay", sanitize=False, tag="span")


def record_files(runs: Path) -> list[tuple[str, list[str]]]:
    """Names of files and their newest games, the newest first."""
    places = [runs, *find_runs(runs)]
    files = sorted(
        (file for place in places for file in place.glob(RECORDS)), key=lambda file: -file.stat().st_mtime
    )
    return [(str(file.relative_to(runs)), _newest(file)) for file in files[:MOST_FILES]]


def _newest(file: Path) -> list[str]:
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - MOST_BYTES))
        text = source.read().decode(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith("ludus play ")]
    return lines[: -NEWEST - 1 : -1]


def _short(line: str) -> str:
    """The game, its seed and how it ended."""
    head, _, result = line.removeprefix("ludus play ").rpartition(" # ")
    return f"{head.partition(' --seat')[0]}: {result}"[:SHOWN]


class ReplayPage:
    """A recorded game, one position at a time; every visitor has their own place in it."""

    def __init__(self, sittings: Sittings, text: str) -> None:
        self.sittings, self.text = sittings, text
        self.deal: Deal | None = None
        self.actions: tuple[int, ...] = ()
        self.moves: list[tuple[int, str]] = []  # seats and texts
        self.number, self.adviser = 0, ""
        self.element = GameElement("replay")
        self.element.on("go", self._go)
        self.element.on("adviser", self._advised_by)
        background_tasks.create(self._open())

    async def _open(self) -> None:
        workers = self.sittings.workers
        try:
            self.deal, self.actions = await workers.ask("read_record", self.text.strip())
            about: Json = await describe(self.sittings, self.deal.game, self.deal.switches)
            self.moves = (await workers.ask("position", self.deal, self.actions))["log"]
        except Failure as failure:
            return self.element.show(problem=str(failure))
        self.adviser = CHAMPION if about["champion"] else about["bots"][-1]
        self.element.show(
            about=about, script=script_of(self.deal.game, about), total=len(self.actions),
            names=list(self.deal.names), setup={"seats": list(self.deal.names), "think": self.deal.think},
        )  # fmt: skip
        await self._show(0)

    async def _go(self, event: GenericEventArguments) -> None:
        if type(event.args) is int:
            await self._show(max(0, min(event.args, len(self.actions))))

    async def _advised_by(self, event: GenericEventArguments) -> None:
        self.adviser = str(event.args)[:200]
        await self._show(self.number)

    async def _show(self, number: int) -> None:
        """The position, and then what is thought of it, if nobody has gone on meanwhile."""
        if self.deal is None:
            return
        self.number, actions = number, self.actions[:number]
        try:
            position = await self.sittings.workers.ask("position", self.deal, actions)
            said = f"Move {number} of {len(self.actions)}. " + (position["ending"] or self._next(position))
            over = position["over"]
            self.element.show(position=position, status=said, hints=None, thinking=not over, problem="")
            if over:
                return
            adviser = self.sittings.player(self.adviser)
            found = await self.sittings.workers.ask("advise", self.deal, actions, adviser)
        except Failure as failure:
            return self.element.show(problem=str(failure), thinking=False)
        if number == self.number:
            played = self.actions[number] if number < len(self.actions) else None
            self.element.show(hints={**found, "by": self.adviser, "played": played}, thinking=False)

    def _next(self, position: Json) -> str:
        assert self.deal is not None
        plays = f" and plays {self.moves[self.number][1]}" if self.number < len(self.moves) else ""
        return f"{self.deal.names[position['turn']]} is to move{plays}."
