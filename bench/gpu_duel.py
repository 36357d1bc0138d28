"""Two board networks against each other on a GPU, hundreds of games side by side: 1,400 of Blokus in 20 s.

    python bench/gpu_duel.py runs/new champion --simulations 24 --opening sensible

Each opening is played from both seats. Openings are two random moves, or four moves drawn from short searches
of the second player. Without a GPU it works too, slowly.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
import tyro

from figures import figure
from ludus import games
from ludus.algos.alphazero import utility
from ludus.algos.alphazero.evaluators import DeviceNetwork, PlayingCopies
from ludus.core import seeds
from ludus.core.dice import weighted_choice
from ludus.core.game import NativeGame
from ludus.core.rules import RandomBot, States, Streams
from ludus.core.statistics import Z
from ludus.nets.board import BoardNet
from ludus.search import Result, Search, SearchConfig
from ludus.store.run import read_config, read_weights

OPENING_SIMULATIONS = 12
"""Of the searches that sensible openings are drawn from."""


@dataclass
class Options:
    challenger: Annotated[str, tyro.conf.Positional]
    """A run, or `champion`."""
    opponent: Annotated[str, tyro.conf.Positional] = "champion"
    game: str = "blokus"
    openings: int = 700
    simulations: int = 24
    temperature: float = 0.0
    """Of the challenger's priors. 0: as in its run (`--alphazero.play-temperature`)."""
    opponent_temperature: float = 0.0
    opening: Literal["random", "sensible"] = "random"
    threads: int = max(1, (os.cpu_count() or 1) - 2)
    seed: int = 0


class Network:
    """A network on the device, shared by the searches of all threads."""

    def __init__(self, game: NativeGame, name: str, rows: int, options: Options) -> None:
        folder = game.champion if name == "champion" else Path(name)
        assert folder is not None
        self.rules, self.config, self.rows, self.options = game.rules, read_config(folder), rows, options
        net = BoardNet(game.spec, self.config.net)
        net.load_state_dict({key: torch.from_numpy(array) for key, array in read_weights(folder).items()})
        net.to("cuda" if torch.cuda.is_available() else "cpu")
        self.copies = PlayingCopies(net.to(memory_format=torch.channels_last))  # type: ignore[call-overload]

    def search(self, temperature: float) -> Search:
        settings = self.config.settings
        search = SearchConfig(
            self.options.simulations,
            c_puct=settings.search.c_puct,
            first_play_reduction=settings.search.first_play_reduction,
            prior_temperature=temperature or settings.play_temperature,
        )
        evaluate = DeviceNetwork(self.rules, self.copies, self.rows)
        return Search(self.rules, self.rows, search, evaluate, utility(settings, self.rules.spec))


def think(search: Search, states: States, rng: Streams, simulations: int | None = None) -> Result:
    search.start(states)
    return search.run(rng, simulations)


def opened(search: Search, count: int, options: Options, seed: int) -> tuple[States, Streams]:
    """Positions to begin with, each of them twice."""
    rules, rng, draw = search.rules, seeds.rows(seed, count, "opening"), np.random.default_rng(seed)
    states, random = rules.blank(count), RandomBot(rules)
    rules.deal(states, rng)
    for _ in range(2 if options.opening == "random" else 4):
        actions = random.choose(states, rng)
        if options.opening == "sensible":
            found = think(search, states, rng, OPENING_SIMULATIONS)
            weighted_choice(
                found.policy, found.counts, found.actions, np.arange(count), draw.random(count), actions
            )
        rules.play(states, actions, rng)
    return np.repeat(states, 2), seeds.rows(seed, 2 * count, "play")


def play(ours: Search, theirs: Search, count: int, options: Options, seed: int) -> np.ndarray:
    """What the challenger wins of each opening's two games, by its seat: float64 [count, 2]"""
    rules, (states, streams) = ours.rules, opened(theirs, count, options, seed)
    seat = np.arange(2 * count) % 2
    while not (over := rules.over(states)).all():
        turn = rules.seat(states)
        for search, mine in ((ours, True), (theirs, False)):
            rows = np.flatnonzero(~over & ((turn == seat) == mine))
            if len(rows):
                some, rng = states[rows], streams[rows]
                rules.play(some, think(search, some, rng).best, rng)
                states[rows], streams[rows] = some, rng
    score = np.zeros((len(states), rules.spec.seats), np.float32)
    rules.score(states, score)
    ahead = np.sign(score[np.arange(len(states)), seat] - score[np.arange(len(states)), 1 - seat])
    return ((1 + ahead) / 2).reshape(count, 2)


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    game = games.open(options.game).native("played")
    each = -(-options.openings // options.threads)
    ours, theirs = (Network(game, name, 2 * each, options) for name in (options.challenger, options.opponent))
    pairs = [
        (ours.search(options.temperature), theirs.search(options.opponent_temperature))
        for _ in range(options.threads)
    ]
    with ThreadPoolExecutor(options.threads) as pool:
        found = pool.map(
            lambda number: play(*pairs[number], each, options, seeds.derive(options.seed, number)),
            range(options.threads),
        )
    won = np.concatenate(list(found))
    margin = Z * won.mean(1).std() / np.sqrt(len(won))
    figure(f"{options.game}.duel.{options.opening}", 100 * won.mean(), f"% won ± {100 * margin:.2g}")
    print(f"    {100 * won[:, 0].mean():.1f} % as first, {100 * won[:, 1].mean():.1f} % as second")


if __name__ == "__main__":
    main()
