"""Saving a training and going on with it: what a checkpoint holds, and when one is due."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ludus import algos
from ludus.algos import StartsTrained
from ludus.algos.cuda_graph import copied
from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.checkpoint import Best, Checkpoint, Saver
from ludus.store.player import parse_player
from ludus.store.run import check_fit, differences, peek_config, quoted, read_weights
from ludus.store.start import Bare

if TYPE_CHECKING:
    from ludus.training.loop import Evaluation, Training

FIRST_GAMES = " of its first games"
MILESTONE_S = 5.0
"""Milestones come no closer than this, however fast the training is."""


class Saving:
    def __init__(self, training: "Training", kept: Checkpoint | None) -> None:
        self.training, self.run = training, training.run
        self.schedule = training.config.checkpoints
        self.best = checkpoint.best_so_far(self.run.folder, kept.state["best"] if kept else -math.inf)
        self.measured = note.name if (note := checkpoint.read_best(self.run.folder)) else ""
        start = training.meter.decisions
        self.saver = Saver(self.run.folder, self.schedule, start, self._saved)
        self.saved_at, self.saved_decisions = time.monotonic(), start
        self._found: tuple[Best, dict[str, Any]] | None = None  # a best that is not saved yet
        # Until an evaluation is complete, the training's own measure is all there is.
        own = training.meter.measured
        self._judged = training.evaluate.decides and self.measured not in ("", own, own + FIRST_GAMES)

    # ---- saving

    def due(self) -> bool:
        schedule, made = self.schedule, self.training.meter.decisions - self.saved_decisions
        by_time = schedule.every_s and time.monotonic() - self.saved_at >= schedule.every_s
        by_count = schedule.every_decisions and made >= schedule.every_decisions
        passed = schedule.milestone and made >= schedule.milestone - self.saved_decisions % schedule.milestone
        by_milestone = passed and time.monotonic() - self.saved_at >= MILESTONE_S
        return bool(by_count or ((by_time or by_milestone) and not self.saver.busy))

    def save_first(self) -> None:
        """Something to fall back to from the first moment, and proof that the folder can be written to."""
        self.save(first=True)
        self.saver.wait()
        if self.saver.failed:
            self.run.withdraw()
            raise Failure(
                f"can't save the first checkpoint in {self.run.folder}: {self.saver.failed}: "
                "free some space there, or choose another folder with --run"
            )

    def save(self, first: bool = False) -> None:
        """first: nothing was learned yet, so it can't be the best"""
        training = self.training
        self.run.check()
        self.saver.wait()  # only then it is known whether the best before was saved
        weights = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in training.learner.net.state_dict().items()
        }
        decisions = training.meter.decisions
        if not first and not self._judged:
            self._compare_own(weights)
        found, self._found = self._found, None
        state = {**self._state(), "best": found[0].measure if found else self.best}
        self.saver.save(Checkpoint(decisions, weights, state), *(found or (None, {})))
        self.saved_at, self.saved_decisions = time.monotonic(), decisions

    def _compare_own(self, weights: dict[str, Any]) -> None:
        """By the training's own games. The first of them are better than nothing, but give way."""
        meter, name = self.training.meter, self.training.meter.measured
        if not meter.is_settled:
            if self.measured not in ("", name + FIRST_GAMES):
                return
            name += FIRST_GAMES
        self._compare(meter.measure(self.training.league.metrics()), name, weights)

    def judge(self, evaluation: "Evaluation") -> None:
        """The weights that were evaluated may be the best so far."""
        self._judged = True
        weights = {name: torch.from_numpy(array) for name, array in evaluation.weights.items()}
        self._compare(evaluation.measure, evaluation.name, weights, evaluation.decisions)

    def _compare(
        self, measure: float | None, name: str, weights: dict[str, Any], decisions: int = -1
    ) -> None:
        """What was measured in another way can't be compared, so it gives way."""
        least, measured = self.best, self.measured
        if self._found:
            least, measured = self._found[0].measure, self._found[0].name
        if measured not in ("", name) and not (math.isinf(least) and least > 0):
            least = -math.inf
        if measure is not None and measure > least:
            decisions = self.training.meter.decisions if decisions < 0 else decisions
            self._found = Best(decisions, measure, name), weights

    def finish(self) -> None:
        """The end of the training, if it isn't saved yet."""
        if not self.training.config.sync and self.saved_decisions < self.training.meter.decisions:
            self.save()
        self.saver.wait()
        self.run.check()
        if self.saver.failed:
            raise Failure(
                f"the end of the training could not be saved in {self.run.folder}: {self.saver.failed}: "
                f"free some space there, then go on from its newest checkpoint with "
                f"`ludus resume {quoted(self.run.folder)}`"
            )

    def _saved(self, what: str, details: dict[str, Any]) -> None:
        if what == "best":
            self.best, self.measured = details["measure"], details["name"]
        self.run.event(what, **details)

    def _state(self) -> dict[str, Any]:
        training = self.training
        return {
            "learner": copied(training.learner.state_dict()),
            "meter": training.meter.state_dict(),
            "league": training.league.state_dict(),
            "version": training.version,
            "rolled_back": training.rolled_back,
            "rows": training.config.rows,
            "opponents": training.config.opponents,
            "workers": training.pool.snapshot(),
        }

    # ---- going on

    def load_players(self, kept: Checkpoint) -> None:
        training, config = self.training, self.training.config
        self.run.forget_after(kept.decisions)
        training.league.load_state_dict(kept.state["league"])
        training.pool.publish(training.vector, training.version, training.learner.progress)
        snapshots = kept.state["workers"]
        opponents = kept.state.get("opponents", config.opponents)
        same_games = kept.state["rows"] == config.rows and opponents == config.opponents
        if snapshots and same_games:
            training.pool.restore(snapshots)
        if not (any(snapshots) and same_games):
            training.meter.begin_games_anew()
        games = sum(map(bool, snapshots)) or len(snapshots)  # those of environments can't be kept
        if config.sync and kept.decisions and games != training.pool.workers:
            self.run.event("not exact", reason=f"{games} workers' games of {training.pool.workers} were kept")

    def tell_of_weights(self, bare: Bare) -> None:
        self.run.forget_after(bare.decisions)
        which = "best" if bare.name == checkpoint.BEST else f"milestone {bare.decisions:,}"
        text = f"there is no checkpoint: going on from the weights of its {which} with a new optimizer"
        if math.isinf(self.best) and self.best > 0:
            text += (
                f"; nobody knows how good {checkpoint.best_file(self.run.folder).name} is, so it stays as it "
                "is and no new best is kept: move it away to have one"
            )
        self.run.event("weights only", decisions=bare.decisions, reason=text)

    def roll_back(self) -> None:
        """The loss is not a number: back to the last good weights, once, with a smaller learning rate."""
        training = self.training
        self.saver.wait()
        kept = checkpoint.newest(self.run.folder, training.skipped)
        if training.rolled_back or kept is None:
            group = algos.group_of(training.config.algo)
            raise Failure(
                f"the loss is not a number at {training.meter.decisions:,} decisions, again after a smaller "
                f"learning rate; {self.run.folder} keeps the last good checkpoint: "
                f"lower --{group}.learning-rate or --{group}.max-grad-norm"
            )
        self.run.event("rolled back", reason="the loss is not a number", decisions=kept.decisions)
        newest = training.version
        load_learner(training, kept)
        training.version = (
            newest  # versions only rise: blocks of the discarded weights are still on their way
        )
        training.league.load_state_dict(kept.state["league"])
        self.run.forget_after(kept.decisions)
        training.learner.rate_scale *= 0.5
        training.rolled_back = True
        training.publish()


