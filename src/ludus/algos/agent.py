"""Policies as players of native games: by their first choice, with a memory, or looking into futures."""

import time

import numpy as np

from ludus.algos import Policy
from ludus.core import seeds
from ludus.core.dice import next64, uniforms
from ludus.core.errors import Usage
from ludus.core.rules import Bot, Finishes, Judges, Rounds, Rules, States, Streams
from ludus.core.think import NO_LOOK_AHEAD
from ludus.nets import Memory, NetConfig
from ludus.nets.plain import sample
from ludus.search.bot import parse_think

WIDTH, LEAST = 16, 1e-4
"""Ideas, the actions that are compared: so many, each at least this share as likely as the first."""
SHOWN = 8
"""Ideas that people are shown, with what they bring."""
JUDGED = 12
"""Ideas that the rules judge, however unlikely: no guess is involved. In OFC more than 12 found nothing."""
BATCH = 32
"""Futures played side by side, before ideas are dropped or the clock is asked."""
DEPTH = 4
"""Own decisions in a future, after which the value network tells the rest."""
DROP = 2.0
"""Standard errors below the leader at which an idea is dropped."""


def policy_bot(rules: Rules, net: NetConfig, policy: Policy, think: str, source: str) -> Bot:
    """source: where it comes from, for errors"""
    futures, seconds = parse_think(think) if think not in ("", NO_LOOK_AHEAD) else (0, 0.0)
    if futures and net.memory:
        raise Usage(f"{source} has a network with memory, which can't look ahead: leave out +{think}")
    if net.memory:
        return RememberingBot(rules, net, policy)
    if futures:
        return LookAhead(rules, policy, futures, seconds)
    return PolicyBot(rules, policy, judges=think != NO_LOOK_AHEAD)


def look(rules: Rules, states: States) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks of the seats to move."""
    spec = rules.spec
    obs = np.zeros((len(states), *spec.obs_shape), spec.obs_dtype)
    legal = np.zeros((len(states), spec.actions), bool)
    rules.observe(states, obs)
    rules.legal(states, legal)
    return obs, legal


def likeliest(logits: np.ndarray, most: int) -> np.ndarray:
    """The policy's ideas in each row, the likeliest first, -1 after the legal ones. int32 [N, most]"""
    ideas = np.argsort(-logits, axis=1, kind="stable")[:, :most].astype(np.int32)
    ideas[np.isneginf(np.take_along_axis(logits, ideas, 1))] = -1
    return ideas


class PolicyBot:
    """A policy by its first choice, except where the rules know the best action, or the best of its ideas."""

    def __init__(self, rules: Rules, policy: Policy, judges: bool = True) -> None:
        """judges: whether it lets the rules judge its ideas"""
        self.rules, self.policy, self.judges = rules, policy, judges

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        return self.judged(states)[0] if self.judges else self.first(states)[0]

    def judged(self, states: States) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `first`, with the best of its ideas where the rules can judge them."""
        actions, known, logits = self.first(states)
        if isinstance(self.rules, Judges) and not known.all():
            ideas = likeliest(logits, JUDGED)
            rows = np.flatnonzero(~known & ((ideas >= 0).sum(1) > 1))
            worth, is_judged = self.rules.judge(states[rows], ideas[rows])
            rows = rows[is_judged]
            actions[rows], known[rows] = ideas[rows, worth[is_judged].argmax(1)], True
        return actions, known, logits

    def first(self, states: States) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First choices int32 [N], which of them the rules know bool [N], logits [N, A] of all others."""
        actions, known = np.zeros(len(states), np.int32), np.zeros(len(states), bool)
        if isinstance(self.rules, Finishes):
            known = self.rules.finish(states, actions)
        logits = np.full((len(states), self.rules.spec.actions), -np.inf, np.float32)
        if not known.all():
            obs, legal = look(self.rules, states[~known])
            logits[~known] = np.where(legal, self.policy.logits(obs), -np.inf)
            actions[~known] = logits[~known].argmax(1)
        return actions, known, logits


