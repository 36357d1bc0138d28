"""Products of 8-bit integers by this CPU's own instructions. Numba has no words for them, so they are written
here in LLVM's language. Knows nothing of networks.
"""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic


def _has(feature: str) -> bool:
    """Whether numba compiles for CPUs that have it."""
    if config.CPU_FEATURES is not None:
        return f"+{feature}" in config.CPU_FEATURES.split(",")
    return bool(config.ENABLE_AVX and binding.get_host_cpu_features().get(feature))


VNNI, AVX2 = _has("avx512vnni"), _has("avx2")
IS_FAST = VNNI or AVX2
"""Faster than floats: 4 times with VNNI, twice with AVX2. Without them it works, but doesn't pay."""
LANES = 16 if VNNI else 8
"""Numbers of 32 bits in a register."""
PIXELS, CHANNELS = 7 if VNNI else 4, 2 * LANES
"""What a tile has. Its sums, two registers of weights and one of inputs just fit into a CPU's registers."""
BYTES = 4
"""Numbers of 8 bits whose products an instruction adds up."""

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
SUMS = ir.VectorType(I32, LANES)


def _dot(builder: ir.IRBuilder, sums: ir.Value, inputs: ir.Value, weights: ir.Value) -> ir.Value:
    """sums + inputs * weights. inputs: 0 to 127, so that no sum of two products is too long for 16 bits."""

    def call(name: str, made: ir.Type, *args: ir.Value) -> ir.Value:
        kind = ir.FunctionType(made, [arg.type for arg in args])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    if VNNI:
        return call("llvm.x86.avx512.vpdpbusd.512", SUMS, sums, inputs, weights)
    inputs, weights = (builder.bitcast(some, ir.VectorType(I8, LANES * BYTES)) for some in (inputs, weights))
    if AVX2:
        middle = ir.VectorType(I16, 2 * LANES)
        pairs = call("llvm.x86.avx2.pmadd.ub.sw", middle, inputs, weights)
        ones = ir.Constant(middle, [1] * 2 * LANES)
        return builder.add(sums, call("llvm.x86.avx2.pmadd.wd", SUMS, pairs, ones))
    whole = ir.VectorType(I32, LANES * BYTES)
    products = builder.mul(builder.zext(inputs, whole), builder.sext(weights, whole))
    for k in range(BYTES):
        every = ir.Constant(SUMS, list(range(k, LANES * BYTES, BYTES)))
        sums = builder.add(sums, builder.shuffle_vector(products, products, every))
    return sums


@intrinsic
def convolve_tile(
    typing: Any, image: Any, start: Any, pixel: Any, line: Any, size: Any, weights: Any, first: Any,
    sums: Any, at: Any, width: Any,
) -> Any:  # fmt: skip
    """A convolution of size x size squares for PIXELS neighbours in a line and CHANNELS outputs.

    image: uint8 [...], from `start` on; pixel, line: bytes from one to the next
    weights: int8 [...], from `first` on [size lines, size * pixel / BYTES, CHANNELS, BYTES]
    sums: int32 [...], written from `at` on [PIXELS, width]
    """
    signature = types.void(image, start, pixel, line, size, weights, first, sums, at, width)

    def write(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, start, pixel, line, size, _, first, _, at, width = args

        def address(array: int, offset: ir.Value, kind: ir.Type) -> ir.Value:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())

        def plus(base: ir.Value, step: ir.Value | int, times: ir.Value | int) -> ir.Value:
            step, times = (I64(part) if isinstance(part, int) else part for part in (step, times))
            return builder.add(base, builder.mul(step, times))

        none = ir.Constant(SUMS, [0] * LANES)
        kept = [[cgutils.alloca_once_value(builder, none) for _ in range(2)] for _ in range(PIXELS)]
        steps = builder.udiv(builder.mul(pixel, size), I64(BYTES))  # neighbours lie side by side
        with cgutils.for_range(builder, size) as lines:
            here, weight = plus(start, line, lines.index), builder.mul(steps, lines.index)
            with cgutils.for_range(builder, steps) as loop:
                found = plus(first, CHANNELS * BYTES, builder.add(weight, loop.index))
                halves = [
                    builder.load(address(5, plus(found, LANES * BYTES, half), SUMS), align=1)
                    for half in range(2)
                ]
                inputs = plus(here, BYTES, loop.index)
                for number, row in enumerate(kept):
                    word = builder.load(address(0, plus(inputs, pixel, number), I32), align=1)
                    one = builder.insert_element(ir.Constant(SUMS, ir.Undefined), word, I32(0))
                    same = builder.shuffle_vector(one, one, ir.Constant(SUMS, [0] * LANES))
                    for so_far, half in zip(row, halves, strict=True):
                        builder.store(_dot(builder, builder.load(so_far), same, half), so_far)
        for number, row in enumerate(kept):
            for half, so_far in enumerate(row):
                place = plus(plus(at, width, number), LANES, half)
                builder.store(builder.load(so_far), address(7, place, SUMS), align=1)
        return context.get_dummy_value()

    return signature, write
