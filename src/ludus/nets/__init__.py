"""Networks: observation and mask in, choice and value out. `NetConfig` needs no torch; `net.py` does."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from ludus.core.errors import Usage
from ludus.core.ranges import Range
from ludus.core.spec import Spec, image_shape

SMALLEST_IMAGE = 20
"""What the filters need in height and width."""


@dataclass(frozen=True)
class NetConfig:
    hidden: tuple[Annotated[int, Range(1, 65536)], ...] = (256, 256)
    """Widths of the hidden layers between what reads the observation and the heads."""
    trunk: Literal["auto", "mlp", "conv"] = "auto"
    """How an observation of one part is read. auto: images by convolutions, all else as numbers."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation function; relu is the faster."""
    shared: bool = True
    """Policy and value share their layers; False gives the value its own."""
    head: Literal["actions", "afterstates"] = "actions"
    """What the policy scores. actions: numbers of actions. afterstates: what actions lead to, in games that
    describe it (OFC: the three rows), which learns several times as fast from a decision."""
    afterstate: Annotated[int, Range(2, 4096)] = 64
    """Width of the first layer that scores afterstates; the second has half of it."""
    memory: Annotated[int, Range(0, 65536)] = 0
    """Width of an LSTM after the layers, for games whose observation doesn't tell all; 0 for none."""
    embedding: Annotated[int, Range(1, 1024)] = 16
    """Width of the embedding of each id of a token."""
    token: Annotated[int, Range(1, 4096)] = 64
    """Width of a token, from the embeddings of its ids and its numbers."""
    attention: Annotated[int, Range(0, 32)] = 0
    """Layers of self-attention between tokens; 0 reads each token alone."""
    channels: Annotated[int, Range(1, 4096)] = 64
    """Channels of a residual network on a board."""
    blocks: Annotated[int, Range(0, 1000)] = 4
    """Residual blocks of two convolutions each."""

    def reads_images(self, spec: Spec) -> bool:
        """Whether the only part is read by convolutions."""
        if len(spec.parts) > 1:
            return False
        return self.trunk == "conv" or (self.trunk == "auto" and spec.parts[0].kind == "image")

    def refuse(self, spec: Spec) -> None:
        """A network that can't read this game's observations."""
        if self.trunk != "auto" and len(spec.parts) > 1:
            raise Usage(f"net.trunk is for observations of one part; {spec.game} has several: leave it out")
        if self.head == "afterstates" and spec.afterstates is None:
            raise Usage(f"{spec.game} doesn't describe afterstates: leave out --net.head")
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
        kinds = {part.kind for part in spec.parts}
        if len(spec.parts) == 1:
            able = not self.reads_images(spec) and "tokens" not in kinds
        else:
            able = "image" not in kinds and not self.attention
        return able and spec.actions > 0 and not self.memory


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


def make_policy(spec: Spec, config: NetConfig, in_torch: bool = False) -> Any:
    """What computes a network's choices on a CPU; without torch where that is possible.

    in_torch: in any case, whose threads can be limited in this process
    """
    if config.is_plain(spec) and not in_torch:
        from ludus.nets.plain import PlainPolicy

        return PlainPolicy(spec, config)
    from ludus.nets.policy import TorchPolicy

    return TorchPolicy(spec, config)
