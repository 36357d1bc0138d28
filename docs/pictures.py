"""Draws the README's pictures: a training's dashboard from its run, Blokus, Gemfall, and the web page.

ludus train ofc --preset quick
python docs/pictures.py runs/ofc-quick

The web page needs chromium on the PATH, or as $LUDUS_CHROMIUM; the list shows all runs beside the named one.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console, RenderableType

from ludus import games
from ludus.agent import trained_game
from ludus.core import seeds
from ludus.core.film import write_video
from ludus.store.reader import RunReader
from ludus.store.run import read_config
from ludus.ui.dashboard import Dashboard

FOLDER = Path(__file__).parent / "pictures"
MOVES = 14
DECISIONS = 110
WEB_PAGES = {"web-runs": "/", "web-run": "/run/RUN"}
"""Picture -> address of a page."""
SETTLE_MS = 1500


def main(run: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    draw("dashboard", f"ludus train {RunReader(run).config.game}", dashboard(run), 100, 30)
    draw("blokus", "ludus play blokus", board(), 92, 30)
    gemfall()
    photograph(run)


def draw(name: str, title: str, what: RenderableType, width: int, height: int) -> None:
    console = Console(width=width, height=height, record=True, file=io.StringIO(), force_terminal=True)
    console.print(what)
    console.save_svg(str(FOLDER / f"{name}.svg"), title=title)


def dashboard(run: Path) -> Dashboard:
    """As it stood when three quarters of the training were done."""
    config = read_config(run)
    lines = list(RunReader(run).metrics())
    seen = [line for line in lines if line["seconds"] <= 0.75 * lines[-1]["seconds"]]
    screen = Dashboard(config, trained_game(config).columns, console=Console(file=io.StringIO()))
    for metrics in seen:
        screen.show(metrics)
    return screen


def board() -> RenderableType:
    """Two greedy bots, in the middle of their game."""
    game = games.open("blokus").native("drawn")
    rules, bot, rng = game.rules, game.bot("greedy"), seeds.rows(5, 1)
    states = rules.blank(1)
    rules.deal(states, rng)
    for _ in range(MOVES):
        rules.play(states, bot.choose(states, rng), rng)
    return game.make_screen().show(states[0], 0)


def gemfall() -> None:
    """Some seconds of its scripted player."""
    game = games.open("retro:Gemfall-Nes-v0", max_steps=DECISIONS)
    film = game.film(lambda table: game.player("scripted", table, seeds.rows(0, 1)), seed=1)
    write_video(FOLDER / "gemfall.gif", film)


def photograph(run: Path) -> None:
    """Pages of `ludus web`, in a real browser."""
    from playwright.sync_api import sync_playwright

    words = [sys.executable, "-m", "ludus.cli", "web", "--runs", str(run.resolve().parent), "--port", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "ludus web did not say where it is"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("LUDUS_CHROMIUM") or shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu"],
            )
            page = browser.new_page(viewport={"width": 1200, "height": 800})
            for name, place in WEB_PAGES.items():
                page.goto(found[0] + place.replace("RUN", quote(run.resolve().name)))
                page.wait_for_load_state("networkidle")
                page.wait_for_timeout(SETTLE_MS)
                page.screenshot(path=FOLDER / f"{name}.png")
            photograph_games(page, found[0])
            photograph_battle(page, found[0])
            browser.close()
    finally:
        server.terminate()
        server.wait()


def photograph_games(page: Any, address: str) -> None:
    """A game of Blokus with a hint, and one of OFC with cards that are being placed."""
    page.set_default_timeout(120_000)
    page.goto(f"{address}/play/blokus?against=greedy")
    for move in range(7):
        page.locator(f".game[data-turn=you][data-number='{2 * move}'] .cell.fits").first.click()
    page.locator(".game[data-turn=you][data-number='14']").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.locator(".hints tbody tr").first.wait_for()
    page.screenshot(path=FOLDER / "web-blokus.png")
    page.goto(f"{address}/play/ofc?against=greedy")
    for _ in range(2):
        page.locator(".game[data-turn=you] .hand .card").first.wait_for()
        page.get_by_role("button", name="Hint").click()
        page.locator(".hints .idea").first.click()  # lays the cards as the champion would
        page.get_by_role("button", name="Confirm").click()
    page.locator(".game[data-turn=you] .hand .card").nth(2).click()
    page.locator(".mine [data-row=b].open, .mine [data-row=m].open").last.click()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=FOLDER / "web-ofc.png")


def photograph_battle(page: Any, address: str) -> None:
    """Some turns of a Pokémon battle, with a hint. Needs Node and the simulator."""
    page.goto(f"{address}/play/pokemon?against=heuristic")
    for _ in range(6):
        page.locator(".game[data-turn=you] .choices button").first.wait_for()
        number = page.locator(".game").get_attribute("data-number")
        page.locator(".choices button").first.click()
        page.locator(f".game[data-turn=you]:not([data-number='{number}'])").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.locator(".hints tbody tr").first.wait_for()
    page.set_viewport_size({"width": 1200, "height": 1000})
    page.screenshot(path=FOLDER / "web-pokemon.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/ofc-quick"))
