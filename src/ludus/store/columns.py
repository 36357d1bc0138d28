"""Lines of metrics as columns of numbers, at the speed of the disk: a million lines in about a second.

A line is expected to have the keys of the line before it, so most keys are compared with one candidate and
never looked up. Only numbers are kept; a line that is not of use (`lines.NEEDED`) is skipped, as everywhere.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ludus.core.jit import njit
from ludus.store.lines import METRICS, NEEDED

MOST_KEYS, KEY_BYTES = 512, 128
"""Keys beyond these are not read: a file from anywhere must not take all memory."""
NEEDED_KEYS = NEEDED[METRICS][0]
QUOTE, BACKSLASH, COLON, COMMA, NEWLINE = (ord(sign) for sign in '"\\:,\n')
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = (ord(sign) for sign in "{}[]")
POWERS = 10.0 ** np.arange(0, 309)
ENOUGH, EIGHT_FIT = 10**15, 10**10
"""Digits beyond these would not be seen in a double; below the other there is room for eight more."""
WORD = 8
"""Bytes that are looked at together; so many follow every text."""
DONE, UNKNOWN, FULL = 0, 1, 2
"""How `_parse` ended: at the end of the text, at a key that is not in the table, with no row left."""


@dataclass
class Keys:
    """The keys that were met, in order; the place of a key is that of its column."""

    names: list[str] = field(default_factory=list)
    texts: np.ndarray = field(default_factory=lambda: np.zeros((MOST_KEYS, KEY_BYTES), np.uint8))
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(MOST_KEYS, np.int64))
    after: np.ndarray = field(default_factory=lambda: np.zeros(MOST_KEYS + 1, np.int64))
    """Which key followed each key the last time; at the end, which one came first."""
    line_bytes: float = 512.0
    """Of a line, on average the last time: for so many there is room at first."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for name in NEEDED_KEYS:
            self.add(name.encode())

    def add(self, key: bytes) -> None:
        """May be called from several threads."""
        with self._lock:
            name = key.decode("utf-8", "replace")
            if name not in self.names:
                place = len(self.names)
                self.texts[place, : len(key)] = np.frombuffer(key, np.uint8)
                self.lengths[place] = len(key)
                self.names.append(name)


@dataclass
class Columns:
    values: np.ndarray
    """[lines, keys] float64; NaN where a line does not have the key."""
    starts: np.ndarray
    """[lines] int64: where each line begins in the text."""
    damaged: int
    """Lines that are not of use."""


def spare(text: bytes) -> np.ndarray:
    """A text as `read` takes it."""
    return np.frombuffer(text + bytes(WORD), np.uint8)


def read(data: np.ndarray, keys: Keys) -> Columns:
    """data: [bytes + WORD] uint8, whole lines and WORD bytes that don't matter. keys: grows by what is new"""
    rows = int(1.1 * len(data) / keys.line_bytes) + 2
    values = np.full((rows, len(keys.names)), np.nan)
    starts, counts = np.zeros(rows, np.int64), np.zeros(2, np.int64)  # counts: rows, damaged
    at = 0
    while True:
        known = len(keys.names)
        if known > values.shape[1]:
            values = np.hstack((values, np.full((len(values), known - values.shape[1]), np.nan)))
        ended, at, key_at, key_end = _parse(
            data, at, keys.texts.ravel(), keys.lengths, keys.after, known, values, starts, counts
        )
        if ended == DONE:
            break
        if ended == FULL:
            values = np.concatenate((values, np.full_like(values, np.nan)))
            starts = np.concatenate((starts, np.zeros_like(starts)))
        else:
            keys.add(data[key_at:key_end].tobytes())
    count = int(counts[0])
    keys.line_bytes = len(data) / max(count, 1)
    return Columns(values[:count], starts[:count], int(counts[1]))


