"""Layout: what the numbers of an observation are called (node/layout.json). node/encode.js writes them."""

import json
from functools import cache
from typing import Any

import numpy as np

from ludus.games.pokemon.install import NODE_FILES

TEAM = 6
ROWS = 2 * TEAM
"""Of an observation: the own team, in the order of the switching actions, then the opponent's."""
MOVES = 4
GIMMICK, SWITCH, PREVIEW = 4, 8, 14
"""First action of each kind: before them are the moves."""


@cache
def _named() -> dict[str, Any]:
    return json.loads((NODE_FILES / "layout.json").read_text())


IDS: tuple[str, ...] = tuple(_named()["ids"])
"""Columns of `ids`."""
MOVE: tuple[str, ...] = tuple(_named()["move"])
NUMBERS: tuple[str, ...] = (
    *_named()["pokemon"],
    *(f"move_{i + 1}_{name}" for i in range(_named()["moves"]) for name in MOVE),
)
"""Columns of `numbers`."""
FIELD: tuple[str, ...] = (
    *_named()["field"],
    *(f"{side}_{name}" for side in ("own", "foe") for name in _named()["side"]),
)
"""Names of `field`."""

OBS = np.dtype(
    [
        ("ids", np.int16, (ROWS, len(IDS))),
        ("numbers", np.float32, (ROWS, len(NUMBERS))),
        ("field", np.float32, (len(FIELD),)),
    ],
    align=True,
)
"""One observation."""


def wire(actions: int) -> np.dtype:
    """One decision as it comes from Node."""
    padded = -(-actions // 4) * 4
    head = [("row", np.int32), ("side", np.uint8), ("last", np.bool_), ("empty", np.uint8, (2,))]
    return np.dtype([*head, ("obs", OBS), ("legal", np.bool_, (padded,))], align=True)


@cache
def vocabulary() -> dict[str, tuple[str, ...]]:
    """Kind of id -> its names, by number; 0 is what isn't known, 1 what is known to be absent."""
    words = json.loads((NODE_FILES / "vocabulary.json").read_text())
    return {kind: tuple(names.split(" ")) for kind, names in words.items()}


KIND_OF = {
    "species": "species",
    "ability": "abilities",
    "item": "items",
    "type_1": "types",
    "type_2": "types",
    "tera_type": "types",
    "status": "statuses",
    **{f"move_{i + 1}": "moves" for i in range(MOVES)},
    "last_move": "moves",
}
"""Column of `ids` -> its vocabulary."""


def word(obs: np.void, row: int, name: str) -> str:
    """What a column of `ids` says in a row; nothing for what isn't known or isn't there."""
    number = int(obs["ids"][row, IDS.index(name)])
    return vocabulary()[KIND_OF[name]][number] if number > 1 else ""


def column(name: str) -> int:
    """Of `numbers`, by name."""
    return NUMBERS.index(name)


def move_columns(name: str) -> list[int]:
    """The columns of `numbers` that tell this of each of the four moves."""
    return [NUMBERS.index(f"move_{i + 1}_{name}") for i in range(MOVES)]


def action_names(previews: list[list[int]]) -> list[str]:
    """previews: the places that each answer to a team preview picks"""
    names = [f"move {i + 1}" for i in range(MOVES)] + [f"move {i + 1} with gimmick" for i in range(MOVES)]
    names += [f"switch to {i + 1}" for i in range(TEAM)]
    return names + [f"team {' '.join(map(str, places))}" for places in previews]
