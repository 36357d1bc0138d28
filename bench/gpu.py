"""Training on a GPU, as `figure NAME VALUE UNIT`, with where the time went. Needs CUDA; six minutes."""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import torch

from figures import figure
from ludus.config import Config, resolve
from ludus.training.loop import Audience, train

SECONDS = 30.0


def steady_speed(config: Config) -> tuple[float, dict]:
    """Decisions/s over the second half, without compiling and recording."""
    folder = train(config, Audience())
    lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    middle, last = lines[len(lines) // 2], lines[-1]
    gained = last["decisions"] - middle["decisions"]
    return gained / (last["seconds"] - middle["seconds"]), last


SHOWN = (
    "time/", "workers/", "cpu/", "search/", "replay/", "game/fouls", "game/royalties", "memory", "layout",
)  # fmt: skip
"""Metrics that say where the rest of the time goes."""


def tell(name: str, config: Config) -> float:
    speed, last = steady_speed(config)
    figure(name, speed, "decisions/s")
    for key in sorted(last):
        if key.startswith(SHOWN):
            print(f"    {key} {last[key]}", flush=True)
    return speed


def measure_ofc(folder: str) -> None:
    preset = dataclasses.replace(resolve("ofc", "gpu"), log_s=1.0, inference="central")
    preset = dataclasses.replace(preset, seconds=3 * SECONDS, run=f"{folder}/preset")
    tell("ofc.train.gpu.afterstates", preset)  # 40 s of it are compiling
    config = dataclasses.replace(
        preset,
        net=dataclasses.replace(preset.net, head="actions", hidden=(320, 256)),
        settings=dataclasses.replace(preset.settings, teacher="greedy", teacher_until=0.05, minibatch=65_536),
        switches={**preset.switches, "last_street": "played"},
        rows=4096,
        seconds=SECONDS,
        run=f"{folder}/central",
    )
    tell("ofc.train.gpu", config)
    big = dataclasses.replace(config.net, hidden=(1024, 512, 512))
    tell("ofc.train.gpu.big", dataclasses.replace(config, net=big, run=f"{folder}/big"))
    hybrid = dataclasses.replace(config, inference="local", rows=256, run=f"{folder}/hybrid")
    tell("ofc.train.hybrid", hybrid)
    chosen = dataclasses.replace(config, inference="auto", seconds=10.0, run=f"{folder}/auto")
    tell("ofc.train.auto", chosen)  # its layout says what was measured


def measure_blokus(folder: str) -> None:
    blokus = dataclasses.replace(
        resolve("blokus", "gpu"), seconds=3 * SECONDS, run=f"{folder}/blokus", inference="central"
    )
    settings = dataclasses.replace(blokus.settings, replay_ratio=8.4, minibatch=2048)
    speed = tell("blokus.train.gpu", dataclasses.replace(blokus, settings=settings))
    figure("blokus.train.gpu.samples", speed * settings.replay_ratio, "samples/s")


PARTS = {"ofc": measure_ofc, "blokus": measure_blokus}


def main() -> None:
    """All parts, or those that are named."""
    if not torch.cuda.is_available():
        sys.exit("bench/gpu.py needs a CUDA GPU")
    print(torch.cuda.get_device_name(), os.cpu_count(), "cores, torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or PARTS:
            PARTS[name](folder)


if __name__ == "__main__":
    main()
