"""The server: binds an address, puts the guard before NiceGUI, and says where the page is."""

import errno
import os
import secrets
import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import app, core, ui
from nicegui.client import Client

from ludus.core.errors import Failure, Usage
from ludus.store.disk import reason
from ludus.ui.web import pages
from ludus.ui.web.guard import LOCAL, Guard
from ludus.ui.web.site import Site

TOKEN_VARIABLE, TOKEN_LENGTH = "LUDUS_WEB_TOKEN", 16
RECONNECT_S = 10.0
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
    uvicorn.Server(config).run(sockets=[listener])


def build(site: Site) -> Guard:
    """The whole application."""
    core.sio.eio.max_http_buffer_size = site.limits.message_bytes
    app.config.socket_io_js_transports = ["websocket"]
    pages.register_all(site)
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        outer, title="Ludus", dark=None, language="en-US", reconnect_timeout=RECONNECT_S, tailwind=False,
        binding_refresh_interval=None, show_welcome_message=False,
    )  # fmt: skip
    return Guard(outer, site, count_pages=lambda: len(Client.instances))


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections, which wait until somebody serves them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, OverflowError) as error:
        raise Usage(f"can't listen at {host} port {port}: {reason_of(error)}") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # there it would take a port that another program uses
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Usage(
                f"port {port} is taken: choose another with --port, or 0 for any that is free"
            ) from None
        raise Failure(f"can't listen at {host} port {port}: {reason(error)}") from None
    return listener


def reason_of(error: Exception) -> str:
    return str(error.args[-1]) if error.args else str(error)


def address(listener: socket.socket) -> str:
    """As people type it."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
