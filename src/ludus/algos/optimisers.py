"""Torch's optimisers without torch.compile, which they import when they are made: a second of every start."""

import inspect

import torch
from torch.optim import Optimizer


class _Uncompiled(Optimizer):
    """Methods as they were before torch wrapped them to keep its compiler out: nothing here compiles them."""

    state_dict = inspect.unwrap(Optimizer.state_dict)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)
    add_param_group = inspect.unwrap(Optimizer.add_param_group)


class Adam(_Uncompiled, torch.optim.Adam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class AdamW(_Uncompiled, torch.optim.AdamW):
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
