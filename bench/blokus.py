"""How fast Blokus, its search and self-play are, each as `figure NAME VALUE UNIT`. With a GPU, there too."""

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from core import speed
from figures import figure
from ludus import algos, games, machine
from ludus.algos.alphazero.evaluators import CpuNetwork
from ludus.config import overlay, resolve
from ludus.core import seeds
from ludus.core.conformance import Play
from ludus.core.jit import njit
from ludus.games.blokus.moves import list_actions
from ludus.nets import NetConfig
from ludus.nets.net import flat_size, flatten
from ludus.search import Search, SearchConfig
from ludus.train.layout import Layout, lay_out
from ludus.train.loop import make_pool, spec_of
from ludus.train.pool import Pool

ROWS = 256
GAMES, SIMULATIONS = 64, 400
GPU_ROWS = 512
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
    """By turns, since the machine's speed changes from one half minute to the next."""
    network, alone = network_alone(channels, blocks, states, windows=1)
    search, searching = Search(rules, len(states), SearchConfig(simulations), network), 0.0

    def run() -> None:
        search.start(states)
        search.run(seeds.rows(0, len(states)))

    for _ in range(4):
        units = (simulations + 1) * len(states)  # and the root's own evaluation
        searching = max(searching, best_rate(run, units, windows=1))
        alone = max(alone, network_alone(channels, blocks, states, windows=1)[1])
    figure(name, searching / alone, "of the network's own speed")
    print(f"    {searching:,.0f} simulations/s; the network alone {alone:,.0f} positions/s")


def network_alone(
    channels: int, blocks: int, states, calls: int = 6, windows: int = 3
) -> tuple[CpuNetwork, float]:
    """A network, and how many positions it sees in a second on one core."""
    torch.set_num_threads(1)
    rules = games.rules("blokus")
    network = CpuNetwork(rules, NetConfig(channels=channels, blocks=blocks))
    obs = np.zeros((len(states), *rules.spec.obs_shape), np.uint8)
    rules.observe(states, obs)
    work = lambda: [network.look(obs) for _ in range(calls)]  # noqa: E731
    return network, best_rate(work, calls * len(states), windows)


def alone_beside_others(states) -> float:
    return network_alone(*NETWORKS["64x4"][:2], states)[1]


def make_training(changes: dict[str, Any]) -> tuple[Layout, Pool]:
    """Who plays in `ludus train blokus`."""
    config = overlay(resolve("blokus"), {"opponents": "self", **changes}, "bench")
    spec = spec_of(config)
    layout = lay_out(config, spec)
    net = algos.find("alphazero").make_learner(config, spec, layout.device).net
    vector = np.zeros(flat_size(net), np.float32)
    flatten(net, vector)
    return layout, make_pool(config, net, layout, vector)


def played(pool: Pool, seconds: float) -> tuple[float, float, dict[str, float]]:
    """Positions evaluated and the clock time they took, and where that went in all workers or groups."""
    pool.release(pool.receive())  # the first blocks pay for starting
    start, count, spent = time.perf_counter(), 0.0, dict[str, float]()
    while time.perf_counter() - start < seconds:
        deliveries = pool.receive()
        for delivery in deliveries:
            count += delivery.report.shares.get("search/fill", (0,))[0]  # none if enough games had ended
            for name, value in delivery.report.seconds.items():
                spent[name] = spent.get(name, 0.0) + value
        pool.release(deliveries)
    return count, time.perf_counter() - start, spent


def told(spent: dict[str, float]) -> str:
    total = sum(spent.values())
    return ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in spent.items())


def measure_selfplay(seconds: float = 60.0) -> None:
    """Self-play on all cores, beside the network alone on all cores."""
    cores = machine.usable_cores()
    states = next(iter(Play(games.rules("blokus"), rows=GAMES).decisions(12)))[0]
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        alone = sum(pool.map(alone_beside_others, [states] * cores))
    players = make_training({"device": "cpu", "workers": str(cores), "rows": GAMES, "steps": 2})[1]
    count, _, spent = played(players, seconds)
    players.close()
    speed = cores * count / (sum(spent.values()) - spent["waiting"])
    figure("blokus.selfplay", speed / alone, "of the networks' own speed")
    print(f"    {speed:,.0f} positions/s; {cores} networks alone {alone:,.0f}; {told(spent)}")


def measure_gpu(name: str, channels: int, blocks: int, seconds: float = 20.0) -> None:
    """Searches in threads beside a network on the GPU."""
    layout, pool = make_training(
        {
            "inference": "central", "rows": GPU_ROWS, "steps": 1,
            "net": {"channels": channels, "blocks": blocks}, "alphazero": {"full_share": 1.0},
        }
    )  # fmt: skip
    look = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "250"]
    with subprocess.Popen(look, stdout=subprocess.PIPE, text=True) as watching:
        count, elapsed, spent = played(pool, seconds)
        watching.terminate()
        busy = [float(line) for line in (watching.stdout or ())]
    pool.close()
    figure(f"blokus.search.gpu.{name}", count / elapsed, "simulations/s")
    figure(f"blokus.search.gpu.{name}.busy", float(np.mean(busy)), "% of the GPU's time")
    print(f"    {layout.workers} groups of {GPU_ROWS} games; of their time: {told(spent)}")


def main() -> None:
    measure("blokus", "duo")
    measure("blokus.classic", "classic")
    measure_search()
    measure_selfplay()
    if torch.cuda.is_available():
        for name in ("64x4", "128x10"):
            measure_gpu(name, *NETWORKS[name][:2])


if __name__ == "__main__":
    main()
