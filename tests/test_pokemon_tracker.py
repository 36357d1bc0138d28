"""What a seat sees: from lines alone, the same as from the battle itself, and nothing that is hidden."""

import json

import numpy as np
import pytest

from ludus.core.errors import Failure
from ludus.games.pokemon import layout
from ludus.games.pokemon.table import PokemonTable
from ludus.games.pokemon.watch import Watcher
from pokemon_setup import needs_simulator, random_choice


def entry(name, condition="300/300", active=False, **more):
    return {
        "ident": f"p1: {name}", "details": f"{name}, L80, M", "condition": condition, "active": active,
        "stats": {"atk": 250, "def": 200, "spa": 150, "spd": 180, "spe": 220},
        "moves": ["earthquake", "outrage", "swordsdance", "fireblast"], "baseAbility": "roughskin",
        "item": "leftovers", "ability": "roughskin", "teraType": "Steel", "terastallized": "",
        "reviving": False, **more,
    }  # fmt: skip


def request(**changes):
    moves = [
        {"id": "earthquake", "pp": 8, "maxpp": 16, "disabled": False},
        {"id": "outrage", "pp": 16, "maxpp": 16, "disabled": False},
        {"id": "swordsdance", "pp": 32, "maxpp": 32, "disabled": True},
        {"id": "fireblast", "pp": 8, "maxpp": 8, "disabled": False},
    ]
    team = [entry("Garchomp", "150/300 brn", active=True), entry("Toxapex"), entry("Snorlax", "0 fnt")]
    asked = {"active": [{"moves": moves}], "side": {"name": "p1", "id": "p1", "pokemon": team}}
    return asked | changes


START = [
    "|player|p1|a||",
    "|player|p2|b||",
    "|teamsize|p1|3",
    "|teamsize|p2|6",
    "|start",
    "|switch|p1a: Garchomp|Garchomp, L80, M|300/300",
    "|switch|p2a: Heatran|Heatran, L80, M|100/100",
    "|turn|1",
]


@pytest.fixture(scope="module")
def watcher():
    needs_simulator()
    made = Watcher("gen9randombattle")
    yield made
    made.close()


class Seen:
    """An observation by names."""

    def __init__(self, decision):
        self.obs, self.legal = decision

    def number(self, row, name):
        return float(self.obs["numbers"][row, layout.column(name)])

    def id(self, row, name):
        return layout.vocabulary()[layout.KIND_OF[name]][self.obs["ids"][row, layout.IDS.index(name)]]

    def field(self, name):
        return float(self.obs["field"][layout.FIELD.index(name)])


def see(watcher, *lines, asked=None, battle=0):
    """A battle after these lines."""
    watcher.begin(battle, 0)
    watcher.feed(battle, [*START, *lines, f"|request|{json.dumps(asked or request())}"])
    return Seen(watcher.decision(battle))


def test_own_side_is_what_the_request_says(watcher):
    seen = see(watcher)
    assert seen.id(0, "species") == "garchomp" and seen.id(0, "status") == "brn"
    assert seen.number(0, "hp") == 0.5 and seen.number(0, "level") == pytest.approx(0.8)
    assert [seen.id(0, f"move_{i}") for i in (1, 2, 3, 4)] == [
        "earthquake",
        "outrage",
        "swordsdance",
        "fireblast",
    ]
    assert seen.number(0, "move_1_pp") == 0.5 and seen.number(0, "move_3_usable") == 0
    assert seen.number(2, "fainted") == 1 and seen.field("own_left") == pytest.approx(2 / 6)
    assert seen.legal.nonzero()[0].tolist() == [0, 1, 3, 9]


