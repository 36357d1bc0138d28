"""The page of one game as an element: `static/game.js`, which loads the module that draws the game."""

import asyncio
from typing import Any

from nicegui import app, ui
from nicegui.element import Element
from starlette.responses import FileResponse, Response

from ludus import games
from ludus.core.game import WEB_SCRIPT
from ludus.ui.web.deal import THINKING
from ludus.ui.web.frame import STATIC, page_frame
from ludus.ui.web.sittings import Sittings

PLACE = "/web"
"""Where a browser finds the modules that draw."""
Json = dict[str, Any]


class GameElement(Element, component="static/game.js"):
    """What the properties mean, and which events come back, is said there."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        ui.add_css(STATIC / "game.css")
        self._props.update(mode=mode, status="", problem="", thinking=False, paused=False, names=[], total=0)

    def show(self, **properties: Any) -> None:
        self._props.update(properties)
        self.update()


async def describe(sittings: Sittings, game: str, rules: tuple[str, ...]) -> Json:
    """What a page needs to know of a game before it begins."""
    about: Json = await sittings.workers.ask("describe", game, rules, sittings.run_folders())
    return {**about, "thinking": list(THINKING) if about["page"] == "rules" else []}


def script_of(game: str, about: Json) -> str:
    kind = game.partition(":")[0]
    return f"{PLACE}/games/{kind}.js" if about["script"] == "own" else f"{PLACE}/{about['script']}.js"


async def list_games(place: str) -> None:
    """Links to a page of each game."""
    offered = await asyncio.to_thread(_offered)  # a game may have to look for its variants
    with ui.element("ul"):
        for name, text in offered:
            with ui.element("li"):
                ui.link(text, f"{place}/{name}")


def _offered() -> list[tuple[str, str]]:
    """Names and what to call them."""
    found = []
    for name in games.page_names():
        game = games.find(name)
        found += [(name, game.description()), *((variant, variant) for variant in game.variants())]
    return found


async def no_such_game(name: str) -> None:
    with page_frame("No such game"):
        ui.label(f"There is no game {name!r} here.").classes("problem")
        await list_games("/play")


def serve_scripts() -> None:
    @app.get(f"{PLACE}/games/{{name}}.js")
    def own(name: str) -> Response:
        if name in games.page_names() and (script := games.folder(name) / WEB_SCRIPT).exists():
            return FileResponse(script, media_type="text/javascript", headers={"cache-control": "no-cache"})
        return Response("there is no such game", 404)

    app.add_static_files(PLACE, STATIC, max_cache_age=0)  # after it: the first that fits a path is taken
