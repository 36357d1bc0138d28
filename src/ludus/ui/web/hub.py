"""The hub: reads each run once, and tells all pages that show it what is new. It never waits for a page."""

import asyncio
import functools
import gzip
import logging
import time
from dataclasses import asdict
from typing import Any

import orjson
from nicegui import Client, app, background_tasks

from ludus.core.errors import Failure
from ludus.ui.web import redact
from ludus.ui.web.listing import Listing
from ludus.ui.web.site import Site
from ludus.ui.web.watched import WatchedRun, warm_up

TICK_S, LIST_S, FACTS_S = 0.5, 2.0, 1.0
"""Between two looks at the curves, at the list of runs, and at whether a run still lives."""
MOST_RUNS, FORGET_S = 32, 120.0
"""Runs that are kept in memory, and how long one that nobody looks at any more."""
LIST = "list"
"""The topic of the list of runs; that of a run is its name after `RUN`."""
RUN = "run:"


class Busy(Failure):
    """Too much is asked for at the same time."""


class Hub:
    def __init__(self, site: Site) -> None:
        self.listing = Listing(site.runs)
        self._subscribers: dict[str, set[str]] = {}
        """Topic -> clients."""
        self._watched: dict[str, WatchedRun] = {}
        self._used: dict[str, float] = {}
        self._sent: dict[str, bytes] = {}
        """Topic -> what was last told: the same is not told twice."""
        self._whole: dict[str, tuple[tuple[int, int], bytes]] = {}
        """Run -> state of its curves, and all of them, packed."""
        app.on_startup(lambda: background_tasks.create(self._loop(), name="hub"))
        app.on_startup(lambda: background_tasks.create(asyncio.to_thread(warm_up), name="warm up"))

    # ---- pages

    def subscribe(self, client: Client, topic: str) -> None:
        """Tell a page of a topic until it is closed."""
        self._subscribers.setdefault(topic, set()).add(client.id)
        client.on_delete(lambda: self._leave(client.id, topic))
        client.on_connect(lambda: self._repeat(topic))

    def _repeat(self, topic: str) -> None:
        """What was told while a page was being loaded is told again."""
        for key in [key for key in self._sent if key.startswith(topic)]:
            del self._sent[key]

    def _leave(self, client: str, topic: str) -> None:
        left = self._subscribers.get(topic, set())
        left.discard(client)
        if not left:
            self._subscribers.pop(topic, None)
            self._repeat(topic)

    def watched(self, name: str) -> WatchedRun | None:
        """A run by its name; None if there is none."""
        folder = self.listing.folder(name)
        if folder is None:
            self._watched.pop(name, None)
            return None
        self._used[name] = time.monotonic()
        if name not in self._watched:
            self._make_room()
            self._watched[name] = WatchedRun(folder)
        return self._watched[name]

    def _make_room(self) -> None:
        if len(self._watched) < MOST_RUNS:
            return
        idle = [name for name in self._watched if RUN + name not in self._subscribers]
        if not idle:
            raise Busy(f"{MOST_RUNS} runs are being looked at: close some pages")
        self._forget(min(idle, key=lambda name: self._used.get(name, 0.0)))

    def _forget(self, name: str) -> None:
        self._watched.pop(name, None)
        self._whole.pop(name, None)
        self._used.pop(name, None)

    async def curves(self, name: str) -> bytes | None:
        """All curves of a run as gzipped JSON; None if there is no such run."""
        run = self.watched(name)
        if run is None:
            return None
        whole = await asyncio.to_thread(run.whole)
        place = whole["generation"], whole["offset"]
        if name not in self._whole or self._whole[name][0] != place:
            packed = await asyncio.to_thread(lambda: gzip.compress(encoded(whole), 3))
            self._whole[name] = place, packed
        return self._whole[name][1]

    # ---- what is new

    async def _loop(self) -> None:
        due: dict[str, float] = {}
        while True:
            await asyncio.sleep(TICK_S)
            for topic in list(self._subscribers):
                try:
                    await self._look(topic, due)
                except Exception:  # whatever is wrong with one run, the others are still told
                    logging.getLogger(__name__).exception("can't tell of %s", topic)
            for name, used in list(self._used.items()):
                if RUN + name not in self._subscribers and time.monotonic() - used > FORGET_S:
                    self._forget(name)

    async def _look(self, topic: str, due: dict[str, float]) -> None:
        now = time.monotonic()
        is_due = now >= due.get(topic, 0.0)
        if is_due:
            due[topic] = now + (LIST_S if topic == LIST else FACTS_S)
        if topic == LIST:
            if is_due:
                self._tell(topic, {"runs": await asyncio.to_thread(self.summaries)})
            return
        run = await asyncio.to_thread(self.watched, topic.removeprefix(RUN))
        if run is None:
            return self._tell(topic, {"gone": True})
        if news := await asyncio.to_thread(run.news):
            self._tell(topic, {"curves": news})
        if is_due:
            for kind, what in (await asyncio.to_thread(told, run)).items():
                self._tell(topic, {kind: what}, key=f"{topic} {kind}")

    def summaries(self) -> list[dict[str, Any]]:
        return [redact.safe(asdict(summary)) for summary in self.listing.read()]

    def _tell(self, topic: str, what: dict[str, Any], key: str = "") -> None:
        """key: under which it is remembered what was told; by default each topic tells one thing"""
        message = encoded(what)
        if "curves" not in what:
            if self._sent.get(key or topic) == message:
                return
            self._sent[key or topic] = message
        code = f"ludus.receive({orjson.dumps(topic).decode()}, {message.decode()})"
        for identity in list(self._subscribers.get(topic, ())):
            if (client := Client.instances.get(identity)) and client.has_socket_connection:
                client.run_javascript(code)


@functools.cache
def hub_of(site: Site) -> Hub:
    """The one that all pages of a site share."""
    return Hub(site)


def told(run: WatchedRun) -> dict[str, Any]:
    """What a run's page shows beside its curves."""
    try:
        return {"facts": run.facts(), "events": run.events()}
    except Failure as failure:
        return {"problem": redact.text(str(failure))}


def encoded(what: Any) -> bytes:
    """NaN becomes null."""
    return orjson.dumps(what, option=orjson.OPT_SERIALIZE_NUMPY)
