"""PPO beside a GPU: the network stays with the learner, on its device, and plays for all tables there."""

import copy
import math
import time
from typing import Any

import numpy as np
import torch

from ludus.algos import Actor, Algorithm, Opponent, Plan, Seating
from ludus.algos.cuda_graph import fused
from ludus.algos.ppo.actor import PpoActor
from ludus.algos.ppo.log_prob import log_prob, normal_log_prob
from ludus.core import seeds
from ludus.core.block import Block, Column, block_bytes
from ludus.core.game import Game
from ludus.core.report import Report
from ludus.core.table import Table, Turn
from ludus.nets.net import Net
from ludus.nets.parts import as_tensor

ON_DEVICE = ("obs", "frames", "legal", "action", "logp", "value")
"""Columns that the policy writes on the device; the others are copied there once the block is full."""


class DeviceBlock(Block):
    """A block whose columns are tensors on the learner's device."""

    def __init__(self, columns: list[Column], steps: int, rows: int, device: torch.device, slot: int) -> None:
        """slot: which of its group's blocks it is"""
        self.slot = slot
        small = [column for column in columns if column.name not in ON_DEVICE]
        pinned = torch.zeros(
            block_bytes(small, steps, rows), dtype=torch.uint8, pin_memory=device.type == "cuda"
        )
        super().__init__(small, steps, rows, pinned.numpy())
        self.tensors = {
            column.name: as_tensor(Block([column], steps, rows)[column.name]).to(device) for column in columns
        }

    def upload(self) -> None:
        """Copy what was written on the host. Each group does this itself; the learner would have to issue
        hundreds of small copies one after another."""
        for column in self.columns:
            self.tensors[column.name].copy_(as_tensor(self[column.name]), non_blocking=True)


