"""Blocks: columns that keep out of each other's way, in memory that another process can fill."""

import ctypes

import numpy as np
import pytest

from ludus import algos
from ludus.config import resolve
from ludus.core.block import ALIGNED, Block, Column, block_bytes
from ludus.core.spec import Part, Spec
from ludus.processes import make_context

ODD = [
    Column("flag", (), np.dtype(bool)),
    Column("obs", (3, 5), np.dtype(np.uint8)),
    Column("none", (0,), np.dtype(bool)),
    Column("value", (), np.dtype(np.float64)),
    Column("reward", (3,), np.dtype(np.float32)),
]
FLOATS = Spec("made up", 1, 0, (Part("obs", (4,), np.dtype(np.float32)),), box=(np.zeros(2), np.ones(2)))
SPECS = [Spec("made up", 3, 11, (Part("obs", (7,)),)), FLOATS]
CONFIG = resolve("tictactoe", algo="ppo")
LAYOUTS = [ODD, *(algos.find("ppo").columns(CONFIG, spec) for spec in SPECS)]
SIZES = [(1, 1), (7, 3), (64, 16)]


@pytest.mark.parametrize("columns", LAYOUTS, ids=["odd", "discrete", "continuous"])
@pytest.mark.parametrize(("steps", "rows"), SIZES)
def test_columns_do_not_overlap(columns, steps, rows):
    block = Block(columns, steps, rows)
    for number, column in enumerate(columns):
        block[column.name][...] = number % 2
    for number, column in enumerate(columns):
        array = block[column.name]
        assert array.shape == (steps, rows, *column.shape) and array.dtype == column.dtype
        assert (array == number % 2).all(), column.name


@pytest.mark.parametrize("columns", LAYOUTS, ids=["odd", "discrete", "continuous"])
@pytest.mark.parametrize(("steps", "rows"), SIZES)
def test_columns_lie_on_multiples_of_a_cache_line_within_the_stated_size(columns, steps, rows):
    size = block_bytes(columns, steps, rows)
    block = Block(columns, steps, rows, bytearray(size))
    begin = min(block[column.name].ctypes.data for column in columns)
    for column in columns:
        array = block[column.name]
        at = array.ctypes.data - begin
        assert at % ALIGNED == 0 and at + array.nbytes <= size, column.name
        assert array.flags.aligned and array.flags.c_contiguous and array.flags.writeable


def test_a_buffer_too_small_is_refused():
    with pytest.raises(ValueError):
        Block(ODD, 7, 3, bytearray(block_bytes(ODD, 7, 3) - ALIGNED))


def test_decisions_are_all_rows_of_all_steps():
    assert Block(ODD, 7, 3).decisions == 21


def fill(memory, steps: int, rows: int) -> None:
    block = Block(ODD, steps, rows, memory)
    block["obs"][...] = np.arange(block["obs"].size).reshape(block["obs"].shape) % 251
    block["reward"][2, 1] = [1.5, -2.5, 3.5]
    block["flag"][-1, -1] = True


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_what_another_process_writes_is_seen_here_without_being_sent(start):
    context = make_context(start)
    memory = context.RawArray(ctypes.c_byte, block_bytes(ODD, 4, 2))
    block = Block(ODD, 4, 2, memory)
    process = context.Process(target=fill, args=(memory, 4, 2))
    process.start()
    process.join(30)
    assert process.exitcode == 0
    np.testing.assert_array_equal(block["obs"].ravel(), np.arange(4 * 2 * 15) % 251)
    assert block["reward"][2, 1].tolist() == [1.5, -2.5, 3.5] and block["reward"].sum() == 2.5
    assert block["flag"].sum() == 1 and block["flag"][-1, -1]
