"""Games in a real browser: whole ones by clicks, by touch at phone size and by keys; watching, replaying."""

import json
import multiprocessing
import re
import shutil

import pytest

from browser import accessibility_problems, run_async
from ludus import games, match, records
from ludus.core import conformance
from ludus.core.errors import Failure, Usage
from ludus.games.ofc.web import OfcView

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SHORT = {"ofc": "?seats=2&hands=1&against=random"}


# ---- what needs no browser


@pytest.mark.parametrize(
    ("game", "switches"),
    [*((name, {}) for name in games.native_names()), ("blokus", {"board": "classic"}), ("ofc", {"seats": 2})],
)
def test_every_view_keeps_the_contract(game, switches):
    opened = games.open(game, **switches)
    conformance.check_view(opened.rules, opened.make_view())


class ShowsAll(OfcView):
    def show(self, state, seat, recent=()):
        return {**super().show(state, seat, recent), "deck": int(state["deck"])}


class OffersLess(OfcView):
    def show(self, state, seat, recent=()):
        shown = super().show(state, seat, recent)
        return {**shown, "moves": shown["moves"][1:]}


class OffersToAll(OfcView):
    def show(self, state, seat, recent=()):
        return super().show(state, None if seat == 2 else seat, recent)


@pytest.mark.parametrize(
    ("view", "said"),
    [(ShowsAll, "hidden"), (OffersLess, "of the legal"), (OffersToAll, "is offered moves of seat")],
)
def test_a_view_that_breaks_the_contract_is_found(view, said):
    rules = games.open("ofc").rules
    with pytest.raises(conformance.Broken, match=said):
        conformance.check_view(rules, view(rules))


def test_a_game_without_a_view_of_its_own_is_shown_as_text():
    from ludus.core.screen import PlainScreen
    from ludus.core.view import PlainView, default_view

    rules = games.open("tictactoe").rules
    view = default_view(rules, PlainScreen(rules))
    shown = view.show(rules.parse("X../.O./...")[0], 0)
    assert isinstance(view, PlainView) and shown["text"] == "X../.O./..."
    assert [0 + move[0] for move in shown["moves"]] == [1, 2, 3, 5, 6, 7, 8] and shown["moves"][0][1] == "b3"


def test_only_listed_players_can_be_named(tmp_path, monkeypatch):
    """Neither a folder beside the server, nor a path out of the folder of the runs."""
    from ludus.ui.web import engine
    from ludus.ui.web.sittings import Sittings
    from ludus.ui.web.workers import Workers

    champion = games.open("connect4").champion
    monkeypatch.chdir(tmp_path)
    shutil.copytree(champion, tmp_path / "sneaky")
    shutil.copytree(champion, tmp_path / "runs" / "fine")
    sittings = Sittings(tmp_path / "runs", 5, Workers())
    assert sittings.player("run fine") == str(tmp_path / "runs" / "fine")
    for name in ("run ../sneaky", f"run {tmp_path}/sneaky", "run sneaky"):
        with pytest.raises(Usage, match="there is no"):
            sittings.player(name)
    for name in ("sneaky", "../sneaky", "./sneaky"):
        with pytest.raises(Usage, match="no player"):
            engine._bot("connect4", (), sittings.player(name), "0.1 s")


def test_agents_of_runs_play_where_their_networks_fit(tmp_path):
    from ludus.ui.web import engine
    from ludus.ui.web.deal import Deal

    run = tmp_path / "run+1"
    shutil.copytree(games.open("ofc").champion, run)
    folders = (("run+1", str(run)), ("gone", str(tmp_path / "gone")))
    assert engine.describe("ofc", (), folders)["runs"] == ["run+1"]
    assert engine.describe("ofc", ("seats=2",), folders)["runs"] == []
    assert engine.describe("tictactoe", (), folders)["runs"] == []
    deal = Deal("ofc", ("hands=1",), 1, ("greedy", str(run), "random"), ("greedy", "run+1", "random"), "1 s")
    actions: tuple[int, ...] = ()
    while not (shown := engine.position(deal, actions))["over"]:
        actions = (*actions, engine.answer(deal, actions)[0])
    assert len(actions) == 15 and "run+1" in shown["ending"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "can begin"),
        ({"seats": ["you"] * 1000, "rules": {}, "think": "1 s"}, "can begin"),
        ({"seats": ["you"], "rules": {"hands": "9" * 1000}, "think": "1 s"}, "can begin"),
        ({"seats": ["you"], "rules": {}, "think": "1 h"}, "thinking takes"),
    ],
)
def test_what_a_browser_sends_is_bounded(given, said):
    from ludus.ui.web.sittings import Setup

    with pytest.raises(Usage, match=said):
        Setup.read("ofc", given)


