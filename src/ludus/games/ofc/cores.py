"""Cores of rows, the cards that make them what they are, listed for the Fantasyland solver (`fantasy.py`).

Cards are bits here: 0 the lowest rank, jokers last. A core's kind is category << 4 | leading rank + 1;
the rank is kept only where it can decide a foul or a tie.
"""

import numpy as np

from ludus.core.jit import inner
from ludus.games.ofc.cards import (
    ACE,
    FLUSH,
    FULL_HOUSE,
    HIGH,
    PAIR,
    QUADS,
    ROYAL,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
)

CORES = 10_000
"""Room for all cores: fewer than C(17, 5) + C(17, 4) + C(17, 3) + C(17, 2) and each straight flush thrice."""
AS_BOTTOM, AS_MIDDLE, KIND = 0, 1, 2
ONE_JOKER = 1 << 20


@inner
def card_count(bits):
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@inner
def list_cores(group, suit, n, jokers, cores):
    """Every core of the hand, from royal flush to nothing; how many. cores: int32 [3, CORES]

    The bottom takes the first joker first and the middle the last one, so that a bit-wise `and` tells
    whether two cores fit together and none is listed twice for being able to take either joker.
    """
    pairs = np.empty((3, 80), np.int32)
    trips = np.empty((3, 40), np.int32)
    pair_count = _groups(group, 2, PAIR, 0, pairs, 0)
    trip_count = _groups(group, 3, TRIPS, 0, trips, 0)
    naturals = (1 << (n - jokers)) - 1
    count = 0
    for top in range(ACE, 2, -1):
        for s in range(4):
            if card_count(suit[s]) + jokers >= 5:
                kind = (ROYAL if top == ACE else STRAIGHT_FLUSH) << 4
                count = _straights(group, suit[s], top, kind, jokers, cores, count)
    count = _groups(group, 4, QUADS, jokers, cores, count)
    count = _full_houses(pairs, pair_count, trips, trip_count, jokers, cores, count)
    count = _flushes(suit, jokers, cores, count)
    for top in range(ACE, 2, -1):
        count = _straights(group, naturals, top, STRAIGHT << 4, jokers, cores, count)
    count = _groups(group, 3, TRIPS, jokers, cores, count)
    count = _two_pairs(pairs, pair_count, cores, count)
    count = _groups(group, 2, PAIR, jokers, cores, count)
    count = _add(cores, count, 0, HIGH << 4)
    for i in range(count):
        core = cores[AS_BOTTOM, i]
        used = core // ONE_JOKER
        first, last = (1 << used) - 1, ((1 << used) - 1) << (jokers - used)
        cores[AS_BOTTOM, i] = core & naturals | first << (n - jokers)
        cores[AS_MIDDLE, i] = core & naturals | last << (n - jokers)
    return count


@inner
def _add(cores, count, core, kind):
    cores[AS_BOTTOM, count] = core
    cores[KIND, count] = kind
    return count + 1


@inner
def _groups(group, size, category, jokers, cores, count):
    """Cards of one rank, from ace to deuce, with jokers for those that are missing."""
    for rank in range(ACE, -1, -1):
        subset = group[rank]
        while subset:
            used = size - card_count(subset)
            if 0 <= used <= jokers:
                count = _add(cores, count, subset + used * ONE_JOKER, category << 4 | rank + 1)
            subset = (subset - 1) & group[rank]
    return count


@inner
def _straights(group, within, top, kind, jokers, cores, count):
    """Straights up to rank `top` from the cards in `within`, with jokers in any gaps.

    The lowest place is a joker only below an ace: elsewhere the same cards reach one rank higher.
    """
    start, end = count, _add(cores, count, 0, kind)
    for place in range(top - 4, top + 1):
        here = group[place if place >= 0 else ACE] & within
        most = jokers if place > top - 4 or top == ACE else 0
        after = end
        for i in range(start, end):
            core = cores[AS_BOTTOM, i]
            bits = here
            while bits:
                after = _add(cores, after, core | bits & -bits, kind)
                bits &= bits - 1
            if core // ONE_JOKER < most:
                after = _add(cores, after, core + ONE_JOKER, kind)
        for i in range(end, after):
            cores[AS_BOTTOM, start + i - end] = cores[AS_BOTTOM, i]
        end = start + after - end
    for i in range(start, end):
        cores[KIND, i] = kind
    return end


@inner
def _full_houses(pairs, pair_count, trips, trip_count, jokers, cores, count):
    """Trips and a pair, or two pairs and a joker; the rank plays no part below."""
    for i in range(trip_count):
        for j in range(pair_count):
            if trips[KIND, i] & 15 != pairs[KIND, j] & 15:
                count = _add(cores, count, trips[AS_BOTTOM, i] | pairs[AS_BOTTOM, j], FULL_HOUSE << 4)
    if jokers == 0:
        return count
    start, count = count, _two_pairs(pairs, pair_count, cores, count)
    for i in range(start, count):
        cores[AS_BOTTOM, i] += ONE_JOKER
        cores[KIND, i] = FULL_HOUSE << 4
    return count


@inner
def _two_pairs(pairs, pair_count, cores, count):
    """Two pairs of different rank, by the higher one."""
    for i in range(pair_count):
        rank = pairs[KIND, i] & 15
        for j in range(i + 1, pair_count):
            if pairs[KIND, j] & 15 != rank:
                count = _add(cores, count, pairs[AS_BOTTOM, i] | pairs[AS_BOTTOM, j], TWO_PAIR << 4 | rank)
    return count


@inner
def _flushes(suit, jokers, cores, count):
    """Five of a suit, up to two of them jokers, the highest cards first."""
    for s in range(4):
        subset = suit[s] if card_count(suit[s]) + jokers >= 5 else 0
        while subset:
            used = 5 - card_count(subset)
            if 0 <= used <= jokers:
                count = _add(cores, count, subset + used * ONE_JOKER, FLUSH << 4)
            subset = (subset - 1) & suit[s]
    return count
