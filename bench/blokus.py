"""How fast Blokus is on one core, each as `figure NAME VALUE UNIT`, over positions of random games."""

import time
from collections.abc import Callable

import numpy as np

from core import speed
from figures import figure
from ludus import games
from ludus.core import seeds
from ludus.core.conformance import Play
from ludus.core.jit import njit
from ludus.games.blokus.moves import list_actions
from ludus.search import Search, SearchConfig
from ludus.search.evaluators import Network

ROWS = 256
GAMES, SIMULATIONS = 64, 400
NETWORKS = {"32x3": (32, 3, 40), "64x4": (64, 4, 15), "128x10": (128, 10, 4)}
"""Channels, residual blocks, and simulations that show its speed."""


@njit
def list_all(board, states, out):
    """What a search does at each of its leaves."""
    total = 0
    for i in range(len(states)):
        total += list_actions(board, states[i], out)
    return total


def positions(rules, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Every position of some random games, and the action that was taken there."""
    states, actions = zip(*Play(rules, rows=count).decisions(), strict=True)
    return np.concatenate(states), np.concatenate(actions)


def best_rate(work: Callable[[], object], units: int, windows: int = 40) -> float:
    """Units a second in the best window, since other load only slows."""
    work()
    took = []
    for _ in range(windows):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return units / min(took)


def measure(name: str, board: str) -> None:
    rules = games.rules("blokus", board=board)
    games.warm_up("blokus", rules)
    states, actions = positions(rules)
    out = np.zeros(rules.spec.actions, np.int32)
    figure(f"{name}.movegen", best_rate(lambda: list_all(rules.board, states, out), len(states)), "moves/s")
    print(f"    {list_all(rules.board, states, out) / len(states):.0f} legal moves in a position on average")
    legal = np.zeros((ROWS, rules.spec.actions), bool)
    obs = np.zeros((ROWS, *rules.spec.obs_shape), np.uint8)
    starts = range(0, len(states) - ROWS, ROWS)
    parts = [(states[at : at + ROWS], actions[at : at + ROWS]) for at in starts]
    units, rng = ROWS * len(parts), seeds.rows(0, ROWS)
    figure(
        f"{name}.mask", best_rate(lambda: [rules.legal(some, legal) for some, _ in parts], units), "moves/s"
    )
    figure(
        f"{name}.observe", best_rate(lambda: [rules.observe(some, obs) for some, _ in parts], units), "obs/s"
    )
    played = best_rate(lambda: [rules.play(some.copy(), chosen, rng) for some, chosen in parts], units)
    figure(f"{name}.play", played, "moves/s")
    table = games.table("blokus", ROWS, board=board)
    figure(f"{name}.table", max(speed(table) for _ in range(4)), "decisions/s")


def measure_search() -> None:
    """Without a network, over all parts of a game; then beside networks, as a share of their own speed."""
    rules = games.rules("blokus")
    decisions = list(Play(rules, rows=GAMES).decisions(24))
    parts = [decisions[moves][0] for moves in (0, 6, 12, 18)]
    search = Search(rules, GAMES, SearchConfig(SIMULATIONS, exploration=3.0, first_play=0.0))

    def run() -> None:
        for states in parts:
            search.start(states)
            search.run(seeds.rows(0, len(states)))

    simulations = SIMULATIONS * sum(len(states) for states in parts)
    figure("blokus.search", best_rate(run, simulations, windows=5), "simulations/s")
    for name, (channels, blocks, count) in NETWORKS.items():
        measure_network_search(rules, parts[2], f"blokus.search.net.{name}", channels, blocks, count)


def measure_network_search(rules, states, name: str, channels: int, blocks: int, simulations: int) -> None:
    import torch

    from ludus.nets import NetConfig
    from ludus.nets.board import BoardNet

    torch.set_num_threads(1)
    net = BoardNet(rules.spec, NetConfig(channels=channels, blocks=blocks)).eval()

    @torch.inference_mode()
    def forward(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, value = net.look(torch.from_numpy(obs))
        return logits.numpy(), value.numpy()

    obs = np.zeros((len(states), *rules.spec.obs_shape), np.uint8)
    rules.observe(states, obs)
    search = Search(rules, len(states), SearchConfig(simulations), Network(rules, forward))

    def run() -> None:
        search.start(states)
        search.run(seeds.rows(0, len(states)))

    forwards = simulations + 1  # and the root's own
    alone = best_rate(lambda: [forward(obs) for _ in range(forwards)], forwards * len(states), windows=3)
    searching = best_rate(run, forwards * len(states), windows=3)
    figure(name, searching / alone, "of the network's own speed")
    print(f"    {searching:,.0f} simulations/s; the network alone {alone:,.0f} positions/s")


def main() -> None:
    measure("blokus", "duo")
    measure("blokus.classic", "classic")
    measure_search()


if __name__ == "__main__":
    main()
