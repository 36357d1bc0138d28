"""The study: what was tried, how it went, and what is tried next. Optuna's journal in the sweep's folder."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from ludus.config import Config, plain
from ludus.core.errors import Failure, Usage
from ludus.store.run import FREE
from ludus.sweep.space import Setting, alone, applied

JOURNAL = "study.jsonl"
STEPS = 20
"""Parts of a trial after which it is compared with the others."""
LAST = 3
"""Readings whose mean is a trial's score: one evaluation alone is noisy."""
STARTUP, WARMUP, COMPARED = 4, 5, 3
"""No trial is pruned before so many are complete, nor in its first steps, nor by fewer others at its step."""


class Trial:
    """A trial while it is trained."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial, config: Config) -> None:
        self.number, self.config = trial.number, config
        self.share = self.seconds = 0.0
        self.decisions = 0
        self.pruned = False
        self._study, self._trial = study, trial
        self._scores: list[float] = []
        self._step = max(study.trials[trial.number].intermediate_values, default=0)

    def note(self, share: float, score: float | None, decisions: int, seconds: float) -> bool:
        """How far the training is and how good; whether it is hopeless, so that it should end."""
        self.share, self.decisions, self.seconds = share, decisions, seconds
        if score is None:
            return self.pruned
        self._scores.append(score)
        step = int(STEPS * share)
        if step > self._step:
            self._step = step
            self._trial.report(self.score, step)
            self.pruned = self.pruned or (share < 1 and self._trial.should_prune())
        return self.pruned

    @property
    def score(self) -> float:
        return statistics.mean(self._scores[-LAST:])

    def finish(self) -> str:
        """What came of it."""
        self._keep()
        if not self._scores:
            return self.fail("it was never evaluated: give it more --decisions")
        state = TrialState.PRUNED if self.pruned else TrialState.COMPLETE
        self._study.tell(self._trial, None if self.pruned else self.score, state)
        return f"{'pruned' if self.pruned else 'done'} at {self.score:+.3f}"

    def fail(self, why: str) -> str:
        self._keep()
        self._trial.set_user_attr("failed", why)
        self._study.tell(self._trial, state=TrialState.FAIL)
        return f"failed: {why}"

    def _keep(self) -> None:
        self._trial.set_user_attr("seconds", self.seconds)
        self._trial.set_user_attr("decisions", self.decisions)


class Study:
    def __init__(self, folder: Path, settings: Sequence[Setting], base: Config) -> None:
        """A new one, or the one that is in the folder if it searches the same."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.folder, self.settings, self.base = folder, settings, base
        try:
            storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
            study = optuna.create_study(
                storage=storage, study_name="sweep", direction="maximize", load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(STARTUP, WARMUP, n_min_trials=COMPARED),
            )  # fmt: skip
        except (ValueError, KeyError) as error:
            raise Failure(
                f"{folder / JOURNAL} is damaged: {error}: choose another folder with --run"
            ) from None
        self.study = study
        study.sampler = optuna.samplers.TPESampler(seed=(base.seed + len(study.trials)) % 2**32)
        self._refuse_other()

    def next_trial(self, most: int, busy: set[int]) -> Trial | None:
        """One that was cut off before, else a new one while there are fewer than `most`."""
        for old in self.study.trials:
            if old.state == TrialState.RUNNING and old.number not in busy:
                return self._trial(optuna.Trial(self.study, old._trial_id))
        return self._trial(self.study.ask()) if len(self.study.trials) < most else None

    def _trial(self, trial: optuna.Trial) -> Trial:
        values = {setting.key: setting.suggest(trial) for setting in self.settings}
        return Trial(self.study, trial, self.config(trial.number, values))

    def config(self, number: int, values: dict[str, Any]) -> Config:
        return applied(alone(self.base), {"run": str(self.folder / f"trial-{number:03d}"), **values})

    # ---- what came of it

    @property
    def trials(self) -> list[FrozenTrial]:
        return self.study.trials

    @property
    def complete(self) -> list[FrozenTrial]:
        """The best first."""
        done = [trial for trial in self.study.trials if trial.state == TrialState.COMPLETE]
        return sorted(done, key=lambda trial: -(trial.value or 0.0))

    def values(self, trial: FrozenTrial) -> dict[str, Any]:
        return {setting.key: setting.value(trial.params[setting.key]) for setting in self.settings}

    def importance(self) -> dict[str, float]:
        """How much of what makes a good trial each setting explains; empty while too few are complete."""
        if len(self.complete) < 4:
            return {}
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return optuna.importance.get_param_importances(self.study, evaluator=evaluator)

    def _refuse_other(self) -> None:
        """Two commands must ask for the same search to go on in one folder."""
        free = {*FREE, "schema"}
        now = {name: value for name, value in plain(self.base).items() if name not in free}
        now["space"] = [[setting.key, setting.ends(), setting.log] for setting in self.settings]
        told = json.loads(json.dumps(now))
        before = self.study.user_attrs.get("asked")
        if before is None:
            return self.study.set_user_attr("asked", told)
        for name, value in told.items():
            if before.get(name) != value:
                raise Usage(
                    f"{self.folder} holds a sweep with {name} {before.get(name)}, not {value}: "
                    "choose another folder with --run"
                )
