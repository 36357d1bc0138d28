"""The policy of a plain network without torch: a few matrix products, and sampling in compiled code.

For the small batches of a worker this is several times as fast as torch, and the worker never imports it.
Gives the same numbers as `net.py`, which a test compares.
"""

from typing import cast

import numpy as np

from ludus.core.afterstates import PARTS, Afterstates, described
from ludus.core.jit import njit
from ludus.core.spec import Spec
from ludus.nets import NetConfig
from ludus.nets.afterstate_sums import add_relu, score_sums
from ludus.nets.readers import NumbersReader, PartsReader, Reader, Shapes


def make_reader(spec: Spec, config: NetConfig) -> Reader:
    return PartsReader(spec, config) if len(spec.parts) > 1 else NumbersReader(spec)


def shapes(spec: Spec, config: NetConfig) -> Shapes:
    """Names and shapes of a plain network's weights, as `Net.state_dict()` orders them."""
    reader = make_reader(spec, config)
    numbers = (reader.numbers,)
    found: Shapes = [("obs_mean", numbers), ("obs_std", numbers), ("value_mean", ()), ("value_std", ())]
    found += reader.shapes
    for body in ("policy_body",) if config.shared else ("policy_body", "value_body"):
        width = reader.width
        for place, hidden in enumerate(config.hidden):
            found += [
                (f"{body}.{2 * place}.weight", (hidden, width)),
                (f"{body}.{2 * place}.bias", (hidden,)),
            ]
            width = hidden
    if config.head == "afterstates":
        found += head_shapes(spec, config, width)
    else:
        found += [("policy.weight", (spec.actions, width)), ("policy.bias", (spec.actions,))]
    return [*found, ("value.weight", (1, width)), ("value.bias", (1,))]


def head_shapes(spec: Spec, config: NetConfig, width: int) -> Shapes:
    assert spec.afterstates is not None
    parts, features, inner = PARTS, spec.afterstates.features, config.afterstate
    outer = inner // 2
    return [
        ("policy.first", (parts, features, inner)), ("policy.second", (parts, inner, outer)),
        ("policy.score", (outer,)), ("policy.trunk.weight", (parts * inner + outer, width)),
        ("policy.trunk.bias", (parts * inner + outer,)),
    ]  # fmt: skip


class PlainPolicy:
    """Chooses actions by a plain network whose weights are given as one flat vector."""

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        self.spec, self.config = spec, config
        self._shapes, self._reader = shapes(spec, config), make_reader(spec, config)
        self._afterstates = cast(Afterstates, spec.afterstates)  # if its head scores them

    def blank(self) -> dict[str, np.ndarray]:
        """Arrays of the names and shapes that `load_named` needs."""
        return {name: np.zeros(shape, np.float32) for name, shape in self._shapes}

    def load(self, vector: np.ndarray) -> None:
        named, at = {}, 0
        for name, shape in self._shapes:
            size = int(np.prod(shape, dtype=int))
            named[name] = vector[at : at + size].reshape(shape)
            at += size
        self.load_named(named)

    def load_named(self, named: dict[str, np.ndarray]) -> None:
        has_head = self.config.head == "afterstates"
        self._policy = self._layers(named, "policy_body", "policy.trunk" if has_head else "policy")
        if has_head:
            self._head = [named[f"policy.{name}"].copy() for name in ("first", "second", "score")]
        self._value = self._layers(named, "policy_body" if self.config.shared else "value_body", "value")
        self._reader.load(named)
        self._value_mean, self._value_std = named["value_mean"].copy(), named["value_std"].copy()

    def _layers(
        self, named: dict[str, np.ndarray], body: str, head: str
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Transposed and contiguous: a product with a transposed view is four times slower."""
        names = [*(f"{body}.{2 * place}" for place in range(len(self.config.hidden))), head]
        return [(named[f"{name}.weight"].T.copy(), named[f"{name}.bias"].copy()) for name in names]

    def _body(self, x: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """All layers but the head."""
        for weight, bias in layers[:-1]:
            x = x @ weight
            x += bias
            np.tanh(x, out=x) if self.config.activation == "tanh" else np.maximum(x, 0, out=x)
        return x

    def _logits(self, obs: np.ndarray, body: np.ndarray) -> np.ndarray:
        weight, bias = self._policy[-1]
        found = body @ weight + bias
        return found if self.config.head == "actions" else self._scored(obs, found)

    def _scored(self, obs: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """As `AfterstateHead` does."""
        first, second, score = self._head
        features, places, parts = described(self._afterstates, obs)
        seen, embedded = (np.empty((len(features), width), np.float32) for width in second.shape[1:])
        for k, part in enumerate(parts):
            np.matmul(features[part], first[k], out=seen[part])
        add_relu(seen, beside, places)
        for k, part in enumerate(parts):
            np.matmul(seen[part], second[k], out=embedded[part])
        logits = np.zeros((len(obs), self.spec.actions), np.float32)
        score_sums(embedded, beside, score, places, self._afterstates.combine, logits)
        return logits

    def _points(self, body: np.ndarray) -> np.ndarray:
        weight, bias = self._value[-1]
        return (body @ weight + bias)[:, 0] * self._value_std + self._value_mean

    def logits(self, obs: np.ndarray) -> np.ndarray:
        """float32 [N, A], before masking. obs: [N, *obs_shape], or records [N]"""
        return self._logits(obs, self._body(self._reader.read(obs), self._policy))

    def value(self, obs: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
        """Points that the seat to move expects, float32 [N]."""
        return self._points(self._body(self._reader.read(obs), self._value))

    def look(self, obs: np.ndarray, memory: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, None]:
        x = self._reader.read(obs)
        body = self._body(x, self._policy)
        return (
            self._logits(obs, body),
            self._points(body if self.config.shared else self._body(x, self._value)),
            None,
        )

    def draw(
        self, logits: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        return drawn(logits, legal, rng, temperature)

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float = 1.0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, None]:  # fmt: skip
        """An action and the log of its probability for each row: int32 [N], float32 [N]; and no memory."""
        return *drawn(self.logits(obs), legal, rng, temperature), None


def drawn(
    logits: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """Actions from the softmax over legal ones, and their log-probabilities: int32 [N], float32 [N]."""
    actions, logp = np.empty(len(logits), np.int32), np.empty(len(logits), np.float32)
    sample(logits, legal, rng.random(len(logits), np.float32), np.float32(1 / temperature), actions, logp)
    return actions, logp


@njit(fastmath=True)
def sample(logits, legal, uniform, sharpness, actions, logp):
    """Draw from the softmax over legal actions. logits: [N, A]; uniform: [N] in [0, 1)"""
    n, count = logits.shape
    open_actions, weight = np.empty(count, np.int32), np.empty(count, np.float32)
    for i in range(n):
        top, choices = np.float32(-1e30), 0
        for a in range(count):
            if legal[i, a]:
                open_actions[choices] = a
                choices += 1
                top = max(top, logits[i, a])
        total = np.float32(0)
        for k in range(choices):
            weight[k] = np.exp((logits[i, open_actions[k]] - top) * sharpness)
            total += weight[k]
        target, reached, chosen = uniform[i] * total, np.float32(0), -1
        for k in range(choices):
            if weight[k] > 0:
                reached += weight[k]
                chosen = k
                if reached > target:
                    break
        actions[i] = open_actions[chosen]
        logp[i] = np.log(weight[chosen] / total)
