"""The page everyone reads: receive, learn, publish, save, report."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus import games, machine
from ludus.algos import ppo
from ludus.algos.ppo.learner import Learner
from ludus.config import Config
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.spec import Spec
from ludus.nets.net import Net, flat_size, flatten
from ludus.store.run import Run
from ludus.train.central import CentralPool
from ludus.train.league import League, parse_mix
from ludus.train.meter import Meter
from ludus.train.pool import LocalPool, Pool, ProcessPool, make_context
from ludus.train.weights import Past
from ludus.train.worker import Plan

Screen = Callable[[dict[str, Any]], None]
"""Shows the newest metrics; training never waits for it."""


@dataclass(frozen=True)
class Layout:
    """How this machine's cores are used."""

    workers: int
    overlap: bool
    threads: int
    device: str
    central: bool
    why: str


def lay_out(config: Config) -> Layout:
    """Workers, torch threads, device and where inference runs, from the cores there are."""
    cores = machine.usable_cores()
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if config.workers != "auto" and not config.workers.isdigit():
        raise Usage(f"--workers is auto or a number, not {config.workers!r}")
    central = config.inference == "central" or (config.inference == "auto" and device == "cuda")
    if central and config.net.memory:
        raise Usage("a network with memory plays in the workers: take --inference local")
    if central:
        groups = max(2, cores - 2) if config.workers == "auto" else max(1, int(config.workers))
        why = f"{groups} groups of games in threads, inference on {device} beside the learner"
        return Layout(groups, False, max(1, cores // 2), device, True, why)
    # Below four cores workers and learner both want all of them, so they take turns.
    overlap = not config.sync and (device == "cuda" or cores >= 4) and config.workers != "0"
    learner = 1 if device == "cuda" else max(1, cores // 3) if overlap else cores
    free = max(1, cores - learner) if overlap else cores
    workers = free if config.workers == "auto" else int(config.workers)
    turns = "workers play while the learner learns" if overlap else "workers and learner take turns"
    return Layout(workers, overlap, learner, device, False, f"{turns} on {cores} cores")


def spec_of(config: Config) -> Spec:
    mix = parse_mix(config.opponents, config.game)
    if ":" not in config.game:
        rules = games.rules(config.game, **config.switches)
        games.warm_up(config.game, rules, {*mix, config.ppo.teacher} - {"self", "past", ""})
        return rules.spec
    table = games.table(config.game, 1, **config.switches)
    table.close()
    return table.spec


def refuse_nothing_to_learn(config: Config, spec: Spec) -> None:
    """A seat's last decision in a block is not known yet, so each row must have more decisions than seats."""
    for name in ("decisions", "rows"):
        if getattr(config, name) < 1:
            raise Usage(f"{name} is {getattr(config, name)}, but must be at least 1")
    if (config.steps - spec.seats) * config.rows < 2:
        raise Usage(f"steps is {config.steps}, too few to learn from: take at least {spec.seats + 2}")


def make_pool(config: Config, net: Net, layout: Layout, vector: np.ndarray) -> Pool:
    plan = Plan(
        config.game, config.switches, config.net, config.rows, config.steps, config.opponents,
        seeds.derive(config.seed, "play") >> 1, max(layout.workers, 1), config.ppo.teacher, config.explore,
    )  # fmt: skip
    context = make_context(config.start)
    past, columns = Past(context, len(vector)), ppo.columns(net.spec, config.ppo, config.net.memory)
    past.write(0, vector, 0)  # until there is another, the past self is the one we begin as
    if layout.central:
        return CentralPool(plan, columns, net, past, layout.workers, context)
    if layout.workers == 0:
        return LocalPool(plan, columns, vector, past)
    per_block = config.rows * config.steps
    least = -(-config.min_batch // per_block) if config.min_batch and not config.sync else layout.workers
    slots = 2 if layout.overlap else 1
    return ProcessPool(
        plan, columns, vector, past, context, slots=slots, min_blocks=min(least, layout.workers)
    )


def train(config: Config, screen: Screen) -> Path:
    """Train until the budget is spent; the run's folder."""
    spec, layout = spec_of(config), lay_out(config)
    refuse_nothing_to_learn(config, spec)
    torch.manual_seed(seeds.derive(config.seed, "learner"))
    torch.set_num_threads(layout.threads)
    net = Net(spec, config.net)
    learner = Learner(spec, net, config.ppo, layout.device)
    vector = np.zeros(flat_size(net), np.float32)
    flatten(net, vector)
    run = Run.create(config)
    pool = make_pool(config, net, layout, vector)
    run.event("start", layout=layout.why, workers=layout.workers, device=layout.device)
    try:
        _loop(config, layout, learner, pool, run, vector, screen)
    finally:
        pool.close()
        run.save(net.state_dict())
        run.close()
    return run.folder


def _loop(
    config: Config, layout: Layout, learner: Learner, pool: Pool, run: Run, vector: np.ndarray, screen: Screen
) -> None:
    meter, league = Meter(learner.spec, layout.why), League(pool.past, config.decisions)
    version, saved_at, done = 0, time.monotonic(), False
    while not done:
        with meter.phase("waiting for workers"):
            deliveries = pool.receive()
        with meter.phase("learning"):
            learner.progress = meter.progress(config.decisions, config.seconds)
            behind = any(delivery.version < version for delivery in deliveries)
            losses = learner.learn([delivery.block for delivery in deliveries], behind)
        with meter.phase("publishing"):
            version += 1
            flatten(learner.net, vector)
            pool.publish(vector, version)
            meter.add(deliveries, version)
            league.add(deliveries, vector, version, meter.decisions)
            pool.release(deliveries)  # only now: workers must not meet a league that is changing
        done = meter.spent(config.decisions, config.seconds)
        if done or meter.due(config.log_s):
            metrics = meter.read(losses, pool.health()) | league.metrics()
            run.metrics(metrics)
            screen(metrics)
        if time.monotonic() - saved_at > config.save_s:
            with meter.phase("saving"):
                run.save(learner.net.state_dict())
            saved_at = time.monotonic()
