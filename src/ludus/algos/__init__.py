"""Algorithms: what one must offer, and how it is found. Each is a folder here, or a module of your own.

The module has `algorithm`, an object of a subclass of `Algorithm`. Training, evaluation, play and export know
these contracts only. Nothing here needs torch, so that settings and workers can do without it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from ludus.core.block import Block, Column
from ludus.core.errors import Usage
from ludus.core.game import Game, Player
from ludus.core.report import Report
from ludus.core.rules import Bot, Rules
from ludus.core.spec import Spec
from ludus.core.table import Finished, Table, Turn
from ludus.nets import NetConfig, make_policy

if TYPE_CHECKING:
    import torch

    from ludus.config import Config

Weights = dict[str, np.ndarray]
"""A network's, by name."""
Phase = Callable[[str], AbstractContextManager[None]]
"""Told of what learning consists of, for a profile."""


@dataclass(frozen=True)
class Plan:
    """Everything an actor needs to know, plain enough to be sent to another process."""

    game: str
    switches: dict[str, Any]
    algo: str
    settings: Any
    """Of the algorithm."""
    net: NetConfig
    rows: int
    steps: int
    opponents: str = "self"
    seed: int = 0
    workers: int = 1
    temperature_spread: float = 0.0
    """The first worker plays at a temperature of 1 - spread, the last at 1 + spread."""


