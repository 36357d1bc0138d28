"""League: who sits in the other seats. Opponents play inside the workers, in batches, and are counted."""

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ludus import games
from ludus.core import seeds
from ludus.core.dice import legal_choice, uniforms
from ludus.core.errors import Usage
from ludus.core.spec import Spec
from ludus.core.table import Finished, LastSeen, RulesTable, Table, Turn
from ludus.nets import Memory

if TYPE_CHECKING:
    from ludus.train.worker import Plan, Report

SELF, PAST = "self", "past"
SPREAD = 3.0
LEARNER = 0
"""The learning policy's number among players; opponents follow."""


def parse_mix(mix: str, game: str) -> dict[str, float]:
    """`"self:0.6,past:0.3,greedy:0.1"` as shares that add up to 1."""
    shares: dict[str, float] = {}
    for part in mix.split(","):
        name, _, share = part.strip().partition(":")
        try:
            shares[name] = float(share or 1)
        except ValueError:
            raise Usage(f"{part!r} is not an opponent and its share, as in greedy:0.1") from None
        if not 0 <= shares[name] < math.inf:
            raise Usage(f"{part!r}: a share must be a number from 0 on")
    known = [SELF, PAST, "random"] if ":" in game else [SELF, PAST, *games.bot_names(game)]
    for name in shares:
        if name not in known:
            raise Usage(f"{game} has no opponent {name!r}: choose from {', '.join(known)}")
    total = sum(shares.values())
    if not total:
        raise Usage(f"the shares of {mix!r} add up to nothing")
    return {name: share / total for name, share in shares.items() if share}


class Player(Protocol):
    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        """Actions for some rows, int32 [len(rows)]."""
        ...

    def snapshot(self) -> dict[str, Any]: ...

    def restore(self, snapshot: dict[str, Any]) -> None: ...