def test_a_record_never_names_a_module(tmp_path, monkeypatch):
    from ludus.ui.web import engine

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil_game.py").write_text("raise SystemExit('imported')")
    for name in ("evil_game", "evil_game:Game", "gym:evil_game:X", "'tictactoe evil_game'"):
        with pytest.raises(Usage, match="can't be shown here"):
            engine.read_record(f"ludus play {name} --seed 1 --seat 0 --set a=1 | b2")


def test_endless_games_are_refused():
    from ludus.ui.web import engine

    with pytest.raises(Usage, match="from 0 to 1000"):
        engine.describe("ofc", ("hands=100000",), ())


def test_open_games_and_waiting_jobs_are_bounded(tmp_path):
    from ludus.ui.web.sittings import Setup, Sittings
    from ludus.ui.web.workers import Workers

    sittings = Sittings(tmp_path, 2, Workers(waiting=0))
    sittings.folder = tmp_path / "kept"
    setup = Setup("tictactoe", ("you", "greedy"), "0.1 s", ())
    first, second = sittings.begin(setup), sittings.begin(setup)
    first.actions = (4, 0)
    sittings.keep(first)
    second.listeners.add(lambda: None)
    third = sittings.begin(setup)  # nobody looked at the first
    assert sittings.find(second.name, "tictactoe") is second
    back = sittings.find(first.name, "tictactoe")  # it was kept, and now nobody looks at the third
    assert back is not first and back.actions == (4, 0) and back.setup == setup and back.seed == first.seed
    assert sittings.find(third.name, "tictactoe") is None and sittings.find(first.name, "connect4") is None
    assert sittings.find("../../../etc/a", "tictactoe") is None
    back.listeners.add(lambda: None)
    with pytest.raises(Failure, match="too many games"):
        sittings.begin(setup)
    run_async(back.open())
    assert "too many people" in back.problem


def test_a_lost_worker_is_told_and_replaced():
    from ludus.ui.web.workers import Workers

    workers = Workers(count=1)

    async def lose_one():
        about = await workers.ask("describe", "tictactoe", (), ())
        for child in multiprocessing.active_children():
            child.kill()
        with pytest.raises(Failure, match="lost"):
            await workers.ask("describe", "tictactoe", (), ())
        with pytest.raises(Failure, match="unexpected"):
            await workers.ask("no_such_function")
        assert await workers.ask("describe", "tictactoe", (), ()) == about

    run_async(lose_one())
    workers.close()
    assert not multiprocessing.active_children()


def test_games_of_a_match_are_recorded_and_read_back():
    from ludus.ui.web import engine

    recorded: list[records.Record] = []
    match.duel(games.open("connect4"), "random", "greedy", deals=3, cores=1, record=recorded)
    lines = [record.line() for record in recorded]
    assert len(lines) == 6 and len({line.partition(" # ")[0] for line in lines}) == 6
    for line in lines:
        deal, actions = engine.read_record(line)
        shown = engine.position(deal, actions)
        assert shown["over"] and set(deal.names) == {"random", "greedy"}
        told = zip(deal.names, shown["score"], strict=True)
        assert records.parse(line, "").result == ", ".join(f"{name} {points:+g}" for name, points in told)


def test_recorded_hands_deal_the_same_cards():
    from ludus.ui.web import engine

    game, recorded = games.open("ofc", seats=2, hands=2), list[records.Record]()
    match.duel(game, "greedy", "random", deals=3, cores=1, record=recorded)
    for record in recorded:
        assert engine.position(*engine.read_record(record.line()))["over"]
    with pytest.raises(Usage, match="leave out --opening"):
        match.duel(game, "greedy", "random", deals=3, cores=1, opening=1, record=recorded)


