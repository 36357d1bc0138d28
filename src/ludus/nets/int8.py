"""Board networks in 8-bit integers, for play on CPUs whose matrix products of integers are faster.

Weights are scaled by output channel, activations by position, so that a position looks the same alone or in a
batch and nothing has to be calibrated. The sum of a block's input and output stays float32.
"""

import copy
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from ludus.core.jit import inner, njit
from ludus.nets.board import Block, BoardNet, pooled

LEVELS = 127
WORD = 8
"""Bytes that are copied at a time: channels come in multiples of it."""
TOGETHER = 4
"""Positions that go through all blocks together: more would not stay in a core's cache."""
TRIES = 5
WORTH = 0.8
"""The share of the float network's time below which integers are taken."""


@inner
def copy_words(words, out):
    for i in range(len(out)):
        out[i] = words[i]


@njit(fastmath=True)
def to_columns(x, padded, scales, columns):
    """What a 3x3 convolution of relu(x) takes its products of, in 8 bits.

    x: float32 [B, H, W, C]; padded: int8 [H + 2, W + 2, C], its rim 0; scales: float32 [B], written;
    columns: int64 [B * H * W, 9 * C / WORD], written
    """
    batch, height, width, channels = x.shape
    row, run = width * channels, 3 * channels // WORD
    flat, words = padded.reshape(-1), padded.reshape(-1).view(np.int64)
    for b in range(batch):
        numbers = x[b].reshape(-1)
        bits, top = numbers.view(np.int32), np.int32(0)
        for i in range(bits.size):  # as integers, floats from 0 on have the same order
            top = max(top, bits[i])
        scale = np.int32(top).view(np.float32) / np.float32(LEVELS)
        scales[b], factor = scale, np.float32(1) / max(scale, np.float32(1e-30))
        for y in range(height):
            start = ((y + 1) * (width + 2) + 1) * channels
            line, to = numbers[y * row : (y + 1) * row], flat[start : start + row]
            for i in range(row):
                to[i] = np.int32(max(line[i], np.float32(0)) * factor + np.float32(0.5))
        for y in range(height):
            for z in range(width):
                column = columns[(b * height + y) * width + z]
                for k in range(3):
                    start = ((y + k) * (width + 2) + z) * channels // WORD
                    copy_words(words[start : start + run], column[k * run : (k + 1) * run])


@njit(fastmath=True)
def from_sums(sums, scales, weight_scale, bias, keep, out):
    """out = keep * out + the convolution. sums: int32 [B * H * W, C]; out: float32 [B, H, W, C]"""
    batch, height, width, channels = out.shape
    squares = height * width
    for b in range(batch):
        factor, lines = weight_scale * scales[b], out[b].reshape((squares, channels))
        for i in range(squares):
            line, found = lines[i], sums[b * squares + i]
            for c in range(channels):
                line[c] = keep * line[c] + (found[c] * factor[c] + bias[c])


class Int8Conv:
    """A 3x3 convolution of what is positive in its input."""

    def __init__(self, conv: nn.Conv2d) -> None:
        weight = conv.weight.detach().permute(2, 3, 1, 0).reshape(-1, conv.out_channels)  # [9 * C, out]
        scale = weight.abs().amax(0).clamp_min(1e-30) / LEVELS
        self.weight = torch.round(weight / scale).to(torch.int8).contiguous()
        self.scale, self.bias = scale.numpy(), cast(Tensor, conv.bias).detach().numpy()

    def __call__(self, x: np.ndarray, room: "Room", keep: float, out: np.ndarray) -> None:
        """out = keep * out + conv(relu(x)). Both float32 [B, H, W, C]"""
        batch, height, width, _ = x.shape
        columns = room.columns[: batch * height * width]
        to_columns(x, room.padded, room.scales, columns.view(np.int64))
        sums = torch._int_mm(torch.from_numpy(columns), self.weight)
        from_sums(sums.numpy(), room.scales, self.scale, self.bias, np.float32(keep), out)


class Room:
    """Memory that every convolution uses again."""

    def __init__(self, height: int, width: int, channels: int) -> None:
        self.padded = np.zeros((height + 2, width + 2, channels), np.int8)
        self.columns = np.zeros((TOGETHER * height * width, 9 * channels), np.int8)
        self.scales = np.zeros(TOGETHER, np.float32)
        self.inner = np.zeros((TOGETHER, height, width, channels), np.float32)


class Int8Blocks(nn.Module):
    """The blocks of a BoardNet."""

    def __init__(self, blocks: nn.Sequential) -> None:
        super().__init__()
        whole = [cast(Block, block) for block in blocks]
        self.layers = [(Int8Conv(block.first), Int8Conv(block.second), block.pool) for block in whole]
        self.rooms: list[Room] = []  # of each thread

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels, H, W]. Threads share the positions, not the work on each as torch's would."""
        out = x.permute(0, 2, 3, 1).contiguous().numpy()
        threads = min(torch.get_num_threads(), len(out))
        while len(self.rooms) < threads:
            self.rooms.append(Room(*out.shape[1:]))
        if threads == 1:
            self._go_through(out, self.rooms[0])
        else:
            list(_threads(threads).map(self._go_through, np.array_split(out, threads), self.rooms))
        return torch.from_numpy(out).permute(0, 3, 1, 2)

    def _go_through(self, x: np.ndarray, room: Room) -> None:
        for start in range(0, len(x), TOGETHER):
            self._change(x[start : start + TOGETHER], room)

    def _change(self, x: np.ndarray, room: Room) -> None:
        """x: float32 [B, H, W, C]"""
        inner = room.inner[: len(x)]
        for first, second, pool in self.layers:
            first(x, room, 0.0, inner)
            if pool is not None:
                whole = pooled(torch.from_numpy(inner).permute(0, 3, 1, 2))
                inner += pool(whole).numpy()[:, None, None]
            second(inner, room, 1.0, x)


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "int8", initializer=torch.set_num_threads, initargs=(1,))


def in_int8(net: BoardNet) -> BoardNet:
    """The same network with blocks of integers, for evaluation only."""
    twin = copy.deepcopy(net).requires_grad_(False)
    twin.blocks = Int8Blocks(twin.blocks)  # type: ignore[assignment]
    return twin


def fastest(net: BoardNet) -> BoardNet:
    """The network as this CPU evaluates it fastest."""
    return in_int8(net) if int8_pays(*net.spec.obs_shape[1:], net.config.channels) else net


@functools.cache
@torch.inference_mode()
def int8_pays(height: int, width: int, channels: int) -> bool:
    """Measured on one block: it depends on the CPU, and on what torch knows of it."""
    if channels % WORD:
        return False
    blocks, x = nn.Sequential(Block(channels, pooled=False)), torch.zeros(TOGETHER, channels, height, width)
    whole = blocks.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        return _seconds(Int8Blocks(blocks), x) < WORTH * _seconds(whole, x)
    except (AttributeError, NotImplementedError, RuntimeError):  # this torch has no products of integers
        return False


def _seconds(work: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """The shortest of several times, after one that may compile."""
    took = []
    for _ in range(1 + TRIES):
        start = time.perf_counter()
        work(x)
        took.append(time.perf_counter() - start)
    return min(took[1:])
