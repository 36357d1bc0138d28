"""PokemonTable: battles in Node processes as a table. Knows the contract of tables; must not know training.

Both seats choose at once, so they decide one after the other without seeing each other, and the simulator
goes on when both have. `submit` hands in decisions and `collect` waits for what follows: between them, others
can be made for rows that are ready. `step` does both.
"""

from typing import NamedTuple

import numpy as np

from ludus.core import seeds
from ludus.core.errors import Failure
from ludus.core.spec import Spec
from ludus.core.table import Finished, LastSeen, Table, Turn, refuse_illegal
from ludus.games.pokemon import layout, parts, teams
from ludus.games.pokemon.bridge import PATIENCE_S, Message, Pool, Setup
from ludus.games.pokemon.rewards import FACTS, PARTS, Normaliser, Rewards
from ludus.games.pokemon.server_pool import ServerPool

SEATS = 2
RUNNING, ENDED = 0, 1
"""States of a battle; the others (cut off, broken) end it without a result."""
SPLIT = 16
"""Rows from which on two ticks are faster than one."""
STATS = ("won", "turns", "fainted", "failed_moves", "switches", *(f"reward_{part}" for part in PARTS))
COUNTERS = (
    "processes", "lost", "battles", "ticks", "bytes_in", "bytes_out", "refused", "simulator_s", "encoding_s",
    "serialisation_s",
)  # fmt: skip
"""What `counters` gives: see `bridge.Meters`."""


def make_spec(game: str, actions: int, rewards: Rewards) -> Spec:
    return Spec(
        game=game, seats=SEATS, actions=actions, parts=parts(), stats=STATS, counters=COUNTERS,
        zero_sum=rewards.zero_sum, hidden=True,
    )  # fmt: skip


class _Tick(NamedTuple):
    node: int
    rows: np.ndarray  # int64 [M]


