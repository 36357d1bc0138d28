"""Games on record: `ludus play --record FILE.bk2` and `ludus export --video`."""

from functools import partial
from pathlib import Path

from rich.console import Console

from ludus import games, match, switches
from ludus.agent import run_player
from ludus.core import film, seeds
from ludus.core.errors import Usage
from ludus.core.film import Chooser
from ludus.core.game import Game
from ludus.core.table import Table
from ludus.search.bot import make_player
from ludus.store.run import read_config

console = Console(highlight=False, emoji=False)


def record(game: str, run: str | None, against: str | None, seed: int, file: str, words: list[str]) -> None:
    """One game of an agent, or of a bot, as a recording that can be played again."""
    if (run is None) == (against is None):
        raise Usage("say who plays: --run RUN for its agent, or --against BOT for a bot")
    opened = (
        match.run_game(Path(run), game, words) if run else games.open(game, **switches.parsed(game, words))
    )
    table = opened.table(1)
    try:
        table.record(0, file)
        player = run_player(opened, Path(run), "", table) if run else _bot(opened, against or "", seed, table)
        decisions = -1  # the first turn comes before any
        for turn in film.one_game(table, player, seed):
            decisions, finished = decisions + 1, turn.finished
    finally:
        table.close()
    result = f"score {finished.score[0, 0]:g}" if finished else "unfinished"
    console.print(f"{file}: {decisions} decisions, {result}, seed {seed}", markup=False, soft_wrap=True)


def export_video(folder: Path, file: Path, at: str, seed: int) -> None:
    """One game of a run's agent, which takes all seats, as a GIF or MP4."""
    film.refuse_unknown_kind(file)
    game = match.run_game(folder, read_config(folder).game, [])
    shown = game.film(partial(run_player, game, folder, at), seed)
    pictures = film.write_video(file, shown)
    seconds = pictures / shown.fps
    console.print(f"the video is in {file}: {seconds:.0f} s, seed {seed}", markup=False, soft_wrap=True)


def _bot(game: Game, name: str, seed: int, table: Table) -> Chooser:
    return make_player(game, name, table, seeds.rows(seed, 1, "bot"))
