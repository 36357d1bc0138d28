"""Client: one account on a Showdown server, over poke-env's connection. Knows messages, no battles.

poke-env runs its connections in a thread of its own. Whatever comes from the server goes into a queue, from
which one reads at one's own pace.
"""

import asyncio
import contextlib
import json
import queue
import threading
import time
from typing import Any, NamedTuple

from ludus.core.errors import Failure, Usage

LOGIN_S = 60.0
"""A server that has just started lets nobody in before it has loaded everything."""
SILENT = 100
"""Above every level of Python's logging: poke-env would write to the terminal."""
LOGIN_PAGE = "https://play.pokemonshowdown.com/action.php?"
"""Knows the passwords of all servers' users."""
PAGE_S = 10.0


class Lines(NamedTuple):
    """What a battle's room says."""

    who: int
    room: str
    lines: list[str]


class Challenge(NamedTuple):
    who: int
    user: str
    format: str


class Notice(NamedTuple):
    """Something that the server wants people to read, e.g. why it refused something."""

    who: int
    text: str


class Closed(NamedTuple):
    """There is no connection any more."""

    who: int


Event = Lines | Challenge | Notice | Closed
Inbox = queue.Queue[Event]


class Client:
    """Logged in once it is made. Several can share an inbox; `who` tells them apart."""

    def __init__(self, address: str, name: str, inbox: Inbox, who: int = 0, password: str = "") -> None:
        if not address.startswith(("ws://", "wss://")):
            raise Usage(f"{address!r} is no server: write it as in ws://127.0.0.1:8000/showdown/websocket")
        self.address, self.name, self.inbox, self.who = address, name, inbox, who
        self._ready, self._gone = threading.Event(), threading.Event()
        self._problem = ""
        self._connection = _connection(self, password)
        try:
            self._wait_for_login()
        except BaseException:
            self.close()
            raise

    def send(self, text: str, room: str = "") -> None:
        """A command such as /choose, or words."""
        # One after the other, in the order of the calls; a lost connection is told by `Closed`.
        asyncio.run_coroutine_threadsafe(self._connection.send_message(text, room), self._connection.loop)

    def bring(self, team: str | None) -> None:
        """The team of the battles that follow, packed; None for formats that make teams."""
        self.send(f"/utm {team or 'null'}")

    def close(self) -> None:
        self._gone.set()
        with contextlib.suppress(Exception):  # it may never have been open
            closing = self._connection.websocket.close()
            asyncio.run_coroutine_threadsafe(closing, self._connection.loop).result(LOGIN_S)

    def _wait_for_login(self) -> None:
        until = time.monotonic() + LOGIN_S
        while not self._ready.wait(0.02):
            if self._problem:
                raise Usage(self._problem)
            if self._gone.is_set():
                raise Failure(
                    f"there is no Showdown server at {self.address}: `ludus pokemon server` starts one"
                )
            if time.monotonic() > until:
                raise Failure(f"{self.address} did not let {self.name} in within {LOGIN_S:.0f} s")

    def hear(self, message: str) -> None:
        """Runs in poke-env's thread, as the two below."""
        first, *lines = message.split("\n")
        if first.startswith(">"):
            self.inbox.put(Lines(self.who, first[1:], lines))
            return
        parts = first.split("|")
        kind = parts[1] if len(parts) > 1 else ""
        if kind == "updateuser" and _id(parts[2].partition("@")[0]) == _id(self.name):
            self._ready.set()
        elif kind == "nametaken":
            why = parts[3] if len(parts) > 3 else "It is taken."
            advice = " (it needs a password)" if "authentication token" in why else ""
            self.give_up(f"{self.address} refuses the name {self.name}: {why}{advice}")
        elif kind == "popup":
            self.inbox.put(Notice(self.who, "|".join(parts[2:]).replace("||", " ")))
        elif kind == "pm" and parts[4].startswith("/challenge ") and _id(parts[2]) != _id(self.name):
            self.inbox.put(Challenge(self.who, parts[2].strip(), parts[4].split(" ")[1]))
        elif kind == "pm" and parts[4].startswith("/error "):
            self.inbox.put(Notice(self.who, parts[4].removeprefix("/error ")))

    def give_up(self, problem: str) -> None:
        """What keeps us from logging in."""
        self._problem = problem

    def lose(self) -> None:
        if not self._gone.is_set():
            self._gone.set()
            self.inbox.put(Closed(self.who))


def _id(name: str) -> str:
    """A name as the server compares it."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _proof(name: str, password: str, challenge: str) -> str:
    """What the login page gives for a password, and a server takes."""
    import requests

    form = {"act": "login", "name": name, "pass": password, "challstr": challenge}
    page = LOGIN_PAGE.partition("?")[0]
    try:
        said = requests.post(LOGIN_PAGE, form, timeout=PAGE_S).text
    except requests.RequestException:
        raise Usage(f"{page} can't be reached: it checks passwords, so play without one") from None
    try:
        proof = str(json.loads(said.removeprefix("]"))["assertion"])
    except (ValueError, KeyError, TypeError):
        raise Usage(f"{page} says nothing about the password of {name}: try again later") from None
    if proof.startswith(";"):
        raise Usage(f"{page} refuses the password of {name}: {proof.strip(';')}")
    return proof


def _connection(client: Client, password: str) -> Any:
    from poke_env import AccountConfiguration, ServerConfiguration
    from poke_env.ps_client import PSClient

    class Connection(PSClient):
        async def _handle_message(self, message: str) -> None:
            if message.startswith("|challstr|"):
                await self._prove(message.removeprefix("|challstr|"))
                return
            client.hear(message)

        async def _prove(self, challenge: str) -> None:
            try:
                proof = await asyncio.to_thread(_proof, client.name, password, challenge) if password else ""
            except Usage as problem:
                client.give_up(str(problem))
            else:
                await self.send_message(f"/trn {client.name},0,{proof}")

        async def listen(self) -> None:
            try:
                await super().listen()
            finally:
                client.lose()

    return Connection(
        AccountConfiguration(client.name, None),
        server_configuration=ServerConfiguration(client.address, LOGIN_PAGE), log_level=SILENT,
    )  # fmt: skip