def test_others_cards_stay_hidden_until_the_game_is_over():
    from ludus.ui.web import engine
    from ludus.ui.web.deal import Deal

    deal = Deal("ofc", ("seats=2", "hands=1"), 3, ("", "greedy"), ("you", "greedy"), "0.1 s")
    actions, hidden = (), set()
    shown = engine.position(deal, actions)
    while not shown["over"]:
        state = engine._played(deal, actions)[-1][0][0]
        theirs = [int(card) for card in state["discards"][1] if card != 255]
        from ludus.games.ofc.cards import card_text

        hidden |= {card_text(card) for card in theirs}
        said = json.dumps({**shown, "log": [text for seat, text in shown["log"] if seat == 1]})
        assert shown["text"] == "" and not any(f'"{card}"' in said for card in hidden)
        if shown["turn"] == 0:
            actions = (*actions, shown["moves"][0][0])
            shown = engine.play(deal, actions[:-1], actions[-1])
        else:
            action, shown = engine.answer(deal, actions)
            actions = (*actions, action)
    assert hidden and all(card in shown["text"] for card in hidden)


def test_fantasyland_is_shown_to_its_seat_alone():
    from ludus.core import seeds

    rules, bot = games.open("ofc", hands=4).rules, games.open("ofc", hands=4).bot("greedy")
    states, rng, choices = rules.blank(64), seeds.rows(1, 64), seeds.rows(2, 64)
    rules.deal(states, rng)
    while not (found := (states["fantasy_cards"] > 0).any(1)).any():
        rules.play(states, bot.choose(states, choices), rng)
    state = states[found][0]
    seat = int((state["fantasy_cards"] > 0).argmax())
    cards = int(state["fantasy_cards"][seat])
    for viewer in range(3):
        shown = OfcView(rules).show(state, viewer)["boards"][seat]
        assert shown["fantasy"] == cards and len(shown["fantasy_hand"]) == (cards if viewer == seat else 0)
    assert len(OfcView(rules).show(state, None)["boards"][seat]["fantasy_hand"]) == cards


def test_a_policy_says_what_its_moves_are_worth():
    from ludus.ui.web import engine
    from ludus.ui.web.deal import Deal

    deal = Deal("ofc", ("hands=1",), 3, ("", "greedy", "greedy"), ("you", "greedy", "greedy"), "0.1 s")
    actions: tuple[int, ...] = ()
    while (shown := engine.position(deal, actions))["turn"] != 0:
        actions = (*actions, engine.answer(deal, actions)[0])
    ideas = engine.advise(deal, actions, "champion")["ideas"]
    values = [idea["value"] for idea in ideas]
    assert values == sorted(values, reverse=True) and len(set(values)) > 1
    assert {idea["action"] for idea in ideas} <= {move[0] for move in shown["moves"]}


# ---- in the browser


@pytest.fixture
def open_page(web, visit):
    """Open an address of the server, in a visit of its own."""
    return lambda path, **options: visit(**options).open(web[0].url + path)


def number(page) -> int:
    return int(page.locator(".game").get_attribute("data-number"))


def wait_for_turn(page, after: int = -1) -> str:
    """Until the person must move or the game is over: which of them."""
    ready = """after => { const game = document.querySelector(".game"), turn = game?.dataset.turn;
               return ["you", "over"].includes(turn) && Number(game.dataset.number) > after && turn }"""
    return page.wait_for_function(ready, arg=after, polling=20).json_value()


def choose(page, locator: str, how: str) -> None:
    """A visible thing, by mouse or finger."""
    first = page.locator(locator).first
    first.tap() if how == "touch" else first.click()


def to_board(page, target: str) -> None:
    """Press Tab until the focus is on the board."""
    for _ in range(40):
        if page.evaluate("target => document.activeElement.matches(target)", target):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never came to {target}")


def walk_to(page, target: str) -> None:
    """By arrow keys from the cell that has the focus to the nearest target."""
    steps = page.evaluate(
        """target => { const cells = [...document.querySelectorAll(".cell")];
            const grid = document.querySelector(".cells"), named = !grid.firstElementChild.matches(".cell");
            const wide = getComputedStyle(grid).gridTemplateColumns.split(" ").length - named;
            const at = cells.indexOf(document.activeElement), place = n => [Math.floor(n / wide), n % wide];
            const away = n => place(n).map((p, axis) => p - place(at)[axis]);
            const far = n => away(n).reduce((sum, step) => sum + Math.abs(step), 0);
            const found = cells.flatMap((cell, n) => cell.matches(target) ? [n] : []);
            return away(found.reduce((best, n) => far(n) < far(best) ? n : best)) }""",
        target,
    )
    for count, keys in zip(steps, (("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight")), strict=True):
        for _ in range(abs(count)):
            page.keyboard.press(keys[count > 0])


