"""How a network without torch reads observations: one part of numbers, or several parts, tokens among them.

Each gives the same numbers as `net.py` does before its layers, which a test compares.
"""

from typing import NamedTuple, Protocol

import numpy as np

from ludus.core.spec import Spec
from ludus.nets import NetConfig

Shapes = list[tuple[str, tuple[int, ...]]]
"""Names and shapes of weights, as `Net.state_dict()` orders them."""
Named = dict[str, np.ndarray]


class Reader(Protocol):
    numbers: int
    """Plain numbers in an observation."""
    width: int
    """What the layers are given."""
    shapes: Shapes
    """Weights of its own."""

    def load(self, named: Named) -> None: ...

    def read(self, obs: np.ndarray) -> np.ndarray:
        """float32 [N, width]"""
        ...


class Normaliser:
    """Numbers by their running mean and spread, if any of them is to be normalised."""

    def __init__(self, spec: Spec) -> None:
        self.needed = any(part.normalised for part in spec.parts)

    def load(self, named: Named) -> None:
        self._mean, self._std = named["obs_mean"].copy(), named["obs_std"].copy()

    def apply(self, x: np.ndarray) -> np.ndarray:
        """x: float32 [N, numbers], which may be changed"""
        if self.needed:
            x -= self._mean
            x /= self._std
            np.maximum(x, -10, out=x)
            np.minimum(x, 10, out=x)
        return x


class NumbersReader:
    """One part, all of it numbers."""

    def __init__(self, spec: Spec) -> None:
        self.shapes: Shapes = []
        self.numbers = self.width = int(np.prod(spec.obs_shape))
        self._normaliser = Normaliser(spec)

    def load(self, named: Named) -> None:
        self._normaliser.load(named)

    def read(self, obs: np.ndarray) -> np.ndarray:
        """obs: [N, *obs_shape]"""
        return self._normaliser.apply(obs.reshape(len(obs), -1).astype(np.float32))


class Tokens(NamedTuple):
    """A part of tokens: T things with K ids each, and numbers of their own."""

    name: str
    things: int
    vocabulary: tuple[int, ...]
    starts: np.ndarray
    """int64 [K]: where each column's embeddings begin in the table of all."""
    owned: list[slice]
    """Of the numbers that belong to the tokens, among all numbers."""
    place: slice
    """In what the layers are given."""

    @property
    def prefix(self) -> str:
        return f"parts.readers.{self.name}"


class PartsReader:
    """Records of tokens and numbers."""

    def __init__(self, spec: Spec, config: NetConfig) -> None:
        self.config, self._normaliser = config, Normaliser(spec)
        self.numbers = self.width = 0
        self.shapes: Shapes = []
        self._places: dict[str, slice] = {}  # of each part's numbers among all numbers
        for part in spec.parts:
            if part.kind != "tokens":
                self._places[part.name] = slice(self.numbers, self.numbers + part.size)
                self.numbers += part.size
        self._tokens: list[Tokens] = []
        self._alone: list[tuple[slice, slice]] = []  # numbers that go to the layers as they are, and where to
        for part in spec.parts:
            if part.of:
                continue
            start, size = self.width, part.size
            if part.kind == "tokens":
                owned = [self._places[other.name] for other in spec.parts if other.of == part.name]
                size = part.shape[0] * config.token
                starts = np.cumsum([0, *part.vocabulary[:-1]])
                place = slice(start, start + size)
                self._add(Tokens(part.name, part.shape[0], part.vocabulary, starts, owned, place))
            else:
                self._alone.append((self._places[part.name], slice(start, start + size)))
            self.width += size

    def _add(self, tokens: Tokens) -> None:
        self._tokens.append(tokens)
        width, token, given = self.config.embedding, self.config.token, self._given(tokens)
        for k, size in enumerate(tokens.vocabulary):
            self.shapes.append((f"{tokens.prefix}.embeddings.{k}.weight", (size, width)))
        self.shapes += [
            (f"{tokens.prefix}.layer.weight", (token, given)),
            (f"{tokens.prefix}.layer.bias", (token,)),
        ]

    def _given(self, tokens: Tokens) -> int:
        """What the layer of one token is given."""
        owned = sum(place.stop - place.start for place in tokens.owned) // tokens.things
        return len(tokens.vocabulary) * self.config.embedding + owned

    def load(self, named: Named) -> None:
        self._normaliser.load(named)
        self._tables: Named = {}
        self._layers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for tokens in self._tokens:
            name = tokens.prefix
            tables = [named[f"{name}.embeddings.{k}.weight"] for k in range(len(tokens.vocabulary))]
            self._tables[tokens.name] = np.concatenate(tables)  # so that all ids are looked up at once
            weight, bias = named[f"{name}.layer.weight"], named[f"{name}.layer.bias"]
            self._layers[tokens.name] = weight.T.copy(), bias.copy()

    def read(self, obs: np.ndarray) -> np.ndarray:
        """obs: records [N]"""
        n = len(obs)
        numbers = np.empty((n, self.numbers), np.float32)
        for name, place in self._places.items():
            numbers[:, place] = obs[name].reshape(n, -1)
        self._normaliser.apply(numbers)
        out = np.empty((n, self.width), np.float32)
        for mine, place in self._alone:
            out[:, place] = numbers[:, mine]
        for tokens in self._tokens:
            out[:, tokens.place] = self._mixed(tokens, obs[tokens.name], numbers)
        return out

    def _mixed(self, tokens: Tokens, ids: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """ids: int [N, T, K]; numbers: [N, numbers] -> [N, T * token]"""
        n, rows = len(ids), len(ids) * tokens.things
        embedded = self._tables[tokens.name].take(ids + tokens.starts, 0).reshape(rows, -1)
        owned = [numbers[:, place].reshape(rows, -1) for place in tokens.owned]
        weight, bias = self._layers[tokens.name]
        mixed = np.concatenate([embedded, *owned], 1) @ weight
        mixed += bias
        return np.maximum(mixed, 0, out=mixed).reshape(n, -1)
