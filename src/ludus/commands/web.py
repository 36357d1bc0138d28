"""`ludus web`, and the page beside a training (`ludus train ... --web`)."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from ludus import processes
from ludus.core.errors import Usage
from ludus.ui import web
from ludus.ui.web.listener import address, listen

PATIENCE_S = 3.0
NICE = 10
"""How far the page beside a training stands behind it when both want a core."""


def show(runs: Path, host: str, port: int) -> None:
    if not runs.is_dir():
        raise Usage(f"there is no folder {runs}: say where your runs are with --runs")
    web.serve(runs, host, port)


@contextlib.contextmanager
def beside(run: Path) -> Iterator[None]:
    """The page in a process of its own, as long as the context lasts. run: the folder being trained"""
    web.refuse_without_library("--web")
    try:
        listener = listen(web.HOST, web.PORT)
    except Usage:  # taken, perhaps by the page of another training
        listener = listen(web.HOST, 0)
    place = address(listener)
    process = processes.make_context("spawn").Process(
        target=_serve, args=(run.parent, listener), name="web", daemon=True
    )
    process.start()
    listener.close()  # the process has its own
    print(f"watch it at {place} until it ends; `ludus web` shows it at any time", flush=True)
    try:
        yield
    finally:
        process.terminate()
        processes.end(process, PATIENCE_S)


def _serve(runs: Path, listener: socket.socket) -> None:
    if hasattr(os, "nice"):
        os.nice(NICE)
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the terminal belongs to the training
        os.dup2(silence, stream)
    web.serve(runs, listener=listener)
