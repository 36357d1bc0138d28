"""A policy that looks ahead: its best ideas are tried on futures that it plays out itself."""

import time

import numpy as np

from ludus.algos import Policy
from ludus.core import seeds
from ludus.core.dice import next64
from ludus.core.rules import Finishes, Rounds, Rules, States, Streams

WIDTH = 8
LEAST = 0.005
BATCH = 16
Z = 1.0
DEPTH = 9


class LookAhead:
    def __init__(self, rules: Rules, policy: Policy, futures: int, seconds: float = 0.0, depth=DEPTH, z=Z, width=WIDTH, least=LEAST) -> None:
        self.rules, self.policy, self.futures, self.seconds = rules, policy, futures, seconds
        self.depth, self.z, self.width, self.least = depth, z, width, least
        self.count = 0; self.changed = 0; self.calls = 0

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        logits = self._logits(states)
        actions = logits.argmax(1).astype(np.int32)
        known = np.zeros(len(states), bool)
        if isinstance(self.rules, Finishes):
            known = self.rules.finish(states, actions)
        for i in np.flatnonzero(~known):
            actions[i] = self._best(states[i : i + 1], logits[i], rng[i : i + 1])
        return actions

    def _logits(self, states):
        spec = self.rules.spec
        obs = np.zeros((len(states), *spec.obs_shape), spec.obs_dtype)
        legal = np.zeros((len(states), spec.actions), bool)
        self.rules.observe(states, obs)
        self.rules.legal(states, legal)
        return np.where(legal, self.policy.logits(obs), -np.inf)

    def _best(self, state, logits, rng):
        order = np.argsort(-logits)[: self.width]
        share = np.exp(logits[order] - logits[order[0]])
        ideas = order[share >= self.least].astype(np.int32)
        self.calls += 1
        if len(ideas) == 1:
            return ideas[0]
        start = state.copy()
        if isinstance(self.rules, Rounds):
            self.rules.cut(start)
        seat = int(self.rules.seat(start)[0])
        outcome = np.zeros((len(ideas), 0))
        alive = np.arange(len(ideas))
        deadline = time.monotonic() + self.seconds
        while len(alive) > 1 and (time.monotonic() < deadline if self.seconds else outcome.shape[1] < self.futures):
            next64(rng[0])
            streams = seeds.rows(int(rng[0, 0]), BATCH)
            streams = np.tile(streams, (len(alive), 1))
            trials = np.repeat(start, len(streams))
            self.rules.redeal(trials, streams)
            new = self._outcomes(trials, np.repeat(ideas[alive], BATCH), streams, seat)
            self.count += len(new)
            both = np.full((len(ideas), BATCH), np.nan); both[alive] = new.reshape(len(alive), BATCH)
            outcome = np.concatenate([outcome, both], 1)
            mean = outcome[alive].mean(1)
            lead = alive[mean.argmax()]
            gain = outcome[alive] - outcome[lead]
            error = gain.std(1) / gain.shape[1] ** 0.5
            alive = alive[gain.mean(1) + 2 * error >= 0]
        if alive[0] == 0:
            gain = outcome[alive] - outcome[0]
            error = gain.std(1) / gain.shape[1] ** 0.5
            best = alive[(gain.mean(1) - self.z * error).argmax()]
        else:
            best = alive[outcome[alive].mean(1).argmax()]
        self.changed += best != 0
        return ideas[best]

    def _outcomes(self, states, actions, rng, seat):
        rules = self.rules
        score = np.zeros((len(states), rules.spec.seats), np.float32)
        rules.score(states, score)
        outcome = -score[:, seat]
        rules.play(states, actions, rng)
        left = np.full(len(states), self.depth)
        while True:
            mine = rules.seat(states) == seat
            left -= mine
            rows = np.flatnonzero(~rules.over(states) & (left > 0))
            if not len(rows):
                break
            some, streams = states[rows], rng[rows]
            moves = np.zeros(len(rows), np.int32)
            known = rules.finish(some, moves) if isinstance(rules, Finishes) else np.zeros(len(rows), bool)
            if not known.all():
                moves[~known] = self._logits(some[~known]).argmax(1)
            rules.play(some, moves, streams)
            states[rows], rng[rows] = some, streams
        rules.score(states, score)
        outcome += score[:, seat]
        rows = np.flatnonzero(~rules.over(states))
        if len(rows):
            spec = rules.spec
            obs = np.zeros((len(rows), *spec.obs_shape), spec.obs_dtype)
            rules.observe(states[rows], obs)
            outcome[rows] += self.policy.value(obs)
        return outcome
