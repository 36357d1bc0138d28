"""Matches: who is stronger, by how much, and how sure. Knows rules and bots, not how bots came to be.

Deals are mirrored: every deal is played once for each seat of the challenger, with the same chance,
and counts as one sample, so that luck of the cards and of the seat cancels.
"""

import math
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ludus import games
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.rules import Bot, RandomBot, Rules
from ludus.search.bot import SearchBot

ROWS = 64
"""Environments side by side."""
CHUNK = 50
"""Deals played side by side; also the unit of work of a process, small so that all cores end together."""


MOST_OPENING = 12
"""First moves at random after which games are still worth playing."""


@dataclass(frozen=True)
class Terms:
    """How matches are played."""

    hands: int | None = None
    games: int | None = None
    seed: int = 0
    opening: int | None = None
    """First moves that are made at random; as many as the game says unless told."""
    pentobi: str = "pentobi-gtp"


def opening_of(game: str, told: int | None) -> int:
    """Random first moves. Games without chance say how many, or all their matches would be the same."""
    opening = getattr(games.find(game), "OPENING", 0) if told is None else told
    if not 0 <= opening <= MOST_OPENING:
        raise Usage(f"an opening has 0 to {MOST_OPENING} moves, not {opening}")
    return opening


@dataclass(frozen=True)
class Duel:
    """One challenger against others: its results for each deal and seat, and what its seats counted."""

    challenger: str
    opponent: str
    points: np.ndarray  # float64 [deals, seats]
    won: np.ndarray  # float64 [deals, seats]: 1, or a share if others had as many points
    stats: dict[str, float]  # mean for each game and seat of the challenger

    @property
    def mean(self) -> float:
        return float(self.points.mean())

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval; a deal is one sample, because its seats share their luck."""
        return 1.96 * float(self.points.mean(1).std(ddof=1)) / math.sqrt(len(self.points))

    @property
    def win_margin(self) -> float:
        return 1.96 * float(self.won.mean(1).std(ddof=1)) / math.sqrt(len(self.won))

    @property
    def seed_sets(self) -> list[float]:
        """The mean of either half: they were dealt from seeds of their own, and should agree."""
        half = len(self.points) // 2
        return [float(part.mean()) for part in (self.points[:half], self.points[half:])]

    @property
    def by_seat(self) -> list[float]:
        return [float(mean) for mean in self.points.mean(0)]


def duel(
    game: str, challenger: str, opponent: str, deals: int, seed: int = 0, cores: int = 0,
    opening: int | None = None, **switches: Any,
) -> Duel:  # fmt: skip
    """The challenger in each seat in turn, the opponent in all others; on all cores unless told.

    opening: first moves that are made at random, as the game says unless told
    """
    half, opening = deals // 2, opening_of(game, opening)
    work = [
        (game, challenger, opponent, size, seeds.derive(seed, "set", number, "chunk", i), opening, switches)
        for number, count in enumerate((half, deals - half))
        for i, size in enumerate(_chunks(count))
    ]
    cores = min(cores or os.cpu_count() or 1, len(work))
    if cores == 1:
        parts = [_play_chunk(*item) for item in work]
    else:
        with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_play_chunk, *zip(*work, strict=True)))
    points, won, counted = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = games.rules(game, **switches).spec.stats
    stats = dict(zip(names, map(float, counted.mean((0, 1))), strict=True))
    return Duel(challenger, opponent, points, won, stats)


def _chunks(deals: int) -> list[int]:
    return [min(CHUNK, deals - start) for start in range(0, deals, CHUNK)]


def _play_chunk(
    game: str, challenger: str, opponent: str, deals: int, seed: int, opening: int, switches: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points and wins of the challenger by deal and seat, and its statistics [deals, seats, ...]."""
    rules = games.rules(game, **switches)
    bots = [player(challenger, game, rules), player(opponent, game, rules)]
    seats, count = rules.spec.seats, len(rules.spec.stats)
    points, won = np.zeros((deals, seats)), np.zeros((deals, seats))
    stats = np.zeros((deals, seats, count), np.float32)
    for seat in range(seats):
        lineup = [bots[0] if other == seat else bots[1] for other in range(seats)]
        final = play_games(rules, lineup, deals, seed, opening)
        score = np.zeros((deals, seats), np.float32)
        counted = np.zeros((deals, seats, count), np.float32)
        rules.score(final, score)
        rules.stats(final, counted)
        points[:, seat], won[:, seat] = score[:, seat], wins(score)[:, seat]
        stats[:, seat] = counted[:, seat]
    return points, won, stats