OPEN = ".cell:not([aria-disabled])"


def move_on_a_board(page, how: str) -> None:
    if how == "keys":
        to_board(page, ".cell")
        walk_to(page, OPEN)
        page.keyboard.press("Enter")
    else:
        cells = page.locator(OPEN)
        cell = cells.nth(number(page) % cells.count())  # here and there, so that nobody stacks one column
        cell.tap() if how == "touch" else cell.click()


def move_in_blokus(page, how: str) -> None:
    if page.locator(".tools button", has_text="Pass").is_enabled():
        return choose(page, ".tools button:has-text('Pass')", "click" if how == "keys" else how)
    if how == "keys":
        to_board(page, ".cell")
        walk_to(page, ".cell.fits")
        page.keyboard.press("Enter")
    elif how == "touch":
        cell = page.locator(f"[data-cell='{page.locator('.cell.fits').first.get_attribute('data-cell')}']")
        cell.tap()  # shows it
        assert page.locator(".cell.ghost.good").count() >= 1
        cell.tap()  # places it
    else:
        page.locator(".cell.fits").first.click()


def move_in_ofc(page, how: str) -> None:
    place = page.locator
    confirm = place(".tools button", has_text="Confirm")
    while not confirm.is_enabled():
        row = next(row for row in "bmt" if place(f".mine .row.open[data-row={row}]").count())
        if how == "keys":
            to_board(page, ".hand .card, .tools button")
            page.keyboard.press(row)
        elif how == "click" and number(page) < 2:
            place(".hand .card").last.drag_to(place(f".mine [data-row={row}]"))
        else:
            choose(page, f".mine [data-row={row}]", how)
    page.keyboard.press("Enter") if how == "keys" else choose(page, ".tools button:has-text('Confirm')", how)


MOVES = {"blokus": move_in_blokus, "ofc": move_in_ofc}


def play_to_the_end(page, game: str, how: str) -> int:
    """How many decisions the person had."""
    decisions, turn = 0, wait_for_turn(page)
    while turn == "you":
        before = number(page)
        MOVES.get(game, move_on_a_board)(page, how)
        decisions += 1
        turn = wait_for_turn(page, before)
    return decisions


@pytest.mark.parametrize("how", ["click", "touch", "keys"])
@pytest.mark.parametrize("game", games.native_names())
def test_a_whole_game(open_page, game, how):
    page = open_page(f"/play/{game}{SHORT.get(game, '?against=random')}", **(PHONE if how == "touch" else {}))
    assert play_to_the_end(page, game, how) >= 3
    assert "Final score: you" in page.locator(".status").inner_text()
    if game == "ofc":
        dialog = page.locator("dialog")
        assert "This hand: you" in dialog.inner_text()
        page.keyboard.press("Enter") if how == "keys" else choose(page, "dialog button", how)
        dialog.wait_for(state="hidden")
    if how == "touch":
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the phone"


def test_hints_undo_copy_and_a_new_game(open_page):
    page = open_page("/play/tictactoe?against=greedy", permissions=["clipboard-read", "clipboard-write"])
    wait_for_turn(page)
    page.get_by_role("button", name="Hint").click()
    page.locator(".hints tbody tr").first.wait_for()
    assert page.locator(".cell .heat").count() >= 1  # where the search would play
    assert re.search(r"search: you [+-]?\d", page.locator(".hints caption").inner_text())
    page.locator(".hints .idea").first.click()
    assert page.evaluate("document.activeElement.matches('.cell')")
    page.keyboard.press("Enter")
    assert wait_for_turn(page, 0) == "you" and number(page) == 2
    page.get_by_role("button", name="Copy game").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert "--against greedy |" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("document.querySelector('.game').dataset.number === '0'")
    page.get_by_label("Seat 0").select_option("random")
    page.get_by_label("Seat 1").select_option("you")
    before = page.url
    page.get_by_role("button", name="New game").click()
    assert wait_for_turn(page, 0) == "you" and number(page) == 1 and page.url != before


