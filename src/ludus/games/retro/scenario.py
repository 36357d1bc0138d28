"""A game's rewards and ends, computed from a few of its variables.

stable-retro's own GameData copies the console's whole memory at every frame to compare two variables, which
takes a third of a frame or more. This reads the variables alone and gives the same numbers (a test compares).
Scenarios that run Lua are left to GameData.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ludus.core.errors import Failure

Test = Callable[[int, int], int]

OPERATIONS: dict[str, Test] = {
    "": lambda value, reference: value,
    "equal": operator.eq,
    "negative-equal": lambda value, reference: value == -reference,
    "not-equal": operator.ne,
    "less-than": operator.lt,
    "greater-than": operator.gt,
    "less-or-equal": operator.le,
    "greater-or-equal": operator.ge,
    "nonzero": lambda value, reference: value != 0,
    "zero": lambda value, reference: value == 0,
    "negative": lambda value, reference: value < 0,
    "positive": lambda value, reference: value > 0,
    "sign": lambda value, reference: (value > 0) - (value < 0),
}


class Term(NamedTuple):
    """One variable, measured."""

    place: int  # in the list of values; -1 for time, which goes up by 1 a frame
    delta: bool
    test: Test
    reference: int
    reward: float
    penalty: float

    def measure(self, now: Sequence[int], before: Sequence[int]) -> int:
        if self.place < 0:
            return int(self.test(1, self.reference))
        value = now[self.place] - before[self.place] if self.delta else now[self.place]
        return int(self.test(value, self.reference))


class Node(NamedTuple):
    """A condition for the end, of variables and of other conditions."""

    terms: list[Term]
    nodes: list["Node"]
    all_of: bool

    def holds(self, now: Sequence[int], before: Sequence[int]) -> bool:
        measured = (term.measure(now, before) > 0 for term in self.terms)
        below = (node.holds(now, before) for node in self.nodes)
        if self.all_of:
            return all(measured) and all(below)
        return any(measured) or any(below)


class Scenario:
    """variables: what must be read at every frame, in this order."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.variables: list[str] = []
        reward = manifest.get("reward") or (manifest.get("rewards") or [{}])[0]
        self._rewards = [self._term(name, spec, True) for name, spec in reward.get("variables", {}).items()]
        if "time" in reward:
            self._rewards.append(self._term("", reward["time"], True))
        self._done = self._node(manifest.get("done", {}))

    def reward(self, now: Sequence[int], before: Sequence[int]) -> float:
        total = 0.0
        for term in self._rewards:
            measured = term.measure(now, before)
            total += measured * (term.penalty if measured < 0 else term.reward)
        return total

    def done(self, now: Sequence[int], before: Sequence[int]) -> bool:
        return self._done.holds(now, before)

    def _node(self, spec: dict[str, Any]) -> Node:
        terms = [self._term(name, inner, False) for name, inner in spec.get("variables", {}).items()]
        nodes = [self._node(inner) for inner in spec.get("nodes", {}).values()]
        return Node(terms, nodes, spec.get("condition") == "all")

    def _term(self, name: str, spec: dict[str, Any], delta: bool) -> Term:
        if name and name not in self.variables:
            self.variables.append(name)
        operation = spec.get("op", "")
        if operation not in OPERATIONS:
            raise Failure(f"the scenario's operation {operation!r} is unknown")
        measurement = spec.get("measurement", "delta" if delta else "absolute")
        return Term(
            self.variables.index(name) if name else -1, measurement == "delta", OPERATIONS[operation],
            spec.get("reference", 0), spec.get("reward", 0.0), spec.get("penalty", 0.0),
        )  # fmt: skip
