"""How a machine is used: workers that come and go, and inference where it is faster."""

import dataclasses
import time
from types import SimpleNamespace

import psutil
import pytest

from ludus import algos, machine
from ludus.config import overlay, resolve
from ludus.core.errors import Usage
from ludus.training import loop, measure
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import Sizer, lay_out
from ludus.training.measure import measured_layout, sized
from trainings import limit, wait_until, workers_of

QUIET = {"memory": 0.3, "others": 0.0, "idle": 0.0, "waiting": 0.3}


@pytest.fixture
def pieces():
    """Everything a pool is made of, for a game with some changes."""

    def make(name: str = "tictactoe", **changes):
        config = overlay(resolve(name, "test", algo=changes.get("algo")), changes, "test")
        game = open_game(config)
        learner = algos.find(config.algo).make_learner(config, game, "cpu")
        return config, game, learner

    return make


def test_workers_leave_and_come_while_training_goes_on(pieces, monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)  # a pool has room for twice as many workers
    config, game, learner = pieces(workers="2")
    pool = make_pool(config, game, learner.net, lay_out(config, game), flat_weights(learner.net))
    try:
        sizes = []
        for wanted in (2, 1, 1, 3, 3, 3):
            pool.resize(wanted)
            deliveries = pool.receive()
            sizes.append(len(deliveries))
            pool.release(deliveries)
        assert sizes[0] == 2 and 1 in sizes[1:3] and sizes[-1] == 3
        assert wait_until(lambda: len(workers_of(psutil.Process())) == 3, 5)
    finally:
        pool.close()
    assert workers_of(psutil.Process()) == []


def test_a_worker_may_leave_when_both_its_blocks_are_learned_from_at_once(pieces):
    config, game, learner = pieces(workers="2")
    layout = dataclasses.replace(lay_out(config, game), overlap=True)
    pool = make_pool(config, game, learner.net, layout, flat_weights(learner.net))
    try:
        while len(pool._ready) < 4:
            pool._start()
            pool._listen()
        pool.resize(1)
        pool.release(pool.receive())
        assert len(pool.health().pids) == 1
        assert pool.receive()
    finally:
        pool.close()


def test_nothing_changes_for_a_moment_only():
    sizer = Sizer(4, cores=4)
    for _ in range(Sizer.LASTS - 1):
        assert sizer.advise(**QUIET | {"memory": 0.95}) == (4, "")
    assert sizer.advise(**QUIET) == (4, "")
    assert sizer.advise(**QUIET | {"memory": 0.95}) == (4, "")


@pytest.mark.parametrize(
    ("seen", "workers", "word"),
    [
        ({"memory": 0.85}, 3, "memory"),
        ({"others": 1.5}, 3, "other programs"),
        ({"idle": 2.0, "waiting": 0.9}, 5, "idle"),
        ({"idle": 2.0, "waiting": 0.1}, 4, ""),  # the learner is what holds it up
        ({"idle": 2.0, "waiting": 0.9, "memory": 0.75}, 4, ""),
    ],
)
def test_what_lasts_changes_the_number_of_workers(seen, workers, word):
    sizer = Sizer(4, cores=4)
    for _ in range(Sizer.LASTS):
        count, why = sizer.advise(**QUIET | seen)
    assert count == workers and word in why


def test_workers_come_back_when_other_programs_are_gone():
    sizer = Sizer(2, cores=2)
    seen = [sizer.advise(**QUIET | {"others": 1.2})[0] for _ in range(Sizer.LASTS)]
    seen += [sizer.advise(**QUIET | {"idle": 0.8})[0] for _ in range(3 * Sizer.LASTS)]
    assert seen[Sizer.LASTS - 1] == 1 and seen[-1] == 2


def test_there_is_always_a_worker_left():
    sizer = Sizer(1, cores=1)
    assert all(sizer.advise(**QUIET | {"memory": 0.99}) == (1, "") for _ in range(10))


def test_more_workers_than_cores_are_told(pieces):
    config, game, _ = pieces(workers="64")
    assert "64 workers are more than" in lay_out(config, game).why


