"""Board networks in 8-bit integers, for play on CPUs whose products of integers are faster.

Weights are scaled by output channel, activations by position, so that a position looks the same alone or in a
batch and nothing has to be calibrated. The sum of a block's input and output stays float32. All blocks are
one compiled call, so that threads which share the positions never wait for Python's lock.
"""

import copy
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from ludus.core.jit import inner, njit
from ludus.nets.board import Block, BoardNet
from ludus.nets.int8_tile import BYTES, CHANNELS, IS_FAST, PIXELS, convolve_tile

LEVELS = 127


class Layers(NamedTuple):
    """The blocks' convolutions, two for each: L of them, P blocks that see the whole board."""

    weights: np.ndarray  # int8 [L, size], as `convolve_tile` reads them, for one CHANNELS after the other
    scale: np.ndarray  # float32 [L, C]: of each output channel
    bias: np.ndarray  # float32 [L, C]
    pool: np.ndarray  # int64 [blocks]: which of the P it is, or -1
    pool_weight: np.ndarray  # float32 [P, 2 * C, C]: from means and maxima
    pool_bias: np.ndarray  # float32 [P, C]


def make_layers(blocks: list[Block]) -> Layers:
    convs = [conv for block in blocks for conv in (block.first, block.second)]
    scales = [conv.weight.detach().abs().amax((1, 2, 3)).clamp_min(1e-30) / LEVELS for conv in convs]
    has_pool = np.array([block.pool is not None for block in blocks])
    pools = [block.pool for block in blocks if block.pool is not None]
    channels = convs[0].out_channels
    return Layers(
        np.array([in_tiles(conv.weight.detach(), scale) for conv, scale in zip(convs, scales, strict=True)]),
        torch.stack(scales).numpy(),
        np.array([cast(Tensor, conv.bias).numpy(force=True) for conv in convs]),
        np.where(has_pool, has_pool.cumsum() - 1, -1),
        np.array([pool.weight.numpy(force=True).T for pool in pools], np.float32).reshape(
            -1, 2 * channels, channels
        ),
        np.array([pool.bias.numpy(force=True) for pool in pools], np.float32).reshape(-1, channels),
    )


