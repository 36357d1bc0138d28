"""Networks: observation and mask in, choice and value out. `NetConfig` needs no torch; `net.py` does."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ludus.core.errors import Usage
from ludus.core.ranges import Range
from ludus.core.spec import Spec

SMALLEST_IMAGE = 20
"""What the filters need in height and width."""


@dataclass(frozen=True)
class NetConfig:
    hidden: tuple[Annotated[int, Range(1, 65536)], ...] = (256, 256)
    """Widths of the layers between observation (or convolutions) and heads."""
    trunk: Literal["auto", "mlp", "conv"] = "auto"
    """How observations are read; auto takes convolutions for images of 24x24 and more."""
    activation: Literal["relu", "tanh"] = "relu"
    """What bends between layers; relu is the faster."""
    shared: bool = True
    """Choice and value share their layers; False gives the value its own."""
    memory: Annotated[int, Range(0, 65536)] = 0
    """Width of an LSTM after the layers, for games whose observation doesn't tell all; 0 for none."""
    channels: Annotated[int, Range(1, 4096)] = 64
    """Planes between the layers of a residual network (alphazero)."""
    blocks: Annotated[int, Range(0, 1000)] = 4
    """Residual blocks of two convolutions each (alphazero)."""

    def reads_images(self, spec: Spec) -> bool:
        if self.trunk == "auto":
            return len(spec.obs_shape) == 3 and min(image_shape(spec.obs_shape)[1:]) >= 24
        return self.trunk == "conv"

    def refuse(self, spec: Spec) -> None:
        """A network that can't read this game's observations."""
        if self.trunk != "conv":
            return
        shape = spec.obs_shape
        if len(shape) != 3 or min(image_shape(shape)[1:]) < SMALLEST_IMAGE:
            size = f"images of {SMALLEST_IMAGE}x{SMALLEST_IMAGE} and more"
            raise Usage(
                f"net.trunk conv reads {size}, but {spec.game} shows {shape}: take --net.trunk auto or mlp"
            )

    def is_plain(self, spec: Spec) -> bool:
        """Whether a worker can compute choices with a few matrix products, without torch."""
        return not self.reads_images(spec) and spec.actions > 0 and not self.memory


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels first. Gymnasium's images have their few channels last, planes of games have them first."""
    return (shape[2], shape[0], shape[1]) if shape[2] < shape[0] else (shape[0], shape[1], shape[2])


class Memory:
    """What a recurrent policy remembers for each seat of each row: LSTM state, side by side with its cell."""

    def __init__(self, config: NetConfig, rows: int, seats: int) -> None:
        self.state = np.zeros((rows, seats, 2 * config.memory), np.float32)
        self.fresh = np.ones((rows, seats), bool)  # nothing happened yet in this game

    def forget(self, rows: np.ndarray) -> None:
        """A new game begins in these rows."""
        self.state[rows], self.fresh[rows] = 0, True

    def at(self, rows: np.ndarray, seat: np.ndarray) -> np.ndarray:
        """float32 [len(rows), 2 * width]"""
        return self.state[rows, seat]

    def put(self, rows: np.ndarray, seat: np.ndarray, state: np.ndarray) -> None:
        self.state[rows, seat], self.fresh[rows, seat] = state, False

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"state": self.state.copy(), "fresh": self.fresh.copy()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        self.state[...], self.fresh[...] = snapshot["state"], snapshot["fresh"]
