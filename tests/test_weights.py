"""Weights reach their readers whole, whenever they are written."""

import copy
import threading
from multiprocessing import get_context

import numpy as np
import pytest

from ludus.training.weights import Past, PastSelves, Weights

SIZE = 1000


def torn(value: float) -> np.ndarray:
    """A vector that can't be written to its end: whoever writes it stops in the middle."""
    return np.array([value] * (SIZE - 1) + ["never"], object)


class Interrupted(np.ndarray):
    """An array in whose copying something else comes between."""

    meanwhile = staticmethod(lambda: None)

    def copy(self, order="C"):
        if self.dtype != np.float32:
            return np.array(self)
        half = SIZE // 2
        first = np.array(self[:half])
        happens, Interrupted.meanwhile = Interrupted.meanwhile, lambda: None
        happens()
        return np.concatenate([first, np.array(self[half:])])


def reader_of(shared, meanwhile):
    """The same memory, where something happens in the middle of the first read."""
    reader, Interrupted.meanwhile = copy.copy(shared), meanwhile
    reader._views = lambda: tuple(view.view(Interrupted) for view in shared._views())
    return reader


def test_a_write_in_the_middle_of_a_read_is_noticed():
    weights = Weights(get_context(), SIZE)
    weights.write(np.full(SIZE, 1.0), 1, 0.25)

    def two_writes() -> None:
        weights.write(np.full(SIZE, 2.0), 2, 0.5)
        with pytest.raises(ValueError):
            weights.write(torn(3.0), 3, 0.75)

    vector, version, progress = reader_of(weights, two_writes).read()
    assert (version, progress) == (2, 0.5) and (vector == 2).all()


def test_versions_may_leap():
    weights = Weights(get_context(), SIZE)
    for version in (0, 4, 6, 7, 5):
        weights.write(np.full(SIZE, version), version, version / 10)
        vector, read, progress = weights.read()
        assert read == version and (vector == version).all() and progress == version / 10


def test_a_past_self_is_read_with_its_own_version_even_while_it_is_replaced():
    past = Past(get_context(), np.zeros(SIZE, np.float32))
    past.write(2, np.full(SIZE, 1.0), 1)
    vector, version = reader_of(past, lambda: past.write(2, np.full(SIZE, 2.0), 2)).read(2)
    assert version == 2 and (vector == 2).all()


def test_past_selves_survive_being_saved():
    first = np.zeros(SIZE, np.float32)
    kept, loaded = PastSelves(first), PastSelves(first)
    kept.weights[3], kept.versions[3] = np.arange(SIZE), 7
    kept.odds[:] = np.arange(len(kept.odds)) / 28
    loaded.load_state_dict(kept.state_dict())
    past, other = (Past(get_context(), first) for _ in range(2))
    past.publish(kept)
    other.publish(loaded)
    vector, version = other.read(3)
    assert version == 7 and (vector == np.arange(SIZE)).all()
    rng = np.random.default_rng(0), np.random.default_rng(0)
    np.testing.assert_array_equal(past.draw(rng[0], 50), other.draw(rng[1], 50))


@pytest.mark.parametrize("kind", ["newest", "past"])
def test_no_read_is_torn_while_somebody_writes_all_the_time(kind):
    size, context, stop = 400_000, get_context(), threading.Event()
    shared = Weights(context, size) if kind == "newest" else Past(context, np.zeros(size, np.float32))

    def write(version: int) -> None:
        vector = np.full(size, version, np.float32)
        shared.write(vector, version, 0.5) if kind == "newest" else shared.write(0, vector, version)

    def write_on() -> None:
        version = 1
        while not stop.is_set():
            write(version := version + 1)
            if kind == "past":
                stop.wait(0.002)  # one place only: a reader needs a moment between two writes

    write(1)
    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for _ in range(150):
            vector, version = shared.read()[:2] if kind == "newest" else shared.read(0)
            assert vector.min() == vector.max() == version
    finally:
        stop.set()
        writer.join()
