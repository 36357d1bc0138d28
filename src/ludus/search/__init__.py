"""Tree search over any Rules: many games in lock-step, and one evaluation for all of them at a time.

`Search` holds the trees (`tree.py`) and plays the rules; an `Evaluator` says what leaves are worth
(`evaluators.py`). It knows no network and no training. docs/search.md tells how it searches.
"""

import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from ludus.core.dice import next64
from ludus.core.ranges import Count, Finite, NotNegative, Positive, Whole
from ludus.core.rules import Rules, States, Streams
from ludus.search.evaluators import Evaluator, Utility, own_evaluator, win_share
from ludus.search.following import follow_games
from ludus.search.lookahead import as_numbers, picked, plies_within, prove
from ludus.search.selection import (
    TINY,
    Root,
    add_gumbel,
    descend,
    descend_apart,
    rank_edges,
    read_roots,
    step_down,
)
from ludus.search.tree import grow, list_marks, make_tree

DIRICHLET = 10.0
"""Concentration of noise, shared by the legal actions: 0.3 each for the 35 of chess (Silver et al. 2017)."""


@dataclass(frozen=True)
class SearchConfig:
    simulations: Count = 200
    """Leaves that are added for each move."""
    root: Literal["puct", "gumbel"] = "puct"
    """How the root shares out its simulations; Gumbel is the better one with few."""
    noise: NotNegative = 0.0
    """Root noise: share of Dirichlet noise in the priors (puct, e.g. 0.25), or scale of Gumbel noise (1)."""
    considered: Count = 16
    """Actions that a Gumbel root compares."""
    c_scale: NotNegative = 0.1
    """c_scale of a Gumbel root: weight of values beside priors; less trusts a young network less."""
    c_puct: NotNegative = 1.5
    """Exploration constant of PUCT."""
    first_play_reduction: Finite = 0.2
    """First-play urgency: how much worse than its parent an untried action is taken to be."""
    prior_temperature: Positive = 1.0
    """Softmax temperature of the priors: above 1, a network that is too sure of itself is doubted."""
    width: Count = 256
    """Actions kept at a node below the root: those with the best priors."""
    lookahead: Whole = 400
    """Positions below a leaf that may be tried by the rules alone, for what is decided there: in connect four
    400 are three plies, in tic-tac-toe two, in Blokus none. For games without chance."""
    endgame: Whole = 0
    """Positions below a leaf that a game's own solver may try, which knows what to leave out: connect
    four and Blokus Duo have one. In play 2,000: a network takes longer for one."""


@dataclass(frozen=True)
class Result:
    """What a search found, by row; of `actions`, `visits` and `policy` the first counts[i] mean something."""

    best: np.ndarray  # int32 [N]; -1 where the game is over
    value: np.ndarray  # float32 [N, S]: what the policy brings every seat
    counts: np.ndarray  # int32 [N]
    actions: np.ndarray  # int32 [N, R], in order
    visits: np.ndarray  # int32 [N, R]
    policy: np.ndarray  # float32 [N, R]: shares of visits, or the improved policy of a Gumbel root
    means: np.ndarray  # float32 [N, R]: what an action is worth to the seat to move, where it has visits
    proven: np.ndarray  # bool [N]: `best` and `value` are certain


@runtime_checkable
class Thinker(Protocol):
    """A bot that can say why it chooses as it does."""

    utility: Utility
    """What it plays for."""

    def think(self, states: States, rng: Streams) -> Result: ...

    def choose(self, states: States, rng: Streams) -> np.ndarray: ...


