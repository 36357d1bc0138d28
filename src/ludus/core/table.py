"""Table: N games of one kind, stepped side by side in one process."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.observation import first_not_finite
from ludus.core.rules import Advances, Rules
from ludus.core.spec import Spec


class Finished(NamedTuple):
    """The games that ended in one step, F of them."""

    rows: np.ndarray  # int64 [F]
    score: np.ndarray  # float32 [F, seats]
    stats: np.ndarray  # float32 [F, seats, len(spec.stats)]
    states: np.ndarray | None = None  # spec.state [F]: how native games ended


class LastSeen(NamedTuple):
    """What K seats saw when their games were cut off.

    A seat of such a game that isn't listed was out of it already. Of a game that is cut off without any
    entry, nothing is known.
    """

    rows: np.ndarray  # int64 [K]
    seats: np.ndarray  # int64 [K]
    obs: np.ndarray  # [K, *obs_shape]


class Turn(NamedTuple):
    """Every row's next decision. The arrays are the table's own and change at its next step."""

    obs: np.ndarray  # [N, *obs_shape]
    legal: np.ndarray  # bool [N, A]
    seat: np.ndarray  # int8 [N]
    reward: np.ndarray  # float32 [N, seats]: what the last step paid each seat
    ended: np.ndarray  # bool [N]: the last step ended a game; `obs` is already of the next one
    truncated: np.ndarray  # bool [N]: cut off, not over
    finished: Finished | None = None
    last_obs: LastSeen | None = None  # of the rows cut off


class Table(Protocol):
    """What tables can do. One that can only step takes the rest from here by being a subclass."""

    spec: Spec
    rows: int
    finite: bool = False
    """Whether it gives finite observations alone, or raises `Failure`; else whoever steps it has to look."""

    def reset(self, seed: int) -> Turn: ...

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn: ...

    def close(self) -> None: ...

    def counters(self) -> np.ndarray:
        """What it has counted since it was made, float64 [len(spec.counters)]."""
        return np.zeros(len(self.spec.counters))

    def snapshot(self) -> dict[str, Any]:
        """Everything that its future depends on; empty if its games can't be kept."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> Turn:
        """Go on from what `snapshot` gave, unless that was empty."""
        raise Failure(f"games of {self.spec.game} can't be restored")

    def record(self, row: int, file: str) -> None:
        """Write the row's next game to a file from which it can be played again."""
        raise Usage(f"{self.spec.game} can't be recorded as {file}: only console games can, as .bk2")

    def write_into(self, obs: np.ndarray, legal: np.ndarray, turn: Turn) -> Turn:
        """From now on write observations and masks into these arrays, where that saves a copy."""
        return turn


