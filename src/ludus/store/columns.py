"""Lines of metrics as columns of numbers, at a gigabyte a second on each core.

Compiled code reads plain lines: numbers, words such as null, and strings of ASCII. A line is expected to have
the keys of the line before it, so a key is compared with one candidate and never looked up. Every other line
(a new key, an escape, a list, damage) goes to `lines.parsed`, which decides what a line means.
"""

import json
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ludus.core.jit import njit
from ludus.store.lines import METRICS, NEEDED, is_number, parsed

MOST_KEYS, KEY_BYTES = 512, 128
"""Keys beyond these are not read: a file from anywhere must not take all memory."""
WORD, FIRST_WORDS = 8, 4
"""Bytes that are looked at together, and how many of them of every key."""
PADDING = WORD * FIRST_WORDS
"""Bytes after every text that may be looked at and don't matter."""
QUOTE, BACKSLASH, COLON, COMMA, NEWLINE, BLANK = (ord(sign) for sign in '"\\:,\n ')
OPEN, CLOSE, MINUS, PLUS, POINT, ZERO, NINE, LETTER_E = (ord(sign) for sign in "{}-+.09e")
TENS = 10 ** np.arange(19)
MOST_DIGITS = 18
ROOM = 10 ** (MOST_DIGITS - np.arange(WORD + 1))
"""Below these, so many digits more still fit."""
POWERS = np.array([float(f"1e{power}") for power in range(281)])
"""Times MOST_DIGITS these are still numbers."""
DONE, ODD, FULL = 0, 1, 2
"""How `_parse` ended: at the end of the text, after a line that is not plain, with no row left."""


def _spread(byte: int) -> np.uint64:
    """A byte, eight times."""
    return np.uint64(byte * 0x0101010101010101)


ONES, HIGH_BITS, LOW_HALVES = _spread(0x01), _spread(0x80), _spread(0x0F)
BLANKS, QUOTES, BACKSLASHES, ZEROS = (_spread(ord(sign)) for sign in ' "\\0')
OVER_NINE = _spread(0x80 - 10)
"""Added to a digit's value, it reaches the high bit only if that is not below ten."""


def _as_word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(text.encode(), "little"))


NULL, TRUE, FALSE, NAN, INFINITY = map(_as_word, ("null", "true", "false", "NaN", "Infinity"))
THREE, FOUR, FIVE = (np.uint64((1 << 8 * size) - 1) for size in (3, 4, 5))


@dataclass
class Keys:
    """The keys that were met, in order; the place of a key is that of its column."""

    names: list[str] = field(default_factory=list)
    texts: np.ndarray = field(default_factory=lambda: np.zeros((MOST_KEYS, KEY_BYTES), np.uint8))
    """[keys, bytes]: each as it stands in a line, up to its value."""
    masks: np.ndarray = field(default_factory=lambda: np.zeros((MOST_KEYS, KEY_BYTES), np.uint8))
    """[keys, bytes]: all bits of the bytes that matter."""
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(MOST_KEYS, np.int64))
    after: np.ndarray = field(default_factory=lambda: np.zeros(MOST_KEYS + 1, np.int64))
    """Which key followed each key the last time; at the end, which one came first."""
    line_bytes: float = 512.0
    """Of a line, on average the last time: for so many there is room at first."""
    _places: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for name in NEEDED[METRICS][0]:
            self.add(name)

    def add(self, name: str) -> int:
        """Its place, or -1 if it is not read. May be called from several threads."""
        with self._lock:
            text = f"{json.dumps(name)}: ".encode()
            if name in self._places:
                return self._places[name]
            if len(self.names) == MOST_KEYS or len(text) > KEY_BYTES:
                return -1
            place = self._places[name] = len(self.names)
            self.texts[place, : len(text)] = np.frombuffer(text, np.uint8)
            self.masks[place, : len(text)] = 255
            self.lengths[place] = len(text)
            self.names.append(name)  # last: threads that parse count the names
            return place


