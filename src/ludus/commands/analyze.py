"""`ludus analyze`: what a search thinks of each move of a game."""

from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ludus import games, match, records, switches
from ludus.agent import use_all_cores
from ludus.analysis import Step, read_moves, split_moves, study
from ludus.core import extras
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.rules import Rules
from ludus.core.screen import BoardScreen, Screen
from ludus.core.think import NO_LOOK_AHEAD
from ludus.search import Thinker
from ludus.search.bot import bot_names, can_search, warm_up
from ludus.store.player import full_name
from ludus.ui.thoughts import headline, heat_map, heat_of, idea_table, seat_name, values_text

console = Console(highlight=False, emoji=False)
SHOWN = 5
"""Moves of the search that are listed."""
BLUNDER = 0.2
"""A move that lost as much of its value (from -1 to 1) stands out."""


def analyze(
    game: str, run: str | None, bot: str, think: str, moves: str | None, file: str | None, png: str | None,
    seed: int, set_words: list[str],
) -> None:  # fmt: skip
    games.open(game).native("analyzed")
    if png:
        _check_pictures(Path(png))
    options, words = switches.parsed(game, set_words), None
    if run:
        options = match.run_game(Path(run), game, set_words).switches
    text, row = _read(moves, file), 0
    if text is not None and records.is_record(text):
        record = records.last(text, game, file or "--moves")
        options, words = {**options, **record.switches}, record.moves
        seed, row = record.seed, record.row
    elif text is not None:
        words = split_moves(text)
        if not words:
            raise Usage(
                f"there are no moves in {file or '--moves'}: leave it out to let the search play itself"
            )
    opened = games.open(game, **options).native("analyzed")
    rules = opened.rules
    thinker = find_thinker(run, bot, think, opened)
    warm_up(opened, {bot} & set(bot_names(opened)) if run is None else ())
    actions = None if words is None else read_moves(rules, words, seed, row)
    screen = opened.make_screen()
    pictures = None
    if png:
        from ludus.ui.pictures import Pictures

        pictures = Pictures(Path(png), rules, screen)
    steps = []
    for step in study(rules, thinker, actions, seed, row):
        steps.append(step)
        _show(rules, screen, step)
        if pictures:
            pictures.add(step)
    _summarize(rules, screen, steps)
    if pictures:
        console.print(f"{pictures.finish()} pictures in {png}", markup=False)


def _read(moves: str | None, file: str | None) -> str | None:
    """A game as the user gave it, or None if there is none yet."""
    if moves is not None and file is not None:
        raise Usage("--moves and --file are two games: give one of them")
    if file is None:
        return moves
    try:
        return Path(file).read_text(errors="replace")
    except OSError as error:
        raise Usage(f"can't read the game {file}: {error.strerror}") from None


def find_thinker(run: str | None, bot: str, think: str, game: Game) -> Thinker:
    """Who thinks; of whoever doesn't search, it says what does."""
    name = run or bot
    if think == NO_LOOK_AHEAD:
        raise Usage("analyze shows what a search thinks: leave out --think 0")
    if run is None and not can_search(game):
        able = ", ".join(other for other in games.native_names() if can_search(games.open(other)))
        why = "part of the game is hidden" if game.spec.hidden else "it has one seat"
        raise Usage(
            f"{game.name} can't be analyzed: no bot searches it, because {why}; analyze is for {able}"
        )
    player = match.player(full_name(name, think=think), game)
    use_all_cores()
    if not isinstance(player, Thinker):
        instead = f"leave out --{'run' if run else 'bot'} to take the bot search"
        if not can_search(game):
            instead = "take the run of an agent that does"
        raise Usage(f"{name} does not search, so it has no thoughts to show: {instead}")
    return player


def _check_pictures(folder: Path) -> None:
    """Before anything compiles."""
    try:
        import PIL  # noqa: F401

        folder.mkdir(parents=True, exist_ok=True)
    except ImportError:
        raise extras.missing("--png", "pillow") from None
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
