"""Outlets: where a run is heard of beside its folder: notifications, the mirror, TensorBoard.

All of them work in threads of their own and swallow their own troubles: training never waits for them.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ludus.config import Config
from ludus.core import extras
from ludus.core.errors import Usage
from ludus.store.disk import reason
from ludus.store.run import TENSORBOARD, Run

SAID = {
    "start": ("started", "info"),
    "resume": ("goes on", "info"),
    "best": ("has a new best", "success"),
    "rolled back": ("was rolled back", "warning"),
    "checkpoint failed": ("could not save", "failure"),
    "checkpoint skipped": ("has a damaged checkpoint", "warning"),
    "weights only": ("goes on from weights alone", "warning"),
    "worker replaced": ("replaced a worker", "warning"),
    "mirror": ("has news of its mirror", "warning"),
    "mirror incomplete": ("ended before its mirror was complete", "warning"),
    "failed": ("failed", "failure"),
    "stopped": ("was stopped", "warning"),
    "end": ("is done", "success"),
}
"""Events that people are told of: in which words, and how grave."""
WAIT_S = 2.0
"""How long an outlet may take to end."""
ANSWER_S = 5.0
"""How long a mirror may take to say whether another machine trains the run; then it is not waited for."""
COPY_S, LAST_COPY_S = 5.0, 120.0
"""How long a mirror that works may take for what is left: when training is broken off, and at its end."""


class Outlets:
    """Listens to a run until closed."""

    def __init__(self, run: Run, config: Config, new: bool) -> None:
        """new: whether the run begins now"""
        self.run, self.config = run, config
        if config.tensorboard:
            _board_writer()  # refused now if it is not installed
        self._board: Any = None
        self._notifier, self._mirror = _notifier(run, config), _mirror(run, config, new)
        self._last: dict[str, Any] = {}
        self._ended = False
        self._told_at, self._told_decisions = time.monotonic(), 0
        run.listeners.append(self._hear)
        run.readers.append(self._read)

    def close(self) -> None:
        self._end_board()
        if self._mirror:
            working_s = LAST_COPY_S if self._ended else COPY_S
            if not self._mirror.close(WAIT_S if self._mirror.state()["failing"] else working_s):
                self.run.event(
                    "mirror incomplete", reason=f"{self._mirror.url} is behind until the run is resumed"
                )
        if self._notifier:
            self._notifier.close(WAIT_S)

    def _hear(self, what: str, details: dict[str, Any]) -> None:
        self._ended |= what == "end"
        if self.config.tensorboard and what in ("start", "resume", "rolled back"):
            self._begin_board(None if what == "start" else details["decisions"])
        if self._mirror and what in ("checkpoint", "end"):
            self._mirror.poke()
        if self._notifier and what in SAID:
            words, kind = SAID[what]
            told = ", ".join(f"{name} {value}" for name, value in details.items())
            self._notifier.say(f"{self.run.folder.name} {words}", f"{told}\n{self._progress()}".strip(), kind)

    def _read(self, metrics: dict[str, Any]) -> None:
        self._last = metrics
        self._draw(metrics)
        if self._notifier and self._due(metrics["decisions"]):
            self._told_at, self._told_decisions = time.monotonic(), metrics["decisions"]
            self._notifier.say(f"{self.run.folder.name} trains", self._progress())

    def _begin_board(self, decisions: int | None) -> None:
        """decisions: after which a run goes on. TensorBoard must forget what it has of later ones."""
        self._end_board()
        with self._board_trouble():
            folder = str(self.run.folder / TENSORBOARD)
            self._board = _board_writer()(folder, purge_step=None if decisions is None else decisions + 1)

    def _draw(self, metrics: dict[str, Any]) -> None:
        if self._board is None:
            return
        with self._board_trouble():
            for name, value in metrics.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(name, value, metrics["decisions"])

    def _end_board(self) -> None:
        board, self._board = self._board, None
        if board is not None:
            with self._board_trouble():
                board.close()

    @contextmanager
    def _board_trouble(self) -> Iterator[None]:
        """A full disk costs TensorBoard's files, not the training."""
        try:
            yield
        except OSError as error:
            self._board = None
            self.run.event("tensorboard failed", reason=reason(error))

    def _due(self, decisions: int) -> bool:
        minutes, count = self.config.notify_minutes, self.config.notify_decisions
        by_time = minutes and time.monotonic() - self._told_at >= 60 * minutes
        return bool(by_time or (count and decisions - self._told_decisions >= count))

    def _progress(self) -> str:
        """The figures that people want to see on their phone."""
        if not self._last:
            return ""
        figures = [f"{self._last['decisions']:,} of {self.config.decisions:,} decisions"]
        figures.append(f"{self._last['speed/now']:,.0f}/s")
        figures += [
            f"{name.partition('/')[2]} {value:.3g}"
            for name, value in self._last.items()
            if name.startswith("game/")
        ]
        return ", ".join(figures)


def _notifier(run: Run, config: Config) -> Any:
    from ludus.store.notify import Notifier, addresses

    found = addresses(config.notify, os.environ)
    on_error = lambda text: run.event("not notified", reason=text)  # noqa: E731
    return Notifier(found, on_error=on_error) if found else None


def _mirror(run: Run, config: Config, new: bool) -> Any:
    from ludus.store import bucket, mirror

    url = bucket.address(config.mirror, os.environ)
    if url is None:
        return None
    if not config.mirror:  # a bucket that all runs share
        url = f"{url.rstrip('/')}/{run.folder.name}"
    if new and (why := mirror.misfit(url, run.folder)):
        raise Usage(f"can't mirror to {url}: {why}; choose another, or go on with it by `ludus resume {url}`")
    found = mirror.Mirror(url, run.folder, on_event=lambda text: run.event("mirror", reason=text))
    if why := found.refusal(ANSWER_S):
        found.close(0)
        raise Usage(f"can't mirror to {url}: {why}")
    return found


def _board_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise extras.missing("--tensorboard", "tensorboard") from None
    return SummaryWriter
