"""A policy that scores what actions lead to.

Each part of an afterstate is read by two layers of its kind, with what the trunk makes of the whole
observation; an action's parts are added up and scored: `score . relu(sum of parts + trunk)`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ludus.core.afterstates import PARTS, Afterstates, Described, described
from ludus.core.spec import Spec
from ludus.nets.afterstate_sums import add_relu, relu_gradients, score_gradients, score_sums
from ludus.nets.parts import orthogonal
from ludus.nets.products import EVEN_ROWS, product

PIECES = 64
"""Of the products of all options on a GPU."""


class AfterstateHead(nn.Module):
    combine: Tensor

    def __init__(self, spec: Spec, width: int, inner: int) -> None:
        """width: of the trunk; inner: of the first layer here"""
        super().__init__()
        assert spec.afterstates is not None
        self.afterstates: Afterstates = spec.afterstates
        parts, features, outer = PARTS, self.afterstates.features, inner // 2
        self.widths = [*[inner] * parts, outer]
        self.trunk = orthogonal(nn.Linear(width, sum(self.widths)), 1.0)
        self.first = nn.Parameter(_orthogonal(parts, features, inner))
        self.second = nn.Parameter(_orthogonal(parts, inner, outer))
        self.score = nn.Parameter(torch.randn(outer) * 0.01)  # near-uniform play at the start
        self.register_buffer("combine", torch.from_numpy(spec.afterstates.combine).long(), persistent=False)
        for number, array in enumerate(spec.afterstates.constants):
            self.register_buffer(f"constant_{number}", torch.from_numpy(array), persistent=False)

    def forward(self, obs: Tensor, body: Tensor, many: int | None = None) -> Tensor:
        """Logits [B, A]; those of actions that aren't legal say nothing. body: of the trunk, [B, width]

        many: decisions after the first so many have few options. Default: anyone may have many
        """
        beside = self.trunk(body)
        if obs.is_cuda or torch.compiler.is_compiling():
            return self.score_all(obs, beside, obs.shape[0] if many is None else many)
        return CompiledScores.apply(beside, self.first, self.second, self.score, obs, self.afterstates)

    def score_all(self, obs: Tensor, beside: Tensor, many: int) -> Tensor:
        """On any device, of options whether they are there or not: shapes never change. beside: of the trunk
        for each part, then for their sum, [B, sum of widths]"""
        kind, actions = self.afterstates, len(self.combine)
        found = [self._scored(obs[:many], beside[:many], kind.options, slice(actions))]
        if many < obs.shape[0]:
            few, part = self._scored(obs[many:], beside[many:], kind.few, kind.few_actions), kind.few_actions
            found.append(pad(few, (part.start, actions - part.stop)))
        return torch.cat(found)

    def _scored(self, obs: Tensor, beside: Tensor, options: int, actions: slice) -> Tensor:
        """Of the first options, what some actions make of them."""
        *by_part, last = beside.split(self.widths, 1)
        constants = [getattr(self, f"constant_{number}") for number in range(len(self.afterstates.constants))]
        features = self.afterstates.describe_tensor(obs, constants, options)  # [K, B, M, F]
        first = pad(self.first, (0, 0, 0, features.shape[3] - self.first.shape[1]))
        seen = torch.relu(_products(features, first) + torch.stack(by_part).unsqueeze(2))
        embedded = _products(seen, self.second)
        total = last.unsqueeze(1)  # [B, A, D]
        for k in range(PARTS):
            total = total + embedded[k].index_select(1, self.combine[actions, k])
        return torch.relu(total) @ self.score


def _products(x: Tensor, weights: Tensor) -> Tensor:
    """Of each part with its weights: [K, B, M, inputs], [K, inputs, outputs] -> [K, B, M, outputs].

    In pieces, since the gradient of weights is a product over all rows, of which a GPU would compute each of
    its few numbers in one place.
    """
    parts, rows = len(x), x.shape[1] * x.shape[2]
    pieces = 1 if torch.compiler.is_exporting() else math.gcd(rows, PIECES)
    found = x.reshape(parts, pieces, rows // pieces, x.shape[3]) @ weights.unsqueeze(1)
    return found.reshape(*x.shape[:3], weights.shape[2])


class CompiledScores(torch.autograd.Function):
    """On a CPU: only of options that are there."""

    @staticmethod
    def forward(
        ctx: Any, beside: Tensor, first: Tensor, second: Tensor, score: Tensor, obs: Tensor,
        afterstates: Afterstates,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(first, second, score)
        logits, ctx.scored = scores(beside, (first, second, score), obs, afterstates)
        return logits

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weights = ctx.saved_tensors
        found = [torch.empty_like(weight) for weight in weights]
        by_beside = scores_gradients(gradients[0].contiguous(), ctx.scored, weights, found)
        return by_beside, *found, None, None


class Scored(NamedTuple):
    """A forward pass, as its gradients need it. P options are there."""

    beside: Tensor
    options: Described
    seen: Tensor  # [P, H]
    embedded: Tensor  # [P, D]
    combine: np.ndarray


def scores(
    beside: Tensor, weights: Sequence[Tensor], obs: Tensor, afterstates: Afterstates
) -> tuple[Tensor, Scored]:
    """Logits [B, A]. weights: `first`, `second` and `score`"""
    first, second, score = weights
    options = described(afterstates, obs.numpy(), EVEN_ROWS)
    features = torch.from_numpy(options.features)
    seen, embedded = (torch.empty(len(features), width) for width in second.shape[1:])
    logits = torch.zeros(len(obs), len(afterstates.combine))
    for k, part in enumerate(options.parts):
        product(features[part], first[k], out=seen[part])
    add_relu(seen.numpy(), *_arrays(beside), options.places)
    for k, part in enumerate(options.parts):
        product(seen[part], second[k], out=embedded[part])
    score_sums(*_arrays(embedded, beside, score), options.places, afterstates.combine, logits.numpy())
    return logits, Scored(beside, options, seen, embedded, afterstates.combine)


def scores_gradients(
    by_logits: Tensor, scored: Scored, weights: Sequence[Tensor], out: Sequence[Tensor]
) -> Tensor:
    """The gradient with respect to `beside`; writes those of the weights. by_logits: [B, A]"""
    beside, options, seen, embedded, combine = scored
    _, second, score = weights
    by_first, by_second, by_score = out
    by_beside, by_embedded = torch.zeros_like(beside), torch.zeros_like(embedded)
    by_seen, features = torch.empty_like(seen), torch.from_numpy(options.features)
    by_score.zero_()
    score_gradients(
        *_arrays(embedded, beside, score), options.places, combine,
        *_arrays(by_logits, by_embedded, by_beside, by_score),
    )  # fmt: skip
    for k, part in enumerate(options.parts):
        product(seen[part].t(), by_embedded[part], out=by_second[k])
        product(by_embedded[part], second[k].t(), out=by_seen[part])
    relu_gradients(by_seen.numpy(), seen.numpy(), options.places, by_beside.numpy())
    for k, part in enumerate(options.parts):
        product(features[part].t(), by_seen[part], out=by_first[k])
    return by_beside


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().numpy() for tensor in tensors]


def _orthogonal(parts: int, inputs: int, outputs: int) -> Tensor:
    layers = [orthogonal(nn.Linear(inputs, outputs), math.sqrt(2)).weight.detach().T for _ in range(parts)]
    return torch.stack(layers).contiguous()
