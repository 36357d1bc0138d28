"""The policy of any network in torch: for images, tokens, memories and continuous actions."""

import numpy as np
import torch

from ludus.core.spec import Spec
from ludus.nets import NetConfig
from ludus.nets.net import Net, unflatten
from ludus.nets.parts import as_tensor
from ludus.nets.plain import drawn


class TorchPolicy:
    """Same face as `PlainPolicy`."""

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        self.spec = spec
        with torch.random.fork_rng(devices=[]):  # the learner draws from the global stream
            self.net = Net(spec, config)

    def blank(self) -> dict[str, torch.Tensor]:
        """Tensors of the names and shapes that `load_named` needs."""
        return self.net.state_dict()

    def load(self, vector: np.ndarray) -> None:
        unflatten(self.net, vector)

    def load_named(self, named: dict[str, np.ndarray]) -> None:
        self.net.load_state_dict({name: torch.from_numpy(array) for name, array in named.items()})

    @torch.no_grad()
    def look(
        self, obs: np.ndarray, memory: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Logits before masking [N, A], value [N], and the memory after this decision."""
        before = None if memory is None else torch.from_numpy(memory)
        logits, value, after = self.net.look(as_tensor(obs), before)
        return logits.numpy(), value.numpy(), None if after is None else after.numpy()

    def logits(self, obs: np.ndarray) -> np.ndarray:
        """float32 [N, A], before masking."""
        return self.look(obs)[0]

    def value(self, obs: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
        return self.look(obs, memory)[1]

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float = 1.0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:  # fmt: skip
        """An action and the log of its probability for each row, and the memory after them."""
        logits, _, after = self.look(obs, memory)
        return *self.draw(logits, legal, rng, temperature), after

    def draw(
        self, logits: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.spec.box is not None:
            return self._draw_in_box(logits, rng, temperature)
        return drawn(logits, legal, rng, temperature)

    def _draw_in_box(
        self, mean: np.ndarray, rng: np.random.Generator, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """A normal distribution around the network's choice. mean: [N, D]"""
        assert self.net.log_std is not None and self.spec.box is not None
        std = self.net.log_std.detach().exp().numpy() * temperature
        noise = rng.standard_normal(mean.shape, np.float32)
        logp = (-0.5 * noise**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(1)
        return (mean + std * noise).reshape(-1, *self.spec.box[0].shape), logp.astype(np.float32)