class DevicePolicy:
    """Same face as a worker's policy, but the batch is computed on the device and kept in the block."""

    def __init__(self, copies: list["Playing"], rows: int, device: torch.device, seed: int) -> None:
        """copies: of the network, one for each block"""
        self.copies, self.net = copies, copies[0].net
        spec = self.net.spec
        self._rng = torch.Generator(device).manual_seed(seed)
        self.device, self.on_gpu = device, device.type == "cuda"
        pin = self.on_gpu
        self.obs = as_tensor(np.zeros((rows, *spec.obs_shape), spec.obs_dtype))
        self.obs = self.obs.pin_memory() if pin else self.obs
        # As the table writes them; of several parts, the tensor has their bytes.
        self.obs_array = self.obs.numpy().view(spec.obs_dtype).reshape(rows, *spec.obs_shape)
        self.legal = torch.zeros((rows, spec.actions), dtype=torch.bool, pin_memory=pin)
        box = spec.box[0].shape if spec.box else ()
        kind = torch.float32 if spec.box else torch.int32
        self.action = torch.zeros((rows, *box), dtype=kind, pin_memory=pin)
        self.memory = torch.zeros((rows, 2 * self.net.config.memory), pin_memory=pin)  # before, then after
        self.temperature = 1.0
        self.at = torch.zeros(1, dtype=torch.long, device=device)
        self.block: DeviceBlock | None = None
        self._begins = True  # the next decision is the block's first
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        # Small batches that games wait for go before the learner's large ones.
        self.stream = torch.cuda.Stream(priority=-1) if self.on_gpu else None

    def start(self, block: DeviceBlock) -> None:
        """The next decisions go to the start of this block."""
        self.block, self._begins, playing = block, True, self.copies[block.slot]
        self.net = playing.net
        if self.stream is None:
            self.at.zero_()
            return
        if playing.published:
            self.stream.wait_event(playing.published)
        with torch.cuda.stream(self.stream):
            if block.slot not in self._graphs:
                self._graphs[block.slot] = self._capture()
            self.at.zero_()

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: Any, temperature: float, memory: np.ndarray | None
    ) -> tuple[np.ndarray, float, np.ndarray | None]:
        if obs.ctypes.data != self.obs.data_ptr():
            self.obs_array[:] = obs
            self.legal.numpy()[:] = legal
        if memory is not None:
            self.memory.numpy()[:] = memory
        self._keep_earlier_frames()
        if self.stream is None or self.block is None:
            self._compute()
        else:
            self._graphs[self.block.slot].replay()
            self.stream.synchronize()
        return self.action.numpy(), 0.0, None if memory is None else self.memory.numpy()

    def _keep_earlier_frames(self) -> None:
        """Those that a block's first decision sees beside its newest one."""
        if self._begins and (stack := self.net.spec.stack):
            assert self.block is not None
            self.block.tensors["frames"][: stack - 1].copy_(self.obs[:, :-1].transpose(0, 1))
        self._begins = False

    @torch.no_grad()
    def _compute(self) -> None:
        """One decision for every row, from host to block to host; recorded as one graph on a GPU."""
        assert self.block is not None
        obs = self.obs.to(self.device, non_blocking=True)
        legal = self.legal.to(self.device, non_blocking=True)
        before = self.memory.to(self.device, non_blocking=True) if self.net.cell else None
        logits, value, after = self.copies[self.block.slot].look(obs, before)
        action, logp = self._sampled(self.net.masked(logits, legal))
        kept = {"legal": legal, "action": action, "logp": logp, "value": value}
        if stack := self.net.spec.stack:
            self.block.tensors["frames"].index_copy_(0, self.at + stack - 1, obs[:, -1].unsqueeze(0))
        else:
            kept["obs"] = obs
        for name, values in kept.items():
            self.block.tensors[name].index_copy_(0, self.at, values.unsqueeze(0))
        self.at.add_(1)
        self.action.copy_(action, non_blocking=True)
        if after is not None:
            self.memory.copy_(after, non_blocking=True)

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

    @torch.no_grad()
    def _capture(self) -> "torch.cuda.CUDAGraph":
        assert self.stream is not None and self.block is not None
        self.copies[self.block.slot].compile(self.obs.to(self.device), self.memory.to(self.device))
        self.stream.wait_stream(torch.cuda.default_stream(self.device))
        for _ in range(3):
            self.at.zero_()
            self._compute()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._rng)
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self._compute()
        return graph

    def snapshot(self) -> dict[str, Any]:
        return {"rng": self._rng.get_state().numpy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        if not self.on_gpu:  # a recorded graph keeps its own generator
            self._rng.set_state(torch.from_numpy(snapshot["rng"]))

    def value(self, obs: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
        before = None if memory is None else torch.from_numpy(memory).to(self.device)
        with torch.no_grad():
            return self.net.look(as_tensor(obs).to(self.device), before)[1].cpu().numpy()


class CentralActor(PpoActor):
    """An actor whose policy keeps what it saw and chose in blocks on the device."""

    policy: Any

    def choose(self, turn: Turn, block: Block, t: int) -> np.ndarray:
        before = self._recall(block, t)
        actions, _, after = self.policy.act(turn.obs, turn.legal, self.rng, self.temperature, before)
        if self.memory:
            self.memory.put(self.every, turn.seat, after)
        return actions

    def load(self, vector: np.ndarray, progress: float) -> None:
        self.use_teacher = progress < self.plan.settings.teacher_until

    def fill(self, block: Block) -> Report:
        assert isinstance(block, DeviceBlock)
        self.policy.start(block)
        with torch.cuda.stream(self.policy.stream):  # nothing without a GPU
            report = super().fill(block)
            block.upload()
        if self.policy.stream:
            self.policy.stream.synchronize()
        self.idle_since = time.perf_counter()
        return report

    def snapshot(self) -> dict[str, Any]:
        kept = super().snapshot()
        return kept | {"policy": self.policy.snapshot()} if kept else {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        if "policy" in snapshot:  # else inference ran elsewhere then
            self.policy.restore(snapshot["policy"])


class Playing:
    """A network that plays, and since when its weights are those of the learner."""

    def __init__(self, net: Net) -> None:
        self.net, self.look = net, net.look
        self.published: torch.cuda.Event | None = None
        self._is_compiled = net.config.head != "afterstates"

    def compile(self, obs: torch.Tensor, memory: torch.Tensor) -> None:
        """For a GPU, with examples. Afterstates are many small operations, which take long one by one."""
        if not self._is_compiled:
            self.look = fused(self.net.look, obs, memory if self.net.cell else None)
        self._is_compiled = True

    @torch.no_grad()
    def update(self, learner: Net) -> None:
        if self.net is not learner:
            torch._foreach_copy_(list(self.net.state_dict().values()), list(learner.state_dict().values()))
        if next(learner.parameters()).is_cuda:
            self.published = torch.cuda.current_stream().record_event()


class PpoCentral:
    """Without overlap the learner's network plays, which stands still meanwhile. With it every group has two
    blocks, and each of the two a copy of the network: one is played with while the other's block is learned
    from, and gets the weights that came of it."""

    together = True

    def __init__(
        self, algorithm: Algorithm, plan: Plan, game: Game, net: Net, columns: list[Column], overlap: bool
    ) -> None:
        self.algorithm, self.plan, self.game, self.net, self.columns = algorithm, plan, game, net, columns
        self.device = next(net.parameters()).device
        nets = [copy.deepcopy(net) for _ in range(2)] if overlap else [net]
        self.copies = [Playing(net) for net in nets]

    def opponent(self, table: Table, slot: int) -> Opponent:
        return self.algorithm.make_opponent(self.plan, table)

    def add(self, index: int, table: Table, seating: Seating) -> tuple[Actor, list[Block]]:
        plan = self.plan
        seed = seeds.derive(plan.seed, "group", index) >> 1
        policy = DevicePolicy(self.copies, plan.rows, self.device, seed)
        actor = CentralActor(
            plan,
            index,
            self.game,
            table,
            seating,
            np.zeros(3, np.int64),
            policy,  # type: ignore[arg-type]
        )
        actor.turn = table.write_into(policy.obs_array, policy.legal.numpy(), actor.turn)
        policy.temperature = actor.temperature
        blocks = [
            DeviceBlock(self.columns, plan.steps, plan.rows, self.device, slot)
            for slot in range(len(self.copies))
        ]
        for block in blocks:
            policy.start(block)  # captured here: recording is not for threads
        return actor, list(blocks)

    def publish(self, slot: int) -> None:
        self.copies[slot].update(self.net)
