"""Games without rules in a browser: Pokémon battles and console games. From a run to a game against it."""

import asyncio
import contextlib
import re
import shutil
from collections.abc import Sequence

import numpy as np
import psutil
import pytest
import tomli_w
from safetensors.numpy import save_file

from browser import accessibility_problems, run_async
from ludus import algos, games
from ludus.config import plain, resolve
from ludus.core.errors import Usage
from ludus.store import checkpoint
from ludus.ui.web import table_engine
from ludus.ui.web.deal import Deal
from ludus.ui.web.live_sitting import LiveSitting
from ludus.ui.web.own_processes import OwnProcesses
from ludus.ui.web.sittings import Setup, Sittings
from ludus.ui.web.workers import Workers
from pokemon_setup import needs_simulator
from test_web_play import DARK_PHONE, PHONE, SHIFTS, number, wait_for_turn
from trainings import gone, wait_until

NEWEST = "Number(document.querySelector('.retro img')?.dataset.number ?? 0)"


def make_run(folder, game, spec=None):
    """A run that has learned nothing: a configuration, and weights by chance."""
    config = resolve(game, "test")
    spec = spec or games.open(game, **config.switches).spec
    blank = algos.find(config.algo).make_policy(spec, config.net).blank()
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(tomli_w.dumps(plain(config)))
    weights = {name: rng.uniform(0.01, 0.05, array.shape).astype(np.float32) for name, array in blank.items()}
    save_file(weights, checkpoint.best_file(folder))
    return folder


@pytest.fixture(scope="module")
def console():
    pytest.importorskip("stable_retro")
    pytest.importorskip("cv2")


# ---- what needs no browser


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pokemon", True),
        ("pokemon:gen1randombattle", True),
        ("retro:Gemfall-Nes-v0", True),
        ("retro:../../x", False),
        ("pokemon:gen9ou@@@!x", False),
        ("tictactoe:x", False),
        ("gym:CartPole-v1", False),
        ("my_module:Class", False),
        ("adapters", False),
    ],
)
def test_which_games_a_browser_can_name(name, expected):
    assert games.has_page(name) is expected


def test_a_browser_names_neither_switches_nor_files(tmp_path):
    given = {"seats": ["you", "random"], "rules": {"team": "/etc/passwd"}, "think": "1 s"}
    with pytest.raises(Usage, match="no rules to choose"):
        Setup.read("pokemon", given)
    (tmp_path / "secret.bk2").touch()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine.bk2").touch()
    sittings = Sittings(tmp_path / "runs", 5, Workers())
    assert sittings.recording("mine.bk2") == str(tmp_path / "runs" / "mine.bk2")
    for name in ("../secret.bk2", str(tmp_path / "secret.bk2"), "secret.bk2"):
        with pytest.raises(Usage, match="there is no recording"):
            sittings.recording(name)


def test_without_node_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setenv("NODE_BIN", "/nowhere/node")
    with pytest.raises(Usage, match=r"^Pokémon needs Node [^\n]*: install it, or set NODE_BIN to it$"):
        table_engine.describe("pokemon", ())


@pytest.fixture
def one_table():
    """Ends the game that `table_engine` has here, where it has no process to end with."""
    yield
    end_table()


def end_table():
    table_engine._playing.view.table.close()
    table_engine._playing = None


def test_a_battle_is_shown_as_one_seat_knows_it(one_table, tmp_path):
    """A team preview, an agent's ranked choices, and the same battle again from its actions."""
    needs_simulator()
    name = "pokemon:gen9bssfactory"
    deal = Deal(name, (), 5, ("", "heuristic"), ("you", "heuristic"))
    shown = table_engine.position(deal, ())
    run = make_run(tmp_path / "run", name, table_engine._playing.game.spec)
    assert shown["asks"] == "team" and len(shown["moves"]) == 120
    assert [len(side["team"]) for side in shown["sides"]] == [6, 6]
    assert not any(one["moves"] or one["item"] for one in shown["sides"][1]["team"]), "hidden from the seat"
    ideas = table_engine.advise(deal, (), str(run))["ideas"]
    shares = [idea["share"] for idea in ideas]
    assert shares == sorted(shares, reverse=True) and 1 / 120 < shares[0] < 1
    assert re.fullmatch("bring .+, .+, .+", ideas[0]["text"])
    actions, shown = (14,), table_engine.play(deal, (), 14)
    assert shown["turn"] == 1 and shown["moves"] == []
    while len(actions) < 12 or shown["turn"] != 0 or shown["asks"] != "move":
        if shown["turn"] == 0:
            action = shown["moves"][0][0]
            shown = table_engine.play(deal, actions, action)
        else:
            action, shown = table_engine.answer(deal, actions)
        actions = (*actions, action)
    with pytest.raises(Usage, match="not possible"):
        table_engine.play(deal, actions, 1000)
    move = next(choice for _, choice in shown["moves"] if choice["kind"] == "move")
    assert move["type"] and move["pp"] <= move["max_pp"]
    said = [line for turn in shown["news"] for line in turn["lines"]]
    assert any(line.startswith("Your ") for line in said)
    assert shown["sides"][1]["active"]["health"].endswith(("%", "fainted"))
    end_table()
    assert table_engine.position(deal, actions) == shown


