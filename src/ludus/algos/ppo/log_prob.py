"""Log-probabilities of actions, discrete and continuous."""

import math

from torch import Tensor

from ludus.nets.net import Net

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def normal_log_prob(noise: Tensor, log_std: Tensor) -> Tensor:
    """Of vectors that are `noise` standard deviations off their mean, [B]. torch.distributions checks its
    arguments on the CPU, which a CUDA graph can't."""
    return (-0.5 * noise.square() - HALF_LOG_2PI - log_std).sum(1)


def log_prob(net: Net, logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each action and entropy of each choice, both [B]."""
    if net.log_std is not None:
        noise = (action.flatten(1) - logits) / net.log_std.exp()
        return normal_log_prob(noise, net.log_std), (0.5 + HALF_LOG_2PI + net.log_std).sum().expand(
            len(noise)
        )
    logs = logits.log_softmax(1)
    entropy = -(logs.exp() * logs).sum(1)
    return logs.gather(1, action.long().unsqueeze(1)).squeeze(1), entropy
