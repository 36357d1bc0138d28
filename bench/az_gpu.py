"""Where AlphaZero's time goes on a GPU (Blokus Duo, `gpu` preset), and which variant is the fastest.

First the network and the update alone, by variant of compiling; then short trainings with the best of them,
by groups and games. Needs CUDA; eight minutes. `az_gpu.py cpu` tries the script itself without a GPU.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from figures import figure, measured, short
from ludus import algos, games
from ludus.algos import cuda_graph
from ludus.algos.alphazero import LISTED
from ludus.algos.alphazero.evaluators import DeviceNetwork, PlayingCopies
from ludus.algos.alphazero.learner import AlphaZeroLearner, PackedMinibatch, packed
from ludus.algos.alphazero.replay import Minibatch
from ludus.config import Config, resolve
from ludus.core.rules import Rules
from ludus.nets import NetConfig
from ludus.nets.board import Block
from ludus.training.loop import Audience, train

REPLAY_RATIO = 8.0
LEGAL = 1024
"""Legal actions that a minibatch has room for in a long training."""
FIGURE_S = 1.0
LATEST_S, PART_S = 380.0, 150.0
"""No training begins later, and no part takes longer."""


class Variant(NamedTuple):
    limit: int
    """Kernels that cuDNN tries for each convolution; 1: it guesses, 0: all."""
    options: dict[str, Any]
    """Of torch.compile, beside those that are always there."""
    own: bool = False
    """Play and learn with the convolutions of `az_conv.py`."""


VARIANTS = {
    "guess": Variant(1, {}),
    "ten": Variant(10, {}),
    "all": Variant(0, {}),
    "triton": Variant(10, {"max_autotune": True}),  # torch's convolutions in Triton, fused with what follows
    "own": Variant(10, {}, own=True),
}


class Layout(NamedTuple):
    groups: int
    games: int


class Sizes(NamedTuple):
    """What differs when the script itself is tried."""

    device: Literal["cpu", "cuda"]
    net: NetConfig
    batches: tuple[int, ...]
    minibatch: int
    layouts: tuple[Layout, ...]
    block: int
    """Decisions of a group that are learned together."""
    seconds: float


GPU = Sizes(
    "cuda", NetConfig(channels=96, blocks=6), (512, 1024), 1024,
    (Layout(14, 512), Layout(14, 1024)), 2048, 30.0,
)  # fmt: skip
TRIED = Sizes("cpu", NetConfig(channels=8, blocks=1), (8,), 16, (Layout(2, 16),), 16, 10.0)


def make_config(sizes: Sizes) -> Config:
    config = resolve("blokus", "gpu")
    settings = dataclasses.replace(config.settings, replay_ratio=REPLAY_RATIO, minibatch=sizes.minibatch)
    if sizes.device == "cpu":
        search = dataclasses.replace(settings.search, simulations=4)
        settings = dataclasses.replace(settings, search=search, fast_simulations=2, learning_starts=64)
    return dataclasses.replace(
        config, net=sizes.net, device=sizes.device, inference="central", settings=settings
    )


# ---- the network and the update alone


def rate(work: Callable[[], object], units: int, device: str) -> float:
    """Units a second."""

    def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    run(3)
    times = max(3, int(FIGURE_S * 3 / run(3)))
    return units * times / run(times)


def kernels(work: Callable[[], object], device: str, most: int = 9) -> None:
    """The kernels that take the most of its time."""
    activity = torch.profiler.ProfilerActivity
    kind = activity.CUDA if device == "cuda" else activity.CPU
    try:
        with torch.profiler.profile(activities=[kind]) as profile:
            for _ in range(5):
                work()
            if device == "cuda":
                torch.cuda.synchronize()
        name = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
        spent = {event.key: getattr(event, name) for event in profile.key_averages()}
    except Exception as error:  # not all machines let us look
        return print(f"    no profile: {error}")
    total = sum(spent.values())
    for key in sorted(spent, key=lambda key: -spent[key])[:most]:
        print(f"    {100 * spent[key] / max(total, 1e-9):5.1f} % {key[:110]}")


def random_minibatch(rules: Rules, count: int, device: str) -> PackedMinibatch:
    """Of the right shapes. Random, since a GPU runs faster on zeros."""
    spec, rng = rules.spec, np.random.default_rng(0)
    listed = min(LISTED, spec.actions)
    return packed(
        Minibatch(
            rng.integers(2, size=(count, *spec.obs_shape)).astype(spec.obs_dtype),
            rng.permuted(np.tile(np.arange(4 * LEGAL, dtype=np.int32), (count, 1)), axis=1)[:, :LEGAL].copy(),
            rng.integers(listed, LEGAL, size=count).astype(np.int32),
            np.tile(np.arange(listed, dtype=np.int32), (count, 1)),
            np.full((count, listed), 1 / listed, np.float32),
            rng.random(count) < 0.5,
            rng.uniform(-1, 1, (count, spec.values)).astype(np.float32),
            rng.uniform(-1, 1, (count, spec.values)).astype(np.float32),
            rng.integers(2, size=(count, spec.seats, spec.squares)).astype(np.uint8),
        ),
        pinned=device == "cuda",
    )


def measure_alone(name: str, sizes: Sizes) -> None:
    config, game = make_config(sizes), games.open("blokus")
    rules = game.rules
    assert rules is not None
    started = time.perf_counter()
    torch.manual_seed(0)
    learner = AlphaZeroLearner(rules, sizes.net, config.settings, sizes.device)
    for parameter in learner.net.parameters():
        torch.nn.init.normal_(parameter, std=0.03)  # new blocks would only compute zeros
    pack = random_minibatch(rules, sizes.minibatch, sizes.device)
    losses = [round(loss, 3) for loss in learner._update(pack).tolist()]
    print(f"    the update is ready after {time.perf_counter() - started:.0f} s: {losses}", flush=True)
    samples = rate(lambda: learner._update(pack), sizes.minibatch, sizes.device)
    figure(f"alone.{name}.update", samples, "samples/s")
    kernels(lambda: learner._update(pack), sizes.device)
    evaluations = algos.find("alphazero").beats_per_decision(config)
    for batch in sizes.batches:
        looks = measure_looks(name, learner, rules, batch, sizes.device)
        both = 1 / (evaluations / looks + REPLAY_RATIO / samples)
        figure(f"alone.{name}.{batch}.together", both, "decisions/s if only the GPU counted")


@torch.no_grad()
def measure_looks(name: str, learner: AlphaZeroLearner, rules: Rules, batch: int, device: str) -> float:
    """Positions/s of one group, and of three at a time: the better."""
    copies, rng = PlayingCopies(learner.net), np.random.default_rng(0)
    obs = rng.integers(2, size=(batch, *rules.spec.obs_shape)).astype(rules.spec.obs_dtype)
    if device == "cuda":
        copies.fuse(torch.from_numpy(obs).to(device))
    networks, rates = [DeviceNetwork(rules, copies, batch) for _ in range(3)], []
    for network in networks:
        network._obs.copy_(torch.from_numpy(obs))
    for count in (1, 3):

        def look(count: int = count) -> None:
            for network in networks[:count]:
                with torch.cuda.stream(network._stream):  # nothing without a GPU
                    network._look(0)

        rates.append(rate(look, count * batch, device))
        figure(f"alone.{name}.look.{batch}x{count}", rates[-1], "positions/s")
    kernels(lambda: networks[0]._look(0), device)
    return max(rates)


# ---- trainings


def measure_training(name: str, layout: Layout, sizes: Sizes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = dataclasses.replace(
            make_config(sizes), rows=layout.games, steps=max(1, sizes.block // layout.games),
            workers=str(layout.groups), seconds=sizes.seconds, log_s=1.0, profile=True, run=f"{folder}/run",
        )  # fmt: skip
        with Watch(sizes.device) as watch:
            run = train(config, Audience())
        lines = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    middle, last = lines[len(lines) // 2], lines[-1]
    seconds = last["seconds"] - middle["seconds"]
    speed = (last["decisions"] - middle["decisions"]) / seconds
    title = f"train.{name}.{layout.groups}x{layout.games}"
    figure(title, speed, "decisions/s")
    figure(f"{title}.samples", speed * REPLAY_RATIO, "samples/s")
    late = lines[len(lines) // 2 + 1 :]
    for key in ("speed/simulations", "search/fill", "policy/lag", "cpu/all"):
        print(f"    {key} {short(float(np.mean([line[key] for line in late if key in line])))}")
    times = {key: last[key] - middle.get(key, 0.0) for key in last if key.startswith("time/")}
    told("the learner", {key: spent / seconds for key, spent in times.items()})
    names = [key for key in last if key.startswith("workers/") and key.split("/")[1] in WHERE]
    sums = {key: sum(line.get(key, 0.0) for line in late) for key in names}
    told("the groups", {key: spent / max(sum(sums.values()), 1e-9) for key, spent in sums.items()})
    watch.tell(sizes.seconds / 2)


WHERE = ("inference", "search", "stepping", "waiting")


def told(who: str, shares: dict[str, float]) -> None:
    parts = (f"{name.split('/')[1]} {100 * share:.0f} %" for name, share in shares.items())
    print(f"    time of {who}: {', '.join(parts)}", flush=True)


class Watch:
    """What nvidia-smi says of the GPU meanwhile."""

    EVERY_S, ASKED = 0.25, ("utilization.gpu", "power.draw", "clocks.sm")

    def __init__(self, device: str) -> None:
        self.command = ["nvidia-smi", f"--query-gpu={','.join(self.ASKED)}", "--format=csv,noheader,nounits"]
        self.command.append(f"-lms={int(1000 * self.EVERY_S)}")
        self.on_gpu, self.seen = device == "cuda", np.zeros((0, len(self.ASKED)))

    def __enter__(self) -> "Watch":
        if self.on_gpu:
            self.output = tempfile.TemporaryFile("w+")
            self.process = subprocess.Popen(self.command, stdout=self.output)
        return self

    def __exit__(self, *error: object) -> None:
        if self.on_gpu:
            self.process.terminate()
            self.process.wait()
            self.output.seek(0)
            rows = [line.split(",") for line in self.output if line.count(",") == len(self.ASKED) - 1]
            self.seen = np.array(rows, float)

    def tell(self, seconds: float) -> None:
        """Means of the last so many."""
        if not len(self.seen):
            return
        for asked, values in zip(self.ASKED, self.seen[-int(seconds / self.EVERY_S) :].T, strict=True):
            print(f"    {asked} {short(float(values.mean()))}")


# ---- one process for each: what cuDNN and the compiler chose stays in a process


def apart(device: str, *words: str) -> dict[str, float]:
    """Figures of a part of this script, run by itself; none where it fails."""
    print(f"-- {' '.join(words)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "figures"
        try:
            subprocess.run([sys.executable, __file__, device, *words, str(found)], check=True, timeout=PART_S)
        except subprocess.SubprocessError as error:
            print(f"   FAILED: {error}", flush=True)
            return {}
        return {name: value for name, (value, _) in json.loads(found.read_text()).items()}


def part(sizes: Sizes, what: str, name: str, *rest: str) -> None:
    variant = VARIANTS[name]
    torch.backends.cudnn.benchmark_limit = variant.limit
    cuda_graph.FUSED |= variant.options
    if variant.own:
        import az_conv

        PlayingCopies.fuse = az_conv.fuse  # type: ignore[method-assign, assignment]
        Block.forward = az_conv.block_forward  # type: ignore[method-assign, assignment]
    if what == "alone":
        measure_alone(name, sizes)
    else:
        measure_training(name, Layout(int(rest[0]), int(rest[1])), sizes)
    Path(rest[-1]).write_text(json.dumps(measured))


def main() -> None:
    device, *words = sys.argv[1:] or ["cuda"]
    sizes = GPU if device == "cuda" else TRIED
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench/az_gpu.py needs a CUDA GPU; `az_gpu.py cpu` tries the script without one")
    if words:
        return part(sizes, *words)
    start, batch, best = time.perf_counter(), sizes.batches[-1], {}
    for name in VARIANTS if device == "cuda" else ("guess",):
        best[name] = apart(device, "alone", name).get(f"alone.{name}.{batch}.together", 0.0)
    fastest = max(best, key=lambda name: best[name])
    print(f"the fastest alone: {fastest} ({time.perf_counter() - start:.0f} s)", flush=True)
    trainings = [(fastest, layout) for layout in reversed(sizes.layouts)] + [("guess", sizes.layouts[0])]
    for name, layout in dict.fromkeys(trainings):
        if time.perf_counter() - start > LATEST_S:
            print(f"no time left to train {name} with {layout}")
        else:
            apart(device, "train", name, str(layout.groups), str(layout.games))
    print(f"all of it took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
