"""Networks as a search's `Evaluator`: on a worker's CPU, or on the learner's device for a group of games."""

import copy
import itertools
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from ludus.algos.cuda_graph import fused
from ludus.core.rules import Rules, States, Streams
from ludus.core.spec import Spec
from ludus.nets import NetConfig
from ludus.nets.board import BoardNet, places_and_values
from ludus.nets.int8 import fastest
from ludus.nets.net import unflatten
from ludus.nets.plain import drawn
from ludus.search.cache import EvaluationCache
from ludus.search.evaluators import Network, action_places, list_places, spread_logits, values_by_seat
from ludus.search.lookahead import picked

Look = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""A network's `look`."""
BUCKET = 1 << 14
"""Legal actions travel in multiples of so many, so that few sizes of memory are asked for."""
SIZES = 16
"""Batches that are recorded for a GPU: a search evaluates now more leaves, now fewer."""
SMALLEST = 64
"""Leaves: less than that takes a GPU as long."""


class BoardPolicy:
    """A network on a CPU, as a `Policy` and as what a search asks."""

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        with torch.random.fork_rng(devices=[]):  # the learner draws from the global stream
            self.net = BoardNet(spec, config).eval()
        self.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a quarter faster
        self.places = action_places(spec)

    def blank(self) -> dict[str, torch.Tensor]:
        return self.net.state_dict()

    def load(self, vector: np.ndarray) -> None:
        unflatten(self.net, vector)

    def load_named(self, named: dict[str, np.ndarray]) -> None:
        self.net.load_state_dict({name: torch.from_numpy(array) for name, array in named.items()})

    def look(self, obs: np.ndarray, memory: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, None]:
        logits, value = places_and_values(self.net, obs)
        return logits[:, self.places], value[:, 0], None

    def logits(self, obs: np.ndarray) -> np.ndarray:
        return self.look(obs)[0]

    def value(self, obs: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
        return self.look(obs)[1]

    def draw(
        self, logits: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        return drawn(logits, legal, rng, temperature)

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float = 1.0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, None]:  # fmt: skip
        return *drawn(self.logits(obs), legal, rng, temperature), None


class CpuNetwork(BoardPolicy):
    """The same as an `Evaluator` of a search over some rules, as fast as this CPU can evaluate."""

    def __init__(self, rules: Rules, config: NetConfig) -> None:
        super().__init__(rules.spec, config)
        self.rules = rules
        self._renew()

    def load(self, vector: np.ndarray) -> None:
        super().load(vector)
        self._renew()

    def load_named(self, named: dict[str, np.ndarray]) -> None:
        super().load_named(named)
        self._renew()

    def _renew(self) -> None:
        self.evaluate = Network(self.rules, fastest(self.net))

    def __call__(self, *args: Any) -> None:
        self.evaluate(*args)


def playing_copy(net: BoardNet) -> BoardNet:
    """A network to play with while another learns; on a GPU in half the precision, which is enough for it.

    float16, not bfloat16: it keeps 8 times as many digits, and numbers of 75 at most (in the champions) leave
    its range of 65,504 far away.
    """
    device = next(net.parameters()).device
    twin = copy.deepcopy(net).eval().requires_grad_(False)
    return twin.to(torch.float16) if device.type == "cuda" else twin


class PlayingCopies:
    """Two copies of a network: while one plays, the other, which nobody uses any more, is renewed."""

    def __init__(self, net: BoardNet, cache: EvaluationCache | None = None) -> None:
        """cache: what was evaluated with weights of a moment ago is good enough"""
        self.nets, self.cache = [playing_copy(net), playing_copy(net)], cache
        self.device = next(net.parameters()).device
        self.current = 0
        self.users: list[DeviceNetwork] = []
        self.looks: list[Look] = [one.look for one in self.nets]
        self._updating = threading.Lock()

    def fuse(self, obs: torch.Tensor) -> None:
        """Compile what plays. obs: the largest batch there will be"""
        self.looks = [fused(one.look, obs, any_batch=True) for one in self.nets]

    @torch.no_grad()
    def update(self, write: Callable[[BoardNet], object]) -> None:
        """New weights. write: into the network that it is given"""
        with self._updating:
            other = 1 - self.current
            for user in self.users:
                user.wait_until_not(other)
            write(self.nets[other])
            if self.device.type == "cuda":
                torch.cuda.current_stream().synchronize()
            self.current = other
            if self.cache:
                self.cache.age()


def copy_weights(ours: BoardNet, theirs: BoardNet) -> None:
    torch._foreach_copy_(list(ours.parameters()), [parameter.detach() for parameter in theirs.parameters()])


class DeviceNetwork:
    """A network on a device that sees up to `rows` leaves at a time. Only logits of legal actions return."""

    def __init__(self, rules: Rules, copies: PlayingCopies, rows: int, priority: int = 0) -> None:
        """priority: of its stream; -1 goes first"""
        spec = rules.spec
        self.rules, self.copies, self.rows, self.device = rules, copies, rows, copies.device
        on_gpu = self.device.type == "cuda"
        self._places = action_places(spec)
        self._step = min(rows, max(SMALLEST, -(-rows // SIZES)))  # from one size of a batch to the next
        obs = np.zeros((rows, *spec.obs_shape), spec.obs_dtype)
        self._obs = torch.from_numpy(obs).pin_memory() if on_gpu else torch.from_numpy(obs)
        self._given, self._seen = self._obs.to(self.device), self._obs.numpy()
        self._value = torch.zeros((rows, spec.values), pin_memory=on_gpu)
        self._make_room(BUCKET)
        self._lock = threading.Lock()  # past selves are asked by several groups
        self._choosing = threading.Lock()
        self._using = -1  # the copy that is being evaluated with
        self.recalled = 0  # leaves of the last call that were in the cache
        self._stream = torch.cuda.Stream(priority=priority) if on_gpu else None
        # Waiting for it leaves the core to searches of other groups.
        self._done = torch.cuda.Event(blocking=True) if on_gpu else None
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        if on_gpu:
            self._record()
        copies.users.append(self)

    def load(self, vector: np.ndarray) -> None:
        self.copies.update(lambda net: unflatten(net, vector))

    def wait_until_not(self, which: int) -> None:
        """Until nothing is evaluated with this copy of the network, which isn't the current one."""
        with self._choosing:
            busy = self._using == which
        if busy:
            with self._lock:
                pass

    def __call__(
        self, states: States, actions: np.ndarray, counts: np.ndarray, rng: Streams, logits: np.ndarray,
        values: np.ndarray,
    ) -> None:  # fmt: skip
        cache, rows = self.copies.cache, np.arange(len(states))
        with self._lock:
            with self._choosing:
                self._using = self.copies.current
            if cache:
                rows, keys = cache.recall(states, counts, logits, values)
            for start in range(0, len(rows), self.rows):
                self._evaluate(rows[start : start + self.rows], states, actions, counts, logits, values)
            if cache:
                cache.keep(rows, keys, counts, logits, values)
            self.recalled = len(states) - len(rows)
            self._using = -1

    @torch.no_grad()
    def _evaluate(
        self, rows: np.ndarray, states: States, actions: np.ndarray, counts: np.ndarray, logits: np.ndarray,
        values: np.ndarray,
    ) -> None:  # fmt: skip
        some, n, total = picked(states, rows), len(rows), int(counts[rows].sum())
        size = -(-total // BUCKET) * BUCKET
        if size > len(self._listed):
            self._make_room(size)
        self.rules.observe(some, self._seen[:n])
        with torch.cuda.stream(self._stream) if self._stream else nullcontext():
            choice, utility = self._look(self._using, min(self.rows, -(-n // self._step) * self._step))
            # Only now, as the network is already at work.
            listed = self._listed[:size].numpy()
            list_places(rows, actions, counts, self._places, choice.shape[1], listed)
            places = self._listed[:size].to(self.device, non_blocking=True)
            self._logits[:size].copy_(choice.reshape(-1).index_select(0, places), non_blocking=True)
            self._value[:n].copy_(utility[:n], non_blocking=True)
        if self._done:
            self._done.record(self._stream)
            self._done.synchronize()
        spread_logits(self._logits.numpy(), rows, counts, logits)
        found = np.empty((n, values.shape[1]), np.float32)
        values_by_seat(self._value.numpy()[:n], self.rules.seat(some), found)
        values[rows] = found

    def _make_room(self, size: int) -> None:
        """For so many legal actions, of all rows together."""
        on_gpu = self.device.type == "cuda"
        self._listed = torch.zeros(size, dtype=torch.int32, pin_memory=on_gpu)
        self._logits = torch.zeros(size, pin_memory=on_gpu)

    def _look(self, which: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Choice and utility of the first rows, by one of the copies."""
        if not self._graphs:
            return self._compute(which, size)
        self._graphs[which, size].replay()
        return self._answer

    def _compute(self, which: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        self._given[:size].copy_(self._obs[:size], non_blocking=True)
        return self.copies.looks[which](self._given[:size])

    @torch.no_grad()
    def _record(self) -> None:
        """A graph for each copy and size of a batch. They take turns, so all of them use the same memory, and
        leave their answers in the same place."""
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._answer = self._compute(0, self.rows)
        pool = torch.cuda.graph_pool_handle()
        sizes = [*range(self._step, self.rows, self._step), self.rows]
        for which, size in itertools.product(range(2), reversed(sizes)):
            with torch.cuda.stream(self._stream):
                for _ in range(3):
                    self._answer_to(which, size)
            self._stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool, self._stream, capture_error_mode="thread_local"):
                self._answer_to(which, size)
            self._graphs[which, size] = graph

    def _answer_to(self, which: int, size: int) -> None:
        for kept, computed in zip(self._answer, self._compute(which, size), strict=True):
            kept[:size].copy_(computed)
