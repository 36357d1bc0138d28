"""Forward and backward pass of a plain network (an MLP) on a CPU without autograd, with compiled
activations.

With autograd and torch's tanh, learning in networks of 256-256 took 1.2 times as long.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ludus.algos.ppo.activations import activate, activation_gradient
from ludus.algos.ppo.products import product
from ludus.nets.net import Net


class Layer(NamedTuple):
    """A linear layer. The arrays are views of the network's parameters and of their gradients."""

    weight: Tensor
    bias: np.ndarray
    weight_gradient: Tensor
    bias_gradient: np.ndarray


class PlainPasses:
    """`forward`, then `backward`, which writes the gradients of all parameters."""

    @staticmethod
    def possible(net: Net) -> bool:
        return isinstance(net.policy, nn.Linear) and not (
            net.images or net.parts or net.cell or net.log_std is not None
        )

    def __init__(self, net: Net, gradients: Mapping[Tensor, Tensor]) -> None:
        """gradients: of each parameter, where to write it"""

        def layers(*modules: nn.Module) -> list[Layer]:
            return [
                Layer(
                    module.weight.detach(), module.bias.detach().numpy(),
                    gradients[module.weight], gradients[module.bias].numpy(),
                )
                for module in modules if isinstance(module, nn.Linear)
            ]  # fmt: skip

        self.net, self._is_tanh = net, net.config.activation == "tanh"
        self._policy_body = layers(*net.policy_body)
        self._value_body = layers(*net.value_body) if net.value_body is not None else None
        self._policy, self._value = layers(net.policy, net.value)

    @torch.no_grad()
    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """As `Net.raw`."""
        x = self.net.prepare(obs)
        self._policy_outs = self._outputs(self._policy_body, x)
        self._value_outs = self._outputs(self._value_body, x) if self._value_body else self._policy_outs
        value = _linear(self._value, self._value_outs[-1]).squeeze(1)
        return _linear(self._policy, self._policy_outs[-1]), value * self.net.value_std + self.net.value_mean

    @torch.no_grad()
    def backward(self, grad_logits: Tensor, grad_value: Tensor) -> None:
        """From the loss's gradients with respect to logits [B, A] and values [B]."""
        grad_policy = _linear_gradient(self._policy, self._policy_outs[-1], grad_logits)
        grad_value = (grad_value * self.net.value_std).unsqueeze(1)
        grad_value = _linear_gradient(self._value, self._value_outs[-1], grad_value)
        if self._value_body:
            self._body_gradient(self._value_body, self._value_outs, grad_value)
        else:
            grad_policy += grad_value
        self._body_gradient(self._policy_body, self._policy_outs, grad_policy)

    def _outputs(self, layers: list[Layer], x: Tensor) -> list[Tensor]:
        """The input, then the output of each layer."""
        outs = [x]
        for layer in layers:
            outs.append(product(outs[-1], layer.weight.t()))
            activate(outs[-1].numpy(), layer.bias, self._is_tanh)
        return outs

    def _body_gradient(self, layers: list[Layer], outs: list[Tensor], gradient: Tensor) -> None:
        for number in reversed(range(len(layers))):
            layer = layers[number]
            activation_gradient(
                gradient.numpy(), outs[number + 1].numpy(), self._is_tanh, layer.bias_gradient
            )
            product(gradient.t(), outs[number], out=layer.weight_gradient)
            if number:
                gradient = product(gradient, layer.weight)


def _linear(layer: Layer, x: Tensor) -> Tensor:
    return product(x, layer.weight.t()).add_(torch.from_numpy(layer.bias))


def _linear_gradient(layer: Layer, x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient with respect to x; writes those of the layer's parameters."""
    product(gradient.t(), x, out=layer.weight_gradient)
    torch.sum(gradient, 0, out=torch.from_numpy(layer.bias_gradient))
    return product(gradient, layer.weight)
