"""Scanning JSON in compiled code, eight bytes at a time: numbers, words such as null, and strings of ASCII.

Functions take the address of a byte and give the one where they ended, or -1 for what is not plain. Arrays
would be slower: numba counts the references to an array at every call. There are no bounds: a text ends with
a newline, which nothing here goes past, and PADDING bytes follow it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ludus.core.jit import inner, njit

WORD, PADDING = 8, 32
"""Bytes of a number that are looked at together, and bytes of a key."""
QUOTE, NEWLINE, BLANK, TAB, RETURN = (ord(sign) for sign in '"\n \t\r')
MINUS, PLUS, POINT, ZERO, NINE, LETTER_E = (ord(sign) for sign in "-+.09e")
TENS = 10 ** np.arange(WORD + 1)
ROOM = 10 ** (18 - np.arange(WORD + 1))
"""Below these, so many digits more still fit."""
POWERS = np.array([float(f"1e{power}") for power in range(281)])
"""Times 18 digits these are still numbers."""


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


@inner
def skip_blanks(at: int) -> int:
    while byte(at) == BLANK or byte(at) == TAB or byte(at) == RETURN:
        at += 1
    return at


@inner
def end_of_line(at: int) -> int:
    while byte(at) != NEWLINE:
        at += 1
    return at + 1


# ---- values


@njit(forceinline=True)
def value(at: int) -> tuple[int, float]:
    """Where a value ends (-1: it is not plain), and the number that it is; NaN for anything else."""
    if byte(at) == MINUS:  # a branch of its own: the processor need not wait to know where to go on
        at, value = _number(at + 1)
        return at, -value
    if ZERO <= byte(at) <= NINE:
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
    if byte(at) == POINT:
        point = at + 1
        at, digits = _more_digits(point, digits)
        scale = at - point
        if scale == 0:
            return -1, np.nan
    if byte(at) | BLANK == LETTER_E:
        at, power = _exponent(at + 1)
        scale -= power
    if digits < 0 or abs(scale) >= len(POWERS):
        return -1, np.nan
    return at, (digits / POWERS[scale] if scale > 0 else digits * POWERS[-scale])


@njit(forceinline=True)
def _whole(at: int) -> tuple[int, int]:
    """Where a whole number ends, and its value; below 0 if it is not plain."""
    if byte(at + 1) == POINT and ZERO <= byte(at) <= NINE:  # most often
        return at + 1, int(np.int64(byte(at))) - ZERO
    end, digits = _more_digits(at, 0)
    return end, (-1 if byte(at) == ZERO and end > at + 1 else digits)


@inner(forceinline=True)
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


@inner
def _exponent(at: int) -> tuple[int, int]:
    """Where it ends (-1: it has no digits, or too many), and its value."""
    negative = byte(at) == MINUS
    at += negative or byte(at) == PLUS
    count = _first_byte(_not_digits(_word(at)))
    if count == 0 or count == WORD:
        return -1, 0
    power = _digits(_word(at), count)
    return at + count, (-power if negative else power)


@inner
def _end_of_other(at: int) -> int:
    """Of a value that is no number; -1 if it is not plain."""
    if byte(at) == QUOTE:
        return end_of_string(at + 1) + 1 or -1
    word = _word(at)
    if word & THREE == NAN:
        return at + 3
    if word & FOUR == NULL or word & FOUR == TRUE:
        return at + 4
    if word & FIVE == FALSE:
        return at + 5
    return at + 8 if word == INFINITY else -1


@inner
def end_of_string(at: int) -> int:
    """Its closing quote; -1 if anything but plain ASCII comes before."""
    found = _find_special(_word(at))
    while found == WORD:
        at += WORD
        found = _find_special(_word(at))
    return at + found if byte(at + found) == QUOTE else -1


# ---- eight bytes at once


def _load(bits: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)

    return generate


@intrinsic
def byte(typing: Any, at: Any) -> Any:
    """The byte at an address."""
    return types.uint8(types.int64), _load(8)


@intrinsic
def _word(typing: Any, at: Any) -> Any:
    """Eight bytes from an address on as one number."""
    return types.uint64(types.int64), _load(64)


@intrinsic
def are_same(typing: Any, at: Any, text: Any, mask: Any) -> Any:
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


@inner
def _first_byte(found: np.uint64) -> int:
    """Which byte the lowest bit is in; WORD if there is none."""
    return _trailing_zeros(found) >> 3


@inner
def _find_special(word: np.uint64) -> int:
    """The first quote, backslash, control character or byte beyond ASCII."""
    quotes, backslashes = word ^ QUOTES, word ^ BACKSLASHES
    quotes, backslashes = (quotes - ONES) & ~quotes, (backslashes - ONES) & ~backslashes
    return _first_byte((quotes | backslashes | (word - BLANKS) | word) & HIGH_BITS)  # above it, bits may lie


@inner
def _not_digits(word: np.uint64) -> np.uint64:
    """The high bit of the first byte that is no digit, and maybe some above it; 0 if all eight are."""
    digits = word ^ ZEROS
    return ((digits + OVER_NINE) | digits) & HIGH_BITS


@inner
def _digits(word: np.uint64, count: int) -> int:
    """The number that the first `count` bytes are. Pairs of digits, then pairs of those: three products."""
    half = np.uint64(4 * (WORD - count))
    word = (word << half << half) & LOW_HALVES  # twice: a shift by all 64 bits is undefined
    word = word * np.uint64(2561) >> np.uint64(8)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    word = (word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32)
    return int(np.int64(word))
