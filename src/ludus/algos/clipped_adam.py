"""Adam (Kingma & Ba 2015) with a clipped gradient, compiled. A test compares it with torch's."""

import math

import numpy as np

from ludus.core.jit import FAST_WITH_NAN, njit


@njit(fastmath=FAST_WITH_NAN)
def clipped_adam(vector, gradient, mean, square, step, rate, beta1, beta2, eps, max_norm):
    """One step; the gradient norm before clipping. All arrays: float32 [N]"""
    total = np.float32(0)
    for i in range(len(gradient)):
        total += gradient[i] * gradient[i]
    norm = math.sqrt(total)
    scale = np.float32(min(1.0, max_norm / (norm + 1e-6)))
    keep1, keep2 = np.float32(beta1), np.float32(beta2)
    new1, new2 = np.float32(1 - beta1), np.float32(1 - beta2)
    rate = np.float32(rate / (1 - beta1**step))
    unbias, least = np.float32(1 / math.sqrt(1 - beta2**step)), np.float32(eps)
    for i in range(len(gradient)):
        g = gradient[i] * scale
        mean[i] = keep1 * mean[i] + new1 * g
        square[i] = keep2 * square[i] + new2 * g * g
        vector[i] -= rate * mean[i] / (np.sqrt(square[i]) * unbias + least)
    return norm
