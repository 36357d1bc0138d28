"""Forward and backward pass of a plain network (an MLP and its heads) on a CPU without autograd, with
compiled activations.

With autograd and torch's tanh, learning in networks of 256-256 took 1.2 times as long.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ludus.algos.ppo.activations import activate, activation_gradient
from ludus.nets.afterstates import AfterstateHead, scores, scores_gradients
from ludus.nets.net import Net
from ludus.nets.products import product


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
        return not (net.images or net.parts or net.cell or net.log_std is not None)

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
        self._head: PolicyHead
        if isinstance(net.policy, AfterstateHead):
            self._head = AfterstatePasses(net.policy, layers(net.policy.trunk)[0], gradients)
        else:
            self._head = LinearPasses(*layers(net.policy))
        (self._value,) = layers(net.value)

    @torch.no_grad()
    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """As `Net.raw`."""
        x = self.net.prepare(obs)
        self._policy_outs = self._outputs(self._policy_body, x)
        self._value_outs = self._outputs(self._value_body, x) if self._value_body else self._policy_outs
        value = _linear(self._value, self._value_outs[-1]).squeeze(1)
        logits = self._head.forward(obs, self._policy_outs[-1])
        return logits, value * self.net.value_std + self.net.value_mean

    @torch.no_grad()
    def backward(self, grad_logits: Tensor, grad_value: Tensor) -> None:
        """From the loss's gradients with respect to logits [B, A] and values [B]."""
        grad_policy = self._head.backward(grad_logits)
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


class PolicyHead(Protocol):
    def forward(self, obs: Tensor, body: Tensor) -> Tensor:
        """Logits [B, A]. body: what the layers made of the observations, [B, width]"""
        ...

    def backward(self, gradient: Tensor) -> Tensor:
        """The gradient with respect to `body`; writes those of the parameters. gradient: of the logits"""
        ...


class LinearPasses:
    """A head with an output for each action."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def forward(self, obs: Tensor, body: Tensor) -> Tensor:
        self._body = body
        return _linear(self._layer, body)

    def backward(self, gradient: Tensor) -> Tensor:
        return _linear_gradient(self._layer, self._body, gradient)


class AfterstatePasses:
    """A head that scores afterstates."""

    def __init__(self, head: AfterstateHead, trunk: Layer, gradients: Mapping[Tensor, Tensor]) -> None:
        parameters = head.first, head.second, head.score
        self._afterstates, self._trunk = head.afterstates, trunk
        self._weights = [parameter.detach() for parameter in parameters]
        self._gradients = [gradients[parameter] for parameter in parameters]

    def forward(self, obs: Tensor, body: Tensor) -> Tensor:
        self._body = body
        logits, self._scored = scores(_linear(self._trunk, body), self._weights, obs, self._afterstates)
        return logits

    def backward(self, gradient: Tensor) -> Tensor:
        by_beside = scores_gradients(gradient, self._scored, self._weights, self._gradients)
        return _linear_gradient(self._trunk, self._body, by_beside)


def _linear(layer: Layer, x: Tensor) -> Tensor:
    return product(x, layer.weight.t()).add_(torch.from_numpy(layer.bias))


def _linear_gradient(layer: Layer, x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient with respect to x; writes those of the layer's parameters."""
    product(gradient.t(), x, out=layer.weight_gradient)
    torch.sum(gradient, 0, out=torch.from_numpy(layer.bias_gradient))
    return product(gradient, layer.weight)