def in_tiles(weight: Tensor, scale: Tensor) -> np.ndarray:
    """Weights of a convolution as `convolve_tile` reads them; channels that a last tile lacks are 0.

    weight: float32 [out, in, 3, 3]; scale: [out]
    """
    rounded = torch.round(weight / scale[:, None, None, None]).to(torch.int8)
    whole = rounded.permute(0, 2, 3, 1).flatten(1).numpy()
    whole = np.pad(whole, ((0, -len(whole) % CHANNELS), (0, 0)))  # [out, 9 * in]
    return whole.reshape(-1, CHANNELS, whole.shape[1] // BYTES, BYTES).swapaxes(1, 2).ravel()


@inner(fastmath=True)
def quantise(x, image):
    """relu(x) in 8 bits, inside the rim of an image; what 1 stands for. x: float32 [H, W, C];
    image: uint8 [H + 2, W + 2 or more, C]"""
    height, width, channels = x.shape
    numbers, flat, row = x.reshape(-1), image.reshape(-1), width * channels
    bits, top = numbers.view(np.int32), np.int32(0)
    for i in range(bits.size):  # as integers, floats from 0 on have the same order
        top = max(top, bits[i])
    scale = np.int32(top).view(np.float32) / np.float32(LEVELS)
    factor = np.float32(1) / max(scale, np.float32(1e-30))
    for y in range(height):
        start = ((y + 1) * image.shape[1] + 1) * channels
        line, to = numbers[y * row : (y + 1) * row], flat[start : start + row]
        for i in range(row):
            to[i] = np.int32(max(line[i], np.float32(0)) * factor + np.float32(0.5))
    return scale


@njit(fastmath=True)
def convolve(x, weights, weight_scale, bias, keep, image, sums, out):
    """out = keep * out + a 3x3 convolution of relu(x). x, out: float32 [H, W, C]; sums: int32 [W or more,
    tiles]"""
    height, width, channels = x.shape
    factor = weight_scale * quantise(x, image)
    tiles, line, size = sums.shape[1], image.shape[1] * channels, 9 * channels * CHANNELS
    flat, found = image.reshape(-1), sums.reshape(-1)
    for y in range(height):
        for tile in range(tiles // CHANNELS):
            for step in range((width + PIXELS - 1) // PIXELS):
                z = min(step * PIXELS, len(sums) - PIXELS)  # the last one may do some once more
                start, at = y * line + z * channels, z * tiles + tile * CHANNELS
                convolve_tile(flat, start, channels, line, weights, tile * size, found, at, tiles)
        for z in range(width):
            row, to = sums[z], out[y, z]
            for c in range(channels):
                to[c] = keep * to[c] + (row[c] * factor[c] + bias[c])


@njit
def make_room(height, width, channels):
    """An image and sums for `convolve`, large enough for a tile."""
    room, tiles = max(width, PIXELS), -(-channels // CHANNELS) * CHANNELS
    return np.zeros((height + 2, room + 2, channels), np.uint8), np.empty((room, tiles), np.int32)


@inner(fastmath=True)
def see_all(x, weight, bias):
    """Add to every square what means and maxima over the board say. x: float32 [H, W, C]; weight: [2C, C]"""
    height, width, channels = x.shape
    squares = x.reshape((height * width, channels))
    mean, most, more = np.zeros(channels, np.float32), squares[0].copy(), bias.copy()
    for i in range(len(squares)):
        for c in range(channels):
            mean[c] += squares[i, c]
            most[c] = max(most[c], squares[i, c])
    for k in range(channels):
        for c in range(channels):
            more[c] += mean[k] / np.float32(len(squares)) * weight[k, c] + most[k] * weight[channels + k, c]
    for i in range(len(squares)):
        for c in range(channels):
            squares[i, c] += more[c]


@njit
def go_through(x, layers):
    """All blocks. x: float32 [B, H, W, C], changed"""
    batch, height, width, channels = x.shape
    image, sums = make_room(height, width, channels)
    within = np.zeros((height, width, channels), np.float32)  # not empty: 0 * nan is nan
    weights, scale, bias = layers.weights, layers.scale, layers.bias
    for b in range(batch):
        for block in range(len(layers.pool)):
            k, pool = 2 * block, layers.pool[block]
            convolve(x[b], weights[k], scale[k], bias[k], np.float32(0), image, sums, within)
            if pool >= 0:
                see_all(within, layers.pool_weight[pool], layers.pool_bias[pool])
            k += 1
            convolve(within, weights[k], scale[k], bias[k], np.float32(1), image, sums, x[b])


class Int8Blocks(nn.Module):
    """The blocks of a BoardNet."""

    def __init__(self, blocks: nn.Sequential) -> None:
        super().__init__()
        self.layers = make_layers([cast(Block, block) for block in blocks])

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels, H, W]. Threads share the positions, not the work on each as torch's would."""
        out = x.permute(0, 2, 3, 1).contiguous().numpy()
        ours, *others = np.array_split(out, min(torch.get_num_threads(), len(out)))
        elsewhere = [_threads(len(others)).submit(go_through, part, self.layers) for part in others]
        go_through(ours, self.layers)
        for part in elsewhere:
            part.result()
        return torch.from_numpy(out).permute(0, 3, 1, 2)


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "int8")


def in_int8(net: BoardNet) -> BoardNet:
    """The same network with blocks of integers, for evaluation only."""
    twin = copy.deepcopy(net).requires_grad_(False)
    twin.blocks = Int8Blocks(twin.blocks)  # type: ignore[assignment]
    return twin


def fastest(net: BoardNet) -> BoardNet:
    """The network as this CPU evaluates it fastest."""
    return in_int8(net) if IS_FAST and net.config.channels % BYTES == 0 else net