class LookAhead(PolicyBot):
    """A policy that tries its best ideas on redealt futures, in which it plays all seats.

    All ideas meet the same futures. Those that are surely worse than the leader are dropped on the way, and
    the first choice is replaced only by an idea that is better by more than a standard error: the policy's
    own judgement outweighs a few lucky futures.
    """

    def __init__(self, rules: Rules, policy: Policy, futures: int, seconds: float = 0.0) -> None:
        """futures: of each idea. seconds: for a decision; 0 for no limit"""
        super().__init__(rules, policy)
        self.futures, self.seconds = futures, seconds

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        actions, known, logits = self.judged(states)
        for i in np.flatnonzero(~known):
            actions[i] = self._best(states[i : i + 1], logits[i], rng[i : i + 1])
        return actions

    def weigh(self, state: States, rng: Streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its first ideas in one position: actions, shares of the policy, and mean outcomes. All [k]"""
        actions, known, logits = self.first(state)
        if known[0]:
            return actions, np.ones(1, np.float32), self._outcomes(state, actions, rng, self.futures).mean(1)
        ideas = likeliest(logits, SHOWN)[0]
        ideas = ideas[ideas >= 0]
        shares = np.exp(logits[0] - logits[0].max())
        return ideas, shares[ideas] / shares.sum(), self._outcomes(state, ideas, rng, self.futures).mean(1)

    def _best(self, state: States, logits: np.ndarray, rng: Streams) -> int:
        """The idea with the best mean outcome, beyond doubt."""
        ideas = likeliest(logits[None], WIDTH)[0]
        ideas = ideas[(ideas >= 0) & (logits[ideas] >= logits.max() + np.log(LEAST))]
        start, now, took_s = state.copy(), time.monotonic(), 0.0
        end = now + (self.seconds or np.inf)
        if isinstance(self.rules, Rounds):
            self.rules.cut(start)
        alive = np.arange(len(ideas))
        outcome = np.zeros((len(ideas), 0))  # [ideas, futures]; only rows in `alive` go on
        while len(alive) > 1 and outcome.shape[1] < self.futures and now + took_s < end:
            batch = np.zeros((len(ideas), min(BATCH, self.futures - outcome.shape[1])))
            batch[alive] = self._outcomes(start, ideas[alive], rng, batch.shape[1], to_end=False)
            outcome = np.concatenate([outcome, batch], 1)
            leader = outcome[alive[outcome[alive].mean(1).argmax()]]
            mean, error = _gains(outcome[alive], leader)
            alive = alive[mean + DROP * error >= 0]
            took_s, now = time.monotonic() - now, time.monotonic()
        if alive[0] == 0 and outcome.size:
            mean, error = _gains(outcome[alive], outcome[0])
            return int(ideas[alive[(mean - error).argmax()]])
        return int(ideas[alive[outcome[alive].sum(1).argmax()]])

    def _outcomes(
        self, start: States, ideas: np.ndarray, rng: Streams, futures: int, to_end: bool = True
    ) -> np.ndarray:
        """What each idea brings in the same futures, [ideas, futures]. start: [1], rng: [1, 2]

        to_end: futures are played to their end. Or only until the rules can judge: that says as much of
        which idea is the best in a third of the time, but not what others win meanwhile
        """
        seat = int(self.rules.seat(start)[0])
        streams = np.tile(seeds.rows(int(next64(rng[0])), futures), (len(ideas), 1))
        states = np.repeat(start, len(streams))
        self.rules.redeal(states, streams)
        before, after = (np.zeros((len(states), self.rules.spec.seats), np.float32) for _ in range(2))
        self.rules.score(states, before)
        self.rules.play(states, np.repeat(ideas, futures), streams)
        expected = self._play_on(states, streams, seat, to_end)
        self.rules.score(states, after)
        return (after[:, seat] - before[:, seat] + expected).reshape(len(ideas), futures)

    def _play_on(self, states: States, rng: Streams, seat: int, to_end: bool) -> np.ndarray:
        """Everybody plays on until a game is over, or judged, or `seat` has decided DEPTH times; what the
        seat expects then, [N]."""
        expected, decided = np.zeros(len(states)), np.zeros(len(states), np.int64)
        rows = np.arange(len(states))
        while True:
            rows = rows[~self.rules.over(states[rows])]
            mine = self.rules.seat(states[rows]) == seat
            decided[rows] += mine
            far = decided[rows] > DEPTH
            if far.any():
                expected[rows[far]] = self.policy.value(look(self.rules, states[rows[far]])[0])
                rows, mine = rows[~far], mine[~far]
            if not len(rows):
                return expected
            some, streams = states[rows], rng[rows]
            actions = self._move(some, streams)
            if isinstance(self.rules, Judges) and not to_end and mine.any():
                worth, judged = self.rules.judge(some[mine], actions[mine, None])
                mine[mine] = judged
                expected[rows[mine]] = worth[judged, 0]
                rows, some, streams, actions = rows[~mine], some[~mine], streams[~mine], actions[~mine]
            self.rules.play(some, actions, streams)
            states[rows], rng[rows] = some, streams

    def _move(self, states: States, rng: Streams) -> np.ndarray:
        """First choices; drawn from the policy where no chance would make futures differ."""
        actions, known, logits = self.first(states)
        if self.rules.spec.chance:
            return actions
        uniform, logits = np.empty(len(states), np.float32), logits[~known]
        drawn, logp = np.empty(len(logits), np.int32), np.empty(len(logits), np.float32)
        uniforms(rng, uniform)
        sample(logits, np.isfinite(logits), uniform[~known], np.float32(1), drawn, logp)
        actions[~known] = drawn
        return actions


def _gains(outcome: np.ndarray, rival: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much more each idea brings than a rival in the same futures, and the standard error. [ideas]"""
    gain = outcome - rival
    return gain.mean(1), gain.std(1) / np.sqrt(gain.shape[1])


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