def test_pieces_are_turned_and_flipped_and_show_where_they_fit(open_page):
    page = open_page("/play/blokus?against=random")
    wait_for_turn(page)
    page.get_by_label("Piece L5", exact=True).click()
    piece = page.locator(".tray [aria-pressed=true] svg")
    first = piece.inner_html()
    seen = [first]
    for turn in (
        lambda: page.get_by_role("button", name="Turn").click(),
        lambda: (page.locator("[data-cell='60']").hover(), page.mouse.wheel(0, 100)),
        lambda: page.keyboard.press("r"),
    ):
        page.locator(".tray [aria-pressed=true]").focus()
        turn()
        page.wait_for_function(
            "before => document.querySelector('.tray [aria-pressed=true] svg').innerHTML !== before",
            arg=seen[-1],
        )
        seen.append(piece.inner_html())
    page.get_by_role("button", name="Turn").click()
    assert len({*seen}) == 4 and piece.inner_html() == first
    page.keyboard.press("f")
    assert piece.inner_html() not in seen
    fitting = page.locator(".cell.fits")
    fitting.first.hover()
    assert page.locator(".cell.ghost.good").count() == 5  # before any click
    page.locator("[data-cell='195']").hover()
    assert page.locator(".cell.ghost.wrong").count() >= 1 and page.locator(".cell.good").count() == 0
    page.locator("[data-cell='195']").click(force=True)
    assert number(page) == 0


def test_two_tabs_in_one_game_and_a_restart(open_page, web):
    server, _ = web
    first = open_page("/play/tictactoe?against=greedy", expected="ERR_CONNECTION")
    wait_for_turn(first)
    second = open_page(first.url.removeprefix(server.url), expected="ERR_CONNECTION")
    wait_for_turn(second)
    first.locator("[data-cell='4']").click()
    assert wait_for_turn(second, 0) == "you"
    assert second.locator("[data-cell='4']").get_attribute("aria-label") == "b2: X"
    before = number(second)
    for page in (first, second):
        page.evaluate("window.old = true")
    server.stop()
    server.start()
    for page in (first, second):  # they come back by themselves, to the same position
        page.wait_for_function("!window.old && document.querySelector('.game')?.dataset.turn === 'you'")
        assert number(page) == before
    second.locator(OPEN).first.click()
    wait_for_turn(first, before)
    assert number(first) > before


def test_agents_are_watched_and_a_recorded_game_is_replayed(open_page, web, ludus):
    assert (
        ludus("eval", "tictactoe", "--bots", "random", "greedy", "--games", "2", "--record", "x.games")[0]
        == 0
    )
    shutil.copy("x.games", web[1] / "x.games")
    live = open_page("/watch/tictactoe?against=random")
    assert wait_for_turn(live) == "over"
    assert "Final score: random" in live.locator(".status").inner_text()
    page = open_page("/watch")
    page.get_by_role("link", name=re.compile("^tictactoe --seed")).first.click()
    page.locator(".hints tbody tr").first.wait_for()
    assert number(page) == 0 and page.locator(".cell .heat").count() >= 1
    assert re.search("Move 0 of .* is to move and plays [abc][123]", page.locator(".status").inner_text())
    page.get_by_role("button", name="Next move").click()
    page.wait_for_function("document.querySelector('.game').dataset.number === '1'")
    page.get_by_role("button", name="Last position").click()
    page.wait_for_function("document.querySelector('.status').innerText.includes('Final score')")
    broken = open_page("/replay?text=nonsense")
    broken.locator(".status.problem").wait_for()
    assert "not a record" in broken.locator(".status").inner_text()


SHIFTS = """() => new Promise(done => { let sum = 0; new PerformanceObserver(list => {
    for (const shift of list.getEntries()) if (!shift.hadRecentInput) sum += shift.value;
    }).observe({ type: "layout-shift", buffered: true }); setTimeout(() => done(sum), 300) })"""


DARK_PHONE = {**PHONE, "color_scheme": "dark"}


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/play", {}),
        ("/play/blokus?board=classic&against=random", DARK_PHONE),
        ("/play/ofc", {"color_scheme": "dark"}),
        ("/play/ofc", PHONE),
        ("/watch", DARK_PHONE),
    ],
    ids=["list", "classic-phone", "ofc-desk", "ofc-phone", "watch-phone"],
)
def test_pages_stay_put_and_everything_has_a_name(open_page, path, options):
    page = open_page(path, **options)
    if path.count("/") > 1:
        wait_for_turn(page)
    assert accessibility_problems(page) == []
    assert page.evaluate(SHIFTS) < 0.1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
