"""How fast Blokus, its search and self-play are, each as `figure NAME VALUE UNIT`. With a GPU, there too."""

import functools
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, cast

import numpy as np
import torch

import ludus
from core import speed
from figures import figure
from ludus import algos, games, machine, match
from ludus.algos.alphazero import ENDGAME, LEAVES
from ludus.algos.alphazero.evaluators import CpuNetwork
from ludus.config import overlay, resolve
from ludus.core import seeds
from ludus.core.conformance import Play, observation_of
from ludus.core.jit import njit
from ludus.core.rules import RandomBot
from ludus.games.blokus.moves import list_actions
from ludus.nets import NetConfig
from ludus.nets.board import BoardNet, places_and_values
from ludus.nets.int8 import fastest
from ludus.search import Search, SearchConfig
from ludus.search.bot import SearchBot
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import Layout, lay_out
from ludus.training.pools import Delivery, Pool

ROWS = 256
GAMES, SIMULATIONS = 64, 400
GPU_ROWS = {"64x4": 1024, "128x10": 512}
"""Small networks need large batches to keep a GPU busy."""
TURNS = 21
NETWORKS = {"32x3": (32, 3, 40), "64x4": (64, 4, 15), "128x10": (128, 10, 2)}
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
    return units / min(clock(work) for _ in range(windows))


def clock(work: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    start = now()
    work()
    return now() - start


def measure(name: str, board: str) -> None:
    game = games.open("blokus", board=board).native("measured")
    rules: Any = game.rules
    game.warm_up()
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
    table = game.table(ROWS)
    figure(f"{name}.table", max(speed(table) for _ in range(4)), "decisions/s")


def measure_search() -> None:
    """Without a network, over all parts of a game; then beside networks, as a share of their own speed."""
    rules = games.open("blokus").rules
    decisions = list(Play(rules, rows=GAMES).decisions(24))
    parts = [decisions[moves][0] for moves in (0, 6, 12, 18)]
    search = Search(rules, GAMES, SearchConfig(SIMULATIONS, c_puct=3.0, first_play_reduction=0.0))

    def run() -> None:
        for states in parts:
            search.start(states)
            search.run(seeds.rows(0, len(states)))

    simulations = SIMULATIONS * sum(len(states) for states in parts)
    figure("blokus.search", best_rate(run, simulations, windows=15), "simulations/s")
    for name, (channels, blocks, count) in NETWORKS.items():
        measure_network_search(rules, parts[2], f"blokus.search.net.{name}", channels, blocks, count)


def measure_network_search(rules, states, name: str, channels: int, blocks: int, simulations: int) -> None:
    """By turns, since the machine's speed changes from one second to the next, and by the thread's own time,
    since others may want the core; the median of the turns."""
    network = Alone(channels, blocks, states)
    search, turns = Search(rules, len(states), SearchConfig(simulations), network.network), []

    def run() -> None:
        search.start(states)
        search.run(seeds.rows(0, len(states)))

    run()
    for _ in range(TURNS):
        positions = (simulations + 1) * len(states)  # and the root's own evaluation
        took = clock(run, time.thread_time)
        turns.append((positions / took, network.speed(took, time.thread_time)))
    searching, alone = np.median(turns, 0)
    figure(name, float(np.median([ours / its for ours, its in turns])), "of the network's own speed")
    print(f"    {searching:,.0f} simulations/s; the network alone {alone:,.0f} positions/s")


class Alone:
    """A network on one core with nothing else to do."""

    def __init__(self, channels: int, blocks: int, states) -> None:
        torch.set_num_threads(1)
        rules = games.open("blokus").rules
        self.network = CpuNetwork(rules, NetConfig(channels=channels, blocks=blocks))
        self.obs = np.zeros((len(states), *rules.spec.obs_shape), np.uint8)
        rules.observe(states, self.obs)
        self.network.evaluate.forward(self.obs)

    def speed(self, seconds: float, now: Callable[[], float] = time.perf_counter) -> float:
        """Positions a second."""
        start, calls = now(), 0
        while now() - start < seconds:
            self.network.evaluate.forward(self.obs)
            calls += 1
        return calls * len(self.obs) / (now() - start)


alone: Alone | None = None
"""That of this process, if it is one of those beside self-play."""


def start_alone(states) -> None:
    global alone
    alone = Alone(*NETWORKS["64x4"][:2], states)


def alone_speed(seconds: float) -> float:
    assert alone is not None
    return alone.speed(seconds)


def make_training(changes: dict[str, Any]) -> tuple[Layout, Pool]:
    """Who plays in `ludus train blokus`."""
    config = overlay(resolve("blokus"), {"opponents": "self", **changes}, "bench")
    game = open_game(config)
    layout = lay_out(config, game)
    net = algos.find("alphazero").make_learner(config, game, layout.device).net
    return layout, make_pool(config, game, net, layout, flat_weights(net))


def played(pool: Pool, held: list[Delivery], seconds: float) -> tuple[float, float, dict[str, float]]:
    """Positions evaluated and the clock time they took, and where that went in all workers or groups.

    held: what was received and is not yet released, before and after
    """
    start, count, spent = time.perf_counter(), 0.0, dict[str, float]()
    while time.perf_counter() - start < seconds:
        pool.release(held)
        held[:] = pool.receive()
        for delivery in held:
            count += delivery.report.shares.get("search/fill", (0,))[0]  # none if enough games had ended
            for name, value in delivery.report.seconds.items():
                spent[name] = spent.get(name, 0.0) + value
    return count, time.perf_counter() - start, spent


def told(spent: dict[str, float]) -> str:
    total = sum(spent.values())
    return ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in spent.items())