@pytest.mark.parametrize(("name", "groups"), [("connect4", 14), ("ofc", 62)])
def test_searches_are_in_fewer_groups_than_there_are_cores(name, groups, monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    config = overlay(resolve(name, "test"), {"inference": "central", "rows": 4}, "a test")
    assert lay_out(config, open_game(config)).workers == groups


def test_a_gpu_that_is_not_there_is_refused(pieces):
    with pytest.raises(Usage, match="no GPU"):
        pieces(device="cuda")


def test_inference_is_measured_both_ways_and_the_learner_is_left_as_it_was(pieces, monkeypatch):
    monkeypatch.setattr("ludus.training.measure.SECONDS", 0.2)
    config, game, learner = pieces(inference="central", workers="2")
    net = learner.net
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    central, begun = lay_out(config, game), time.monotonic()
    layout = measured_layout(
        config, game, central, learner, lambda one: make_pool(config, game, net, one, flat_weights(net))
    )
    assert "measured decisions/s: central" in layout.why and "local" in layout.why
    assert all((before[name] == tensor).all() for name, tensor in net.state_dict().items())
    assert time.monotonic() - begun < 30 and workers_of(psutil.Process()) == []


def test_games_that_hang_while_inference_is_measured_are_left_to_workers(pieces, importable):
    config, game, learner = pieces(
        "broken_envs:Slow", switches={"first": 1e6}, inference="central", workers="2", seconds=1.0
    )
    net, central, begun = learner.net, lay_out(config, game), time.monotonic()
    layout = measured_layout(
        config, game, central, learner, lambda one: make_pool(config, game, net, one, flat_weights(net))
    )
    assert layout.pool == "process" and "central inference gave no block within 1 s" in layout.why
    assert time.monotonic() - begun < limit(15) and workers_of(psutil.Process()) == []


def test_it_is_told_that_inference_is_measured(trained, monkeypatch):
    monkeypatch.setattr(measure, "SECONDS", 0.1)
    as_with_gpu = {"inference": "central"}
    monkeypatch.setattr(loop, "lay_out", lambda config, game: lay_out(overlay(config, as_with_gpu, ""), game))
    said: list[str] = []
    trained("tictactoe", status=said.append, workers="2", decisions=1)
    assert said[0].startswith("measuring whether inference is faster") and said[1] == "starting 2 workers"


class Clock:
    """Time that passes only while a pool is waited for, and a pool that counts so many beats a second."""

    workers = 1

    def __init__(self, beats_per_s: float) -> None:
        self.beats_per_s, self.now, self.closed = beats_per_s, 0.0, False

    def perf_counter(self) -> float:
        return self.now

    def beats(self) -> int:
        return int(self.beats_per_s * self.now)

    def receive(self, give_up):
        while not give_up():
            self.now += 1 / 1024
        return []

    def release(self, deliveries) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("decisions_per_s", "given", "size"),
    [
        (3, {}, (16, 1)),  # fewer rows make the network's batches too small
        (50, {}, (100, 1)),
        (1_000, {}, (128, 15)),
        (100_000, {}, (128, 64)),
        (50, {"rows": 32}, (32, 3)),
        (3, {"rows": 32}, (32, 1)),
        (3, {"steps": 8}, (128, 8)),
        (3, {"sync": True}, (128, 64)),
    ],
)
def test_blocks_of_searched_games_take_two_seconds(decisions_per_s, given, size, pieces, monkeypatch):
    config, game, _ = pieces(algo="alphazero", **{"rows": 0, "steps": 0, **given})
    clock = Clock(decisions_per_s * algos.find("alphazero").beats_per_decision(config))
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=clock.perf_counter))
    tried: list[tuple[int, int]] = []
    found = sized(config, game, lambda one: (tried.append((one.rows, one.steps)), clock)[1])
    assert found.steps == size[1] and found.rows == pytest.approx(size[0], rel=0.02)
    measured = not (given.keys() & {"steps", "sync"})
    assert tried == ([(given.get("rows", 128), 64)] if measured else []) and clock.closed == measured