@dataclass
class Columns:
    values: np.ndarray
    """[lines, keys] float64; NaN where a line does not have the key."""
    starts: np.ndarray
    """[lines] int64: where each line begins in the text."""
    damaged: int
    """Lines that are not of use."""


def padded(text: bytes) -> np.ndarray:
    """A text as `read` takes it."""
    return np.frombuffer(bytearray(text + bytes(PADDING)), np.uint8)


def read(data: np.ndarray, keys: Keys) -> Columns:
    """data: [bytes + PADDING] uint8, whole lines. keys: grows by what is new"""
    after = keys.after.copy()  # another thread may know keys that have no column here yet
    rows = int(1.1 * len(data) / keys.line_bytes) + 2
    values = np.empty((rows, len(keys.names)))
    starts, counts = np.empty(rows, np.int64), np.zeros(2, np.int64)  # counts: rows, damaged
    begin, texts, masks = data.ctypes.data, keys.texts.ctypes.data, keys.masks.ctypes.data
    ended, at, end = FULL, begin, begin + len(data) - PADDING
    while ended != DONE:
        values = _widened(values, len(keys.names))
        known = values.shape[1]
        ended, line, at = _parse(
            begin, at, end, texts, masks, keys.lengths, after, known, values, starts, counts
        )
        if ended == FULL:
            values, starts = (np.concatenate((part, np.empty_like(part))) for part in (values, starts))
        elif ended == ODD:
            row = _odd_row(data[line - begin : at - begin].tobytes(), keys, after)
            if row is not None:
                values = _widened(values, len(row))
                values[counts[0], : len(row)], starts[counts[0]] = row, line - begin
                counts[0] += 1
            else:
                counts[1] += at - line > 1
    count = int(counts[0])
    keys.after, keys.line_bytes = after, len(data) / max(count, 1)
    return Columns(values[:count], starts[:count], int(counts[1]))


def _widened(values: np.ndarray, columns: int) -> np.ndarray:
    missing = columns - values.shape[1]
    return np.hstack((values, np.full((len(values), missing), np.nan))) if missing > 0 else values


def _odd_row(text: bytes, keys: Keys, after: np.ndarray) -> np.ndarray | None:
    """A line as everybody reads it: [keys] float64; None if it is not of use. after: learns its order"""
    line = parsed(text, METRICS)
    if line is None:
        return None
    places = {name: keys.add(name) for name in line}
    row, before = np.full(len(keys.names), np.nan), MOST_KEYS
    for name, place in places.items():
        if place >= 0:
            row[place] = line[name] if is_number(line[name]) else np.nan
            after[before] = before = place
    return row


# ---- lines
# Compiled functions pass addresses on, not arrays: numba counts the references to an array at every call.


