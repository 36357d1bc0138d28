"""Board networks in 8-bit integers, for play on CPUs whose products of integers are faster.

Weights are scaled by output channel, activations by position, so that a position looks the same alone or in a
batch and nothing has to be calibrated. The sum of a block's input and output stays float32, and so do the
first layer, whose inputs are mostly 0, and the values. A position is one compiled call, so that threads which
share the positions never wait for Python's lock.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from ludus.core.jit import inner, njit
from ludus.nets.board import Block, BoardNet, places_and_values
from ludus.nets.int8_tile import BYTES, CHANNELS, IS_FAST, PIXELS, convolve_tile

LEVELS = 127


class Convolutions(NamedTuple):
    """L of them, of the same shape."""

    weights: np.ndarray  # int8 [L, size], as `convolve_tile` reads them, for one CHANNELS after the other
    scale: np.ndarray  # float32 [L, out]
    bias: np.ndarray  # float32 [L, out]


class Layers(NamedTuple):
    """A BoardNet of C channels. Matrices are [in, out]; those that a network lacks have no inputs."""

    stem: np.ndarray  # float32 [3, 3, planes, C]
    numbers: np.ndarray  # float32 [numbers, C]
    stem_bias: np.ndarray  # float32 [C]: of both
    blocks: Convolutions  # two for each
    pool: np.ndarray  # int64 [blocks]: which of the P that see the whole board it is, or -1
    pool_weight: np.ndarray  # float32 [P, 2 * C, C]: from means and maxima
    pool_bias: np.ndarray  # float32 [P, C]
    policy: Convolutions  # one, 1x1
    choice: np.ndarray  # float32 [planes of the policy * squares, actions]
    choice_bias: np.ndarray  # float32 [actions]
    beside: np.ndarray  # float32 [2 * C, what is chosen beside the board]
    beside_bias: np.ndarray
    value: np.ndarray  # float32 [2 * C, V]
    value_bias: np.ndarray  # float32 [V]
    utility: np.ndarray  # float32 [V, values]
    utility_bias: np.ndarray  # float32 [values]


def make_layers(net: BoardNet) -> Layers:
    channels, blocks = net.config.channels, [cast(Block, block) for block in net.blocks]
    has_pool = np.array([block.pool is not None for block in blocks])
    pools = [matrix(block.pool, 2 * channels) for block in blocks if block.pool is not None]
    numbers, numbers_bias = matrix(net.numbers, channels)
    on_board = cast(nn.Conv2d, net.policy[0])
    return Layers(
        as_array(net.stem.weight.permute(2, 3, 1, 0)),
        numbers,
        as_array(cast(Tensor, net.stem.bias)) + numbers_bias,
        in_integers([conv for block in blocks for conv in (block.first, block.second)]),
        np.where(has_pool, has_pool.cumsum() - 1, -1),
        np.array([weight for weight, _ in pools], np.float32).reshape(-1, 2 * channels, channels),
        np.array([bias for _, bias in pools], np.float32).reshape(-1, channels),
        in_integers([on_board]),
        *matrix(cast(nn.Linear, net.policy[-1]) if net.spec.places is None else None),
        *matrix(net.beside),
        *matrix(cast(nn.Linear, net.value[0])),
        *matrix(net.utility),
    )


def as_array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.numpy(force=True))


def matrix(layer: nn.Linear | None, width: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights [in, out] and bias [out]. width: of nothing"""
    if layer is None:
        return np.zeros((0, width), np.float32), np.zeros(width, np.float32)
    return as_array(layer.weight.T), as_array(layer.bias)


def in_integers(convs: list[nn.Conv2d]) -> Convolutions:
    scales = [conv.weight.detach().abs().amax((1, 2, 3)).clamp_min(1e-30) / LEVELS for conv in convs]
    return Convolutions(
        np.array([in_tiles(conv.weight.detach(), scale) for conv, scale in zip(convs, scales, strict=True)]),
        torch.stack(scales).numpy(),
        np.array([as_array(cast(Tensor, conv.bias)) for conv in convs]),
    )


