"""One hand of OFC from deal to showdown, and a session of hands: the state and how it moves on."""

import numpy as np

from ludus.core.dice import below, next64
from ludus.core.jit import inner, njit
from ludus.games.ofc.cards import EMPTY, JOKER
from ludus.games.ofc.fantasy import solve
from ludus.games.ofc.scoring import (
    BOARD,
    FANTASY_FLAT,
    FANTASY_OFF,
    LONG_SESSION,
    PAID,
    ROW_SIZE,
    ROW_START,
    SEATED,
    SEATED_OF,
    SESSION,
    board_values,
    entry_cards,
    pair_points,
    royalties,
    stays,
)

STREETS, FIRST_DRAW, LATER_DRAW, MOST_FANTASY = 5, 5, 3, 17
FIRST_ACTIONS, ACTIONS = 243, 270
BIG_HAND = 15
EXACT, EXPECTED = 1, 2
"""Of `exact`. EXPECTED: and a hand pays each seat what its board was worth before its last draw."""
REPEATS = 3
"""How often sampled Fantasyland hands are met again, with other cards for everybody else: solving them anew
would be a third of the time that training hands take."""

STATS = (
    "hands", "points", "royalties", "fouls", "wins", "big", "entries", "value",
    "fl_hands", "fl_points", "fl_royalties", "fl_stays",
)  # fmt: skip
"""Counts and sums over a session. Those without fl_ are of normal hands; `value` is what was paid for
Fantasyland that is not played."""
(HANDS, POINTS, ROYALTIES, FOULS, WINS, BIG, ENTRIES, VALUE,
 FL_HANDS, FL_POINTS, FL_ROYALTIES, FL_STAYS) = range(len(STATS))  # fmt: skip

STATE = np.dtype(
    [
        # Wide fields first: numpy does not copy the padding of a record, so there must be none.
        ("deck", np.uint64),  # one bit per card not dealt yet: the state holds no order of the deck
        ("hands", np.int32),
        ("hand", np.int32),
        ("points", np.float32, 3),
        ("stats", np.float32, (3, len(STATS))),
        # rule switches, set once by `blank` (and `hands`)
        ("seats", np.int8),
        ("jokers", np.int8),
        ("fantasy", np.int8),
        ("valued", np.int8),  # the row of PAID that Fantasyland is paid by; 0: by the hands to come
        ("stay_middle", np.int8),
        ("sampled", np.int8),  # a game is any one hand of a session
        ("exact", np.int8),  # EXACT or EXPECTED: the rules place the cards of the last street
        # the session
        ("over", np.int8),
        ("button", np.int8),
        ("fantasy_cards", np.int8, 3),  # 0 for a seat that plays a normal hand, else 14..17
        # the hand
        ("turn", np.int8),
        ("street", np.int8),
        ("drawn", np.uint8, 5),  # cards to place now, sorted, EMPTY after them
        ("count", np.int8, (3, 3)),  # cards in each row
        ("board", np.uint8, (3, BOARD)),  # top 3, middle 5, bottom 5, each filled from its left
        ("discards", np.uint8, (3, 4)),
        ("fantasy_hand", np.uint8, (3, MOST_FANTASY)),
        ("repeats", np.int8),  # sampled hands to come with these Fantasyland hands
        ("spare", np.uint8),
    ],
    align=True,
)


@inner
def draw(state, stream):
    """Take one card from the deck: try random positions until one is still there."""
    while True:
        bits = next64(stream)
        for _ in range(10):
            card = bits & np.uint64(63)
            if state.deck >> card & np.uint64(1):
                state.deck ^= np.uint64(1) << card
                return np.uint8(card)
            bits >>= np.uint64(6)


@inner
def draw_sorted(state, stream, n, out):
    """Draw n cards into out, lowest first, so that equal hands look equal."""
    for i in range(n):
        card = draw(state, stream)
        j = i
        while j > 0 and out[j - 1] > card:
            out[j] = out[j - 1]
            j -= 1
        out[j] = card


@njit
def full_deck(jokers):
    return (np.uint64(1) << np.uint64(JOKER + jokers)) - np.uint64(1)


