"""How flags are read: numbers as people write them, and errors in one line instead of a box."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ludus.core.errors import Usage

PRESETS = ("test", "quick", "default", "gpu")
"""People forget to write --preset before them."""


def whole_number(text: str) -> int:
    """`1000000`, `1_000_000` or `1e6`."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        number = float(text)
        if number == int(number):
            return int(number)
    raise ValueError(f"{text!r} is not a whole number, as 1000000 or 1e6")


registry = ConstructorRegistry()


@registry.primitive_rule
def _whole_numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1, metavar="INT", instance_from_str=lambda words: whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )  # fmt: skip


@contextlib.contextmanager
def reading(command: str) -> Iterator[None]:
    """Around a call of tyro: what it would explain in a box on stderr becomes a Usage of one line."""
    said = io.StringIO()
    try:
        with registry, contextlib.redirect_stderr(said):
            yield
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise Usage(f"{one_line(said.getvalue())}; see {command} --help") from None
    sys.stderr.write(said.getvalue())


def read_flags(target: Any, *, prog: str, **options: Any) -> Any:
    """`tyro.cli` as everybody here calls it."""
    with reading(prog):
        return tyro.cli(target, prog=prog, **options)


def one_line(box: str) -> str:
    """The message of one of tyro's boxes, and the flag that was probably meant."""
    sections: list[list[str]] = [[]]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box).strip()
    for line in (line.strip("│ ") for line in plain.splitlines()[1:]):  # the first is the title
        if "──" in line or "---" in line:  # a border; in ASCII where stdout has no more
            sections.append([])
        else:
            sections[-1].append(line)
    problem, *more = [" ".join(lines) for lines in sections if lines] or ["the flags can't be read"]
    if problem.startswith("Unrecognized options: "):
        return _unknown(problem.partition(": ")[2].split(", ")[0], " ".join(more))
    if found := re.match(r"Missing from (.*?): (\S+)", problem):
        return f"{found[1]} needs {found[2]}"
    problem = problem.removeprefix("Error parsing ").rstrip(".")
    if found := re.match(r"Missing value for argument '(--\S+)'", problem):
        problem += f" (one that begins with - is written as in {found[1]}=-x)"
    return problem[:1].lower() + problem[1:]


def _unknown(word: str, more: str) -> str:
    if word.lstrip("-") in PRESETS:
        return f"unknown flag {word}: did you mean --preset {word.lstrip('-')}?"
    if word.startswith("-"):
        meant = list(dict.fromkeys(re.findall(r"(?<!\S)--[\w.-]+(?! in )", more.partition("meant:")[2])))
        flags = [flag for flag in meant if flag != "--help"][:2]
        return f"unknown flag {word}" + (f": did you mean {' or '.join(flags)}?" if flags else "")
    if found := re.search("Available subcommands: (.*?)( For full|$)", more):
        return f"unknown command {word}: choose from {found[1].strip()}"
    return f"unknown word {word}"
