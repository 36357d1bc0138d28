"""How many workers feed one learner, and what saturates first: a model, fitted to what is measured here.

Prints a table for each game and network, up to 10,000 cores. Times are CPU times of one thread, so that other
programs on the machine hardly matter. What a GPU learns is not measured here: see LEARNERS.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus import algos
from ludus.algos import Plan
from ludus.config import Config, overlay, resolve
from ludus.core.block import Block, block_bytes
from ludus.training.build import flat_weights, open_game
from ludus.training.weights import Past
from ludus.training.worker import make_actor

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "OFC, 320-256": ("ofc", {"opponents": "self", "net": {"hidden": [320, 256]}, "ppo": {"teacher": ""}}),
    "OFC, 1024-512-512": (
        "ofc",
        {"opponents": "self", "net": {"hidden": [1024, 512, 512]}, "ppo": {"teacher": ""}},
    ),
    "connect four": ("connect4", {"alphazero": {"learning_starts": 1}}),
    "Blokus Duo, 64 x 4": ("blokus", {"rows": 16, "steps": 4, "alphazero": {"learning_starts": 1}}),
    "Blokus Duo, 96 x 6": (
        "blokus",
        {"rows": 16, "steps": 4, "net": {"channels": 96, "blocks": 6}, "alphazero": {"learning_starts": 1}},
    ),
    "CartPole": ("gym:CartPole-v1", {}),
}
"""Games and networks: the game, and what differs from its default preset."""
LEARNERS = {"OFC, 320-256": 10.9e6, "OFC, 1024-512-512": 5.65e6, "Blokus Duo, 96 x 6": 7.5e3}
"""Decisions/s of a learner on an H200, where they are known: those of whole trainings with central inference
(docs/performance.md), so the learner alone is at least so fast."""
CORES = (1, 4, 16, 64, 256, 1024, 4096, 10_000)
NODE_CORES = 64
"""Of a worker's node: all of its workers share one copy of the weights."""
PLAY_S = 4.0
"""CPU time for which each game is played."""


@dataclass(frozen=True)
class Measured:
    worker: float
    """Decisions/s of one core."""
    learner: float
    """Decisions/s of a learner with one thread."""
    block_decisions: int
    block_bytes: int
    weights_bytes: int


@dataclass(frozen=True)
class Links:
    """What lies between workers and learner."""

    network: float
    """Bytes/s into the learner's machine."""
    store: float
    """Bytes/s through the object store into the learner (`ray.store`)."""
    calls: float
    """Blocks/s that the learner can ask for and take (`ray.calls`)."""


def measure(game_name: str, changes: dict[str, Any]) -> Measured:
    config = overlay(resolve(game_name), {"workers": "1", **changes}, "model")
    config = overlay(config, {"rows": config.rows or 64, "steps": config.steps or 16}, "model")
    game, algorithm = open_game(config), algos.find(config.algo)
    torch.set_num_threads(1)
    learner = algorithm.make_learner(config, game, "cpu")
    vector, columns = flat_weights(learner.net), algorithm.columns(config, game.spec)
    blocks, speed = played(config, vector, columns)
    learner.learn(blocks, off_policy=False)  # compiles, and fills a replay buffer
    start, learned = time.process_time(), 0
    while learned < 2 or time.process_time() - start < PLAY_S / 2:
        learner.learn(blocks, off_policy=False)
        learned += 1
    decisions = sum(block.decisions for block in blocks)
    learning = learned * decisions / (time.process_time() - start)
    size = block_bytes(columns, config.steps, config.rows)
    return Measured(speed, learning, config.rows * config.steps, size, vector.nbytes)


def played(config: Config, vector: np.ndarray, columns: list[Any]) -> tuple[list[Block], float]:
    """Some blocks of one actor, and its decisions/s."""
    plan = Plan(
        config.game, config.switches, config.algo, config.settings, config.net, config.rows, config.steps,
        config.opponents,
    )  # fmt: skip
    actor, table = make_actor(plan, 0, Past(get_context("spawn"), vector), np.zeros(3, np.int64))
    actor.load(vector, 1.0)
    actor.fill(Block(columns, config.steps, config.rows))
    blocks, start = [], time.process_time()
    while time.process_time() - start < PLAY_S:
        blocks.append(Block(columns, config.steps, config.rows))
        actor.fill(blocks[-1])
    took = time.process_time() - start
    table.close()
    return blocks[-4:], len(blocks) * config.rows * config.steps / took


# ---- the model


def limits(case: Measured, links: Links, learner: float) -> dict[str, float]:
    """Decisions/s that each part can carry, however many workers there are."""
    per_decision = case.block_bytes / case.block_decisions
    return {
        "learner": learner,
        "network": links.network / per_decision,
        "object store": links.store / per_decision,
        "Ray's calls": links.calls * case.block_decisions,
        # Each node fetches each version once, and there is a version for a block of every worker.
        "weights": links.network * NODE_CORES * case.block_decisions / case.weights_bytes,
    }


def rows(name: str, case: Measured, links: Links, learner: float, where: str) -> list[str]:
    found = limits(case, links, learner)
    first = min(found, key=lambda part: found[part])
    enough = found[first] / case.worker
    speeds = [f"{human(min(cores * case.worker, found[first]))}" for cores in CORES]
    return [f"| {name} | {where} | {human(case.worker)} | {enough:,.0f} | {first} | {' | '.join(speeds)} |"]


def human(value: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", type=float, default=1.25e9, help="bytes/s into the learner (10 Gbit/s)")
    parser.add_argument("--store", type=float, default=1.6e9, help="bytes/s, figure ray.store of bench-ray")
    parser.add_argument("--calls", type=float, default=2000.0, help="blocks/s, figure ray.calls of bench-ray")
    parser.add_argument("--threads", type=int, default=8, help="threads of a learner without a GPU")
    parser.add_argument("--measured", type=Path, help="a file to read measurements from, or to write them to")
    flags = parser.parse_args()
    links = Links(flags.network, flags.store, flags.calls)
    known = json.loads(flags.measured.read_text()) if flags.measured and flags.measured.exists() else {}
    print(f"| | learner | a worker's decisions/s | workers that feed it | saturates first | {head()} |")
    print(f"|---|---|---|---|---|{'---|' * len(CORES)}")
    for name, (game, changes) in CASES.items():
        case = Measured(**known[name]) if name in known else measure(game, changes)
        known[name] = asdict(case)
        lines = rows(name, case, links, flags.threads * case.learner, f"{flags.threads} cores")
        if name in LEARNERS:
            lines += rows(name, case, links, LEARNERS[name], "H200")
        print("\n".join(lines), flush=True)
    if flags.measured:
        flags.measured.write_text(json.dumps(known, indent=1))
    else:
        print(json.dumps(known), file=sys.stderr)


def head() -> str:
    return " | ".join(f"{cores:,} core{'s' if cores > 1 else ''}" for cores in CORES)


if __name__ == "__main__":
    main()
