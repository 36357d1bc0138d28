"""Imported by the fork server before it forks: workers begin with the game's compiled code in memory.

So a worker that died is replaced in a fraction of a second. Whatever fails here is met again, and told, in
the worker itself.
"""

import json
import os
from contextlib import suppress

GAME = "LUDUS_PRELOAD"
"""The variable that tells which game: its name, switches and bots, as JSON."""


def announce(game: str, switches: dict, bots: list[str]) -> None:
    """For the fork server that is about to start."""
    os.environ[GAME] = json.dumps([game, switches, bots])


def load() -> None:
    from ludus import games
    from ludus.search.bot import warm_up

    game, switches, bots = json.loads(os.environ[GAME])
    warm_up(games.open(game, **switches), bots)


if GAME in os.environ:
    with suppress(Exception):
        load()
