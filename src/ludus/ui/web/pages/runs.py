"""The first page: all runs, live."""

import asyncio

from nicegui import ui

from ludus.ui.web.frame import STATIC, page_frame
from ludus.ui.web.hub import LIST, hub_of
from ludus.ui.web.parts import RunsTable
from ludus.ui.web.site import Site


def register(site: Site) -> None:
    hub = hub_of(site)

    @ui.page("/")
    async def runs() -> None:
        ui.add_css(STATIC / "runs.css")
        hub.subscribe(ui.context.client, LIST)
        with page_frame("Runs"):
            RunsTable(await asyncio.to_thread(hub.summaries), site.runs.name)
