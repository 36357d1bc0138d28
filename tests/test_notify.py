"""Notifications, sent to a server on this machine that plays Discord's webhooks, in good moods and bad."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ludus.core.errors import Usage
from ludus.store.notify import Notifier, addresses, hidden
from trainings import limit

TOKEN = "s3cr3t-t0ken"


class Webhook(ThreadingHTTPServer):
    """Answers each post with the next of `moods`, and with 204 when there are none left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.moods: list[tuple[int, dict[str, str]]] = []
        self.always: int = 204
        self.hang = threading.Event()
        self.posts: list[tuple[float, dict]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def contents(self) -> list[str]:
        return [post["content"] for _, post in self.posts]


class Answer(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((time.monotonic(), json.loads(body)))
        if self.server.hang.is_set():
            time.sleep(30)
        code, headers = self.server.moods.pop(0) if self.server.moods else (self.server.always, {})
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def server():
    server = Webhook()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def notifier(server):
    """Makes notifiers for the server, with errors collected in their list `heard`."""
    made = []

    def notifier(*urls: str, **settings) -> Notifier:
        urls = urls or tuple(addresses([], {"DISCORD_WEBHOOK_URL": f"http://{server.host}/hook/{TOKEN}"}))
        heard: list[str] = []
        made.append(Notifier(urls, on_error=heard.append, **({"every_s": 0.0, "retry_s": 0.02} | settings)))
        made[-1].heard = heard
        return made[-1]

    yield notifier
    for each in made:
        each.close(0)


def until(true, wait_s: float = 5.0) -> None:
    end = time.monotonic() + wait_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


# ---- addresses


def test_flags_and_the_environment_are_read_each_address_once():
    discord = "https://discord.com/api/webhooks/123/abc"
    found = addresses(["json://localhost/a", "json://localhost/a", discord], {"DISCORD_WEBHOOK_URL": discord})
    assert found == ["json://localhost/a", f"discord+{discord}"]
    assert addresses([], {}) == addresses([], {"DISCORD_WEBHOOK_URL": " "}) == []


@pytest.mark.parametrize("url", [f"nope://host/{TOKEN}", f"https://example.com/{TOKEN}", TOKEN, "json://"])
def test_an_unreadable_flag_is_a_usage_error_without_its_secret(url):
    with pytest.raises(Usage, match="--notify") as error:
        addresses([url], {})
    assert TOKEN not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("url", [TOKEN, f"http:///{TOKEN}", f"http://host:port{TOKEN}/x"])
def test_an_unreadable_webhook_is_a_usage_error_without_its_secret(url):
    with pytest.raises(Usage, match="DISCORD_WEBHOOK_URL") as error:
        addresses([], {"DISCORD_WEBHOOK_URL": url})
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://discord.com/api/webhooks/123/abc", "https://discord.com/***"),
        ("discord+http://127.0.0.1:80/hook", "discord+http://127.0.0.1:80/***"),
        ("mailto://me:word@mail.com?to=you@mail.com", "mailto://mail.com/***"),
        ("mailto://me:1/word@mail.com", "mailto://***"),
        ("json://[::1]:80/a b", "json://[::1]:80/***"),
        ("tgram://token/chat", "tgram://***"),
        ("slack://tokenA/tokenB", "slack://***"),
        ("https://example.com", "https://example.com"),
        ("no url: a/b", "no url: a/b"),
        ("posting to https://a.com/word?key=b failed", "posting to https://a.com/*** failed"),
    ],
)
def test_hidden_keeps_scheme_and_host_only(url, shown):
    assert hidden(url) == shown


# ---- sending


def test_a_message_arrives_with_its_content(server, notifier):
    sender = notifier()
    sender.say("Started", "ofc, @everyone", "success")
    until(lambda: sender.sent == 1)
    (post,) = [post for _, post in server.posts]
    assert post["content"] == "✅ **Started**\nofc, @everyone"
    assert post["allowed_mentions"] == {"parse": []}


def test_apprise_urls_are_sent_by_apprise(server, notifier):
    sender = notifier(*addresses([f"json://{server.host}/{TOKEN}"], {}))
    sender.say("Failed", "out of memory", "failure")
    until(lambda: sender.sent == 1)
    (post,) = [post for _, post in server.posts]
    assert (post["title"], post["message"], post["type"]) == ("Failed", "out of memory", "failure")