class PokemonTable(Table):
    """N battles. A battle that is over is followed by the next in the same step."""

    finite = True

    def __init__(
        self, rows: int, format: str = "gen9randombattle", *, processes: int = 1, team: str = "random",
        max_turns: int = 300, rewards: Rewards | None = None, fast: bool = True, lines: bool = False,
        patience_s: float = PATIENCE_S, game: str = "pokemon", servers: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """team: `random`, for formats that make teams, or a file or folder of teams to draw from.
        servers: of Showdown, on which battles are played in the place of our own processes"""
        self.rows, self.rewards = rows, rewards or Rewards()
        setup = Setup(format, max_turns, fast, lines, teams.given(team))
        self.pool: Pool | ServerPool
        if servers:
            self.pool = ServerPool(setup, servers[:rows], patience_s)
        else:
            self.pool = Pool(setup, min(processes, rows), patience_s)
        actions = self.pool.ready["actions"]
        self._wire = layout.wire(actions)
        assert self._wire.itemsize == self.pool.ready["recordBytes"], "node/encode.js has another layout"
        self.spec = make_spec(game, actions, self.rewards)
        self._normaliser = Normaliser(self.rewards.weights())
        self._node_of = np.arange(rows) % len(self.pool)
        self._all = np.arange(rows)
        self.said: list[tuple[int, int, int, str]] = []
        """Row, battle, channel (a seat, or 2 for all) and line, if lines were asked for."""
        self.errors: list[tuple[int, str]] = []
        """Row and message of battles that the simulator could not go on with."""
        self._make_arrays(actions)

    def _make_arrays(self, actions: int) -> None:
        n = self.rows
        self._obs = np.zeros(n, layout.OBS)
        self._legal = np.zeros((n, actions), bool)
        self._seat = np.zeros(n, np.int8)
        # The other seat's decision of the same turn, which comes second.
        self._next_obs = np.zeros(n, layout.OBS)
        self._next_legal = np.zeros((n, actions), bool)
        self._has_next = np.zeros(n, bool)
        self._held = np.full(n, -1, np.int32)  # seat 0's action, until seat 1 has chosen too
        self._reward = np.zeros((n, SEATS), np.float32)
        self._ended = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)
        self._busy = np.zeros(n, bool)  # the simulator has it
        self._lost = np.zeros(n, bool)  # its process is gone
        self._number = np.zeros(n, np.int64)  # of the row's battle
        self._facts = np.zeros((n, len(FACTS), SEATS))
        self._parts = np.zeros((n, SEATS, len(PARTS)))  # what each part of the reward has paid in this battle
        self._finished: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._last_seen: list[np.ndarray] = []
        self._in_flight: list[_Tick] = []

    def reset(self, seed: int) -> Turn:
        self.collect()  # answers that nobody waits for any more
        self._seeds = [f"{seeds.derive(seed, 'pokemon', row):016x}" for row in range(self.rows)]
        self._number[:] = -1
        self._facts[:] = self._parts[:] = 0
        self._lost[:] = True  # nothing is running yet, so a battle is started in every row
        self._submit_all(self._all)
        return self.collect()

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        """actions: int32 [N], each legal in its row; with `rows`, only those move and have an action."""
        self.submit(actions, rows)
        return self.collect()

    def submit(self, actions: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Hand in decisions. Their rows' next ones are there after `collect`."""
        moving = self._all if rows is None else np.asarray(rows)
        actions = np.asarray(actions)
        self._refuse_illegal(moving, actions)
        second = self._has_next[moving]
        self._held[moving[second]] = actions[second]
        self._show_next(moving[second])
        self._submit_all(moving[~second], actions[~second])

    def collect(self, rows: np.ndarray | None = None) -> Turn:
        """Every row's next decision, after waiting for these rows, or for all.

        Rewards and ends are told of these rows only, and once.
        """
        wanted = np.ones(self.rows, bool) if rows is None else np.isin(self._all, rows)
        while (tick := self._next_tick(wanted)) is not None:
            self._receive(tick)
        return self._turn(wanted)

    def _next_tick(self, wanted: np.ndarray) -> _Tick | None:
        """The next answer to wait for. A process answers in order, so its oldest tick comes first."""
        for tick in self._in_flight:
            if wanted[tick.rows].any():
                return next(one for one in self._in_flight if one.node == tick.node)
        return None

    def counters(self) -> np.ndarray:
        told = self.pool.meters
        spent_ms = np.array([told.simulator_ms, told.encoding_ms, told.serialisation_ms])
        lost, refused = sum(told.lost.values()), told.unavailable + told.invalid
        counts = [told.processes, lost, told.starts, told.ticks, told.bytes_in, told.bytes_out, refused]
        return np.concatenate([counts, spent_ms / 1000])

    def close(self) -> None:
        self.pool.close()

    def _refuse_illegal(self, rows: np.ndarray, actions: np.ndarray) -> None:
        if self._busy[rows].any():
            row = rows[self._busy[rows].argmax()]
            raise Failure(f"{self.spec.game}: row {row} has no decision to make: collect it first")
        known = len(actions) == 0 or (actions.min() >= 0 and actions.max() < self.spec.actions)
        if not known or not self._legal[rows, actions].all():
            refuse_illegal(self._legal, rows, actions, self.spec.game)

    def _show_next(self, rows: np.ndarray) -> None:
        """The other seat decides now."""
        self._obs[rows], self._legal[rows] = self._next_obs[rows], self._next_legal[rows]
        self._seat[rows] = 1
        self._has_next[rows] = False

    def _submit_all(self, rows: np.ndarray, actions: np.ndarray | None = None) -> None:
        """Rows whose battles can go on, or must be started anew."""
        # Two ticks for each process: one answer is read here while the other is being simulated.
        middle = len(rows) // 2 if len(rows) >= SPLIT else len(rows)
        for half in (rows[:middle], rows[middle:]):
            chosen = None if actions is None else actions[: len(half)]
            actions = None if actions is None else actions[len(half) :]
            for node in range(len(self.pool)):
                here = self._node_of[half] == node
                if here.any():
                    self._send(_Tick(node, half[here]), None if chosen is None else chosen[here])

    def _send(self, tick: _Tick, actions: np.ndarray | None) -> None:
        message: Message = {}
        lost = self._lost[tick.rows]
        if lost.any():
            message["start"] = self._restart(tick.rows[lost])
        if actions is not None and not lost.all():
            rows, chosen = tick.rows[~lost], actions[~lost]
            held = self._held[rows]
            both = held >= 0
            seat = np.where(both, 1, self._seat[rows])
            act = np.stack([rows, seat, chosen], 1)
            first = np.stack([rows[both], np.zeros(both.sum(), int), held[both]], 1)
            message["act"] = np.concatenate([first, act]).ravel().tolist()
        self._held[tick.rows] = -1
        self._busy[tick.rows] = True
        self.pool.send(tick.node, message)
        self._in_flight.append(tick)

    def _restart(self, rows: np.ndarray) -> list[list]:
        """What to start in rows whose battles are gone; they count as cut off."""
        for row in rows:
            if self._number[row] >= 0:
                self._truncated[row] = True
                self._finish(int(row), -1, self._facts[row])
        self._lost[rows] = False
        self._number[rows] += 1
        return [[int(row), self._seeds[row], int(self._number[row])] for row in rows]

    def _receive(self, tick: _Tick) -> None:
        """tick: the oldest of its process"""
        said = self.pool.receive(tick.node)
        if said is not None:
            self._in_flight = [one for one in self._in_flight if one is not tick]
            self._busy[tick.rows] = False
            self._take(said)
            return
        # All that the process had is gone, its other ticks too.
        self._lost[self._node_of == tick.node] = True
        gone = [one for one in self._in_flight if one.node == tick.node]
        self._in_flight = [one for one in self._in_flight if one.node != tick.node]
        for one in gone:
            self._send(one, None)

    def _take(self, said: Message) -> None:
        """An answer of a process."""
        self.said += map(tuple, said["said"])
        self.errors += map(tuple, said["errors"])
        if said["battles"]:
            self._pay(np.array(said["battles"]))
        decisions = np.frombuffer(said["decisions"], self._wire)
        if decisions["last"].any():
            self._last_seen += list(decisions[decisions["last"]])
            decisions = decisions[~decisions["last"]]
        if not len(decisions):
            return
        rows, actions = decisions["row"], self.spec.actions
        first = np.ones(len(rows), bool)
        first[1:] = rows[1:] != rows[:-1]  # a row's two decisions are neighbours
        ones, others = decisions[first], decisions[~first]
        self._obs[ones["row"]], self._legal[ones["row"]] = ones["obs"], ones["legal"][:, :actions]
        self._seat[ones["row"]] = ones["side"]
        self._has_next[ones["row"]] = False
        self._next_obs[others["row"]], self._next_legal[others["row"]] = (
            others["obs"],
            others["legal"][:, :actions],
        )
        self._has_next[others["row"]] = True

    def _pay(self, results: np.ndarray) -> None:
        """Rewards for what has happened. results: [B, 4 + 4 * seats], see node/game.js"""
        rows, state, winner = results[:, :3].T.astype(int)
        turns = results[:, 3:4]
        facts = np.concatenate([turns, turns, results[:, 4:]], 1).reshape(-1, len(FACTS), SEATS)
        parts = self.rewards.parts(self._facts[rows], facts, state == ENDED, winner)
        if self.rewards.normalise:
            parts = self._normaliser.scaled(parts)
        self._parts[rows] += parts
        self._reward[rows] += parts.sum(2)
        self._facts[rows] = facts
        for i in np.flatnonzero(state != RUNNING):
            row = int(rows[i])
            (self._ended if state[i] == ENDED else self._truncated)[row] = True
            self._finish(row, int(winner[i]), facts[i])
            self._number[row] += 1

    def _finish(self, row: int, winner: int, facts: np.ndarray) -> None:
        """The score is the result, whatever else the rewards pay for."""
        score = np.zeros(SEATS, np.float32)
        if winner >= 0:
            score[winner], score[1 - winner] = 1, -1
        stats = np.concatenate(
            [(score > 0)[:, None], facts[[0, 1, 3, 4]].T, self._parts[row]], axis=1, dtype=np.float32
        )
        self._finished.append((row, score, stats))
        self._facts[row] = self._parts[row] = 0

    def _turn(self, wanted: np.ndarray) -> Turn:
        """What there is to tell of some rows. wanted: bool [N]"""
        finished = last_obs = None
        told = [one for one in self._finished if wanted[one[0]]]
        if told:
            rows, scores, stats = zip(*told, strict=True)
            finished = Finished(np.array(rows), np.stack(scores), np.stack(stats))
        seen = [one for one in self._last_seen if wanted[one["row"]]]
        if seen:
            last = np.stack(seen)
            last_obs = LastSeen(last["row"].astype(np.int64), last["side"].astype(np.int64), last["obs"])
        turn = Turn(
            self._obs, self._legal, self._seat.copy(), self._reward * wanted[:, None], self._ended & wanted,
            self._truncated & wanted, finished, last_obs,
        )  # fmt: skip
        self._reward[wanted] = 0
        self._ended[wanted] = self._truncated[wanted] = False
        self._finished = [one for one in self._finished if not wanted[one[0]]]
        self._last_seen = [one for one in self._last_seen if not wanted[one["row"]]]
        return turn
