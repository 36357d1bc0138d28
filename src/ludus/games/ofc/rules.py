"""OFC as Rules: legal actions, observations and text, for many sessions at once."""

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import inner, njit
from ludus.core.rules import States, Streams
from ludus.core.spec import Part, Spec
from ludus.games.ofc import Options, text
from ludus.games.ofc.cards import CARDS, EMPTY, HIGHEST, JOKER, STRAIGHT_TOP, best_of_sets, sets_of
from ludus.games.ofc.finish import finish_action, finish_rows, judge_rows
from ludus.games.ofc.hand import (
    ACTIONS,
    FIRST_ACTIONS,
    FIRST_DRAW,
    STATE,
    STATS,
    STREETS,
    act,
    cut_session,
    paid_by,
    redeal_hidden,
    start_session,
    unseen,
)
from ludus.games.ofc.scoring import (
    BOTTOM,
    FANTASY_FLAT,
    FANTASY_OFF,
    FANTASY_PROGRESSIVE,
    FIXED,
    MIDDLE,
    ROW_SIZE,
    ROW_START,
    SESSION,
    TOP,
)

FANTASY = {"off": FANTASY_OFF, "flat": FANTASY_FLAT, "progressive": FANTASY_PROGRESSIVE}

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


def _first_street() -> np.ndarray:
    """Which ways to place five cards leave at most three on top. bool [243]"""
    top = [sum(code // 3**i % 3 == 0 for i in range(5)) for code in range(FIRST_ACTIONS)]
    return np.array(top) <= 3


def _later_streets() -> np.ndarray:
    """Which ways to place two cards fit the room (0, 1, 2+) in top, middle, bottom. bool [3, 3, 3, 27]"""
    fits = np.zeros((3, 3, 3, 27), bool)
    for room in np.ndindex(3, 3, 3):
        for code in range(27):
            need = np.bincount([code // 9, code // 3 % 3], minlength=3)
            fits[*room, code] = (need <= room).all()
    return fits


FIRST_LEGAL, LATER_LEGAL = _first_street(), _later_streets()


@njit
def deal_rows(states, rng):
    for i in range(len(states)):
        start_session(states[i], rng[i])


@njit
def play_rows(states, actions, rng):
    for i in range(len(states)):
        state, action = states[i], np.int64(actions[i])
        while action >= 0:
            act(state, action, rng[i])
            last = state.exact and state.street == STREETS - 1 and not state.over
            action = finish_action(state) if last else -1


@njit
def advance_rows(states, actions, rng, legal, obs, score, reward, over, seat, rows, last):
    """See `core.rules.Advances`."""
    for i in range(len(states)):
        if not (0 <= actions[i] < ACTIONS and legal[i, actions[i]]):
            return -1
    play_rows(states, actions, rng)
    finished = 0
    for i in range(len(states)):
        state = states[i]
        for s in range(score.shape[1]):
            reward[i, s] = state.points[s] - score[i, s]
            score[i, s] = state.points[s]
        over[i] = state.over == 1
        if over[i]:
            rows[finished] = i
            last[finished] = state
            finished += 1
            deal_rows(states[i : i + 1], rng[i : i + 1])
            score[i, :] = 0
        seat[i] = states[i].turn
    legal_rows(states, legal)
    observe_rows(states, obs)
    return finished


@njit
def redeal_rows(states, rng):
    for i in range(len(states)):
        redeal_hidden(states[i], rng[i])


@njit
def cut_rows(states):
    for i in range(len(states)):
        cut_session(states[i])


@njit
def legal_rows(states, out):
    for i in range(len(states)):
        state = states[i]
        for action in range(ACTIONS):
            out[i, action] = False
        if state.over:
            continue
        # Plain loops: a slice set from another array is four times slower in compiled code.
        if state.street == 0:
            for action in range(FIRST_ACTIONS):
                out[i, action] = FIRST_LEGAL[action]
        else:
            mine = state.turn
            top, middle = min(3 - state.count[mine, 0], 2), min(5 - state.count[mine, 1], 2)
            bottom = min(5 - state.count[mine, 2], 2)
            for code in range(ACTIONS - FIRST_ACTIONS):
                out[i, FIRST_ACTIONS + code] = LATER_LEGAL[top, middle, bottom, code]


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


class Ofc:
    def __init__(self, options: Options) -> None:
        if options.seats not in (2, 3):
            raise Usage(f"ofc is for 2 or 3 seats, not {options.seats}")
        if options.jokers not in (0, 2):
            raise Usage(f"ofc is played with 0 or 2 jokers, not {options.jokers}")
        if options.fantasyland not in FANTASY:
            raise Usage(f"fantasyland is {', '.join(FANTASY)}, not {options.fantasyland!r}")
        if options.fantasyland_hands not in ("played", "valued", "sampled"):
            raise Usage(f"fantasyland_hands is played, valued or sampled, not {options.fantasyland_hands!r}")
        if options.last_street not in ("played", "exact"):
            raise Usage(f"last_street is played or exact, not {options.last_street!r}")
        if not 1 <= options.hands <= 1_000_000:
            raise Usage(f"a session has 1 to 1,000,000 hands, not {options.hands}")
        self.options = options
        size = -(-(options.seats * SEAT_FEATURES + COMMON_FEATURES) // 8) * 8  # whole words
        self.spec = Spec(
            game="ofc",
            seats=options.seats,
            actions=ACTIONS,
            parts=(Part("cards", (size,)),),
            state=STATE,
            stats=STATS,
            hidden=True,
        )

    def blank(self, n: int) -> States:
        states = np.zeros(n, STATE)
        states["seats"] = self.options.seats
        states["jokers"] = self.options.jokers
        states["fantasy"] = FANTASY[self.options.fantasyland]
        states["valued"] = FIXED if self.options.fantasyland_hands == "valued" else 0
        states["stay_middle"] = self.options.stay_middle
        states["sampled"] = self.options.fantasyland_hands == "sampled"
        states["exact"] = self.options.last_street == "exact"
        states["hands"] = self.options.hands
        return states

    def deal(self, states: States, rng: Streams) -> None:
        deal_rows(states, rng)

    def seat(self, states: States) -> np.ndarray:
        return states["turn"].copy()

    def over(self, states: States) -> np.ndarray:
        return states["over"] == 1

    def legal(self, states: States, out: np.ndarray) -> None:
        legal_rows(states, out)

    def observe(self, states: States, out: np.ndarray) -> None:
        observe_rows(states, out)

    def play(self, states: States, actions: np.ndarray, rng: Streams) -> None:
        play_rows(states, actions, rng)

    def advance(
        self, states: States, actions: np.ndarray, rng: Streams, legal: np.ndarray, obs: np.ndarray,
        score: np.ndarray, reward: np.ndarray, over: np.ndarray, seat: np.ndarray, rows: np.ndarray,
        last: States,
    ) -> int:  # fmt: skip
        return advance_rows(states, actions, rng, legal, obs, score, reward, over, seat, rows, last)

    def score(self, states: States, out: np.ndarray) -> None:
        out[:] = states["points"][:, : self.spec.seats]

    def stats(self, states: States, out: np.ndarray) -> None:
        out[:] = states["stats"][:, : self.spec.seats]

    def redeal(self, states: States, rng: Streams) -> None:
        redeal_rows(states, rng)

    def finish(self, states: States, actions: np.ndarray) -> np.ndarray:
        known = np.zeros(len(states), bool)
        finish_rows(states, actions, known)
        return known

    def judge(self, states: States, ideas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        worth, judged = np.zeros(ideas.shape), np.zeros(len(states), bool)
        judge_rows(states, ideas, worth, judged)
        return worth, judged

    def cut(self, states: States) -> None:
        cut_rows(states)

    def text(self, state: np.void) -> str:
        return text.state_text(state)

    def parse(self, line: str) -> States:
        return text.parse_state(line, self.blank(1))

    def action_text(self, state: np.void, action: int) -> str:
        return text.action_text(state, action)

    def parse_action(self, state: np.void, line: str) -> int:
        return text.parse_action(state, line)
