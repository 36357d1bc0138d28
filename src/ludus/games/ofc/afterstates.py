"""What placements make of the rows: category, outs, room, what is still possible. Read from the observation.

An option is a set of the drawn cards, as bits: those that a row is given.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.core.afterstates import PARTS
from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import CARDS
from ludus.games.ofc.cores import card_count
from ludus.games.ofc.hand import ACTIONS, FIRST_ACTIONS, FIRST_DRAW, LATER_DRAW
from ludus.games.ofc.observation import CARD_FEATURES, ROW_FEATURES, SEAT_FEATURES, UNSEEN_FEATURES
from ludus.games.ofc.scoring import ROW_SIZE

if TYPE_CHECKING:
    from torch import Tensor

RANKS, SUITS, COUNTS = 13, 4, 18  # of a row: ranks, jokers, suits
STRAIGHTS = 10
WINDOW_BITS = np.array([sum(1 << rank % RANKS for rank in range(low, low + 5)) for low in range(-1, 9)])
"""Which ranks each straight needs, from A2345 to TJQKA. int64 [10]"""

# Where a description has what; docs/ofc.md lists it.
TWO, THREE, UNSEEN = COUNTS, COUNTS + RANKS, COUNTS + 2 * RANKS
QUADS, PAIRS, TRIPS, FULL_HOUSE, TWO_PAIRS = range(57, 62)
FLUSH, FLUSH_OUTS, STRAIGHT, MOST_MISSING, ALL_MISSING = range(62, 67)
PAIR_OUTS, HIGHEST, FULL, ROOM = range(67, 71)
MADE_FLUSH, MADE_STRAIGHT, MADE_STRAIGHT_FLUSH, MADE = range(71, 75)  # the last: QUADS to TWO_PAIRS
CARDS_HELD, NO_PAIR, FEATURES = range(79, 82)

OPTIONS, FEW = 1 << FIRST_DRAW, 1 << LATER_DRAW
GIVEN = (np.arange(OPTIONS)[:, None] >> np.arange(FIRST_DRAW) & 1).astype(np.float32)[..., None]
"""Which cards each option gives to a row, [M, 5, 1]."""
GPU_WORD = 4
"""Matrix products on a GPU are fast for rows of whole 16 bytes."""
SIZES = np.array(ROW_SIZE, np.float32).reshape(3, 1, 1, 1)
HEIGHTS = (np.arange(RANKS) / (RANKS - 1)).astype(np.float32)


def _combine() -> np.ndarray:
    """The cards that each action gives to each row, int32 [actions, 3]."""
    found = np.zeros((ACTIONS, 3), np.int32)
    for action in range(FIRST_ACTIONS):
        for card in range(FIRST_DRAW):
            found[action, action // 3 ** (FIRST_DRAW - 1 - card) % 3] |= 1 << card
    for code in range(ACTIONS - FIRST_ACTIONS):
        kept = [card for card in range(3) if card != code % 3]
        for card, row in zip(kept, (code // 9, code // 3 % 3), strict=True):
            found[FIRST_ACTIONS + code, row] |= 1 << card
    return found


class Placements:
    """The contract `Afterstates`."""

    options, features = OPTIONS, FEATURES
    few, few_actions = FEW, slice(FIRST_ACTIONS, ACTIONS)
    combine = _combine()
    constants: tuple[np.ndarray, ...] = (GIVEN, SIZES, HEIGHTS)

    def __init__(self, seats: int) -> None:
        self._drawn = UNSEEN_FEATURES + seats * SEAT_FEATURES

    def there(self, obs: np.ndarray) -> np.ndarray:
        found = np.empty((len(obs), PARTS, self.options), bool)
        find_options(obs, self._drawn, found)
        return found

    def describe(self, obs: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        describe_rows(obs, self._drawn, places, out)

    def has_few(self, obs: Any) -> Any:
        fourth = self._drawn + LATER_DRAW * CARD_FEATURES
        return (obs[:, fourth : fourth + RANKS + 1] == 0).all(1)

    def describe_tensor(self, obs: "Tensor", constants: "list[Tensor]", options: int) -> "Tensor":
        import torch

        x, n, (given, sizes, heights) = obs.float(), obs.shape[0], constants  # len() would fix exports' batch
        rows = x[:, UNSEEN_FEATURES : UNSEEN_FEATURES + 3 * ROW_FEATURES].reshape(n, 3, 1, ROW_FEATURES)
        drawn = x[:, self._drawn : self._drawn + FIRST_DRAW * CARD_FEATURES]
        drawn = drawn.reshape(n, 1, FIRST_DRAW, CARD_FEATURES)
        held = rows.transpose(0, 1)[..., :COUNTS] + (given[:options] * drawn).sum(2)  # [3, N, M, COUNTS]
        unseen = x[:, CARDS:UNSEEN_FEATURES].reshape(n, 1, RANKS + SUITS) / 4
        ranks, jokers, suits = held[..., :RANKS], held[..., RANKS : RANKS + 1], held[..., RANKS + 1 :]
        once, two, three = (ranks >= 1).float(), (ranks == 2).float(), (ranks == 3).float()
        cards = held[..., : RANKS + 1].sum(-1, keepdim=True)
        room = sizes - cards
        full, no_pair = (room == 0).float(), (ranks <= 1).all(-1, keepdim=True).float()
        outs = once * unseen[..., :RANKS]
        four = (ranks >= 4).float().sum(-1, keepdim=True)
        pairs, trips = two.sum(-1, keepdim=True), three.sum(-1, keepdim=True)
        shapes = [four, pairs, trips, pairs * trips, (pairs == 2).float()]
        longest = suits.amax(-1, keepdim=True)
        flush = (longest + jokers == cards).float()
        suit_outs = ((suits == longest) * unseen[..., RANKS:]).amax(-1, keepdim=True)
        fits = (_in_straights(once) + jokers >= cards).float() * no_pair
        missing = _in_straights((1 - once) * (unseen[..., :RANKS] > 0)) * fits
        straight = fits.amax(-1, keepdim=True)
        highest = (once * heights).amax(-1, keepdim=True)
        found = [
            held, two, three, outs, *shapes,
            flush, flush * suit_outs / 2,
            straight, missing.amax(-1, keepdim=True) / 4, missing.sum(-1, keepdim=True) / 10,
            outs.sum(-1, keepdim=True) / 3, highest, full, room / 5,
            full * flush, full * straight, full * flush * straight, *(full * shape for shape in shapes),
            cards / 5, no_pair,
        ]  # fmt: skip
        return torch.cat([*found, held.new_zeros(*held.shape[:3], -FEATURES % GPU_WORD)], -1)


def _in_straights(ranks: "Tensor") -> "Tensor":
    """How many of the ranks are in each straight, from A2345 to TJQKA. [..., 13] -> [..., 10]"""
    import torch

    from_ace = torch.cat([ranks[..., -1:], ranks], -1)
    first, *others = (from_ace[..., place : place + STRAIGHTS] for place in range(5))
    return sum(others, first)


@njit
def find_options(obs, drawn, there):
    """there: bool [N, 3, M], written"""
    fourth, room = drawn + 3 * CARD_FEATURES, np.empty(3, np.int64)
    for i in range(len(obs)):
        is_first = False
        for place in range(fourth, fourth + RANKS + 1):
            is_first |= obs[i, place] > 0
        to_place, cards = (FIRST_DRAW, FIRST_DRAW) if is_first else (2, 3)
        for row in range(3):
            room[row] = obs[i, UNSEEN_FEATURES + row * ROW_FEATURES + COUNTS]
        for row in range(3):
            elsewhere = room[0] + room[1] + room[2] - room[row]
            for option in range(there.shape[2]):
                given = card_count(option)
                fits = given <= room[row] and 0 <= to_place - given <= elsewhere
                there[i, row, option] = fits and option < 1 << cards


@njit
def describe_rows(obs, drawn, places, out):
    """out: float32 [P, F], written"""
    held = np.empty(COUNTS, np.int64)
    for row in range(3):
        board = UNSEEN_FEATURES + row * ROW_FEATURES
        for i in range(len(obs)):
            for option in range(places.shape[2]):
                if places[i, row, option] < 0:
                    continue
                for k in range(COUNTS):
                    held[k] = obs[i, board + k]
                for card in range(FIRST_DRAW):
                    if option >> card & 1:
                        for k in range(COUNTS):
                            held[k] += obs[i, drawn + card * CARD_FEATURES + k]
                describe_row(held, obs, i, ROW_SIZE[row], out, places[i, row, option])


@inner
def describe_row(held, obs, i, size, out, at):
    """One row with its new cards. held: int64 [COUNTS]"""
    once, seen_no_more, pairs, trips, four, cards, outs = 0, 0, 0, 0, 0, held[RANKS], 0.0
    for rank in range(RANKS):
        count, unseen = held[rank], np.float32(obs[i, CARDS + rank])
        cards += count
        once |= (count > 0) << rank
        seen_no_more |= (unseen == 0) << rank
        pairs += count == 2
        trips += count == 3
        four += count >= 4
        out[at, rank] = count
        out[at, TWO + rank] = count == 2
        out[at, THREE + rank] = count == 3
        out[at, UNSEEN + rank] = unseen / 4 if count > 0 else 0
        outs += unseen / 4 if count > 0 else 0
    longest, suit_outs = 0, 0.0
    for suit in range(SUITS):
        longest = max(longest, held[RANKS + 1 + suit])
    for suit in range(SUITS):
        if held[RANKS + 1 + suit] == longest:
            suit_outs = max(suit_outs, obs[i, CARDS + RANKS + suit] / 4)
    for k in range(RANKS, COUNTS):
        out[at, k] = held[k]
    no_pair = cards - held[RANKS] == card_count(once)
    straight, most, total = False, 0, 0
    for window in WINDOW_BITS:
        if no_pair and once & ~window == 0:
            missing = card_count(window & ~once & ~seen_no_more)
            straight, most, total = True, max(most, missing), total + missing
    highest = 0
    for rank in range(RANKS):
        highest = rank if once >> rank & 1 else highest
    flush, full = longest + held[RANKS] == cards, size == cards
    out[at, QUADS], out[at, PAIRS], out[at, TRIPS] = four, pairs, trips
    out[at, FULL_HOUSE], out[at, TWO_PAIRS] = pairs * trips, pairs == 2
    out[at, FLUSH], out[at, FLUSH_OUTS] = flush, suit_outs / 2 if flush else 0
    out[at, STRAIGHT], out[at, MOST_MISSING], out[at, ALL_MISSING] = straight, most / 4, total / 10
    out[at, PAIR_OUTS], out[at, HIGHEST] = outs / 3, highest / (RANKS - 1)
    out[at, FULL], out[at, ROOM] = full, (size - cards) / 5
    out[at, MADE_FLUSH], out[at, MADE_STRAIGHT] = full and flush, full and straight
    out[at, MADE_STRAIGHT_FLUSH] = full and flush and straight
    for shape in range(TWO_PAIRS + 1 - QUADS):
        out[at, MADE + shape] = out[at, QUADS + shape] if full else 0
    out[at, CARDS_HELD], out[at, NO_PAIR] = cards / 5, no_pair