def test_opponent_is_only_what_was_shown(watcher):
    seen = see(watcher)
    assert seen.id(6, "species") == "heatran" and seen.id(6, "item") == "?" and seen.id(6, "move_1") == "?"
    assert seen.number(7, "known") == 0 and seen.field("foe_left") == 1
    seen = see(
        watcher,
        "|move|p2a: Heatran|Magma Storm|p1a: Garchomp",
        "|-damage|p2a: Heatran|90/100|[from] item: Life Orb",
        "|-damage|p2a: Heatran|78/100|[from] ability: Rough Skin|[of] p1a: Garchomp",
        "|-ability|p2a: Heatran|Flash Fire",
        "|switch|p2a: Blissey|Blissey, L85, F|100/100",
    )
    assert seen.id(6, "species") == "blissey"
    assert seen.id(7, "species") == "heatran" and seen.number(7, "hp") == pytest.approx(0.78)
    assert seen.id(7, "item") == "lifeorb" and seen.id(7, "ability") == "flashfire"
    assert seen.id(7, "move_1") == "magmastorm" and 0 < seen.number(7, "move_1_pp") < 1
    assert seen.number(7, "active") == 0 and seen.number(6, "active") == 1


def test_damage_estimates(watcher):
    seen = see(watcher)
    assert seen.number(0, "move_1_effectiveness") == 2, "four times: Earthquake against Heatran"
    assert seen.number(0, "move_1_damage") > seen.number(0, "move_2_damage") > 0
    balloon = see(watcher, "|-item|p2a: Heatran|Air Balloon")
    assert balloon.number(0, "move_1_damage") == 0
    flashed = see(watcher, "|-ability|p2a: Heatran|Flash Fire")
    assert seen.number(0, "move_4_damage") > 0 == flashed.number(0, "move_4_damage")
    assert seen.number(0, "threat") == 0.5 and seen.number(0, "pressure") == 2
    assert seen.number(0, "faster") == 1


def test_boosts_last_until_the_pokemon_leaves(watcher):
    boosts = ["|-boost|p2a: Heatran|spa|2", "|-unboost|p2a: Heatran|def|1", "|-setboost|p1a: Garchomp|atk|6"]
    seen = see(watcher, *boosts)
    assert seen.number(6, "boost_spa") == pytest.approx(2 / 6) and seen.number(0, "boost_atk") == 1
    assert seen.number(6, "boost_def") == pytest.approx(-1 / 6)
    assert see(watcher, *boosts, "|-clearallboost").number(0, "boost_atk") == 0
    assert see(watcher, *boosts, "|-invertboost|p1a: Garchomp").number(0, "boost_atk") == -1
    left = ["|switch|p2a: Blissey|Blissey, L85, F|100/100", "|switch|p2a: Heatran|Heatran, L80, M|100/100"]
    assert see(watcher, *boosts, *left).number(6, "boost_spa") == 0
    passed = "|switch|p2a: Blissey|Blissey, L85, F|100/100|[from] Baton Pass"
    assert see(watcher, *boosts, passed).number(6, "boost_spa") == pytest.approx(2 / 6)


def test_field(watcher):
    seen = see(
        watcher,
        "|-weather|RainDance|[from] ability: Drizzle|[of] p2a: Heatran",
        "|-sidestart|p1: a|move: Stealth Rock",
        "|-sidestart|p2: b|Spikes",
        "|-sidestart|p2: b|Spikes",
        "|-fieldstart|move: Trick Room|[of] p2a: Heatran",
        "|-fieldstart|move: Misty Terrain",
        "|turn|2",
        "|-weather|RainDance|[upkeep]",
        "|turn|3",
    )
    assert seen.field("rain") == 1 and seen.field("weather_turns") == pytest.approx(2 / 8)
    assert seen.field("own_stealthrock") == 1 and seen.field("foe_spikes") == pytest.approx(2 / 3)
    assert seen.field("trickroom") == 1 and seen.field("mistyterrain") == 1
    assert seen.id(6, "ability") == "drizzle"
    swapped = see(watcher, "|-sidestart|p1: a|move: Stealth Rock", "|-swapsideconditions")
    assert swapped.field("own_stealthrock") == 0 and swapped.field("foe_stealthrock") == 1


