"""Play: a game against bots, the champion and the agents of runs."""

from nicegui import ui

from ludus import games
from ludus.ui.web.frame import page_frame
from ludus.ui.web.game import list_games, no_such_game, serve_scripts
from ludus.ui.web.site import Site
from ludus.ui.web.sitting_page import SittingPage
from ludus.ui.web.sittings import shared


def register(site: Site) -> None:
    sittings = shared(site)
    serve_scripts()

    @ui.page("/play")
    async def choose() -> None:
        with page_frame("Play"):
            await list_games("/play")

    @ui.page("/play/{game}")
    async def play(game: str) -> None:
        if not games.has_page(game):
            return await no_such_game(game)
        with page_frame(f"Play {game}"):
            SittingPage(sittings, game, "play")