@njit(inline="always")
def start_session(state, stream):
    state.button = below(stream, state.seats)
    state.points[:] = 0
    state.stats[:] = 0
    if state.over and state.repeats:
        state.repeats -= 1
        repeat_hand(state)
    else:
        state.hand = 0
        state.fantasy_cards[:] = 0
        if state.sampled:
            sample_session(state, stream)
        start_hand(state, stream)
    state.over = 0
    move_on(state, stream, 0)


@inner
def sample_session(state, stream):
    """Any hand of a session, where some seats may be in Fantasyland."""
    state.hand = below(stream, state.hands)
    state.repeats = REPEATS
    normal = state.fantasy == FANTASY_OFF
    while not normal:
        for seat in range(state.seats):
            drawn, cards = below(stream, SEATED_OF), 0
            for kind in range(4):
                if drawn >= SEATED[kind]:
                    cards = 14 if state.fantasy == FANTASY_FLAT else 14 + kind
            state.fantasy_cards[seat] = cards
            normal = normal or cards == 0


@njit(inline="always")
def clear_table(state):
    state.deck = full_deck(state.jokers)
    state.street = 0
    state.count[:] = 0
    state.board[:] = EMPTY
    state.discards[:] = EMPTY


@njit(inline="always")
def repeat_hand(state):
    """The sampled hand once more, with the Fantasyland hands that it had."""
    clear_table(state)
    state.hand -= 1  # its showdown counted it
    for seat in range(state.seats):
        cards = 0
        while cards < MOST_FANTASY and state.fantasy_hand[seat, cards] != EMPTY:
            state.deck ^= np.uint64(1) << np.uint64(state.fantasy_hand[seat, cards])
            cards += 1
        state.fantasy_cards[seat] = cards


@njit(inline="always")
def start_hand(state, stream):
    clear_table(state)
    state.fantasy_hand[:] = EMPTY
    for seat in range(state.seats):
        draw_sorted(state, stream, state.fantasy_cards[seat], state.fantasy_hand[seat])


@inner
def move_on(state, stream, place):
    """Give cards to the next seat that must decide, from the place-th left of the button on.

    Showdowns and whole hands in which every seat is in Fantasyland happen on the way.
    """
    while True:
        for later in range(place, state.seats):
            seat = (state.button + 1 + later) % state.seats
            if state.fantasy_cards[seat] == 0:
                state.turn = seat
                draw_sorted(state, stream, LATER_DRAW if state.street else FIRST_DRAW, state.drawn)
                return
        place = 0
        state.street += 1
        if state.street == STREETS:
            state.turn = 0
            settle(state)
            if state.over:
                return
            start_hand(state, stream)


@inner
def put(state, seat, row, card):
    state.board[seat, ROW_START[row] + state.count[seat, row]] = card
    state.count[seat, row] += 1


