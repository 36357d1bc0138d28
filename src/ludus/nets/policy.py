"""The policy of any network in torch, on one thread: for convolutions, memories and continuous actions."""

import numpy as np
import torch

from ludus.core.spec import Spec
from ludus.nets import NetConfig
from ludus.nets.net import Net, unflatten
from ludus.nets.plain import sample


class TorchPolicy:
    """Same face as `PlainPolicy`."""

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        torch.set_num_threads(1)  # a worker has one core
        self.spec, self.net = spec, Net(spec, config)

    def load(self, vector: np.ndarray) -> None:
        unflatten(self.net, vector)

    def load_named(self, named: dict[str, np.ndarray]) -> None:
        self.net.load_state_dict({name: torch.from_numpy(array) for name, array in named.items()})

    @torch.no_grad()
    def logits(self, obs: np.ndarray) -> np.ndarray:
        """float32 [N, A], before masking."""
        return self.net.policy(self.net.policy_body(self.net.prepare(torch.from_numpy(obs)))).numpy()

    @torch.no_grad()
    def value(self, obs: np.ndarray) -> np.ndarray:
        x = self.net.prepare(torch.from_numpy(obs))
        return self.net.value_of(x, self.net.policy_body(x)).numpy()

    def act(self, obs: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float = 1.0):
        """An action and the log of its probability for each row."""
        logits = self.logits(obs)
        if self.spec.box is not None:
            return self._act_in_box(logits, rng, temperature)
        actions, logp = np.empty(len(obs), np.int32), np.empty(len(obs), np.float32)
        sample(logits, legal, rng.random(len(obs), np.float32), np.float32(1 / temperature), actions, logp)
        return actions, logp

    def _act_in_box(self, mean: np.ndarray, rng: np.random.Generator, temperature: float):
        """A normal distribution around the network's choice. mean: [N, D]"""
        assert self.net.log_std is not None and self.spec.box is not None
        std = self.net.log_std.detach().exp().numpy() * temperature
        noise = rng.standard_normal(mean.shape, np.float32)
        logp = (-0.5 * noise**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(1)
        return (mean + std * noise).reshape(-1, *self.spec.box[0].shape), logp.astype(np.float32)
