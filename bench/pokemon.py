"""How fast Pokémon battles are, each printed as `figure NAME VALUE UNIT`.

Random play in gen9randombattle, with full observations for both seats; then the other library, poke-env, at
random over a websocket with the same version of the simulator; then a training. Five minutes on two quiet
cores. `--training` does the last part alone; `--same N` instead compares the logs of N battles of the faster
simulator with those of the untouched one.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

FORMATS = ("gen9randombattle", "gen9randomdoublesbattle", "gen7randombattle", "gen1randombattle")
CONCURRENCY = (8, 24, 48)
"""Battles at once over the websocket; the best counts."""
MARK = "result "
NODE_TIME = ("simulator_s", "encoding_s", "serialisation_s")
"""Counters of a table: what Node's processes spend their time on."""
LONGEST_S = 150.0
"""Of our own battles: a machine that does other work as well plays fewer."""
UPDATES = 3
"""Lines of metrics after which a training has compiled, started and learned."""


# ---- ours


class Player:
    """Random play at a table, and what it costs. One half of the rows is chosen for while the other plays."""

    def __init__(self, table) -> None:
        from ludus.core import seeds
        from ludus.games.pokemon.bots import Random

        self.table, self.bot, self.rng = table, Random(), seeds.rows(1, table.rows)
        self.groups = np.array_split(np.arange(table.rows), 2)
        self.battles = self.decisions = 0
        turn = table.reset(1)
        for group in self.groups:
            self._choose(turn, group)

    def step(self) -> None:
        for group in self.groups:
            turn = self.table.collect(group)
            if turn.finished is not None:
                self.battles += len(turn.finished.rows)
            self._choose(turn, group)

    def _choose(self, turn, group: np.ndarray) -> None:
        streams = self.rng[group]
        self.table.submit(self.bot.choose(turn.obs[group], turn.legal[group], streams), group)
        self.rng[group] = streams
        self.decisions += len(group)

    def warm_up(self) -> None:
        """Until Node has compiled what it runs often, and battles are at all stages."""
        while self.battles < 2 * self.table.rows:
            self.step()

    def measure(
        self, seconds: float, battles: float = np.inf, watch: Callable[[], None] = lambda: None
    ) -> "Cost":
        """Until one of the limits is reached. watch: called at every step"""
        before = spent_s(self.table)
        first, decisions = self.battles, self.decisions
        python, node, began = time.process_time(), self.table.pool.cpu_s(), time.perf_counter()
        while time.perf_counter() - began < seconds and self.battles - first < battles:
            self.step()
            watch()
        spent = spent_s(self.table) - before
        simulator, *rest = (self.table.pool.cpu_s() - node) * spent / spent.sum()
        return Cost(
            time.perf_counter() - began, self.battles - first, self.decisions - decisions,
            time.process_time() - python, simulator, sum(rest),
        )  # fmt: skip


def spent_s(table) -> np.ndarray:
    """Node's time for the simulator, observations and messages, [3]."""
    return table.counters()[[table.spec.counters.index(name) for name in NODE_TIME]]


class Cost(NamedTuple):
    seconds: float
    battles: int
    decisions: int
    python_s: float
    simulator_s: float
    encoding_s: float

    @property
    def cpu_s(self) -> float:
        return self.python_s + self.simulator_s + self.encoding_s


class Sizes:
    """Memory and file descriptors of some processes, early and late."""

    def __init__(self, pids: list[int]) -> None:
        import psutil

        self.family = [psutil.Process(pid) for pid in pids]
        self.early = self.late = self.now()

    def now(self) -> tuple[float, int]:
        memory = sum(one.memory_info().rss for one in self.family) / 2**20
        return memory, sum(one.num_fds() for one in self.family)


