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

Cards are bits, and cores have kinds, as in `cores.py`.
"""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import (
    ACE,
    EMPTY,
    FULL_HOUSE,
    HIGH,
    JOKER,
    PAIR,
    QUADS,
    ROYAL,
    TRIPS,
    TWO_PAIR,
    best,
)
from ludus.games.ofc.cores import AS_BOTTOM, AS_MIDDLE, CORES, KIND, card_count, list_cores
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

MOST = 17
KINDS = (ROYAL + 1) << 4
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
    count = list_cores(group, suit, n, jokers, cores)
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
def _list_tops(group, jokers, tops):
    """The kinds of top that the hand has cards for, best first, nothing last. tops: int64 [27]"""
    count = 0
    for size in (3, 2):
        for rank in range(ACE, -1, -1):
            if group[rank] and card_count(group[rank]) + jokers >= size:
                tops[count] = (TRIPS if size == 3 else PAIR) << 4 | rank + 1
                count += 1
    tops[count] = HIGH << 4


@inner
def _best_top(rest, limit, tops, group, n, jokers):
    """The best kind of top up to `limit` that the cards in `rest` make."""
    naturals = (1 << (n - jokers)) - 1
    wild = card_count(rest & ~naturals)
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
    rows[MIDDLE] = middle | _highest(rest, 5 - card_count(middle))
    rest &= ~rows[MIDDLE]
    rows[BOTTOM] = bottom | _highest(rest, 5 - card_count(bottom))
    rest &= ~rows[BOTTOM]
    rows[TOP] |= _highest(rest, 3 - card_count(rows[TOP]))


@inner
def _highest(rest, count):
    """The `count` highest bits of `rest`."""
    for _ in range(card_count(rest) - count):
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
    top = _highest(naturals & alike, min(size, card_count(naturals & alike)))
    kickers = naturals & ~alike
    wild = rest & ~naturals
    while card_count(top) < size:
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
        if naturals & group[rank] and card_count(top) < 3:
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
            if card_count(subset) == 5 and _value(order, subset) > values[MIDDLE]:
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
