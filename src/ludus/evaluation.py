"""Evaluation during a training: how the learner's weights do against named opponents, at a bounded cost.

Games are played step by step between the learner's updates, with seeds of their own: the training's random
streams never notice. Native games are in the learner's process. Environments and the like may hang or die, so
they have a process of their own; with `--workers 0`, which is for debuggers, they are in the learner's too.
The clock decides how many steps a pause may take; with `--sync`, where equal runs give equal metrics, it has
no say and each evaluation is played to its end.
"""

import time
from collections.abc import Callable

import numpy as np

from ludus import algos, games, match, processes
from ludus.agent import Agent, TableAgent
from ludus.algos import Weights
from ludus.config import Config
from ludus.core import seeds
from ludus.core.duel import Duel
from ludus.core.errors import Failure, Usage
from ludus.core.game import RANDOM
from ludus.core.report import Cancelled
from ludus.core.rules import Bot
from ludus.core.table import Table
from ludus.match import Steps
from ludus.search.bot import SEARCH, bot_names, make_bot, warm_up
from ludus.store.policy import load_policy
from ludus.store.run import LOG, folder_of
from ludus.training.build import announce
from ludus.training.faults import TRIES
from ludus.training.loop import Evaluation
from ludus.training.pools import never
from ludus.training.remote_table import RemoteTable

SHARE = 0.03
"""Of the training's time, at most."""
LAST_S = 3.0
"""How long the last evaluation of a training may take in any case."""
TIMES = 20
"""Evaluations in a training. Default."""
GAMES, FEW_GAMES = 200, 40
"""Against each opponent. Default; few for agents that search."""
SIMULATIONS = "16"
"""Of agents that search."""
CHUNK, SMALL_CHUNK, ROWS = 100, 4, 16
"""Deals side by side; small for agents that search. Environments side by side."""
ALONE = "alone"
"""The opponent of those who have a game to themselves."""


