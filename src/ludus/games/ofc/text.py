"""OFC states and actions as text, and back."""

import numpy as np

from ludus.core.errors import Usage
from ludus.games.ofc.cards import EMPTY, card_text, parse_cards
from ludus.games.ofc.hand import FIRST_ACTIONS, FIRST_DRAW, STREETS, full_deck
from ludus.games.ofc.scoring import ROW_SIZE, ROW_START

ROWS = "tmb"
"""The rows' letters: top, middle, bottom. A discarded card is marked with -"""
ROW_NAMES = ("top", "middle", "bottom")
FORM = (
    "hand N; button N; turn N; street N; (sampled hands: repeats N;) drawn CARDS; then for each seat: "
    "board ROW / ROW / ROW; out CARDS; fantasy N CARDS; points N; stats N ..."
)


def cards_text(cards: np.ndarray) -> str:
    return " ".join(card_text(int(card)) for card in cards if card != EMPTY)


def state_text(state: np.void) -> str:
    """Everything but the rule switches, which belong to the rules that parse it."""
    fields = [f"{name} {state[name]}" for name in _numbers(state)]
    fields.append(f"drawn {cards_text(state['drawn'])}".strip())
    for seat in range(state["seats"]):
        rows = (
            state["board"][seat][start : start + size]
            for start, size in zip(ROW_START, ROW_SIZE, strict=True)
        )
        fields.append("board " + " / ".join(cards_text(row) for row in rows))
        fields.append(f"out {cards_text(state['discards'][seat])}".strip())
        fantasy = f"fantasy {state['fantasy_cards'][seat]} {cards_text(state['fantasy_hand'][seat])}"
        fields.append(fantasy.strip())
        fields.append(f"points {float(state['points'][seat])!r}")
        fields.append("stats " + " ".join(repr(float(number)) for number in state["stats"][seat]))
    return "; ".join(fields)


def _numbers(state: np.void) -> list[str]:
    return ["hand", "button", "turn", "street"] + ["repeats"] * bool(state["sampled"])


def parse_state(line: str, states: np.ndarray) -> np.ndarray:
    """Fill states [1], which hold the rule switches, from a line of `state_text`."""
    try:
        _fill(states[0], [field.strip() for field in line.split(";")])
    except (ValueError, IndexError):
        raise Usage(f"{line!r} is not an OFC state: {FORM}") from None
    return states


def _fill(state: np.void, fields: list[str]) -> None:
    numbers = _numbers(state)
    names = [*numbers, "drawn"] + ["board", "out", "fantasy", "points", "stats"] * int(state["seats"])
    words = []
    for name, field in zip(names, fields, strict=True):
        first, _, rest = field.partition(" ")
        if first != name:
            raise ValueError(name)
        words.append(rest.strip())
    for name in numbers:
        state[name] = int(words.pop(0))
    state["over"] = state["street"] == STREETS
    if state["turn"] >= state["seats"] or state["button"] >= state["seats"] or state["street"] > STREETS:
        raise ValueError("seat or street")
    _set_cards(state["drawn"], words.pop(0))
    state["board"] = state["discards"] = state["fantasy_hand"] = EMPTY
    for seat in range(state["seats"]):
        _fill_seat(state, seat, *words[5 * seat : 5 * seat + 5])
    state["deck"] = full_deck(state["jokers"])
    _take_from_deck(state)


def _fill_seat(
    state: np.void, seat: int, board: str, out: str, fantasy: str, points: str, stats: str
) -> None:
    for row, words in enumerate(board.split("/")):
        start, size = ROW_START[row], ROW_SIZE[row]
        state["count"][seat][row] = _set_cards(state["board"][seat][start : start + size], words)
    _set_cards(state["discards"][seat], out)
    cards, _, hand = fantasy.partition(" ")
    state["fantasy_cards"][seat] = int(cards)
    _set_cards(state["fantasy_hand"][seat], hand)
    state["points"][seat] = float(points)
    state["stats"][seat] = [float(word) for word in stats.split()]


