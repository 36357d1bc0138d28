"""Cards and hand values: what beats what, with and without jokers.

A card is a number: rank * 4 + suit, ranks 2..A as 0..12, jokers 52 and 53. A hand's value is one
int that compares as poker hands do, three cards with five: category in the top digit (base 16),
then the ranks that decide, each + 1, so that a kicker that isn't there is lower than any that is.
"""

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import inner, njit

RANKS, SUITS = "23456789TJQKA", "cdhs"
CARDS, JOKER, EMPTY = 54, 52, 255

HIGH, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH, ROYAL = range(10)
CATEGORIES = (
    "high card", "pair", "two pair", "trips", "straight",
    "flush", "full house", "quads", "straight flush", "royal flush",
)  # fmt: skip
NO_LIMIT = 1 << 30
FOUL = -1
ACE = 12
SEVERAL_SUITS = 0b11
JOKER_VALUES = 2 * 13 * 14 // 2
"""Values that two jokers can give a row, at most."""


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every set of ranks (13 bits): the highest, how many, and the best straight it fits into.

    `straight` is the top rank of the highest straight that has room for all ranks of the set, or -1:
    with jokers for the gaps it becomes that straight. Ranks outside any straight give -1.
    """
    sets = np.arange(1 << 13)
    highest = np.array([int(s).bit_length() - 1 for s in sets], np.int8)
    count = np.array([int(s).bit_count() for s in sets], np.int8)
    straight = np.full(1 << 13, -1, np.int8)
    windows = [(3, 0b1_0000_0000_1111)] + [(top, 0b11111 << (top - 4)) for top in range(4, 13)]
    for top, window in windows:
        straight[(sets & ~window) == 0] = top
    return highest, count, straight


HIGHEST, COUNT, STRAIGHT_TOP = _tables()


@njit(inline="always")
def kickers(value, ranks, n):
    """Append the n highest of a set of ranks to a value; missing ones count as 0."""
    for _ in range(n):
        top = HIGHEST[ranks]
        value = (value << 4) | (top + 1)
        ranks &= ~(1 << top) if top >= 0 else 0
    return value


@njit(inline="always")
def fill(ranks, n):
    """The set with its n highest missing ranks added: what jokers add to a flush or as kickers."""
    rank = ACE
    while n > 0:
        if not ranks >> rank & 1:
            ranks |= 1 << rank
            n -= 1
        rank -= 1
    return ranks


@njit
def best(cards, n):
    """The highest value of the first n of `cards`, each joker any card not in this row.

    Rows that aren't full yet count what they hold: straights and flushes need five cards.
    """
    once, twice, thrice, four, suits, jokers = sets_of(cards, 0, n)
    return best_of_sets(n, once, twice, thrice, four, suits, jokers)


@njit(inline="always")
def sets_of(cards, start, n):
    """Of n cards from `start` on: the ranks held once, twice, three and four times, the suits, the jokers."""
    once, twice, thrice, four, suits, jokers = 0, 0, 0, 0, 0, 0
    for i in range(start, start + n):
        card = cards[i]
        if card >= JOKER:
            jokers += 1
            continue
        bit = 1 << (card >> 2)
        four |= thrice & bit
        thrice |= twice & bit
        twice |= once & bit
        once |= bit
        suits |= 1 << (card & 3)
    return once, twice, thrice, four, suits, jokers


@inner
def best_of_sets(n, once, twice, thrice, four, suits, jokers):
    """`best`, from what `sets_of` gives."""
    distinct = twice == 0
    if n == 5 and distinct:
        flush = suits & (suits - 1) == 0
        straight = STRAIGHT_TOP[once]
        if straight >= 0 and flush:
            return (ROYAL if straight == ACE else STRAIGHT_FLUSH) << 20 | (straight + 1) << 16
        if flush:
            return kickers(FLUSH, fill(once, jokers), 5)
        if straight >= 0:
            return STRAIGHT << 20 | (straight + 1) << 16
    # Jokers join the largest group, the highest of its size; that is never worse than another use.
    size, group = 1, 1 << HIGHEST[once] if once else 0
    if once == 0 and jokers:
        size, group = 0, 1 << ACE  # jokers alone are aces
    if twice:
        size, group = 2, 1 << HIGHEST[twice]
    if thrice:
        size, group = 3, 1 << HIGHEST[thrice]
    if four:
        size, group = 4, four
    joined = min(jokers, 4 - size)
    size += joined
    rest = once & ~group
    lead = HIGHEST[group] + 1
    if size == 4:
        if jokers > joined:
            rest = fill(group, jokers - joined) & ~group
        return kickers((QUADS << 4) | lead, rest, 1) << 12
    pairs = twice & ~group
    if size == 3:
        if pairs:
            return kickers((FULL_HOUSE << 4) | lead, pairs, 1) << 12
        return kickers((TRIPS << 4) | lead, rest, 2) << 8
    if size == 2:
        if pairs:
            value = kickers((TWO_PAIR << 4) | lead, pairs, 1)
            return kickers(value, rest & ~pairs, 1) << 8
        return kickers((PAIR << 4) | lead, rest, 3) << 4
    return kickers(HIGH, once | group, 5)


@njit
def best_at_most(cards, n, limit):
    """The highest value not above `limit` that jokers allow, or FOUL."""
    value = best(cards, n)
    if value <= limit:
        return value
    values = np.empty(JOKER_VALUES, np.int32)
    return highest_at_most(values, joker_values(cards, n, values), limit)


@inner
def highest_at_most(values, n, limit):
    """The highest of the first n values that is not above `limit`, or FOUL."""
    found = FOUL
    for i in range(n):
        if found < values[i] <= limit:
            found = values[i]
    return found


@njit
def joker_values(cards, n, values):
    """All values of a row's first n cards, with each card for its jokers; how many. 0 without a joker.

    Only ranks matter, and whether all suits are one. values: int32 [JOKER_VALUES], written
    """
    once, twice, thrice, four, suits, jokers = sets_of(cards, 0, n)
    found = 0
    for is_flush in range(2 if n == 5 and suits & (suits - 1) == 0 else 1):
        kind = suits if is_flush else SEVERAL_SUITS
        for first in range(13 if jokers else 0):
            if (once if is_flush else four) >> first & 1:  # a flush holds each rank once
                continue
            sets = with_rank(once, twice, thrice, four, 1 << first)
            for second in range(first + 1 if jokers == 2 else 1):
                more = sets
                if jokers == 2:
                    if (sets[0] if is_flush else sets[3]) >> second & 1:
                        continue
                    more = with_rank(sets[0], sets[1], sets[2], sets[3], 1 << second)
                values[found] = best_of_sets(n, more[0], more[1], more[2], more[3], kind, 0)
                found += 1
    return found


@inner
def with_rank(once, twice, thrice, four, bit):
    """The sets of ranks with one more card."""
    return once | bit, twice | once & bit, thrice | twice & bit, four | thrice & bit


@njit(inline="always")
def category(value):
    return value >> 20


@njit(inline="always")
def lead_rank(value):
    """The rank that names the hand: of the pair, the trips, the straight's top card."""
    return (value >> 16 & 15) - 1


