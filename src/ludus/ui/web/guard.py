"""Guard: stands before every request and websocket. Who may come in, from where, and how much they may send.

Plain ASGI: it sees all that comes and all that goes, whatever NiceGUI does behind it.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from ludus.ui.web.site import SESSION, SESSION_ID, THEME, Site, cookies

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "localhost", "::1")
SOCKET_PATH = "/_nicegui_ws/"
FILES = ("/_nicegui/", "/favicon", "/data/")
"""What an open page asks for: it is answered however many pages are open."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    # NiceGUI needs inline scripts and eval; nothing may come from, go to or be framed by another site.
    "content-security-policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'",
}
YEAR_S = 365 * 86400
LOGIN = (Path(__file__).parent / "static" / "login.html").read_text()


class Guard:
    def __init__(self, app: App, site: Site, count_pages: Callable[[], int]) -> None:
        """count_pages: how many pages are open now"""
        self.app, self.site, self.count_pages = app, site, count_pages
        self._key = site.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if refused := self._misplaced(scope, headers):
            return await _refuse(scope, send, *refused)
        session, fresh = self._session(headers)
        if not session:
            return await self._ask_token(scope, receive, send, headers)
        if scope["type"] == "http" and (refused := self._too_much(scope, headers)):
            return await _refuse(scope, send, *refused)
        if scope["type"] == "http" and scope["path"] == "/theme":
            return await self._keep_theme(scope, receive, send)
        scope["ludus.session"] = session
        set_cookie = [self._cookie(SESSION, self._signed(session))] if fresh else []
        await self.app(scope, self._bounded(receive), _with_headers(send, set_cookie))

    # ---- who may come in

    def _misplaced(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Whether another site's page sends this, or another name was made to lead here."""
        host = headers.get("host", "")
        if not self.site.token and _name(host) not in LOCAL:
            return 421, "open the page as 127.0.0.1 or localhost"
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if changes and urlsplit(headers.get("origin", "")).netloc != host:
            return 403, "this comes from another site"
        if scope["type"] == "http" and scope["path"].startswith(SOCKET_PATH):
            return 403, "websockets only"
        return None

    def _session(self, headers: dict[str, str]) -> tuple[str, bool]:
        """Who asks, and whether they are new; nobody if they must show the token first."""
        given = cookies(headers.get("cookie", "")).get(SESSION, "")
        name = given.partition(".")[0]
        if SESSION_ID.fullmatch(name) and hmac.compare_digest(given.encode(), self._signed(name).encode()):
            return name, False
        return ("", False) if self.site.token else (secrets.token_urlsafe(16), True)

    def _signed(self, session: str) -> str:
        """The cookie's value. Without a token anybody on this machine may come in: it is only a name."""
        if not self._key:
            return session
        return f"{session}.{hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()}"

    async def _ask_token(self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        if scope["type"] == "websocket":
            return await _refuse(scope, send, 403, "")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        target, given = scope["path"], query.pop("token", [""])[0]
        if scope["path"] == "/enter" and scope["method"] == "POST":
            form = parse_qs((await _body(receive, self.site.limits.body_bytes)).decode("latin-1"))
            target, given = "/", form.get("token", [""])[0]
        if not hmac.compare_digest(given.strip().encode(), self._key):
            said = "That token is not right." if given else "Enter the token that `ludus web` printed."
            return await _refuse(scope, send, 401, LOGIN.replace("SAID", said), "text/html; charset=utf-8")
        session = secrets.token_urlsafe(16)
        rest = f"?{urlencode(query, doseq=True)}" if query else ""
        extra = [self._cookie(SESSION, self._signed(session)), (b"location", f"{target}{rest}".encode())]
        await _respond(send, 303, b"", "text/plain", extra)

    def _cookie(self, name: str, value: str) -> tuple[bytes, bytes]:
        text = f"{name}={value}; Path=/; Max-Age={YEAR_S}; HttpOnly; SameSite=Strict"
        return b"set-cookie", text.encode()

    # ---- how much

    def _too_much(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.site.limits.body_bytes:
            return 413, "too large"
        is_page = not scope["path"].startswith(FILES)
        if is_page and self.count_pages() >= self.site.limits.pages:
            return 503, "too many pages are open: close some, and try again in a minute"
        return None

    def _bounded(self, receive: Receive) -> Receive:
        """For bodies that don't say how long they are."""
        left = self.site.limits.body_bytes

        async def take() -> MutableMapping[str, Any]:
            nonlocal left
            message = await receive()
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                if left < 0:
                    return {"type": "http.disconnect"}
            return message

        return take

    async def _keep_theme(self, scope: Scope, receive: Receive, send: Send) -> None:
        mode = (await _body(receive, 16)).decode("latin-1")
        if scope["method"] != "POST" or mode not in ("light", "dark"):
            return await _refuse(scope, send, 400, "light or dark")
        await _respond(send, 204, b"", "text/plain", [self._cookie(THEME, mode)])


def _name(host: str) -> str:
    """Of a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


async def _body(receive: Receive, most: int) -> bytes:
    """What is too long is cut, and so does not fit whatever it is compared with."""
    body = b""
    while len(body) <= most:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body[: most + 1]


async def _refuse(
    scope: Scope, send: Send, status: int, said: str, kind: str = "text/plain; charset=utf-8"
) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008})
    await _respond(send, status, said.encode(), kind, [])


async def _respond(send: Send, status: int, body: bytes, kind: str, extra: list[tuple[bytes, bytes]]) -> None:
    headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store"), *extra]
    send = _with_headers(send, [])
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send, extra: list[tuple[bytes, bytes]]) -> Send:
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items()] + extra

    async def give(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return give
