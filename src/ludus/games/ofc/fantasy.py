"""The exact Fantasyland solver: 13 to 17 cards set as the board with the most royalties and the stay.

It searches over cores, the cards that make a row what it is: a pair is 2 cards, trips 3, two pair or
quads 4, a straight, flush or full house 5; a plain high card has none. Three disjoint cores decide what a
board is worth, all other cards are kickers. Why that is exact:

- No joker ever has to hold back. If middle > bottom, swapping them is at least as good. If a top with a
  joker is above its middle, trading the joker or its idle neighbour for a card of the middle (with two
  jokers over two pair or trips: both, for quads) is at least as good. So each row is simply worth its
  `best`, and only boards with bottom >= middle >= top have to be looked at.
- Kickers only raise the bottom and the middle, and if the middle outgrows the bottom they swap. Trips on
  top are complete, a pair there takes one kicker that keeps it a pair, and a top without a core is
  never above a middle that takes the best five of the eight cards left over. Hence every setting has its
  cores, all cores that fit together can be completed, and there always is a setting that stands.

Cards are bits here: 0 the lowest rank, jokers last. A core's kind is category << 4 | leading rank + 1;
the rank is kept only where it can decide a foul or a tie.
"""

import numpy as np

from ludus.core.jit import njit
from ludus.games.ofc.cards import (
    ACE,
    EMPTY,
    FLUSH,
    FULL_HOUSE,
    HIGH,
    JOKER,
    PAIR,
    QUADS,
    ROYAL,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
    best,
)
from ludus.games.ofc.scoring import (
    BOTTOM,
    BOTTOM_ROYALTY,
    MIDDLE,
    MIDDLE_ROYALTY,
    TOP,
    royalties,
    stays,
    top_royalty,
)

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions that only compiled code calls: without entries for others they compile in 3/4 of the time."""

MOST = 17
KINDS = (ROYAL + 1) << 4
CORES = 10_000
"""Room for all cores: fewer than C(17, 5) + C(17, 4) + C(17, 3) + C(17, 2) and each straight flush thrice."""
AS_BOTTOM, AS_MIDDLE, KIND = 0, 1, 2
ONE_JOKER = 1 << 20
TIE = 2.0**-40
"""Weight of the tie-break, so small that it never outweighs a difference of more than 1e-9 points."""

# Ties go to the board with the higher sum of these rough chances (%) of winning the row, by category and,
# up to trips, by rank between one category and the next.
WINS = {
    TOP: (25, 40, 96, 96, *[100] * 6),
    MIDDLE: (4, 20, 55, 72, 82, 88, 95, 98, 99, 100),
    BOTTOM: (2, 6, 18, 30, 50, 66, 84, 95, 99, 100),
}


def _chances() -> np.ndarray:
    """Rough chance that a kind wins its row; it grows with the kind. float64 [3, KINDS]"""
    chances = np.zeros((3, KINDS))
    for kind in range(KINDS):
        category, rank = kind >> 4, max((kind & 15) - 1, 0)
        for row, wins in WINS.items():
            above = wins[category + 1] if category in (PAIR, TWO_PAIR, TRIPS) else wins[category]
            chances[row, kind] = (wins[category] + (above - wins[category]) * rank / 13) / 100
    return chances


CHANCES = _chances()


def _worth() -> np.ndarray:
    """Royalty of every kind in every row, plus the tie-break; it grows with the kind. float64 [3, KINDS]"""
    worth = 100 * TIE * CHANCES
    for kind in range(KINDS):
        category = kind >> 4
        # There is no two pair on top: that entry bounds the tops that a middle of two pair allows.
        top = PAIR << 4 | ACE + 1 if category == TWO_PAIR else kind
        worth[TOP, kind] += top_royalty(top << 16)
        worth[MIDDLE, kind] += MIDDLE_ROYALTY[category]
        worth[BOTTOM, kind] += BOTTOM_ROYALTY[category]
    return worth


WORTH = _worth()


@njit
def solve(cards, n, stay_value, stay_middle, out):
    """Set the first n of `cards` (13 to 17, at most two of them jokers) as the best board.

    Returns royalties + `stay_value` (>= 0) if the board stays in Fantasyland; no setting has more, and
    the board never fouls. cards: uint8 [>= n]; out: uint8 [17], perhaps `cards` itself: 3 top, 5 middle,
    5 bottom, the discards, then EMPTY.
    """
    order = np.empty(MOST, np.uint8)  # card of every bit
    group = np.zeros(13, np.int64)  # bits of every rank
    suit = np.zeros(4, np.int64)  # bits of every suit
    jokers = _sort(cards, n, order, group, suit)
    cores = np.empty((3, CORES), np.int32)
    count = _list_cores(group, suit, n, jokers, cores)
    tops = np.empty(27, np.int64)
    _list_tops(group, jokers, tops)
    chosen = np.empty(3, np.int64)  # top kind, middle and bottom core
    _search(cores, count, tops, group, n, jokers, stay_value, stay_middle, chosen)
    rows = np.empty(3, np.int64)  # bits of every row
    _complete(cores, chosen, group, n, jokers, rows)
    values = np.empty(3, np.int64)
    _stand(order, rows, values)
    _write(order, rows, n, out)
    return royalties(values) + (stay_value if stays(values, stay_middle) else 0.0)


@inner
def _sort(cards, n, order, group, suit):
    """Give every card a bit, by rank, jokers last; the number of jokers."""
    bit, jokers = 0, 0
    for rank in range(14):
        for i in range(n):
            card = cards[i]
            if card >> 2 != rank:
                continue
            order[bit] = card
            if card >= JOKER:
                jokers += 1
            else:
                group[rank] |= 1 << bit
                suit[card & 3] |= 1 << bit
            bit += 1
    return jokers


@inner
def _size(bits):
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


# --- the list of cores, best first -------------------------------------------------------------------------


@inner
def _list_cores(group, suit, n, jokers, cores):
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
            if _size(suit[s]) + jokers >= 5:
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
            used = size - _size(subset)
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
        subset = suit[s] if _size(suit[s]) + jokers >= 5 else 0
        while subset:
            used = 5 - _size(subset)
            if 0 <= used <= jokers:
                count = _add(cores, count, subset + used * ONE_JOKER, FLUSH << 4)
            subset = (subset - 1) & suit[s]
    return count


# --- the search --------------------------------------------------------------------------------------------


@inner
def _list_tops(group, jokers, tops):
    """The kinds of top that the hand has cards for, best first, nothing last. tops: int64 [27]"""
    count = 0
    for size in (3, 2):
        for rank in range(ACE, -1, -1):
            if group[rank] and _size(group[rank]) + jokers >= size:
                tops[count] = (TRIPS if size == 3 else PAIR) << 4 | rank + 1
                count += 1
    tops[count] = HIGH << 4


@inner
def _best_top(rest, limit, tops, group, n, jokers):
    """The best kind of top up to `limit` that the cards in `rest` make."""
    naturals = (1 << (n - jokers)) - 1
    wild = _size(rest & ~naturals)
    i = 0
    while tops[i] > limit:
        i += 1
    while tops[i]:
        alike = group[(tops[i] & 15) - 1]
        one = rest & alike
        two = one & (one - 1)
        three = two & (two - 1)
        if tops[i] >> 4 == TRIPS:
            if three or (two and wild) or (one and wild == 2):
                break
        elif two:
            if rest & naturals & ~alike:  # a kicker that leaves it a pair
                break
        elif one and wild and rest & (one - 1):  # a kicker that the joker would not rather pair
            break
        i += 1
    return tops[i]


@inner
def _search(cores, count, tops, group, n, jokers, stay_value, stay_middle, chosen):
    """Find the best cores by branch and bound. chosen: int64 [3]: kind of top, middle core, bottom core"""
    everything = (1 << n) - 1
    found = -1.0
    for b in range(count):
        kind, bottom = cores[KIND, b], cores[AS_BOTTOM, b]
        if _points(min(tops[0], kind), kind, kind, stay_value, stay_middle) <= found:
            return  # nor is any bottom after it worth more
        height = _best_top(everything & ~bottom, kind, tops, group, n, jokers)
        last = -1  # kind of middle that was looked at
        for m in range(b, count):
            if cores[KIND, m] != last:
                last = cores[KIND, m]
                if _points(min(height, last), last, kind, stay_value, stay_middle) <= found:
                    break
            middle = cores[AS_MIDDLE, m]
            if middle & bottom:
                continue
            top = _best_top(everything & ~(bottom | middle), last, tops, group, n, jokers)
            points = _points(top, last, kind, stay_value, stay_middle)
            if points > found:
                found = points
                chosen[TOP], chosen[MIDDLE], chosen[BOTTOM] = top, m, b


@inner
def _points(top, middle, bottom, stay_value, stay_middle):
    """What a board of three kinds is worth."""
    points = WORTH[TOP, top] + WORTH[MIDDLE, middle] + WORTH[BOTTOM, bottom]
    if top >= TRIPS << 4 or bottom >= QUADS << 4 or (stay_middle and middle >= FULL_HOUSE << 4):
        points += stay_value
    return points


# --- kickers, and the board --------------------------------------------------------------------------------


@inner
def _complete(cores, chosen, group, n, jokers, rows):
    """Add kickers to the chosen cores. rows: int64 [3], the bits of every row"""
    middle, bottom = cores[AS_MIDDLE, chosen[MIDDLE]], cores[AS_BOTTOM, chosen[BOTTOM]]
    rest = ((1 << n) - 1) & ~(middle | bottom)
    kind = cores[KIND, chosen[MIDDLE]]
    rows[TOP] = _top_cards(rest, chosen[TOP], kind, group, n, jokers)
    rest &= ~rows[TOP]
    rows[MIDDLE] = middle | _highest(rest, 5 - _size(middle))
    rest &= ~rows[MIDDLE]
    rows[BOTTOM] = bottom | _highest(rest, 5 - _size(bottom))
    rest &= ~rows[BOTTOM]
    rows[TOP] |= _highest(rest, 3 - _size(rows[TOP]))


@inner
def _highest(rest, count):
    """The `count` highest bits of `rest`."""
    for _ in range(_size(rest) - count):
        rest &= rest - 1
    return rest


@inner
def _top_cards(rest, kind, middle, group, n, jokers):
    """Cards for a top of that kind: naturals before jokers, and a kicker below the middle's."""
    naturals = rest & ((1 << (n - jokers)) - 1)
    if kind == HIGH:
        return _apart(naturals, group) if middle else 0
    alike = group[(kind & 15) - 1]
    size = 3 if kind >> 4 == TRIPS else 2
    top = _highest(naturals & alike, min(size, _size(naturals & alike)))
    kickers = naturals & ~alike
    wild = rest & ~naturals
    while _size(top) < size:
        kickers &= top - 1
        top |= wild & -wild
        wild &= wild - 1
    if size == 3:
        return top
    return top | (_highest(kickers, 1) if middle > kind else kickers & -kickers)


