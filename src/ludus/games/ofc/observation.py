"""What a seat observes: numbers of one byte, described in docs/ofc.md."""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import CARDS, EMPTY, HIGHEST, JOKER, STRAIGHT_TOP, best_of_sets, sets_of
from ludus.games.ofc.hand import FIRST_DRAW, STREETS, paid_by, unseen
from ludus.games.ofc.scoring import BOTTOM, MIDDLE, ROW_SIZE, ROW_START, SESSION, TOP

ROW_FEATURES = 13 + 1 + 4 + 1  # cards of each rank, jokers, cards of each suit, room
SEAT_FEATURES = 3 * ROW_FEATURES + 1  # three rows, Fantasyland cards above 13
CARD_FEATURES = 13 + 1 + 4  # one-hot rank or joker, one-hot suit
UNSEEN_FEATURES = CARDS + 13 + 4  # each card, cards of each rank, cards of each suit
MADE_FEATURES = 13 + 13 + 2  # ranks held twice, three times; room for a flush, for a straight
ORDER_FEATURES = 2  # middle not below top, bottom not below middle, so far
COMMON_FEATURES = (
    FIRST_DRAW * CARD_FEATURES + UNSEEN_FEATURES + 3 * MADE_FEATURES + ORDER_FEATURES + STREETS + 3 + 1
)
ONES = 0x1111111111111  # one bit for each rank
EIGHT = np.array([sum(1 << 8 * i for i in range(8) if bits >> i & 1) for bits in range(256)], np.uint64)
"""Eight bits as eight bytes of 0 or 1."""


@njit
def observe_rows(states, out):
    """The parts and their order are described in docs/ofc.md. out: uint8 [N, obs]

    Everything is indexed from the whole array: views of rows cost more than what is written into them.
    """
    words = out.view(np.uint64)
    for i in range(len(states)):
        state = states[i]
        for word in range(words.shape[1]):
            words[i, word] = 0
        observe_unseen(unseen(state), words, out, i)
        at = UNSEEN_FEATURES
        for ahead in range(state.seats):
            observe_seat(state, (state.turn + ahead) % state.seats, out, i, at)
            at += SEAT_FEATURES
        for place in range(FIRST_DRAW):
            card = state.drawn[place]
            if card < JOKER:
                out[i, at + (card >> 2)] = 1
                out[i, at + 14 + (card & 3)] = 1
            else:
                out[i, at + 13] = card != EMPTY
            at += CARD_FEATURES
        observe_made(state, out, i, at)
        at += 3 * MADE_FEATURES + ORDER_FEATURES
        out[i, at + min(state.street, STREETS - 1)] = 1
        at += STREETS
        out[i, at + (state.turn + 2 * state.seats - state.button - 1) % state.seats] = 1
        at += 3
        out[i, at] = paid_by(state) == SESSION


@inner
def observe_seat(state, seat, out, i, at):
    """One seat's board by row; a Fantasyland board stays face down until the showdown."""
    fantasy = state.fantasy_cards[seat]
    if fantasy:
        out[i, at + 3 * ROW_FEATURES] = fantasy - 13
        return
    for row in range(3):
        count = state.count[seat, row]
        for place in range(count):
            card = state.board[seat, ROW_START[row] + place]
            if card < JOKER:
                out[i, at + (card >> 2)] += 1
                out[i, at + 14 + (card & 3)] += 1
            else:
                out[i, at + 13] += 1
        out[i, at + 18] = ROW_SIZE[row] - count
        at += ROW_FEATURES


@inner
def observe_made(state, out, i, at):
    """What the rows of the seat to move hold and may become: derived from its own cards alone."""
    board, below, order = state.board[state.turn], 0, at + 3 * MADE_FEATURES
    for row in (TOP, MIDDLE, BOTTOM):
        count = state.count[state.turn, row]
        once, twice, thrice, four, suits, jokers = sets_of(board, ROW_START[row], count)
        pairs, trips = twice, thrice  # mostly none, and out is 0 there
        while pairs:
            out[i, at + HIGHEST[pairs]] = 1
            pairs ^= 1 << HIGHEST[pairs]
        while trips:
            out[i, at + 13 + HIGHEST[trips]] = 1
            trips ^= 1 << HIGHEST[trips]
        out[i, at + 26] = suits & (suits - 1) == 0
        out[i, at + 27] = twice == 0 and STRAIGHT_TOP[once] >= 0
        at += MADE_FEATURES
        value = best_of_sets(count, once, twice, thrice, four, suits, jokers)
        if row != TOP:
            out[i, order + row - MIDDLE] = value >= below
        below = value


@inner
def observe_unseen(cards, words, out, i):
    """Each card that may still come, and how many of each rank and suit. cards: bits, four for each rank"""
    for eight in range(7):  # two bytes too many, which are written over
        words[i, eight] = EIGHT[cards >> np.uint64(8 * eight) & np.uint64(255)]
    naturals = cards & np.uint64((1 << JOKER) - 1)
    pairs = naturals - (naturals >> np.uint64(1) & np.uint64(0x5555555555555))
    fours = (pairs & np.uint64(0x3333333333333)) + (pairs >> np.uint64(2) & np.uint64(0x3333333333333))
    for rank in range(13):
        out[i, CARDS + rank] = fours >> np.uint64(4 * rank) & np.uint64(15)
    for suit in range(4):
        of_suit = naturals >> np.uint64(suit) & np.uint64(ONES)
        out[i, CARDS + 13 + suit] = of_suit * np.uint64(0x1111111111111111) >> np.uint64(
            60
        )  # adds the nibbles


def observed_bytes(seats: int) -> int:
    return -(-(seats * SEAT_FEATURES + COMMON_FEATURES) // 8) * 8  # whole words
