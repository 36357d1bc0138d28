"""Console games as a browser shows them (web.js draws it): live, by a person or an agent, and recorded."""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from ludus.core.film import Chooser
from ludus.core.table import Table
from ludus.core.view import Json
from ludus.games.retro.child import ChildTable
from ludus.games.retro.pixels import png
from ludus.games.retro.recording import FPS, Frame, replay
from ludus.games.retro.table import RetroTable, watched

MOST_PICTURES = 20.0
"""A second."""
REPLAY_FRAMES = 4
"""Of a recording, from one picture to the next."""
ROW = np.zeros(1, np.int64)


class LiveGame:
    """One game. A decision lasts `frame_skip` frames, for a person too."""

    def __init__(
        self, table: RetroTable | ChildTable, make_player: Callable[[Table], Chooser] | None, seed: int
    ) -> None:
        """table: of one row. make_player: None for a person"""
        self.table, self.turn = table, table.reset(seed)
        self.player = make_player(table) if make_player else None
        decision_s = table.options.frame_skip / FPS
        self.decisions = math.ceil(1 / MOST_PICTURES / decision_s)
        """From one picture to the next."""
        self.picture_s = self.decisions * decision_s
        self.combinations = [frozenset(filter(None, text.split("+"))) for text in table.buttons]
        """What each action presses."""
        used = frozenset().union(*self.combinations)
        self.buttons: Sequence[str] = [name for name in table.integration.buttons if name in used]
        self.watched = watched(table.integration)
        self._facts: Json = {}
        self._screen = table.screen(0)  # uint8 [H, W, 3]

    def advance(self, held: Sequence[str]) -> bool:
        for _ in range(self.decisions):
            chosen = self.player.choose(ROW, self.turn) if self.player else self.pressed(held)
            self.turn = self.table.step(chosen)
            if self.turn.finished is not None:  # the table has begun another game: the last picture stays
                stats = dict(zip(self.table.spec.stats, self.turn.finished.stats[0, 0].tolist(), strict=True))
                self._facts = {name: int(stats[name]) for name in self.watched}
                return False
        self._facts = dict(zip(self.watched, self.table.read(0, *self.watched), strict=True))
        self._screen = self.table.screen(0)
        return True

    def pressed(self, held: Sequence[str]) -> np.ndarray:
        """The action that presses most of these buttons and no other, int32 [1]."""
        wanted = frozenset(held)
        fits = [len(wanted & each) - len(self.buttons) * len(each - wanted) for each in self.combinations]
        return np.array([fits.index(max(fits))], np.int32)

    def picture(self) -> bytes:
        return png(self._screen)

    def facts(self) -> Json:
        return self._facts

    def close(self) -> None:
        self.table.close()


class Replay:
    """A recording, at the console's own speed."""

    picture_s = REPLAY_FRAMES / FPS
    buttons: Sequence[str] = ()

    def __init__(self, file: Path) -> None:
        self.frames = replay(file)
        self._facts: Json = {}
        self._screen = self._next()[-1].screen  # uint8 [H, W, 3]

    def advance(self, held: Sequence[str]) -> bool:
        found = self._next()
        if found:
            self._screen = found[-1].screen
        return len(found) == REPLAY_FRAMES

    def _next(self) -> list[Frame]:
        """The next frames; fewer at the end."""
        found = list(islice(self.frames, REPLAY_FRAMES))
        if found and not (emulator := found[-1].emulator).closed:
            names = watched(emulator.integration)
            self._facts = dict(zip(names, emulator.read(names), strict=True))
        return found

    def picture(self) -> bytes:
        return png(self._screen)

    def facts(self) -> Json:
        return self._facts

    def close(self) -> None:
        self.frames.close()
