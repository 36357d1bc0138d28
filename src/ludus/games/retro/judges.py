"""What each emulated frame pays and whether it ends the game, for the slots of one emulator."""

from typing import Protocol

import numpy as np

from ludus.games.retro.emulator import Emulator
from ludus.games.retro.scenario import Scenario


class Judge(Protocol):
    values: np.ndarray
    """int64 [slots, V]: what the next frame is compared with."""

    def begin(self, slot: int) -> None:
        """The emulator has just loaded this slot's game."""
        ...

    def frame(self, slot: int) -> tuple[float, bool]:
        """Reward of the frame that was just emulated, and whether the game is over."""
        ...


class MemoryJudge:
    def __init__(self, emulator: Emulator, slots: int) -> None:
        self._emulator = emulator
        self._scenario = Scenario(emulator.integration.scenario)
        self.values = np.zeros((slots, len(self._scenario.variables)), np.int64)

    def begin(self, slot: int) -> None:
        self.values[slot] = self._emulator.read(self._scenario.variables)

    def frame(self, slot: int) -> tuple[float, bool]:
        before: list[int] = self.values[slot].tolist()
        now = self._emulator.read(self._scenario.variables)
        self.values[slot] = now
        return self._scenario.reward(now, before), self._scenario.done(now, before)


class LuaJudge:
    """For the few integrations that compute rewards in Lua, which knows one game per process."""

    def __init__(self, emulator: Emulator) -> None:
        self._data = emulator.data
        self.values = np.zeros((1, 0), np.int64)

    def begin(self, slot: int) -> None:
        self._data.reset()
        self._data.update_ram()

    def frame(self, slot: int) -> tuple[float, bool]:
        self._data.update_ram()
        return self._data.current_reward(), self._data.is_done()


def make_judge(emulator: Emulator, slots: int) -> Judge:
    return LuaJudge(emulator) if emulator.integration.scripted else MemoryJudge(emulator, slots)
