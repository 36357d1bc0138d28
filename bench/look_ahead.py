"""What look-ahead brings an OFC agent against two of its policy alone, decision by decision.

    python bench/look_ahead.py champion --think 256 --sessions 100

The agent that looks ahead plays sessions; wherever it doesn't take its policy's first choice, new futures in
which the policy plays all seats say what the difference is worth. The sum of these is what it wins (the
performance difference lemma, Kakade and Langford 2002) as far as these futures are like the game. Most of the
luck of the cards is left out.
"""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Annotated

import numpy as np
import tyro

from figures import figure
from ludus import games, machine, match
from ludus.algos.agent import LookAhead
from ludus.core import seeds
from ludus.core.rules import Bot, Rules, States, Streams
from ludus.core.statistics import margin
from ludus.processes import ONE_THREAD

STREETS = 4
"""The last one is exact for everybody."""


@dataclass
class Options:
    agent: Annotated[str, tyro.conf.Positional] = "champion"
    """A run of PPO, or `champion`."""
    think: str = "256"
    """Futures, or a time; empty: as far as the agent looks by itself."""
    sessions: int = 100
    """Of ten hands."""
    futures: int = 400
    """That say what a decision is worth."""
    seed: int = 0


class Weighed:
    """A bot, and what its decisions are worth beside those of its policy."""

    def __init__(self, rules: Rules, bot: Bot, policy: Bot, weigh: LookAhead, futures: int) -> None:
        self.rules, self.bot, self.policy, self.weigh, self.futures = rules, bot, policy, weigh, futures
        self.worth, self.took_s = np.zeros(STREETS), list[float]()

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        start_s = time.perf_counter()
        chosen = self.bot.choose(states, rng)
        self.took_s.append(time.perf_counter() - start_s)
        first = self.policy.choose(states, rng)
        for i in np.flatnonzero(chosen != first):
            start = states[i : i + 1].copy()
            self.rules.cut(start)  # type: ignore[attr-defined]
            ideas = np.array([first[i], chosen[i]], np.int32)
            outcome = self.weigh._outcomes(start, ideas, rng[i : i + 1], self.futures)
            self.worth[start["street"][0]] += (outcome[1] - outcome[0]).mean()
        return chosen


def play(options: Options, session: int) -> tuple[np.ndarray, list[float]]:
    """What each street's decisions were worth in one session, then its hands and its normal ones, [6]; the
    seconds that each decision took."""
    game = games.open("ofc").native("played")
    rules, seat = game.rules, session % game.spec.seats
    policy = match.player(f"{options.agent}+0", game)
    bot = match.player(f"{options.agent}+{options.think}" if options.think else options.agent, game)
    weighed = Weighed(rules, bot, policy, LookAhead(rules, policy.policy, 1), options.futures)  # type: ignore[attr-defined]
    lineup = [weighed if place == seat else policy for place in range(game.spec.seats)]
    final = match.played(match.game_steps(rules, lineup, 1, seeds.derive(options.seed, "session", session)))
    stats = np.zeros((1, game.spec.seats, len(rules.spec.stats)), np.float32)
    rules.stats(final, stats)
    normal, fantasy = (stats[0, seat, rules.spec.stats.index(name)] for name in ("hands", "fl_hands"))
    return np.array([*weighed.worth, normal + fantasy, normal]), weighed.took_s


def measure(options: Options) -> None:
    os.environ.update(ONE_THREAD)  # for the processes
    with ProcessPoolExecutor(machine.usable_cores(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(play, options, session) for session in range(options.sessions)]
        results = [job.result() for job in jobs]
    found, took_s = np.array([result[0] for result in results]), np.concatenate([s for _, s in results])
    worth, hands, normal = found[:, :STREETS], found[:, STREETS].sum(), found[:, STREETS + 1].sum()
    total = worth.sum(1) * len(found) / hands
    figure("ofc.think.by_decision", total.mean(), f"points/hand ± {margin(total):.2g}")
    for street, sum_ in enumerate(worth.sum(0), 1):
        figure(f"ofc.think.street_{street}", sum_ / normal, "points/normal hand")
    figure("ofc.think.mean_s", took_s.mean(), "s")
    figure("ofc.think.most_s", np.quantile(took_s, 0.999), "s, in all but one of 1,000 decisions")


if __name__ == "__main__":
    measure(tyro.cli(Options, description=__doc__))
