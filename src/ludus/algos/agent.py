"""Policies as players of native games: by their first choice, with a memory, or looking into futures."""

import numpy as np

from ludus.algos import Policy
from ludus.core.dice import next64, uniforms
from ludus.core.errors import Usage
from ludus.core.rules import Bot, Rules, States, Streams
from ludus.nets import Memory, NetConfig
from ludus.nets.plain import sample
from ludus.search.bot import parse_think

WIDTH = 8
"""Actions that a look ahead compares: the policy's first choices."""


def policy_bot(rules: Rules, net: NetConfig, policy: Policy, think: str, source: str) -> Bot:
    """source: where it comes from, for errors"""
    rollouts, seconds = parse_think(think) if think else (0, 0.0)
    if seconds:
        raise Usage(f"{source} has a policy that looks into a number of futures: say +64, not +{think}")
    if think and net.memory:
        raise Usage(f"{source} has a network with memory, which can't look ahead: leave out +{think}")
    return RememberingBot(rules, net, policy) if net.memory else PolicyBot(rules, policy, rollouts)


def look(rules: Rules, states: States) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks of the seats to move."""
    spec = rules.spec
    obs = np.zeros((len(states), *spec.obs_shape), spec.obs_dtype)
    legal = np.zeros((len(states), spec.actions), bool)
    rules.observe(states, obs)
    rules.legal(states, legal)
    return obs, legal


class PolicyBot:
    """A policy. With `rollouts`, it tries its best ideas on that many redealt futures each."""

    def __init__(self, rules: Rules, policy: Policy, rollouts: int = 0) -> None:
        self.rules, self.policy, self.rollouts = rules, policy, rollouts

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        obs, legal = look(self.rules, states)
        logits = np.where(legal, self.policy.logits(obs), -np.inf)
        if not self.rollouts:
            return logits.argmax(1).astype(np.int32)
        return np.array(
            [self._best(states[i : i + 1], logits[i], rng[i : i + 1]) for i in range(len(states))], np.int32
        )

    def weigh(self, state: States, rng: Streams, rollouts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its first ideas in one position: actions, shares of the policy, and mean outcomes. All [k]"""
        obs, legal = look(self.rules, state)
        logits = np.where(legal, self.policy.logits(obs), -np.inf)[0]
        shares = np.exp(logits - logits.max())
        ideas, means = self._outcome_of_ideas(state, logits, rng, rollouts)
        return ideas, shares[ideas] / shares.sum(), means

    def _best(self, state: States, logits: np.ndarray, rng: Streams) -> int:
        ideas, means = self._outcome_of_ideas(state, logits, rng, self.rollouts)
        return int(ideas[means.argmax()])

    def _outcome_of_ideas(
        self, state: States, logits: np.ndarray, rng: Streams, rollouts: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest actions and their mean outcomes; all of them meet the same futures. [k] each"""
        ideas = np.argsort(-logits)[:WIDTH]
        ideas = ideas[np.isfinite(logits[ideas])].astype(np.int32)
        next64(rng[0])
        futures = np.repeat(rng, rollouts, 0)
        futures[:, 0] += np.arange(rollouts, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        streams = np.tile(futures, (len(ideas), 1))
        trials = np.repeat(state, len(streams))
        self.rules.redeal(trials, streams)
        outcome = self._outcomes(trials, np.repeat(ideas, rollouts), streams, int(self.rules.seat(state)[0]))
        return ideas, outcome.reshape(len(ideas), -1).mean(1)

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
        obs, legal = look(self.rules, states)
        uniform, logp = np.empty(len(obs), np.float32), np.empty(len(obs), np.float32)
        actions = np.empty(len(obs), np.int32)
        uniforms(rng, uniform)
        sample(self.policy.logits(obs), legal, uniform, np.float32(1), actions, logp)
        return actions


class RememberingBot:
    """A policy with a memory: `Remembers` says how to play it."""

    def __init__(self, rules: Rules, net: NetConfig, policy: Policy) -> None:
        self.rules, self.net, self.policy = rules, net, policy

    def start(self, games: int) -> None:
        self.memory = Memory(self.net, games, self.rules.spec.seats)

    def choose_in(self, games: np.ndarray, states: States, rng: Streams) -> np.ndarray:
        (obs, legal), seat = look(self.rules, states), self.rules.seat(states)
        logits, _, after = self.policy.look(obs, self.memory.at(games, seat))
        assert after is not None
        self.memory.put(games, seat, after)
        return np.where(legal, logits, -np.inf).argmax(1).astype(np.int32)

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        raise Usage("an agent with memory plays whole games, not single positions")
