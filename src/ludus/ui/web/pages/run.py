"""One run: its facts, curves, opponents, events, configuration and checkpoints, live; and its data."""

import asyncio
import csv
import io
from collections.abc import Iterator
from typing import Any

from fastapi import Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from nicegui import app, background_tasks, ui

from ludus.core.errors import Failure
from ludus.store.reader import RunReader
from ludus.ui.web.frame import STATIC, page_frame
from ludus.ui.web.hub import RUN, Busy, Hub, encoded, hub_of, told
from ludus.ui.web.parts import CurvesView, RunView
from ludus.ui.web.play_link import play_link
from ludus.ui.web.site import Site
from ludus.ui.web.watched import WatchedRun

CSV_LINES = 500
"""Lines that are sent together."""
NOT_CACHED = {"Cache-Control": "no-store"}
GONE = "There is no such run: it may have been deleted or renamed."


def register(site: Site) -> None:
    hub = hub_of(site)
    downloads = asyncio.Semaphore(2)

    @ui.page("/run/{name}")
    async def show(name: str) -> None:
        ui.add_css(STATIC / "runs.css")
        try:
            run = hub.watched(name)
        except Busy as busy:
            return missing(str(busy))
        if run is None:
            return missing(GONE)
        background_tasks.create(asyncio.to_thread(run.begin))  # while the browser loads the page
        hub.subscribe(ui.context.client, RUN + name)
        first, config, link = await asyncio.to_thread(lambda: (told(run), run.config(), _link(name, run)))
        with page_frame(name), RunView(name, first, config, link):
            CurvesView([name])

    @app.get("/data/{name}/curves")
    async def curves(name: str, low: float | None = None, high: float | None = None) -> Response:
        try:
            packed = await _packed(hub, name, low, high)
        except Busy as busy:
            return PlainTextResponse(str(busy), 503)
        if packed is None:
            return PlainTextResponse(GONE, 404)
        zipped = {"Content-Encoding": "gzip"} if packed[:2] == b"\x1f\x8b" else {}
        return Response(packed, media_type="application/json", headers={**NOT_CACHED, **zipped})

    @app.get("/data/{name}/metrics.csv")
    async def as_csv(name: str) -> Response:
        run = hub.watched(name)
        if run is None:
            return PlainTextResponse(GONE, 404)
        if downloads.locked():
            return PlainTextResponse("Others download just now: try again in a moment.", 503)
        await asyncio.to_thread(run.whole)  # then all columns are known

        async def lines() -> Any:
            async with downloads:
                rows = csv_of(run)
                while part := await asyncio.to_thread(next, rows, ""):
                    yield part

        return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=NOT_CACHED)


def _link(name: str, run: WatchedRun) -> dict[str, Any] | None:
    try:
        return play_link(name, RunReader(run.folder).config)
    except Failure:  # the page says what is wrong with it
        return None


async def _packed(hub: Hub, name: str, low: float | None, high: float | None) -> bytes | None:
    if low is None and high is None:
        return await hub.curves(name)
    run = hub.watched(name)
    if run is None:
        return None
    return await asyncio.to_thread(
        lambda: encoded(run.part(low or 0.0, float("inf") if high is None else high))
    )


def missing(why: str) -> None:
    """A page for a run that is not there."""
    ui.context.client.status_code = 404
    with page_frame("No such run"):
        ui.label(why).classes("panel")
        ui.link("All runs", "/")


def csv_of(run: WatchedRun) -> Iterator[str]:
    """All lines of metrics, exactly as they were written, some at a time."""
    names = list(run.curves.last)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, extrasaction="ignore")
    writer.writeheader()
    for number, line in enumerate(RunReader(run.folder).metrics(), 1):
        writer.writerow(line)
        if number % CSV_LINES == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()
