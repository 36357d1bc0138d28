"""How fast Pokémon battles are, each printed as `figure NAME VALUE UNIT`.

Random play in gen9randombattle, with full observations for both seats. The other library, poke-env, plays at
random over a websocket against the same version of the simulator. It wants other versions than ours, so it
runs in an environment of its own (`.venv-poke-env`), which is made on first use. `--same N` compares the
logs of N battles of the faster simulator with the untouched one, instead.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

RIVAL = Path(__file__).absolute().parents[1] / ".venv-poke-env"
RIVAL_PACKAGE = "poke-env==0.16.1"
FORMATS = ("gen9randombattle", "gen9randomdoublesbattle", "gen7randombattle", "gen1randombattle")
CONCURRENCY = (8, 24, 48)
"""Battles at once over the websocket; the best counts."""
MARK = "result "


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- ours


class Player:
    """Random play at a table, and what it costs."""

    def __init__(self, table) -> None:
        from ludus.core import seeds
        from ludus.games.pokemon.bots import Random

        self.table, self.bot, self.rng = table, Random(), seeds.rows(1, table.rows)
        self.turn = table.reset(1)
        self.battles = self.decisions = 0

    def step(self) -> None:
        self.turn = self.table.step(self.bot.choose(self.turn.obs, self.turn.legal, self.rng))
        self.decisions += self.table.rows
        if self.turn.finished is not None:
            self.battles += len(self.turn.finished.rows)

    def warm_up(self) -> None:
        """Until Node has compiled what it runs often, and battles are at all stages."""
        while self.battles < 2 * self.table.rows:
            self.step()

    def measure(self, seconds: float) -> "Cost":
        meters = self.table.pool.meters
        before = meters.simulator_ms, meters.encoding_ms
        battles, decisions = self.battles, self.decisions
        python, node, began = time.process_time(), self.table.pool.cpu_s(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            self.step()
        simulator, encoding = meters.simulator_ms - before[0], meters.encoding_ms - before[1]
        node_s = self.table.pool.cpu_s() - node
        return Cost(
            time.perf_counter() - began, self.battles - battles, self.decisions - decisions,
            time.process_time() - python, node_s * simulator / (simulator + encoding),
            node_s * encoding / (simulator + encoding),
        )  # fmt: skip


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


def ours(seconds: float, rows: int, processes: int) -> tuple[float, float]:
    """Battles a second, and for each second of CPU."""
    from figures import figure
    from ludus.games.pokemon.table import PokemonTable

    table = PokemonTable(rows, processes=processes)
    player = Player(table)
    player.warm_up()
    cost = player.measure(seconds)
    table.close()
    battles = cost.battles / cost.seconds
    per_cpu = cost.battles / cost.cpu_s
    figure("pokemon.battles", battles, "battles/s")
    figure("pokemon.battles_per_cpu", per_cpu, "battles/CPU-s")
    figure("pokemon.decisions", cost.decisions / cost.seconds, "decisions/s")
    figure("pokemon.cpu", 1000 * cost.cpu_s / cost.decisions, "ms CPU/decision")
    figure("pokemon.observe", 1000 * (cost.encoding_s + cost.python_s) / cost.decisions, "ms CPU/decision")
    figure("pokemon.python_share", 100 * cost.python_s / cost.cpu_s, "% of CPU")
    figure("pokemon.simulator_share", 100 * cost.simulator_s / cost.cpu_s, "% of CPU")
    figure("pokemon.busy", 100 * cost.cpu_s / cost.seconds / (os.cpu_count() or 1), "% of all cores")
    return battles, per_cpu


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


def leaks(battles: int, rows: int) -> None:
    """Memory and file descriptors from a quarter of the battles on."""
    import psutil

    from figures import figure
    from ludus.games.pokemon.table import PokemonTable

    table = PokemonTable(rows)
    player, early = Player(table), None
    family = [psutil.Process(), *map(psutil.Process, table.pool.pids())]
    while player.battles < battles:
        player.step()
        if early is None and player.battles >= battles / 4:
            early = [(one.memory_info().rss, one.num_fds()) for one in family]
    late = [(one.memory_info().rss, one.num_fds()) for one in family]
    table.close()
    assert early is not None
    for name, before, after in zip(("python", "node"), early, late, strict=True):
        figure(f"pokemon.{name}_memory_growth", (after[0] - before[0]) / 2**20, f"MiB over {battles} battles")
        figure(f"pokemon.{name}_memory", after[0] / 2**20, "MiB")
        figure(f"pokemon.{name}_descriptors_growth", after[1] - before[1], "descriptors")


# ---- the same battles


def hashes(speed: str, format: str, first: int, count: int) -> list[str]:
    from ludus.games.pokemon import install

    program = str(install.NODE_FILES / "compare.js")
    command = [install.find_node(), program, str(install.showdown()), speed, format, str(first), str(count)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def compare(battles: int, at_once: int = 25) -> None:
    """How many battles of the faster simulator have the log of the untouched one."""
    from figures import figure

    each = -(-battles // len(FORMATS))
    starts = range(0, each, at_once)
    work = [(format, first, min(at_once, each - first)) for format in FORMATS for first in starts]
    same = total = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        plain = pool.map(lambda part: hashes("plain", *part), work)
        fast = pool.map(lambda part: hashes("fast", *part), work)
        for ours, theirs in zip(fast, plain, strict=True):
            total += len(theirs)
            same += sum(one == other for one, other in zip(ours, theirs, strict=True))
            print(f"{same} of {total} are the same", file=sys.stderr, flush=True)
    figure("pokemon.same_logs", same, f"of {total} battles")
    if same < total:
        raise SystemExit("the faster simulator plays other battles")


# ---- poke-env


def rival_python() -> Path:
    python = RIVAL / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(RIVAL)], check=True)
        (RIVAL / ".gitignore").write_text("*\n")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", RIVAL_PACKAGE], check=True)
    return python


def rival(battles: int) -> tuple[float, float]:
    """Battles a second of poke-env at its best concurrency, and battles for each second of CPU."""
    from figures import figure
    from ludus.games.pokemon.server import Server

    python, best, per_cpu = rival_python(), 0.0, 0.0
    for at_once in CONCURRENCY:
        with Server(free_port()) as server:
            before_s = family_cpu_s(server.process.pid)
            command = [str(python), __file__, "--rival", server.address, "--battles", str(battles)]
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
    parser.add_argument("--seconds", type=float, default=40, help="of play, for each of our figures")
    parser.add_argument("--rows", type=int, default=64, help="battles at once")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of Node")
    parser.add_argument("--battles", type=int, default=120, help="of poke-env, at each concurrency")
    parser.add_argument("--leak-battles", type=int, default=2000, help="while memory is watched")
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
    our_speed, our_per_cpu = ours(args.seconds, args.rows, args.processes)
    speed, per_cpu = rival(args.battles)
    figure("pokemon.vs_poke_env", our_speed / speed, "x")
    # On a machine that does other work as well, this one tells more.
    figure("pokemon.vs_poke_env_per_cpu", our_per_cpu / per_cpu, "x")
    speed_up(args.seconds / 2, args.rows // 8)
    leaks(args.leak_battles, args.rows)


if __name__ == "__main__":
    main()
