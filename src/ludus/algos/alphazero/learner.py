"""AlphaZero's learner: remembers what was played, and teaches the network what search and games found."""

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ludus.algos import Phase
from ludus.algos.alphazero import Config, record
from ludus.algos.alphazero.replay import Minibatch, Replay, plain_memory
from ludus.algos.cuda_graph import (
    CudaGraph,
    device_settings,
    fused,
    load_optimiser,
    rate_of,
    recorded_updates,
    set_precision,
    set_rate,
)
from ludus.algos.optimisers import AdamW
from ludus.core.block import ALIGNED, Block
from ludus.core.rules import Rules
from ludus.nets import NetConfig
from ludus.nets.board import BoardNet
from ludus.nets.net import ILLEGAL

AHEAD = 8
"""Minibatches that are prepared beside the updates."""
DRAWING = 6
"""Threads that prepare them beside a GPU. One would be fast enough by itself, but each waits for the GIL,
which all threads that play want too."""
LOSSES = ("policy", "value", "score", "owner")
Answers = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Of `BoardNet.forward`."""


class PackedMinibatch(NamedTuple):
    """A minibatch's memory. It goes to a GPU by one copy: with many threads at work, each call into torch may
    wait for the GIL."""

    memory: Tensor  # uint8
    parts: list[tuple[int, tuple[int, ...], torch.dtype]]  # where they begin, and what they are

    def tensors(self) -> list[Tensor]:
        found = []
        for start, shape, dtype in self.parts:
            size = math.prod(shape) * dtype.itemsize
            found.append(self.memory[start : start + size].view(dtype).view(shape))
        return found


def packed(minibatch: Minibatch) -> PackedMinibatch:
    parts, at = [], 0
    for array in minibatch[:-1]:
        parts.append((at, array.shape, torch.from_numpy(array[:0]).dtype))
        at += -(-array.nbytes // ALIGNED) * ALIGNED
    return PackedMinibatch(torch.from_numpy(minibatch.memory), parts)


def pinned_memory(size: int) -> np.ndarray:
    """Memory that a GPU copies from by itself. torch keeps it for the next one, once the copy is made."""
    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()


def unlisted(logits: Tensor, legal: Tensor, listed: Tensor, policy: Tensor) -> tuple[Tensor, Tensor]:
    """What the search's policy has for all legal actions that it doesn't list, and the logarithm of what the
    network has for them (before it is normalised). Both [B, 1]; logits, legal: [B, L]

    They are one choice in the loss: how it is shared out among them is nothing to learn, so that none of them
    is unlearned only because the list is short.
    """
    is_listed = policy > 0
    # The likeliest stands in for places of the list that are empty.
    others = logits.scatter(1, torch.where(is_listed, listed, listed[:, :1]), ILLEGAL)
    exist = legal.sum(1) > is_listed.sum(1)
    rest = ((1 - policy.sum(1)).clamp_min(0) * exist)[:, None]
    return rest, others.logsumexp(1, keepdim=True)


class AlphaZeroLearner:
    """Owns the network, its optimiser and the replay; turns blocks into updates."""

    def __init__(
        self, rules: Rules, net: NetConfig, config: Config, device: str = "cpu", seed: int = 0
    ) -> None:
        self.spec, self.config, self.device = rules.spec, config, torch.device(device)
        self.on_gpu = self.device.type == "cuda"
        # Older GPUs (Colab's T4) only imitate bfloat16, slower than float32.
        self.in_bfloat16 = self.on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
        self.net = BoardNet(rules.spec, net).to(device)
        self.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        set_precision(self.device)
        # Shapes are few here, so cuDNN can try all its kernels for each instead of guessing.
        torch.backends.cudnn.benchmark = self.on_gpu
        settings = device_settings(config.learning_rate, self.device)
        self.optimiser = AdamW(self.net.parameters(), weight_decay=config.weight_decay, **settings)
        self.replay = Replay(rules, record(config, rules.spec), config.replay_buffer, seed)
        self.phase: Phase = lambda name: nullcontext()
        self.cancelled: Callable[[], bool] = lambda: False
        self.progress = 0.0
        self.rate_scale = 1.0  # smaller after a training was rolled back
        self._owed = 0.0  # updates that are due
        # On a CPU one after the other, as an exact resume needs it; updates take all cores there anyway.
        self._threads = ThreadPoolExecutor(DRAWING if self.on_gpu else 1, thread_name_prefix="ludus-replay")
        # Searches have leaves enough to keep a GPU busy: without priority, learning waits behind them.
        self._stream = torch.cuda.Stream(priority=-1) if self.on_gpu else None
        self._heads = self._compiled_heads() if self.on_gpu else self._eager_heads
        self._recorded: CudaGraph[Tensor] | None = None
        self._given: PackedMinibatch | None = None  # where a recorded update finds its minibatch

    def learn(self, blocks: list[Block], off_policy: bool) -> dict[str, float]:
        """Remember finished blocks and learn from what is remembered. off_policy: as if it mattered here"""
        config, decisions = self.config, sum(block.decisions for block in blocks)
        for block in blocks:
            self.replay.add(block)
        told: dict[str, float] = {"replay/size": self.replay.size}
        if self.replay.size < config.learning_starts:
            return told
        self._owed += config.replay_ratio * decisions / config.minibatch
        falling = 1 - self.progress * (1 - config.learning_rate_end)
        set_rate(self.optimiser, self.rate_scale * config.learning_rate * falling)
        told["learner/learning_rate"] = rate_of(self.optimiser)
        sums, ages = torch.zeros(len(LOSSES) + 2, device=self.device), 0.0
        updates, made = int(self._owed), 0
        minibatches: deque[Future[PackedMinibatch]] = deque()
        with torch.cuda.stream(self._stream):  # nothing without a GPU
            for number in range(updates + AHEAD):
                if number < updates:
                    at, which, age = self.replay.draw(config.minibatch, config.recency)
                    minibatches.append(self._threads.submit(self._prepare, at, which))
                    ages += age
                if number >= AHEAD:
                    with self.phase("drawing"):
                        minibatch = minibatches.popleft().result()
                    with self.phase("optimising"):
                        sums += self._update(minibatch)
                    made += 1
                    if self.cancelled():
                        break
            means = (sums / max(made, 1)).tolist()
        self._owed -= made
        if made:
            *losses, uncertainty, norm = means
            told |= {f"losses/{name}": loss for name, loss in zip(LOSSES, losses, strict=True)}
            told |= {
                "losses/grad_norm": norm, "policy/searched_entropy": uncertainty,
                "replay/age": ages / updates, "learner/updates": made,
            }  # fmt: skip
        return told

    def _prepare(self, at: np.ndarray, which: np.ndarray) -> "PackedMinibatch":
        config, allocate = self.config, pinned_memory if self.on_gpu else plain_memory
        return packed(
            self.replay.minibatch(at, which, config.root_value_weight, config.score_scale, allocate)
        )

    def _update(self, pack: "PackedMinibatch") -> Tensor:
        """One step of the optimiser; the losses, the entropy of the search's policy, the gradient's norm."""
        if not self.on_gpu:
            return self._step(pack.tensors())
        if self._recorded is None or self._given is None or self._given.parts != pack.parts:
            self._given = given = pack._replace(memory=pack.memory.to(self.device))
            self._recorded = recorded_updates(
                self.net, self.optimiser, lambda _: self._step(given.tensors()), 1
            )
        self._given.memory.copy_(pack.memory, non_blocking=True)
        return self._recorded.replay()

    def _step(self, minibatch: list[Tensor]) -> Tensor:
        (policy, value, score, owner), entropy = self._losses(minibatch)
        loss = policy + value + self.config.score_coef * score + self.config.ownership_coef * owner
        self.optimiser.zero_grad(set_to_none=False)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.config.max_grad_norm)
        self.optimiser.step()
        return torch.stack([policy, value, score, owner, entropy, norm]).detach()

    def _eager_heads(self, obs: Tensor) -> Answers:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.in_bfloat16):
            return self.net(obs)

    def _compiled_heads(self) -> Callable[[Tensor], Answers]:
        """Compiled and run before any game begins: later, threads that play would make the compiler wait for
        the GIL, and disturb the measurements by which cuDNN chooses its kernels."""
        shape = self.config.minibatch, *self.spec.obs_shape
        obs = torch.from_numpy(np.zeros(shape, self.spec.obs_dtype)).to(self.device)
        heads = fused(self._eager_heads, obs)
        torch.stack([answer.float().sum() for answer in heads(obs) if answer is not None]).sum().backward()
        self.net.zero_grad(set_to_none=True)
        return heads

    def _losses(self, minibatch: list[Tensor]) -> tuple[list[Tensor], Tensor]:
        obs, places, counts, listed, policy, full, value, score, owner = minibatch
        choice, expected, points, owners = self._heads(obs)
        legal = torch.arange(places.shape[1], device=self.device) < counts[:, None]
        # Once, and before all else: the choice is 20 to 100 times as large as what is legal of it.
        logits = choice.gather(1, places.long()).float().masked_fill(~legal, ILLEGAL)  # [B, L]
        share = full.float() / full.float().sum().clamp_min(1)
        listed = listed.long()
        rest, rest_log = unlisted(logits, legal, listed, policy)
        logs, policy = (torch.cat(pair, 1) for pair in ((logits.gather(1, listed), rest_log), (policy, rest)))
        logs = logs - logits.logsumexp(1, keepdim=True)
        policy_loss = -((policy * logs).sum(1) * share).sum()
        entropy = -((policy * policy.clamp_min(1e-9).log()).sum(1) * share).sum()
        value_loss = (expected.float() - value).square().mean()
        score_loss = F.smooth_l1_loss(points.float(), score)
        owner_loss = torch.zeros((), device=self.device)
        if owners is not None:
            owner_loss = F.binary_cross_entropy_with_logits(owners.float().flatten(2), owner.float())
        # The search's own entropy can't be learned away: without it, the loss shows what is left to learn.
        return [policy_loss - entropy, value_loss, score_loss, owner_loss], entropy

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimiser": self.optimiser.state_dict(), "replay": self.replay.state_dict(),
            "rate_scale": self.rate_scale, "owed": self._owed,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_optimiser(self.optimiser, state["optimiser"])
        self.replay.load_state_dict(state["replay"])
        self.rate_scale, self._owed = state["rate_scale"], state["owed"]
        self._recorded = None  # it knows the optimiser's old tensors
