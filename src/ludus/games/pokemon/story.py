"""Story: what a battle's protocol lines say, in plain words. Lines that people need not read are left out."""

from collections.abc import Iterable

STATUSES = {
    "brn": "is burned",
    "par": "is paralysed",
    "slp": "falls asleep",
    "frz": "is frozen",
    "psn": "is poisoned",
    "tox": "is badly poisoned",
}
STATS = {"atk": "attack", "def": "defense", "spa": "special attack", "spd": "special defense", "spe": "speed"}
WEATHERS = {
    "SunnyDay": "Sun",
    "RainDance": "Rain",
    "DesolateLand": "Harsh sun",
    "PrimordialSea": "Heavy rain",
}
SEATS = {"p1": "seat 0", "p2": "seat 1"}
AFTERTHOUGHTS = {
    "-supereffective": "It is super effective.",
    "-resisted": "It is not very effective.",
    "-crit": "A critical hit.",
    "-miss": "It misses.",
    "-fail": "It fails.",
    "-notarget": "There is no target.",
}


def told(lines: Iterable[str], own: str | None) -> list[str]:
    """own: the side of the person who reads it, p1 or p2; None for somebody who looks on"""
    found = []
    for line in lines:
        parts = line.split("|")
        if len(parts) > 1 and (words := _words(parts[1], parts[2:], own)):
            found.append(words)
    return found


def _words(kind: str, rest: list[str], own: str | None) -> str:
    if kind in AFTERTHOUGHTS:
        return f"  {AFTERTHOUGHTS[kind]}"
    if kind == "turn":
        return f"Turn {rest[0]}"
    if kind == "win":
        if own is None:
            return f"{SEATS[rest[0]].capitalize()} wins."
        return "You win." if rest[0] == own else "You lose."
    if kind == "tie":
        return "It is a tie."
    if kind in ("-weather", "-fieldstart", "-fieldend"):
        upkeep = "[upkeep]" in rest or rest[0] == "none"
        what = WEATHERS.get(rest[0], _effect(rest[0]))
        return "" if upkeep else f"  {what} {'ends' if kind == '-fieldend' else 'begins'}."
    if kind in ("-sidestart", "-sideend"):
        side = _owner(rest[0], own)
        return f"  {_effect(rest[1])} {'is on' if kind == '-sidestart' else 'leaves'} {side} side."
    if not rest or not rest[0].startswith(("p1", "p2")):
        return ""
    return _of_pokemon(kind, _name(rest[0], own), rest[1:])


def _of_pokemon(kind: str, who: str, rest: list[str]) -> str:
    match kind:
        case "switch" | "drag":
            return f"{who} comes in ({_health(rest[1])})."
        case "move":
            return f"{who} uses {rest[0]}."
        case "cant":
            return f"{who} can't move ({_effect(rest[0])})."
        case "faint":
            return f"{who} faints."
        case "-damage" | "-heal":
            return f"  {who}: {_health(rest[0])}{_cause(rest[1:])}"
        case "-status":
            return f"  {who} {STATUSES.get(rest[0], rest[0])}."
        case "-curestatus":
            return f"  {who} is cured."
        case "-boost" | "-unboost":
            way = "rises" if kind == "-boost" else "falls"
            return f"  {who}'s {STATS.get(rest[0], rest[0])} {way} by {rest[1]}."
        case "-immune":
            return f"  {who} is immune."
        case "-terastallize":
            return f"{who} terastallises: {rest[0]}."
        case "-ability":
            return f"  {who} has the ability {rest[0]}."
        case "-item":
            return f"  {who} has the item {rest[0]}."
        case "-enditem":
            return f"  {who} loses the item {rest[0]}."
        case "-start":
            return f"  {who}: {_effect(rest[0])} begins."
        case "-end":
            return f"  {who}: {_effect(rest[0])} ends."
    return ""


def _name(ident: str, own: str | None) -> str:
    """ident: as in `p2a: Ditto`"""
    return f"{_owner(ident, own)} {ident.partition(': ')[2]}"


def _owner(ident: str, own: str | None) -> str:
    """Whose, as in `your`. ident: begins with a side"""
    if own is None:
        return f"{SEATS[ident[:2]]}'s"
    return "your" if ident.startswith(own) else "the opponent's"


def _health(condition: str) -> str:
    """condition: as in `57/270 brn`"""
    hp, _, status = condition.partition(" ")
    if status == "fnt":
        return "fainted"
    now, _, most = hp.partition("/")
    share = f"{100 * float(now) / float(most or 100):.0f} %"
    return f"{share} {status}".rstrip()


def _effect(text: str) -> str:
    return text.rpartition(": ")[2]


def _cause(rest: list[str]) -> str:
    causes = [_effect(part.removeprefix("[from] ")) for part in rest if part.startswith("[from] ")]
    return f" ({causes[0]})" if causes else ""
