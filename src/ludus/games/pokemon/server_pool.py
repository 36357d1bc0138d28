"""ServerPool: battles on Showdown servers in the place of the bridge's own, for tables.

It has the face of `bridge.Pool`: a tick goes to a server instead of a process. On each server two accounts
challenge each other. What both are told goes through the same tracker and encoder as with the bridge.
"""

import json
import queue
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ludus.core.errors import Failure
from ludus.games.pokemon import layout
from ludus.games.pokemon.bridge import TRIES, Message, Meters, Pool, Setup
from ludus.games.pokemon.client import Challenge, Client, Closed, Event, Inbox, Lines, Notice
from ludus.games.pokemon.server import Server, free_port

SEATS = 2
SIDES = ("p1", "p2")
RUNNING, ENDED, CUT_OFF = 0, 1, 2
TURNS, LOST = 3, 6
"""Places in a result: turns, and both seats' lost hit points."""


@dataclass
class Row:
    """One row's battle on a server."""

    room: str = ""
    asked: set[int] = field(default_factory=set)
    """Seats that have been told what to decide next, or to wait."""
    awaited: set[int] = field(default_factory=lambda: {0, 1})
    """Seats that must be told before the row goes on: both, or who has to choose again."""
    over: set[int] = field(default_factory=set)
    """Seats that were told the end."""
    rqid: list[int] = field(default_factory=lambda: [0, 0])
    result: list[float] | None = None
    """Of the battle before, if it has just ended."""
    last: list[np.ndarray] = field(default_factory=list)
    """Decisions that both seats would have had when it was cut off."""


class Seats:
    """Two accounts on one server and the battles between them."""

    def __init__(self, index: int, address: str, watching: Pool, setup: Setup) -> None:
        self.index, self.watching, self.setup = index, watching, setup
        self.wire = layout.wire(watching.ready["actions"])
        self.teams: list[str | None] = watching.ready["teams"] or [None]
        self.random = random.Random(index)
        self.inbox: Inbox = queue.Queue()
        self.rows: dict[int, Row] = {}
        self.by_room: dict[str, int] = {}
        self.waiting: list[int] = []  # rows whose battles are to be started, one after the other
        self.ticks: list[list[int]] = []
        self.clients: list[Client] = []
        self.server = None if address else Server(free_port())
        try:
            self._log_in(address or self.server.address)  # type: ignore[union-attr]
        except BaseException:
            self.close()
            raise

    def _log_in(self, address: str) -> None:
        token = secrets.token_hex(4)
        for seat in range(SEATS):
            self.clients.append(Client(address, f"ludus{token}{seat}", self.inbox, seat))

    def close(self) -> None:
        for client in self.clients:
            client.close()
        if self.server is not None:
            self.server.close()

    # ---- what the table asks for

    def send(self, start: list[list], act: list[int]) -> None:
        moves = [tuple(act[i : i + 3]) for i in range(0, len(act), 3)]
        self.ticks.append(sorted({row for row, *_ in start} | {row for row, *_ in moves}))
        for row, *_ in start:
            self._begin(row)
        if moves:
            numbers = [number for row, seat, action in moves for number in (SEATS * row + seat, 0, action)]
            self._choose(self._ask({"act": numbers})["choices"])

    def receive(self, patience_s: float) -> Message:
        """The answer to the oldest tick, once all its rows can go on."""
        rows, until = self.ticks.pop(0), time.monotonic() + patience_s
        answer: dict[str, list] = {"battles": [], "decisions": []}
        left = set(rows)
        while left:
            for row in [row for row in left if self._is_settled(self.rows[row])]:
                if self._settle(row, answer):
                    left.discard(row)
            if left:
                self._take(self._events(until))
        decisions = np.concatenate(answer["decisions"]).tobytes()
        return {"battles": answer["battles"], "decisions": decisions, "said": [], "errors": []}

    # ---- battles

    def _begin(self, row: int) -> None:
        if row in self.rows and (old := self.rows[row].room):
            del self.by_room[old]
            self.clients[0].send("/forfeit", old)
            self._leave(old)
        self.rows[row] = Row()
        self.watching.meters.starts += 1
        self._ask({"watch": [[SEATS * row + seat, SIDES[seat]] for seat in range(SEATS)]})
        self.waiting.append(row)
        if len(self.waiting) == 1:
            self._challenge()

    def _challenge(self) -> None:
        self.clients[0].bring(self.random.choice(self.teams))
        self.clients[0].send(f"/challenge {self.clients[1].name}, {self.setup.format}")

    def _leave(self, room: str) -> None:
        for client in self.clients:
            client.send(f"/leave {room}")

    def _choose(self, choices: list[list]) -> None:
        """choices: the watched battle and the words for it"""
        for watched, words in choices:
            row, seat = divmod(watched, SEATS)
            state = self.rows[row]
            state.asked.clear()
            state.awaited = {0, 1}
            self.clients[seat].send(f"/choose {words}|{state.rqid[seat]}", state.room)

    # ---- what the server says

    def _events(self, until: float) -> list[Event]:
        """All that has come, at least one."""
        try:
            found = [self.inbox.get(timeout=max(0.0, until - time.monotonic()))]
        except queue.Empty:
            raise Failure("the server did not answer in time") from None
        while not self.inbox.empty():
            found.append(self.inbox.get())
        return found

    def _take(self, events: list[Event]) -> None:
        feed: dict[int, list[str]] = {}
        for event in events:
            match event:
                case Closed():
                    raise Failure("the connection to the server is lost")
                case Challenge(who=1):
                    self.clients[1].bring(self.random.choice(self.teams))
                    self.clients[1].send(f"/accept {event.user}")
                case Lines():
                    row = self._row_of(event)
                    if row is not None:
                        feed.setdefault(SEATS * row + event.who, []).extend(event.lines)
                        self._note(self.rows[row], event)
                case Notice() if self.waiting:
                    raise Failure(f"the server says: {event.text}")
        if feed:
            self._ask({"feed": [[watched, lines] for watched, lines in feed.items()]})

    def _row_of(self, event: Lines) -> int | None:
        if event.room not in self.by_room:
            begins = event.lines and event.lines[0].startswith("|init|battle")
            if not begins or not self.waiting:
                return None  # of a battle that is over
            row = self.waiting.pop(0)
            self.by_room[event.room] = row
            self.rows[row].room = event.room
            if self.waiting:
                self._challenge()
        return self.by_room[event.room]

    def _note(self, row: Row, event: Lines) -> None:
        for line in event.lines:
            if line.startswith("|request|{"):
                row.rqid[event.who] = json.loads(line.removeprefix("|request|"))["rqid"]
                row.asked.add(event.who)
            elif line.startswith("|error|["):
                unavailable = "[Unavailable choice]" in line
                self.watching.meters.unavailable += unavailable
                self.watching.meters.invalid += not unavailable
                row.awaited = (row.awaited if row.awaited != {0, 1} else set()) | {event.who}
                if not unavailable:  # then no other request follows
                    row.asked.add(event.who)
            elif line == "|tie" or line.startswith("|win|"):
                row.over.add(event.who)

    # ---- what the table is told

    def _is_settled(self, row: Row) -> bool:
        return len(row.over) == SEATS or (row.awaited <= row.asked and not row.over)

    def _settle(self, number: int, answer: dict[str, list]) -> bool:
        """Whether the row's next decisions are in the answer; else its next battle must begin first."""
        row = self.rows[number]
        seats = sorted(row.over or row.awaited)
        said = self._ask({"decide": [SEATS * number + seat for seat in seats]})
        found = np.frombuffer(said["decisions"], self.wire).copy()
        found["row"] //= SEATS
        results = {int(one[0]) % SEATS: one for one in said["battles"]}
        result = self._joined(number, results)
        cut = result[1] == RUNNING and result[TURNS] > self.setup.max_turns and len(found) == SEATS
        if result[1] == RUNNING and not cut:
            return self._tell(row, result, found, said["choices"], answer)
        if cut:
            result[1] = CUT_OFF
            found["last"] = True
        elif row.room:
            self._leave(row.room)
            del self.by_room[row.room]
            row.room = ""
        self._begin(number)
        self.rows[number].result = result
        self.rows[number].last = [found] if cut else []
        return False

    def _tell(
        self, row: Row, result: list, found: np.ndarray, choices: list[list], answer: dict[str, list]
    ) -> bool:
        if choices:  # decisions without any choice that we know of
            self._choose(choices)
            return False
        if not len(found):  # one seat chooses again, or both wait for what the server does
            row.asked.clear()
            return False
        answer["battles"].append(row.result or result)
        answer["decisions"] += [*row.last, found]
        row.result, row.last = None, []
        return True

    def _joined(self, number: int, results: dict[int, list]) -> list:
        """A result of both seats: each knows its own hit points best."""
        first = results[min(results)]
        joined = [number, *first[1:]]
        for seat, result in results.items():
            joined[LOST + seat] = result[LOST + seat]
            joined[-SEATS + seat] = result[-SEATS + seat]
        return joined

    def _ask(self, message: Message) -> Message:
        self.watching.send(self.index, message)
        said = self.watching.receive(self.index)
        if said is None:
            raise Failure("the process that encodes the battles was lost")
        if said["errors"]:
            raise Failure(f"a battle has lines that can't be read: {said['errors'][0][1]}")
        return said


