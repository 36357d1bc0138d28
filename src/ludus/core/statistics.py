"""How sure a mean is. Knows numbers only."""

import math
from functools import cache

import numpy as np

EXACT_UP_TO = 200
"""Degrees of freedom; above, four terms of the expansion around the normal distribution are as exact."""
Z = 1.959963984540054
"""97.5 % of a normal distribution lie below it."""


def margin(samples: np.ndarray) -> float:
    """Half of the 95 % confidence interval of the mean; infinite for one sample, which has no spread."""
    count = len(samples)
    if count < 2:
        return math.inf
    return t_quantile(count - 1) * float(samples.std(ddof=1)) / math.sqrt(count)


@cache
def t_quantile(freedom: int) -> float:
    """Below it lie 97.5 % of Student's t distribution (Abramowitz and Stegun 26.7.3, 26.7.4 and 26.7.5)."""
    if freedom > EXACT_UP_TO:
        z, n = Z, freedom
        return (
            z
            + (z**3 + z) / (4 * n)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        )
    low, high = 1.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        if _t_within(middle, freedom) < 0.95:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """The chance that Student's t lies between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1 + odd, freedom, 2):  # each term is the last one by k / (k + 1) of the cosine's square
        total += term
        term *= square * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