def measure_selfplay(turns: int = 5, seconds: float = 15.0) -> None:
    """Self-play on all cores, and the network alone on all cores, by turns."""
    cores, rates, where = machine.usable_cores(), [], dict[str, float]()
    states = next(iter(Play(games.open("blokus").rules, rows=GAMES).decisions(12)))[0]
    # In lock-step, so that all workers wait between turns.
    changes = {"device": "cpu", "workers": str(cores), "sync": True}
    players = make_training(changes)[1]
    held = players.receive()  # the first blocks pay for starting
    context = get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context, initializer=start_alone, initargs=(states,)) as pool:
        for _ in range(turns):
            its = sum(pool.map(alone_speed, [seconds] * cores))
            count, elapsed, spent = played(players, held, seconds)
            spent["waiting"] = cores * elapsed - sum(spent.values()) + spent["waiting"]  # not for our turns
            where = {name: where.get(name, 0.0) + value for name, value in spent.items()}
            rates.append((count / elapsed, its))
    players.close()
    share = float(np.median([ours / its for ours, its in rates]))
    figure("blokus.selfplay", share, "of the networks' own speed")
    ours, its = np.median(rates, 0)
    print(f"    {ours:,.0f} positions/s; {cores} networks alone {its:,.0f}; {told(where)}")


def measure_gpu(name: str, seconds: float = 20.0) -> None:
    """Searches in threads beside a network on the GPU."""
    channels, blocks, _ = NETWORKS[name]
    layout, pool = make_training(
        {
            "inference": "central", "rows": GPU_ROWS[name], "steps": 1,
            "net": {"channels": channels, "blocks": blocks}, "alphazero": {"full_share": 1.0},
        }
    )  # fmt: skip
    held = pool.receive()  # the first games are over; all go on in step, so blocks come in bursts
    look = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "250"]
    with subprocess.Popen(look, stdout=subprocess.PIPE, text=True) as watching:
        before = pool.beats()
        _, elapsed, spent = played(pool, held, seconds)
        speed = (pool.beats() - before) / elapsed
        watching.terminate()
        busy = [float(line) for line in (watching.stdout or ())]
    pool.close()
    figure(f"blokus.search.gpu.{name}", speed, "simulations/s")
    figure(f"blokus.search.gpu.{name}.busy", float(np.mean(busy)), "% of the GPU's time")
    print(f"    {layout.workers} groups of {GPU_ROWS[name]} games; of their time: {told(spent)}")


