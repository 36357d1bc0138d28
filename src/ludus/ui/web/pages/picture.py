"""Pictures of games in real time: one for each request, always the newest."""

from fastapi import Response
from nicegui import app

from ludus.ui.web.site import Site
from ludus.ui.web.sittings import shared

NUMBER = "x-picture"


def register(site: Site) -> None:
    sittings = shared(site)

    @app.get("/data/games/{name}/picture")
    async def picture(name: str, after: int = 0) -> Response:
        """after: the number of the picture that the visitor has"""
        sitting = sittings.find_live(name)
        if sitting is None:
            return Response("there is no such game", 404)
        found = await sitting.next_picture(after)
        if found is None:
            return Response(status_code=204)
        number, png = found
        headers = {NUMBER: str(number), "cache-control": "no-store"}
        return Response(png, media_type="image/png", headers=headers)