def test_a_long_body_keeps_its_end_within_discords_limit(server, notifier):
    sender = notifier()
    sender.say("t" * 5000, "x" * 5000 + "end")
    until(lambda: sender.sent == 1)
    assert len(server.contents()[0]) <= 2000 and server.contents()[0].endswith("end")


def test_too_many_requests_is_waited_for_and_sent_again(server, notifier):
    server.moods = [(429, {"Retry-After": "0.3"})]
    sender = notifier()
    sender.say("Best", "0.7")
    until(lambda: sender.sent == 1)
    (first, _), (second, _) = server.posts
    assert 0.3 <= second - first < 2
    assert sender.errors == 0 and sender.heard == []


def test_server_errors_are_tried_again(server, notifier):
    server.moods = [(500, {}), (503, {})]
    sender = notifier()
    sender.say("Best", "0.7")
    until(lambda: sender.sent == 1)
    assert len(server.posts) == 3 and sender.heard == []


def test_a_failing_server_is_told_once_and_without_secrets(server, notifier):
    server.always = 500
    sender = notifier(tries=3)
    for count in (1, 2):
        sender.say("Progress", str(count))
        until(lambda count=count: sender.errors == count)
    assert len(server.posts) == 6 and sender.sent == 0
    assert sender.heard == [f"notifications to discord+http://{server.host}/*** fail: HTTP 500"]


def test_a_refusal_is_not_tried_again(server, notifier):
    server.always = 404
    sender = notifier()
    sender.say("Progress", "1")
    until(lambda: sender.errors == 1)
    assert len(server.posts) == 1


def test_a_failing_address_keeps_no_message_from_the_others(server, notifier):
    dead = addresses([f"json://127.0.0.1:1/{TOKEN}", f"http://127.0.0.1:1/api/webhooks/1/{TOKEN}"], {})
    sender = notifier(*dead, f"discord+http://{server.host}/hook", tries=2)
    sender.say("Progress", "1")
    until(lambda: sender.errors == 2)
    assert sender.sent == 1 and len(server.posts) == 1
    assert len(sender.heard) == 2 and TOKEN not in str(sender.heard)


def test_a_callback_that_fails_stops_nothing(server):
    def on_error(text: str) -> None:
        raise RuntimeError

    server.moods = [(404, {})]
    sender = Notifier([f"discord+http://{server.host}/"], on_error=on_error, every_s=0.0)
    sender.say("Progress", "1")
    until(lambda: sender.errors == 1)
    sender.say("Progress", "2")
    until(lambda: sender.sent == 1)
    sender.close(1)


# ---- never in the way


def test_a_hanging_server_blocks_neither_speaker_nor_end(server, notifier):
    server.hang.set()
    sender = notifier(capacity=10)
    for count in range(30):
        began = time.monotonic()
        sender.say("Progress", str(count))
        assert time.monotonic() - began < limit(0.05)
    until(lambda: server.posts)
    assert sender.dropped >= 10
    began = time.monotonic()
    sender.close(0.1)
    assert time.monotonic() - began < limit(1)


def test_a_server_that_does_not_answer_in_time_is_an_error(server, notifier):
    server.hang.set()
    sender = notifier(tries=1, timeout_s=0.1)
    sender.say("Progress", "1")
    until(lambda: sender.errors == 1)
    assert "TimeoutError" in sender.heard[0]


def test_messages_in_a_hurry_are_merged_into_one(server, notifier):
    sender = notifier(every_s=0.3)
    sender.say("Started", "ofc")
    until(lambda: sender.sent == 1)
    sender.say("Failed", "worker 2", "failure")
    sender.say("Progress", "10 %")
    sender.say("Progress", "20 %")
    until(lambda: sender.sent == 2)
    assert server.posts[1][0] - server.posts[0][0] > 0.25
    assert (
        server.contents()[1] == "❌ **Failed (and 2 more)**\nFailed: worker 2\nProgress: 10 %\nProgress: 20 %"
    )


def test_close_sends_what_waits_without_waiting_its_turn(server, notifier):
    sender = notifier(every_s=60.0)
    sender.say("Started", "ofc")
    until(lambda: sender.sent == 1)
    sender.say("Finished", "all of it")
    sender.close(5)
    assert server.contents()[1] == "**Finished**\nall of it"
    sender.say("Too", "late")
    assert len(server.posts) == 2


def test_nowhere_to_send_is_fine():
    sender = Notifier([])
    sender.say("Started", "ofc")
    sender.close()
    assert (sender.sent, sender.dropped, sender.errors) == (0, 0, 0)