def halving(considered: int, simulations: int) -> list[int]:
    """Sequential halving: how often the action that comes next was tried before, for every simulation.

    All are tried equally often, then the better half of them, and so on, with equal shares of simulations.
    """
    phases, left, tried = max(1, int(np.ceil(np.log2(considered)))), considered, 0
    wanted: list[int] = []
    while len(wanted) < simulations:
        rounds = max(1, simulations // (phases * left))
        wanted += [tried + again for again in range(rounds) for _ in range(left)]
        left, tried = max(min(2, considered), left // 2), tried + rounds
    return wanted[:simulations]


def where(mask: np.ndarray) -> Any:
    """An index for the rows of a mask: for all of them a slice, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def list_legal(rules: Rules, states: States, actions: np.ndarray, counts: np.ndarray) -> None:
    """Legal actions as numbers, in order, as many as there is room for. actions: int32 [N, room]"""
    listed: Any = getattr(rules, "list_legal", None)  # of games that have more actions than moves
    if listed:
        listed(states, actions, counts)
        return np.minimum(counts, actions.shape[1], out=counts)
    legal = np.zeros((len(states), rules.spec.actions), bool)
    rules.legal(states, legal)
    list_marks(legal, actions, counts)


class Search:
    """The trees of up to `games` games. `start`, `follow` or `restart`, then `run`, for every move."""

    def __init__(
        self, rules: Rules, games: int, config: SearchConfig, evaluate: Evaluator | None = None,
        utility: Utility = win_share, reuse: bool = False, leaves: int = 1,
    ) -> None:  # fmt: skip
        """reuse: what was found may be kept from move to move, which takes twice the memory. leaves: of a
        single game, so many may be evaluated together"""
        self.rules, self.config, self.utility, self.reuse = rules, config, utility, reuse
        self.evaluate = evaluate or own_evaluator(rules, utility)
        spec, nodes = rules.spec, (2 if reuse else 1) * config.simulations + 1
        self.width = min(config.width, spec.actions)
        self.certain = not spec.hidden and not spec.chance  # what is found can be proven
        self.plies = plies_within(config.lookahead, spec.actions) if self.certain else 0
        self.endgame = config.endgame if self.certain else 0
        self.leaves = leaves if games == 1 and self.certain and config.root == "puct" else 1
        self.tree = make_tree(games, nodes, spec.actions, self.width, spec.seats)
        self.states = np.zeros((games, 1 if spec.hidden else nodes), spec.state)
        self._positions = as_numbers(self.states)
        self.count = 0
        room = max(games, self.leaves)
        self._actions, self._counts = np.zeros((room, spec.actions), np.int32), np.zeros(room, np.int32)
        self._logits = np.zeros((room, spec.actions), np.float32)

    def start(self, states: States) -> None:
        """Search from these positions, with no memory of others."""
        self.count = len(states)
        self.states[: self.count, 0], self.tree.used[: self.count] = states, 0

    def follow(self, states: States) -> None:
        """Search from these positions, and keep what was found of them: the games have gone on.

        A row starts anew if the search has not come to its position (chance, or another game), or if not all
        actions are looked at there (`width`): a root has them all.
        """
        self._go_on(states, with_visits=True)

    def restart(self, states: States) -> None:
        """As `start`, and searches find the same, but nothing below these positions is evaluated again: the
        games have gone on, and the evaluator is the same."""
        self._go_on(states, with_visits=False)

    def forget(self) -> None:
        """The evaluator has changed: `follow` and `restart` start anew."""
        self.count = 0

    def _go_on(self, states: States, with_visits: bool) -> None:
        if not (self.reuse and self.certain and len(states) == self.count):
            return self.start(states)
        counts = self._counts[: self.count]
        list_legal(self.rules, states, self._actions[: self.count], counts)
        given, over = as_numbers(np.ascontiguousarray(states)), self.rules.over(states)
        follow_games(self.tree, self._positions, given, counts, over, with_visits)

    def run(
        self, rng: Streams, simulations: int | None = None, noise: float | None = None, seconds: float = 0.0
    ) -> Result:
        """Think in every row whose game is not over; chance comes from its stream. rng: [N, 2]

        A row whose value is proven thinks no more. simulations, noise: other than configured. seconds: stop
        after so much time, if not before
        """
        until = time.perf_counter() + seconds
        simulations = min(simulations or self.config.simulations, self.config.simulations)
        noise = self.config.noise if noise is None else noise
        rows = np.flatnonzero(~self.rules.over(self.states[: self.count, 0]))
        streams = rng[rows]
        self.tree.used[self.tree.used + simulations > self.tree.visits.shape[1]] = 0  # no room: start anew
        self._plant(rows, streams)
        root = self._make_root(rows, streams, simulations, noise)
        simulate = self._simulate_redealt if self.rules.spec.hidden else self._simulate
        while simulations > 0:
            together = len(rows) > 0 and self._simulate_together(rows[0], root, min(self.leaves, simulations))
            if not (together or simulate(rows, streams, root)) or (seconds and time.perf_counter() > until):
                break
            simulations -= together or 1
        rng[rows] = streams
        return self._result(rows, root)

    def _plant(self, rows: np.ndarray, streams: Streams) -> None:
        """Evaluate the roots that are new."""
        new = where((self.tree.used[rows] == 0) | (self.tree.visits[rows, 0] == 0))
        states, some_rng = self.states[rows[new], 0], streams[new]
        none = np.full(len(states), -1, np.int32)
        self.rules.redeal(
            states, some_rng
        )  # an evaluator that looks at everything must not see what is hidden
        self._grow(rows[new], none, none, states, some_rng)
        streams[new] = some_rng

    def _make_root(self, rows: np.ndarray, streams: Streams, simulations: int, noise: float) -> Root:
        tree, config, gumbel = self.tree, self.config, self.config.root == "gumbel"
        edges, games = tree.edges[:, 0], len(tree.used)
        prior = tree.prior[:, : edges[rows].max(initial=1)].copy()
        ranked, turns = np.zeros((2, games, config.considered if gumbel else 1), np.int32)
        wanted = [[0]]
        if gumbel:
            prior = np.log(prior + TINY, dtype=np.float32)
            if noise:
                add_gumbel(prior, rows, edges, np.float32(noise), streams)
            rank_edges(prior, rows, edges, ranked)
            wanted = [halving(max(1, n), simulations) for n in range(config.considered + 1)]
        for i, g in enumerate(rows if noise and not gumbel else ()):
            count, some_rng = edges[g], np.random.default_rng(int(next64(streams[i])))
            drawn = some_rng.dirichlet(np.full(count, DIRICHLET / count))
            prior[g, :count] += noise * (drawn - prior[g, :count])
        turn = np.zeros(games, np.int32)
        return Root(gumbel, prior, ranked, turns, turn, np.array(wanted, np.int32), float(config.c_scale))

    def _simulate(self, rows: np.ndarray, streams: Streams, root: Root) -> int:
        """One more leaf in every row that is not proven; how many they are."""
        leaves, states = np.empty((4, len(rows)), np.int32), np.empty(len(rows), self.states.dtype)
        weights = self.config.c_puct, self.config.first_play_reduction
        going: int
        going, found = descend(self.tree, root, rows, *weights, self._positions, *leaves, as_numbers(states))
        (which, parent, edge, action), states = leaves[:, :found], states[:found]
        some_rng = streams[which]
        self.rules.play(states, action, some_rng)
        self._grow(rows[which], parent, edge, states, some_rng)
        streams[which] = some_rng
        return going

    def _simulate_together(self, g: int, root: Root, most: int) -> int:
        """More leaves of one game, if there is more than one to be found; how many they are."""
        if most == 1:
            return 0
        parent, edge, action = np.empty((3, most), np.int32)
        weights = self.config.c_puct, self.config.first_play_reduction
        found: int = descend_apart(self.tree, root, g, *weights, parent, edge, action)
        if found < 2:
            return 0
        states, rng = self.states[g, parent[:found]], np.zeros((found, 2), np.uint64)
        self.rules.play(states, action[:found], rng)
        self._grow(np.full(found, g), parent[:found], edge[:found], states, rng)
        return found

    def _simulate_redealt(self, rows: np.ndarray, streams: Streams, root: Root) -> int:
        """With what is hidden drawn anew, play down from the root: a node is a sequence of actions, whose
        states differ from time to time."""
        tree, rules, weights = self.tree, self.rules, (self.config.c_puct, self.config.first_play_reduction)
        parent, edge = np.zeros((2, len(rows)), np.int32)
        states = self.states[rows, 0]
        going: np.ndarray = np.arange(len(rows))
        rules.redeal(states, streams)
        legal = np.zeros((len(rows), rules.spec.actions), bool)
        while len(going):
            some, at, k = states[going], parent[going], edge[going]
            rules.legal(some, legal[: len(going)])
            tree.seat[rows[going], at] = rules.seat(some)
            step_down(tree, root, rows[going], at, legal, self.width, *weights, k)
            edge[going] = k
            going = going[k >= 0]
            k, some, some_rng = edge[going], states[going], streams[going]
            rules.play(some, tree.action[rows[going], k], some_rng)
            states[going], streams[going] = some, some_rng
            tried = tree.tries[rows[going], k] > 0
            child = tree.child[rows[going], k][tried]
            going = going[tried]
            parent[going], edge[going] = child, -1
            going = going[~rules.over(states[going])]
        self._grow(rows, parent, edge, states, streams)
        return len(rows)

    def _grow(
        self, rows: np.ndarray, parent: np.ndarray, edge: np.ndarray, states: States, rng: Streams
    ) -> None:
        """Value these leaves, add them and take their values up. All [N]"""
        spec, is_root = self.rules.spec, (parent < 0).all()
        depth = (0, 0) if is_root else (self.plies, self.endgame)
        known, worth = prove(self.rules, self.utility, states, *depth)
        new = where(~known)
        some, some_rng, values = picked(states, new), rng[new], worth[new]
        actions, counts, logits = (
            array[: len(some)] for array in (self._actions, self._counts, self._logits)
        )
        if len(some):
            list_legal(self.rules, some, actions, counts)
            self.evaluate(some, actions, counts, some_rng, logits, values)
            rng[new] = some_rng
        leaves = rows, parent, edge, self.rules.seat(states), as_numbers(states), known, worth
        evaluated = actions, counts, logits, values
        kind = self.width, np.float32(1 / self.config.prior_temperature), spec.hidden, self.certain
        grow(self.tree, self._positions, *leaves, *evaluated, *kind)

    def _result(self, rows: np.ndarray, root: Root) -> Result:
        n, counts = self.count, np.zeros(self.count, np.int32)
        counts[rows] = self.tree.edges[rows, 0]
        room = counts.max(initial=0)
        best, value = np.full(n, -1, np.int32), np.zeros((n, self.rules.spec.seats), np.float32)
        visits = np.zeros((n, room), np.int32)
        policy, means = np.zeros((2, n, room), np.float32)
        read_roots(self.tree, root, rows, best, value, visits, policy, means)
        proven = np.zeros(n, bool)
        proven[rows] = self.tree.open[rows, 0] == 0
        return Result(best, value, counts, self.tree.action[:n, :room].copy(), visits, policy, means, proven)
