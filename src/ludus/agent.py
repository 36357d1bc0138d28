"""A trained policy as a bot: plays any native game, and may look ahead with its own policy and value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ludus.config import Config
from ludus.core import seeds
from ludus.core.dice import next64, uniforms
from ludus.core.errors import Usage
from ludus.core.rules import Bot, Rules, States, Streams
from ludus.core.spec import Spec
from ludus.core.table import Table, Turn
from ludus.nets import Memory, NetConfig
from ludus.search.bot import SearchBot, parse_think
from ludus.store.run import check_fit, peek_config, read_weights
from ludus.train.worker import make_policy

WIDTH = 8
"""Actions that a look ahead compares: the policy's first choices."""
SIMULATIONS = 256
"""Positions that an agent which searches looks at, unless told."""


Weights = dict[str, np.ndarray]
"""A network's, by name."""
MakePolicy = Callable[[Spec, NetConfig], Any]


def make_agent(rules: Rules, folder: Path, think: str = "", at: str = "") -> Bot:
    """The agent of a run. think: how far it looks ahead. at: which of its weights"""
    config, weights = peek_config(folder), read_weights(folder, at)
    if config.algo == "ppo":
        return agent_of(rules, config, weights, think, source=str(folder))
    import torch

    torch.set_num_threads(1)  # matches run on all cores already, and for one game more threads gain little
    agent = agent_of(rules, config, weights, source=str(folder))
    assert isinstance(agent, SearchBot)
    agent.think(*_first_position(rules))  # what comes first takes longer: not in the time for a move
    if think:
        agent.limit(think)
    return agent


def agent_of(
    rules: Rules, config: Config, weights: Weights, think: str = "", make: MakePolicy = make_policy,
    source: str = "the run",
) -> Bot:  # fmt: skip
    """The agent that was trained as configured and has these weights.

    make: gives what computes its network. source: where it comes from, for errors
    """
    if config.algo == "ppo":
        return _ppo_agent(rules, config, weights, think, make, source)
    from ludus.algos.alphazero import utility
    from ludus.algos.alphazero.evaluators import CpuNetwork

    network = CpuNetwork(rules, config.net)
    check_fit(source, weights, network.net.state_dict())
    network.load_named(weights)
    search = config.alphazero.search
    agent = SearchBot(
        rules, SIMULATIONS, search.c_puct, search.first_play_reduction, network,
        utility(config.alphazero, rules.spec),
    )  # fmt: skip
    if think:
        agent.limit(think)
    return agent


def _ppo_agent(
    rules: Rules, config: Config, weights: Weights, think: str, make: MakePolicy, source: str
) -> Bot:
    rollouts, seconds = parse_think(think) if think else (0, 0.0)
    if seconds:
        raise Usage(f"{source} was trained by ppo, and looks into a number of futures: say +64, not +{think}")
    if think and config.net.memory:
        raise Usage(f"{source} has a network with memory, which can't look ahead: leave out +{think}")
    policy = load_policy(rules.spec, config.net, weights, make, source)
    return (
        RememberingAgent(rules, config.net, policy) if config.net.memory else Agent(rules, policy, rollouts)
    )


def load_policy(
    spec: Spec, net: NetConfig, weights: Weights, make: MakePolicy = make_policy, source: str = "the run"
) -> Any:
    """A policy with these weights, which must fit it. make, source: as in `agent_of`"""
    policy = make(spec, net)
    check_fit(source, weights, policy.blank())
    policy.load_named(weights)
    return policy


def _first_position(rules: Rules) -> tuple[States, Streams]:
    states, rng = rules.blank(1), seeds.rows(0, 1)
    rules.deal(states, rng)
    return states, rng


