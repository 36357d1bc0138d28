"""Named random streams: independent for every worker, purpose and row, and the same every time."""

import numpy as np

from ludus.core import seeds
from ludus.core.dice import legal_choice, next64

WORKERS, ROWS, DRAWS = 8, 64, 256


def drawn(streams: np.ndarray) -> np.ndarray:
    """The first DRAWS numbers of every row. uint64 [rows, DRAWS]"""
    return np.array([[next64(stream) for _ in range(DRAWS)] for stream in streams], np.uint64)


def test_workers_share_no_number():
    numbers = [drawn(seeds.rows(7, ROWS, "worker", worker, "table")) for worker in range(WORKERS)]
    together = np.concatenate(numbers).ravel()
    assert len(np.unique(together)) == WORKERS * ROWS * DRAWS


def test_workers_are_uncorrelated():
    numbers = [drawn(seeds.rows(7, ROWS, "worker", worker, "table")) for worker in range(WORKERS)]
    uniform = np.array([(part >> np.uint64(11)).ravel() / 2**53 for part in numbers])
    off_diagonal = np.corrcoef(uniform)[~np.eye(WORKERS, dtype=bool)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(ROWS * DRAWS)
    assert np.abs(uniform.mean(1) - 0.5).max() < 0.015


def test_neighbouring_seeds_share_no_number():
    numbers = np.concatenate([drawn(seeds.rows(seed, ROWS)) for seed in range(8)]).ravel()
    assert len(np.unique(numbers)) == len(numbers)


def test_names_matter_and_so_does_their_order():
    paths = [("table",), ("bots",), ("table", "bots"), ("bots", "table"), ("worker", 1), ("worker", 2), ()]
    assert len({seeds.derive(1, *path) for path in paths}) == len(paths)
    assert len({seeds.rows(1, 4, *path).tobytes() for path in paths}) == len(paths)
    assert len({seeds.generator(1, *path).integers(2**62) for path in paths}) == len(paths)


def test_the_same_name_gives_the_same_stream():
    assert seeds.derive(3, "worker", 1) == seeds.derive(3, "worker", 1) == 14518940820871791950
    assert (seeds.rows(3, 8, "a") == seeds.rows(3, 8, "a")).all()


def test_a_row_does_not_depend_on_how_many_there_are():
    assert (seeds.rows(3, 100, "a")[:8] == seeds.rows(3, 8, "a")).all()


def test_a_choice_without_a_legal_action_stays_inside_its_row():
    legal, out = np.ones((3, 20), bool), np.full(3, -1, np.int32)
    legal[1] = False
    legal[2, :17] = False
    legal_choice(legal, seeds.rows(1, 3), out)
    assert 0 <= out[0] < 20 and out[1] == 0 and 17 <= out[2] < 20
    nothing = np.full(2, -1, np.int32)
    legal_choice(np.zeros((2, 0), bool), seeds.rows(1, 2), nothing)
    assert nothing.tolist() == [0, 0]
