"""Who may see the web page and how much they may send; what of a run never reaches it."""

import asyncio
import re
import socket

import pytest

from ludus.core.errors import Usage
from ludus.ui.web import redact
from ludus.ui.web.guard import Guard
from ludus.ui.web.listener import address, listen
from ludus.ui.web.site import Limits, Site

TOKEN = "a-token-that-nobody-guesses"


def ask(site, path="/", method="GET", kind="http", body=b"", query=b"", pages=0, **headers):
    """Through the guard to an application that only says hello: (status, headers, body, what it saw)."""
    sent, seen = [], []

    async def hello(scope, receive, send):
        message = await receive()
        seen.append((scope.get("ludus.session"), message))
        if kind == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"hello"})
        else:
            await send({"type": "websocket.accept"})

    async def receive():
        return {"type": "http.request", "body": body} if kind == "http" else {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    headers = {"host": "127.0.0.1:8484", **headers}
    scope = {"type": kind, "path": path, "query_string": query, "method": method}
    scope["headers"] = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    asyncio.run(Guard(hello, site, lambda: pages)(scope, receive, send))
    first = sent[0]
    got = {name.decode(): value.decode() for name, value in first.get("headers", [])}
    text = b"".join(message.get("body", b"") for message in sent).decode()
    return first.get("status", first["type"]), got, text, seen


def cookie(headers):
    return headers["set-cookie"].partition(";")[0]


@pytest.fixture
def local(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def remote(tmp_path):
    return Site(tmp_path, token=TOKEN)


def test_a_visitor_of_this_machine_comes_in_and_is_known_again(local):
    status, headers, text, seen = ask(local)
    assert (status, text) == (200, "hello")
    assert re.search(r"; HttpOnly; SameSite=Strict$", headers["set-cookie"])
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    again = ask(local, cookie=cookie(headers))
    assert again[3][0][0] == seen[0][0] and "set-cookie" not in again[1]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8484", "", "[", "127.0.0.1.evil.example"])
def test_another_name_does_not_lead_to_this_machine(local, host):
    """A site whose name was made to point here would else read the page from its visitors' browsers."""
    assert ask(local, host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8484"])
def test_this_machine_has_several_names(local, host):
    assert ask(local, host=host)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:9999"])
def test_other_sites_may_not_connect_or_send(local, origin):
    assert ask(local, kind="websocket", origin=origin)[0] == "websocket.close"
    assert ask(local, method="POST", path="/theme", body=b"dark", origin=origin)[0] == 403
    assert ask(local, kind="websocket", origin="http://127.0.0.1:8484")[0] == "websocket.accept"


def test_nothing_is_shown_without_the_token(remote):
    status, headers, text, seen = ask(remote, path="/run/secret-run", host="example.org")
    assert status == 401 and not seen and "set-cookie" not in headers and "secret-run" not in text
    for wrong in (b"token=", b"token=x", b"token=" + TOKEN[:-1].encode(), b"token=%F0%9F%98%80"):
        assert ask(remote, query=wrong)[0] == 401
    for forged in ("ludus_session=" + "a" * 22, f"ludus_session={'a' * 22}.{'0' * 64}", "ludus_session=\x80"):
        assert ask(remote, cookie=forged)[0] == 401
    socket_ = ask(remote, kind="websocket", host="example.org", origin="http://example.org")
    assert socket_[0] == "websocket.close" and not socket_[3]
    assert ask(remote, path="/_nicegui/3/static/nicegui.js")[0] == 401


def test_the_token_opens_the_page_once_and_leaves_the_address(remote):
    status, headers, _, seen = ask(
        remote, path="/run/x", query=f"token={TOKEN}&a=1".encode(), host="example.org"
    )
    assert (status, headers["location"]) == (303, "/run/x?a=1") and not seen
    assert "HttpOnly; SameSite=Strict" in headers["set-cookie"] and TOKEN not in headers["set-cookie"]
    assert ask(remote, cookie=cookie(headers), host="example.org")[0] == 200
    form = f"token={TOKEN}".encode()
    sent = ask(
        remote, path="/enter", method="POST", body=form, host="example.org", origin="http://example.org"
    )
    assert (sent[0], sent[1]["location"]) == (303, "/")
    other = Site(remote.runs, token="another-token-of-a-new-server")
    assert ask(other, cookie=cookie(headers), host="example.org")[0] == 401


def test_what_visitors_send_is_bounded(tmp_path):
    site = Site(tmp_path, limits=Limits(pages=3, body_bytes=100))
    here = "http://127.0.0.1:8484"
    assert ask(site, pages=2)[0] == 200
    assert ask(site, pages=3)[0] == 503
    assert ask(site, path="/_nicegui/x.js", pages=3)[0] == 200
    for length in ("101", "-1", "many"):
        assert ask(site, path="/data", method="POST", origin=here, content_length=length)[0] == 413
    *_, seen = ask(site, path="/data", method="POST", origin=here, body=b"x" * 101)
    assert seen[0][1] == {"type": "http.disconnect"}
    assert ask(site, path="/_nicegui_ws/socket.io")[0] == 403  # no long polling beside the websocket


def test_light_or_dark_is_kept(local):
    here = "http://127.0.0.1:8484"
    status, headers, *_ = ask(local, path="/theme", method="POST", body=b"dark", origin=here)
    assert status == 204 and headers["set-cookie"].startswith("ludus_theme=dark; ")
    assert "HttpOnly" in headers["set-cookie"]
    assert ask(local, path="/theme", method="POST", body=b"dark; Domain=x", origin=here)[0] == 400


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"notify": ["discord://1/s3cret"]}, {"notify": "***"}),
        ({"notify_minutes": 30.0, "notify": []}, {"notify_minutes": 30.0, "notify": []}),
        ({"mirror": "s3://user:s3cret@bucket/x"}, {"mirror": "s3://***"}),
        ({"switches": {"api_key": "s3cret", "seats": 2}}, {"switches": {"api_key": "***", "seats": 2}}),
        ({"reason": "no answer from https://discord.com/api/webhooks/1/s3cret now"},
         {"reason": "no answer from https://discord.com/*** now"}),
        ({"reason": "TOKEN=s3cret, password: 's3cret x' and Authorization: Bearer s3cret"},
         {"reason": "TOKEN=*** password: *** and Authorization: ***"}),
        ({"list": [{"token": "s3cret"}, "mailto://me:s3cret@example.org"]},
         {"list": [{"token": "***"}, "mailto://example.org/***"]}),
        ({"tokens": 12}, {"tokens": 12}),
        ({"reason": "policy lag 3 of 4"}, {"reason": "policy lag 3 of 4"}),
    ],
)  # fmt: skip
def test_secrets_are_hidden(value, shown):
    assert redact.safe(value) == shown


def test_a_port_that_is_taken_is_said_in_one_line():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(Usage, match=f"port {port} is taken: choose another with --port"):
            listen("127.0.0.1", port)
    with pytest.raises(Usage, match="can't listen at"):
        listen("no.such.host.invalid", 8484)
    with pytest.raises(Usage, match="choose one from 0 to 65535"):
        listen("127.0.0.1", 70000)


def test_an_address_of_all_networks_names_this_machine():
    with listen("0.0.0.0", 0) as listener:
        assert address(listener).startswith(f"http://{socket.gethostname()}:")
