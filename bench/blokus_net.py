"""A residual network of the usual kind for Blokus, to measure search beside it."""

import numpy as np
import torch
from torch import Tensor, nn

from ludus.games.blokus.pieces import SHAPES


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Net(nn.Module):
    """A plane for each shape says where its corner goes: 13,730 actions for the price of 91 channels."""

    def __init__(self, rules, channels: int, blocks: int) -> None:
        super().__init__()
        board, side = rules.board, rules.board.side
        row, column = np.divmod(board.placement_bit.astype(np.int64), side + 1)
        places = (board.placement_shape.astype(np.int64) * side + row) * side + column
        self.register_buffer("placements", torch.from_numpy(places))
        self.body = nn.Sequential(
            nn.Conv2d(rules.spec.obs_shape[0], channels, 3, padding=1),
            nn.ReLU(),
            *(Block(channels) for _ in range(blocks)),
        )
        self.policy = nn.Conv2d(channels, len(SHAPES), 1)
        self.passing, self.value = nn.Linear(channels, 1), nn.Linear(channels, 1)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, 13730] and the value of the seat to move [B]. obs: uint8 [B, 8, 14, 14]"""
        body = self.body(obs.float())
        pooled = body.mean((2, 3))
        places = self.policy(body).flatten(1)[:, self.placements]
        return torch.cat([places, self.passing(pooled)], 1), torch.tanh(self.value(pooled).squeeze(1))
