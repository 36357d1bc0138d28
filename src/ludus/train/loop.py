"""The page everyone reads: receive, learn, publish, save, report."""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus import algos, games, machine, processes
from ludus.config import Config
from ludus.core import ranges, seeds
from ludus.core.errors import Failure, Stopped, Usage
from ludus.core.spec import Spec
from ludus.nets.net import flat_size, flatten
from ludus.store import checkpoint
from ludus.store import start as start_of_run
from ludus.store.checkpoint import Best, Checkpoint, Saver
from ludus.store.disk import writing
from ludus.store.outlets import Outlets
from ludus.store.run import LOG, Run, check_fit, keep_sizes
from ludus.store.start import Bare
from ludus.train import preload
from ludus.train.central import CentralPool
from ludus.train.layout import Layout, Sizer, filled, lay_out, local
from ludus.train.layout import check as check_layout
from ludus.train.league import League, parse_mix, refuse_random
from ludus.train.measure import measured_layout, sized
from ludus.train.meter import Meter
from ludus.train.pool import LocalPool, Pool, ProcessPool, make_context
from ludus.train.profile import Profile
from ludus.train.search_pool import SearchPool
from ludus.train.stop import PATIENCE_S, Stop
from ludus.train.weights import Past
from ludus.train.worker import Plan

MILESTONE_S = 5.0
"""Milestones come no closer than this, however fast the training is."""
LONG_S, STATUS_S = 5.0, 1.0
"""A wait for blocks that is long enough to be told of, and how often it is."""
Screen = Callable[[dict[str, Any]], None]
"""Shows the newest metrics; training never waits for it."""
Listener = Callable[[str, dict[str, Any]], None]
"""Is told of every event and its details, from any thread."""
Status = Callable[[str], None]
"""Is told what happens while there are no metrics to show."""
Evaluate = Callable[[int, int, Callable[[], dict[str, np.ndarray]], bool], dict[str, float]]
"""Decisions at the call before and now, the weights, whether the training ends: metrics, if there are new."""


def never_evaluate(before: int, decisions: int, weights: Callable[[], Any], last: bool) -> dict[str, float]:
    return {}