def load_learner(training: "Training", kept: Checkpoint) -> None:
    try:
        training.learner.net.load_state_dict(kept.weights)
        training.learner.load_state_dict(kept.state["learner"])
    except (RuntimeError, ValueError, KeyError) as error:
        why = str(error).strip().splitlines()[-1].strip()
        raise Failure(
            f"{training.run.folder} was trained with another version of its game or network ({why}): "
            "choose another folder with --run"
        ) from None
    training.meter.load_state_dict(kept.state["meter"])
    training.version, training.rolled_back = kept.state["version"], kept.state["rolled_back"]


def load_weights(training: "Training", bare: Bare) -> None:
    _fill(training, training.run.folder, bare.weights)
    training.meter.load_state_dict({**bare.meter, "decisions": bare.decisions})


def start_from(training: "Training", name: str) -> None:
    """Begin with the weights of another run, perhaps `FOLDER@best`, or of the game's champion."""
    other, config = parse_player(name, training.game.champion), training.config
    if other.run is None or other.think:
        raise Usage(f"--start-from {name}: it is no run's folder (its own, --overwrite has moved aside)")
    theirs = peek_config(other.run)
    if theirs.algo != config.algo:
        raise Usage(f"--start-from {name}: it was trained by {theirs.algo}, not by {config.algo}")
    for field, old, new in differences("net", theirs.net, config.net):
        raise Usage(f"--start-from {name}: its {field} is {old}, not {new}: give both the same network")
    _fill(training, other.run, read_weights(other.run, other.at))


def _fill(training: "Training", folder: Path, weights: Mapping[str, np.ndarray]) -> None:
    check_fit(folder, weights, training.learner.net.state_dict())
    tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    training.learner.net.load_state_dict(tensors)
    if isinstance(training.learner, StartsTrained):
        training.learner.start_trained()
