"""A residual network for boards: planes in, a choice among many placements and everybody's prospects out.

Without normalisation: each block begins as the identity (its last layer starts at zero), so that deep towers
learn from the first step and compute the same alone or in a batch.
"""

from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ludus.core.spec import Spec
from ludus.nets import NetConfig
from ludus.nets.net import ILLEGAL

POOLED_EVERY = 2
"""Every second block sees the whole board at once, by means and maxima (KataGo's global pooling)."""
VALUE_WIDTH = 64
ALIGNED = 8
"""A GPU's matrix units want widths in multiples of this."""


class Block(nn.Module):
    def __init__(self, channels: int, pooled: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.pool = nn.Linear(2 * channels, channels) if pooled else None
        for last in self.second.parameters():
            nn.init.zeros_(last)

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels, H, W]"""
        inner = self.first(torch.relu(x))
        if self.pool is not None:
            inner = inner + self.pool(pooled(inner))[:, :, None, None]
        return x + self.second(torch.relu(inner))


def pooled(x: Tensor) -> Tensor:
    """Means and maxima over the board, [B, 2 * channels]."""
    return torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)


class BoardNet(nn.Module):
    """What a search asks (`look`), and beside it what is only there to learn from (`forward`).

    The choice is a vector [B, places]: `spec.places` says where in it an action is found.
    """

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        super().__init__()
        self.spec, self.config = spec, config
        depth, channels, squares = spec.obs_shape[0], config.channels, spec.squares
        self.planes = spec.parts[0].planes or depth
        self.stem = nn.Conv2d(self.planes, channels, 3, padding=1)
        numbers = (depth - self.planes) * squares
        self.numbers = nn.Linear(numbers, channels) if numbers else None
        places = [(n + 1) % POOLED_EVERY == 0 for n in range(config.blocks)]
        self.blocks = nn.Sequential(*(Block(channels, here) for here in places))
        if spec.places is None:  # a choice that is not made on squares
            self.policy = nn.Sequential(
                nn.Conv2d(channels, 8, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * squares, spec.actions)
            )
            self.beside = None
        else:
            layers = int(spec.places.max() + 1) // squares
            beside = int(spec.places.max() + 1) - layers * squares
            self.policy = nn.Sequential(nn.Conv2d(channels, layers, 1), nn.Flatten())
            self.beside = nn.Linear(2 * channels, beside) if beside else None
        self.value = nn.Sequential(nn.Linear(2 * channels, VALUE_WIDTH), nn.ReLU())
        self.utility, self.score = nn.Linear(VALUE_WIDTH, spec.values), nn.Linear(VALUE_WIDTH, spec.values)
        self.owner = nn.Conv2d(channels, spec.seats, 1) if spec.owned else None

    def body(self, obs: Tensor) -> Tensor:
        x = self.stem(obs[:, : self.planes].to(self.stem.weight.dtype))
        if self.numbers is not None:
            rest = obs[:, self.planes :].flatten(1).to(x.dtype)
            x = x + self.numbers(rest)[:, :, None, None]
        return torch.relu(self.blocks(x))

    def look(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, places], and what each seat expects in the order of play [B, seats] (of two: the first).

        obs: [B, *obs_shape]
        """
        x = self.body(obs)
        whole = pooled(x)
        return self._choice_and_owner(x, whole)[0], torch.tanh(self.utility(self.value(whole)))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """As `look`, then points in units of the score's scale [B, seats], and the logits of who will own
        each square [B, seats, H, W]."""
        x = self.body(obs)
        whole = pooled(x)
        value = self.value(whole)
        choice, owner = self._choice_and_owner(x, whole)
        return choice, torch.tanh(self.utility(value)), self.score(value), owner

    def _choice_and_owner(self, x: Tensor, whole: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.spec.places is None:
            return self.policy(x), self.owner(x) if self.owner is not None else None
        on_board, owner = self._on_squares(x)
        choice = on_board.flatten(1)
        return choice if self.beside is None else torch.cat([choice, self.beside(whole)], 1), owner

    def _on_squares(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Planes of the choice [B, layers, H, W] and of owners [B, seats, H, W], by one matrix product: apart
        they would be convolutions of 91 and of 2 planes, for which a GPU has no good kernels."""
        heads = [head for head in (self.policy[0], self.owner) if isinstance(head, nn.Conv2d)]
        weight = torch.cat([head.weight.flatten(1) for head in heads])
        bias = torch.cat([cast(Tensor, head.bias) for head in heads])
        spare = -len(bias) % ALIGNED
        planes = F.linear(x.permute(0, 2, 3, 1), F.pad(weight, (0, 0, 0, spare)), F.pad(bias, (0, spare)))
        planes = planes.permute(0, 3, 1, 2)
        layers = heads[0].out_channels
        owner = planes[:, layers : len(bias)] if self.owner is not None else None
        return planes[:, :layers], owner


@torch.inference_mode()
def places_and_values(net: BoardNet, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The network's `look`, from arrays to arrays."""
    logits, value = net.look(torch.from_numpy(obs))
    return logits.numpy(), value.numpy()


class ExportedBoardNet(BoardNet):
    """The same network for use elsewhere: observation and mask in, logits of actions and values out."""

    def forward(self, obs: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        choice, value = self.look(obs)
        if self.spec.places is not None:
            choice = choice[:, torch.from_numpy(self.spec.places)]
        return choice.masked_fill(~legal, ILLEGAL), value