def test_disguise(watcher):
    """Zoroark looked like Blissey: what happened to it did not happen to her."""
    seen = see(
        watcher,
        "|switch|p2a: Blissey|Blissey, L85, F|100/100",
        "|-damage|p2a: Blissey|40/100",
        "|replace|p2a: Zoroark|Zoroark, L84, M",
        "|-end|p2a: Zoroark|Illusion",
    )
    assert seen.id(6, "species") == "zoroark" and seen.number(6, "hp") == pytest.approx(0.4)
    blissey = next(row for row in range(7, 12) if seen.id(row, "species") == "blissey")
    assert seen.number(blissey, "hp") == 1


def test_terastallised_and_transformed(watcher):
    seen = see(watcher, "|-terastallize|p2a: Heatran|Flying")
    assert (seen.id(6, "type_1"), seen.id(6, "type_2")) == ("flying", "none")
    assert seen.number(6, "terastallized") == 1 and seen.field("foe_gimmick_left") == 0
    assert seen.number(0, "move_1_damage") == 0, "Earthquake does not reach it any more"
    ditto = see(watcher, "|switch|p2a: Ditto|Ditto, L85|100/100", "|-transform|p2a: Ditto|p1a: Garchomp")
    assert ditto.id(6, "species") == "garchomp" and ditto.number(6, "transformed") == 1


@pytest.mark.parametrize(
    "asked, actions",
    [
        ({"active": [{"moves": [{"move": "Struggle", "id": "struggle"}]}]}, [0, 9]),
        ({"active": [{"moves": [{"move": "Outrage", "id": "outrage"}], "trapped": True}]}, [0]),
        ({"active": None, "forceSwitch": [True]}, [9]),
    ],
)
def test_masks(watcher, asked, actions):
    seen = see(watcher, asked={key: value for key, value in request(**asked).items() if value is not None})
    assert seen.legal.nonzero()[0].tolist() == actions


def test_gimmick_and_revival(watcher):
    asked = request()
    asked["active"][0]["canTerastallize"] = "Steel"
    seen = see(watcher, asked=asked)
    assert seen.legal.nonzero()[0].tolist() == [0, 1, 3, 4, 5, 7, 9] and seen.field("own_gimmick_left") == 1
    assert watcher.choice(0, 5) == "move 2 terastallize" and watcher.choice(0, 9) == "switch 2"
    team = request()["side"]["pokemon"]
    team[0]["reviving"] = True
    revive = {"forceSwitch": [True], "side": {"name": "p1", "id": "p1", "pokemon": team}}
    seen = see(watcher, asked=revive)
    assert seen.legal.nonzero()[0].tolist() == [10] and seen.field("revival") == 1


@pytest.mark.parametrize(
    "format", ["gen9randombattle", "gen8randombattle", "gen9bssfactory", "gen2randombattle"]
)
def test_lines_alone_give_the_same_observations(format):
    """Some battles through the bridge, and decisions in them through their lines. Not all decisions: what is
    kept of earlier observations must not be seen in later ones."""
    needs_simulator()
    table, watcher = PokemonTable(2, format, lines=True), Watcher(format)
    rng = np.random.default_rng(8)
    try:
        turn, begun, compared = table.reset(8), set(), 0
        for _ in range(150):
            for row, number, channel, line in table.said:
                if channel == 2:
                    continue
                if (row, channel, number) not in begun:
                    begun.add((row, channel, number))
                    watcher.begin(2 * row + channel, channel)
                watcher.feed(2 * row + channel, [line])
            table.said.clear()
            for row in np.flatnonzero(rng.random(2) < 0.5):
                found = watcher.decision(2 * row + turn.seat[row])
                assert found is not None
                for name in layout.OBS.names:
                    np.testing.assert_array_equal(found[0][name], turn.obs[row][name], err_msg=name)
                np.testing.assert_array_equal(found[1], turn.legal[row])
                compared += 1
            turn = table.step(random_choice(turn.legal, rng))
        assert compared > 100
    finally:
        table.close()
        watcher.close()