class ServerPool:
    """Servers in the place of processes."""

    def __init__(self, setup: Setup, addresses: tuple[str, ...], patience_s: float) -> None:
        """addresses: of servers; an empty one starts a server of our own"""
        self.setup, self.patience_s, self.addresses = setup, patience_s, addresses
        self.watching = Pool(replace(setup, watching=True, lines=False), len(addresses), patience_s)
        self.ready = self.watching.ready
        self._lost_in_a_row = 0
        self._servers: list[Seats] = []
        try:
            for index, address in enumerate(addresses):
                self._servers.append(Seats(index, address, self.watching, setup))
        except BaseException:
            self.close()
            raise

    @property
    def meters(self) -> Meters:
        return self.watching.meters

    def __len__(self) -> int:
        return len(self.addresses)

    def send(self, index: int, message: Message) -> None:
        self._attempt(index, lambda server: server.send(message.get("start", []), message.get("act", [])))

    def receive(self, index: int) -> Message | None:
        """None: the server was lost with all its battles, and another connection has been made."""
        server = self._servers[index]
        if not server.ticks:  # lost when it was asked, so this is another
            return None
        said = self._attempt(index, lambda server: server.receive(self.patience_s))
        if said is not None:
            self._lost_in_a_row = 0
        return said

    def _attempt(self, index: int, ask: Callable[[Seats], Any]) -> Any:
        try:
            return ask(self._servers[index])
        except Failure as problem:
            self._replace(index, str(problem))
            return None

    def _replace(self, index: int, reason: str) -> None:
        self.meters.lost[reason] = self.meters.lost.get(reason, 0) + 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row > TRIES:
            raise Failure(f"battles on {self.addresses[index] or 'a local server'} end: {reason}")
        self._servers[index].close()
        self._servers[index] = Seats(index, self.addresses[index], self.watching, self.setup)

    def pids(self) -> list[int]:
        own = [server.server.process.pid for server in self._servers if server.server]
        return self.watching.pids() + own

    def cpu_s(self) -> float:
        return self.watching.cpu_s()

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self.watching.close()