class Policy(Protocol):
    """A network that chooses, on a CPU."""

    def blank(self) -> Mapping[str, Any]:
        """Arrays of the names and shapes that `load_named` needs."""
        ...

    def load(self, vector: np.ndarray) -> None:
        """All weights as one float32 vector, in the order of the network's state dictionary."""
        ...

    def load_named(self, named: Weights) -> None: ...

    def logits(self, obs: np.ndarray) -> np.ndarray:
        """float32 [N, A], before masking; of vectors, their means."""
        ...

    def value(self, obs: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
        """What the seat to move expects, float32 [N]."""
        ...

    def look(
        self, obs: np.ndarray, memory: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Logits, values, and the memory afterwards."""
        ...

    def draw(
        self, logits: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sampled actions and the logarithms of their probabilities [N]."""
        ...

    def act(
        self, obs: np.ndarray, legal: np.ndarray, rng: np.random.Generator, temperature: float = 1.0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:  # fmt: skip
        """Sampled actions, the logarithms of their probabilities [N], and the memory afterwards."""
        ...


class Seating(Protocol):
    """A table whose other seats are taken: every turn that it gives is the learning policy's."""

    finished: list[Finished]
    """Games that ended in the last step."""
    lineup: np.ndarray
    """Who sits where in each game, int8 [rows, seats]; 0 is the learning policy."""

    def player(self, name: str, rng: np.ndarray) -> Player:
        """Somebody to ask at this table: a bot, or the champion of the game. rng: uint64 [rows, 2]"""
        ...

    def start(self, turn: Turn) -> Turn:
        """Seat everybody, after `table.reset`."""
        ...

    def step(self, actions: np.ndarray, report: Report) -> Turn: ...

    def snapshot(self) -> dict[str, Any]: ...

    def restore(self, snapshot: dict[str, Any]) -> None: ...


class Opponent(Protocol):
    """A past self at a table."""

    def load(self, vector: np.ndarray) -> None: ...

    def choose(self, rows: np.ndarray, turn: Turn, rng: np.random.Generator) -> np.ndarray:
        """Actions for some rows."""
        ...

    def forget(self, rows: np.ndarray) -> None:
        """New games begin in these rows."""
        ...

    def snapshot(self) -> dict[str, Any]: ...

    def restore(self, snapshot: dict[str, Any]) -> None: ...


class Actor(Protocol):
    """The half that plays: fills one block at a time with decisions at a table."""

    beat: np.ndarray
    """int64 [3]: counted up as a sign of life; decisions of the block that is being filled; milliseconds of
    the slowest step so far."""
    cancelled: Callable[[], bool]
    """Asked at every step; when it says so, `fill` raises `Cancelled`."""

    def load(self, vector: np.ndarray, progress: float) -> None:
        """New weights. progress: share of the training that is done"""
        ...

    def fill(self, block: Block) -> Report: ...

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next block depends on beside the weights; empty if the games can't be kept."""
        ...

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot; from an empty one, with new games."""
        ...


class Learner(Protocol):
    """The half that learns: turns blocks into better weights."""

    spec: Spec
    phase: Phase
    cancelled: Callable[[], bool]
    """Asked between updates; when it says so, `learn` returns early."""
    progress: float
    """Share of the training that is done, set before `learn`."""
    rate_scale: float
    """Factor of the learning rate, smaller after a training was rolled back."""

    @property
    def net(self) -> "torch.nn.Module": ...

    def learn(self, blocks: list[Block], off_policy: bool) -> dict[str, float]:
        """One update from finished blocks; metrics. off_policy: another policy than the newest played them"""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next update depends on beside the weights; it is copied before it is saved."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class StartsTrained(Protocol):
    """A learner that knows more of what its network has seen than the weights tell."""

    def start_trained(self) -> None:
        """The network has just been given trained weights, and nothing else."""
        ...


class Central(Protocol):
    """Actors beside the learner, with one network on its device; each has a thread."""

    together: bool
    """Whether the learner learns from one block of every actor at a time; else from whatever is finished."""

    def opponent(self, table: Table, slot: int) -> Opponent: ...

    def add(self, index: int, table: Table, seating: Seating) -> tuple[Actor, list[Block]]:
        """One more actor, and the blocks that it fills by turns."""
        ...

    def publish(self, slot: int) -> None:
        """The actors play with what the learner has learned when they next fill this block of theirs."""
        ...


class Algorithm:
    """How to play, how to learn, and how weights become an agent. `config` is that of the whole training."""

    settings_type: ClassVar[type]
    """Settings, a frozen dataclass; its name in files and flags is the algorithm's."""
    searches: ClassVar[bool] = False
    """Whether its actors and agents search: a move takes long, and blocks hold finished games."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Settings by the names they had in older runs."""
    preload: ClassVar[tuple[str, ...]] = ()
    """Modules that all workers need, to be imported before they are forked."""

    # ---- what can be trained

    def refuse(self, config: "Config", game: Game) -> None:
        """Raise `Usage` for what can't be trained so; before anything starts."""
        config.net.refuse(game.spec)

    def bots(self, settings: Any) -> set[str]:
        """Bots of the game that play along."""
        return set()

    def columns(self, config: "Config", spec: Spec) -> list[Column]:
        """What a block holds of each decision."""
        raise NotImplementedError

    # ---- playing and learning

    def make_learner(self, config: "Config", game: Game, device: str) -> Learner:
        raise NotImplementedError

    def make_actor(
        self, plan: Plan, index: int, game: Game, table: Table, seating: Seating, beat: np.ndarray
    ) -> Actor:
        raise NotImplementedError

    def make_opponent(self, plan: Plan, table: Table) -> Opponent:
        """A past self at a table, if `opponents` has them."""
        from ludus.algos.opponent import PolicyOpponent

        return PolicyOpponent(self.make_policy(table.spec, plan.net), plan.net, table)

    def make_central(self, plan: Plan, game: Game, net: Any, columns: list[Column], overlap: bool) -> Central:
        """overlap: actors play on while the learner learns, so each has two blocks"""
        raise Usage(f"{plan.algo} plays in its workers: take --inference local")

    # ---- agents

    def make_policy(self, spec: Spec, net: NetConfig, in_torch: bool = False) -> Policy:
        """in_torch: computed by torch, whose threads can be limited in this process"""
        return make_policy(spec, net, in_torch)

    def make_bot(self, rules: Rules, config: "Config", policy: Policy, think: str, source: str) -> Bot:
        """The agent with this policy at native games. think: how far it looks ahead. source: for errors"""
        from ludus.algos.agent import policy_bot

        return policy_bot(rules, config.net, policy, think, source)

    def make_module(self, spec: Spec, net: NetConfig) -> "torch.nn.Module":
        """The network for use elsewhere: `forward(obs, legal)` gives logits and values."""
        from ludus.nets.net import Net

        return Net(spec, net)

    # ---- how it uses a machine

    def can_be_central(self, config: "Config") -> bool:
        """Whether inference can run beside the learner on a GPU."""
        return False

    def needs_torch(self, config: "Config", spec: Spec) -> bool:
        """Whether each worker imports torch."""
        return not config.net.is_plain(spec)

    def kept_bytes(self, config: "Config", spec: Spec) -> dict[str, int]:
        """Memory that the learner keeps beside network and blocks, by the setting that says how much."""
        return {}

    def beats_per_decision(self, config: "Config") -> float:
        """How often an actor counts `beat[0]` up for a decision."""
        return 1 / config.rows


def names() -> list[str]:
    """Of the algorithms that come with Ludus."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def find(name: str) -> Algorithm:
    """By its folder's name here, or by its import path."""
    if name in names():
        return importlib.import_module(f"{__name__}.{name}").algorithm
    from ludus.games.adapters.load import imported

    module = imported(name)
    if module is None:
        raise Usage(f"unknown algorithm {name!r}: choose from {', '.join(names())}, or a module of your own")
    if not isinstance(getattr(module, "algorithm", None), Algorithm):
        raise Usage(f"{name!r} is a module without `algorithm`, an object of ludus.algos.Algorithm")
    return module.algorithm


def group_of(name: str) -> str:
    """The name of an algorithm's settings in files and flags: `reinforce` of `examples.reinforce`."""
    return name.rpartition(".")[2]


def imports_code(name: str) -> bool:
    """Whether finding this algorithm imports a module that its name chooses."""
    return name not in names()
