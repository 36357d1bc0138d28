"""`ludus sweep`: search settings by training many runs, side by side where there are cores."""

import contextlib
import importlib.util
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from tyro.conf import UseAppendAction, arg

from ludus import machine
from ludus.commands import train
from ludus.commands.flags import reading
from ludus.config import Config
from ludus.core import extras
from ludus.core.errors import Failure, Stopped, Usage
from ludus.store import lock
from ludus.store.disk import writing
from ludus.store.run import LOG, is_run, quoted
from ludus.sweep import process_place, ray_place
from ludus.sweep.places import Ended, Place
from ludus.sweep.results import plot, shown, table, write_best
from ludus.sweep.space import EXAMPLES, alone, parse
from ludus.sweep.study import Study, Trial
from ludus.training import cluster
from ludus.training.build import announce, open_game

console = Console(highlight=False, emoji=False)
LOST_TRIES = 3
"""How often a trial may lose its process or node before it counts as failed."""
LOOK_S = 0.05
"""How often we look what trials have told."""


@dataclass(frozen=True)
class Flags:
    trials: int = 20
    """Trials in all, also when the sweep goes on."""
    space: Annotated[tuple[tuple[str, ...], ...], UseAppendAction, arg(metavar="KEY=VALUES")] = ()
    """What varies: KEY=LOW:HIGH, KEY=log:LOW:HIGH or KEY=choice:A,B as in ppo.learning_rate=log:1e-4:1e-2"""
    parallel: int = 0
    """Trials side by side, each with its share of the cores. Default: one, on Ray one on each node."""


def run(args: list[str]) -> None:
    flags, base, folder = _parse(args)
    words = [word for group in flags.space for word in group]
    settings = parse(words, base)
    if flags.trials < 1 or flags.parallel < 0:
        raise Usage("--trials and --parallel must be 1 or more")
    if base.pool != "ray" and flags.parallel > machine.usable_cores():
        raise Usage(f"--parallel {flags.parallel} is more than the {machine.usable_cores()} cores here")
    if importlib.util.find_spec("matplotlib") is None:  # else it would be missed at the very end
        raise extras.missing("ludus sweep", "matplotlib")
    game = open_game(alone(base))  # refuses what can't be trained, and compiles once for all trials
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with lock.hold(folder), writing(folder):
        (folder / ray_place.TOKEN).write_text(uuid.uuid4().hex)
        study = Study(folder, settings, base)
        sweep = Sweep(study, flags.trials)
        try:
            with _places(base, flags.parallel, folder, announce(alone(base), game)) as places:
                sweep.run(places)
        except KeyboardInterrupt:
            raise Stopped(
                f"stopped; go on with the same command, in {folder}: "
                f"{len(study.complete)} of {flags.trials} trials are complete"
            ) from None
        _tell_results(study, base)


def _parse(args: list[str]) -> tuple[Flags, Config, Path]:
    """The sweep's own flags, what all trials have in common, and the sweep's folder."""
    if not args or (args[0].startswith("-") and "--help" not in args and "-h" not in args):
        raise Usage(f"say which game to train and what to vary, as in `ludus sweep ofc --space {EXAMPLES}`")
    game, rest = args[0], args[1:]
    description = (
        "Search settings: each trial is a training, a run in the sweep's folder (--run, default "
        f"runs/sweep-{game}). Every flag of `ludus train {game}` is taken too, for all trials."
    )
    with reading(f"ludus sweep {game}"):
        flags, others = tyro.cli(
            Flags, args=rest if not game.startswith("-") else args, prog=f"ludus sweep {game}",
            description=description, return_unknown_args=True,
        )  # fmt: skip
    if "--overwrite" in others or "--weights" in others:
        raise Usage("a sweep goes on or begins in a new folder: leave --overwrite and --weights out")
    base = train.parse([game, *others])
    folder = Path(base.run or f"runs/sweep-{game.replace(':', '-').replace('/', '-')}")
    if is_run(folder):
        raise Usage(f"{folder} is a run, not a sweep: choose another folder with --run")
    return flags, base, folder


@contextlib.contextmanager
def _places(base: Config, parallel: int, folder: Path, modules: Sequence[str]) -> Iterator[list[Place]]:
    """Where trials are trained; all of them end with the sweep."""
    ours = base.pool == "ray" and cluster.connect(base.ray_address, base.ray_modules)
    found: list[Place] = []
    try:
        if base.pool == "ray":
            found = ray_place.on_ray(parallel, folder.resolve())
        else:
            found = process_place.local(parallel or 1, folder / LOG, modules)
        yield found
    finally:
        for place in found:
            place.close()
        if ours:
            cluster.leave()


class Sweep:
    """Keeps every place busy until enough trials were tried."""

    def __init__(self, study: Study, most: int) -> None:
        self.study, self.most = study, most
        self._running: dict[int, Trial] = {}  # by place
        self._lost: Counter[int] = Counter()  # by trial

    def run(self, places: list[Place]) -> None:
        old = len(self.study.trials)
        if old:
            console.print(f"{old} trials are there already, {len(self.study.complete)} of them complete")
        while True:
            for number, place in enumerate(places):
                if number not in self._running:
                    self._begin(number, place)
            if not self._running:
                return
            if not any([self._listen(number, places[number]) for number in list(self._running)]):
                time.sleep(LOOK_S)

    def _begin(self, number: int, place: Place) -> None:
        trial = self.study.next_trial(self.most, {trial.number for trial in self._running.values()})
        if trial is not None:
            self._running[number] = trial
            place.begin(trial.config)

    def _listen(self, number: int, place: Place) -> bool:
        """Whether the trial at a place told anything."""
        trial, heard = self._running[number], False
        for message in place.messages():
            heard = True
            if isinstance(message, Ended):
                self._end(number, message)
                break
            before = trial.pruned
            if trial.note(*message) and not before:
                place.prune()
        return heard

    def _end(self, number: int, ended: Ended) -> None:
        trial = self._running.pop(number)
        if ended.lost and self._lost[trial.number] < LOST_TRIES:
            self._lost[trial.number] += 1
            console.print(f"trial {trial.number:03d} goes on: {ended.lost}", markup=False, soft_wrap=True)
            return
        said = (
            trial.fail(ended.lost)
            if ended.lost
            else trial.fail(ended.fault.line)
            if ended.fault
            else trial.finish()
        )
        values = self.study.values(self.study.trials[trial.number])
        varied = " ".join(f"{key}={shown(value)}" for key, value in values.items())
        console.print(f"trial {trial.number:03d} {said} ({varied})", markup=False, soft_wrap=True)
        if ended.fault and ended.fault.final:
            raise Usage(ended.fault.line)


def _tell_results(study: Study, base: Config) -> None:
    console.print(table(study))
    for name, share in study.importance().items():
        console.print(f"importance {share:.2f}  {name}", markup=False)
    best, picture = write_best(study), plot(study)
    if best is None or picture is None:
        raise Failure(f"no trial of {study.folder} is complete: give it more --trials or --decisions")
    console.print(f"the plot is in {picture}", markup=False, soft_wrap=True)
    console.print(
        f"the best is in {best}: ludus train {base.game} --config {quoted(best)}",
        markup=False,
        soft_wrap=True,
    )
