"""OFC as Rules: legal actions, observations and text, for many sessions at once."""

import numpy as np

from ludus.core.errors import Usage
from ludus.core.jit import njit
from ludus.core.rules import States, Streams
from ludus.core.spec import Part, Spec
from ludus.games.ofc import Options, text
from ludus.games.ofc.afterstates import Placements
from ludus.games.ofc.finish import finish_action, finish_rows, judge_rows, placement_worth
from ludus.games.ofc.hand import (
    ACTIONS,
    EXACT,
    EXPECTED,
    FIRST_ACTIONS,
    STATE,
    STATS,
    STREETS,
    act,
    cut_session,
    redeal_hidden,
    start_session,
)
from ludus.games.ofc.observation import observe_rows, observed_bytes
from ludus.games.ofc.scoring import FANTASY_FLAT, FANTASY_OFF, FANTASY_PROGRESSIVE, FIXED

LAST_STREET = {"played": 0, "exact": EXACT, "expected": EXPECTED}
FANTASY = {"off": FANTASY_OFF, "flat": FANTASY_FLAT, "progressive": FANTASY_PROGRESSIVE}


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
        if state.exact == EXPECTED and state.street == STREETS - 2:
            state.points[state.turn] += placement_worth(state, action)
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
        if options.last_street not in LAST_STREET:
            raise Usage(f"last_street is {', '.join(LAST_STREET)}, not {options.last_street!r}")
        expected = options.last_street == "expected"
        if expected and options.fantasyland_hands == "played":
            raise Usage(
                "last_street=expected pays for Fantasyland at once: take fantasyland_hands=sampled or valued "
                "with it, or last_street=exact"
            )
        if not 1 <= options.hands <= 1_000_000:
            raise Usage(f"a session has 1 to 1,000,000 hands, not {options.hands}")
        self.options = options
        self.spec = Spec(
            game="ofc",
            seats=options.seats,
            actions=ACTIONS,
            parts=(Part("cards", (observed_bytes(options.seats),)),),
            state=STATE,
            stats=STATS,
            zero_sum=not expected,
            hidden=True,
            afterstates=Placements(options.seats),
        )

    def blank(self, n: int) -> States:
        states = np.zeros(n, STATE)
        states["seats"] = self.options.seats
        states["jokers"] = self.options.jokers
        states["fantasy"] = FANTASY[self.options.fantasyland]
        states["valued"] = FIXED if self.options.fantasyland_hands == "valued" else 0
        states["stay_middle"] = self.options.stay_middle
        states["sampled"] = self.options.fantasyland_hands == "sampled"
        states["exact"] = LAST_STREET[self.options.last_street]
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
