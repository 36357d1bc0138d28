"""A trial: the convolutions of AlphaZero's network by a Triton kernel that also adds bias and residual and
applies the ReLU, for which cuDNN needs another pass over memory. How fast one is beside cuDNN's; needs CUDA,
a minute. `az_gpu.py` plays with it and learns with it, as its variant `own`.

`az_conv.py try` checks its numbers without a GPU, in Triton's interpreter (TRITON_INTERPRET=1).
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor, nn

from figures import figure
from ludus import games
from ludus.algos.alphazero.evaluators import PlayingCopies
from ludus.algos.cuda_graph import fused
from ludus.nets import NetConfig
from ludus.nets.board import Block, BoardNet, pooled

SIDE, CHANNELS = 14, 96
BATCHES = 512, 1024
BARE, PLAIN, RELU, RESIDUAL = 0, 1, 2, 3
"""What is written: the sum without a bias or with it, its ReLU, or with the residual both."""
LAST = torch.channels_last
CONFIGS = [
    triton.Config({"BLOCK": block, "INNER": 32}, num_warps=warps, num_stages=stages)
    for block, warps, stages in ((64, 4, 4), (128, 4, 3), (128, 4, 5), (128, 8, 4), (256, 8, 3), (256, 8, 5))
]


@triton.jit
def convolve(
    x, weight, bias, before, out, active, rows, SIDE: tl.constexpr, C: tl.constexpr, FIRST: tl.constexpr,
    REST: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """A row is a square of a board. Tiles are powers of two, so 96 channels are 64 (FIRST) and 32 (REST).

    x, before, out, active: [rows, C]; weight: [C, 9, C], of each channel for the nine neighbours' channels
    """
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    line, column = row % (SIDE * SIDE) // SIDE, row % SIDE
    inner, first, rest = tl.arange(0, INNER), tl.arange(0, FIRST), FIRST + tl.arange(0, REST)
    sums = tl.zeros((BLOCK, FIRST), tl.float32)
    more = tl.zeros((BLOCK, REST), tl.float32)
    for step in range(9 * C // INNER):
        near, start = step % 9, step // 9 * INNER
        down, right = near // 3 - 1, near % 3 - 1
        there = (line + down >= 0) & (line + down < SIDE) & (column + right >= 0) & (column + right < SIDE)
        at = (row + down * SIDE + right)[:, None] * C + start + inner[None, :]
        a = tl.load(x + at, mask=(there & (row < rows))[:, None], other=0.0)
        b = weight + near * C + (start + inner)[:, None]
        sums = tl.dot(a, tl.load(b + first[None, :] * (9 * C)), sums)
        more = tl.dot(a, tl.load(b + rest[None, :] * (9 * C)), more)
    finish(sums, bias, before, out, active, row, first, rows, C, MODE)
    finish(more, bias, before, out, active, row, rest, rows, C, MODE)


@triton.jit
def finish(
    sums, bias, before, out, active, row, channel, rows, C: tl.constexpr, MODE: tl.constexpr
):  # fmt: skip
    at, here = row[:, None] * C + channel[None, :], (row < rows)[:, None]
    if MODE > 0:
        sums += tl.load(bias + channel)[None, :]
    if MODE == 3:  # RESIDUAL
        sums += tl.load(before + at, mask=here, other=0.0)
    if MODE != 2:  # RELU
        tl.store(out + at, sums.to(out.dtype.element_ty), mask=here)
    if MODE >= 2:
        tl.store(active + at, tl.maximum(sums, 0.0).to(active.dtype.element_ty), mask=here)


tuned = triton.autotune(CONFIGS, key=["rows", "MODE"])(convolve)


def conv(
    x: Tensor, weight: Tensor, mode: int, bias: Tensor | None = None, before: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The sum and its ReLU, as far as `mode` wants them. x, before: [B, C, SIDE, SIDE]"""
    assert x.shape[1:] == (CHANNELS, SIDE, SIDE)
    x, weight = x.contiguous(memory_format=LAST), weight.contiguous(memory_format=LAST)
    rows, first = x.shape[0] * SIDE**2, 64
    out = torch.empty_like(x) if mode != RELU else x
    active = torch.empty_like(x) if mode >= RELU else x
    given = x, weight, x if bias is None else bias, x if before is None else before, out, active, rows
    sizes = SIDE, CHANNELS, first, CHANNELS - first, mode
    if x.is_cuda:
        tuned[lambda meta: (triton.cdiv(rows, meta["BLOCK"]),)](*given, *sizes)
    else:
        convolve[(triton.cdiv(rows, 64),)](*given, *sizes, 64, 32)
    return out, active


