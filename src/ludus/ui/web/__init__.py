"""The web page: runs live, compared and explained, and games to play and watch, in a browser.

Only reads run folders, through the same readers as everything else, so no training ever waits for it.
NiceGUI is imported where it is used: `ludus --help` and a training without a page must not pay for it.
"""

import importlib.util
import socket
from pathlib import Path

from ludus.core import extras

HOST, PORT = "127.0.0.1", 8484


def serve(runs: Path, host: str = HOST, port: int = PORT, listener: socket.socket | None = None) -> None:
    """Serve until interrupted. listener: a socket that listens already; default: bind host and port"""
    refuse_without_library("ludus web")
    from ludus.ui.web import server

    server.serve(runs, host, port, listener)


def refuse_without_library(what: str) -> None:
    """what: the command that needs the page"""
    if importlib.util.find_spec("nicegui") is None:
        raise extras.missing(what, "nicegui")