OPEN_IDS = ("species", "type_1", "type_2", "status", "last_move")
OPEN_NUMBERS = [
    layout.column(name)
    for name in layout.NUMBERS
    if name.startswith("boost_") or name.endswith("_turns") or name in (
        "level", "fainted", "terastallized", "substitute", "confusion", "leechseed", "taunt", "encore",
        "disable", "yawn", "attract", "perish", "mustrecharge", "charging", "dynamax", "transformed",
    )
]  # fmt: skip


@pytest.mark.parametrize("format", ["gen9randombattle", "gen7randombattle", "gen3randombattle"])
def test_what_is_open_is_tracked_exactly(format):
    """The active Pokémon as its opponent sees it, beside what its owner knows of it."""
    needs_simulator()
    table = PokemonTable(8, format)
    rng, compared = np.random.default_rng(2), 0
    first: dict[int, np.ndarray] = {}
    illusions = [i for i, name in enumerate(layout.vocabulary()["species"]) if name.startswith("zor")]
    try:
        turn = table.reset(2)
        for _ in range(250):
            for row in range(8):
                obs = turn.obs[row].copy()
                if turn.seat[row] == 0:
                    first[row] = obs
                    continue
                if row not in first:
                    continue  # it decides alone
                other = first.pop(row)
                if obs["field"][0] != other["field"][0] or not other["field"][1] or not obs["field"][1]:
                    continue  # not of the same moment
                if np.isin([obs["ids"][:6, 0], other["ids"][:6, 0]], illusions).any():
                    continue  # what they show is meant to be wrong
                for owner, rival in ((obs, other), (other, obs)):
                    compare_active(owner, rival)
                    compared += 1
            turn = table.step(random_choice(turn.legal, rng))
        assert compared > 1000
    finally:
        table.close()


def compare_active(owner, rival):
    for name in OPEN_IDS:
        column = layout.IDS.index(name)
        assert owner["ids"][0, column] == rival["ids"][6, column], name
    hp = layout.column("hp")
    assert owner["numbers"][0, hp] == pytest.approx(rival["numbers"][6, hp], abs=0.011)
    for column in OPEN_NUMBERS:
        assert owner["numbers"][0, column] == rival["numbers"][6, column], layout.NUMBERS[column]
    item = layout.IDS.index("item")
    assert rival["ids"][6, item] in (0, owner["ids"][0, item])


def test_a_seat_sees_nothing_that_is_hidden():
    """Two battles that differ only in the opponent's team look the same until it shows something."""
    needs_simulator()
    table = PokemonTable(16)
    try:
        turn = table.reset(1)
        bench = turn.obs["numbers"][:, 7:, layout.column("known")]
        assert (bench == 0).all(), "the opponent's bench is not known"
        ids = turn.obs["ids"][:, 6]
        for name in ("item", "move_1", "move_2", "tera_type"):
            assert (ids[:, layout.IDS.index(name)] == 0).all(), name
    finally:
        table.close()


def test_lines_that_cannot_be_read_are_named(watcher):
    watcher.begin(9, 0)
    with pytest.raises(Failure, match="battle 9 has lines that can't be read"):
        watcher.feed(9, ["|request|{no"])
    assert see(watcher, battle=10).id(0, "species") == "garchomp", "others go on"


def test_vocabulary_covers_the_dex():
    sizes = {kind: len(names) for kind, names in layout.vocabulary().items()}
    assert sizes["species"] > 1400 and sizes["moves"] > 900
    for names in layout.vocabulary().values():
        assert names[:2] == ("?", "none") and len(set(names)) == len(names)