class RulesTable(Table):
    """A table of native games. A finished game is dealt anew in the same step."""

    finite = True

    def __init__(self, rules: Rules, rows: int) -> None:
        self.rules, self.spec, self.rows = rules, rules.spec, rows
        spec = self.spec
        self.states = rules.blank(rows)
        self.rng = np.zeros((rows, 2), np.uint64)
        self._obs = np.zeros((rows, *spec.obs_shape), spec.obs_dtype)
        self._legal = np.zeros((rows, spec.actions), bool)
        self._score = np.zeros((rows, spec.seats), np.float32)
        self._reward = np.zeros((rows, spec.seats), np.float32)
        self._never = np.zeros(rows, bool)
        self._index = np.arange(rows)
        self.advances = rules if isinstance(rules, Advances) else None
        if self.advances:
            self._ended_rows, self._last = np.zeros(rows, np.int64), rules.blank(rows)

    def reset(self, seed: int) -> Turn:
        self.rng[:] = seeds.rows(seed, self.rows, "table")
        self.rules.deal(self.states, self.rng)
        self._score[:] = self._reward[:] = 0
        return self._turn(self._never, None)

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        """actions: int32 [N], each legal in its row; with `rows`, only those move and have an action."""
        if rows is None and self.advances:
            return self._advance(self.advances, actions)
        if rows is None:
            self._refuse_illegal(self._index, actions)
            self.rules.play(self.states, actions, self.rng)
        else:
            self._refuse_illegal(rows, actions)
            states, rng = self.states[rows], self.rng[rows]
            self.rules.play(states, actions, rng)
            self.states[rows], self.rng[rows] = states, rng
        before = self._score.copy()
        self.rules.score(self.states, self._score)
        np.subtract(self._score, before, out=self._reward)
        over = self.rules.over(self.states).copy()  # rules may give a view, and games are dealt anew below
        return self._turn(over, self._deal_anew(over) if over.any() else None)

    def _advance(self, rules: Advances, actions: np.ndarray) -> Turn:
        over, seat = np.empty(self.rows, bool), np.empty(self.rows, np.int8)
        count = rules.advance(
            self.states, actions, self.rng, self._legal, self._obs, self._score, self._reward, over, seat,
            self._ended_rows, self._last,
        )  # fmt: skip
        if count < 0:
            refuse_illegal(self._legal, self._index, actions, self.spec.game)
        finished = self._finished(self._ended_rows[:count].copy(), self._last[:count]) if count else None
        return Turn(self._obs, self._legal, seat, self._reward, over, self._never, finished)

    def _finished(self, rows: np.ndarray, states: np.ndarray) -> Finished:
        spec = self.spec
        score = np.zeros((len(rows), spec.seats), np.float32)
        stats = np.zeros((len(rows), spec.seats, len(spec.stats)), np.float32)
        self.rules.score(states, score)
        self.rules.stats(states, stats)
        return Finished(rows, score, stats, states)

    def write_into(self, obs: np.ndarray, legal: np.ndarray, turn: Turn) -> Turn:
        obs[:], legal[:] = self._obs, self._legal
        self._obs, self._legal = obs, legal
        return turn._replace(obs=obs, legal=legal)

    def snapshot(self) -> dict[str, Any]:
        return {"states": self.states.copy(), "rng": self.rng.copy()}

    def restore(self, snapshot: dict[str, Any]) -> Turn:
        self.states[:] = snapshot["states"]
        self.rng[:] = snapshot["rng"]
        self.rules.score(self.states, self._score)
        self._reward[:] = 0
        return self._turn(self._never, None)

    def close(self) -> None:
        pass

    def _refuse_illegal(self, rows: np.ndarray, actions: np.ndarray) -> None:
        if actions.min() >= 0 and actions.max() < self.spec.actions and self._legal[rows, actions].all():
            return
        refuse_illegal(self._legal, rows, actions, self.spec.game)

    def _deal_anew(self, over: np.ndarray) -> Finished:
        rows = np.flatnonzero(over)
        states, rng = self.states[rows], self.rng[rows]
        finished = self._finished(rows, states.copy())
        self.rules.deal(states, rng)
        self.states[rows], self.rng[rows] = states, rng
        self._score[rows] = 0
        return finished

    def _turn(self, ended: np.ndarray, finished: Finished | None) -> Turn:
        self.rules.legal(self.states, self._legal)
        self.rules.observe(self.states, self._obs)
        seat = self.rules.seat(self.states).copy()  # rules may give a view, which changes with the states
        return Turn(self._obs, self._legal, seat, self._reward, ended, self._never, finished)


def refuse_infinite(turn: Turn, game: str) -> None:
    """Name the first row whose observation has NaN or infinity: one would turn all weights into NaN."""
    found = first_not_finite(turn.obs)
    if found is None and turn.last_obs is not None:
        found = first_not_finite(turn.last_obs.obs)
        found = found and (turn.last_obs.rows[found[0]], found[1])
    if found is not None:
        raise Failure(f"{game}: the observation in row {found[0]} has {found[1]}, not a finite number")


def refuse_illegal(legal: np.ndarray, rows: Iterable[int], actions: np.ndarray, game: str) -> None:
    """Name the first illegal action. legal: bool [N, A]; rows, actions: [M]"""
    for row, action in zip(rows, actions, strict=True):
        if not 0 <= action < legal.shape[1]:
            raise Failure(f"{game}: action {action} in row {row} is not in 0..{legal.shape[1] - 1}")
        if not legal[row, action]:
            raise Failure(f"{game}: action {action} in row {row} is illegal there")