def _set_cards(slots: np.ndarray, words: str) -> int:
    cards = parse_cards(words)
    if len(cards) > len(slots):
        raise ValueError(words)
    slots[:] = EMPTY
    slots[: len(cards)] = cards
    return len(cards)


def _take_from_deck(state: np.void) -> None:
    """Every card that was dealt leaves the deck, and none is dealt twice."""
    dealt = [*state["drawn"], *state["discards"].ravel(), *state["fantasy_hand"].ravel()]
    for seat in range(state["seats"]):
        if state["fantasy_hand"][seat][0] == EMPTY:
            dealt += [*state["board"][seat]]
    for card in dealt:
        if card != EMPTY:
            bit = 1 << int(card)
            if not int(state["deck"]) & bit:
                raise Usage(f"{card_text(int(card))} is in this OFC state twice, or not in its deck")
            state["deck"] = int(state["deck"]) ^ bit


def action_text(state: np.void, action: int) -> str:
    """Each drawn card with its row, as in `2c:m As:t Kd:-`."""
    drawn = [card_text(int(card)) for card in state["drawn"] if card != EMPTY]
    return " ".join(f"{card}:{row}" for card, row in zip(drawn, row_letters(action), strict=True))


def row_letters(action: int) -> str:
    if action < FIRST_ACTIONS:
        return "".join(ROWS[action // 3 ** (FIRST_DRAW - 1 - card) % 3] for card in range(FIRST_DRAW))
    code = action - FIRST_ACTIONS
    kept = ROWS[code // 9] + ROWS[code // 3 % 3]
    return kept[: code % 3] + "-" + kept[code % 3 :]


def parse_action(state: np.void, line: str) -> int:
    """`2c:m As:t Kd:-`, in any order, or just the rows of the cards as drawn: `mt-`.

    What doesn't fit is refused with the reason.
    """
    drawn = [int(card) for card in state["drawn"] if card != EMPTY]
    letters = _letters(drawn, line.replace(",", " ").strip())
    out = 0 if len(drawn) == FIRST_DRAW else 1
    if problem := _problem(letters, len(drawn), out):
        example = "ttmbb" if out == 0 else "mt-"
        raise Usage(f"{line!r} is not a placement: {problem}; write a row ({', '.join(ROWS)}) for each card"
                    f"{' and - for the one you discard' if out else ''}, as in {example}")  # fmt: skip
    for row, letter in enumerate(ROWS):
        room = ROW_SIZE[row] - state["count"][state["turn"]][row]
        if letters.count(letter) > room:
            left = f"has room for {room}, not {letters.count(letter)}" if room else "is full"
            raise Usage(f"{line!r} is not possible: {ROW_NAMES[row]} {left}")
    rows = [ROWS.index(letter) for letter in letters if letter != "-"]
    if out == 0:
        return sum(row * 3 ** (FIRST_DRAW - 1 - card) for card, row in enumerate(rows))
    return FIRST_ACTIONS + rows[0] * 9 + rows[1] * 3 + letters.index("-")


def _problem(letters: str, cards: int, out: int) -> str | None:
    """Why letters don't place that many cards, if they don't; out: how many are discarded."""
    for letter in letters:
        if letter not in ROWS + "-":
            return f"{letter!r} is no row"
    if len(letters) != cards:
        return f"it has {len(letters)} letters for {cards} cards"
    if letters.count("-") != out:
        return f"it discards {letters.count('-')} cards, not {out}"
    return None


def _letters(drawn: list[int], line: str) -> str:
    """The rows' letters in the order of the drawn cards."""
    if ":" not in line:
        return line.replace(" ", "").lower()
    rows = {}
    for word in line.split():
        card, _, letter = word.partition(":")
        rows[parse_cards(card)[0] if card else -1] = letter.lower()
    if set(rows) != set(drawn) or len(line.split()) != len(drawn):
        raise Usage(f"{line!r} does not place exactly the drawn cards {cards_text(np.array(drawn))}")
    return "".join(rows[card] for card in drawn)
