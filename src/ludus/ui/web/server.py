"""The server: binds an address, puts the guard before NiceGUI, and says where the page is."""

import os
import secrets
import signal
import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from nicegui import app, core, ui
from nicegui.client import Client
from starlette.types import ASGIApp

from ludus.core.errors import Usage
from ludus.ui.web import pages
from ludus.ui.web.guard import LOCAL, Guard
from ludus.ui.web.listener import address, listen
from ludus.ui.web.site import Site

TOKEN_VARIABLE, TOKEN_LENGTH = "LUDUS_WEB_TOKEN", 16
TERMINATED = 128 + signal.SIGTERM
RECONNECT_S = 20.0
"""A page that was away for so long is loaded anew."""


def serve(runs: Path, host: str, port: int, listener: socket.socket | None) -> None:
    """Until interrupted."""
    listener = listener or listen(host, port)
    site = Site(runs, token="" if host in LOCAL else _token())
    guarded = build(site)
    app.on_startup(lambda: print(_welcome(listener, site), flush=True))
    config = uvicorn.Config(
        guarded, log_level="error", access_log=False, server_header=False, proxy_headers=False, ws="wsproto",
        ws_max_size=site.limits.message_bytes, limit_concurrency=site.limits.connections,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(TERMINATED)
    )  # after uvicorn's own: clean up, then leave
    uvicorn.Server(config).run(sockets=[listener])


def build(site: Site) -> Guard:
    """The whole application."""
    core.sio.eio.max_http_buffer_size = site.limits.message_bytes
    app.config.socket_io_js_transports = ["websocket"]
    pages.register_all(site)
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        outer, title="Ludus", dark=None, language="en-US", reconnect_timeout=RECONNECT_S, tailwind=False,
        binding_refresh_interval=None, show_welcome_message=False, gzip_middleware_factory=_packed,
    )  # fmt: skip
    return Guard(outer, site, count_pages=lambda: len(Client.instances))


def _packed(inner: ASGIApp) -> GZipMiddleware:
    """Quickly: with the middleware's default level, the charts' library alone takes four times as long."""
    return GZipMiddleware(inner, compresslevel=1)


def _token() -> str:
    """Of this server: a new one, or the one that is given so that visitors may stay after a restart."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given and len(given) < TOKEN_LENGTH:
        raise Usage(f"${TOKEN_VARIABLE} is too short for a token: {TOKEN_LENGTH} characters at least")
    return given or secrets.token_urlsafe(24)


def _welcome(listener: socket.socket, site: Site) -> str:
    place = address(listener)
    if site.token and TOKEN_VARIABLE not in os.environ:
        place += f"/?token={site.token}"
    return f"the runs of {site.runs} are at {place} (Ctrl-C ends it)"
