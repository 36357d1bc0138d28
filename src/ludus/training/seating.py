"""Seating: who sits in the other seats of a table. Opponents play there, in batches, and are counted."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.algos import Opponent, Plan
from ludus.core import seeds
from ludus.core.game import Game, Player, blank_actions
from ludus.core.report import Report
from ludus.core.table import Finished, LastSeen, Table, Turn
from ludus.training.opponents import PAST, SELF, parse_mix
from ludus.training.players import make_player
from ludus.training.weights import Past

LEARNER = 0
"""The learning policy's number among players; opponents follow."""
MakeOpponent = Callable[[Table, int], Opponent]
"""The past self of a slot at a table."""


class PastPlayer:
    """Past selves: every row has one of them for the length of a game."""

    def __init__(
        self, table: Table, past: Past, rng: np.random.Generator, make_opponent: MakeOpponent
    ) -> None:
        self.past, self.rng, self.spec = past, rng, table.spec
        self.opponents = [make_opponent(table, slot) for slot in range(past.slots)]
        self.versions = [-1] * past.slots
        self.slot = np.zeros(table.rows, np.int64)

    def draw(self, rows: np.ndarray) -> None:
        """Choose which past self plays in each row, the better rated more often."""
        self.slot[rows] = self.past.draw(self.rng, len(rows))
        for opponent in self.opponents:
            opponent.forget(rows)

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        actions = blank_actions(self.spec, len(rows))
        for slot in np.unique(self.slot[rows]):
            self._refresh(slot)
            here = self.slot[rows] == slot
            actions[here] = self.opponents[slot].choose(rows[here], turn, self.rng)
        return actions

    def snapshot(self) -> dict[str, Any]:
        opponents = [opponent.snapshot() for opponent in self.opponents]
        return {"rng": seeds.frozen(self.rng), "slot": self.slot.copy(), "opponents": opponents}

    def restore(self, snapshot: dict[str, Any]) -> None:
        seeds.thaw(self.rng, snapshot["rng"])
        self.slot[...] = snapshot["slot"]
        for opponent, kept in zip(self.opponents, snapshot["opponents"], strict=True):
            opponent.restore(kept)
        self.versions = [-1] * self.past.slots  # what was read before may be of another run

    def told_apart(self, rows: np.ndarray, there: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Each past self by name, and in which of the given games it sat."""
        slots = self.slot[rows]
        return [(f"{PAST}@{self.past.version(slot)}", there & (slots == slot)) for slot in np.unique(slots)]

    def _refresh(self, slot: int) -> None:
        if self.past.version(slot) != self.versions[slot]:
            vector, self.versions[slot] = self.past.read(slot)
            self.opponents[slot].load(vector)


def joined(seen: list[LastSeen]) -> LastSeen | None:
    return LastSeen(*map(np.concatenate, zip(*seen, strict=True))) if seen else None


class Seating:
    """Puts players into seats at every deal and plays the opponents' decisions of a table."""

    def __init__(
        self, plan: Plan, index: int, game: Game, table: Table, past: Past, make_opponent: MakeOpponent
    ) -> None:
        self.game, self.table, self.spec = game, table, table.spec
        self.mix = parse_mix(plan.opponents, game)
        self.alone = set(self.mix) == {SELF}
        self.names = [SELF, *(name for name in self.mix if name != SELF)]
        self.shares = np.array([self.mix.get(name, 0.0) for name in self.names])
        self.rng = seeds.generator(plan.seed, "worker", index, "seating")
        self.players: list[Player | None] = [None]
        for name in self.names[1:]:
            if name == PAST:
                rng = seeds.generator(plan.seed, "worker", index, "past")
                self.players.append(PastPlayer(table, past, rng, make_opponent))
            else:
                streams = seeds.rows(plan.seed, table.rows, "worker", index, "bot", name)
                self.players.append(self.player(name, streams))
        self.lineup = np.zeros((table.rows, self.spec.seats), np.int8)
        self.finished: list[Finished] = []
        """Games that ended in the last step."""

    def player(self, name: str, rng: np.ndarray) -> Player:
        return make_player(self.game, name, self.table, rng)

    def start(self, turn: Turn) -> Turn:
        """Seat everybody and play on until every row waits for the learning policy."""
        self._seat(np.arange(self.table.rows), None)
        return self._until_ours(turn, None)

    def step(self, actions: np.ndarray, report: Report) -> Turn:
        """Play the learning policy's actions, then the opponents' until it is to move everywhere."""
        self.finished.clear()
        turn = self.table.step(actions)
        self._note(turn, report)
        return turn if self.alone else self._until_ours(turn, report)

    def snapshot(self) -> dict[str, Any]:
        players = [player.snapshot() for player in self.players if player]
        return {"lineup": self.lineup.copy(), "rng": seeds.frozen(self.rng), "players": players}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.lineup[...] = snapshot["lineup"]
        seeds.thaw(self.rng, snapshot["rng"])
        for player, kept in zip(filter(None, self.players), snapshot["players"], strict=True):
            player.restore(kept)

    def _until_ours(self, turn: Turn, report: Report | None) -> Turn:
        reward, ended, cut = turn.reward.copy(), turn.ended.copy(), turn.truncated.copy()
        seen = [turn.last_obs] if turn.last_obs else []
        every = np.arange(self.table.rows)
        while True:
            player = self.lineup[every, turn.seat]
            waiting = np.flatnonzero(player != LEARNER)
            if not len(waiting):
                return turn._replace(reward=reward, ended=ended, truncated=cut, last_obs=joined(seen))
            actions = blank_actions(self.spec, len(waiting))
            for number in np.unique(player[waiting]):
                here = player[waiting] == number
                actions[here] = self.players[number].choose(waiting[here], turn)
            before = ended | cut
            turn = self.table.step(actions, waiting)
            # A game that ended since our last decision paid us already; the next one's pay comes later.
            reward += np.where(before[:, None], 0, turn.reward)
            ended |= turn.ended & ~before
            cut |= turn.truncated & ~before
            if turn.last_obs:
                first = ~before[turn.last_obs.rows]
                seen.append(LastSeen(*(part[first] for part in turn.last_obs)))
            self._note(turn, report)

    def _note(self, turn: Turn, report: Report | None) -> None:
        """Count finished games for the seats of the learning policy, and seat the next ones."""
        done = turn.finished
        if done is None:
            return
        self.finished.append(done)
        if self.alone:
            if report is not None:
                self._note_alone(done, report)
            return
        ours = self.lineup[done.rows] == LEARNER  # [F, seats]
        if report is not None:
            report.games += len(done.rows)
            report.seats += int(ours.sum())
            report.score += float(done.score[ours].sum())
            report.stats += done.stats[ours].sum(0)
            self._note_results(done, ours, report)
        self._seat(done.rows, report)

    def _note_alone(self, done: Finished, report: Report) -> None:
        """As `_note`, where all seats are the learning policy's: masks cost as much as a step."""
        seats = done.score.size
        report.games += len(done.rows)
        report.seats += seats
        report.score += float(done.score.sum())
        report.stats += done.stats.sum((0, 1))
        report.seated[SELF] = report.seated.get(SELF, 0) + seats

    def _note_results(self, done: Finished, ours: np.ndarray, report: Report) -> None:
        """Every seat of ours against every one of theirs, so that equals always take a half."""
        ahead = np.sign(done.score[:, :, None] - done.score[:, None, :])  # [F, ours, theirs]: 1, 0 or -1
        for number, name in enumerate(self.names[1:], 1):
            theirs = self.lineup[done.rows] == number
            pairs = ours[:, :, None] & theirs[:, None, :]
            won = np.where(pairs, (1 + ahead) / 2, 0).sum((1, 2))
            player, there = self.players[number], theirs.any(1)
            for who, rows in (
                player.told_apart(done.rows, there) if isinstance(player, PastPlayer) else [(name, there)]
            ):
                if rows.any():
                    count, wins = report.results.get(who, (0, 0.0))
                    report.results[who] = (count + int(pairs[rows].sum()), wins + float(won[rows].sum()))

    def _seat(self, rows: np.ndarray, report: Report | None) -> None:
        seats = self.spec.seats
        if not self.alone:
            drawn = self.rng.choice(len(self.names), (len(rows), seats), p=self.shares)
            drawn[np.arange(len(rows)), self.rng.integers(seats, size=len(rows))] = LEARNER
            self.lineup[rows] = drawn
            for player in self.players[1:]:
                if isinstance(player, PastPlayer):
                    player.draw(rows)
        if report is not None:
            counts = np.bincount(self.lineup[rows].ravel(), minlength=len(self.names))
            for name, count in zip(self.names, counts, strict=True):
                report.seated[name] = report.seated.get(name, 0) + int(count)
