"""Rule switches as people write them: `seats=2` becomes a value of the type that the game's Options say."""

import ast
import dataclasses
import inspect
import textwrap
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from ludus import games
from ludus.core.errors import Usage

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Switch(NamedTuple):
    name: str
    kind: Any
    default: Any
    help: str

    @property
    def choices(self) -> str:
        if get_origin(self.kind) is Literal:
            return " | ".join(map(str, get_args(self.kind)))
        return {bool: "true | false", int: "a whole number", float: "a number"}.get(self.kind, "text")


def listed(options: type) -> list[Switch]:
    """The switches of an Options dataclass; the string under a field is its help."""
    kinds, texts = get_type_hints(options), helps(options)
    return [
        Switch(field.name, kinds[field.name], field.default, texts.get(field.name, ""))
        for field in dataclasses.fields(options)
    ]


def parsed(game: str, words: list[str]) -> dict[str, Any]:
    """`["seats=2"]` as `{"seats": 2}`, checked against the game's Options where it is a native one."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Usage(f"{word!r} is not a switch: write it as in seats=2")
        pairs[name.strip()] = value.strip()
    options = games.find(game).options_type
    if options is None:
        return {name: _guess(value) for name, value in pairs.items()}
    known = {switch.name: switch for switch in listed(options)}
    for name in pairs:
        if name not in known:
            raise Usage(f"{game} has no switch {name!r}: choose from {', '.join(known) or 'none'}")
    return {name: _read(game, known[name], value) for name, value in pairs.items()}


def _read(game: str, switch: Switch, value: str) -> Any:
    if get_origin(switch.kind) is Literal:
        for choice in get_args(switch.kind):
            if str(choice) == value:
                return choice
    elif get_origin(switch.kind) is UnionType:  # a word, or words with commas between them
        return tuple(value.split(",")) if "," in value else value
    elif switch.kind is bool:
        if value.lower() in WORDS:
            return WORDS[value.lower()]
    else:
        try:
            return switch.kind(value)
        except ValueError:
            pass
    raise Usage(f"{game} can't have {switch.name}={value}: {switch.name} is {switch.choices}")


def _guess(value: str) -> Any:
    """The value for somebody else's environment, of which only Python knows the types."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(value.lower(), value)


def helps(options: type) -> dict[str, str]:
    """The string under each field of a dataclass, and of those that it extends."""
    found: dict[str, str] = {}
    for kind in reversed(options.__mro__):
        if dataclasses.is_dataclass(kind):
            found |= _own_helps(kind)
    return found


def _own_helps(options: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(options))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, after in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[field.target.id] = ast.literal_eval(after.value)  # type: ignore[union-attr]
    return found
