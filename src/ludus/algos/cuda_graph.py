"""What learners share: parameters as one vector, copies of their state, and updates recorded for a GPU."""

import sys
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

Made = TypeVar("Made")
Called = TypeVar("Called", bound=Callable)


def joined(parameters: list[torch.nn.Parameter]) -> torch.nn.Parameter:
    """All parameters as one long vector with a gradient, of which they become views.

    Its norm and its step of Adam are one operation each, not one for every layer.
    """
    flat = torch.nn.Parameter(torch.cat([parameter.detach().reshape(-1) for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    at = 0
    for parameter in parameters:
        parameter.data = flat.data[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
    return flat


def set_precision(device: torch.device) -> None:
    """TF32 on a GPU, which made PPO 1.4 to 2.3 times as fast; a CPU keeps all of float32."""
    torch.set_float32_matmul_precision("high" if device.type == "cuda" else "highest")


def device_settings(rate: float, device: torch.device) -> dict[str, Any]:
    """What Adam must be told on a device. A recorded update reads the rate from where it was at recording,
    so there it is a tensor on the GPU."""
    on_gpu = device.type == "cuda"
    return {"lr": torch.tensor(rate, device=device) if on_gpu else rate, "fused": True, "capturable": on_gpu}


def load_optimiser(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Moments and counts of steps from a checkpoint of any device; all settings stay as they are here.

    torch's own loading would bring the settings of the checkpoint's device, and the rate as a tensor on the
    CPU, which a fused optimiser takes for a number: a recorded update then keeps it for ever.
    """
    groups = optimiser.state_dict()["param_groups"]
    if [group["params"] for group in groups] != [group["params"] for group in state["param_groups"]]:
        raise ValueError("the optimiser has other parameters than the checkpoint's")
    optimiser.load_state_dict({"state": state["state"], "param_groups": groups})


def rate_of(optimiser: torch.optim.Optimizer) -> float:
    """The learning rate that the next step uses."""
    return float(optimiser.param_groups[0]["lr"])


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def copied(tree: Any) -> Any:
    """The same with arrays and tensors of its own, on the CPU: training can go on while it is written."""
    if isinstance(tree, Tensor):
        return tree.detach().to("cpu", copy=True)
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {name: copied(branch) for name, branch in tree.items()}
    return [copied(branch) for branch in tree] if isinstance(tree, list | tuple) else tree


FUSED: dict[str, Any] = {"emulate_precision_casts": True}
"""Round to bf16 where torch does. Without it the gradient of a maximum looks for one that was not rounded,
finds none, and divides by 0."""


def fused(function: Called, *example: Any, any_batch: bool = False) -> Called:
    """The function with its kernels fused by torch.compile, tried on an example; itself where that fails.
    any_batch: it will see batches of other sizes too

    That needs Triton and a C compiler. A residual network of 96 x 6 played and learned 1.7
    times as fast on an H200 (measured without `FUSED`).
    """
    # What the compiler would like to tell torch's authors.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\._inductor")
    try:
        if any_batch:
            for tensor in example:
                torch._dynamo.mark_dynamic(tensor, 0)
        made = torch.compile(function, dynamic=None if any_batch else False, options=FUSED)
        made(*example)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        print(
            f"ludus: the network is not compiled for the GPU ({type(error).__name__}: {reason})",
            file=sys.stderr,
        )
        return function
    return cast(Called, made)


class CudaGraph(Generic[Made]):
    """A function recorded as a CUDA graph: launching its kernels one by one costs more than running them."""

    def __init__(self, function: Callable[[], Made], warm_up: Callable[[], object] | None = None) -> None:
        """function: of tensors that stay where they are. warm_up: runs the same kernels; default: itself"""
        side = torch.cuda.Stream(priority=torch.cuda.current_stream().priority)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                (warm_up or function)()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=side, capture_error_mode="thread_local"):
            self.made = function()

    def replay(self) -> Made:
        self.graph.replay()
        return self.made


def recorded_updates(
    net: torch.nn.Module, optimiser: torch.optim.Optimizer, update: Callable[[int], Tensor], count: int
) -> CudaGraph[Tensor]:
    """So many steps of the optimiser as one graph, which gives the sum of what they tell.

    update: one of them, by number
    """
    kept = copied((net.state_dict(), optimiser.state_dict()))
    graph = CudaGraph(
        lambda: torch.stack([update(number) for number in range(count)]).sum(0), lambda: update(0)
    )
    net.load_state_dict(kept[0])  # the warm-up's steps are taken back
    _restore_in_place(optimiser, kept[1])
    return graph


def _restore_in_place(optimiser: torch.optim.Optimizer, kept: dict) -> None:
    """Back to a kept state without new tensors: the recording holds the addresses of the old ones."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    for number, parameter in enumerate(parameters):
        for name, tensor in optimiser.state[parameter].items():
            before = kept["state"].get(number, {}).get(name)
            tensor.copy_(before) if before is not None else tensor.zero_()
