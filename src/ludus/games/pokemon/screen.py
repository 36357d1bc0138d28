"""Screen: a battle over the bridge as a person sees it.

The own side is what the simulator's request says, the opponent's is what the observation knows.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from ludus.core.table import Turn
from ludus.games.pokemon import layout, replay, story
from ludus.games.pokemon.layout import GIMMICK, PREVIEW, SWITCH, TEAM
from ludus.games.pokemon.replay import EVERYTHING
from ludus.games.pokemon.table import PokemonTable

SIDES = ("p1", "p2")
FIRST = 0
"""The battle that is played: after its end the table has begun another."""
SHOWN_FIELD = (
    "sun", "rain", "sand", "snow", "electricterrain", "grassyterrain", "mistyterrain", "psychicterrain",
    "trickroom", "gravity", "magicroom", "wonderroom",
)  # fmt: skip
HELP = (
    "Type the number of a move or of a switch. A move with + also uses the generation's gimmick, such as "
    "terastallising. Damage is an estimate, in shares of the opponent's hit points."
)


class BattleScreen:
    ending = ".html"

    def __init__(self, table: PokemonTable) -> None:
        """table: of one row, with lines"""
        self.table = table
        self.log: list[str] = []  # everything, for the replay
        self.heard: list[list[str]] = [[], []]  # by seat, not shown yet
        self.requests: list[dict[str, Any]] = [{}, {}]

    def show(self, turn: Turn, seat: int) -> RenderableType:
        parts: list[RenderableType] = [Text(line) for line in self._news(seat)]
        obs = turn.obs[0]
        parts += ["", self._opponent(obs), "", self._own(obs, seat)]
        if field := self._field(obs):
            parts.append(Text(field, style="dim"))
        return Group(*parts)

    def choices(self, turn: Turn, seat: int) -> dict[int, str]:
        self._hear()
        legal = np.flatnonzero(turn.legal[0]).tolist()
        return {action: self._words(turn.obs[0], seat, action) for action in legal}

    def help(self) -> str:
        return HELP

    def settled(self, seat: int) -> RenderableType:
        return Group(*(Text(line) for line in self._news(seat)))

    def save(self, path: Path) -> None:
        self._hear()
        replay.save(path, self.log, path.stem)

    def _hear(self) -> None:
        """Take what the table has said of the first battle."""
        for _, battle, channel, line in self.table.said:
            if battle != FIRST:
                continue
            if channel == EVERYTHING:
                self.log.append(line)
            elif line.startswith("|request|"):
                self.requests[channel] = json.loads(line.removeprefix("|request|"))
            else:
                self.heard[channel].append(line)
        self.table.said.clear()

    def _news(self, seat: int) -> list[str]:
        self._hear()
        lines, self.heard[seat] = self.heard[seat], []
        return story.told(lines, SIDES[seat])

    def _own(self, obs: np.void, seat: int) -> Grid:
        grid = Grid("", "your team", "hp", "status", "item", "moves", box=None, pad_edge=False)
        for place, entry in enumerate(self.requests[seat]["side"]["pokemon"]):
            hp, _, status = entry["condition"].partition(" ")
            grid.add_row(
                "*" if entry["active"] else "", entry["details"].replace(", ", " "), hp, status,
                entry["item"], _moves(obs, place),
            )  # fmt: skip
        return grid

    def _opponent(self, obs: np.void) -> Grid:
        grid = Grid("", "the opponent's", "hp", "status", "item", "moves seen", box=None, pad_edge=False)
        numbers = obs["numbers"]
        for row in range(TEAM, 2 * TEAM):
            if not numbers[row, layout.column("known")]:
                continue
            level = round(100 * numbers[row, layout.column("level")])
            grid.add_row(
                "*" if numbers[row, layout.column("active")] else "",
                f"{_word(obs, row, 'species', 'species')} L{level}",
                f"{100 * numbers[row, layout.column('hp')]:.0f} %", _word(obs, row, "status", "statuses"),
                _word(obs, row, "item", "items"), _moves(obs, row),
            )  # fmt: skip
        return grid

    def _field(self, obs: np.void) -> str:
        return " ".join(name for name in SHOWN_FIELD if obs["field"][layout.FIELD.index(name)])

    def _words(self, obs: np.void, seat: int, action: int) -> str:
        request = self.requests[seat]
        if action >= PREVIEW:
            places = self.table.pool.ready["previews"][action - PREVIEW]
            team = request["side"]["pokemon"]
            return "bring " + ", ".join(team[place - 1]["details"].split(",")[0] for place in places)
        if action >= SWITCH:
            entry = request["side"]["pokemon"][action - SWITCH]
            return f"switch to {entry['details'].split(',')[0]} ({entry['condition']})"
        place = action % GIMMICK
        move = request["active"][0]["moves"][place]["move"]
        damage = obs["numbers"][0, layout.move_columns("damage")[place]]
        hurts = f" (about {100 * damage:.0f} %)" if damage else ""
        return f"{move}{hurts}" + (" +" if action >= GIMMICK else "")


def _word(obs: np.void, row: int, column: str, kind: str) -> str:
    """An id as its name; nothing for what isn't known or isn't there."""
    number = int(obs["ids"][row, layout.IDS.index(column)])
    return layout.vocabulary()[kind][number] if number > 1 else ""


def _moves(obs: np.void, row: int) -> str:
    return ", ".join(filter(None, (_word(obs, row, f"move_{i + 1}", "moves") for i in range(layout.MOVES))))