def train(
    config: Config, screen: Screen, listener: Listener = lambda what, details: None,
    status: Status = lambda text: None, evaluate: Evaluate = never_evaluate, *, overwrite: bool = False,
    weights: str = "",
) -> Path:  # fmt: skip
    """Train until the budget is spent, from the newest checkpoint if the run has one; the run's folder.

    overwrite: begin anew; the run that is in the folder is moved aside. weights: `best` or a milestone, to go
    on from if no checkpoint can be read
    """
    config = config if overwrite else keep_sizes(config)
    spec = spec_of(config)
    config = _sized(config, spec, status)
    layout = lay_out(config, spec)
    run = Run.open(config, overwrite)
    run.listeners.append(listener)
    outlets = training = None
    try:
        outlets = Outlets(run, config, new=not checkpoint.listed(run.folder))
        training = Training(config, spec, layout, run, screen, status, evaluate, weights)
        with Stop() as stop:
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
        self, config: Config, spec: Spec, layout: Layout, run: Run, screen: Screen, status: Status,
        evaluate: Evaluate, weights: str,
    ) -> None:  # fmt: skip
        """weights: to go on from if no checkpoint can be read"""
        self.config, self.run, self.screen, self.status = config, run, screen, status
        self.evaluate = evaluate
        self._waiting_since = self._status_at = 0.0
        self._given_up = False  # a stop or the clock ended a block or an update before its end
        torch.manual_seed(seeds.derive(config.seed, "learner"))
        torch.set_num_threads(layout.threads)
        self.learner = algos.find(config.algo).make_learner(config, spec, layout.device)
        net = self.learner.net
        self.vector = np.zeros(flat_size(net), np.float32)
        self.version, self.rolled_back, self.replaced = 0, False, 0
        found = start_of_run.find(run.folder, weights, self._skipped)
        kept = found if isinstance(found, Checkpoint) else None
        start = found.decisions if found else 0
        self.profile = Profile() if config.profile else None
        self.meter = Meter(spec, start, self.profile)
        if self.profile:
            self.learner.phase = self.meter.phase
        if kept:
            self._load_learner(kept)
        elif isinstance(found, Bare):
            self._load_weights(found)
        if found:
            self._refuse_finished()
        self.best = checkpoint.best_so_far(run.folder, kept.state["best"] if kept else -math.inf)
        flatten(net, self.vector)
        if config.inference == "auto" and layout.central and not config.sync:
            layout = measured_layout(config, layout, self.learner, lambda one: self._make_pool(one, start))
        self.layout = layout
        self.status(f"starting {_workers(max(1, layout.workers))}")
        self.pool = self._make_pool(layout, start)
        self.league = League(self.pool.past, config.decisions)
        if kept:
            self._load_players(kept)
        resizable = config.workers == "auto" and not config.sync
        self.sizer = Sizer(layout.workers, machine.usable_cores()) if resizable else None
        self.saver = Saver(run.folder, config.checkpoints, start, self._saved)
        self._saved_at, self._saved_decisions = time.monotonic(), start
        self._has_checkpoint = kept is not None
        self._evaluated = start
        run.accept()
        run.event(
            "resume" if found else "start", decisions=start, layout=layout.why, workers=layout.workers,
            device=layout.device,
        )  # fmt: skip
        if isinstance(found, Bare):
            self._tell_of_weights(found)

    def _refuse_finished(self) -> None:
        if self.meter.spent(self.config.decisions, self.config.seconds):
            raise Usage(
                f"{self.run.folder} is finished after {self.meter.decisions:,} decisions and "
                f"{self.meter.seconds():.0f} s: give more --decisions or --seconds, or choose another --run"
            )

    def run_to_end(self, stop: Stop) -> None:
        config, meter = self.config, self.meter
        try:
            if not self._has_checkpoint:
                self._save_first()
            meter.start_clock()
            while not meter.spent(config.decisions, config.seconds):
                if not self._update(stop):
                    break
            self._finish(stop)
        finally:
            self.pool.close()
            self.saver.wait()
            if self.profile and self.run.folder.exists():
                with writing(self.run.folder):
                    self.profile.write(self.run.folder)

    def _update(self, stop: Stop) -> bool:
        """Blocks in, better weights out; False if it is time to go."""
        config, meter, learner = self.config, self.meter, self.learner
        with meter.phase("waiting for workers"):
            self._waiting_since = time.monotonic()
            deliveries = self.pool.receive(lambda: self._give_up_waiting(stop))
        if not deliveries:
            return False
        with meter.phase("learning"):
            learner.cancelled = lambda: self._overdue(stop)
            learner.progress = meter.progress(self.config.decisions, self.config.seconds)
            # With another temperature than 1, not even the newest weights play the learner's policy.
            off_policy = config.temperature_spread > 0 or any(
                delivery.version < self.version for delivery in deliveries
            )
            losses = learner.learn([delivery.block for delivery in deliveries], off_policy)
        if self.config.sync and self._given_up:
            return False  # half an update: the last checkpoint is what can be gone on from exactly
        if not all(math.isfinite(value) for value in losses.values()):
            self._roll_back()
            self.pool.release(deliveries)
            return True
        with meter.phase("publishing"):
            self._publish()
            meter.add(deliveries, self.version)
            self.league.add(deliveries, self.vector, self.version, meter.decisions)
        spent = meter.spent(self.config.decisions, self.config.seconds)
        if spent or self.config.sync or meter.due(self.config.log_s):
            with meter.phase("evaluating"):
                losses |= self._evaluate(spent)
            with meter.phase("reporting"):
                self._report(losses)
        if spent or stop.asked or self._save_due():
            with meter.phase("saving"):
                self._save()
        self.pool.release(deliveries)  # only now: workers must not meet a league that is changing
        return not stop.asked

    def _overdue(self, stop: Stop) -> bool:
        """Whether it is too late to wait for anything, after a stop or the end of the time."""
        late = self.meter.seconds() - self.config.seconds if self.config.seconds else 0.0
        self._given_up = stop.overdue() or late > PATIENCE_S
        return self._given_up

    def _give_up_waiting(self, stop: Stop) -> bool:
        """Asked by the pool again and again while it waits for blocks."""
        self._tell_of_replaced()
        now = time.monotonic()
        first = self.meter.decisions == self.meter.start
        if now - self._status_at >= STATUS_S and (first or now - self._waiting_since >= LONG_S):
            self._status_at = now
            self.status(self._waiting(first))
        return self._overdue(stop)

    def _waiting(self, first: bool) -> str:
        progress, workers = self.pool.progress(), _workers(self.pool.workers)
        if progress is None:
            return f"starting {workers}"
        return f"{workers}, {'first ' if first else ''}block {100 * progress:.0f} %"

    def _tell_of_replaced(self) -> dict[str, Any]:
        health = self.pool.health()
        if health["replaced"] > self.replaced:
            self.run.event("worker replaced", count=health["replaced"], reason=health["reason"])
            self.replaced = health["replaced"]
        return health

    def _publish(self) -> None:
        self.version += 1
        flatten(self.learner.net, self.vector)
        self.pool.publish(self.vector, self.version, self.learner.use_teacher)

    def _evaluate(self, last: bool) -> dict[str, float]:
        """New results of the evaluation, if there are any. It can fail without harm to the training."""
        before, self._evaluated = self._evaluated, self.meter.decisions
        try:
            found = self.evaluate(before, self.meter.decisions, self._weights, last)
        except Exception as error:
            self.evaluate = never_evaluate
            self.run.event("evaluation failed", reason=f"{type(error).__name__}: {error}")
            return {}
        if found:
            self.run.event("evaluation", **found)
        return found

    def _weights(self) -> dict[str, np.ndarray]:
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
            metrics |= self.meter.cost(self.config.price_per_hour)
        self.run.metrics(metrics)
        self.screen(metrics)
        self._resize(metrics)

    def _resize(self, metrics: dict[str, Any]) -> None:
        if self.sizer is None or not isinstance(self.pool, ProcessPool):
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

    # ---- saving and going on

    def _save_due(self) -> bool:
        schedule = self.config.checkpoints
        by_time = schedule.every_s and time.monotonic() - self._saved_at >= schedule.every_s
        made = self.meter.decisions - self._saved_decisions
        by_count = schedule.every_decisions and made >= schedule.every_decisions
        passed = (
            schedule.milestone and made >= schedule.milestone - self._saved_decisions % schedule.milestone
        )
        by_milestone = passed and time.monotonic() - self._saved_at >= MILESTONE_S
        return bool(by_count or ((by_time or by_milestone) and not self.saver.busy))

    def _save_first(self) -> None:
        """Something to fall back to from the first moment, and proof that the folder can be written to."""
        self._save(first=True)
        self.saver.wait()
        if self.saver.failed:
            self.run.withdraw()
            raise Failure(
                f"can't save the first checkpoint in {self.run.folder}: {self.saver.failed}: "
                "free some space there, or choose another folder with --run"
            )

    def _save(self, first: bool = False) -> None:
        """first: nothing was learned yet, so it can't be the best"""
        self.run.check()
        self.saver.wait()  # only then it is known whether the best before was saved
        weights = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in self.learner.net.state_dict().items()
        }
        measure, decisions = self.meter.measure(self.league.metrics()), self.meter.decisions
        best = None
        if not first and measure is not None and measure > self.best:
            best = Best(decisions, measure, self.meter.measured)
        state = {**self._state(), "best": best.measure if best else self.best}
        self.saver.save(Checkpoint(decisions, weights, state), best)
        self._saved_at, self._saved_decisions = time.monotonic(), self.meter.decisions

    def _state(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state_dict(),
            "meter": self.meter.state_dict(),
            "league": self.league.state_dict(),
            "version": self.version,
            "rolled_back": self.rolled_back,
            "rows": self.config.rows,
            "opponents": self.config.opponents,
            "workers": self.pool.snapshot(),
        }

    def _load_learner(self, kept: Checkpoint) -> None:
        try:
            self.learner.net.load_state_dict(kept.weights)
            self.learner.load_state_dict(kept.state["learner"])
        except (RuntimeError, ValueError, KeyError) as error:
            why = str(error).strip().splitlines()[-1].strip()
            raise Failure(
                f"{self.run.folder} was trained with another version of its game or network ({why}): "
                "choose another folder with --run"
            ) from None
        self.meter.load_state_dict(kept.state["meter"])
        self.version, self.rolled_back = kept.state["version"], kept.state["rolled_back"]

    def _load_weights(self, bare: Bare) -> None:
        check_fit(self.run.folder, bare.weights, self.learner.net.state_dict())
        tensors = {name: torch.from_numpy(array.copy()) for name, array in bare.weights.items()}
        self.learner.net.load_state_dict(tensors)
        self.meter.load_state_dict({**bare.meter, "decisions": bare.decisions})

    def _tell_of_weights(self, bare: Bare) -> None:
        self.run.forget_after(bare.decisions)
        which = "best" if bare.name == checkpoint.BEST else f"milestone {bare.decisions:,}"
        text = f"there is no checkpoint: going on from the weights of its {which} with a new optimizer"
        if math.isinf(self.best) and self.best > 0:
            text += (
                f"; nobody knows how good {checkpoint.best_file(self.run.folder).name} is, so it stays as it "
                "is and no new best is kept: move it away to have one"
            )
        self.run.event("weights only", decisions=bare.decisions, reason=text)

    def _load_players(self, kept: Checkpoint) -> None:
        self.run.forget_after(kept.decisions)
        self.league.load_state_dict(kept.state["league"])
        self.pool.publish(self.vector, self.version, self.learner.use_teacher)
        snapshots = kept.state["workers"]
        opponents = kept.state.get("opponents", self.config.opponents)
        same_games = kept.state["rows"] == self.config.rows and opponents == self.config.opponents
        if snapshots and same_games:
            self.pool.restore(snapshots)
        games = sum(map(bool, snapshots)) or len(snapshots)  # those of environments can't be kept
        if self.config.sync and kept.decisions and games != self.pool.workers:
            self.run.event("not exact", reason=f"{games} workers' games of {self.pool.workers} were kept")

    def _roll_back(self) -> None:
        """The loss is not a number: back to the last good weights, once, with a smaller learning rate."""
        self.saver.wait()
        kept = checkpoint.newest(self.run.folder, self._skipped)
        if self.rolled_back or kept is None:
            raise Failure(
                f"the loss is not a number at {self.meter.decisions:,} decisions, again after a smaller "
                f"learning rate; {self.run.folder} keeps the last good checkpoint: "
                f"lower --{self.config.algo}.learning-rate or --{self.config.algo}.max-grad-norm"
            )
        self.run.event("rolled back", reason="the loss is not a number", decisions=kept.decisions)
        newest = self.version
        self._load_learner(kept)
        self.version = newest  # versions only rise: blocks of the discarded weights are still on their way
        self.league.load_state_dict(kept.state["league"])
        self.run.forget_after(kept.decisions)
        self.learner.rate_scale *= 0.5
        self.rolled_back = True
        self._publish()

    def _saved(self, what: str, details: dict[str, Any]) -> None:
        if what == "best":
            self.best = details["measure"]
        self.run.event(what, **details)

    def _skipped(self, text: str) -> None:
        self.run.event("checkpoint skipped", reason=text)

    def _finish(self, stop: Stop) -> None:
        if not self.config.sync and self._saved_decisions < self.meter.decisions:
            self._save()
        self.saver.wait()
        self.run.check()
        if self.saver.failed:
            raise Failure(
                f"the end of the training could not be saved in {self.run.folder}: {self.saver.failed}: "
                f"free some space there, then go on from its newest checkpoint with "
                f"`ludus resume {self.run.folder}`"
            )
        if not stop.asked:
            self._refuse_nothing()
            self.run.event("end", decisions=self.meter.decisions)
            return
        self.run.event("stopped", decisions=self._saved_decisions, signal=stop.asked)
        raise Stopped(
            f"stopped at {self._saved_decisions:,} decisions; go on with `ludus resume {self.run.folder}`"
        )

    def _refuse_nothing(self) -> None:
        if self.meter.decisions == self.meter.start:
            raise Failure(
                f"nothing was learned within --seconds {self.config.seconds:g} "
                f"({self._waiting(first=True)}): give more --seconds, or fewer --rows or --steps"
            )

    # ---- who plays

    def _make_pool(self, layout: Layout, start: int) -> Pool:
        return make_pool(
            self.config, self.learner.net, layout, self.vector, start, str(self.run.folder / LOG)
        )