# ---- to play


def add_whole(inner: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """What a block with a pool does between its convolutions."""
    return torch.relu(inner + F.linear(pooled(inner), weight, bias)[:, :, None, None])


class Tower:
    """A network's `look` with these convolutions."""

    def __init__(self, net: BoardNet, obs: Tensor, fuse: Callable[..., Any] = fused) -> None:
        self.net = net
        self._stem = fuse(self._plain_stem, obs)
        x, active = self._stem(obs)
        self._head = fuse(self._plain_head, active)
        pools = [block.pool for block in net.blocks if isinstance(block, Block) and block.pool is not None]
        self._add = fuse(add_whole, x, pools[0].weight, pools[0].bias) if pools else add_whole

    def _plain_stem(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        net = self.net
        x = net.stem(obs[:, : net.planes].to(net.stem.weight.dtype))
        if net.numbers is not None:
            x = x + net.numbers(obs[:, net.planes :].flatten(1).to(x.dtype))[:, :, None, None]
        return x, torch.relu(x)

    def _plain_head(self, x: Tensor) -> tuple[Tensor, Tensor]:
        net, whole = self.net, pooled(x)
        return net._choice_and_owner(x, whole)[0], torch.tanh(net.utility(net.value(whole)))

    def __call__(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        x, active = self._stem(obs)
        for block in self.net.blocks:
            assert isinstance(block, Block)
            if block.pool is None:
                inner = conv(active, block.first.weight, RELU, block.first.bias)[1]
            else:
                inner = conv(active, block.first.weight, PLAIN, block.first.bias)[0]
                inner = self._add(inner, block.pool.weight, block.pool.bias)
            x, active = conv(inner, block.second.weight, RESIDUAL, block.second.bias, x)
        return self._head(active)


@torch.no_grad()
def fuse(copies: PlayingCopies, obs: Tensor) -> None:
    """Instead of `PlayingCopies.fuse`."""
    copies.looks = [Tower(net, obs) for net in copies.nets]


# ---- to learn


@torch.library.custom_op("ludus_bench::conv", mutates_args=())
def conv_to_learn(x: Tensor, weight: Tensor) -> Tensor:
    return conv(x, weight, BARE)[0]


@conv_to_learn.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return torch.empty_like(x)


def keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def gradients(ctx: Any, above: Tensor) -> tuple[Tensor, Tensor]:
    """That of x is a convolution too, from what it went into: by the same weights the other way round."""
    x, weight = ctx.saved_tensors
    above = above.contiguous(memory_format=LAST)
    turned = weight.transpose(0, 1).flip(2, 3).contiguous(memory_format=LAST)
    ones = [1, 1]
    of_weight = torch.ops.aten.convolution_backward(
        above, x, weight, None, ones, ones, ones, False, [0, 0], 1, [False, True, False]
    )[1]
    return conv_to_learn(above, turned), of_weight


conv_to_learn.register_autograd(gradients, setup_context=keep)


def block_forward(block: Block, x: Tensor) -> Tensor:
    """Instead of `Block.forward`."""

    def apply(layer: nn.Conv2d, y: Tensor) -> Tensor:
        assert layer.bias is not None
        return conv_to_learn(y, layer.weight.to(y.dtype)) + layer.bias.to(y.dtype)[:, None, None]

    inner = apply(block.first, torch.relu(x))
    if block.pool is not None:
        inner = inner + block.pool(pooled(inner))[:, :, None, None]
    return x + apply(block.second, torch.relu(inner))


# ---- one convolution beside cuDNN's


def make_layer(device: str, dtype: torch.dtype) -> nn.Conv2d:
    torch.manual_seed(0)
    layer = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1).requires_grad_(False).to(device, dtype)
    return layer.to(memory_format=LAST)  # type: ignore[call-overload]


def teraflops(work: Callable[[], object], batch: int, times: int = 100) -> float:
    """Recorded, so that launching costs nothing."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return 2 * times * batch * SIDE**2 * 9 * CHANNELS**2 / begin.elapsed_time(end) / 1e9


def measure(batch: int) -> None:
    layer = make_layer("cuda", torch.bfloat16)
    x = torch.randn(batch, CHANNELS, SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    x = x.contiguous(memory_format=LAST)
    torch.backends.cudnn.benchmark = True
    for limit in (1, 10, 0):
        torch.backends.cudnn.benchmark_limit = limit
        some = x[: batch - limit]  # what it chose for a shape stays, so each has another
        bare = teraflops(lambda some=some: F.conv2d(some, layer.weight, None, padding=1), len(some))
        figure(f"conv.cudnn.{batch}.{limit or 'all'}", bare, "TFLOP/s, without bias and ReLU")
    relu = fused(lambda y: torch.relu(y + layer.bias[:, None, None]), x)
    both = teraflops(lambda: relu(F.conv2d(x, layer.weight, None, padding=1)), batch)
    figure(f"conv.cudnn.{batch}.relu", both, "TFLOP/s, with a second kernel for bias and ReLU")
    for mode, name in ((BARE, "bare"), (RELU, "relu"), (RESIDUAL, "residual")):
        speed = teraflops(lambda mode=mode: conv(x, layer.weight, mode, layer.bias, x), batch)
        figure(f"conv.own.{batch}.{name}", speed, f"TFLOP/s by {tuned.best_config}")
    apart = float((conv(x, layer.weight, RELU, layer.bias)[1] - F.relu(layer(x))).abs().max())
    print(f"    its numbers are at most {apart:.2g} from cuDNN's")


def try_out() -> None:
    spec = games.open("blokus").spec
    torch.manual_seed(0)
    net = BoardNet(spec, NetConfig(channels=CHANNELS, blocks=2)).eval().requires_grad_(False)
    net.to(memory_format=LAST)  # type: ignore[call-overload]
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.03)
    obs = torch.randint(2, (2, *spec.obs_shape), dtype=torch.uint8)
    tower = Tower(net, obs, fuse=lambda function, *example: function)
    torch.testing.assert_close(tower(obs), net.look(obs), atol=1e-4, rtol=1e-3)
    print("its numbers are those of the network, which spread by", float(net.look(obs)[0].std()))
    block, x = net.blocks[1].requires_grad_(True), torch.randn(2, CHANNELS, SIDE, SIDE).to(memory_format=LAST)
    expected = gradients_of(block, block, x)
    found = gradients_of(lambda x: block_forward(block, x), block, x)
    compiled = torch.compile(lambda x: block_forward(block, x), backend="aot_eager", fullgraph=True)
    for some in (found, gradients_of(compiled, block, x)):
        torch.testing.assert_close(some, expected, atol=1e-3, rtol=1e-3)
    print("and so are its gradients, which spread by", float(expected[0].std()))


def gradients_of(forward: Callable[[Tensor], Tensor], block: nn.Module, x: Tensor) -> list[Tensor]:
    """Of something that needs all outputs, by the input and by the weights."""
    x = x.clone(memory_format=torch.preserve_format).requires_grad_(True)
    return list(torch.autograd.grad(forward(x).square().sum() / 100, [x, *block.parameters()]))


def main() -> None:
    if sys.argv[1:] == ["try"]:
        return try_out()
    if not torch.cuda.is_available():
        sys.exit("bench/az_conv.py needs a CUDA GPU")
    with torch.no_grad():
        for batch in BATCHES:
            measure(batch)


if __name__ == "__main__":
    main()
