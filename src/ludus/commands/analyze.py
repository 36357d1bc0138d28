"""`ludus analyze`: what a search thinks of each move of a game."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ludus import games, match, switches
from ludus.analysis import Step, read_moves, split_moves, study
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.search import Thinker
from ludus.store.run import read_config
from ludus.ui.screen import BoardScreen, Screen, screen_of
from ludus.ui.thoughts import headline, heat_map, heat_of, idea_table, seat_name, values_text

if TYPE_CHECKING:
    from ludus.ui.pictures import Pictures

console = Console(highlight=False)
SHOWN = 5
"""Moves of the search that are listed."""
BLUNDER = 0.2
"""A move that lost as much of its value (from -1 to 1) stands out."""


def analyze(
    game: str, run: str | None, bot: str, think: str, words: list[str] | None, png: str | None, seed: int,
    set_words: list[str],
) -> None:  # fmt: skip
    if ":" in game:
        raise Usage(f"{game} can't be searched: analyze is for native games ({', '.join(games.names())})")
    rules = games.rules(game, **_switches(game, run, set_words))
    thinker = find_thinker(run or bot, think, game, rules)
    games.warm_up(game, rules, {bot} & set(games.bot_names(game)) if run is None else ())
    actions = None if words is None else read_moves(rules, words, seed)
    screen = screen_of(game, rules)
    pictures = _pictures(png, rules, screen) if png else None
    steps = []
    for step in study(rules, thinker, actions, seed):
        steps.append(step)
        _show(rules, screen, step)
        if pictures:
            pictures.add(step)
    _summarize(rules, screen, steps)
    if pictures:
        console.print(f"{pictures.finish()} pictures in {png}")


def written(moves: str | None, file: str | None) -> list[str] | None:
    """The moves of a game as the user gave them, or None if there is no game yet."""
    if moves is not None and file is not None:
        raise Usage("--moves and --file are two games: give one of them")
    if file is not None:
        try:
            moves = Path(file).read_text(errors="replace")
        except OSError as error:
            raise Usage(f"can't read the game {file}: {error.strerror}") from None
    if moves is None:
        return None
    words = split_moves(moves)
    if not words:
        raise Usage(f"there are no moves in {file or '--moves'}: leave it out to let the search play itself")
    return words


def find_thinker(name: str, think: str, game: str, rules: Rules) -> Thinker:
    player = match.player(f"{name}+{think}" if think else name, game, rules)
    if not isinstance(player, Thinker):
        raise Usage(f"{name} does not search, so it has no thoughts to show: take --bot search")
    return player


def _switches(game: str, run: str | None, words: list[str]) -> dict[str, Any]:
    """An agent thinks under the rules it was trained on, unless told."""
    options = switches.parsed(game, words)
    if run is None:
        return options
    return {**read_config(Path(run), game).switches, **options}


def _pictures(folder: str, rules: Rules, screen: Screen) -> "Pictures":
    try:
        from ludus.ui.pictures import Pictures
    except ImportError:
        raise Usage("--png needs pillow: pip install pillow") from None
    try:
        return Pictures(Path(folder), rules, screen)
    except OSError as error:
        raise Usage(f"can't write pictures to {folder}: {error.strerror}") from None


def _show(rules: Rules, screen: Screen, step: Step) -> None:
    console.print(Text(headline(rules, screen, step), "bold red" if step.lost >= BLUNDER else "bold"))
    console.print(Text(f"worth {values_text(screen, step.value)}", "dim"))
    table = idea_table(rules, step.state, step.ideas, SHOWN, step.action)
    if isinstance(screen, BoardScreen):
        heat = heat_map(screen, step.state, heat_of(screen, step.state, step.ideas))
        console.print(Columns([table, heat], padding=(0, 4)), "")
    else:
        console.print(table, "")


def _summarize(rules: Rules, screen: Screen, steps: list[Step]) -> None:
    table = Table("", "moves", "lost", "worst move", box=None, pad_edge=False)
    for seat in range(rules.spec.seats):
        own = [step for step in steps if step.seat == seat]
        worst = max(own, key=lambda step: step.lost, default=None)
        said = f"move {worst.number}, {worst.lost:.2f}" if worst and worst.lost else "-"
        table.add_row(seat_name(screen, seat), str(len(own)), f"{sum(step.lost for step in own):.2f}", said)
    console.print(table)
    console.print(f"after the last move: {values_text(screen, steps[-1].after)}")