def spec_of(config: Config) -> Spec:
    """The game's, under the name that it was opened by, once it can be trained as configured."""
    ranges.check(config)
    check_layout(config)
    parse_mix(config.opponents, config.game)
    if ":" in config.game:
        before = processes.children()
        table = games.table(config.game, 1, **config.switches)
        table.close()
        processes.kill(processes.children() - before)  # what it has started, and left
        spec, rules = table.spec, None
    else:
        rules = games.rules(config.game, **config.switches)
        spec = dataclasses.replace(rules.spec, game=config.game)
    if "random" in parse_mix(config.opponents, config.game) and spec.seats > 1:
        refuse_random(spec)
    algos.find(config.algo).refuse(filled(config), spec)
    if rules is not None:
        games.warm_up(config.game, rules, _bots(config))
    return spec


def _sized(config: Config, spec: Spec, status: Status) -> Config:
    """With rows and steps, which are measured if they are left to us."""

    def tried(config: Config) -> Pool:
        status(f"measuring how fast {config.game} is")
        net = algos.find(config.algo).make_learner(config, spec, "cpu").net
        vector = np.zeros(flat_size(net), np.float32)
        flatten(net, vector)
        one = dataclasses.replace(config, workers="1", sync=True)
        return make_pool(one, net, local(one, spec, "cpu"), vector)

    return sized(config, tried)