def look(rules: Rules, states: States) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks of the seats to move."""
    spec = rules.spec
    obs = np.zeros((len(states), *spec.obs_shape), spec.obs_dtype)
    legal = np.zeros((len(states), spec.actions), bool)
    rules.observe(states, obs)
    rules.legal(states, legal)
    return obs, legal


class Agent:
    """The policy of a run. With `rollouts`, it tries its best ideas on that many redealt futures each."""

    def __init__(self, rules: Rules, policy: Any, rollouts: int = 0) -> None:
        self.rules, self.policy, self.rollouts = rules, policy, rollouts

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        obs, legal = look(self.rules, states)
        logits = np.where(legal, self.policy.logits(obs), -np.inf)
        if not self.rollouts:
            return logits.argmax(1).astype(np.int32)
        return np.array(
            [self._best(states[i : i + 1], logits[i], rng[i : i + 1]) for i in range(len(states))], np.int32
        )

    def _best(self, state: States, logits: np.ndarray, rng: Streams) -> int:
        """The idea with the best mean outcome; all ideas meet the same futures."""
        ideas = np.argsort(-logits)[:WIDTH]
        ideas = ideas[np.isfinite(logits[ideas])].astype(np.int32)
        next64(rng[0])
        futures = np.repeat(rng, self.rollouts, 0)
        futures[:, 0] += np.arange(self.rollouts, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        streams = np.tile(futures, (len(ideas), 1))
        trials = np.repeat(state, len(streams))
        self.rules.redeal(trials, streams)
        outcome = self._outcomes(
            trials, np.repeat(ideas, self.rollouts), streams, int(self.rules.seat(state)[0])
        )
        return int(ideas[outcome.reshape(len(ideas), -1).mean(1).argmax()])

    def _outcomes(self, states: States, actions: np.ndarray, rng: Streams, seat: int) -> np.ndarray:
        """Points of `seat` once it is to move again or the game is over, and the value of what is left."""
        score = np.zeros((len(states), self.rules.spec.seats), np.float32)
        self.rules.score(states, score)
        outcome = -score[:, seat]
        self.rules.play(states, actions, rng)
        while True:
            others = np.flatnonzero(~self.rules.over(states) & (self.rules.seat(states) != seat))
            if not len(others):
                break
            some, streams = states[others], rng[others]
            self.rules.play(some, self._sample(some, streams), streams)
            states[others], rng[others] = some, streams
        self.rules.score(states, score)
        outcome += score[:, seat]
        open_rows = np.flatnonzero(~self.rules.over(states))
        if len(open_rows):
            outcome[open_rows] += self.policy.value(look(self.rules, states[open_rows])[0])
        return outcome

    def _sample(self, states: States, rng: Streams) -> np.ndarray:
        from ludus.nets.plain import sample

        obs, legal = look(self.rules, states)
        some_rng, actions, logp = (
            np.empty(len(obs), np.float32),
            np.empty(len(obs), np.int32),
            np.empty(len(obs), np.float32),
        )
        uniforms(rng, some_rng)
        sample(self.policy.logits(obs), legal, some_rng, np.float32(1), actions, logp)
        return actions


class RememberingAgent:
    """The policy of a run whose network has a memory, at native games: `Remembers` says how to play it."""

    def __init__(self, rules: Rules, net: NetConfig, policy: Any) -> None:
        self.rules, self.net, self.policy = rules, net, policy

    def start(self, games: int) -> None:
        self.memory = Memory(self.net, games, self.rules.spec.seats)

    def choose_in(self, games: np.ndarray, states: States, rng: Streams) -> np.ndarray:
        (obs, legal), seat = look(self.rules, states), self.rules.seat(states)
        logits, _, after = self.policy.look(obs, self.memory.at(games, seat))
        self.memory.put(games, seat, after)
        return np.where(legal, logits, -np.inf).argmax(1).astype(np.int32)

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        raise Usage("an agent with memory plays whole games, not single positions")


class TableAgent:
    """The policy of a run at any table, always with its first choice; remembers if it has a memory."""

    def __init__(self, table: Table, net: NetConfig, policy: Any) -> None:
        self.policy = policy
        self.box = table.spec.box
        self.memory = Memory(net, table.rows, table.spec.seats) if net.memory else None

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        if self.memory is None:
            logits = self.policy.logits(turn.obs[rows])
        else:
            logits, _, after = self.policy.look(turn.obs[rows], self.memory.at(rows, turn.seat[rows]))
            self.memory.put(rows, turn.seat[rows], after)
        if self.box is not None:
            return logits.reshape(len(rows), *self.box[0].shape)
        return np.where(turn.legal[rows], logits, -np.inf).argmax(1).astype(np.int32)

    def forget(self, ended: np.ndarray) -> None:
        if self.memory:
            self.memory.forget(ended)
