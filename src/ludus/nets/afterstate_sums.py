"""Compiled parts of the network that scores afterstates, forward and backward.

`beside` is what the trunk says to each part in turn, H numbers each, and then to their sum, D numbers:
float32 [B, 3 * H + D]. Actions that lead to an option that isn't there are not legal, and are left out. The
parts of an afterstate are unrolled: a loop over them takes three times as long. What is NaN stays NaN.
"""

import numpy as np

from ludus.core.jit import FAST_WITH_NAN, njit


@njit(fastmath=FAST_WITH_NAN)
def add_relu(seen, beside, places):
    """seen: float32 [P, H], written: relu(seen + what the trunk says to that part of that decision)"""
    width = seen.shape[1]
    for i in range(len(beside)):
        for part in range(places.shape[1]):
            mine = beside[i, part * width : (part + 1) * width]
            for option in range(places.shape[2]):
                at = places[i, part, option]
                if at < 0:
                    continue
                for h in range(width):
                    total = seen[at, h] + mine[h]
                    seen[at, h] = np.float32(0) if total < 0 else total


@njit(fastmath=FAST_WITH_NAN)
def relu_gradients(gradient, out, places, by_beside):
    """gradient: float32 [P, H], written: 0 where `out`, of `add_relu`, is. by_beside: added to"""
    width = out.shape[1]
    for i in range(len(by_beside)):
        for part in range(places.shape[1]):
            mine = by_beside[i, part * width : (part + 1) * width]
            for option in range(places.shape[2]):
                at = places[i, part, option]
                if at < 0:
                    continue
                for h in range(width):
                    slope = np.float32(0) if out[at, h] == 0 else gradient[at, h]
                    gradient[at, h] = slope
                    mine[h] += slope


@njit(fastmath=FAST_WITH_NAN)
def score_sums(embedded, beside, score, places, combine, logits):
    """embedded: float32 [P, D]; score: [D]; places: int32 [B, 3, M]; combine: int32 [A, 3]; logits: [B, A],
    written where an action is possible"""
    for i in range(len(beside)):
        last = beside[i, beside.shape[1] - len(score) :]
        for action in range(len(combine)):
            first, second, third = places_of(places, combine, i, action)
            if first < 0 or second < 0 or third < 0:
                continue
            found = np.float32(0)
            for d in range(len(score)):
                total = last[d] + embedded[first, d] + embedded[second, d] + embedded[third, d]
                found += (np.float32(0) if total < 0 else total) * score[d]
            logits[i, action] = found


@njit(fastmath=FAST_WITH_NAN)
def score_gradients(embedded, beside, score, places, combine, gradient, by_embedded, by_beside, by_score):
    """gradient: of logits, [B, A]; the last three: added to"""
    by_total, last = np.empty(len(score), np.float32), beside.shape[1] - len(score)
    for i in range(len(beside)):
        mine, by_mine = beside[i, last:], by_beside[i, last:]
        for action in range(len(combine)):
            slope = gradient[i, action]
            first, second, third = places_of(places, combine, i, action)
            if slope == 0 or first < 0 or second < 0 or third < 0:
                continue
            for d in range(len(score)):
                total = mine[d] + embedded[first, d] + embedded[second, d] + embedded[third, d]
                by_score[d] += slope * (np.float32(0) if total < 0 else total)
                by_total[d] = np.float32(0) if total < 0 else slope * score[d]
            for d in range(len(score)):
                by_mine[d] += by_total[d]
            for d in range(len(score)):
                by_embedded[first, d] += by_total[d]
            for d in range(len(score)):
                by_embedded[second, d] += by_total[d]
            for d in range(len(score)):
                by_embedded[third, d] += by_total[d]


@njit(inline="always")
def places_of(places, combine, i, action):
    return (
        places[i, 0, combine[action, 0]],
        places[i, 1, combine[action, 1]],
        places[i, 2, combine[action, 2]],
    )
