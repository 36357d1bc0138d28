"""`advantages.advantages` on a GPU: all games of all blocks at once, step by step backwards."""

import torch
from torch import Tensor


def device_advantages(
    value: Tensor, rho: Tensor, seat: Tensor, reward: Tensor, ended: Tensor, bootstrap: Tensor, gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Advantages and whether they are known, both [G, T, N].

    value, rho: [G, T, N]; seat: int64 [G, T, N]; ended: bool [G, T, N]; reward, bootstrap: [G, T, N, seats]
    """
    out, known = torch.empty_like(value), torch.empty_like(ended)
    paid = torch.zeros_like(reward[:, 0])  # [G, N, seats]
    next_value, next_adv = torch.zeros_like(paid), torch.zeros_like(paid)
    has_next = torch.zeros_like(paid, dtype=torch.bool)
    for t in range(value.shape[1] - 1, -1, -1):
        over, mine = ended[:, t].unsqueeze(2), seat[:, t].unsqueeze(2)
        paid = paid.masked_fill(over, 0) + reward[:, t]
        next_adv = next_adv.masked_fill(over, 0)
        next_value = torch.where(over, bootstrap[:, t], next_value)
        has_next = torch.where(over, ~bootstrap[:, t].isnan(), has_next)
        here, known[:, t] = value[:, t], has_next.gather(2, mine).squeeze(2)
        delta = paid.gather(2, mine) + gamma * next_value.gather(2, mine) - here.unsqueeze(2)
        adv = (delta + gamma * lam * next_adv.gather(2, mine)).squeeze(2)
        out[:, t] = adv = torch.where(known[:, t], adv, 0)
        next_value = next_value.scatter(2, mine, here.unsqueeze(2))
        next_adv = next_adv.scatter(2, mine, (rho[:, t].clamp_max(1) * adv).unsqueeze(2))
        has_next = has_next.scatter(2, mine, True)
        paid = paid.scatter(2, mine, 0.0)
    return out, known
