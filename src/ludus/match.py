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
from ludus.core.rules import Bot, Rules

CHUNK = 50
"""Deals played side by side; also the unit of work of a process, small so that all cores end together."""


@dataclass(frozen=True)
class Duel:
    """One challenger against others: a game's score for each deal, and what its seats counted."""

    challenger: str
    opponent: str
    score: np.ndarray  # float64 [deals]: the challenger's mean over its seats
    stats: dict[str, float]  # mean for each game and seat of the challenger

    @property
    def mean(self) -> float:
        return float(self.score.mean())

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval."""
        return 1.96 * float(self.score.std(ddof=1)) / math.sqrt(len(self.score))


def duel(
    game: str, challenger: str, opponent: str, deals: int, seed: int = 0, cores: int = 0, **switches: Any
) -> Duel:
    """The challenger in each seat in turn, the opponent in all others; on all cores unless told."""
    sizes = [min(CHUNK, deals - start) for start in range(0, deals, CHUNK)]
    work = [
        (game, challenger, opponent, size, seeds.derive(seed, "chunk", i), switches)
        for i, size in enumerate(sizes)
    ]
    cores = min(cores or os.cpu_count() or 1, len(work))
    if cores == 1:
        parts = [_play_chunk(*item) for item in work]
    else:
        with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_play_chunk, *zip(*work, strict=True)))
    score = np.concatenate([score for score, _ in parts])
    stats = np.sum([stats for _, stats in parts], axis=0) / (deals * games.rules(game, **switches).spec.seats)
    names = games.rules(game, **switches).spec.stats
    return Duel(challenger, opponent, score, dict(zip(names, map(float, stats), strict=True)))


def _play_chunk(
    game: str, challenger: str, opponent: str, deals: int, seed: int, switches: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the challenger by deal, and the sum of its statistics."""
    rules = games.rules(game, **switches)
    bots = [player(challenger, game, rules), player(opponent, game, rules)]
    seats = rules.spec.seats
    score, stats = np.zeros(deals), np.zeros(len(rules.spec.stats))
    for seat in range(seats):
        lineup = [bots[0] if other == seat else bots[1] for other in range(seats)]
        final = play_games(rules, lineup, deals, seed)
        points = np.zeros((deals, seats), np.float32)
        counted = np.zeros((deals, seats, len(rules.spec.stats)), np.float32)
        rules.score(final, points)
        rules.stats(final, counted)
        score += points[:, seat] / seats
        stats += counted[:, seat].sum(0)
    return score, stats


def player(name: str, game: str, rules: Rules) -> Bot:
    """A bot of the game by name, or the agent of a run by its folder; `FOLDER+64` looks 64 futures ahead."""
    folder, _, rollouts = name.partition("+")
    from ludus.store.run import is_run

    if not is_run(Path(folder)):
        return games.bot(name, game, rules)
    from ludus.agent import Agent

    return Agent(rules, Path(folder), int(rollouts or 0))


def play_games(rules: Rules, lineup: list[Bot], n: int, seed: int) -> np.ndarray:
    """Final states of n games with a bot in each seat; equal seeds are equal deals."""
    states, rng = rules.blank(n), seeds.rows(seed, n, "deal")
    choices = seeds.rows(seed, n, "choice")
    rules.deal(states, rng)
    while True:
        over, seat = rules.over(states), rules.seat(states)
        if over.all():
            return states
        for place, bot in enumerate(lineup):
            rows = np.flatnonzero(~over & (seat == place))
            if len(rows):
                some, streams, luck = states[rows], rng[rows], choices[rows]
                rules.play(some, bot.choose(some, luck), streams)
                states[rows], rng[rows], choices[rows] = some, streams, luck
