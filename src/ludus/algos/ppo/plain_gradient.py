"""The gradient of PPO's loss for a plain network on a CPU: parts of a minibatch, computed side by side.

How a minibatch is divided does not depend on how many threads there are, so a run that goes on with more or
fewer of them rounds as before.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from ludus.algos.ppo.fused_loss import Loss
from ludus.algos.ppo.plain_passes import PlainPasses
from ludus.nets.net import Net

PART, MOST = 384, 16
"""Decisions of a part, at least, and parts. With fewer decisions threads wait for Python's lock."""


class PlainGradient:
    def __init__(self, net: Net, gradient: Tensor, threads: ThreadPoolExecutor) -> None:
        """gradient: of all parameters, where to write it. threads: with one torch thread each"""
        self._net, self._gradient, self._threads = net, gradient, threads
        self._others = gradient.new_empty(0, len(gradient))  # of each part but the first
        self._passes = [self._passes_into(gradient)]

    def __call__(self, data: dict[str, Tensor], pick: Tensor, loss: Loss) -> Tensor:
        """What an update reports. pick: decisions of the minibatch"""
        parts = pick.tensor_split(max(1, min(MOST, len(pick) // PART)))
        known = data["known"].index_select(0, pick).sum().clamp_min(1)
        if len(parts) == 1:
            return _part_gradient(self._passes[0], data, pick, known, loss)
        self._make_room(len(parts))
        tasks = min(len(parts), torch.get_num_threads())

        def some(task: int) -> list[Tensor]:
            numbers = range(task, len(parts), tasks)
            return [_part_gradient(self._passes[n], data, parts[n], known, loss) for n in numbers]

        told = list(self._threads.map(some, range(tasks)))
        self._gradient += self._others[: len(parts) - 1].sum(0)
        return torch.stack([told[n % tasks][n // tasks] for n in range(len(parts))]).sum(0)

    def _make_room(self, parts: int) -> None:
        if parts > len(self._passes):
            self._others = self._gradient.new_empty(parts - 1, len(self._gradient))
            self._passes[1:] = [self._passes_into(gradient) for gradient in self._others]

    def _passes_into(self, gradient: Tensor) -> PlainPasses:
        parameters = list(self._net.parameters())
        views = gradient.split([parameter.numel() for parameter in parameters])
        pairs = zip(parameters, views, strict=True)
        return PlainPasses(self._net, {parameter: view.view_as(parameter) for parameter, view in pairs})


def _part_gradient(
    passes: PlainPasses, data: dict[str, Tensor], pick: Tensor, known: Tensor, loss: Loss
) -> Tensor:
    mini = {name: column.index_select(0, pick) for name, column in data.items()}
    mini["share"] = mini["known"] / known
    told, *gradients = loss(mini, *passes.forward(mini["obs"]))
    passes.backward(*gradients)
    return told


def one_torch_thread() -> None:
    """For a thread of ours."""
    torch.get_num_threads()  # else torch sets it to all threads when it is asked for the first time
    torch.set_num_threads(1)
