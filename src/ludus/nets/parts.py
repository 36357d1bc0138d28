"""Observations of several parts: each part is read by its kind, and all become one vector."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.spec import Part, Spec, image_shape
from ludus.nets import NetConfig

HEADS = 4
"""Of self-attention."""


def as_tensor(obs: np.ndarray) -> Tensor:
    """Observations without a copy. Records become their bytes [..., size], which `Net` takes apart."""
    if obs.dtype.names:
        obs = obs.view(np.uint8).reshape(*obs.shape, obs.dtype.itemsize)
    return torch.from_numpy(obs)


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class PixelConv2d(nn.Conv2d):
    """Reads pixels of 0 to 255 as 0 to 1: to scale a few weights is cheaper than to scale every pixel."""

    def forward(self, image: Tensor) -> Tensor:
        """image: [B, C, H, W]"""
        return self._conv_forward(image.float(), self.weight / 255, self.bias)


def convolutions(shape: tuple[int, int, int], dtype: np.dtype) -> tuple[list[nn.Module], int]:
    """Small filters for game planes and screens: a third of the Nature network's cost on a CPU."""
    first = PixelConv2d if dtype == np.uint8 else nn.Conv2d
    layers: list[nn.Module] = [
        first(shape[0], 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
    ]  # fmt: skip
    with torch.no_grad():
        width = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
    return layers, width


class Field(NamedTuple):
    """Where a part is in the bytes of a record."""

    part: Part
    start: int
    end: int
    dtype: torch.dtype

    def read(self, obs: Tensor) -> Tensor:
        """obs: uint8 [B, size] -> [B, *shape]"""
        return obs[:, self.start : self.end].view(self.dtype).reshape(-1, *self.part.shape)


class PartsReader(nn.Module):
    def __init__(self, spec: Spec, config: NetConfig) -> None:
        super().__init__()
        self.fields, self.width, self.numbers = _fields(spec), 0, 0
        self.places: dict[str, slice] = {}  # of each part's numbers among all numbers
        self.readers = nn.ModuleDict()
        for field in self.fields:
            part = field.part
            if part.kind in ("flat", "board"):
                self.places[part.name] = slice(self.numbers, self.numbers + part.size)
                self.numbers += part.size
                self.width += 0 if part.of else part.size
            elif part.kind == "image":
                layers, width = convolutions(image_shape(part.shape), part.dtype)
                self.readers[part.name] = nn.Sequential(*layers)
                self.width += width
            else:
                reader = Tokens(part, sum(own.shape[1] for own in _numbers_of(part, spec)), config)
                self.readers[part.name] = reader
                self.width += reader.width

    def numbers_in(self, obs: Tensor) -> Tensor:
        """float32 [B, numbers]"""
        found = [
            field.read(obs).flatten(1).float() for field in self.fields if field.part.name in self.places
        ]
        return torch.cat(found, 1) if found else obs.new_zeros((len(obs), 0), dtype=torch.float32)

    def forward(self, obs: Tensor, numbers: Tensor) -> Tensor:
        """obs: uint8 [B, size]; numbers: `numbers_in` of them, normalised -> [B, width]"""
        found = []
        for field in self.fields:
            part = field.part
            if part.kind == "image":
                found.append(self.readers[part.name](channels_first(field.read(obs), part)))
            elif part.kind == "tokens":
                owned = [
                    numbers[:, self.places[other.part.name]].reshape(-1, *other.part.shape)
                    for other in self.fields
                    if other.part.of == part.name
                ]
                found.append(self.readers[part.name](field.read(obs), owned))
            elif not part.of:
                found.append(numbers[:, self.places[part.name]])
        return torch.cat(found, 1)


class Tokens(nn.Module):
    """Things with ids and numbers: embedded, mixed by self-attention if asked for, and put side by side."""

    starts: Tensor

    def __init__(self, part: Part, numbers: int, config: NetConfig) -> None:
        super().__init__()
        embeddings = [nn.Embedding(size, config.embedding) for size in part.vocabulary]
        for embed in embeddings:
            # Most names are rare: as large as the numbers, they would drown them in noise for a long time.
            nn.init.normal_(embed.weight, std=0.1)
        self.embeddings = nn.ModuleList(embeddings)
        starts = torch.tensor([0, *part.vocabulary[:-1]]).cumsum(0)  # of each column, in a table of all
        self.register_buffer("starts", starts, persistent=False)
        given = len(part.vocabulary) * config.embedding + numbers
        self.layer = orthogonal(nn.Linear(given, config.token), math.sqrt(2))
        self.attention = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    config.token, HEADS, 2 * config.token, dropout=0.0, batch_first=True, norm_first=True
                )
                for _ in range(config.attention)
            )
        )
        self.width = part.shape[0] * config.token

    def forward(self, ids: Tensor, numbers: list[Tensor]) -> Tensor:
        """ids: int [B, N, K]; numbers: [B, N, M] each -> [B, N * token]"""
        embedded = self._embedded(ids).flatten(2)
        # Two products in the place of one: numbers need no gradient.
        own, others = self.layer.weight.split(
            [embedded.shape[2], self.layer.in_features - embedded.shape[2]], 1
        )
        tokens = functional.linear(embedded, own, self.layer.bias)
        if numbers:
            tokens = tokens + functional.linear(torch.cat(numbers, 2), others)
        return self.attention(torch.relu(tokens)).flatten(1)

    def _embedded(self, ids: Tensor) -> Tensor:
        """[B, N, K, embedding]"""
        table = torch.cat(list(self.embeddings.parameters()))
        places = ids.long() + self.starts
        if table.is_cuda:
            return functional.embedding(places, table)
        # On a CPU, an embedding and table[places] take three times as long with their gradients.
        return table.index_select(0, places.flatten()).reshape(*places.shape, table.shape[1])


def _fields(spec: Spec) -> list[Field]:
    offsets: Any = spec.obs_dtype.fields
    found = []
    for part in spec.parts:
        start = offsets[part.name][1]
        dtype = torch.from_numpy(np.zeros(0, part.dtype)).dtype
        found.append(Field(part, start, start + part.size * part.dtype.itemsize, dtype))
    return found


def _numbers_of(tokens: Part, spec: Spec) -> list[Part]:
    return [part for part in spec.parts if part.of == tokens.name]


def channels_first(image: Tensor, part: Part) -> Tensor:
    """[B, C, H, W], whichever way round it is observed."""
    if image.shape[1:] != image_shape(part.shape):
        image = image.permute(0, 3, 1, 2)
    return image if part.dtype == np.uint8 else image.float()