class Evaluator:
    """Call it whenever the training pauses."""

    def __init__(self, config: Config, last_s: float = LAST_S) -> None:
        """last_s: how long the training's last evaluation may take in any case"""
        self.config, self._patience_s = config, last_s
        self.every = _every(config)
        self.searches = algos.find(config.algo).searches
        self.games = config.eval_games or (FEW_GAMES if self.searches else GAMES)
        self.game = games.open(config.game, **config.switches).for_evaluation()
        self._table: Table | None = None
        self._family = processes.Family()
        self.cancelled: Callable[[], bool] = never
        self.opponents = self._check() if self.every else []
        self._bots: dict[str, Bot] = {}
        self._job: Steps[Evaluation] | None = None
        self._begun = time.monotonic()
        self._spent, self._last_s, self._last = 0.0, 0.0, -1
        self._deadline, self._ending = float("inf"), False

    @property
    def decides(self) -> bool:
        return bool(self.opponents)

    def __call__(
        self, before: int, decisions: int, weights: Callable[[], Weights], last: bool
    ) -> Evaluation | None:
        """Play on, if it is time to; the result, once an evaluation is complete.

        before: decisions at the call before. last: the training ends here
        """
        if not self.opponents:
            return None
        began = time.monotonic()
        if self._last < 0:
            self._begun, self._last, self._last_s = began, before, began
            if self.game.rules is None:  # now: its process starts while the training goes on
                self._table = self._open_table()
        if last or (self._job is None and self._due(before, decisions, began)):
            self._job = self._evaluate(weights(), decisions)
            self._last, self._last_s = decisions, began
        if self._job is None:
            return None
        room = SHARE * (began - self._begun) - self._spent
        self._deadline, self._ending = began + (max(room, self._patience_s) if last else room), last
        try:
            return self._play_on()
        finally:
            self._spent += time.monotonic() - began

    def close(self) -> None:
        try:
            if self._table is not None:
                self._table.close()
        finally:
            self._family.end()

    def _due(self, before: int, decisions: int, now: float) -> bool:
        if self.config.sync:
            return decisions // self.every > before // self.every
        seconds = self.config.seconds / TIMES if self.config.eval_every == "auto" else 0.0
        return decisions - self._last >= self.every or bool(seconds and now - self._last_s >= seconds)

    def _play_on(self) -> Evaluation | None:
        """Until the evaluation is complete or its time is up."""
        import torch

        assert self._job is not None
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # on busy cores, threads that wait for each other are 20 times slower
        try:
            with self._family.joined():
                while not self._late():
                    next(self._job)
                    self._refuse_failing()
        except StopIteration as end:
            self._job = None
            return end.value
        except Cancelled:
            self._job = None
        finally:
            torch.set_num_threads(threads)
        return None

    def _late(self, ahead_s: float = 0.0) -> bool:
        return not self.config.sync and time.monotonic() + ahead_s >= self._deadline

    def _is_cancelled(self) -> bool:
        """Asked while a step is waited for. Nobody comes back for what the training's end leaves undone."""
        return self.cancelled() or (self._ending and self._late())

    def _refuse_failing(self) -> None:
        """Games that are cut off don't count, so with a table that fails again and again this never ends."""
        if isinstance(self._table, RemoteTable) and self._table.replaced > TRIES:
            raise Failure(f"{self._table.reason} ({self._table.replaced} times)")

    def _open_table(self) -> Table:
        config = self.config
        if config.workers == "0":
            with self._family.joined():
                return self.game.table(ROWS)
        context = processes.make_context(config.start_method, announce(config, self.game))
        table = RemoteTable(context, self.game, ROWS, str(folder_of(config) / LOG))
        table.cancelled = self._is_cancelled
        return table

    def _evaluate(self, weights: Weights, decisions: int) -> Steps[Evaluation]:
        duels = yield from (self._table_duels if self.game.rules is None else self._duels)(weights)
        unit, per_game = self.game.unit
        found: dict[str, float] = {"eval/decisions": decisions}
        for duel in duels:
            place = f"eval/{duel.opponent}"
            found |= {f"{place}/score": duel.mean / per_game, f"{place}/score_ci": duel.margin / per_game}
            if duel.opponent != ALONE:
                found |= {f"{place}/win": float(duel.won.mean()), f"{place}/win_ci": duel.win_margin}
            found[f"{place}/games"] = duel.points.size
        first = duels[0]  # the strongest opponent tells most
        return Evaluation(
            found, decisions, first.mean / per_game, f"points/{unit} against {first.opponent}", weights
        )

    def _duels(self, weights: Weights) -> Steps[list[Duel]]:
        """Against each bot, chunk by chunk; every evaluation has the same deals."""
        game = self.game.native("evaluated")
        think = SIMULATIONS if self.searches else ""
        agent = Agent(game, self.config, weights, think, in_torch=True)
        deals, size = max(2, -(-self.games // game.spec.seats)), SMALL_CHUNK if self.searches else CHUNK
        opening = match.opening_of(game, None)
        found: dict[str, list[match.Results]] = {name: [] for name in self.opponents}
        assert agent.bot is not None
        for number, start in enumerate(range(0, deals, size)):
            began = time.monotonic()
            seed = seeds.derive(self.config.seed, "evaluation", number)
            count = max(2, min(size, deals - start))
            for name in self.opponents:
                if name not in self._bots:
                    self._bots[name] = make_bot(game, name)
                steps = match.mirrored_steps(game.rules, agent.bot, self._bots[name], count, seed, opening)
                found[name].append((yield from steps))
            if self._ending and self._late(time.monotonic() - began):
                break  # nobody will come back for the rest
        return [
            Duel("", name, *(np.concatenate(part) for part in zip(*parts, strict=True)))  # type: ignore[arg-type]
            for name, parts in found.items()
        ]

    def _table_duels(self, weights: Weights) -> Steps[list[Duel]]:
        """At a game that is not native: against its scripted players, or alone."""
        assert self._table is not None
        policy = load_policy(self.game, self.config, weights, in_torch=True)
        agent = TableAgent(self._table, self.config.net, policy)
        seed = seeds.derive(self.config.seed, "evaluation")
        found = []
        for name in self.opponents:
            steps = match.table_steps(self.game, self._table, agent, name, self.games, seed, "")
            found.append((yield from steps))
        return found

    def _check(self) -> list[str]:
        """Who the opponents are, once it is clear that they can play; their code is compiled now."""
        game, told = self.game, [n.strip() for n in self.config.eval_against.split(",") if n.strip()]
        known = bot_names(game) if game.spec.seats > 1 else [ALONE]
        for name in told:
            if name not in known:
                raise Usage(f"eval_against is {name!r}, but {game.name} has {', '.join(known)}")
        if game.spec.seats == 1:
            # Alone in its game the learning policy's own score tells, and costs nothing.
            return told if game.rules is None else []
        own = [name for name in known if name not in (RANDOM, SEARCH)][:1]
        names = list(dict.fromkeys(told or [*own, RANDOM]))
        warm_up(game, names)
        return names


def _every(config: Config) -> int:
    """Decisions between two evaluations."""
    return max(1, config.decisions // TIMES) if config.eval_every == "auto" else int(config.eval_every)
