"""Replays: a battle's log as a page that shows it in a browser, with Showdown's own player from the web."""

import html
from collections.abc import Iterable
from pathlib import Path

EVERYTHING = 2
"""Channel of the lines that both seats' secrets are in."""
PLAYER = "https://play.pokemonshowdown.com/js/replay-embed.js"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
<div class="wrapper replay-wrapper" style="max-width:1180px;margin:0 auto">
<input type="hidden" name="replayid" value="{name}">
<div class="battle"></div><div class="battle-log"></div>
<div class="replay-controls"></div><div class="replay-controls-2"></div>
<script type="text/plain" class="battle-log-data">{log}</script>
</div>
<script src="{player}"></script>
</body>
</html>
"""


def log_of(said: Iterable[tuple[int, int, int, str]], row: int, battle: int) -> list[str]:
    """The lines of one battle. said: as `PokemonTable.said`"""
    wanted = (row, battle, EVERYTHING)
    return [line for *where, line in said if tuple(where) == wanted]


def save(path: Path, lines: Iterable[str], title: str = "Ludus") -> None:
    log = "\n".join(lines).replace("</", "<\\/")  # nothing in a log may end the script element
    page = PAGE.format(title=html.escape(title), name=html.escape(path.stem), log=log, player=PLAYER)
    path.write_text(page, encoding="utf-8")
