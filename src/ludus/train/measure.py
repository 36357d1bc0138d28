"""Where inference is faster on this machine: both ways are tried for a moment, with the real game."""

import copy
import dataclasses
import time
from collections.abc import Callable
from typing import Any

from ludus.config import Config
from ludus.train.layout import Layout, local
from ludus.train.pool import Pool

SECONDS = 1.0
"""For each of the two."""


def measured_layout(
    config: Config, central: Layout, learner: Any, make_pool: Callable[[Layout], Pool]
) -> Layout:
    """The faster of central and local inference, and by how much."""
    other = local(config, learner.spec, central.device)
    speed = {layout: _speed(layout, learner, make_pool(layout)) for layout in (central, other)}
    best = max(speed, key=lambda layout: speed[layout])
    names = {central: "central", other: "local"}
    told = ", ".join(f"{names[layout]} {speed[layout]:,.0f}" for layout in speed)
    return dataclasses.replace(best, why=f"{best.why} (measured decisions/s: {told})")


def _speed(layout: Layout, learner: Any, pool: Pool) -> float:
    """Decisions/s that playing and learning would reach together."""
    kept = copy.deepcopy(learner.state_dict())
    try:
        pool.release(pool.receive())  # the first block pays for starting
        start, decisions = time.perf_counter(), 0
        while True:
            deliveries = pool.receive()
            decisions += sum(delivery.block.decisions for delivery in deliveries)
            playing = (time.perf_counter() - start) / decisions
            if time.perf_counter() - start > SECONDS:
                break
            pool.release(deliveries)
        learning = _learning(learner, [delivery.block for delivery in deliveries])
    finally:
        pool.close()
        learner.load_state_dict(kept)
    return 1 / (max(playing, learning) if layout.overlap else playing + learning)


def _learning(learner: Any, blocks: list) -> float:
    """Seconds for a decision, once the update is recorded."""
    learner.learn(blocks, behind=False)
    start = time.perf_counter()
    learner.learn(blocks, behind=False)
    return (time.perf_counter() - start) / sum(block.decisions for block in blocks)
