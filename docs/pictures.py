"""Draws the pictures of README and docs: a training's dashboard from its run, a game of Blokus, and pages of
`ludus web` (with chromium on the PATH or in $LUDUS_CHROMIUM).

ludus train ofc --preset quick
python docs/pictures.py runs/ofc-quick
"""

import io
import sys
from pathlib import Path

from rich.console import Console, RenderableType

from ludus import games
from ludus.agent import trained_game
from ludus.core import seeds
from ludus.store.reader import RunReader
from ludus.store.run import read_config
from ludus.ui.dashboard import Dashboard

FOLDER = Path(__file__).parent / "pictures"
MOVES = 14


def main(run: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    draw("dashboard", f"ludus train {RunReader(run).config.game}", dashboard(run), 100, 30)
    draw("blokus", "ludus play blokus", board(), 92, 30)


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


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/ofc-quick"))
