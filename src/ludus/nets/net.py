"""The policy and value network in torch, and its weights as one flat vector."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from ludus.core.errors import Usage
from ludus.core.spec import Spec, image_shape
from ludus.nets import NetConfig
from ludus.nets.afterstates import AfterstateHead
from ludus.nets.parts import PartsReader, channels_first, convolutions, orthogonal

ILLEGAL = -70.0
"""Logit of an illegal action, where the best legal one has 0: as good as never. Not lower: exp of less
underflows, at five times the cost."""
NEVER = -1e30
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


class Net(nn.Module):
    """Logits of actions and the value of the seat to move, in units of `value_std` around `value_mean`."""

    obs_mean: Tensor
    obs_std: Tensor
    value_mean: Tensor
    value_std: Tensor

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        super().__init__()
        self.spec, self.config = spec, config
        self.images = config.reads_images(spec)
        self.normalises = any(part.normalised for part in spec.parts) and not self.images
        self.parts = PartsReader(spec, config) if len(spec.parts) > 1 else None
        self.policy_body, width = self._body()
        if config.memory and not config.shared:
            raise Usage("a network with memory shares its layers: leave net.shared on")
        self.cell = nn.LSTMCell(width, config.memory) if config.memory else None
        width = config.memory or width
        self.value_body = None if config.shared else self._body()[0]
        outputs = int(np.prod(spec.box[0].shape)) if spec.box else spec.actions
        self.policy: AfterstateHead | nn.Linear
        if config.head == "afterstates":
            self.policy = AfterstateHead(spec, width, config.afterstate)
        else:
            self.policy = orthogonal(nn.Linear(width, outputs), 0.01)  # near-uniform play at the start
        self.value = orthogonal(nn.Linear(width, 1), 1.0)
        self.log_std = nn.Parameter(torch.zeros(outputs)) if spec.box else None
        size = self.parts.numbers if self.parts else spec.parts[0].size
        self.register_buffer("obs_mean", torch.zeros(size))
        self.register_buffer("obs_std", torch.ones(size))
        self.register_buffer("value_mean", torch.zeros(()))
        self.register_buffer("value_std", torch.ones(()))

    def _body(self) -> tuple[nn.Sequential, int]:
        layers: list[nn.Module] = []
        width = self.parts.width if self.parts else self.spec.parts[0].size
        if self.images:
            layers, width = convolutions(image_shape(self.spec.obs_shape), self.spec.obs_dtype)
        for hidden in self.config.hidden:
            layers += [
                orthogonal(nn.Linear(width, hidden), math.sqrt(2)),
                ACTIVATIONS[self.config.activation](),
            ]
            width = hidden
        return nn.Sequential(*layers), width

    def prepare(self, obs: Tensor) -> Tensor:
        """Observations as the layers want them. obs: [B, *obs_shape], or the bytes of records [B, size]"""
        if self.parts:
            return self.parts(obs, self._normalised(self.numbers(obs)))
        if self.images:
            return channels_first(obs, self.spec.parts[0])
        return self._normalised(self.numbers(obs))

    def numbers(self, obs: Tensor) -> Tensor:
        """Everything observed that is a plain number, float32 [B, N]."""
        return self.parts.numbers_in(obs) if self.parts else obs.flatten(1).float()

    def _normalised(self, numbers: Tensor) -> Tensor:
        if not self.normalises:
            return numbers
        return (numbers - self.obs_mean).div_(self.obs_std).clamp_(-10, 10)

    def forward(
        self, obs: Tensor, legal: Tensor, memory: Tensor | None = None, many: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits [B, A] with illegal ones out of reach, and value [B] in points. memory: [B, 2 * width];
        many: as `AfterstateHead.forward` says"""
        logits, value = self.raw(obs, memory, many)
        return self.masked(logits, legal), value

    def raw(
        self, obs: Tensor, memory: Tensor | None = None, many: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, before masking."""
        return self.look(obs, memory, many)[:2]

    def look(
        self, obs: Tensor, memory: Tensor | None, many: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """As `raw`, and the memory after this decision."""
        x = self.prepare(obs)
        body, after = self.policy_body(x), None
        if memory is not None:
            after = self.remember(body, memory)
            body = after.chunk(2, 1)[0]
        return self.logits_of(obs, body, many), self.value_of(x, body), after

    def logits_of(self, obs: Tensor, body: Tensor, many: int | None = None) -> Tensor:
        """[B, A]; body: what the policy's layers made of the observations"""
        return self.policy(obs, body, many) if isinstance(self.policy, AfterstateHead) else self.policy(body)

    def masked(self, logits: Tensor, legal: Tensor) -> Tensor:
        """The same choice, with the best legal action at 0: nothing else keeps logits from drifting."""
        if not legal.shape[1]:
            return logits
        best = logits.detach().masked_fill(~legal, NEVER).amax(1, keepdim=True)
        return (logits - best).masked_fill(~legal, ILLEGAL)

    def remember(self, body: Tensor, memory: Tensor) -> Tensor:
        """The memory after one more decision, [B, 2 * width]; its first half is what the heads see."""
        assert self.cell is not None
        return torch.cat(self.cell(body, memory.chunk(2, 1)), 1)

    def unroll(self, obs: Tensor, memory: Tensor, fresh: Tensor) -> tuple[Tensor, Tensor]:
        """As `raw`, for stretches of a seat's decisions in a row: the memory is learned through them.

        obs: [C * L, ...], stretch by stretch; memory: [C, 2 * width] at their starts; fresh: [C, L]
        """
        count, length = fresh.shape
        body = self.policy_body(self.prepare(obs)).reshape(count, length, -1)
        seen = []
        for place in range(length):
            memory = self.remember(body[:, place], memory * ~fresh[:, place, None])
            seen.append(memory.chunk(2, 1)[0])
        flat = torch.stack(seen, 1).flatten(0, 1)
        return self.logits_of(obs, flat), self.value_of(obs, flat)

    def value_of(self, x: Tensor, body: Tensor) -> Tensor:
        """[B]; x: prepared observations, body: what the policy's layers made of them."""
        body = self.value_body(x) if self.value_body is not None else body
        return self.value(body).squeeze(1) * self.value_std + self.value_mean

    @torch.no_grad()
    def rescale_value(self, mean: Tensor, std: Tensor) -> None:
        """New units for the value, the value itself unchanged (PopArt, van Hasselt et al. 2016)."""
        self.value.weight.mul_(self.value_std / std)
        self.value.bias.mul_(self.value_std).add_(self.value_mean - mean).div_(std)
        self.value_mean.copy_(mean)
        self.value_std.copy_(std)


def flat_size(net: nn.Module) -> int:
    return sum(tensor.numel() for tensor in net.state_dict().values())


@torch.no_grad()
def flatten(net: nn.Module, out: np.ndarray) -> None:
    """All weights into one float32 vector, in the order of the state dictionary."""
    parts = [tensor.reshape(-1).float() for tensor in net.state_dict().values()]
    torch.from_numpy(out).copy_(torch.cat(parts))


@torch.no_grad()
def unflatten(net: nn.Module, vector: np.ndarray) -> None:
    at = 0
    for tensor in net.state_dict().values():
        part = torch.from_numpy(vector[at : at + tensor.numel()])
        tensor.copy_(part.reshape(tensor.shape))
        at += tensor.numel()
