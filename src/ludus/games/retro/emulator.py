"""One emulator, which is all that a process can have. Swapping states gives any number of games."""

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ludus.core.errors import Failure
from ludus.games.retro.catalog import Integration, library

_open: "weakref.ref[Emulator] | None" = None


def is_free() -> bool:
    """Whether this process can open an emulator."""
    gc.collect()  # one that nobody uses any more may still be waiting to be collected
    emulator = _open() if _open else None
    return emulator is None or emulator.closed


class Emulator:
    def __init__(self, integration: Integration) -> None:
        global _open
        if not is_free():
            raise Failure("this process has an emulator already, and can't have two")
        retro = library()
        self.integration = integration
        try:
            self._core = retro.RetroEmulator(str(integration.rom))
        except RuntimeError as error:
            raise Failure(f"{integration.game}: the emulator can't open {integration.rom}: {error}") from None
        self.closed = False
        _open = weakref.ref(self)
        self._core.step()  # without a frame there is no screen and no memory yet
        self.data = self.new_data(str(integration.scenario_file))
        self.nothing = np.zeros(len(integration.buttons), np.uint8)
        self.frame, self.save, self.press = self._core.step, self._core.get_state, self._core.set_button_mask
        self._crop = self._find_crop()
        self.power_on = self.save()
        """The state after the first frame."""

    def new_data(self, scenario_file: str) -> Any:
        """The library's own view of the console's memory."""
        data = library().data.GameData()
        self._core.configure_data(data)
        if not data.load(str(self.integration.data_file), scenario_file):
            self.close()
            raise Failure(f"{self.integration.game}: its data.json or {scenario_file} is corrupt")
        return data

    def load(self, state: bytes, name: str = "") -> None:
        """Go on from a save state. name: what to call it if it does not fit"""
        if not self._core.set_state(state):
            which = f"state {name!r}" if name else "a save state"
            raise Failure(f"{self.integration.game}: {which} is corrupt or of another emulator version")

    def hold(self, mask: np.ndarray, frames: int) -> None:
        """Play frames with the same buttons. mask: uint8 [buttons]"""
        self.press(mask)
        for _ in range(frames):
            self.frame()

    def read(self, variables: Sequence[str]) -> list[int]:
        look = self.data.lookup_value
        return [look(name) for name in variables]

    def memory(self) -> np.ndarray:
        """A copy of the console's memory, block after block as addresses go. uint8 [M]"""
        blocks = self.data.memory.blocks
        return np.concatenate([np.frombuffer(blocks[address], np.uint8) for address in sorted(blocks)])

    def screen(self) -> np.ndarray:
        """uint8 [H, W, 3]"""
        return self._core.get_screen()[self._crop]

    def new_movie(self, file: str, state: bytes) -> Any:
        """A recording of the library's own kind, from a state on."""
        movie = library().Movie(file, True, 1)
        movie.configure(self.integration.game, self._core)
        movie.set_state(state)
        return movie

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for name in ("frame", "save", "press", "_core"):
                self.__dict__.pop(name, None)  # the library frees its place when nobody refers to it

    def _find_crop(self) -> tuple[slice, slice]:
        x, y, width, height = self.data.crop_info(0)
        return slice(y, y + height if height else None), slice(x, x + width if width else None)
