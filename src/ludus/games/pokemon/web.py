"""BattleView: a battle over the bridge as a browser shows it (web.js draws it).

As in the terminal, the own side is what the simulator's request says, and the opponent's is what lines and
observations have shown. Who looks on sees both requests.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ludus.core.table import Turn
from ludus.core.view import Json
from ludus.games.pokemon import layout, story
from ludus.games.pokemon.heard import SIDES, Heard
from ludus.games.pokemon.layout import FIELD, GIMMICK, MOVES, PREVIEW, SWITCH, TEAM
from ludus.games.pokemon.table import PokemonTable

SHOWN_TURNS = 4
FIELD_WORDS = {
    "sun": "Sun", "rain": "Rain", "sand": "Sandstorm", "snow": "Snow", "strong_winds": "Strong winds",
    "electricterrain": "Electric Terrain", "grassyterrain": "Grassy Terrain",
    "mistyterrain": "Misty Terrain", "psychicterrain": "Psychic Terrain", "trickroom": "Trick Room",
    "gravity": "Gravity", "magicroom": "Magic Room", "wonderroom": "Wonder Room",
}  # fmt: skip
SIDE_WORDS = {
    "stealthrock": "Stealth Rock", "spikes": "Spikes", "toxicspikes": "Toxic Spikes",
    "stickyweb": "Sticky Web", "reflect": "Reflect", "lightscreen": "Light Screen",
    "auroraveil": "Aurora Veil", "tailwind": "Tailwind", "safeguard": "Safeguard", "mist": "Mist",
}  # fmt: skip
STATS = {**story.STATS, "accuracy": "accuracy", "evasion": "evasion"}
GIMMICKS = {
    "canDynamax": "Dynamax", "canMegaEvo": "Mega evolution", "canMegaEvoX": "Mega evolution X",
    "canMegaEvoY": "Mega evolution Y", "canUltraBurst": "Ultra burst", "canZMove": "Z-move",
}  # fmt: skip


UNKNOWN: Json = {"types": [], "boosts": []}


class BattleView:
    """A move is an action and what it does: a move, a switch, or an answer to a team preview."""

    def __init__(self, table: PokemonTable) -> None:
        """table: of one row, with lines"""
        self.table, self.heard = table, Heard(table)
        self.mover = 0
        self.legal = np.zeros(table.spec.actions, bool)
        self.seen: list[np.void | None] = [None, None]
        """By seat, the observation of its last decision."""
        self.own: list[dict[str, Json]] = [{}, {}]
        """By seat, types and boosts of its Pokémon, which requests don't tell."""
        self.moves: dict[str, list[Any]] = table.pool.ready["moves"]
        """Id -> name, type, power, accuracy and category."""

    def follow(self, turn: Turn) -> None:
        self.heard.take()
        self.mover, self.legal = int(turn.seat[0]), turn.legal[0].copy()
        obs = self.seen[self.mover] = turn.obs[0].copy()
        for place, entry in enumerate(self._team(self.mover)):
            boosts = _boosts(obs, place) if entry["active"] else []
            self.own[self.mover][entry["ident"]] = {"types": _types(obs, place), "boosts": boosts}

    def show(self, seat: int | None) -> Json:
        self.heard.take()
        own = 0 if seat is None else seat
        lines = self.heard.log if seat is None else self.heard.lines[seat]
        standing = standing_of(lines)
        sides = [self._own(own), self._own(1 - own) if seat is None else self._seen(own, lines)]
        for side, number in zip(sides, (own, 1 - own), strict=True):
            side |= {"seat": number, "active": _active(side["team"], standing.get(SIDES[number]))}
        offered = np.flatnonzero(self.legal).tolist() if seat in (None, self.mover) else []
        return {
            "sides": sides,
            "field": self._field(own),
            "news": _news(lines, None if seat is None else SIDES[seat]),
            "asks": self._asks(),
            "moves": [[action, self._choice(action)] for action in offered],
        }

    def words(self, action: int) -> str:
        choice = self._choice(action)
        if choice["kind"] == "team":
            return f"bring {choice['name']}"
        if choice["kind"] == "switch":
            return f"switch to {choice['name']}"
        return choice["name"] + (f" with {choice['gimmick']}" if choice["gimmick"] else "")

    # ---- teams

    def _own(self, seat: int) -> Json:
        """A side as its own request tells it."""
        team = [
            {
                **_described(entry["details"]), **_health(entry["condition"]), "active": entry["active"],
                "item": entry["item"], "moves": self._named(entry["moves"]),
                "tera": entry.get("teraType", ""), **self.own[seat].get(entry["ident"], UNKNOWN),
            }
            for entry in self._team(seat)
        ]  # fmt: skip
        return {"team": team, "effects": self._effects(seat, "own")}

    def _team(self, seat: int) -> list[Json]:
        return self.heard.requests[seat]["side"]["pokemon"]

    def _seen(self, seat: int, lines: Iterable[str]) -> Json:
        """The side of a seat's opponent, as far as the seat knows it."""
        obs, names = self.seen[seat], _names(lines)
        team: list[Json] = []
        if obs is None:
            return {"team": team, "effects": []}
        for row in range(TEAM, 2 * TEAM):
            known, active, hp, level = (
                float(obs["numbers"][row, layout.column(name)]) for name in ("known", "active", "hp", "level")
            )
            if not known:
                continue
            species = layout.word(obs, row, "species")
            seen = (layout.word(obs, row, f"move_{place + 1}") for place in range(MOVES))
            status = layout.word(obs, row, "status")
            team.append({
                "name": names.get(species, species), "level": round(100 * level), "hp": hp,
                "health": f"{100 * hp:.0f} %", "status": "" if status == "fnt" else status,
                "active": bool(active), "item": layout.word(obs, row, "item"), "tera": "",
                "moves": self._named(filter(None, seen)), "types": _types(obs, row),
                "boosts": _boosts(obs, row) if active else [],
            })  # fmt: skip
        return {"team": team, "effects": self._effects(seat, "foe")}

    def _named(self, ids: Iterable[str]) -> list[str]:
        """Requests write some moves with their power, as in returnpower102."""
        return [self.moves[each][0] if each in self.moves else each for each in ids]

    def _field(self, seat: int) -> list[str]:
        obs = self.seen[seat]
        return [] if obs is None else [said for name, said in FIELD_WORDS.items() if _on(obs, name)]

    def _effects(self, seat: int, whose: str) -> list[str]:
        obs = self.seen[seat]
        return (
            [] if obs is None else [said for name, said in SIDE_WORDS.items() if _on(obs, f"{whose}_{name}")]
        )

    # ---- what can be chosen

    def _asks(self) -> str:
        request = self.heard.requests[self.mover]
        return "team" if request.get("teamPreview") else "switch" if request.get("forceSwitch") else "move"

    def _choice(self, action: int) -> Json:
        request, team = self.heard.requests[self.mover], self._team(self.mover)
        if action >= PREVIEW:
            places: list[int] = self.table.pool.ready["previews"][action - PREVIEW]
            names = (_described(team[place - 1]["details"])["name"] for place in places)
            return {"kind": "team", "places": places, "name": ", ".join(names)}
        if action >= SWITCH:
            place = action - SWITCH
            entry = team[place]
            types = self.own[self.mover][entry["ident"]]["types"]
            found = {**_described(entry["details"]), **_health(entry["condition"])}
            return {"kind": "switch", "place": place, "types": types, **found}
        return self._move(request["active"][0], action % GIMMICK, action >= GIMMICK)

    def _move(self, active: Json, place: int, with_gimmick: bool) -> Json:
        """active: of a request. place: of the move"""
        asked, obs = active["moves"][place], self.seen[self.mover]
        name, kind, power, accuracy, category = self.moves.get(asked["id"], [asked["move"], "", 0, 0, ""])
        assert obs is not None
        damage = float(obs["numbers"][0, layout.move_columns("damage")[place]])
        return {
            "kind": "move", "place": place, "name": asked["move"] or name, "type": kind, "power": power,
            "accuracy": accuracy, "category": category.lower(), "pp": asked.get("pp"),
            "max_pp": asked.get("maxpp"), "damage": round(damage, 3),
            "gimmick": _gimmick(active, place) if with_gimmick else "",
        }  # fmt: skip