class _Streams:
    """A player whose only state is a random stream for each row."""

    rng: np.ndarray

    def snapshot(self) -> dict[str, Any]:
        return {"rng": self.rng.copy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.rng[...] = snapshot["rng"]


class BotPlayer(_Streams):
    """A scripted bot at a table of native games."""

    def __init__(self, bot, table: RulesTable, rng: np.ndarray) -> None:
        self.bot, self.table, self.rng = bot, table, rng

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        streams = self.rng[rows]
        actions = self.bot.choose(self.table.states[rows], streams)
        self.rng[rows] = streams
        return actions


class RandomPlayer(_Streams):
    """Any legal action, or any vector within its bounds, at any table."""

    def __init__(self, spec: Spec, rng: np.ndarray) -> None:
        refuse_random(spec)
        self.spec, self.rng = spec, rng

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        streams, actions = self.rng[rows], blank_actions(self.spec, len(rows))
        if self.spec.box is None:
            legal_choice(turn.legal[rows], streams, actions)
        else:
            low, high = self.spec.box
            shares = np.empty((low.size, len(rows)), np.float32)
            for share in shares:
                uniforms(streams, share)
            actions[...] = low + shares.T.reshape(actions.shape) * (high - low)
        self.rng[rows] = streams
        return actions


def blank_actions(spec: Spec, n: int) -> np.ndarray:
    """Room for n actions: int32 [n], or float32 [n, *shape] of vectors."""
    return np.zeros((n, *spec.box[0].shape), np.float32) if spec.box else np.zeros(n, np.int32)


def refuse_random(spec: Spec) -> None:
    """Vectors without bounds can't be drawn with equal chances."""
    if spec.box is not None and not (np.isfinite(spec.box[0]).all() and np.isfinite(spec.box[1]).all()):
        raise Usage(f"{spec.game} has actions without bounds, so nobody can play at random: leave out random")


def bot_player(name: str, plan: "Plan", table: Table, index: int) -> Player:
    """A scripted bot at a worker's table, with its own streams."""
    streams = seeds.rows(plan.seed, table.rows, "worker", index, "bot", name)
    if name == "random":
        return RandomPlayer(table.spec, streams)
    if not isinstance(table, RulesTable):
        raise Usage(f"{plan.game} has no bot {name!r}: only native games have bots other than random")
    return BotPlayer(games.bot(name, plan.game, table.rules), table, streams)


class PastPlayer:
    """Earlier selves: every row has one of them for the length of a game."""

    def __init__(self, plan: "Plan", table: Table, past, rng: np.random.Generator) -> None:
        self.past, self.rng, self.spec = past, rng, table.spec
        self.policies = [self.make_policy(plan, table) for _ in range(past.slots)]
        self.versions = [-1] * past.slots
        self.slot = np.zeros(table.rows, np.int64)
        self.memory = Memory(plan.net, table.rows, table.spec.seats) if plan.net.memory else None

    def make_policy(self, plan: "Plan", table: Table) -> Any:
        from ludus.train.worker import make_policy

        return make_policy(table.spec, plan.net)

    def draw(self, rows: np.ndarray) -> None:
        """Choose which past self plays in each row, the better rated more often."""
        self.slot[rows] = self.past.draw(self.rng, len(rows))
        if self.memory:
            self.memory.forget(rows)

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        actions = blank_actions(self.spec, len(rows))
        for slot in np.unique(self.slot[rows]):
            self._refresh(slot)
            here = self.slot[rows] == slot
            actions[here] = self.act(slot, rows[here], turn)
        return actions

    def act(self, slot: int, rows: np.ndarray, turn: Turn) -> np.ndarray:
        """What one of them chooses."""
        memory = self.memory.at(rows, turn.seat[rows]) if self.memory else None
        act = self.policies[slot].act
        actions, _, memory = act(turn.obs[rows], turn.legal[rows], self.rng, 1.0, memory)
        if self.memory:
            self.memory.put(rows, turn.seat[rows], memory)
        return actions

    def snapshot(self) -> dict[str, Any]:
        memory = self.memory.snapshot() if self.memory else {}
        return {"rng": seeds.frozen(self.rng), "slot": self.slot.copy(), "memory": memory}

    def restore(self, snapshot: dict[str, Any]) -> None:
        seeds.thaw(self.rng, snapshot["rng"])
        self.slot[...] = snapshot["slot"]
        if self.memory:
            self.memory.restore(snapshot["memory"])

    def told_apart(self, rows: np.ndarray, there: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Each past self by name, and in which of the given games it sat."""
        slots = self.slot[rows]
        return [(f"{PAST}@{self.past.version(slot)}", there & (slots == slot)) for slot in np.unique(slots)]

    def _refresh(self, slot: int) -> None:
        if self.past.version(slot) != self.versions[slot]:
            vector, self.versions[slot] = self.past.read(slot)
            self.policies[slot].load(vector)


def joined(seen: list[LastSeen]) -> LastSeen | None:
    return LastSeen(*map(np.concatenate, zip(*seen, strict=True))) if seen else None


class Seating:
    """Puts players into seats at every deal and plays the opponents' decisions of a table."""

    def __init__(self, plan: "Plan", table: Table, index: int, past, make_past=None) -> None:
        """make_past: makes the player of past selves, if it isn't `PastPlayer`"""
        self.table, self.spec, self.make_past = table, table.spec, make_past or PastPlayer
        self.mix = parse_mix(plan.opponents, plan.game)
        self.alone = set(self.mix) == {SELF}
        self.names = [SELF, *(name for name in self.mix if name != SELF)]
        self.shares = np.array([self.mix.get(name, 0.0) for name in self.names])
        self.rng = seeds.generator(plan.seed, "worker", index, "seating")
        self.players: list[Player | None] = [None]
        for name in self.names[1:]:
            self.players.append(self._player(name, plan, index, past))
        self.lineup = np.zeros((table.rows, self.spec.seats), np.int8)
        self.finished: list[Finished] = []
        """Games that ended in the last step."""

    def _player(self, name: str, plan: "Plan", index: int, past) -> Player:
        if name == PAST:
            return self.make_past(plan, self.table, past, seeds.generator(plan.seed, "worker", index, "past"))
        return bot_player(name, plan, self.table, index)

    def start(self, turn: Turn) -> Turn:
        """Seat everybody and play on until every row waits for the learning policy."""
        self._seat(np.arange(self.table.rows), None)
        return self._until_ours(turn, None)

    def step(self, actions: np.ndarray, report: "Report") -> Turn:
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

    def _until_ours(self, turn: Turn, report: "Report | None") -> Turn:
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

    def _note(self, turn: Turn, report: "Report | None") -> None:
        """Count finished games for the seats of the learning policy, and seat the next ones."""
        done = turn.finished
        if done is None:
            return
        self.finished.append(done)
        ours = self.lineup[done.rows] == LEARNER  # [F, seats]
        if report is not None:
            report.games += len(done.rows)
            report.seats += int(ours.sum())
            report.score += float(done.score[ours].sum())
            report.stats += done.stats[ours].sum(0)
            self._note_results(done, ours, report)
        self._seat(done.rows, report)

    def _note_results(self, done, ours: np.ndarray, report: "Report") -> None:
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

    def _seat(self, rows: np.ndarray, report: "Report | None") -> None:
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


class League:
    """Past selves and everybody's rating, kept by the learner."""

    def __init__(self, past, decisions: int) -> None:
        from openskill.models import PlackettLuce

        self.model, self.past = PlackettLuce(), past
        self.ratings: dict[str, Any] = {SELF: self.model.rating()}
        self.every = max(decisions // 40, 1)
        """Decisions between two past selves."""
        self._next, self._slot = 0, 0
        self._names: list[str | None] = [None] * past.slots

    def add(self, deliveries: list, vector: np.ndarray, version: int, decisions: int) -> None:
        """Rate by the games just played, and remember ourselves from time to time."""
        for delivery in deliveries:
            for name, (count, wins) in delivery.report.results.items():
                self._rate(name, wins / count)
        if decisions >= self._next:
            self._next = decisions + self.every
            self._remember(vector, version)

    def _rate(self, name: str, share: float) -> None:
        """One rated game for each block: won if we took more than half of the games."""
        if name.startswith(f"{PAST}@") and name not in self._names:
            return  # it has left the league in the meantime
        ours, theirs = self.ratings[SELF], self.ratings.setdefault(name, self.model.rating())
        scores = [share, 1 - share]
        (ours,), (theirs,) = self.model.rate([[ours], [theirs]], scores=scores)
        self.ratings[SELF], self.ratings[name] = ours, theirs

    def _remember(self, vector: np.ndarray, version: int) -> None:
        name, old = f"{PAST}@{version}", self._names[self._slot]
        if old is not None:
            self.ratings.pop(old, None)
        self.past.write(self._slot, vector, version)
        mine = self.ratings[SELF]
        self.ratings[name] = self.model.rating(mine.mu, mine.sigma)
        self._names[self._slot] = name
        self._slot = (self._slot + 1) % self.past.slots
        skill = np.array([self.ratings[n].mu if n else -np.inf for n in self._names])
        odds = np.exp(
            (skill - skill.max()) / SPREAD
        )  # a self that is SPREAD better is drawn 2.7 times as often
        self.past.set_odds(odds / odds.sum())

    def state_dict(self) -> dict[str, Any]:
        ratings = {name: [rating.mu, rating.sigma] for name, rating in self.ratings.items()}
        return {
            "ratings": ratings, "next": self._next, "slot": self._slot, "names": list(self._names),
            "past": self.past.snapshot(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.ratings = {name: self.model.rating(*rating) for name, rating in state["ratings"].items()}
        self._next, self._slot, self._names = state["next"], state["slot"], list(state["names"])
        self.past.restore(state["past"])

    def metrics(self) -> dict[str, float]:
        newest = {f"rating/{name}": rating.mu for name, rating in self.ratings.items() if PAST not in name}
        past = [rating.mu for name, rating in self.ratings.items() if PAST in name]
        return newest | ({"rating/past": float(np.mean(past))} if past else {})
