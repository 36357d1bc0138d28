"""The figures of training, each printed as `figure NAME VALUE UNIT`; a quarter of an hour on an idle machine.

`train.py NAME ...` measures only some of them. Rivals run in the same sitting, because machines and days
differ; those that aren't installed are left out of the ratios, and that is said.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rivals
from figures import figure, measured
from ludus import games, machine, match
from ludus.agent import trained_game
from ludus.config import overlay, resolve
from ludus.core import seeds
from ludus.core.dice import legal_choice
from ludus.core.duel import Duel
from ludus.processes import make_context
from ludus.store import checkpoint
from ludus.store.run import METRICS, read_config, read_lines, read_weights
from ludus.training.loop import Audience, train
from ludus.training.remote_table import RemoteTable

FOLDER = Path(tempfile.gettempdir()) / f"ludus-bench-{os.getpid()}"
WORK = {
    "rows": rivals.ENVS // 2, "steps": rivals.STEPS, "workers": "2",
    "net": {"hidden": (256, 256), "activation": "tanh", "shared": False},
    "ppo": {
        "epochs": rivals.EPOCHS, "minibatch": rivals.MINIBATCH, "learning_rate": rivals.RATE,
        "target_kl": 0.0,
    },
}  # fmt: skip
"""What the rivals do, in our words."""
FAST = {
    "rows": 16, "steps": 30, "seconds": 15.0, "log_s": 0.0, "workers": "2",
    "checkpoints": {"every_s": 0.25, "keep": 1000, "milestone": 0},
    "ppo": {"minibatch": 240, "learning_rate": 2e-3, "teacher_until": 1.0, "entropy_coef": 0.0},
}  # fmt: skip
"""OFC for those who are in a hurry: small batches and a teacher to the end."""
ACTIONS = {"head": "actions", "hidden": (320, 256)}
"""A network for OFC without afterstates."""
RIVALS_S, OURS_S = 15.0, 20.0


def trained(game: str, preset: str, **changes: Any) -> tuple[Path, list[dict]]:
    """A run and its metrics."""
    FOLDER.mkdir(exist_ok=True)
    folder = FOLDER / f"run{len(list(FOLDER.iterdir()))}"
    config = overlay(resolve(game, preset), {"run": str(folder), "log_s": 1.0, **changes}, "bench")
    train(config, Audience())
    return folder, read_lines(folder / METRICS)


def steady(lines: list[dict]) -> tuple[float, list[dict]]:
    """Decisions/s over the second half, and its metrics."""
    half = lines[len(lines) // 2 :]
    return (half[-1]["decisions"] - half[0]["decisions"]) / (half[-1]["seconds"] - half[0]["seconds"]), half


def ofc_train() -> None:
    """As the preset is, and with a network that scores numbers of actions."""
    for name, changes in (("", {}), (".actions", {"net": ACTIONS})):
        _, lines = trained("ofc", "default", seconds=60.0, decisions=10**9, **changes)
        speed, half = steady(lines)
        figure(f"ofc.train{name}", speed, "decisions/s")
        busy = np.mean([line["cpu/all"] for line in half]) / machine.usable_cores()
        figure(f"ofc.train{name}.cpu", 100 * float(busy), "%")


def ppo_steps() -> None:
    _, lines = trained("masked_env:Masked", "default", seconds=OURS_S, decisions=10**9, **WORK)
    figure("ppo.steps", steady(lines)[0], "steps/s")


def ppo_rivals(python: str) -> None:
    """Needs ppo_steps before it."""
    speed = {}
    for name in ("sb3_maskable_subproc", "sb3_dummy", "sample_factory", "pufferlib"):
        result = rivals.in_fresh_process(name, RIVALS_S, python)
        if result is not None:
            speed[name] = result
            figure(f"rival.{name}", result, "steps/s")
    ours = measured["ppo.steps"][0]
    figure("ppo.vs_sb3", ours / speed.pop("sb3_maskable_subproc"), "x")
    figure("ppo.vs_best", ours / max(speed.values()), f"x ({max(speed, key=lambda name: speed[name])})")


def pool_steps(rows: int = 256, seconds: float = 8.0) -> None:
    """Through the tables of a central pool: two processes step, we choose any legal action."""
    game = games.open("masked_env:Masked")
    tables = [RemoteTable(make_context(), game, rows) for _ in range(2)]
    steps, stop = [0, 0], threading.Event()

    def play(number: int) -> None:
        table, streams, actions = tables[number], seeds.rows(number, rows), np.zeros(rows, np.int32)
        turn = table.reset(number)
        while not stop.is_set():
            legal_choice(turn.legal, streams, actions)
            turn = table.step(actions)
            steps[number] += rows

    threads = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    before, start = sum(steps), time.perf_counter()
    time.sleep(seconds)
    figure("pool.steps", (sum(steps) - before) / (time.perf_counter() - start), "steps/s")
    stop.set()
    for thread, table in zip(threads, tables, strict=True):
        thread.join()
        table.close()


def ofc_time(target: float = 5.0) -> float:
    """Seconds of training until OFC hands against two random bots bring `target` points.

    From the first block on: the rival's environments stand before its clock starts, too.
    """
    folder, lines = trained("ofc", "default", **FAST)
    at = {line["decisions"]: line["seconds"] - lines[0]["seconds"] for line in lines}
    for place in checkpoint.listed(folder)[1:]:
        points = match.duel(games.open("ofc", hands=1), str(_as_run(folder, place)), "random", 666).mean
        if points >= target:
            return at[int(place.name)]
    raise SystemExit(f"OFC did not pass {target:+} points in {FAST['seconds']} s")


def _as_run(folder: Path, place: Path) -> Path:
    """A run of which one checkpoint is the newest."""
    one = FOLDER / f"at{place.name}"
    (one / checkpoint.CHECKPOINTS).mkdir(parents=True)
    (one / "config.toml").write_text((folder / "config.toml").read_text())
    (one / checkpoint.CHECKPOINTS / place.name).symlink_to(place)
    return one


def against_random(run: Path, count: int) -> Duel:
    """The newest policy of a run in games that are not native."""
    config = read_config(run)
    return match.table_duel(trained_game(config), config, read_weights(run), "random", count)


def ofc_vs_sb3(limit_s: float) -> None:
    ours = ofc_time()
    figure("ofc.time", ours, "s")
    theirs, reached = rivals.in_fresh_process("ofc_sb3_time", limit_s, sys.executable)
    figure("rival.ofc_sb3_time", theirs, "s" if reached else "s, not reached")
    figure("ofc.vs_sb3.time", theirs / ours, "x" if reached else "x at least")


def cartpole(target: float = 475.0) -> None:
    """Until a hundred episodes bring 475 on average, by the policy's first choices."""
    folder, lines = trained(
        "gym:CartPole-v1", "default", seconds=60.0, decisions=10**9, workers="2", rows=8, steps=64,
        net={"hidden": (64, 64)}, checkpoints={"every_s": 2.0, "keep": 1000, "milestone": 0}, log_s=0.0,
        ppo={"minibatch": 128, "learning_rate": 1e-3, "epochs": 4},
    )  # fmt: skip
    at = {line["decisions"]: line["seconds"] for line in lines}
    for place in checkpoint.listed(folder)[1:]:
        if against_random(_as_run(folder, place), 100).mean >= target:
            return figure("cartpole.475", at[int(place.name)], "s")
    figure("cartpole.475", float("inf"), "s, not reached in 60 s")


def connect_four() -> None:
    folder, _ = trained(
        "zoo:classic/connect_four_v3", "default", seconds=175.0, decisions=10**9, rows=32, steps=32,
        opponents="self:0.5,past:0.3,random:0.2", ppo={"gamma": 0.99, "minibatch": 256},
    )  # fmt: skip
    duel = against_random(folder, 1000)
    figure("connect_four.random", 100 * float(duel.won.mean()), "% won")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--rivals", default=str(rivals.OTHER_PYTHON), help="Python that has the other libraries"
    )
    parser.add_argument("--limit-s", type=float, default=900, help="how long sb3-contrib may take at OFC")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="ofc, ppo, pool, time, cartpole, connect_four"
    )
    args = parser.parse_args()
    python = args.rivals if Path(args.rivals).exists() else sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): figures may be low", file=sys.stderr)
    parts: dict[str, list[Callable[[], None]]] = {
        "ofc": [ofc_train],
        "ppo": [ppo_steps, lambda: ppo_rivals(python)],
        "pool": [pool_steps],
        "time": [lambda: ofc_vs_sb3(args.limit_s)],
        "cartpole": [cartpole],
        "connect_four": [connect_four],
    }
    try:
        for name in args.names or parts:
            for part in parts[name]:
                part()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
