"""Screen: a battle over the bridge as a person sees it.

The own side is what the simulator's request says, the opponent's is what the observation knows.
"""

from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from ludus.core.table import Turn
from ludus.games.pokemon import layout, replay, story
from ludus.games.pokemon.heard import SIDES, Heard
from ludus.games.pokemon.layout import GIMMICK, PREVIEW, SWITCH, TEAM
from ludus.games.pokemon.table import PokemonTable

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
        self.table, self.heard = table, Heard(table)
        self.told = [0, 0]  # lines that each seat was shown

    def show(self, turn: Turn, seat: int) -> RenderableType:
        parts: list[RenderableType] = [Text(line) for line in self._news(seat)]
        obs = turn.obs[0]
        parts += ["", self._opponent(obs), "", self._own(obs, seat)]
        if field := self._field(obs):
            parts.append(Text(field, style="dim"))
        return Group(*parts)

    def choices(self, turn: Turn, seat: int) -> dict[int, str]:
        self.heard.take()
        legal = np.flatnonzero(turn.legal[0]).tolist()
        return {action: self._words(turn.obs[0], seat, action) for action in legal}

    def help(self) -> str:
        return HELP

    def settled(self, seat: int) -> RenderableType:
        return Group(*(Text(line) for line in self._news(seat)))

    def save(self, path: Path) -> None:
        self.heard.take()
        replay.save(path, self.heard.log, path.stem)

    def _news(self, seat: int) -> list[str]:
        self.heard.take()
        lines = self.heard.lines[seat]
        before, self.told[seat] = self.told[seat], len(lines)
        return story.told(lines[before:], SIDES[seat])

    def _own(self, obs: np.void, seat: int) -> Grid:
        grid = Grid("", "your team", "hp", "status", "item", "moves", box=None, pad_edge=False)
        for place, entry in enumerate(self.heard.requests[seat]["side"]["pokemon"]):
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
                f"{layout.word(obs, row, 'species')} L{level}",
                f"{100 * numbers[row, layout.column('hp')]:.0f} %", layout.word(obs, row, "status"),
                layout.word(obs, row, "item"), _moves(obs, row),
            )  # fmt: skip
        return grid

    def _field(self, obs: np.void) -> str:
        return " ".join(name for name in SHOWN_FIELD if obs["field"][layout.FIELD.index(name)])

    def _words(self, obs: np.void, seat: int, action: int) -> str:
        request = self.heard.requests[seat]
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


def _moves(obs: np.void, row: int) -> str:
    return ", ".join(filter(None, (layout.word(obs, row, f"move_{i + 1}") for i in range(layout.MOVES))))
