"""Lines of metrics as columns of numbers, at a gigabyte a second on each core.

Compiled code reads plain lines: numbers, words such as null, and strings of ASCII. A line is expected to have
the keys of the line before it, so a key is compared with one candidate and never looked up. Every other line
(a new key, an escape, a list, damage) goes to `lines.parsed`, which decides what a line means.
"""

import json
import threading
from dataclasses import dataclass, field

import numpy as np

from ludus.core.jit import inner, njit
from ludus.store.lines import METRICS, NEEDED, is_number, parsed
from ludus.store.scan import (
    BLANK,
    NEWLINE,
    PADDING,
    QUOTE,
    are_same,
    byte,
    end_of_line,
    end_of_string,
    skip_blanks,
    value,
)

MOST_KEYS, KEY_BYTES = 512, 128
"""Keys beyond these are not read: a file from anywhere must not take all memory."""
OPEN, CLOSE, COLON, COMMA = (ord(sign) for sign in "{}:,")
FRAME = 4
"""Bytes of a key's text that are not its name: two quotes, a colon and a blank."""
DONE, ODD, FULL = 0, 1, 2
"""How `_parse` ended: at the end of the text, after a line that is not plain, with no row left."""


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
        ended, line, at = _parse(begin, at, end, texts, masks, keys.lengths, after, values, starts, counts)
        if ended == FULL:
            values = np.concatenate((values, np.empty_like(values)))
            starts = np.concatenate((starts, np.empty_like(starts)))
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


# ---- compiled: addresses instead of arrays, as in `scan`


@njit
def _parse(
    data: int, at: int, end: int, texts: int, masks: int, lengths: np.ndarray, after: np.ndarray,
    values: np.ndarray, starts: np.ndarray, counts: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """Lines from `at` on into rows from counts[0] on: how it ended, at which line, and where to go on."""
    while at < end:
        line, row = at, counts[0]
        if row >= len(starts):
            return FULL, line, line
        for key in range(values.shape[1]):
            values[row, key] = np.nan
        at = _parse_line(line, texts, masks, lengths, after, values[row])
        if at < 0:
            return ODD, line, end_of_line(line)
        if np.isnan(values[row, 0]) or np.isnan(values[row, 1]):
            counts[1] += 1
        else:
            starts[row] = line - data
            counts[0] += 1
    return DONE, at, at


@inner
def _parse_line(
    at: int, texts: int, masks: int, lengths: np.ndarray, after: np.ndarray, row: np.ndarray
) -> int:
    """Where the next line begins; -1 if this one is not plain. row: [keys], gets the values"""
    if byte(at) != OPEN:
        return -1
    at, before = at + 1, MOST_KEYS
    while True:
        key = after[before]
        if _matches(at, texts + KEY_BYTES * key, masks + KEY_BYTES * key, lengths[key]):
            at += lengths[key]
        else:
            at, key = _other_key(at, texts, lengths, key, len(row))
            if key >= 0:
                after[before] = key
        if at >= 0:
            at, number = value(at)
        if at < 0:
            return -1
        if key >= 0:
            row[key], before = number, key
        if byte(at) == COMMA and byte(at + 1) == BLANK:
            at += 2
            continue
        at = skip_blanks(at) + 1
        if byte(at - 1) == CLOSE:
            at = skip_blanks(at)
            return at + 1 if byte(at) == NEWLINE else -1
        if byte(at - 1) != COMMA:
            return -1


@inner
def _matches(at: int, text: int, mask: int, length: int) -> bool:
    """Whether a key stands here as usual."""
    same, place = are_same(at, text, mask), PADDING
    while same and place < length:
        same = are_same(at + place, text + place, mask + place)
        place += PADDING
    return same


@inner
def _other_key(at: int, texts: int, lengths: np.ndarray, guess: int, known: int) -> tuple[int, int]:
    """Where the value begins (-1: it is not plain, or the key is new), and which key it is (-1: not read)."""
    start = skip_blanks(at) + 1
    end = end_of_string(start) if byte(start - 1) == QUOTE else -1
    if end < 0:
        return -1, -1
    key = known  # the guess may be wrong about blanks only
    while key >= 0 and not _is_named(start, end, texts, lengths, guess if key == known else key):
        key -= 1
    key = guess if key == known else key
    if key < 0 and known < MOST_KEYS and end - start + FRAME <= KEY_BYTES:
        return -1, -1
    at = skip_blanks(end + 1)
    return (skip_blanks(at + 1) if byte(at) == COLON else -1), key


@inner
def _is_named(start: int, end: int, texts: int, lengths: np.ndarray, key: int) -> bool:
    if lengths[key] != end - start + FRAME:
        return False
    for place in range(end - start):
        if byte(start + place) != byte(texts + KEY_BYTES * key + 1 + place):
            return False
    return True
