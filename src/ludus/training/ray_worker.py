"""RayWorker: what runs on a node. Plays with local inference and gives blocks to Ray's object store."""

import os
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from ludus.algos import Plan
from ludus.core.block import Block, Column, block_bytes
from ludus.core.report import Report
from ludus.training.cluster import own_node, versions
from ludus.training.faults import Fault
from ludus.training.weights import Past, PastSelves
from ludus.training.worker import make_actor

NOTHING = np.zeros(0, np.uint8)


class Hello(NamedTuple):
    """Who a worker is, in plain values: its code may be another's."""

    node: str
    pid: int
    versions: dict[str, str]


class PastNews(NamedTuple):
    """Past selves, as a worker is told of them."""

    odds: np.ndarray
    versions: np.ndarray
    puts: dict[int, tuple[int, Any]]
    """By slot: the number of the put, and where the weights are; a worker fetches what it doesn't have."""


class RayWorker:
    """One actor at its table. Everything may be called from several threads, `pulse` at any time."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.beat = np.zeros(3, np.int64)
        """See `Actor.beat`."""

    def hello(self) -> tuple[str, int, dict[str, str]]:
        return own_node(), os.getpid(), versions()

    def begin(self, plan: Plan, columns: list[Column], vector: np.ndarray) -> Fault | None:
        """vector: the past self until there is another, float32 [size]"""
        try:
            self.past, self.selves = Past(get_context("spawn"), vector), PastSelves(vector)
            self.puts: dict[int, int] = {}
            self.actor, self.table = make_actor(plan, self.index, self.past, self.beat)
            self.buffer = np.zeros(block_bytes(columns, plan.steps, plan.rows), np.uint8)
            self.block = Block(columns, plan.steps, plan.rows, self.buffer)
            self.known = -1
        except Exception as error:
            return Fault.of(error)
        return None

    def fill(
        self, vector: np.ndarray, version: int, progress: float, past: PastNews | None
    ) -> tuple[Report | Fault, np.ndarray]:
        """What was counted, and the block's bytes, uint8 [block_bytes]."""
        try:
            if past is not None:
                self._hear(past)
            if version != self.known:
                self.actor.load(vector, progress)
                self.known = version
            return self.actor.fill(self.block), self.buffer
        except Exception as error:
            return Fault.of(error), NOTHING

    def pulse(self) -> list[int]:
        return self.beat.tolist()

    def leave(self) -> None:
        self.table.close()

    def _hear(self, news: PastNews) -> None:
        import ray

        for slot, (number, where) in news.puts.items():
            if self.puts.get(slot) != number:
                self.selves.weights[slot] = ray.get(where)
                self.puts[slot] = number
        self.selves.versions[:], self.selves.odds[:] = news.versions, news.odds
        self.past.publish(self.selves)
