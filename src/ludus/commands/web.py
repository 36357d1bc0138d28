"""`ludus web`, and the page beside a training (`ludus train ... --web`)."""

from pathlib import Path

from ludus.core.errors import Usage
from ludus.ui import web


def show(runs: Path, host: str, port: int) -> None:
    if not runs.is_dir():
        raise Usage(f"there is no folder {runs}: say where your runs are with --runs")
    web.serve(runs, host, port)
