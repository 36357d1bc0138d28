"""PolicyOpponent: a past self that samples from its policy."""

from typing import Any

import numpy as np

from ludus.algos import Policy
from ludus.core.table import Table, Turn
from ludus.nets import Memory, NetConfig


class PolicyOpponent:
    def __init__(self, policy: Policy, net: NetConfig, table: Table) -> None:
        self.policy = policy
        self.memory = Memory(net, table.rows, table.spec.seats) if net.memory else None

    def load(self, vector: np.ndarray) -> None:
        self.policy.load(vector)

    def choose(self, rows: np.ndarray, turn: Turn, rng: np.random.Generator) -> np.ndarray:
        memory = self.memory.at(rows, turn.seat[rows]) if self.memory else None
        actions, _, memory = self.policy.act(turn.obs[rows], turn.legal[rows], rng, 1.0, memory)
        if self.memory and memory is not None:
            self.memory.put(rows, turn.seat[rows], memory)
        return actions

    def forget(self, rows: np.ndarray) -> None:
        if self.memory:
            self.memory.forget(rows)

    def snapshot(self) -> dict[str, Any]:
        return self.memory.snapshot() if self.memory else {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        if self.memory:
            self.memory.restore(snapshot)