def card_text(card: int) -> str:
    if card >= JOKER:
        return f"X{card - JOKER + 1}"
    return RANKS[card // 4] + SUITS[card % 4]


CARD_OF = {card_text(card): card for card in range(CARDS)}


AS_TYPED = str.maketrans("♣♦♥♠★", SUITS + "X")
"""Cards may also be typed, or pasted, as screens of card games show them."""


def parse_cards(text: str) -> list[int]:
    """`"As Td X1"` as card numbers; `A♠ T♦ ★1` are the same."""
    words = text.translate(AS_TYPED).split()
    for word in words:
        if word not in CARD_OF:
            raise Usage(f"{word!r} is not a card: a rank of {RANKS} and a suit of {SUITS} (As), or X1, X2")
    return [CARD_OF[word] for word in words]


def value_text(value: int) -> str:
    """`"full house, K over 7"` and the like."""
    if value == FOUL:
        return "no legal hand"
    ranks = [RANKS[digit - 1] for digit in (value >> shift & 15 for shift in (16, 12, 8, 4, 0)) if digit]
    kind = value >> 20
    if kind == ROYAL:
        return CATEGORIES[kind]
    if kind in (FULL_HOUSE, TWO_PAIR):
        return f"{CATEGORIES[kind]}, {ranks[0]} over {ranks[1]}"
    if kind in (STRAIGHT, STRAIGHT_FLUSH):
        return f"{CATEGORIES[kind]} to {ranks[0]}"
    if kind in (PAIR, TRIPS, QUADS):
        return f"{CATEGORIES[kind]} of {ranks[0]}"
    return f"{CATEGORIES[kind]}, {' '.join(ranks)}"