@njit
def _parse(
    data: np.ndarray, at: int, texts: np.ndarray, lengths: np.ndarray, after: np.ndarray, known: int,
    values: np.ndarray, starts: np.ndarray, counts: np.ndarray,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Lines from `at` on into rows from counts[0] on: how it ended, where to go on, and the unknown key."""
    size, rows = len(data) - WORD, len(starts)
    while at < size:
        if counts[0] >= rows:
            return FULL, at, 0, 0
        line, row = at, counts[0]
        end, key_at, key_end = _parse_line(data, at, texts, lengths, after, known, values[row])
        if key_at >= 0:
            values[row] = np.nan
            return UNKNOWN, line, key_at, key_end
        whole = end >= 0
        at = end if whole else line
        while at < size and data[at] != NEWLINE:
            at += 1
        at += 1
        if whole and np.isfinite(values[row, 0]) and np.isfinite(values[row, 1]):
            starts[row] = line
            counts[0] += 1
        else:
            values[row] = np.nan
            counts[1] += at - line > 1
    return DONE, at, 0, 0


@njit
def _parse_line(
    data: np.ndarray,
    at: int,
    texts: np.ndarray,
    lengths: np.ndarray,
    after: np.ndarray,
    known: int,
    row: np.ndarray,
) -> tuple[int, int, int]:
    """One object of plain values: where it ended (-1: it is damaged), and an unknown key (-1: none)."""
    size, before = len(data) - WORD, MOST_KEYS
    at = _skip_blanks(data, at)
    if at >= size or data[at] != OPEN:
        return -1, -1, -1
    at = _skip_blanks(data, at + 1)
    if at < size and data[at] == CLOSE:
        return at + 1, -1, -1
    while at < size and data[at] == QUOTE:
        start = at + 1
        key = after[before]
        length = lengths[key]
        if (
            start + length >= size
            or data[start + length] != QUOTE
            or not _same(data, start, texts, key * KEY_BYTES, length)
        ):
            length = _string_length(data, start)
            if length < 0:
                return -1, -1, -1
            key = _find(data, start, length, texts, lengths, known)
            if key < 0 and length <= KEY_BYTES and known < MOST_KEYS:
                return -1, start, start + length
        at = _skip_blanks(data, start + length + 1)
        if at >= size or data[at] != COLON:
            return -1, -1, -1
        at, value = _value(data, _skip_blanks(data, at + 1))
        if at < 0:
            return -1, -1, -1
        if key >= 0:
            row[key] = value
            after[before] = key
            before = key
        at = _skip_blanks(data, at)
        if at >= size:
            return -1, -1, -1
        if data[at] == CLOSE:
            return at + 1, -1, -1
        if data[at] != COMMA:
            return -1, -1, -1
        at = _skip_blanks(data, at + 1)
    return -1, -1, -1


@intrinsic
def _word(typing: Any, data: Any, at: Any) -> Any:
    """Eight bytes from any place as one number; nothing else in NumPy reads them from where they are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(data, types.int64), generate


@njit
def _are_digits(word: np.uint64) -> bool:
    high = np.uint64(0xF0F0F0F0F0F0F0F0)
    over = ((word + np.uint64(0x0606060606060606)) & high) >> np.uint64(4)
    return ((word & high) | over) == np.uint64(0x3333333333333333)


@njit
def _eight_digits(word: np.uint64) -> np.int64:
    """Pairs of digits, then pairs of those: three products instead of eight."""
    word = (word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561) >> np.uint64(8)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    return np.int64((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32))


@njit
def _skip_blanks(data: np.ndarray, at: int) -> int:
    while at < len(data) and (data[at] == 32 or data[at] == 9 or data[at] == 13):
        at += 1
    return at


@njit
def _same(data: np.ndarray, at: int, texts: np.ndarray, start: int, length: int) -> bool:
    place = 0
    while place + WORD <= length:
        if _word(data, at + place) != _word(texts, start + place):
            return False
        place += WORD
    if place == length:
        return True
    mask = (np.uint64(1) << np.uint64(8 * (length - place))) - np.uint64(1)
    return (_word(data, at + place) ^ _word(texts, start + place)) & mask == 0


@njit
def _find(data: np.ndarray, at: int, length: int, texts: np.ndarray, lengths: np.ndarray, known: int) -> int:
    for key in range(known):
        if lengths[key] == length and _same(data, at, texts, key * KEY_BYTES, length):
            return key
    return -1


@njit
def _string_length(data: np.ndarray, start: int) -> int:
    """Up to its closing quote; -1 if it has none in this line."""
    at = start
    while at < len(data) and data[at] != NEWLINE:
        if data[at] == QUOTE:
            return at - start
        at += 2 if data[at] == BACKSLASH else 1
    return -1


@njit
def _value(data: np.ndarray, at: int) -> tuple[int, float]:
    """Where a value ends (-1: it is damaged), and the number that it is; NaN for anything else."""
    size = len(data) - WORD
    if at >= size:
        return -1, np.nan
    sign = data[at]
    if sign == 45 or 48 <= sign <= 57:
        return _number(data, at)
    if sign == QUOTE:
        length = _string_length(data, at + 1)
        return (at + length + 2 if length >= 0 else -1), np.nan
    if sign in (OPEN, OPEN_LIST):
        return _skip_nested(data, at), np.nan
    start = at
    while at < size and (65 <= data[at] <= 90 or 97 <= data[at] <= 122):  # true, null, NaN
        at += 1
    return (at if at > start else -1), np.nan


@njit
def _number(data: np.ndarray, at: int) -> tuple[int, float]:
    size, negative = len(data) - WORD, data[at] == 45
    at += negative
    if at < size and data[at] == 73:  # -Infinity
        while at < size and 65 <= data[at] <= 122:
            at += 1
        return at, np.nan
    start, digits, scale = at, 0, 0
    while at < size and 48 <= data[at] <= 57:
        if digits < ENOUGH:
            digits = digits * 10 + (data[at] - 48)
        else:
            scale += 1
        at += 1
    if at < size and data[at] == 46:
        at += 1
        while at < size and digits < EIGHT_FIT and _are_digits(_word(data, at)):
            digits = digits * 100_000_000 + _eight_digits(_word(data, at))
            scale -= WORD
            at += WORD
        while at < size and 48 <= data[at] <= 57 and digits < ENOUGH:
            digits = digits * 10 + (data[at] - 48)
            scale -= 1
            at += 1
        while at < size and 48 <= data[at] <= 57:
            at += 1
    if at == start:
        return -1, np.nan
    if at < size and (data[at] == 101 or data[at] == 69):
        at, power = _exponent(data, at + 1)
        if at < 0:
            return -1, np.nan
        scale += power
    value = float(digits)
    if scale < -308:
        value, scale = value / POWERS[308], scale + 308
    if scale < 0:
        value = value / POWERS[-scale] if scale >= -308 else 0.0
    else:
        value = value * POWERS[scale] if scale <= 308 else np.nan
    return at, (-value if negative else value)


@njit
def _exponent(data: np.ndarray, at: int) -> tuple[int, int]:
    size, negative, power = len(data) - WORD, False, 0
    if at < size and (data[at] == 43 or data[at] == 45):
        negative = data[at] == 45
        at += 1
    start = at
    while at < size and 48 <= data[at] <= 57:
        power = min(power * 10 + (data[at] - 48), 10000)
        at += 1
    return (at if at > start else -1), (-power if negative else power)


@njit
def _skip_nested(data: np.ndarray, at: int) -> int:
    """Past a list or object, which no metric is; -1 if it has no end in this line."""
    depth = 0
    while at < len(data) and data[at] != NEWLINE:
        sign = data[at]
        if sign == QUOTE:
            length = _string_length(data, at + 1)
            if length < 0:
                return -1
            at += length + 1
        elif sign in (OPEN, OPEN_LIST):
            depth += 1
        elif sign in (CLOSE, CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -1
