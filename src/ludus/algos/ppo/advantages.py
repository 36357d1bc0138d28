"""Which decisions follow each other in a block: a seat's own, through games that go on and games that end."""

import numpy as np

from ludus.core.jit import njit


@njit
def advantages(value, rho, seat, reward, ended, bootstrap, gamma, lam, out, known):
    """GAE for each seat on its own, backwards through [T, N]; rho corrects what follows for an older policy.

    That is V-trace (Espeholt et al. 2018) with lambda. A decision's own rho is not in its advantage: the
    learner weighs it by that, and the target of its value is value + min(rho, 1) * advantage.

    A seat's last decision in a block has no successor yet, unless the game ended: it only serves as the
    bootstrap of the one before, and is marked as not known. reward, bootstrap: [T, N, seats]; a bootstrap of
    NaN stands for a game that was lost, with nothing known of what came next.
    """
    steps, rows = seat.shape
    seats = reward.shape[2]
    for n in range(rows):
        paid, next_value, next_adv = np.zeros(seats), np.zeros(seats), np.zeros(seats)
        has_next = np.zeros(seats, np.bool_)
        for t in range(steps - 1, -1, -1):
            s = seat[t, n]
            if ended[t, n]:
                paid[:] = 0
                next_adv[:] = 0
                for other in range(seats):
                    next_value[other] = bootstrap[t, n, other]
                    has_next[other] = not np.isnan(bootstrap[t, n, other])
            for other in range(seats):
                paid[other] += reward[t, n, other]
            known[t, n] = has_next[s]
            out[t, n] = 0.0
            if has_next[s]:
                delta = paid[s] + gamma * next_value[s] - value[t, n]
                out[t, n] = delta + gamma * lam * next_adv[s]
            next_value[s] = value[t, n]
            next_adv[s] = min(rho[t, n], 1.0) * out[t, n]
            has_next[s] = True
            paid[s] = 0


@njit
def stretches(seat, length, at, out):
    """Cut each seat's decisions of a block [T, N] into stretches; gives their count.

    at: the block's first decision among all. out: int64 [enough, length], filled up with -1
    """
    steps, rows = seat.shape
    count = 0
    for n in range(rows):
        for s in range(np.max(seat[:, n]) + 1):
            place = length
            for t in range(steps):
                if seat[t, n] != s:
                    continue
                if place == length:
                    out[count, :] = -1
                    count, place = count + 1, 0
                out[count - 1, place] = at + t * rows + n
                place += 1
    return count
