"""PPO's loss and its gradient in one pass over the decisions, compiled: what a CPU does instead of autograd.

With a few dozen legal actions among hundreds, the sixty small operations that torch takes for a minibatch
cost as much as its matrix products. A test compares both.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ludus.core.jit import njit


class Loss(NamedTuple):
    """The loss of a minibatch, with the coefficients of one update."""

    clip_range: float
    value_coef: float
    value_std: float
    entropy_weight: float
    teacher_weight: float | None
    """None without a teacher."""

    def __call__(
        self, mini: dict[str, Tensor], logits: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What an update reports, and the gradients with respect to logits [B, A] and values [B].

        mini: columns of the minibatch, with `share`, the weight of each decision
        """
        grad_logits, grad_value, told = torch.empty_like(logits), torch.empty_like(value), np.zeros(6)
        has_teacher = self.teacher_weight is not None
        teacher = mini["teacher"].numpy() if has_teacher else np.zeros(0, np.int32)
        fused_loss(
            logits.numpy(), value.numpy(), mini["legal"].numpy(), mini["action"].numpy(),
            mini["logp"].numpy(), mini["adv"].numpy(), mini["target"].numpy(), mini["share"].numpy(),
            np.float32(self.clip_range), np.float32(self.value_coef), np.float32(self.value_std),
            np.float32(self.entropy_weight), teacher, np.float32(self.teacher_weight or 0),
            grad_logits.numpy(), grad_value.numpy(), told,
        )  # fmt: skip
        return torch.from_numpy(told).float(), grad_logits, grad_value


@njit(fastmath=True)
def fused_loss(
    logits, value, legal, action, old_logp, adv, target, share, clip, value_coef, value_std, entropy_weight,
    teacher, teacher_coef, grad_logits, grad_value, told,
):  # fmt: skip
    """Writes the loss's gradients, grad_logits [B, A] and grad_value [B], and told [6] as `_update` tells.

    logits: [B, A] before masking. share: [B], the weight of each decision. teacher: [B], or [0] without one
    """
    told[:] = 0
    count = logits.shape[1]
    choices, p = np.empty(count, np.int32), np.empty(count, np.float32)
    for i in range(len(logits)):
        n, top, total = 0, np.float32(-1e30), np.float32(0)
        for a in range(count):
            grad_logits[i, a] = 0
            if legal[i, a]:
                choices[n] = a
                n += 1
                top = max(top, logits[i, a])
        for k in range(n):
            p[k] = np.exp(logits[i, choices[k]] - top)
            total += p[k]
        log_total = np.log(total)
        entropy, logp = np.float32(0), np.float32(0)
        for k in range(n):
            p[k] /= total
            log_p = logits[i, choices[k]] - top - log_total
            entropy -= p[k] * log_p
            if choices[k] == action[i]:
                logp = log_p
        log_ratio = logp - old_logp[i]
        ratio = np.exp(log_ratio)
        far = ratio > 1 + clip if adv[i] > 0 else ratio < 1 - clip
        limit = (1 + clip if adv[i] > 0 else 1 - clip) if far else ratio
        slope = np.float32(0) if far else -ratio * adv[i]  # of the policy's loss with log p(action)
        use_teacher = teacher_coef if len(teacher) else np.float32(0)
        for k in range(n):
            log_p = logits[i, choices[k]] - top - log_total
            g = (use_teacher - slope) * p[k] + entropy_weight * p[k] * (log_p + entropy)
            if choices[k] == action[i]:
                g += slope
            if use_teacher and choices[k] == teacher[i]:
                g -= use_teacher
            grad_logits[i, choices[k]] = g * share[i]
        error = (value[i] - target[i]) / value_std
        grad_value[i] = value_coef * error * share[i] / value_std
        told[0] -= limit * adv[i] * share[i]
        told[1] += error * error * share[i] / 2
        told[2] += entropy * share[i]
        told[3] += (ratio - 1 - log_ratio) * share[i]
        told[4] += share[i] if abs(ratio - 1) > clip else 0.0
