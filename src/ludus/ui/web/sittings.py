"""Sittings: games that are being played or watched. All pages that show one see the same.

A sitting is kept as a small file too, so that a restarted server goes on with it.
"""

import functools
import json
import re
import secrets
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ludus.core.cache import cache_home
from ludus.core.errors import Failure, Usage
from ludus.store.player import full_name
from ludus.store.reader import RunReader
from ludus.ui.web.deal import PERSON
from ludus.ui.web.listing import Listing
from ludus.ui.web.live_sitting import LiveSitting
from ludus.ui.web.own_processes import OwnProcesses
from ludus.ui.web.recordings import recordings
from ludus.ui.web.site import Limits, Site
from ludus.ui.web.sitting import YOU, Setup, Sitting
from ludus.ui.web.workers import Workers

RUN = "run "
"""How agents of runs are named among the players, as in `run NAME`."""
NAME = re.compile(r"[A-Za-z0-9_-]{12}")
MOST_KEPT = 200
"""Files of sittings; the oldest go first."""
ENGINES = {"table": "ludus.ui.web.table_engine", "live": "ludus.ui.web.live_engine"}
"""Kind of page -> what the process of a sitting does, where it has one of its own."""


class Sittings:
    """All of them, the oldest first."""

    def __init__(self, runs: Path, most: int, workers: Workers, processes: int = Limits.processes) -> None:
        """processes: of sittings' own, at most"""
        self.listing, self.most, self.workers = Listing(runs), most, workers
        self.own = OwnProcesses(processes)
        self._open: OrderedDict[str, Sitting] = OrderedDict()
        self.folder = cache_home() / "web-games"

    def close(self) -> None:
        self.workers.close()
        self.own.close()

    def begin(self, setup: Setup) -> Sitting:
        for seat in setup.seats:
            self.player(seat)
        return self._add(self._make(secrets.token_urlsafe(9), setup, secrets.randbelow(2**31)))

    def _make(self, name: str, setup: Setup, seed: int, actions: tuple[int, ...] = ()) -> Sitting:
        kind = LiveSitting if setup.page == "live" else Sitting
        return kind(name, setup, seed, self, actions)

    def workers_of(self, sitting: Sitting) -> Workers:
        """Where its game is played."""
        engine = ENGINES.get(sitting.setup.page)
        if engine is None:
            return self.workers
        return self.own.of(sitting.name, engine, lambda: bool(sitting.listeners))

    def find(self, name: str, game: str) -> Sitting | None:
        """One that is open, or that an earlier server kept."""
        if not NAME.fullmatch(name):
            return None
        if name not in self._open:
            try:
                kept = json.loads((self.folder / f"{name}.json").read_text())
                setup = Setup(**{**kept["setup"], **{k: tuple(kept["setup"][k]) for k in ("seats", "rules")}})
                if setup.game != game:
                    return None
                self._add(self._make(name, setup, kept["seed"], tuple(kept["actions"])))
            except (OSError, ValueError, KeyError, TypeError):
                return None
        found = self._open[name]
        return found if found.setup.game == game else None

    def find_live(self, name: str) -> LiveSitting | None:
        """One that is open now and has pictures."""
        found = self._open.get(name)
        return found if isinstance(found, LiveSitting) else None

    def _add(self, sitting: Sitting) -> Sitting:
        idle = [name for name, other in self._open.items() if not other.listeners]
        if len(self._open) >= self.most:
            if not idle:
                raise Failure("too many games are being played now: try again later")
            del self._open[idle[0]]  # its file stays
            self.own.end(idle[0])
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

    # ---- players and recordings by name

    def recording(self, name: str) -> str:
        """As workers read it: the path of a recording that is in the list now; nothing for none."""
        if not name:
            return ""
        found = recordings(self.listing.runs).get(name)
        if found is None:
            raise Usage(f"there is no recording {name} any more")
        return str(found.resolve())

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

    sittings = Sittings(site.runs, site.limits.games, Workers(), site.limits.processes)
    app.on_shutdown(sittings.close)
    return sittings
