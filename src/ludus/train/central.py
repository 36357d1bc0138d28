"""CentralPool: the network stays with the learner, on its device, and plays for all tables from there.

Native games release the GIL, so their tables step in threads of the learner's own process; others step
in processes that these threads ask (`RemoteTable`). Groups of games take turns: one steps while
another's batch is on the device.
"""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ludus.algos.ppo.learner import log_prob, normal_log_prob
from ludus.core import seeds
from ludus.core.block import Block, Column
from ludus.nets.net import Net
from ludus.train.pool import LEAVE_S, LOOK_S, Delivery, never
from ludus.train.remote_table import RemoteTable
from ludus.train.worker import Cancelled, Plan, Report, Worker

ON_DEVICE = ("obs", "legal", "action", "logp")
"""Columns that are born on the device and stay there; the others are copied once a block."""


class DeviceBlock(Block):
    """A block whose large columns are tensors on the learner's device."""

    def __init__(self, columns: list[Column], steps: int, rows: int, device: torch.device) -> None:
        small = [column for column in columns if column.name not in ON_DEVICE]
        super().__init__(small, steps, rows)
        self.tensors = {
            name: torch.zeros((steps, rows, *shape), dtype=_torch_type(dtype), device=device)
            for name, shape, dtype in columns
            if name in ON_DEVICE
        }


