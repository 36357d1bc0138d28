"""`ludus gtp`: a bot or the agent of a run as a GTP engine on stdin and stdout."""

import sys
from pathlib import Path
from typing import Any

from ludus import games, match, switches
from ludus.core.errors import Usage
from ludus.core.rules import Bot
from ludus.gtp.engine import Engine


def serve(game: str, run: str | None, bot: str | None, think: str, seed: int, words: list[str]) -> None:
    """Answer commands until `quit` or the end of the input."""
    if run and bot:
        raise Usage("choose --run or --bot, not both")
    options = match.run_switches(Path(run), game, words) if run else switches.parsed(game, words)
    rules: Any = games.rules(game, **options)
    if rules.spec.game != "blokus":
        raise Usage(f"{game} has no GTP: it is for blokus")
    names = games.bot_names(game)
    name = run or bot or names[-1]
    trained = rules.options.board

    def make_bot(rules: Any) -> Bot:
        if run and rules.options.board != trained:
            raise Usage(f"{run} plays the board {trained} only")
        games.warm_up(game, rules, {name} & set(names))
        return match.player(f"{name}+{think}" if think else name, game, rules)

    engine = Engine(rules, make_bot, seed)
    for line in sys.stdin:
        reply = engine.answer(line)
        if reply:
            print(reply, end="", flush=True)
        if engine.has_quit:
            break
