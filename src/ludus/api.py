"""What Python users call: `ludus.train` and `ludus.evaluate`. `ludus.load` is in `agent.py`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ludus import match
from ludus.agent import trained_game
from ludus.config import overlay, resolve
from ludus.core.duel import Duel
from ludus.evaluation import Evaluator
from ludus.search.bot import bot_names, warm_up
from ludus.store.player import full_name
from ludus.store.run import folder_of, read_config, read_weights
from ludus.training.loop import Audience
from ludus.training.loop import train as run_training

OnReport = Callable[[dict[str, Any]], bool | None]
OnCheckpoint = Callable[[Path, int], None]


class _Callbacks(Audience):
    def __init__(self, folder: Path, on_report: OnReport | None, on_checkpoint: OnCheckpoint | None) -> None:
        self.folder, self.on_report, self.on_checkpoint = folder, on_report, on_checkpoint

    def report(self, metrics: dict[str, Any]) -> bool | None:
        return self.on_report(metrics) if self.on_report else None

    def event(self, what: str, details: dict[str, Any]) -> None:
        if what == "checkpoint" and self.on_checkpoint:
            self.on_checkpoint(self.folder, details["decisions"])


def train(
    game: str,
    *,
    preset: str = "default",
    algo: str | None = None,
    run: str | Path = "",
    on_report: OnReport | None = None,
    on_checkpoint: OnCheckpoint | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Path:
    """Train an agent, or go on with one that is in the folder already. Gives the run's folder.

    game: as on the command line. settings: everything that `ludus train GAME --help` lists, groups as
    dictionaries: `train("ofc", decisions=100_000, ppo={"minibatch": 512}, switches={"seats": 2})`.
    on_report: called with every line of metrics; if it returns True, the training ends there.
    on_checkpoint: called with the folder and the decisions of every checkpoint, from another thread.
    """
    config = resolve(game, preset, algo=algo)
    config = overlay(config, {**settings, "run": str(run)}, "ludus.train")
    evaluator = Evaluator(config)
    try:
        callbacks = _Callbacks(folder_of(config), on_report, on_checkpoint)
        return run_training(config, callbacks, evaluator, overwrite=overwrite)
    finally:
        evaluator.close()


def evaluate(
    run: str | Path,
    against: str | Sequence[str] = (),
    *,
    games: int = 1000,
    checkpoint: str = "",
    think: str = "",
    seed: int = 0,
) -> list[Duel]:
    """Matches of a run's agent: results with confidence intervals, one `Duel` for each opponent.

    against: bots of its game, `champion`, or other runs' folders. Default: all bots. Other arguments as in
    `ludus eval`
    """
    folder = Path(run)
    config = read_config(folder)
    game = trained_game(config).for_evaluation()
    names = [against] if isinstance(against, str) else list(against or bot_names(game)[::-1])
    if game.rules is None:
        weights = read_weights(folder, checkpoint)
        return [match.table_duel(game, config, weights, name, games, seed, str(folder)) for name in names]
    warm_up(game, set(names) & set(bot_names(game)))
    agent = full_name(str(folder), checkpoint, think)
    deals = -(-games // game.spec.seats)
    opponents = [match.as_far(game, name, think) for name in names]
    return [match.duel(game, agent, name, deals, seed) for name in opponents]
