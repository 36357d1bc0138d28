"""The page everyone reads: receive, learn, publish, evaluate, report, save."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from ludus import algos, machine
from ludus.algos import Weights
from ludus.config import Config
from ludus.core import seeds
from ludus.core.errors import Failure, Stopped, Usage
from ludus.core.game import Game
from ludus.nets.net import flatten
from ludus.store import checkpoint
from ludus.store import start as start_of_run
from ludus.store.checkpoint import Checkpoint
from ludus.store.disk import writing
from ludus.store.outlets import Outlets
from ludus.store.run import LOG, Run, keep_sizes, quoted
from ludus.store.start import Bare
from ludus.training.build import flat_weights, make_pool, open_game, sized_config
from ludus.training.layout import Layout, Sizer, counted, lay_out
from ludus.training.league import League
from ludus.training.measure import measured_layout
from ludus.training.meter import Meter
from ludus.training.pools import Delivery, Health, Pool
from ludus.training.profile import Profile
from ludus.training.saving import Saving, load_learner, load_weights, start_from
from ludus.training.stop import PATIENCE_S, Stop

LONG_S, STATUS_S = 5.0, 1.0
"""A wait for blocks that is long enough to be told of, and how often it is."""
STOPPING = "it saves and ends; press Ctrl-C again to end at once"


class Evaluation(NamedTuple):
    """How some weights did."""

    metrics: dict[str, float]
    decisions: int
    measure: float | None
    """What decides which weights are the best, if anything here does."""
    name: str
    """What `measure` is."""
    weights: Weights


class Evaluate(Protocol):
    cancelled: Callable[[], bool]
    """Whether nobody waits for it any more. The training says so; games that hang must ask."""

    @property
    def decides(self) -> bool:
        """Whether evaluations decide which weights are the best."""
        ...

    def __call__(
        self, before: int, decisions: int, weights: Callable[[], Weights], last: bool
    ) -> Evaluation | None:
        """An evaluation, once one is complete. before: decisions at the last call. last: the training ends"""
        ...


class NoEvaluation:
    cancelled: Callable[[], bool]
    decides = False

    def __call__(self, before: int, decisions: int, weights: Callable[[], Weights], last: bool) -> None:
        return None


class Audience:
    """Who follows a training. It never waits for them; a subclass hears what it wants to."""

    def status(self, text: str) -> None:
        """What happens while there are no metrics to show."""

    def report(self, metrics: dict[str, Any]) -> bool | None:
        """The newest metrics. True ends the training here."""

    def event(self, what: str, details: dict[str, Any]) -> None:
        """Everything that happens, from any thread."""


def train(
    config: Config, audience: Audience, evaluate: Evaluate | None = None, *, overwrite: bool = False,
    weights: str = "",
) -> Path:  # fmt: skip
    """Train until the budget is spent, from the newest checkpoint if the run has one; the run's folder.

    overwrite: begin anew; the run that is in the folder is moved aside. weights: `best` or a milestone, to go
    on from if no checkpoint can be read
    """
    config = config if overwrite else keep_sizes(config)
    game = open_game(config)
    config = sized_config(config, game, audience.status)
    layout = lay_out(config, game)
    run = Run.open(config, overwrite)
    run.listeners.append(audience.event)
    outlets = training = None
    try:
        outlets = Outlets(run, config, new=not checkpoint.listed(run.folder))
        training = Training(config, game, layout, run, audience, evaluate or NoEvaluation(), weights)
        with Stop(lambda: audience.event("stopping", {"reason": STOPPING})) as stop:
            training.run_to_end(stop)
    except Exception as error:
        if training is not None and not isinstance(error, Stopped | Usage):  # what never began can't fail
            run.failed(error)
        raise
    finally:
        if outlets:
            outlets.close()
        run.close()
    return run.folder


class Training:
    """A run in memory: what learns, who plays, and what is known about it."""

    def __init__(
        self, config: Config, game: Game, layout: Layout, run: Run, audience: Audience, evaluate: Evaluate,
        weights: str,
    ) -> None:  # fmt: skip
        """weights: to go on from if no checkpoint can be read"""
        self.config, self.game, self.run = config, game, run
        self.audience, self.evaluate = audience, evaluate
        self.version, self.rolled_back, self._replaced = 0, False, 0
        torch.manual_seed(seeds.derive(config.seed, "learner"))
        torch.set_num_threads(layout.threads)
        self.learner = algos.find(config.algo).make_learner(config, game, layout.device)
        found = start_of_run.find(run.folder, weights, self.skipped)
        kept = found if isinstance(found, Checkpoint) else None
        start = found.decisions if found else 0
        self.profile = Profile() if config.profile else None
        self.meter = Meter(game, start, self.profile)
        if self.profile:
            self.learner.phase = self.meter.phase
        if kept:
            load_learner(self, kept)
        elif isinstance(found, Bare):
            load_weights(self, found)
        elif config.start_from:
            start_from(self, config.start_from)
        if found:
            self._refuse_finished()
        self.saving = Saving(self, kept)
        self.vector = flat_weights(self.learner.net)
        self.layout = self._chosen(layout, start)
        audience.status(f"starting {counted(max(1, self.layout.workers))}")
        self.pool = self._make_pool(self.layout, start)
        self.league = League(self.pool, self.vector, config.decisions)
        if kept:
            self.saving.load_players(kept)
        resizable = config.workers == "auto" and not config.sync and self.pool.resizable
        self.sizer = Sizer(self.layout.workers, machine.usable_cores()) if resizable else None
        self._has_checkpoint, self._evaluated = kept is not None, start
        self._waiting_since = self._status_at = 0.0
        self._given_up = False  # a stop or the clock ended a block or an update before its end
        self._enough = False  # the audience wants no more
        run.accept()
        run.event(
            "resume" if found else "start", decisions=start, layout=self.layout.why,
            workers=self.layout.workers, device=self.layout.device,
        )  # fmt: skip
        if isinstance(found, Bare):
            self.saving.tell_of_weights(found)

    # ---- the loop

    def run_to_end(self, stop: Stop) -> None:
        meter = self.meter
        try:
            if not self._has_checkpoint:
                self.saving.save_first()
            meter.start_clock()
            while not self._spent():
                if not self._update(stop):
                    break
            self.saving.finish()
            self._tell_of_end(stop)
        finally:
            self.pool.close()
            self.saving.saver.wait()
            if self.profile and self.run.folder.exists():
                with writing(self.run.folder):
                    self.profile.write(self.run.folder)

    def _update(self, stop: Stop) -> bool:
        """Blocks in, better weights out; False if it is time to go."""
        config, meter = self.config, self.meter
        with meter.phase("waiting for workers"):
            self._waiting_since = time.monotonic()
            deliveries = self.pool.receive(lambda: self._give_up_waiting(stop))
        if not deliveries:
            return False
        with meter.phase("learning"):
            losses = self._learn(deliveries, stop)
        if config.sync and self._given_up:
            return False  # half an update: the last checkpoint is what can be gone on from exactly
        if not all(math.isfinite(value) for value in losses.values()):
            self.saving.roll_back()
            self.pool.release(deliveries)
            return True
        with meter.phase("publishing"):
            self.publish()
            meter.add(deliveries, self.version)
            self.league.add(deliveries, self.flat, self.version, meter.decisions)
        spent = self._spent()
        if spent or config.sync or meter.due(config.log_s):
            with meter.phase("evaluating"):
                losses |= self._evaluate(spent, stop)
            with meter.phase("reporting"):
                self._report(losses)
        if spent or stop.asked or self._enough or self.saving.due():
            with meter.phase("saving"):
                self.saving.save()
        self.pool.release(deliveries)  # only now: workers must not meet a league that is changing
        return not (stop.asked or self._enough)

    def _learn(self, deliveries: list[Delivery], stop: Stop) -> dict[str, float]:
        learner, config = self.learner, self.config
        learner.cancelled = lambda: self._overdue(stop)
        learner.progress = self.meter.progress(config.decisions, config.seconds)
        # With another temperature than 1, not even the newest weights play the learner's policy.
        old = any(delivery.version < self.version for delivery in deliveries)
        return learner.learn(
            [delivery.block for delivery in deliveries], off_policy=old or config.temperature_spread > 0
        )

    def publish(self) -> None:
        self.version += 1
        vector = self.flat() if self.pool.reads_vector else self.vector
        self.pool.publish(vector, self.version, self.learner.progress)

    def flat(self) -> np.ndarray:
        """The newest weights as one vector, float32 [size]."""
        flatten(self.learner.net, self.vector)
        return self.vector

    def _spent(self) -> bool:
        return self.meter.spent(self.config.decisions, self.config.seconds)

    def _overdue(self, stop: Stop) -> bool:
        """Whether it is too late to wait for anything, after a stop or the end of the time."""
        late = self.meter.seconds() - self.config.seconds if self.config.seconds else 0.0
        self._given_up = stop.overdue() or late > PATIENCE_S
        return self._given_up

    # ---- telling

    def _evaluate(self, last: bool, stop: Stop) -> dict[str, float]:
        """New results of the evaluation, if there are any. It can fail without harm to the training."""
        before, self._evaluated = self._evaluated, self.meter.decisions
        # The last evaluation comes when the time is over, and has time of its own.
        self.evaluate.cancelled = stop.overdue if last else lambda: self._overdue(stop)
        try:
            found = self.evaluate(before, self.meter.decisions, self._weights, last)
        except Exception as error:
            self.evaluate = NoEvaluation()
            self.run.event("evaluation failed", reason=f"{type(error).__name__}: {error}")
            return {}
        if found is None:
            return {}
        self.run.event("evaluation", **found.metrics)
        if self.evaluate.decides:
            self.saving.judge(found)
        return found.metrics

    def _weights(self) -> Weights:
        """A copy of the network's, by name."""
        named = self.learner.net.state_dict().items()
        return {name: tensor.detach().cpu().contiguous().numpy().copy() for name, tensor in named}

    def _report(self, losses: dict[str, float]) -> None:
        health = self._tell_of_replaced()
        metrics = self.meter.read(losses, health) | self.league.metrics()
        metrics["layout"] = self.layout.why
        measure = self.meter.measure(metrics)
        if measure is not None:
            metrics["measure"] = measure
        if self.config.price_per_hour:
            metrics |= self.meter.cost(self.config.price_per_hour, metrics["seconds"])
        self.run.metrics(metrics)
        self._enough = bool(self.audience.report(metrics)) or self._enough
        self._resize(metrics)

    def skipped(self, text: str) -> None:
        self.run.event("checkpoint skipped", reason=text)

    def _tell_of_replaced(self) -> Health:
        health = self.pool.health()
        if health.replaced > self._replaced:
            self.run.event("worker replaced", count=health.replaced, reason=health.reason)
            self._replaced = health.replaced
        return health

    def _give_up_waiting(self, stop: Stop) -> bool:
        """Asked by the pool again and again while it waits for blocks."""
        self._tell_of_replaced()
        now = time.monotonic()
        first = self.meter.decisions == self.meter.start
        if now - self._status_at >= STATUS_S and (first or now - self._waiting_since >= LONG_S):
            self._status_at = now
            self.audience.status(self._waiting(first))
        return self._overdue(stop)

    def _waiting(self, first: bool) -> str:
        progress, workers = self.pool.progress(), counted(self.pool.workers)
        if progress is None:
            return f"starting {workers}"
        return f"{workers}, {'first ' if first else ''}block {100 * progress:.0f} %"

    def _tell_of_end(self, stop: Stop) -> None:
        if not stop.asked:
            self._refuse_nothing()
            self.run.event("end", decisions=self.meter.decisions)
            return
        saved = self.saving.saved_decisions
        self.run.event("stopped", decisions=saved, signal=stop.asked)
        raise Stopped(f"stopped at {saved:,} decisions; go on with `ludus resume {quoted(self.run.folder)}`")

    # ---- what can't be done

    def _refuse_finished(self) -> None:
        if self._spent():
            raise Usage(
                f"{self.run.folder} is finished after {self.meter.decisions:,} decisions and "
                f"{self.meter.seconds():.0f} s: give more --decisions or --seconds, or choose another --run"
            )

    def _refuse_nothing(self) -> None:
        if self.meter.decisions == self.meter.start:
            raise Failure(
                f"nothing was learned within --seconds {self.config.seconds:g} "
                f"({self._waiting(first=True)}): give more --seconds, or fewer --rows or --steps"
            )

    # ---- workers

    def _make_pool(self, layout: Layout, start: int) -> Pool:
        log = str(self.run.folder / LOG)
        return make_pool(
            self.config, self.game, self.learner.net, layout, self.vector, start, log, self.run.event
        )

    def _chosen(self, layout: Layout, start: int) -> Layout:
        """Where inference runs, measured if that is left to us."""
        if self.config.inference != "auto" or layout.pool != "central" or self.config.sync:
            return layout
        self.audience.status("measuring whether inference is faster beside the learner or in the workers")
        return measured_layout(
            self.config, self.game, layout, self.learner, lambda one: self._make_pool(one, start)
        )

    def _resize(self, metrics: dict[str, Any]) -> None:
        if self.sizer is None:
            return
        room = self.meter.room(metrics["cpu/all"])
        workers, why = self.sizer.advise(**room)
        if why:
            self.pool.resize(workers)
            self.run.event("workers", count=workers, reason=why)
        # A thread whose core somebody else uses makes all the others wait: it costs far more than it gives.
        threads = max(1, self.layout.threads - round(room["others"]))
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)
            self.run.event("threads", count=threads, reason=f"other programs use {room['others']:.1f} cores")