def _gimmick(active: Json, place: int) -> str:
    if kind := active.get("canTerastallize"):
        return f"Tera {kind}"
    return next((said for name, said in GIMMICKS.items() if _has(active.get(name), place)), "gimmick")


def _has(told: Any, place: int) -> bool:
    """Whether a request allows a gimmick: for all moves, or by move."""
    return bool(told[place]) if isinstance(told, list) else bool(told)


def _on(obs: np.void, name: str) -> bool:
    return bool(obs["field"][FIELD.index(name)])


def _types(obs: np.void, row: int) -> list[str]:
    found = (layout.word(obs, row, name) for name in ("type_1", "type_2"))
    return [name.capitalize() for name in found if name]


def _boosts(obs: np.void, row: int) -> list[str]:
    """As in `attack +1`."""
    stages = {
        said: round(6 * float(obs["numbers"][row, layout.column(f"boost_{name}")]))
        for name, said in STATS.items()
    }
    return [f"{said} {stage:+d}" for said, stage in stages.items() if stage]


# ---- lines


def standing_of(lines: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Side -> details and condition of its active Pokémon after these lines."""
    found: dict[str, tuple[str, str]] = {}
    for kind, side, rest in _about_actives(lines):
        details, condition = found.get(side, ("", ""))
        hp, _, status = condition.partition(" ")
        match kind:
            case "switch" | "drag":
                details, condition = rest[0], rest[1]
            case "replace" | "detailschange":
                details = rest[0]
            case "-damage" | "-heal" | "-sethp":
                condition = rest[0]
            case "-status":
                condition = f"{hp} {rest[0]}"
            case "-curestatus":
                condition = hp if status != "fnt" else condition
            case "faint":
                condition = "0 fnt"
        found[side] = details, condition
    return found


def _about_actives(lines: Iterable[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, side and the rest of lines about a Pokémon that is in the battle, as in `p1a: Ditto`."""
    for line in lines:
        parts = line.split("|")
        if len(parts) > 2 and re.match(r"p[12]a: ", parts[2]):
            yield parts[1], parts[2][:2], parts[3:]


def _names(lines: Iterable[str]) -> dict[str, str]:
    """Id of a species -> its name, as lines wrote it."""
    found = {}
    for line in lines:
        parts = line.split("|")
        if len(parts) > 3 and parts[1] in ("switch", "drag", "replace", "detailschange", "poke"):
            name = _described(parts[3])["name"]
            found[re.sub(r"[^a-z0-9]+", "", name.lower())] = name
    return found


def _active(team: list[Json], standing: tuple[str, str] | None) -> Json | None:
    """The Pokémon in the battle: its entry of the team, which gets the newest hit points."""
    if standing is None:
        return None
    described: Json = {**UNKNOWN, **_described(standing[0])}
    entry = next((entry for entry in team if entry["active"]), described)
    entry |= _health(standing[1])
    return entry


def _described(details: str) -> Json:
    """details: as in `Rayquaza, L72, M`"""
    name, *rest = details.split(", ")
    levels = (part[1:] for part in rest if re.fullmatch(r"L\d+", part))
    return {"name": name, "level": int(next(levels, "100"))}


def _health(condition: str) -> Json:
    """condition: as in `57/270 brn`"""
    hp, _, status = condition.partition(" ")
    now, _, most = hp.partition("/")
    share = float(now or 0) / float(most or 100)
    shown = f"{hp}, {100 * share:.0f} %" if most not in ("", "100") else f"{100 * share:.0f} %"
    return {
        "hp": share, "health": "fainted" if status == "fnt" or not share else shown,
        "status": "" if status == "fnt" else status,
    }  # fmt: skip


def _news(lines: Iterable[str], own: str | None) -> list[Json]:
    """The last turns in words. own: as for `story.told`"""
    turns: list[tuple[int, list[str]]] = [(0, [])]
    for line in lines:
        if line.startswith("|turn|"):
            turns.append((int(line.removeprefix("|turn|")), []))
        else:
            turns[-1][1].append(line)
    return [
        {"turn": number, "lines": [_sentence(line) for line in story.told(some, own)]}
        for number, some in turns[-SHOWN_TURNS:]
    ]


def _sentence(line: str) -> str:
    """With a capital letter; those that belong to the line before stay indented."""
    start = len(line) - len(line.lstrip())
    return line[:start] + line[start : start + 1].upper() + line[start + 1 :]