def wins(score: np.ndarray) -> np.ndarray:
    """Shares of a win by seat; equal points share it. score: [N, seats]"""
    best = score == score.max(1, keepdims=True)
    return best / best.sum(1, keepdims=True)


def table_duel(folder: Path, opponent: str, count: int, seed: int = 0, at: str = "") -> Duel:
    """The agent of a run at an environment that is not native: alone, or in each seat against an opponent.

    Nothing can be dealt twice there, so each game is a deal of its own; seats take turns by row.
    """
    from ludus.agent import TableAgent
    from ludus.store.run import read_config
    from ludus.train.league import RandomPlayer

    config = read_config(folder)
    rows = max(2, min(count, ROWS))
    table = games.table(config.game, rows, **config.switches)
    agent, seats = TableAgent(table, folder, at), table.spec.seats
    other = RandomPlayer(seeds.rows(seed, rows, "opponent")) if opponent == "random" else None
    ours, every = np.arange(rows) % seats, np.arange(rows)
    quota = np.full(
        rows, -(-count // rows)
    )  # games of each row: counting the first to end would favour short ones
    found: list[tuple[int, np.ndarray, np.ndarray]] = []
    turn = table.reset(seed)
    while (quota > 0).any():
        actions = agent.choose(every, turn)
        if other is not None and (theirs := np.flatnonzero(turn.seat != ours)).size:
            actions[theirs] = other.choose(theirs, turn)
        turn = table.step(actions)
        agent.forget(turn.ended | turn.truncated)
        if turn.finished is None:
            continue
        for row, score, stats in zip(*turn.finished[:3], strict=True):
            if quota[row] > 0:
                found.append((int(ours[row]), score.copy(), stats[ours[row]].copy()))
            quota[row] -= 1
    table.close()
    score = np.array([score for _, score, _ in found])
    seat = np.array([seat for seat, _, _ in found])
    every = np.arange(len(found))
    counted = np.array([stats for _, _, stats in found]).mean(0)
    return Duel(
        str(folder), opponent, score[every, seat][:, None], wins(score)[every, seat][:, None],
        dict(zip(table.spec.stats, map(float, counted), strict=True)),
    )  # fmt: skip


def player(name: str, game: str, rules: Rules) -> Bot:
    """A bot of the game by name, or the agent of a run by its folder.

    `FOLDER@best` and `FOLDER@3000000` are earlier selves of it. `FOLDER+64` and `search+2000` say how far it
    looks ahead, and `FOLDER+100ms` for how long.
    """
    folder, _, think = name.partition("+")
    folder, _, at = folder.partition("@")
    from ludus.store.run import is_run

    if is_run(Path(folder)):
        from ludus.agent import make_agent

        return make_agent(rules, Path(folder), think, at)
    bot = games.bot(folder, game, rules)
    if think:
        if not isinstance(bot, SearchBot):
            raise Usage(f"{folder} doesn't look ahead, so it can't be told how far: leave out +{think}")
        bot.limit(think)
    return bot


def play_games(rules: Rules, lineup: list[Bot], n: int, seed: int, opening: int = 0) -> np.ndarray:
    """Final states of n games with a bot in each seat; equal seeds are equal deals.

    opening: first moves that are made at random, in games that would all be the same without
    """
    states, rng = rules.blank(n), seeds.rows(seed, n, "deal")
    choices, anyone = seeds.rows(seed, n, "choice"), RandomBot(rules)
    rules.deal(states, rng)
    for _ in range(opening):
        open_rows = np.flatnonzero(~rules.over(states))
        some, luck = states[open_rows], rng[open_rows]
        rules.play(some, anyone.choose(some, luck), luck)
        states[open_rows], rng[open_rows] = some, luck
    while True:
        over, seat = rules.over(states).copy(), rules.seat(states).copy()  # rules may give views
        if over.all():
            return states
        for place, bot in enumerate(lineup):
            rows = np.flatnonzero(~over & (seat == place))
            if len(rows):
                some, streams, luck = states[rows], rng[rows], choices[rows]
                rules.play(some, bot.choose(some, luck), streams)
                states[rows], rng[rows], choices[rows] = some, streams, luck