def in_tiles(weight: Tensor, scale: Tensor) -> np.ndarray:
    """Weights of a convolution as `convolve_tile` reads them; channels that a last tile lacks are 0.

    weight: float32 [out, in, size, size]; scale: [out]
    """
    rounded = torch.round(weight / scale[:, None, None, None]).to(torch.int8)
    whole = rounded.permute(0, 2, 3, 1).flatten(1).numpy()
    whole = np.pad(whole, ((0, -len(whole) % CHANNELS), (0, 0)))  # [out, size * size * in]
    return whole.reshape(-1, CHANNELS, whole.shape[1] // BYTES, BYTES).swapaxes(1, 2).ravel()


# ---- convolutions


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
def convolve(x, size, weights, weight_scale, bias, keep, image, sums, out):
    """out = keep * out + a convolution of relu(x). x: float32 [H, W, C]; out: float32 [H, W, D]; size: 1 or 3
    squares; sums: int32 [W or more, tiles]"""
    height, width, channels = x.shape
    factor, rim = weight_scale * quantise(x, image), (3 - size) // 2
    tiles, line = sums.shape[1], image.shape[1] * channels
    flat, found = image.reshape(-1), sums.reshape(-1)
    for y in range(height):
        for tile in range(tiles // CHANNELS):
            for step in range((width + PIXELS - 1) // PIXELS):
                z = min(step * PIXELS, len(sums) - PIXELS)  # the last one may do some once more
                start, at = (y + rim) * line + (z + rim) * channels, z * tiles + tile * CHANNELS
                first = tile * size * size * channels * CHANNELS
                convolve_tile(flat, start, channels, line, size, weights, first, found, at, tiles)
        for z in range(width):
            row, to = sums[z], out[y, z]
            for c in range(len(to)):
                to[c] = keep * to[c] + (row[c] * factor[c] + bias[c])


@njit
def make_image(height, width, channels):
    """For `convolve`, large enough for a tile."""
    return np.zeros((height + 2, max(width, PIXELS) + 2, channels), np.uint8)


@njit
def make_sums(width, outputs):
    return np.empty((max(width, PIXELS), -(-outputs // CHANNELS) * CHANNELS), np.int32)


@inner(fastmath=True)
def convolve_sparse(planes, weight, out):
    """out += a 3x3 convolution of planes that are mostly 0. planes: [P, H, W]; weight: float32 [3, 3, P, C];
    out: float32 [H, W, C]"""
    height, width, channels = out.shape
    for p in range(weight.shape[2]):
        for y in range(height):
            for z in range(width):
                number = np.float32(planes[p, y, z])
                for i in range(9 if number != 0 else 0):
                    v, w = y + 1 - i // 3, z + 1 - i % 3
                    if 0 <= v < height and 0 <= w < width:
                        to, some = out[v, w], weight[i // 3, i % 3, p]
                        for c in range(channels):
                            to[c] += number * some[c]


# ---- all other layers


@inner(fastmath=True)
def add_product(x, weight, out):
    """out += x @ weight. x: [in]; weight: float32 [in, out]; out: float32 [out]"""
    for k in range(len(weight)):
        number = np.float32(x[k])
        if number != 0:
            for c in range(len(out)):
                out[c] += number * weight[k, c]


@inner(fastmath=True)
def pool_board(x, out):
    """Means and maxima over the board. x: float32 [H, W, C]; out: float32 [2 * C]"""
    height, width, channels = x.shape
    squares = x.reshape((height * width, channels))
    mean, most = out[:channels], out[channels:]
    mean[:], most[:] = 0, squares[0]
    for i in range(len(squares)):
        for c in range(channels):
            mean[c] += squares[i, c]
            most[c] = max(most[c], squares[i, c])
    mean /= np.float32(len(squares))


@inner(fastmath=True)
def add_everywhere(numbers, out):
    """To every square. numbers: float32 [C]; out: float32 [H, W, C]"""
    for y in range(out.shape[0]):
        for z in range(out.shape[1]):
            for c in range(len(numbers)):
                out[y, z, c] += numbers[c]


@inner
def relu(x):
    numbers = x.reshape(-1)
    for i in range(len(numbers)):
        numbers[i] = max(numbers[i], np.float32(0))


@inner
def begin(obs, layers, out):
    """The first layer. obs: [depth, H, W]; out: float32 [H, W, C]"""
    planes, constant = layers.stem.shape[2], layers.stem_bias.copy()
    add_product(obs[planes:].reshape(-1), layers.numbers, constant)
    out[:] = 0
    add_everywhere(constant, out)
    convolve_sparse(obs[:planes], layers.stem, out)


@inner
def go_through(x, layers, image, sums, within, whole):
    """All blocks. x: float32 [H, W, C], changed; within: of the same shape; whole: float32 [2 * C]"""
    weights, scale, bias = layers.blocks
    for block in range(len(layers.pool)):
        k, pool = 2 * block, layers.pool[block]
        convolve(x, 3, weights[k], scale[k], bias[k], np.float32(0), image, sums, within)
        if pool >= 0:
            pool_board(within, whole)
            more = layers.pool_bias[pool].copy()
            add_product(whole, layers.pool_weight[pool], more)
            add_everywhere(more, within)
        k += 1
        convolve(within, 3, weights[k], scale[k], bias[k], np.float32(1), image, sums, x)


@inner
def read_choice(planes, whole, layers, out):
    """Logits of the choice. planes: float32 [H, W, D]; whole: [2 * C]; out: float32 [places]"""
    height, width, depth = planes.shape
    squares, flat = height * width, np.empty(height * width * depth, np.float32)
    numbers = planes.reshape((squares, depth))
    for d in range(depth):
        for i in range(squares):
            flat[d * squares + i] = numbers[i, d]
    if len(layers.choice):
        relu(flat)
        out[:] = layers.choice_bias
        add_product(flat, layers.choice, out)
    else:
        out[: len(flat)], out[len(flat) :] = flat, layers.beside_bias
        add_product(whole, layers.beside, out[len(flat) :])


@inner
def read_value(whole, layers, out):
    """whole: float32 [2 * C]; out: float32 [values]"""
    value = layers.value_bias.copy()
    add_product(whole, layers.value, value)
    relu(value)
    out[:] = layers.utility_bias
    add_product(value, layers.utility, out)
    for s in range(len(out)):
        out[s] = np.tanh(out[s])


@njit
def look(obs, layers, logits, values):
    """As the `look` of a BoardNet. obs: [B, depth, H, W]; to be written: float32 logits [B, places] and
    values [B, values]"""
    height, width = obs.shape[2:]
    channels, depth = len(layers.stem_bias), layers.policy.bias.shape[1]
    image = make_image(height, width, channels)
    sums, policy_sums = make_sums(width, channels), make_sums(width, depth)
    x, whole = np.empty((height, width, channels), np.float32), np.empty(2 * channels, np.float32)
    within, planes = np.zeros_like(x), np.zeros((height, width, depth), np.float32)  # 0 * nan would be nan
    weights, scale, bias = layers.policy
    for b in range(len(obs)):
        begin(obs[b], layers, x)
        go_through(x, layers, image, sums, within, whole)
        relu(x)
        pool_board(x, whole)
        convolve(x, 1, weights[0], scale[0], bias[0], np.float32(0), image, policy_sums, planes)
        read_choice(planes, whole, layers, logits[b])
        read_value(whole, layers, values[b])


class Int8Net:
    """A BoardNet's `look`, from arrays to arrays."""

    def __init__(self, net: BoardNet) -> None:
        spec = net.spec
        self.layers, self.values = make_layers(net), spec.values
        self.places = spec.actions if spec.places is None else int(spec.places.max()) + 1

    def __call__(self, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Threads share the positions, not the work on each as torch's would."""
        logits = np.empty((len(obs), self.places), np.float32)
        values = np.empty((len(obs), self.values), np.float32)
        threads = torch.get_num_threads()
        count = min(threads, len(obs))
        ours, *others = zip(*(np.array_split(array, count) for array in (obs, logits, values)), strict=True)
        elsewhere = [_threads(threads).submit(self._look, *part) for part in others]
        self._look(*ours)
        for part in elsewhere:
            part.result()
        return logits, values

    def _look(self, obs: np.ndarray, logits: np.ndarray, values: np.ndarray) -> None:
        look(obs, self.layers, logits, values)


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "int8")


def fastest(net: BoardNet) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The network's `look` from arrays to arrays, as this CPU computes it fastest."""
    if IS_FAST and net.config.channels % BYTES == 0:
        return Int8Net(net)
    return functools.partial(places_and_values, net)
