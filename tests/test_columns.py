"""The compiled reader of metrics: whatever stands in a line, it finds what the JSON reader finds."""

import json

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ludus.core import jit
from ludus.store.columns import Keys, padded, read
from ludus.store.lines import METRICS, is_number, parsed

NAMES = [
    "decisions",
    "seconds",
    "a",
    "losses/policy",
    "a name of more than thirty-two bytes",
    "é",
    'a"b',
    "x" * 130,
]
NUMBERS = [
    "0", "-0", "7", "-12", "1234567", "12345678", "123456789", "1234567890123456", "123456789012345678901",
    "0.5", "-0.25", "3.0", "0.1", "0.14285714285714285", "0.0022881068289279938", "12345.678901234567",
    "12345678.12345678", "0.00000012345678912345", "123456789.123456789123", "2.09e-08", "1e0", "1E+3",
    "-1.5e+22", "5e-324", "1.7e308", "1e999", "1e-999", "1e300", "123e-300", "1e00000001",
]  # fmt: skip
NO_NUMBERS = [
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "1e+",
    "--1",
    "+1",
    "0x1",
    "1_0",
    "1.2.3",
    "1-",
    "NaN1",
    "nul",
    "Infinit",
]
OTHERS = [
    "null", "true", "false", "NaN", "Infinity", "-Infinity", '""', '"text"', '"a \\" {, b"', '"é"',
    '"a string of words"', '"tab\t"', '"\\x"', '"', "[1, 2]", '[1, {"x": "]"}]', "{}", "[", "9" * 400,
]  # fmt: skip
BLANKS = ["", " ", "  ", "\t", "\r"]


@st.composite
def values(draw: st.DrawFn) -> str:
    number = draw(st.one_of(st.integers(), st.floats(), st.floats(-100, 100)))
    return draw(st.sampled_from([json.dumps(number), *NUMBERS, *OTHERS, *NO_NUMBERS]))


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Mostly as a training writes them; the keys in any order, some twice; at times damaged."""
    names = ["decisions", "seconds", *draw(st.lists(st.sampled_from(NAMES), max_size=5))]
    usual = draw(st.booleans())
    names = names if usual else draw(st.permutations(names))
    texts = [json.dumps(name, ensure_ascii=draw(st.booleans())) for name in names]
    comma, colon = (
        (", ", ": ") if usual else (draw(st.sampled_from(BLANKS)).join(" , ").strip(" ") or ",", ":")
    )
    pairs = [f"{text}{colon}{draw(values()) if n > 1 or not usual else n}" for n, text in enumerate(texts)]
    line = "{" + comma.join(pairs) + "}" + draw(st.sampled_from(["", "", "", "\r", " ", "rubbish", ","]))
    data = line.encode("utf-8", "surrogatepass").replace(b"\n", b"")
    if draw(st.integers(0, 9)) == 0:  # a byte that does not belong there
        place = draw(st.integers(0, len(data) - 1))
        data = (
            data[:place]
            + draw(st.sampled_from([b"", b"\xff", b"\x00", b'"', b"}", b"\\"]))
            + data[place + 1 :]
        )
    return data


def check(texts: list[bytes], keys: Keys) -> None:
    found = read(padded(b"".join(text + b"\n" for text in texts)), keys)
    wanted = [parsed(text + b"\n", METRICS) for text in texts]
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]
    there = [number for number, line in enumerate(wanted) if line is not None]
    assert found.starts.tolist() == starts[there].tolist()
    assert found.damaged == sum(
        line is None and text != b"" for line, text in zip(wanted, texts, strict=True)
    )
    for row, number in zip(found.values, there, strict=True):
        line = wanted[number] or {}
        known = {name: value for name, value in zip(keys.names, row, strict=True) if not np.isnan(value)}
        numbers = {name: float(line[name]) for name in line if is_number(line[name]) and name in keys.names}
        assert known.keys() == numbers.keys(), texts[number]
        got, exact = np.array([[known[name], numbers[name]] for name in numbers]).T
        assert (np.abs(got - exact) <= 4 * np.spacing(np.abs(exact))).all(), texts[number]


@settings(max_examples=60)
@given(st.lists(lines(), min_size=1, max_size=8))
@example([b"", b"{}", b"[]", b'"decisions"', b'{"decisions": 1, "seconds": 2', b" "])
def test_lines_are_read_as_json_reads_them(texts):
    keys = Keys()
    check(texts, keys)
    check(texts, keys)  # now all keys are known, and what follows what


def test_every_value_is_read_as_json_reads_it():
    keys = Keys()
    for value in [*NUMBERS, *OTHERS, *NO_NUMBERS]:
        line = f'{{"decisions": 1, "seconds": 2.5, "a": {value}, "b": -0.125}}'.encode()
        check([line, line, line.replace(b": ", b":"), line.replace(b'"a"', b'"seconds"')], keys)


def test_short_decimals_are_exact():
    keys, numbers = (
        Keys(),
        [f"{sign}{n / 1000:.{digits}f}" for n in range(2000) for sign in ("", "-") for digits in (1, 3)],
    )
    found = read(padded("".join(f'{{"decisions": {n}, "seconds": {n}}}\n' for n in numbers).encode()), keys)
    assert found.values[:, 0].tolist() == [float(number) for number in numbers]


def test_keys_that_are_not_the_same_bytes_never_lead_astray():
    """Bytes that are no text were once the same key to one side and two keys to the other, for ever."""
    keys = Keys()
    check([b'{"decisions": 1, "seconds": 1, "\xfe": 1}', b'{"decisions": 2, "seconds": 2, "\xff": 1}'], keys)
    assert keys.names == ["decisions", "seconds"]


def test_an_edit_here_compiles_nothing_else_again():
    shared, package = jit.SHARED, jit.PACKAGE
    search = {str(file.relative_to(package)) for file in jit._compiled([*shared, package / "search"])}
    assert "search/tree.py" in search and not any(name.startswith("store/") for name in search)
    assert jit.cache_folder(package / "search") != jit.cache_folder(package / "store")