@njit
def _parse(
    data: int, at: int, end: int, texts: int, masks: int, lengths: np.ndarray, after: np.ndarray,
    known: int, values: np.ndarray, starts: np.ndarray, counts: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """Lines from `at` on into rows from counts[0] on: how it ended, at which line, and where to go on."""
    while at < end:
        line, row = at, counts[0]
        if row >= len(starts):
            return FULL, line, line
        for key in range(values.shape[1]):
            values[row, key] = np.nan
        at = _parse_line(line, texts, masks, lengths, after, known, values[row])
        if at < 0:
            return ODD, line, _end_of_line(line)
        if np.isnan(values[row, 0]) or np.isnan(values[row, 1]):
            counts[1] += 1
        else:
            starts[row] = line - data
            counts[0] += 1
    return DONE, at, at


@njit
def _parse_line(
    at: int, texts: int, masks: int, lengths: np.ndarray, after: np.ndarray, known: int, row: np.ndarray
) -> int:
    """Where the next line begins; -1 if this one is not plain. No bounds: the text ends with a newline."""
    if _byte(at) != OPEN:
        return -1
    at, before = at + 1, MOST_KEYS
    while True:
        key = after[before]
        if _matches(at, texts + KEY_BYTES * key, masks + KEY_BYTES * key, lengths[key]):
            at += lengths[key]
        else:
            start = _skip_blanks(at) + 1
            end = _end_of_string(start) if _byte(start - 1) == QUOTE else -1
            if end < 0:
                return -1
            if lengths[key] != end - start + 4 or not _is_named(start, end, texts + KEY_BYTES * key):
                key = known - 1
                while key >= 0 and (
                    lengths[key] != end - start + 4 or not _is_named(start, end, texts + KEY_BYTES * key)
                ):
                    key -= 1
            if key < 0 and known < MOST_KEYS and end - start + 4 <= KEY_BYTES:
                return -1
            at = _skip_blanks(end + 1)
            if _byte(at) != COLON:
                return -1
            at = _skip_blanks(at + 1)
            if key >= 0:
                after[before] = key
        at, value = _value(at)
        if at < 0:
            return -1
        if key >= 0:
            row[key] = value
            before = key
        if _byte(at) == COMMA and _byte(at + 1) == BLANK:
            at += 2
            continue
        at = _skip_blanks(at) + 1
        if _byte(at - 1) == CLOSE:
            at = _skip_blanks(at)
            return at + 1 if _byte(at) == NEWLINE else -1
        if _byte(at - 1) != COMMA:
            return -1


@njit
def _skip_blanks(at: int) -> int:
    while _byte(at) == BLANK or _byte(at) == 9 or _byte(at) == 13:
        at += 1
    return at


@njit
def _end_of_line(at: int) -> int:
    while _byte(at) != NEWLINE:
        at += 1
    return at + 1


@njit
def _matches(at: int, text: int, mask: int, length: int) -> bool:
    """Whether a key stands here as usual."""
    same = _are_same(at, text, mask)
    place = PADDING
    while same and place < length:
        same = _are_same(at + place, text + place, mask + place)
        place += PADDING
    return same


@njit
def _is_named(start: int, end: int, text: int) -> bool:
    for place in range(end - start):
        if _byte(start + place) != _byte(text + 1 + place):
            return False
    return True


# ---- values


@njit(forceinline=True)
def _value(at: int) -> tuple[int, float]:
    """Where a value ends (-1: it is not plain), and the number that it is; NaN for anything else."""
    if _byte(at) == MINUS:  # a branch of its own: the processor need not wait to know where to go on
        at, value = _number(at + 1)
        return at, -value
    if ZERO <= _byte(at) <= NINE:
        return _number(at)
    return _end_of_other(at), np.nan


@njit(forceinline=True)
def _number(at: int) -> tuple[int, float]:
    """Without its sign."""
    start = at
    at, digits = _whole(start)
    if at == start:
        return -1, np.nan
    scale = 0
    if _byte(at) == POINT:
        point = at + 1
        at, digits = _more_digits(point, digits)
        scale = at - point
        if scale == 0:
            return -1, np.nan
    if _byte(at) | BLANK == LETTER_E:
        at, power = _exponent(at + 1)
        scale -= power
    if digits < 0 or abs(scale) >= len(POWERS):
        return -1, np.nan
    return at, (digits / POWERS[scale] if scale > 0 else digits * POWERS[-scale])


@njit(forceinline=True)
def _whole(at: int) -> tuple[int, int]:
    """Where a whole number ends, and its value; below 0 if it is not plain."""
    if _byte(at + 1) == POINT and ZERO <= _byte(at) <= NINE:  # most often
        return at + 1, np.int64(_byte(at)) - ZERO
    end, digits = _more_digits(at, 0)
    return end, (-1 if _byte(at) == ZERO and end > at + 1 else digits)


@njit(forceinline=True)
def _more_digits(at: int, digits: int) -> tuple[int, int]:
    """Where digits end, and the number with them at its end; below 0 if it has too many.

    Eight digits are a branch of their own, so the processor guesses where to go on and need not wait.
    """
    others = _not_digits(_word(at))
    while others == 0:
        digits = digits * TENS[WORD] + _digits(_word(at), WORD) if 0 <= digits < ROOM[WORD] else -1
        at += WORD
        others = _not_digits(_word(at))
    count = _first_byte(others)
    fits = 0 <= digits < ROOM[count]
    return at + count, (digits * TENS[count] + _digits(_word(at), count) if fits else -1)


@njit
def _exponent(at: int) -> tuple[int, int]:
    """Where it ends (-1: it has no digits, or too many), and its value."""
    negative = _byte(at) == MINUS
    at += negative or _byte(at) == PLUS
    count = _first_byte(_not_digits(_word(at)))
    if count == 0 or count == WORD:
        return -1, 0
    power = _digits(_word(at), count)
    return at + count, (-power if negative else power)


@njit
def _end_of_other(at: int) -> int:
    """Of a value that is no number; -1 if it is not plain."""
    if _byte(at) == QUOTE:
        return _end_of_string(at + 1) + 1 or -1
    word = _word(at)
    if word & THREE == NAN:
        return at + 3
    if word & FOUR == NULL or word & FOUR == TRUE:
        return at + 4
    if word & FIVE == FALSE:
        return at + 5
    return at + 8 if word == INFINITY else -1


@njit
def _end_of_string(at: int) -> int:
    """Its closing quote; -1 if anything but plain ASCII comes before."""
    found = _find_special(_word(at))
    while found == WORD:
        at += WORD
        found = _find_special(_word(at))
    return at + found if _byte(at + found) == QUOTE else -1


# ---- eight bytes at once


def _load(bits: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)

    return generate


@intrinsic
def _byte(typing: Any, at: Any) -> Any:
    """The byte at an address."""
    return types.uint8(types.int64), _load(8)


@intrinsic
def _word(typing: Any, at: Any) -> Any:
    """Eight bytes from an address on as one number."""
    return types.uint64(types.int64), _load(64)


@intrinsic
def _are_same(typing: Any, at: Any, text: Any, mask: Any) -> Any:
    """Whether PADDING bytes are the same at two addresses, as far as the bits of a mask matter."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.VectorType(ir.IntType(64), PADDING // WORD).as_pointer()
        one, other, bits = (builder.load(builder.inttoptr(place, wide), align=1) for place in args)
        whole = builder.bitcast(builder.and_(builder.xor(one, other), bits), ir.IntType(8 * PADDING))
        return builder.icmp_unsigned("==", whole, ir.Constant(whole.type, 0))

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    """How many bits below the lowest that is set; 64 if none is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@njit
def _first_byte(found: np.uint64) -> int:
    """Which byte the lowest bit is in; WORD if there is none."""
    return _trailing_zeros(found) >> 3


@njit
def _find_special(word: np.uint64) -> int:
    """The first quote, backslash, control character or byte beyond ASCII."""
    quotes, backslashes = word ^ QUOTES, word ^ BACKSLASHES
    quotes, backslashes = (quotes - ONES) & ~quotes, (backslashes - ONES) & ~backslashes
    return _first_byte((quotes | backslashes | (word - BLANKS) | word) & HIGH_BITS)  # above it, bits may lie


@njit
def _not_digits(word: np.uint64) -> np.uint64:
    """The high bit of the first byte that is no digit, and maybe some above it; 0 if all eight are."""
    digits = word ^ ZEROS
    return ((digits + OVER_NINE) | digits) & HIGH_BITS


@njit
def _digits(word: np.uint64, count: int) -> int:
    """The number that the first `count` bytes are. Pairs of digits, then pairs of those: three products."""
    half = np.uint64(4 * (WORD - count))
    word = (word << half << half) & LOW_HALVES  # twice: a shift by all 64 bits is undefined
    word = word * np.uint64(2561) >> np.uint64(8)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    return np.int64((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32))
