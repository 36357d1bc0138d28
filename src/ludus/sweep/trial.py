"""One trial: an ordinary training that tells how far it is and how good, and ends when it is told to."""

from collections.abc import Callable, Iterator
from typing import Any

from ludus.config import Config
from ludus.evaluation import Evaluator
from ludus.store.reader import RunReader
from ludus.store.run import folder_of, is_run
from ludus.sweep.places import Reading
from ludus.training.loop import Audience, train

LAST_S = 60.0
"""How long the last evaluation may take: a trial that was never evaluated can't be compared."""
Tell = Callable[[Reading], None]


class Reporter(Audience):
    def __init__(self, config: Config, opponent: str, tell: Tell, stop: Callable[[], bool]) -> None:
        self.config, self.opponent, self.tell, self.stop = config, opponent, tell, stop

    def report(self, metrics: dict[str, Any]) -> bool:
        self.tell(reading(self.config, self.opponent, metrics))
        return self.stop()


def reading(config: Config, opponent: str, metrics: dict[str, Any]) -> Reading:
    name = f"eval/{opponent}/score" if opponent else "measure"
    by_time = metrics["seconds"] / config.seconds if config.seconds else 0.0
    share = min(1.0, max(metrics["decisions"] / config.decisions, by_time))
    return Reading(share, metrics.get(name), metrics["decisions"], metrics["seconds"])


def run_trial(config: Config, tell: Tell, stop: Callable[[], bool]) -> None:
    """Train to the end of the budget, from where the run stands. stop: asked at every line of metrics"""
    evaluator = Evaluator(config, LAST_S)
    try:
        opponent = evaluator.opponents[0] if evaluator.decides else ""
        share = 0.0
        for old in _history(config, opponent):
            tell(old)
            share = old.share
        if share < 1 and not stop():
            train(config, Reporter(config, opponent, tell, stop), evaluator)
    finally:
        evaluator.close()


def _history(config: Config, opponent: str) -> Iterator[Reading]:
    """Of a trial that was cut off."""
    folder = folder_of(config)
    if is_run(folder):
        run = RunReader(folder)
        kept = max(run.checkpoints(), default=0)  # what came later is trained again
        for metrics in run.metrics():
            if metrics["decisions"] <= kept:
                yield reading(config, opponent, metrics)