def is_simulator(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # it may end just now
        return "bridge.js" in " ".join(process.cmdline())
    return False


def nodes(others: Sequence[psutil.Process] = ()) -> list[psutil.Process]:
    """Simulators below this process, without others."""
    family = psutil.Process().children(recursive=True)
    return [one for one in family if one not in others and is_simulator(one)]


def test_a_sitting_has_one_simulator_which_ends_with_it(tmp_path):
    needs_simulator()
    others = nodes()  # a server that other tests share may still have one

    async def sit():
        sittings = Sittings(tmp_path, 5, Workers())
        sittings.own, sittings.folder = OwnProcesses(1, linger_s=0.1), tmp_path / "kept"
        first, second = (sittings.begin(Setup("pokemon", ("you", "random"), "1 s", ())) for _ in range(2))
        looking, looking_too = (lambda: None), (lambda: None)
        first.listeners.add(looking)
        await first.open()
        assert first.position is not None and first.status == "Your turn." and len(nodes(others)) == 1
        await first.play(first.position["moves"][0][0], 0)
        await first._moving
        assert first.actions and len(nodes(others)) == 1
        second.listeners.add(looking_too)
        await second.open()
        assert "1 such games are being played" in second.problem and len(nodes(others)) == 1
        before = nodes(others)
        first.listeners.discard(looking)
        while len(sittings.own):
            await asyncio.sleep(0.02)
        assert wait_until(lambda: gone(before), 5)

    run_async(asyncio.wait_for(sit(), 60))


def test_a_slow_visitor_gets_the_newest_picture_only(tmp_path):
    async def look():
        sitting = LiveSitting(
            "x", Setup("retro", ("random",), "1 s", ()), 0, Sittings(tmp_path, 5, Workers())
        )
        sitting.picture, sitting.pictures = b"seven", 7
        assert await sitting.next_picture(2) == (7, b"seven")
        waiting = asyncio.create_task(sitting.next_picture(7))
        await asyncio.sleep(0)
        assert not waiting.done()
        sitting.picture, sitting.pictures = b"eight", 8
        sitting._came.set()
        assert await waiting == (8, b"eight")

    run_async(look())


def test_buttons_become_the_nearest_action_and_pictures_have_a_rate(console):
    live = games.open("retro", frame_skip=1).make_live(None, 0)
    try:
        assert live.buttons == ["LEFT", "RIGHT", "A"] and live.decisions == 3 and live.picture_s == 1 / 20
        for held, action in {
            "": "",
            "A": "A",
            "LEFT A": "LEFT+A",
            "UP START": "",
            "RIGHT A B": "RIGHT+A",
        }.items():
            assert live.table.buttons[live.pressed(held.split())[0]] == action
        assert live.advance(()) and live.picture().startswith(b"\x89PNG") and live.facts()["lives"] == 3
    finally:
        live.close()


# ---- in the browser


@pytest.fixture
def open_page(web, visit):
    return lambda path, **options: visit(**options).open(web[0].url + path)


def check_page(page):
    assert accessibility_problems(page) == []
    assert page.evaluate(SHIFTS) < 0.1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the phone"


def test_a_battle_by_finger_and_by_digits(open_page):
    """In a format with a team preview: three of six are brought."""
    needs_simulator()
    page = open_page("/play/pokemon:gen9bssfactory?against=random", **DARK_PHONE)
    assert wait_for_turn(page) == "you"
    attacks, switches = page.locator(".pokemon .attacks button"), page.locator(".pokemon .switches button")
    assert attacks.count() == 6 and switches.count() == 0
    check_page(page)
    attacks.nth(3).tap()
    page.keyboard.press("1")
    assert attacks.nth(0).get_attribute("aria-pressed") == "true"
    page.keyboard.press("6")
    assert wait_for_turn(page, 0) == "you" and attacks.count() >= 1
    facts = r"\w+, (power \d+|physical|special|status)\b.* \d+ of \d+ PP"
    assert re.search(facts, attacks.first.inner_text(), re.DOTALL)
    page.get_by_role("button", name="Hint").tap()
    page.locator(".hints tbody tr").first.wait_for()
    assert "100 %" in page.locator(".hints tbody").inner_text()
    gimmick = page.locator(".pokemon > button")
    page.keyboard.press("0")
    assert gimmick.get_attribute("aria-pressed") == "true"
    page.keyboard.press("0")
    assert gimmick.get_attribute("aria-pressed") == "false"
    before = number(page)
    attacks.first.tap()
    for _ in range(3):
        if wait_for_turn(page, before) == "over":
            break
        before = number(page)
        page.keyboard.press(page.locator(".choices button").first.get_attribute("data-key"))
    assert page.locator(".pokemon .log p").count() >= 3
    assert accessibility_problems(page) == []


def test_bots_battle_each_other(open_page):
    needs_simulator()
    page = open_page("/watch/pokemon?against=max_power")
    page.wait_for_function("Number(document.querySelector('.game')?.dataset.number) > 3")
    assert "max_power (seat 1)" in page.locator(".pokemon .sides").inner_text()
    assert "Seat 0's" in page.locator(".pokemon .log").inner_text()


SHIP = """() => { const image = document.querySelector(".retro img");
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    if (!image.naturalWidth) return NaN;  // the next one is being loaded
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 170, canvas.width, 40), found = [];
    for (let at = 0; at < data.length; at += 4)  // it is the only thing in cyan
      if (data[at] < 120 && data[at + 1] > 150 && data[at + 2] > 150) found.push((at / 4) % canvas.width);
    return found.reduce((sum, x) => sum + x, 0) / found.length }"""


def wait_for_pictures(page, count=3):
    page.wait_for_function(f"{NEWEST} > 0")
    page.wait_for_function(f"before => {NEWEST} >= before + {count}", arg=int(page.evaluate(NEWEST)))


def steer(page, press, release, ship):
    """Until the ship is there. A game that is over by then, because the machine is slow, begins anew."""
    press()
    done = f"""() => document.querySelector(".game").dataset.turn === "over" ? "over"
        : ((x) => {ship})(({SHIP})()) && "there" """
    while page.wait_for_function(done).json_value() == "over":
        page.get_by_role("button", name="New game").click()
        page.wait_for_function("document.querySelector('.game').dataset.turn === 'you'")
        release()
        press()
    release()


def test_keys_and_fingers_reach_the_console(open_page, console):
    page = open_page("/play/retro", **PHONE)
    wait_for_pictures(page)
    page.get_by_role("button", name="Pause").tap()
    page.get_by_role("button", name="Go on").wait_for()
    check_page(page)
    page.get_by_role("button", name="Go on").tap()
    for key, ship in (("ArrowLeft", "x < 40"), ("ArrowRight", "x > 190")):
        steer(page, lambda key=key: page.keyboard.down(key), lambda key=key: page.keyboard.up(key), ship)
    left = page.get_by_role("button", name="LEFT, key ArrowLeft")
    touch = {"pointerId": 1, "pointerType": "touch"}
    press, release = (
        (lambda: left.dispatch_event("pointerdown", touch)),
        (lambda: left.dispatch_event("pointerup", touch)),
    )
    steer(page, press, release, "x < 40")
    assert left.get_attribute("aria-pressed") == "false"


def test_agents_and_recordings_are_watched(open_page, web, console, ludus):
    make_run(web[1] / "gems", "retro")
    code, _, err = ludus(
        "play", "retro", "--against", "random", "--record", str(web[1] / "one.bk2"), "--set", "max_steps=20"
    )
    assert code == 0, err
    page = open_page("/run/gems")
    page.get_by_role("link", name="Watch this agent play").click()
    wait_for_pictures(page)
    assert page.get_by_label("Seat 0").input_value() == "run gems"
    assert page.locator(".retro .pad button").count() == 0
    page.goto(f"{web[0].url}/watch")
    page.get_by_role("link", name="one.bk2").click()
    page.wait_for_function(
        "document.querySelector('.status')?.innerText.startsWith('The recording is over: score')"
    )
    page.wait_for_function(f"{NEWEST} >= 20")  # the last of them, one for each decision


def test_from_a_run_to_a_game_against_it(open_page, web):
    champion = games.open("connect4").champion
    shutil.copytree(champion, web[1] / "mine & yours")
    shutil.copytree(champion, web[1] / "own-game")
    config = web[1] / "own-game" / "config.toml"
    config.write_text(config.read_text().replace('game = "connect4"', 'game = "my_games.nim"'))
    page = open_page("/run/mine & yours")
    page.get_by_role("link", name="Play against this agent").click()
    assert wait_for_turn(page) == "you"
    assert page.get_by_label("Seat 1").input_value() == "run mine & yours"
    page.goto(f"{web[0].url}/run/own-game")
    note = page.locator(".play")
    note.wait_for()
    assert "my_games.nim has no page to play on" in note.inner_text() and note.locator("a").count() == 0
    page.goto(f"{web[0].url}/play/connect4?against=run ../x")
    page.locator(".status.problem").wait_for()
    assert "can't play here" in page.locator(".status").inner_text()
