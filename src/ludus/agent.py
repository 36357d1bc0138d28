"""A trained policy, out of its run: to act on observations, to play native games, to sit at any table."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ludus import algos, games, machine
from ludus.algos import Policy, Weights
from ludus.config import Config
from ludus.core import seeds
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.rules import Bot, States, Streams
from ludus.core.table import Table, Turn
from ludus.core.think import NO_LOOK_AHEAD
from ludus.nets import Memory, NetConfig
from ludus.store.policy import load_policy
from ludus.store.run import read_config, read_weights


class Agent:
    """The agent of a run: `ludus.load("runs/ofc")`."""

    def __init__(
        self, game: Game, config: Config, weights: Weights, think: str = "", source: str = "the run",
        in_torch: bool = False,
    ) -> None:  # fmt: skip
        """think: how far it looks ahead, as `400`, or how long, as `100ms`; `0`: not at all. source: for
        errors. in_torch: as in `Algorithm.make_policy`"""
        self.game, self.config, self.spec = game, config, game.spec
        self.policy = load_policy(game, config, weights, source, in_torch)
        self.bot: Bot | None = None
        if game.rules is not None:
            self.bot = algos.find(config.algo).make_bot(game.rules, config, self.policy, think, source)
        elif think:
            raise Usage(f"{game.name} can't be looked ahead in: leave out {think}")
        self._memory: Memory | None = None

    def act(self, obs: Any, legal: np.ndarray | None = None, ended: np.ndarray | None = None) -> np.ndarray:
        """The policy's first choice for each of N observations, int32 [N], or float32 [N, *shape] of vectors.

        obs: [N, *obs_shape], or one observation as the game gives it, perhaps a dictionary. legal: bool
        [N, A]. ended: bool [N], rows where a new game begins, which an agent with memory must be told
        """
        if one := not isinstance(obs, np.ndarray) or obs.shape == self.spec.obs_shape:
            obs, legal = self.game.encode(obs)[None], None if legal is None else np.asarray(legal)[None]
        logits = self._logits(np.ascontiguousarray(obs), ended)
        if self.spec.box is not None:
            actions = logits.reshape(len(obs), *self.spec.box[0].shape)
        else:
            logits = logits if legal is None else np.where(legal, logits, -np.inf)
            actions = logits.argmax(1).astype(np.int32)
        return actions[0] if one else actions

    def choose(self, states: States, rng: Streams | None = None) -> np.ndarray:
        """An action in each position of a native game, int32 [N]; looks ahead if it was told to."""
        if self.bot is None:
            raise Usage(f"{self.game.name} has no positions to choose in: give its observations to act()")
        return self.bot.choose(states, seeds.rows(0, len(states)) if rng is None else rng)

    def _logits(self, obs: np.ndarray, ended: np.ndarray | None) -> np.ndarray:
        if not self.config.net.memory:
            return self.policy.logits(obs)
        if self._memory is None or len(self._memory.state) != len(obs):
            self._memory = Memory(self.config.net, len(obs), 1)
        elif ended is not None:
            self._memory.forget(np.asarray(ended))
        rows, seat = np.arange(len(obs)), np.zeros(len(obs), np.int64)
        logits, _, after = self.policy.look(obs, self._memory.at(rows, seat))
        assert after is not None
        self._memory.put(rows, seat, after)
        return logits


def load(run: str | Path, checkpoint: str = "", think: str = "", **switches: Any) -> Agent:
    """The agent of a run, with the rules it was trained on, played in full.

    checkpoint: `best`, or a milestone by its decisions. Default: the newest. think: as in `Agent`.
    switches: rules to change, which its network must fit
    """
    folder = Path(run)
    config = read_config(folder)
    game = trained_game(config).for_evaluation()
    if switches:
        game = games.open(config.game, **{**game.switches, **switches})
    return Agent(game, config, read_weights(folder, checkpoint), think, str(folder))


def trained_game(config: Config) -> Game:
    """The game under the rules that a run was trained on."""
    return games.open(config.game, **config.switches)


def run_bot(game: Game, folder: Path, think: str = "", at: str = "", source: str = "") -> Bot:
    """The agent of a run at a native game, ready to move. at: which of its weights. source: for errors"""
    source = source or str(folder)
    config, weights = read_config(folder), read_weights(folder, at)
    if algos.find(config.algo).searches and think != NO_LOOK_AHEAD:
        import torch

        torch.set_num_threads(1)  # matches run on all cores already
        for one in ("16", "1ms"):  # leaves one by one, and together
            first = Agent(game, config, weights, one, source)
            for _ in range(2):  # what comes first compiles: not in the time for a move; nor to keep a tree
                first.choose(*_first_position(game))
    agent = Agent(game, config, weights, think, source)
    assert agent.bot is not None
    return agent.bot


def use_all_cores() -> None:
    """Before a single game: its network has nobody to share the cores with."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(machine.usable_cores())


def _first_position(game: Game) -> tuple[States, Streams]:
    rules, streams = game.native("played").rules, seeds.rows(0, 1)
    states = rules.blank(1)
    rules.deal(states, streams)
    return states, streams


def run_player(game: Game, folder: Path, at: str, table: Table) -> "TableAgent":
    """The agent of a run at a table. at: which of its weights"""
    config = read_config(folder)
    return TableAgent(table, config.net, load_policy(game, config, read_weights(folder, at), str(folder)))


class TableAgent:
    """A policy at any table, always with its first choice; remembers if it has a memory."""

    def __init__(self, table: Table, net: NetConfig, policy: Policy) -> None:
        self.policy = policy
        self.box = table.spec.box
        self.memory = Memory(net, table.rows, table.spec.seats) if net.memory else None

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        if self.memory is None:
            logits = self.policy.logits(turn.obs[rows])
        else:
            logits, _, after = self.policy.look(turn.obs[rows], self.memory.at(rows, turn.seat[rows]))
            assert after is not None
            self.memory.put(rows, turn.seat[rows], after)
        if self.box is not None:
            return logits.reshape(len(rows), *self.box[0].shape)
        return np.where(turn.legal[rows], logits, -np.inf).argmax(1).astype(np.int32)

    def forget(self, ended: np.ndarray) -> None:
        if self.memory:
            self.memory.forget(ended)
