"""Building a training: check what is asked for, size it to game and machine, and start the workers."""

import dataclasses
from collections.abc import Callable

import numpy as np
import torch

from ludus import algos, games, machine, processes
from ludus.algos import Plan
from ludus.config import Config, check_ranges
from ludus.core import seeds
from ludus.core.game import CHAMPION, Game, refuse_random
from ludus.nets.net import flat_size, flatten
from ludus.search.bot import warm_up
from ludus.training import pools, preload
from ludus.training.layout import Layout, check, filled, local, refuse_too_large
from ludus.training.measure import sized
from ludus.training.opponents import PAST, SELF, parse_mix
from ludus.training.players import champion_policy
from ludus.training.pools import ClusterPlan, Pool, PoolPlan

PRELOADED = ("ludus.training.pools.process", "ludus.nets.plain", "ludus.training.preload")
"""What every worker needs, so that a fork has it already."""


def open_game(config: Config) -> Game:
    """The game, once it can be trained as configured; its code is compiled now."""
    check_ranges(config)
    check(config)
    game = games.open(config.game, **config.switches)
    mix = parse_mix(config.opponents, game)
    if "random" in mix and game.spec.seats > 1:
        refuse_random(game.spec)
    algos.find(config.algo).refuse(filled(config, game), game)
    bots = _bots(config, game)
    if CHAMPION in bots and game.champion:
        champion_policy(game, game.champion)  # it must fit, before anything starts
    warm_up(game, bots)
    return game


def sized_config(config: Config, game: Game, status: Callable[[str], None]) -> Config:
    """With rows and steps, which are measured if they are left to us."""

    def tried(config: Config) -> Pool:
        one = dataclasses.replace(config, workers="1", sync=True)
        layout = local(one, game, "cpu")
        refuse_too_large(one, game, layout)
        status(f"measuring how fast {config.game} is")
        net = algos.find(config.algo).make_learner(config, game, "cpu").net
        return make_pool(one, game, net, layout, flat_weights(net))

    return sized(config, game, tried)


def flat_weights(net: torch.nn.Module) -> np.ndarray:
    """float32 [size]"""
    vector = np.zeros(flat_size(net), np.float32)
    flatten(net, vector)
    return vector


@processes.ended_on_error()
def make_pool(
    config: Config, game: Game, net: torch.nn.Module, layout: Layout, vector: np.ndarray, start: int = 0,
    log: str = "", tell: Callable[..., None] = pools.untold,
) -> Pool:  # fmt: skip
    """start: decisions made before, so that games are not played again. log: for what workers print. tell: is
    told of what happens to a cluster"""
    algorithm = algos.find(config.algo)
    plan = Plan(
        config.game, config.switches, config.algo, config.settings, config.net, config.rows, config.steps,
        config.opponents, seeds.derive(config.seed, "play", start) >> 1, max(layout.workers, 1),
        config.temperature_spread,
    )  # fmt: skip
    context = processes.make_context(config.start_method, announce(config, game))
    per_block = config.rows * config.steps
    least = -(-config.min_batch // per_block) if config.min_batch and not config.sync else 10**6
    most = layout.workers if config.sync else max(layout.workers, 2 * machine.usable_cores())
    return pools.make(
        layout.pool,
        PoolPlan(
            plan, algorithm.columns(config, game.spec), net, vector, context, layout.overlap, least, most,
            log, _cluster(config), tell,
        ),
    )  # fmt: skip


def announce(config: Config, game: Game) -> list[str]:
    """Which modules the fork server of the workers imports; it is told about their game too."""
    preload.announce(config.game, config.switches, sorted(_bots(config, game)))
    return [*PRELOADED, *algos.find(config.algo).preload]


def _cluster(config: Config) -> ClusterPlan:
    workers = 0 if config.workers == "auto" else int(config.workers)
    return ClusterPlan(config.ray_address, config.ray_modules, workers, config.max_lag, config.sync)


def _bots(config: Config, game: Game) -> set[str]:
    """Everybody whose code must be there before the first game."""
    mix = parse_mix(config.opponents, game)
    return {*mix, *algos.find(config.algo).bots(config.settings)} - {SELF, PAST}