def ours(battles: int, rows: int, processes: int) -> Cost:
    """Speed and shares over many battles, and what grows meanwhile."""
    from figures import figure
    from ludus.games.pokemon.table import PokemonTable

    table = PokemonTable(rows, processes=processes)
    player = Player(table)
    player.warm_up()
    first, sizes = player.battles, Sizes([os.getpid(), *table.pool.pids()])

    def watch() -> None:
        if player.battles - first < battles / 4:  # until then, Node takes what it may keep
            sizes.early = sizes.now()

    cost = player.measure(LONGEST_S, battles, watch)
    sizes.late = sizes.now()
    table.close()
    over = f"over {cost.battles * 3 // 4} battles"
    figure("pokemon.battles", cost.battles / cost.seconds, "battles/s")
    figure("pokemon.decisions", cost.decisions / cost.seconds, "decisions/s")
    figure("pokemon.cpu", 1000 * cost.cpu_s / cost.decisions, "ms CPU/decision")
    figure("pokemon.observe", 1000 * (cost.encoding_s + cost.python_s) / cost.decisions, "ms CPU/decision")
    figure("pokemon.python_share", 100 * cost.python_s / cost.cpu_s, "% of CPU")
    figure("pokemon.busy", 100 * cost.cpu_s / cost.seconds / (os.cpu_count() or 1), "% of all cores")
    figure("pokemon.memory", sizes.late[0] - sizes.early[0], f"MiB more {over}")
    figure("pokemon.descriptors", sizes.late[1] - sizes.early[1], f"more {over}")
    return cost


def training(seconds: float) -> None:
    """Whose CPU a training with the default preset takes. The run's metrics tell how Node spends its own."""
    import psutil

    from figures import figure

    with tempfile.TemporaryDirectory() as folder:
        asked = ["train", "pokemon", "--run", f"{folder}/run", "--eval-every", "0"]
        command = [sys.executable, "-m", "ludus.cli", *asked]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            leader, metrics = psutil.Process(process.pid), Path(folder, "run", "metrics.jsonl")
            while process.poll() is None and len(lines_of(metrics)) < UPDATES:
                time.sleep(0.5)
            before, began, start = cpu_by_process(leader), time.perf_counter(), len(lines_of(metrics))
            after = dict(before)
            while (took := time.perf_counter() - began) < seconds:
                time.sleep(0.5)
                after |= cpu_by_process(leader)  # those that end keep what they had
            lines = lines_of(metrics)[start:]
        finally:
            process.terminate()
            errors = process.communicate()[1]
    if not lines:
        raise SystemExit(f"the training failed:\n{errors[-2000:]}")
    spent = dict.fromkeys(("node", "learner", "workers"), 0.0)
    for (pid, kind), cpu_s in after.items():
        spent[kind] += cpu_s - before.get((pid, kind), 0.0)
    total = sum(spent.values())
    node = np.array([sum(line[f"table/{name}"] for line in lines) for name in NODE_TIME])
    shares = spent.pop("node") * node / node.sum()
    parts = dict(zip(("sim", "encoding", "serialisation"), shares, strict=True)) | spent
    for name, cpu_s in parts.items():
        figure(f"pokemon.{name}_share", 100 * cpu_s / total, "% of the CPU of a training")
    figure("pokemon.cores_busy", 100 * total / took / (os.cpu_count() or 1), "% of all cores")


def lines_of(metrics: Path) -> list[dict[str, float]]:
    """Those that are complete."""
    text = metrics.read_text() if metrics.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def cpu_by_process(leader) -> dict[tuple[int, str], float]:
    """Seconds of CPU of the learner's process and of all that it started, by id and what it is."""
    import psutil

    found = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # it has just ended
                times = one.cpu_times()
                kind = "learner" if one == leader else "node" if one.name() == "node" else "workers"
                found[one.pid, kind] = times.user + times.system
    return found


def speed_up(seconds: float, rows: int) -> None:
    """The faster simulator beside the untouched one, in CPU time of one process."""
    from figures import figure
    from ludus.games.pokemon.table import PokemonTable

    costs = []
    for fast in (False, True):
        table = PokemonTable(rows, fast=fast)
        player = Player(table)
        player.warm_up()
        cost = player.measure(seconds)
        table.close()
        costs.append(cost.simulator_s / cost.decisions)
    figure("pokemon.speed_up", costs[0] / costs[1], "x less simulator time a decision")


# ---- the same battles