class DevicePolicy:
    """Same face as a worker's policy, but the batch is computed on the device and kept in the block."""

    def __init__(self, net: Net, rows: int, device: torch.device, seed: int) -> None:
        spec = net.spec
        self._rng = torch.Generator(device).manual_seed(seed)
        self.net, self.device, self.on_gpu = net, device, device.type == "cuda"
        pin = self.on_gpu
        self.obs = torch.zeros((rows, *spec.obs_shape), dtype=_torch_type(spec.obs_dtype), pin_memory=pin)
        self.legal = torch.zeros((rows, spec.actions), dtype=torch.bool, pin_memory=pin)
        box = spec.box[0].shape if spec.box else ()
        kind = torch.float32 if spec.box else torch.int32
        self.action = torch.zeros((rows, *box), dtype=kind, pin_memory=pin)
        self.temperature = 1.0
        self.at = torch.zeros(1, dtype=torch.long, device=device)
        self.block: DeviceBlock | None = None
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        if self.on_gpu:
            self._stream = torch.cuda.Stream()

    def start(self, block: DeviceBlock) -> None:
        """The next decisions go to the start of this block."""
        self.block = block
        if not self.on_gpu:
            self.at.zero_()
            return
        if id(block) not in self._graphs:
            self._graphs[id(block)] = self._capture()
        # The learner's updates are on the default stream: we play with what they have left there.
        self._stream.wait_stream(torch.cuda.default_stream(self.device))
        with torch.cuda.stream(self._stream):
            self.at.zero_()

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: Any, temperature: float, memory: None
    ) -> tuple[np.ndarray, float, None]:
        if obs.ctypes.data != self.obs.data_ptr():
            self.obs.numpy()[:] = obs
            self.legal.numpy()[:] = legal
        if self.on_gpu:
            with torch.cuda.stream(self._stream):
                self._graphs[id(self.block)].replay()
            self._stream.synchronize()
        else:
            self._compute()
        return self.action.numpy(), 0.0, None

    @torch.no_grad()
    def _compute(self) -> None:
        """One decision for every row, from host to block to host; recorded as one graph on a GPU."""
        assert self.block is not None
        obs = self.obs.to(self.device, non_blocking=True)
        legal = self.legal.to(self.device, non_blocking=True)
        logits, _ = self.net(obs, legal)
        action, logp = self._sampled(logits)
        for name, values in zip(ON_DEVICE, (obs, legal, action, logp), strict=True):
            self.block.tensors[name].index_copy_(0, self.at, values.unsqueeze(0))
        self.at.add_(1)
        self.action.copy_(action, non_blocking=True)

    def _sampled(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.net.log_std is not None:
            noise = torch.empty_like(logits).normal_(generator=self._rng)
            log_std = self.net.log_std + math.log(self.temperature)
            action = (logits + log_std.exp() * noise).reshape(self.action.shape)
            return action, normal_log_prob(noise, log_std)
        noise = torch.empty_like(logits).exponential_(generator=self._rng).log_().neg_()
        logits = logits / self.temperature
        action = (logits + noise).argmax(1).int()  # with Gumbel noise, the maximum is a sample
        return action, log_prob(self.net, logits, action)[0]

    def _capture(self) -> "torch.cuda.CUDAGraph":
        self._stream.wait_stream(torch.cuda.default_stream(self.device))
        with torch.cuda.stream(self._stream):
            for _ in range(3):
                self.at.zero_()
                self._compute()
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._rng)
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            self._compute()
        return graph

    def snapshot(self) -> dict[str, Any]:
        return {"rng": self._rng.get_state().numpy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        if not self.on_gpu:  # a recorded graph keeps its own generator
            self._rng.set_state(torch.from_numpy(snapshot["rng"]))

    def value(self, obs: np.ndarray, memory: None) -> np.ndarray:
        with torch.no_grad():
            x = self.net.prepare(torch.from_numpy(obs).to(self.device))
            return self.net.value_of(x, self.net.policy_body(x)).cpu().numpy()


class CentralPool:
    """Groups of games in threads, one network for all of them."""

    def __init__(
        self, plan: Plan, columns: list[Column], net: Net, past: Any, groups: int, context: Any,
        log: str = "",
    ) -> None:  # fmt: skip
        """log: file for whatever games in processes print"""
        self.past, self.workers, self._version = past, groups, 0
        self._cancelled, self._whole = False, True
        device = next(net.parameters()).device
        plan = replace(plan, workers=groups)
        self._workers, self._blocks = [], []
        self._remote: list[RemoteTable] = []
        if ":" in plan.game:
            self._remote = [
                RemoteTable(context, plan.game, plan.rows, net.spec, plan.switches, log)
                for _ in range(groups)
            ]
        for index in range(groups):
            policy = DevicePolicy(net, plan.rows, device, seeds.derive(plan.seed, "group", index) >> 1)
            table = self._remote[index] if self._remote else None
            worker = Worker(plan, index, past, policy=policy, table=table)
            worker.cancelled = lambda: self._cancelled
            worker.lend_memory()
            worker.policy.temperature = worker.temperature
            self._workers.append(worker)
            self._blocks.append(DeviceBlock(columns, plan.steps, plan.rows, device))
        for worker, block in zip(self._workers, self._blocks, strict=True):
            worker.policy.start(block)  # captured one after the other: recording is not for threads
        for table in self._remote:
            table.cancelled = lambda: self._cancelled
        self._threads = ThreadPoolExecutor(groups, thread_name_prefix="ludus-group")

    def receive(self, give_up: Callable[[], bool] = never) -> list[Delivery]:
        self._cancelled = self._whole = False
        fills = [self._threads.submit(self._fill, worker, block) for worker, block in self._pairs()]
        running: set[Future[Report]] = set(fills)
        while running:
            done, running = wait(running, LOOK_S, FIRST_EXCEPTION)
            if running and (give_up() or any(fill.exception() for fill in done)):
                self._cancelled = True  # the others end at their next step
        errors = [error for fill in fills if (error := fill.exception())]
        for error in errors:
            if not isinstance(error, Cancelled):
                raise error
        if errors:
            return []
        self._whole = True
        return [
            Delivery(index, 0, block, self._version, fill.result())
            for index, (block, fill) in enumerate(zip(self._blocks, fills, strict=True))
        ]

    def _fill(self, worker: Worker, block: DeviceBlock) -> Report:
        worker.policy.start(block)
        return worker.fill(block)

    def release(self, deliveries: list[Delivery]) -> None:
        pass

    def snapshot(self) -> list[dict[str, Any]]:
        return [worker.snapshot() for worker in self._workers] if self._whole else []

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        for worker, snapshot in zip(self._workers, snapshots, strict=False):
            worker.restore(snapshot)

    def publish(self, vector: np.ndarray, version: int, use_teacher: bool = True) -> None:
        self._version = version  # the network that plays is the one that learned
        for worker in self._workers:
            worker.use_teacher = use_teacher

    def progress(self) -> float | None:
        shares = [worker.beat[1] / block.decisions for worker, block in self._pairs()]
        return sum(shares) / len(shares)

    def _pairs(self) -> Iterator[tuple[Worker, DeviceBlock]]:
        return zip(self._workers, self._blocks, strict=True)

    def health(self) -> dict[str, Any]:
        replaced, pids = sum(table.replaced for table in self._remote), [table.pid for table in self._remote]
        reason = max(self._remote, key=lambda table: table.replaced_at).reason if self._remote else ""
        return {"workers": self.workers, "replaced": replaced, "pids": pids, "reason": reason}

    def close(self) -> None:
        self._cancelled = True
        self._threads.shutdown()
        for table in self._remote:
            table.leave()
        until = time.monotonic() + LEAVE_S  # for all together: each its own would add up
        for table in self._remote:
            table.close(until - time.monotonic())


def _torch_type(dtype: np.dtype) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, dtype)).dtype
