"""What is tried for a moment with the real game: how fast it is, and where inference is faster."""

import copy
import dataclasses
import time
from collections.abc import Callable

from ludus import algos
from ludus.algos import Learner
from ludus.config import Config
from ludus.core.block import Block
from ludus.core.game import Game
from ludus.training.layout import Layout, filled, local
from ludus.training.pools import Pool

SECONDS = 1.0
"""For each of the two."""
PATIENCE_S = 60.0
"""How long workers may take to begin."""
TRIED_ROWS, TRIED_S = 4, 0.4
"""Games of an environment whose speed is measured, and for how long."""
BLOCK_S = 2.0
"""How long a worker may take for a block: Ctrl-C, limits and the first metrics wait for it."""
FEWEST_ROWS, SEARCH_ROWS = 4, 16
"""One batch of the network for fewer games costs as much; in a search it is larger."""


def sized(config: Config, game: Game, make_pool: Callable[[Config], Pool]) -> Config:
    """The configuration with `rows` and `steps`, where they are 0, by the measured speed of the game.

    A search's blocks hold finished games, so they may have few steps; others need them to learn from what
    follows a decision, so they have few rows.
    """
    full, searches = filled(config, game), algos.find(config.algo).searches
    if full == config or config.sync or (config.steps if searches else config.rows):
        return full  # a run that is to be reproduced must not depend on the clock
    tried = full if game.fast else dataclasses.replace(full, rows=TRIED_ROWS)
    pool = make_pool(tried)
    try:
        speed = _decisions_per_s(pool, tried)
    finally:
        pool.close()
    most = max(1, int(BLOCK_S * speed))
    if searches:
        rows = config.rows or min(full.rows, max(SEARCH_ROWS, most))
        return dataclasses.replace(full, rows=rows, steps=min(full.steps, max(1, most // rows)))
    return dataclasses.replace(full, rows=min(full.rows, max(FEWEST_ROWS, most // full.steps)))


def _decisions_per_s(pool: Pool, config: Config) -> float:
    """Of one worker; 0 if it makes none in time."""
    _play(pool, _patience_s(config), until=1)
    before, start = pool.beats(), time.perf_counter()
    if not before:
        return 0.0
    _play(pool, TRIED_S)
    beats = (pool.beats() - before) / (time.perf_counter() - start)
    return beats / algos.find(config.algo).beats_per_decision(config)


def measured_layout(
    config: Config, game: Game, central: Layout, learner: Learner, make_pool: Callable[[Layout], Pool]
) -> Layout:
    """The faster of central and local inference, and by how much; local, if central plays nothing in time."""
    other = local(config, game, central.device)
    algorithm = algos.find(config.algo)
    speed = {}
    for layout in (central, other):
        pool = make_pool(layout)
        try:
            if algorithm.searches:
                speed[layout] = _beats_per_s(pool, config) / algorithm.beats_per_decision(config)
            else:
                speed[layout] = _speed(layout, learner, pool, _patience_s(config))
        finally:
            pool.close()
        if not speed[central]:
            why = f"central inference gave no block within {_patience_s(config):.0f} s"
            return dataclasses.replace(other, why=f"{other.why} ({why})")
    best = max(speed, key=lambda layout: speed[layout])
    names = {central: "central", other: "local"}
    told = ", ".join(f"{names[layout]} {speed[layout]:,.0f}" for layout in speed)
    return dataclasses.replace(best, why=f"{best.why} (measured decisions/s: {told})")


def _patience_s(config: Config) -> float:
    """The clock of `--seconds` doesn't run yet, but nobody wants to wait longer than that."""
    return min(PATIENCE_S, config.seconds or PATIENCE_S)


def _beats_per_s(pool: Pool, config: Config) -> float:
    """Of all workers. Blocks of whole games would take too long to wait for."""
    _play(pool, _patience_s(config), until=config.rows * pool.workers)
    before, start = pool.beats(), time.perf_counter()
    _play(pool, 2 * SECONDS)
    return (pool.beats() - before) / (time.perf_counter() - start)


def _play(pool: Pool, seconds: float, until: float = float("inf")) -> None:
    """Have workers play for a time, or until they valued so many leaves."""
    start = time.perf_counter()

    def enough() -> bool:
        return time.perf_counter() - start > seconds or pool.beats() >= until

    while not enough():
        pool.release(pool.receive(enough))


def _speed(layout: Layout, learner: Learner, pool: Pool, patience_s: float) -> float:
    """Decisions/s that playing and learning would reach together; 0 if blocks don't come in time."""
    until = time.perf_counter() + patience_s

    def late() -> bool:
        return time.perf_counter() > until

    kept = copy.deepcopy(learner.state_dict())
    try:
        pool.release(pool.receive(late))  # the first block pays for starting
        start, decisions = time.perf_counter(), 0
        while True:
            deliveries = pool.receive(late)
            if not deliveries:
                return 0.0
            decisions += sum(delivery.block.decisions for delivery in deliveries)
            playing = (time.perf_counter() - start) / decisions
            if time.perf_counter() - start > SECONDS or late():
                break
            pool.release(deliveries)
        learning = _learning(learner, [delivery.block for delivery in deliveries], layout.overlap)
    finally:
        learner.load_state_dict(kept)
    return 1 / (max(playing, learning) if layout.overlap else playing + learning)


def _learning(learner: Learner, blocks: list[Block], off_policy: bool) -> float:
    """Seconds for a decision, once the update is recorded."""
    learner.learn(blocks, off_policy)
    start = time.perf_counter()
    learner.learn(blocks, off_policy)
    return (time.perf_counter() - start) / sum(block.decisions for block in blocks)
