"""Logging in to a Showdown server: passwords are checked by a page, and what goes wrong is told in a line."""

import http.server
import queue
import threading

import pytest

from ludus.core.errors import Usage
from ludus.games.pokemon import client
from ludus.games.pokemon.client import Client
from ludus.games.pokemon.server import free_port

pytest.importorskip("poke_env", reason="the extra `pokemon` is not installed")


@pytest.fixture
def page(monkeypatch):
    """A login page that says what it is told to, and keeps what it was sent."""
    says, sent = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(says[-1].encode())

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as http_server:
        threading.Thread(target=http_server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setattr(client, "LOGIN_PAGE", f"http://127.0.0.1:{http_server.server_port}/login?")
        yield says, sent
        http_server.shutdown()


def log_in(server: str, name: str, password: str = "") -> Client:
    return Client(server, name, queue.Queue(), password=password)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (']{"assertion": ";;Wrong password."}', r"/login refuses the password of ann: Wrong password\.$"),
        ("<html>busy</html>", "/login says nothing about the password of ann: try again later$"),
        ("]{}", "/login says nothing about the password of ann"),
        # The server asks whether the page has signed it.
        (']{"assertion": "forged"}', "ws://.* refuses the name ann: The assertion you sent us is corrupt"),
    ],
)
def test_a_password_that_does_not_help(showdown, page, answer, expected):
    says, sent = page
    says.append(answer)
    with pytest.raises(Usage, match=expected):
        log_in(showdown, "ann", "secret")
    assert sent[0].startswith("act=login&name=ann&pass=secret&challstr=4%7C")


def test_no_page_to_check_a_password(showdown, monkeypatch):
    monkeypatch.setattr(client, "LOGIN_PAGE", f"http://127.0.0.1:{free_port()}/login?")
    with pytest.raises(Usage, match="/login can't be reached: it checks passwords, so play without one"):
        log_in(showdown, "ann", "secret")


def test_a_name_that_is_taken(showdown):
    first = log_in(showdown, "ann")
    try:
        with pytest.raises(Usage, match='refuses the name ANN: Someone is already using the name "ann"'):
            log_in(showdown, "ANN")
    finally:
        first.close()