@njit
def place_cards(state, action):
    """The seat to move places its cards; nothing else happens yet."""
    seat = state.turn
    if state.street == 0:
        for card in range(FIRST_DRAW):
            put(state, seat, action // 3 ** (FIRST_DRAW - 1 - card) % 3, state.drawn[card])
    else:
        code = action - FIRST_ACTIONS
        out = code % 3
        put(state, seat, code // 9, state.drawn[1 if out == 0 else 0])
        put(state, seat, code // 3 % 3, state.drawn[1 if out == 2 else 2])
        state.discards[seat, state.street - 1] = state.drawn[out]
    state.drawn[:] = EMPTY


@njit(inline="always")
def act(state, action, stream):
    """The seat to move places its cards, and the session moves on to the next decision."""
    place_cards(state, action)
    place = (state.turn + 2 * state.seats - state.button - 1) % state.seats
    move_on(state, stream, place + 1)


@njit(inline="always")
def set_fantasy(state):
    """Seats in Fantasyland put down their boards."""
    for seat in range(state.seats):
        cards = state.fantasy_cards[seat]
        if cards:
            hand = state.fantasy_hand[seat]
            if not (state.sampled and state.repeats < REPEATS):  # else it is listed as it was set
                value = PAID[paid_by(state), cards - 14]  # 0 after the last hand, where nobody can stay
                solve(hand, np.int64(cards), value, state.stay_middle == 1, hand)
            # Loops, because compiling a slice set from another array takes seconds.
            for slot in range(BOARD):
                state.board[seat, slot] = hand[slot]
            for row in range(3):
                state.count[seat, row] = ROW_SIZE[row]


@njit(inline="always")
def settle(state):
    """Showdown: boards are compared, points paid, Fantasyland earned; the session's next hand follows."""
    seats = state.seats
    set_fantasy(state)
    values = np.empty((seats, 3), np.int64)
    stands = np.empty(seats, np.bool_)
    won = np.zeros(seats, np.int64)
    for seat in range(seats):
        stands[seat] = board_values(state.board[seat], values[seat])
        for other in range(seat):
            points = pair_points(values[seat], stands[seat], values[other], stands[other])
            won[seat] += points
            won[other] -= points
    for seat in range(seats):
        if state.exact != EXPECTED:
            state.points[seat] += won[seat]
        count_hand(state, seat, stands[seat], values[seat], won[seat])
    for seat in range(seats):
        next_fantasy(state, seat, stands[seat], values[seat])
    state.hand += 1
    state.over = state.sampled or state.hand == state.hands
    if not state.over:
        state.button = (state.button + 1) % seats


@njit(inline="always")
def count_hand(state, seat, stands_, values, won):
    stats = state.stats[seat]
    bonus = royalties(values) if stands_ else 0
    if state.fantasy_cards[seat]:
        stats[FL_HANDS] += 1
        stats[FL_POINTS] += won
        stats[FL_ROYALTIES] += bonus
    else:
        stats[HANDS] += 1
        stats[POINTS] += won
        stats[ROYALTIES] += bonus
        stats[FOULS] += not stands_
        stats[WINS] += won > 0
        stats[BIG] += won >= BIG_HAND


@njit(inline="always")
def next_fantasy(state, seat, stands_, values):
    """Fantasyland of the next hand; a seat that stays keeps its number of cards."""
    cards = 0
    if state.fantasy_cards[seat]:
        if stands_ and stays(values, state.stay_middle == 1):
            cards = state.fantasy_cards[seat]
            state.stats[seat, FL_STAYS] += 1
    elif stands_:
        cards = entry_cards(values, state.fantasy)
        state.stats[seat, ENTRIES] += cards > 0
    if cards and (state.valued or state.sampled):
        # Points are paid pairwise, and so is Fantasyland's measured value.
        value = PAID[paid_by(state), cards - 14]
        for other in range(state.seats if state.exact != EXPECTED else 0):
            state.points[other] -= value
            state.points[seat] += value
        state.stats[seat, VALUE] += value * (state.seats - 1)
        cards = 0
    state.fantasy_cards[seat] = cards


@inner
def paid_by(state):
    """The row of PAID that says what Fantasyland of the next hand is worth."""
    return state.valued if state.valued else SESSION + min(state.hands - state.hand - 1, LONG_SESSION)


@inner
def cut_session(state):
    """Let the session end after this hand and pay its Fantasyland at once: all that a decision can change."""
    state.valued = paid_by(state)
    state.hands = state.hand + 1


@njit
def unseen(state):
    """The cards that the seat to move can't see, as bits: deck, others' discards and Fantasyland hands."""
    bits = state.deck
    for other in range(state.seats):
        if other != state.turn:
            for i in range(state.street):
                if state.discards[other, i] != EMPTY:
                    bits |= np.uint64(1) << np.uint64(state.discards[other, i])
            for i in range(state.fantasy_cards[other]):
                bits |= np.uint64(1) << np.uint64(state.fantasy_hand[other, i])
    return bits


@inner
def redeal_hidden(state, stream):
    if state.over:
        return
    state.deck = unseen(state)
    state.repeats = REPEATS if state.sampled else 0
    for other in range(state.seats):
        if other != state.turn:
            for i in range(4):
                if state.discards[other, i] != EMPTY:
                    state.discards[other, i] = draw(state, stream)
            draw_sorted(state, stream, state.fantasy_cards[other], state.fantasy_hand[other])