@inner
def _apart(naturals, group):
    """The highest cards of up to three different ranks."""
    top = 0
    for rank in range(ACE, -1, -1):
        if naturals & group[rank] and _size(top) < 3:
            top |= _highest(naturals & group[rank], 1)
    return top


@inner
def _stand(order, rows, values):
    """Put the rows into an order that stands. values: int64 [3]

    A top above its middle (only one without a core can be) gives the middle the best five of both; each
    round raises the middle or the bottom and lowers neither, so it ends, and nothing found is lost.
    """
    for row in range(3):
        values[row] = _value(order, rows[row])
    while True:
        if values[MIDDLE] > values[BOTTOM]:
            rows[MIDDLE], rows[BOTTOM] = rows[BOTTOM], rows[MIDDLE]
            values[MIDDLE], values[BOTTOM] = values[BOTTOM], values[MIDDLE]
        if values[TOP] <= values[MIDDLE]:
            return
        both = rows[TOP] | rows[MIDDLE]
        subset = both
        while subset:
            if _size(subset) == 5 and _value(order, subset) > values[MIDDLE]:
                rows[MIDDLE], values[MIDDLE] = subset, _value(order, subset)
            subset = (subset - 1) & both
        rows[TOP] = both & ~rows[MIDDLE]
        values[TOP] = _value(order, rows[TOP])


@inner
def _value(order, bits):
    """The best value of the cards in `bits`."""
    row = np.empty(5, np.uint8)
    size = 0
    for bit in range(MOST):
        if bits >> bit & 1:
            row[size] = order[bit]
            size += 1
    return best(row, size)


@inner
def _write(order, rows, n, out):
    """The cards of the rows, from the highest rank of each, then the discards, then EMPTY."""
    out[:] = EMPTY
    discards = ((1 << n) - 1) & ~(rows[TOP] | rows[MIDDLE] | rows[BOTTOM])
    place = 0
    for part in (rows[TOP], rows[MIDDLE], rows[BOTTOM], discards):
        for bit in range(n - 1, -1, -1):
            if part >> bit & 1:
                out[place] = order[bit]
                place += 1
