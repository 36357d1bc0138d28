"""Site: what every page is given. Knows nothing of NiceGUI."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

SESSION, THEME = "ludus_session", "ludus_theme"
"""Cookies: who a visitor is, and whether they chose light or dark."""
SESSION_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True)
class Limits:
    """What visitors can use at most, all of them together unless it says otherwise."""

    pages: int = 200
    """Pages that are open at the same time."""
    connections: int = 1000
    body_bytes: int = 1 << 16
    """Of a request."""
    message_bytes: int = 1 << 18
    """Of a message through the websocket."""
    think_s: float = 10.0
    """Of an opponent, for one move."""
    games: int = 50
    """Games being played or watched at the same time."""
    processes: int = 8
    """Games among them that take a process of their own: battles and console games."""


@dataclass(frozen=True)
class Site:
    runs: Path
    """The folder whose runs are shown; a run is known by the name of its folder in there, never by a path."""
    token: str = ""
    """What a visitor must show once; empty if only this machine can reach the page."""
    limits: Limits = field(default_factory=Limits)


def visitor(scope: Mapping[str, Any]) -> str:
    """The session of a request's scope; in a page: `visitor(ui.context.client.request.scope)`."""
    return scope["ludus.session"]


def cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}