def measure_gpus() -> None:
    for name in GPU_ROWS:
        measure_gpu(name)


def measure_rules() -> None:
    measure("blokus", "duo")
    measure("blokus.classic", "classic")


def measure_int8() -> None:
    """What an agent thinks with on a CPU beside float32, by turns, in batches as `play` has them."""
    rules = games.open("blokus").rules
    net = BoardNet(rules.spec, NetConfig(channels=96, blocks=6)).eval()
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    obs = observation_of(rules, list(Play(rules, rows=LEAVES).decisions(12))[-1][0])
    for threads in (1, machine.usable_cores()):
        torch.set_num_threads(threads)
        looks = functools.partial(places_and_values, net, obs), functools.partial(fastest(net), obs)
        whole, fast = np.median([[clock(look) for look in looks] for _ in range(50)], 0)
        figure(f"blokus.int8.threads_{threads}", whole / fast, "x as fast as float32")
        print(f"    {LEAVES / fast:,.0f} positions/s; float32 {LEAVES / whole:,.0f}")
        print(f"    the champion looks at {positions_a_move('100ms')} positions in 100 ms")


def positions_a_move(think: str, moves: int = 18) -> int:
    """The median of a game of the champion with itself, after two random moves."""
    game = games.open("blokus").native("played")
    rules, threads = game.rules, torch.get_num_threads()
    bot = cast(SearchBot, match.player(f"champion+{think}", game))
    torch.set_num_threads(threads)  # a player of matches has one
    states, rng, seen = rules.blank(1), seeds.rows(0, 1), []
    rules.deal(states, rng)
    for _ in range(2):
        rules.play(states, RandomBot(rules).choose(states, rng), rng)
    for _ in range(moves):
        best = bot.think(states, rng).best
        assert bot.search is not None
        seen.append(int(bot.search.tree.used[0]))
        rules.play(states, best, rng)
    return int(np.median(seen))


def measure_endgame(count: int = 200) -> None:
    """Which of the last positions of the champion's games an agent's solver finishes, and in what time."""
    game = games.open("blokus")
    rules, agent, luck = game.rules, ludus.load(game.champion, think="0"), RandomBot(game.rules)
    states, rng, seen = rules.blank(count), seeds.rows(0, count), []
    rules.deal(states, rng)
    while not rules.over(states).all():
        seen.append(states.copy())
        going = ~rules.over(states)
        some, streams = states[going], rng[going]
        chosen = (luck if len(seen) <= 2 else agent).choose(some, streams)
        rules.play(some, chosen, streams)
        states[going], rng[going] = some, streams
    lengths = np.sum([~rules.over(some) for some in seen], 0)

    def solved(late: np.ndarray, most: int = ENDGAME) -> np.ndarray:
        return rules.solve(late, most, np.zeros((len(late), 2), np.float32))

    for plies in (4, 6, 7, 8, 10):
        late = np.array([seen[end - plies][i] for i, end in enumerate(lengths)], rules.spec.state)
        figure(f"blokus.endgame.{plies}", 100 * solved(late).mean(), "% solved so many plies before the end")
    everything = np.concatenate(seen)
    everything = everything[~rules.over(everything)]
    tried = everything[solved(everything, 10**7)]  # all that have few enough placements left
    found = solved(tried)
    figure("blokus.endgame.tried", 100 * found.mean(), "% solved of those that are tried")
    took = clock(lambda: solved(tried[found])) / found.sum()
    figure("blokus.endgame.time", 1000 * took, "ms for one that is solved")


PARTS = {
    "rules": measure_rules, "search": measure_search, "int8": measure_int8, "endgame": measure_endgame,
    "selfplay": measure_selfplay, "gpu": measure_gpus,
}  # fmt: skip


def main() -> None:
    """All parts, or those that are named."""
    for name in sys.argv[1:] or [name for name in PARTS if name != "gpu" or torch.cuda.is_available()]:
        PARTS[name]()


if __name__ == "__main__":
    main()
