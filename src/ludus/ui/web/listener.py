"""The socket that the page is served at. Knows nothing of NiceGUI: a training binds it at once."""

import errno
import socket
import sys

from ludus.core.errors import Failure, Usage
from ludus.store.disk import reason

MOST_PORT = 65535


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections, which wait until somebody serves them."""
    if not 0 <= port <= MOST_PORT:
        raise Usage(f"--port {port} is none: choose one from 0 to {MOST_PORT}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise Usage(f"can't listen at {host} port {port}: {error.args[-1]}") from None
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


def address(listener: socket.socket) -> str:
    """As people type it."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