def _workers(count: int) -> str:
    return f"{count} worker{'s' if count > 1 else ''}"


def _bots(config: Config) -> set[str]:
    """Everybody whose code must be there before the first game."""
    mix = parse_mix(config.opponents, config.game)
    return {*mix, *algos.find(config.algo).bots(config)} - {"self", "past"}


@processes.ended_on_error()
def make_pool(
    config: Config, net: torch.nn.Module, layout: Layout, vector: np.ndarray, start: int = 0, log: str = ""
) -> Pool:
    """start: decisions made before, so that games are not played again. log: for what workers print"""
    searching = config.algo == "alphazero"
    plan = Plan(
        config.game, config.switches, config.net, config.rows, config.steps, config.opponents,
        seeds.derive(config.seed, "play", start) >> 1, max(layout.workers, 1),
        teacher="" if searching else config.ppo.teacher,
        alphazero=config.alphazero if searching else None, temperature_spread=config.temperature_spread,
    )  # fmt: skip
    preload.announce(config.game, config.switches, sorted(_bots(config)))
    context = make_context(config.start_method, torch_too=searching)
    past = Past(context, len(vector))
    past.write(0, vector, 0)  # until there is another, the past self is the one we begin as
    columns = algos.find(config.algo).columns(config, net.spec)  # type: ignore[arg-type]
    if layout.central and searching:
        return SearchPool(plan, columns, net, past, layout.workers, layout.overlap)  # type: ignore[arg-type]
    if layout.central:
        return CentralPool(plan, columns, net, past, layout.workers, context, log)  # type: ignore[arg-type]
    if layout.workers == 0:
        return LocalPool(plan, columns, vector, past)
    per_block = config.rows * config.steps
    least = -(-config.min_batch // per_block) if config.min_batch and not config.sync else 10**6
    most = layout.workers if config.sync else max(layout.workers, 2 * machine.usable_cores())
    return ProcessPool(
        plan, columns, vector, past, context,
        slots=2 if layout.overlap else 1, min_blocks=least, most=most, log=log,
    )  # fmt: skip
