"""What a table of battles counts of its own work, and where a training tells it."""

import json
import os
import signal
import time

import numpy as np
import pytest

import ludus
from ludus import games, processes
from ludus.games.pokemon import layout
from ludus.games.pokemon.table import COUNTERS, PokemonTable
from ludus.training.remote_table import RemoteTable
from pokemon_setup import needs_simulator, random_choice

TIMES = ("simulator_s", "encoding_s", "serialisation_s")


@pytest.fixture(autouse=True)
def simulator():
    needs_simulator()


def counted(table) -> dict[str, float]:
    return dict(zip(COUNTERS, table.counters(), strict=True))


def play(table, steps: int, seed: int = 1) -> None:
    rng, turn = np.random.default_rng(seed), table.reset(seed)
    for _ in range(steps):
        turn = table.step(random_choice(turn.legal, rng))


def test_a_table_counts_what_its_processes_do():
    table = PokemonTable(4)
    try:
        assert counted(table) == dict.fromkeys(COUNTERS, 0.0) | {"processes": 1.0}
        before = table.pool.cpu_s()
        play(table, 40)
        told, spent = counted(table), table.pool.cpu_s() - before
        meters = table.pool.meters
        assert told["battles"] == meters.starts >= 4 and told["lost"] == 0
        assert told["ticks"] == meters.ticks >= 20  # both seats choose before a tick
        record = layout.wire(table.spec.actions).itemsize
        assert told["bytes_out"] > 4 * 40 * record and 0 < told["bytes_in"] < told["bytes_out"]
        assert min(told[name] for name in TIMES) > 0
        # Beside them, Node compiles; its CPU is told in hundredths of a second.
        assert 0.25 * spent < sum(told[name] for name in TIMES) < spent + 0.1
    finally:
        table.close()


def test_a_table_in_another_process_goes_on_counting_after_its_death():
    table = RemoteTable(processes.make_context(), games.open("pokemon"), 2)
    try:
        play(table, 8)
        first = counted(table)
        assert first["processes"] == 1 and first["ticks"] > 0 and first["simulator_s"] > 0
        os.kill(table.pid, signal.SIGKILL)
        time.sleep(0.1)
        play(table, 4)
        second = counted(table)
        assert second["processes"] == 2 and second["battles"] >= 4
        assert all(second[name] > first[name] for name in ("ticks", "bytes_out", *TIMES))
    finally:
        table.close()


def test_a_training_tells_it(tmp_path):
    folder = ludus.train(
        "pokemon", preset="test", run=tmp_path / "run", decisions=64, workers="0", eval_every=0, sync=True
    )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    sums = {name: sum(line[f"table/{name}"] for line in lines) for name in COUNTERS}
    assert len(lines) == 2 and all(line["table/ticks"] > 0 for line in lines)
    assert sums["processes"] == 1 and sums["battles"] >= 4 and min(sums[name] for name in TIMES) > 0
