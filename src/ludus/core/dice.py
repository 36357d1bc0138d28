"""Drawing from a row's stream (`seeds.rows`) inside compiled rules."""

import numpy as np

from ludus.core.jit import inner, njit

STRETCH = 16


@njit(inline="always")
def next64(stream):
    """The stream's next 64 random bits (SplitMix64 with the row's own step)."""
    stream[0] += stream[1]
    x = stream[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def below(stream, n):
    """A whole number in [0, n), for n below 2**32."""
    return np.int64(((next64(stream) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit
def uniforms(rng, out):
    """One number in [0, 1) from each row's stream. out: float32 [N]"""
    for i in range(len(out)):
        out[i] = np.float32(next64(rng[i]) >> np.uint64(40)) / np.float32(1 << 24)


@njit
def legal_choice(legal, rng, out):
    """A uniformly random legal action for each row; 0 where none is. legal: bool [N, A]; out: int32 [N]"""
    n, actions = legal.shape
    marks = legal.view(np.uint8)  # bytes add up in vectors, bools don't: 6x
    for i in range(n):
        count = np.int32(0)
        for a in range(actions):
            count += np.int32(marks[i, a])
        nth = np.int32(below(rng[i], count))
        out[i] = nth_mark(marks[i], nth) if count else 0


@inner
def nth_mark(marks, nth):
    """The place of the nth 1 (from 0) among bytes of 0 and 1, len(marks) if there are not so many; whole
    stretches are skipped at a time."""
    at = 0
    while at + STRETCH <= len(marks):
        here = np.int32(0)
        for k in range(STRETCH):
            here += np.int32(marks[at + k])
        if here > nth:
            break
        nth -= here
        at += STRETCH
    while at < len(marks) and (nth > 0 or marks[at] == 0):
        nth -= marks[at]
        at += 1
    return at


@njit
def weighted_choice(policy, counts, listed, rows, shares, out):
    """Actions of some rows by their policies. listed: [N, W]; rows: [R]; shares: [R], in [0, 1); out: [N]"""
    for i in range(len(rows)):
        row = rows[i]
        total = 0.0
        for k in range(counts[row]):
            total += policy[row, k]
        left, chosen = shares[i] * total, 0
        for k in range(counts[row]):
            if policy[row, k] > 0:
                chosen = k
                left -= policy[row, k]
                if left < 0:
                    break
        out[row] = listed[row, chosen]
