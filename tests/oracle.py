"""An independent judge of poker hands, written in the simplest way there is, to test the fast one against."""

from collections import Counter
from itertools import combinations

JOKERS = (52, 53)


def rank_hand(cards: tuple[int, ...]) -> tuple:
    """A key that orders hands of three and of five natural cards. Cards are rank * 4 + suit."""
    ranks = sorted((card // 4 for card in cards), reverse=True)
    groups = sorted(((count, rank) for rank, count in Counter(ranks).items()), reverse=True)
    shape = [count for count, _ in groups]
    order = [rank for _, rank in groups]
    flush = len(cards) == 5 and len({card % 4 for card in cards}) == 1
    straight = len(cards) == 5 and len(set(ranks)) == 5 and ranks[0] - ranks[4] == 4
    if len(cards) == 5 and ranks == [12, 3, 2, 1, 0]:
        straight, order = True, [3]
    if straight:
        order = order[:1]
    if straight and flush:
        return ("royal" if order == [12] else "straight flush", order)
    if shape[0] == 4:
        return ("quads", order)
    if shape[:2] == [3, 2]:
        return ("full house", order)
    if flush:
        return ("flush", order)
    if straight:
        return ("straight", order)
    if shape[0] == 3:
        return ("trips", order)
    if shape[:2] == [2, 2]:
        return ("two pair", order)
    if shape[0] == 2:
        return ("pair", order)
    return ("high card", order)


NAMES = [
    "high card",
    "pair",
    "two pair",
    "trips",
    "straight",
    "flush",
    "full house",
    "quads",
    "straight flush",
    "royal",
]


def key(cards: tuple[int, ...]) -> tuple:
    name, order = rank_hand(cards)
    return (NAMES.index(name), order)


def all_keys(cards: tuple[int, ...]) -> list[tuple]:
    """Keys of everything that a row can be: each joker any card that is not in the row."""
    natural = tuple(card for card in cards if card not in JOKERS)
    free = [card for card in range(52) if card not in natural]
    return [key(natural + wild) for wild in combinations(free, len(cards) - len(natural))]


def stands(top: tuple[int, ...], middle: tuple[int, ...], bottom: tuple[int, ...]) -> bool:
    """Whether some meaning of the jokers puts the rows in order."""
    highest = max(all_keys(bottom))
    middles = [value for value in all_keys(middle) if value <= highest]
    return bool(middles) and min(all_keys(top)) <= max(middles)
