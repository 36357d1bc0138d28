"""OnlineTable: one seat of a battle on a Showdown server, against whoever is there, as a table of one row.

Challenges are taken (or made), and every battle is told in words when it begins and when it is over. The same
tracker and encoder as everywhere make the observations.
"""

import json
import queue
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ludus.core.errors import Failure, Usage
from ludus.core.game import Visit
from ludus.core.table import Finished, Table, Turn, refuse_illegal
from ludus.games.pokemon import layout
from ludus.games.pokemon.client import Challenge, Client, Closed, Inbox, Lines, Notice
from ludus.games.pokemon.rewards import Rewards
from ludus.games.pokemon.table import make_spec
from ludus.games.pokemon.watch import Watcher

ONLY = 0
"""The number of the one battle."""
ROW = np.zeros(1, np.int64)
LOOK_S = 1.0
"""How often a wait looks whether somebody wants to stop it."""


@dataclass
class Battle:
    """The one that is being played."""

    room: str
    opponent: str = ""
    seat: int = -1
    """Not known before a `player` line names us."""
    turns: int = 0
    rqid: int = 0
    asks: bool = False
    """Whether the server waits for our choice."""
    winner: str | None = None
    """Its name; empty for a tie, None while the battle goes on."""


class OnlineTable(Table):
    """Plays as many battles as asked for, one after the other. After the last, no action is legal."""

    finite = True

    def __init__(
        self, game: str, watcher: Watcher, format: str, visit: Visit, say: Callable[[str], None]
    ) -> None:
        self.spec, self.rows = make_spec(game, watcher.actions, Rewards()), 1
        self.format, self.visit, self.say, self.watcher = format, visit, say, watcher
        self.name = visit.name or f"ludus {secrets.token_hex(3)}"
        self.inbox: Inbox = queue.Queue()
        self.left = visit.games
        self.battle: Battle | None = None
        self._obs, self._legal = np.zeros(1, layout.OBS), np.zeros((1, watcher.actions), bool)
        self.client = Client(visit.server, self.name, self.inbox, password=visit.password)
        say(f"{self.name} is on {visit.server}")

    def reset(self, seed: int) -> Turn:
        self.rng = np.random.default_rng(seed)
        return self._next_decision()

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        if not self._legal[0, actions[0]]:
            refuse_illegal(self._legal, ROW, actions, self.spec.game)
        self._choose(self.watcher.choice(ONLY, int(actions[0])))
        return self._next_decision()

    def close(self) -> None:
        self.client.close()
        self.watcher.close()

    def _next_decision(self) -> Turn:
        """The next decision of ours, perhaps of the next battle; none after the last battle."""
        finished = None
        self._legal[:] = False
        while self.left:
            if self.battle is None:
                self._find()
            battle = self._listen()
            if battle.winner is not None:
                finished = self._finish(battle)
                continue
            battle.asks = False
            if (found := self.watcher.decision(ONLY)) is not None:
                self._obs[0], self._legal[0] = found
                break
            self._choose("default")  # nothing that we know of is possible
        return self._turn(finished)

    def _turn(self, finished: Finished | None) -> Turn:
        reward, none = np.zeros((1, self.spec.seats), np.float32), np.zeros(1, bool)
        ended = none if finished is None else np.ones(1, bool)
        if finished is not None:
            reward = finished.score
        seat = np.full(1, max(0, self.battle.seat) if self.battle else 0, np.int8)
        return Turn(self._obs, self._legal, seat, reward, ended, none, finished)

    # ---- finding somebody

    def _find(self) -> None:
        """Ask for a battle, or wait to be asked, until one begins."""
        if self.visit.opponent:
            self._bring_team()
            self.client.send(f"/challenge {self.visit.opponent}, {self.format}")
            self.say(f"{self.name} challenges {self.visit.opponent}")
        elif self.visit.ladder:
            self._bring_team()
            self.client.send(f"/search {self.format}")
            self.say(f"{self.name} looks for an opponent on the ladder of {self.format}")
        else:
            self.say(f"{self.name} waits for challenges to {self.format}")
        while self.battle is None:
            event = self._event()
            if isinstance(event, Challenge) and event.format == self.format and not self._asks():
                self._bring_team()
                self.client.send(f"/accept {event.user}")
            elif isinstance(event, Notice) and self._asks():
                raise Usage(f"the server says: {event.text}")
            elif isinstance(event, Lines) and event.lines and event.lines[0].startswith("|init|battle"):
                self.battle = Battle(event.room)
                self._take(event.lines)

    def _asks(self) -> bool:
        return bool(self.visit.opponent) or self.visit.ladder

    def _bring_team(self) -> None:
        teams = self.watcher.teams
        self.client.bring(teams[int(self.rng.integers(len(teams)))])

    # ---- one battle

    def _listen(self) -> Battle:
        """The battle after one more message about it, unless there is something to do already."""
        assert self.battle is not None
        while not self.battle.asks and self.battle.winner is None:
            event = self._event()
            if isinstance(event, Lines) and event.room == self.battle.room:
                self._take(event.lines)
            elif isinstance(event, Challenge):
                self.client.send(f"/reject {event.user}")
        return self.battle

    def _event(self) -> Challenge | Notice | Lines:
        while True:
            try:
                event = self.inbox.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            if isinstance(event, Closed):
                raise Failure(f"the connection to {self.visit.server} is lost")
            return event

    def _take(self, lines: list[str]) -> None:
        battle = self.battle
        assert battle is not None
        for line in lines:
            parts = line.split("|")
            kind = parts[1] if len(parts) > 1 else ""
            if kind == "player" and len(parts) > 3:
                self._meet(battle, parts[2], parts[3])
            elif kind == "turn":
                battle.turns = int(parts[2])
            elif kind == "request" and parts[2]:
                request = json.loads(line.removeprefix("|request|"))
                battle.rqid, battle.asks = request["rqid"], not request.get("wait")
            elif kind == "error" and parts[2].startswith("[Invalid choice]"):
                battle.asks = True  # of what was refused as unavailable, a new request follows
            elif kind in ("win", "tie"):
                battle.winner = parts[2] if kind == "win" else ""
        if battle.seat >= 0:
            self.watcher.feed(ONLY, lines)

    def _meet(self, battle: Battle, side: str, name: str) -> None:
        if name != self.name:
            battle.opponent = name
        elif battle.seat < 0:
            battle.seat = int(side[1]) - 1
            self.watcher.begin(ONLY, battle.seat)
            self.say(f"battle {self.visit.games - self.left + 1} begins: {self._address(battle)}")

    def _address(self, battle: Battle) -> str:
        """Where people can watch."""
        host = self.visit.server.partition("://")[2].partition("/")[0]
        return f"http://{host}/{battle.room}"

    def _choose(self, words: str) -> None:
        assert self.battle is not None
        self.client.send(f"/choose {words}|{self.battle.rqid}", self.battle.room)

    def _finish(self, battle: Battle) -> Finished:
        won = battle.winner == self.name
        how = "won" if won else "lost" if battle.winner else "tied"
        number = self.visit.games - self.left + 1
        self.say(f"battle {number}: {how} against {battle.opponent} in {battle.turns} turns")
        self.client.send(f"/leave {battle.room}")
        self.watcher.end(ONLY)
        self.left -= 1
        self.battle = None
        score = np.zeros((1, self.spec.seats), np.float32)
        if battle.winner:
            score[0, battle.seat] = 1 if won else -1
            score[0, 1 - battle.seat] = -score[0, battle.seat]
        stats = np.zeros((1, self.spec.seats, len(self.spec.stats)), np.float32)
        return Finished(ROW, score, stats)
