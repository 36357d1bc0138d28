"""Notifications: short messages about a run to Discord, mail, a chat... They never slow or stop a training.

Discord's webhooks are posted to directly, since apprise doesn't wait as long as Discord asks; all other
addresses are apprise's. An address is a secret: only `hidden` makes text of it.
"""

import json
import logging
import re
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from ludus.core import extras
from ludus.core.errors import Usage

Kind = Literal["info", "success", "warning", "failure"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # mildest first
MARKS: dict[Kind, str] = {"info": "", "success": "✅ ", "warning": "⚠️ ", "failure": "❌ "}

DISCORD = "discord+"
"""Before an http(s) URL: a webhook that takes what Discord's take, wherever it is."""

TITLE_LENGTH, BODY_LENGTH = 200, 1700  # together below the 2,000 characters that Discord takes
LONGEST_WAIT_S = 600.0  # whatever a server asks for

# In all other schemes, such as slack://, what stands in the host's place may be a token.
HOST_IS_NO_SECRET = ("http", "https", "json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos")


# ---- addresses


def addresses(flags: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Where to send: the --notify URLs and DISCORD_WEBHOOK_URL, checked, each once."""
    found = [_checked(flag.strip(), "--notify") for flag in flags]
    webhook = environ.get("DISCORD_WEBHOOK_URL", "").strip()
    if webhook:
        mark = DISCORD if webhook.startswith(("http://", "https://")) else ""
        found.append(_checked(mark + webhook, "DISCORD_WEBHOOK_URL"))
    return list(dict.fromkeys(found))


def _checked(url: str, source: str) -> str:
    if re.match(r"https?://[^/]+/api/(v\d+/)?webhooks/", url):
        url = DISCORD + url
    readable = _is_webhook(url) if url.startswith(DISCORD) else _apprise(url, source)
    if not readable:
        shown = hidden(url) if "://" in url else "***"
        raise Usage(f"{source} {shown} is no address for notifications: see github.com/caronc/apprise")
    return url


def _is_webhook(url: str) -> bool:
    try:
        parts = urlsplit(url.removeprefix(DISCORD))
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False


def _apprise(url: str, source: str = "--notify") -> Any:
    """apprise's sender for a URL; None if it can't read it."""
    try:
        import apprise
    except ImportError:
        raise extras.missing(source, "apprise") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its lines name the URL
    sender = apprise.Apprise()
    return sender if sender.add(url) else None


def hidden(text: str) -> str:
    """A URL, or a text with URLs in it, for logs, files and pages: scheme and host stay, the rest is ***."""
    if re.match(r"[\w+.-]+://", text):
        return _hidden_url(text)
    return re.sub(r"[\w+.-]+://\S+", lambda url: _hidden_url(url.group()), text)


def _hidden_url(url: str) -> str:
    scheme, rest = url.split("://", 1)
    authority, after = re.fullmatch(r"([^/?#]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    host = authority.rpartition("@")[2]
    if "@" in after and "@" not in authority:  # a password with a slash in it: this is no host
        host = ""
    known = scheme.lower().removeprefix(DISCORD) in HOST_IS_NO_SECRET
    if not known or not re.fullmatch(r"([\w.-]+|\[[\da-fA-F:.]+\])(:\d+)?", host):
        return f"{scheme}://***"
    return f"{scheme}://{host}" + ("/***" if after.strip("/") or "@" in authority else "")


# ---- sending


@dataclass(frozen=True)
class Message:
    title: str
    body: str
    kind: Kind


class NotSent(Exception):
    """Why a message did not arrive; again: whether another try may help, after_s: when the server said so."""

    def __init__(self, why: str, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.again, self.after_s = again, after_s


class Notifier:
    """Sends what is said, in a thread of its own, to all addresses.

    say() never waits. Messages that come sooner than every_s after the last are sent together as one.
    A message that can't be sent is tried again a few times, retry_s later and then ever more slowly, and
    then lost. on_error hears of the first loss of each address, from the sending thread.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        on_error: Callable[[str], None] = lambda text: None,
        every_s: float = 5.0,
        retry_s: float = 1.0,
        tries: int = 4,
        timeout_s: float = 10.0,
        capacity: int = 50,
    ) -> None:
        self.sent = self.dropped = self.errors = 0
        self._senders = {address: _sender(address, timeout_s) for address in addresses}
        self._on_error, self._every_s, self._retry_s, self._tries = on_error, every_s, retry_s, tries
        self._told: set[str] = set()
        self._queue: deque[Message] = deque(maxlen=capacity)
        self._changed = threading.Condition()
        self._closing, self._gone = False, threading.Event()
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
        self._thread.start()

    def say(self, title: str, body: str, kind: Kind = "info") -> None:
        """Send soon. The oldest message makes room when too many wait."""
        with self._changed:
            if self._closing or not self._senders:
                return
            self.dropped += len(self._queue) == self._queue.maxlen
            self._queue.append(Message(title[:TITLE_LENGTH], _end(body), kind))
            self._changed.notify()

    def close(self, wait_s: float = 5.0) -> None:
        """Send what waits, for at most wait_s; then give up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(wait_s)
        self._gone.set()

    def _run(self) -> None:
        next_s = 0.0
        while not self._gone.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                self._changed.wait_for(lambda: self._closing, next_s - time.monotonic())
                messages = list(self._queue)
                self._queue.clear()
            if not messages:
                return
            self._deliver(_merged(messages))
            next_s = time.monotonic() + self._every_s

    def _deliver(self, message: Message) -> None:
        waiting = list(self._senders)
        for attempt in range(1, self._tries + 1):
            failed = self._attempt(waiting, message)
            waiting = [address for address, error in failed.items() if error.again and attempt < self._tries]
            for address, error in failed.items():
                if address not in waiting:
                    self._lost(address, error)
            if not waiting:
                return
            asked_s = max(failed[address].after_s for address in waiting)
            if self._gone.wait(max(asked_s, self._retry_s * 2 ** (attempt - 1))):
                return

    def _attempt(self, waiting: list[str], message: Message) -> dict[str, NotSent]:
        failed = {}
        for address in waiting:
            try:
                self._senders[address](message)
                self.sent += 1
            except NotSent as error:
                failed[address] = error
            except Exception as error:  # whatever a library does, training goes on
                failed[address] = NotSent(type(error).__name__)
        return failed

    def _lost(self, address: str, error: NotSent) -> None:
        self.errors += 1
        if address not in self._told:
            self._told.add(address)
            with suppress(Exception):
                self._on_error(f"notifications to {hidden(address)} fail: {error}")


def _merged(messages: list[Message]) -> Message:
    """Several messages as one, under the title of the gravest, of equals the newest."""
    if len(messages) == 1:
        return messages[0]
    gravest = max(reversed(messages), key=lambda message: KINDS.index(message.kind))
    lines = [f"{message.title}: {message.body}" for message in messages]
    return Message(f"{gravest.title} (and {len(messages) - 1} more)", _end("\n".join(lines)), gravest.kind)


def _end(body: str) -> str:
    """The newest part of a body that is too long."""
    return body if len(body) <= BODY_LENGTH else "…" + body[1 - BODY_LENGTH :]


def _sender(address: str, timeout_s: float) -> Callable[[Message], None]:
    if address.startswith(DISCORD):
        return lambda message: _post(address.removeprefix(DISCORD), message, timeout_s)
    sender = _apprise(address)

    def send(message: Message) -> None:
        if not sender.notify(title=message.title, body=message.body, notify_type=message.kind):
            raise NotSent("apprise could not deliver")

    return send


def _post(webhook: str, message: Message, timeout_s: float) -> None:
    text = f"{MARKS[message.kind]}**{message.title}**\n{message.body}"
    content = {"content": text, "allowed_mentions": {"parse": []}}
    # Discord turns away urllib's own User-Agent.
    headers = {"Content-Type": "application/json", "User-Agent": "ludus"}
    request = urllib.request.Request(webhook, json.dumps(content).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=timeout_s).close()
    except urllib.error.HTTPError as error:
        error.close()
        again = error.code == 429 or error.code >= 500
        raise NotSent(f"HTTP {error.code}", again, _seconds(error.headers.get("Retry-After"))) from None
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NotSent(getattr(reason, "strerror", None) or type(reason).__name__) from None


def _seconds(retry_after: str | None) -> float:
    try:
        asked_s = float(retry_after or 0)
    except ValueError:  # a date: the usual wait must do
        return 0.0
    return asked_s if 0 <= asked_s <= LONGEST_WAIT_S else LONGEST_WAIT_S
