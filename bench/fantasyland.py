"""What Fantasyland is worth among equals: the numbers in `games/ofc/scoring.py`, counted in sessions.

    python bench/fantasyland.py champion+0 --sessions 24000

Gains are fitted to all hands: a seat wins its own from each of the others, less theirs. The last lines
compare what seats in Fantasyland won by the session's end with what they are paid in training (`PAID`).
"""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Annotated

import numpy as np
import tyro

from figures import figure
from ludus import games, machine, match
from ludus.core import seeds
from ludus.core.statistics import Z
from ludus.games.ofc.scoring import PAID, SESSION
from ludus.processes import ONE_THREAD

CARDS = np.arange(14, 18)
CHUNK = 1000
HANDS = 10


@dataclass
class Options:
    agent: Annotated[str, tyro.conf.Positional] = "champion+0"
    """In all three seats."""
    sessions: int = 24_000
    seed: int = 0


def play(agent: str, sessions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Fantasyland cards and points before each hand, then at the end. int8, float32 [sessions, 11, 3]; cards
    are -1 where all seats were in Fantasyland, whose hand is over at once"""
    game = games.open("ofc", hands=HANDS).native("played")
    rules, bot = game.rules, match.player(agent, game)
    states, rng, choices = rules.blank(sessions), seeds.rows(seed, sessions), seeds.rows(seed, sessions, "x")
    rules.deal(states, rng)
    cards = np.full((sessions, HANDS + 1, 3), -1, np.int8)
    points = np.zeros((sessions, HANDS + 1, 3), np.float32)
    cards[:, 0] = 0
    while (alive := np.flatnonzero(~rules.over(states))).size:
        some, streams, own = states[alive], rng[alive], choices[alive]
        before = some["hand"].copy()
        rules.play(some, bot.choose(some, own), streams)
        states[alive], rng[alive], choices[alive] = some, streams, own
        ended, hand = some["hand"] > before, some["hand"]
        points[alive[ended], hand[ended]] = some["points"][ended]
        followed = some["hand"] == before + 1
        cards[alive[followed], hand[followed]] = some["fantasy_cards"][followed]
    return cards, points


def fitted(cards: np.ndarray, won: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What 14 to 17 cards won from each other seat, and the margins. [4]; cards, won: [N, 3]"""
    has = (cards[..., None] == CARDS).astype(float)  # [N, 3, 4]
    x, y = (3 * has - has.sum(1, keepdims=True)).reshape(-1, 4), won.reshape(-1)
    inverse = np.linalg.inv(x.T @ x)
    gain = inverse @ (x.T @ y)
    return gain, Z * np.sqrt(np.diag(inverse) * (y - x @ gain).var())


def tell(name: str, values: np.ndarray, margins: np.ndarray, unit: str) -> None:
    for count, value, margin in zip(CARDS, values, margins, strict=True):
        figure(f"{name}.{count}", value, f"{unit} ± {margin:.2g}")


def shares(name: str, now: np.ndarray, later: np.ndarray, held: np.ndarray) -> None:
    """How many of those who hold so many cards, 0 for all kinds, have 14 to 17 in the next hand."""
    of = np.array([(now == count).sum() for count in held])
    part = np.array([((now == h) & (later == c)).sum() for h, c in zip(held, CARDS, strict=True)]) / of
    tell(name, 100 * part, 100 * Z * np.sqrt(part * (1 - part) / of), "%")


def measure(options: Options) -> None:
    os.environ.update(ONE_THREAD)  # for the processes
    with ProcessPoolExecutor(machine.usable_cores(), mp_context=get_context("spawn")) as pool:
        count = -(-options.sessions // CHUNK)
        jobs = [
            pool.submit(play, options.agent, CHUNK, seeds.derive(options.seed, "chunk", i))
            for i in range(count)
        ]
        cards, points = map(np.concatenate, zip(*(job.result() for job in jobs), strict=True))
    known = (cards >= 0).all(2)
    hand = known[:, :-2] & known[:, 1:-1]
    hand[:, 0] = False  # nobody is in Fantasyland yet
    now, later = cards[:, :-2][hand], cards[:, 1:-1][hand]
    tell("ofc.fantasyland.gain", *fitted(now, (points[:, 1:-1] - points[:, :-2])[hand]), "points/opponent")
    last = known[:, HANDS - 1]
    won = (points[:, HANDS] - points[:, HANDS - 1])[last]
    tell("ofc.fantasyland.last_gain", *fitted(cards[:, HANDS - 1][last], won), "points/opponent")
    shares("ofc.fantasyland.stay", now, later, CARDS)
    shares("ofc.fantasyland.entry", now, later, np.zeros(4, int))
    for to_come in (1, 2, 3, 5, 8):
        here = known[:, HANDS - to_come]
        won = (points[:, HANDS] - points[:, HANDS - to_come])[here]
        worth, margins = fitted(cards[:, HANDS - to_come][here], won)
        paid = " ".join(f"{value:.1f}" for value in PAID[SESSION + to_come])
        tell(f"ofc.fantasyland.worth.{to_come}", worth, margins, f"points/opponent; all are paid {paid}")


if __name__ == "__main__":
    measure(tyro.cli(Options, description=__doc__))