def hashes(speed: str, format: str, first: int, count: int) -> list[str]:
    from ludus.games.pokemon import install
    from ludus.games.pokemon.bridge import NODE_FLAGS

    program, numbers = str(install.NODE_FILES / "compare.js"), (str(first), str(count))
    command = [install.find_node(), *NODE_FLAGS, program, str(install.showdown()), speed, format, *numbers]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def compare(battles: int, at_once: int = 125) -> None:
    """How many battles of the faster simulator have the log of the untouched one."""
    from figures import figure

    each = -(-battles // len(FORMATS))
    starts = range(0, each, at_once)
    work = [(format, first, min(at_once, each - first)) for format in FORMATS for first in starts]
    same = total = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for ours, theirs in pool.map(lambda part: (hashes("fast", *part), hashes("plain", *part)), work):
            total += len(theirs)
            same += sum(one == other for one, other in zip(ours, theirs, strict=True))
            print(f"{same} of {total} are the same", file=sys.stderr, flush=True)
    figure("pokemon.same", same, f"battles of {total}")
    if same < total:
        raise SystemExit("the faster simulator plays other battles")


# ---- poke-env


def rival(battles: int) -> tuple[float, float]:
    """Battles a second of poke-env at its best concurrency, and battles for each second of CPU."""
    from figures import figure
    from ludus.games.pokemon.server import Server, free_port

    best = per_cpu = 0.0
    for at_once in CONCURRENCY:
        with Server(free_port()) as server:
            before_s = family_cpu_s(server.process.pid)
            command = [sys.executable, __file__, "--rival", server.address, "--battles", str(battles)]
            done = subprocess.run(
                [*command, "--at-once", str(at_once)], capture_output=True, text=True, timeout=1200
            )
            server_s = family_cpu_s(server.process.pid) - before_s
        results = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
        if not results:
            raise SystemExit(f"poke-env failed:\n{done.stderr[-2000:]}")
        speed, played, python_s = json.loads(results[-1].removeprefix(MARK))
        best, per_cpu = max(best, speed), max(per_cpu, played / (server_s + python_s))
    figure("rival.poke_env", best, "battles/s")
    figure("rival.poke_env_per_cpu", per_cpu, "battles/CPU-s")
    return best, per_cpu


def family_cpu_s(pid: int) -> float:
    """Of a process and all that it started."""
    import psutil

    leader = psutil.Process(pid)
    times = [one.cpu_times() for one in (leader, *leader.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def play_rival(address: str, battles: int, at_once: int) -> None:
    """Runs where poke-env is; must not import ours."""
    from poke_env import AccountConfiguration, RandomPlayer, ServerConfiguration

    server = ServerConfiguration(address, "https://play.pokemonshowdown.com/action.php?")
    players = [
        RandomPlayer(
            account_configuration=AccountConfiguration(f"rival {i}", None), server_configuration=server,
            battle_format="gen9randombattle", max_concurrent_battles=at_once, log_level=50,
        )
        for i in range(2)
    ]  # fmt: skip

    async def play() -> tuple[float, int, float]:
        warm_up = max(4, battles // 8)
        cpu_s = time.process_time()
        await players[0].battle_against(players[1], n_battles=warm_up)
        began = time.perf_counter()
        await players[0].battle_against(players[1], n_battles=battles)
        speed = battles / (time.perf_counter() - began)
        return speed, battles + warm_up, time.process_time() - cpu_s

    print(f"\n{MARK}{json.dumps(asyncio.run(play()))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=64, help="battles at once")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of Node")
    parser.add_argument("--battles", type=int, default=2000, help="of ours, while memory is watched")
    parser.add_argument("--rival-battles", type=int, default=80, help="of poke-env, at each concurrency")
    parser.add_argument("--seconds", type=float, default=40, help="of training, after its start")
    parser.add_argument("--training", action="store_true", help="only measure a training")
    parser.add_argument("--same", type=int, metavar="N", help="only compare the logs of N battles")
    parser.add_argument("--rival", help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rival:
        return play_rival(args.rival, args.battles, args.at_once)
    from figures import figure
    from ludus.games.pokemon import install

    install.install()
    if args.same:
        return compare(args.same)
    if args.training:
        return training(args.seconds)
    cost = ours(args.battles, args.rows, args.processes)
    speed, per_cpu = rival(args.rival_battles)
    figure("pokemon.vs_poke_env", cost.battles / cost.seconds / speed, "x")
    # On a machine that does other work as well, this one tells more.
    figure("pokemon.vs_poke_env_per_cpu", cost.battles / cost.cpu_s / per_cpu, "x")
    training(args.seconds)
    speed_up(args.seconds / 5, args.rows // 8)


if __name__ == "__main__":
    main()
