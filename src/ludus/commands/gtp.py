"""`ludus gtp`: a bot or the agent of a run plays by a game's text protocol on stdin and stdout."""

from pathlib import Path

from ludus import games, match, switches
from ludus.agent import use_all_cores
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.rules import Bot
from ludus.search.bot import bot_names, warm_up
from ludus.store.player import full_name


def serve(game: str, run: str | None, bot: str | None, think: str, seed: int, words: list[str]) -> None:
    """Answer commands until told to quit or the end of the input."""
    if run and bot:
        raise Usage("choose --run or --bot, not both")
    opened = (
        match.run_game(Path(run), game, words) if run else games.open(game, **switches.parsed(game, words))
    )
    if opened.engine is None:
        raise Usage(f"{game} has no text protocol")
    names = bot_names(opened)
    name = run or bot or names[-1]

    def make_bot(opened: Game) -> Bot:
        warm_up(opened, {name} & set(names))
        player = match.player(full_name(name, think=think), opened)
        use_all_cores()
        return player

    opened.engine.serve(make_bot, seed)
