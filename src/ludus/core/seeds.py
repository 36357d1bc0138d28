"""One seed becomes many named, independent streams. Nothing here looks at the clock."""

import hashlib
import json

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def derive(seed: int, *path: str | int) -> int:
    """A 64-bit seed for one purpose, e.g. `derive(7, "worker", 3, "table")`."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *path: str | int) -> np.random.Generator:
    return np.random.default_rng(derive(seed, *path))


def rows(seed: int, n: int, *path: str | int) -> np.ndarray:
    """One stream per row, uint64 [n, 2]: where it stands, and its own odd step (SplitMix64)."""
    start = np.uint64(derive(seed, *path, "rows"))
    counter = np.arange(1, 2 * n + 1, dtype=np.uint64).reshape(n, 2)
    streams = _mix(start + counter * GOLDEN)
    streams[:, 1] |= np.uint64(1)
    return streams


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def frozen(rng: np.random.Generator) -> str:
    """Where a generator stands, as text."""
    return json.dumps(rng.bit_generator.state)


def thaw(rng: np.random.Generator, state: str) -> None:
    """Go on from where `frozen` found a generator."""
    rng.bit_generator.state = json.loads(state)
