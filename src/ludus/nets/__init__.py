"""Networks: observation and mask in, choice and value out. `NetConfig` needs no torch; `net.py` does."""

from dataclasses import dataclass
from typing import Literal

from ludus.core.spec import Spec


@dataclass(frozen=True)
class NetConfig:
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the layers between observation (or convolutions) and heads."""
    trunk: Literal["auto", "mlp", "conv"] = "auto"
    """How observations are read; auto takes convolutions for images of 24x24 and more."""
    activation: Literal["relu", "tanh"] = "relu"
    """What bends between layers; relu is the faster."""
    shared: bool = True
    """Choice and value share their layers; False gives the value its own."""

    def reads_images(self, spec: Spec) -> bool:
        if self.trunk == "auto":
            return len(spec.obs_shape) == 3 and min(image_shape(spec.obs_shape)[1:]) >= 24
        return self.trunk == "conv"

    def is_plain(self, spec: Spec) -> bool:
        """Whether a worker can compute choices with a few matrix products, without torch."""
        return not self.reads_images(spec) and spec.actions > 0


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels first. Gymnasium's images have their few channels last, planes of games have them first."""
    return (shape[2], shape[0], shape[1]) if shape[2] < shape[0] else (shape[0], shape[1], shape[2])
