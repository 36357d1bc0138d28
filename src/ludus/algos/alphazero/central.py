"""AlphaZero beside a GPU: searches in threads of the learner's process, with one network on its device.

The searches are compiled and release the GIL; while one group of games searches, another's batch is computed.
"""

import sys

import numpy as np
import torch

from ludus.algos import Actor, Opponent, Plan, Seating
from ludus.algos.alphazero.actor import SearchOpponent, SelfPlay
from ludus.algos.alphazero.evaluators import DeviceNetwork, PlayingCopies, copy_weights
from ludus.core.block import Block, Column
from ludus.core.rules import Rules, States
from ludus.core.table import Table
from ludus.nets.board import BoardNet
from ludus.search.cache import EvaluationCache

PAST_ROWS = 64
"""Past selves are asked for few games, but a GPU computes whole batches. They go first: the group waits, and
others that want to ask wait for it."""
SWITCH_S = 0.001
"""The learner's thread must not wait longer than this for those of the groups to give way."""


class CentralSelfPlay(SelfPlay):
    plays_on = False
    """While weights are published: then what is remembered of older ones does no harm."""

    def load(self, vector: np.ndarray, progress: float) -> None:
        """`publish` gives all groups the new weights at once."""
        if not self.plays_on:
            self.search.forget()

    def _evaluate(self, states: States, *rest: np.ndarray) -> None:
        super()._evaluate(states, *rest)
        self._evaluated -= self.network.recalled


class SearchCentral:
    together = False

    def __init__(self, plan: Plan, rules: Rules, net: BoardNet, columns: list[Column], overlap: bool) -> None:
        self.plan, self.rules, self.columns, self.slots = plan, rules, columns, 2 if overlap else 1
        self.learned = net
        self.playing = PlayingCopies(net, EvaluationCache(rules.spec) if overlap else None)
        if self.playing.device.type == "cuda":
            obs = np.zeros((plan.rows, *rules.spec.obs_shape), rules.spec.obs_dtype)
            self.playing.fuse(torch.from_numpy(obs).to(self.playing.device))
        self.past: dict[int, DeviceNetwork] = {}
        sys.setswitchinterval(SWITCH_S)

    def opponent(self, table: Table, slot: int) -> Opponent:
        """Past selves' networks are shared by all groups, which seldom meet them."""
        if slot not in self.past:
            self.past[slot] = DeviceNetwork(self.rules, PlayingCopies(self.learned), PAST_ROWS, -1)
        return SearchOpponent(self.plan, table, lambda rules: self.past[slot])

    def add(self, index: int, table: Table, seating: Seating) -> tuple[Actor, list[Block]]:
        plan, network = self.plan, DeviceNetwork(self.rules, self.playing, self.plan.rows)
        actor = CentralSelfPlay(plan, index, table, seating, np.zeros(3, np.int64), network)
        actor.plays_on = self.slots > 1
        return actor, [Block(self.columns, plan.steps, plan.rows) for _ in range(self.slots)]

    def publish(self, slot: int) -> None:
        self.playing.update(lambda net: copy_weights(net, self.learned))
