"""The local server: it starts, listens on this machine only, and leaves nothing."""

import contextlib
import socket

import psutil
import pytest

from ludus.core.errors import Usage
from ludus.games.pokemon.server import HOST, Server
from pokemon_setup import needs_simulator


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def test_server_starts_and_ends():
    needs_simulator()
    port = free_port()
    with Server(port) as server:
        leader = psutil.Process(server.process.pid)
        processes = [leader, *leader.children(recursive=True)]
        listening = [
            connection.laddr.ip
            for process in processes
            for connection in process.net_connections()
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        ]
        assert listening and set(listening) == {HOST}
        assert server.address == f"ws://127.0.0.1:{port}/showdown/websocket"
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            process.wait(5)
        # Nobody may be there to take note of its end.
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_port_that_is_taken():
    needs_simulator()
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        with pytest.raises(Usage, match=r"port \d+ can't be used .*: choose another with --port"):
            Server(other.getsockname()[1])
