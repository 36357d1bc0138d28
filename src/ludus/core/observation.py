"""Observations as arrays: what is common to plain ones and to records of several parts."""

import numpy as np


def fields(obs: np.ndarray) -> list[np.ndarray]:
    """The arrays that observations are made of: one, or the fields of a record."""
    return [obs[name] for name in obs.dtype.names] if obs.dtype.names else [obs]


def first_not_finite(obs: np.ndarray) -> tuple[int, float] | None:
    """The first row with a number that is NaN or infinite, and that number. obs: [N, ...]"""
    for part in fields(obs):
        # One sum tells for all rows: NaN and infinity stay in it.
        if part.dtype.kind != "f" or np.isfinite(part.sum(dtype=np.float64)):
            continue
        flat = part.reshape(len(part), -1)
        for row in np.flatnonzero(~np.isfinite(flat).all(1)):
            return int(row), float(flat[row][~np.isfinite(flat[row])][0])
    return None
