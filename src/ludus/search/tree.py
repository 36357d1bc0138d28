"""The trees of many games as flat arrays, and what a search does to them, compiled.

Every node keeps a value for each seat, and whoever moves maximises his own: no sign is turned anywhere.
Nothing here knows a game: positions are only numbers of nodes.
"""

from typing import NamedTuple

import numpy as np

from ludus.core.jit import njit

VISIT_SCALE, VALUE_SCALE = 50.0, 1.0
"""How much values weigh beside priors at a Gumbel root (Danihelka et al. 2022: c_visit and c_scale)."""
TINY = 1e-30
ANY = np.zeros(0, bool)
"""Instead of a mask: every edge can be taken."""


class Tree(NamedTuple):
    """G trees of up to M nodes, with up to W edges (legal actions) each. Node 0 is the root; S seats."""

    used: np.ndarray  # int32 [G]: nodes; none until the root was evaluated
    visits: np.ndarray  # int32 [G, M]: its own evaluation, and those of all below it
    total: np.ndarray  # float32 [G, M, S]: sum of the values of all these
    first: np.ndarray  # float32 [G, M, S]: its own
    seat: np.ndarray  # int8 [G, M]: whose turn it is
    parent: np.ndarray  # int32 [G, M]: -1 for the root
    edges: np.ndarray  # int32 [G, M]: none where the game is over
    action: np.ndarray  # int32 [G, M, W]
    prior: np.ndarray  # float32 [G, M, W]
    child: np.ndarray  # int32 [G, M, W]: -1 until it was tried


class Root(NamedTuple):
    """What is special at the roots, for the length of one run. Noise is here, and never in the tree."""

    gumbel: bool
    prior: np.ndarray  # float32 [G, W]: with noise; logarithms for a Gumbel root
    before: np.ndarray  # int32 [G, W]: visits that the edges had from earlier moves
    wanted: np.ndarray  # int32 [considered + 1, simulations]: `halving` of each number of actions


def make_tree(games: int, nodes: int, width: int, seats: int) -> Tree:
    """Empty trees. Memory that is never written to costs nothing, so room is not spared."""

    def ints(*shape: int) -> np.ndarray:
        return np.zeros((games, *shape), np.int32)

    def floats(*shape: int) -> np.ndarray:
        return np.zeros((games, *shape), np.float32)

    return Tree(
        used=ints(), visits=ints(nodes), total=floats(nodes, seats), first=floats(nodes, seats),
        seat=np.zeros((games, nodes), np.int8), parent=ints(nodes), edges=ints(nodes),
        action=ints(nodes, width), prior=floats(nodes, width), child=ints(nodes, width),
    )  # fmt: skip


# ---- choosing an edge


@njit
def puct_edge(tree, g, node, prior, exploration, first_play, legal):
    """The most promising edge, or -1 if none is legal. prior: [W]; legal: bool [A] or ANY"""
    seat, visits = tree.seat[g, node], tree.visits[g, node]
    untried = tree.total[g, node, seat] / visits - first_play
    curious = np.float32(exploration * np.sqrt(visits))
    best, most = -1, np.float32(-np.inf)
    for k in range(tree.edges[g, node]):
        if len(legal) and not legal[tree.action[g, node, k]]:
            continue
        child = tree.child[g, node, k]
        if child < 0:
            score = untried + curious * prior[k]
        else:
            tries = tree.visits[g, child]
            score = tree.total[g, child, seat] / tries + curious * prior[k] / (1 + tries)
        if score > most:
            best, most = k, score
    return best


@njit
def root_values(tree, g, tries, worth):
    """How often each action was tried, and what it is worth to the seat to move. Both [W]

    The untried are worth what the root is: its own value mixed with those of what was tried (appendix D).
    """
    seat, visits, weight, weighted = tree.seat[g, 0], 0, TINY, 0.0
    for k in range(tree.edges[g, 0]):
        child = tree.child[g, 0, k]
        tries[k] = 0
        if child >= 0:
            tries[k] = tree.visits[g, child]
            worth[k] = tree.total[g, child, seat] / tries[k]
            visits += tries[k]
            weight += tree.prior[g, 0, k]
            weighted += tree.prior[g, 0, k] * worth[k]
    mixed = (tree.first[g, 0, seat] + visits * weighted / weight) / (1 + visits)
    for k in range(tree.edges[g, 0]):
        if tries[k] == 0:
            worth[k] = mixed


@njit
def gumbel_edge(tree, g, root, wanted):
    """The best of those edges that were tried so often in this run; with wanted = -1, of the most tried."""
    count, most, most_now = tree.edges[g, 0], 0, 0
    tries, worth = np.empty(count, np.int32), np.empty(count, np.float32)
    root_values(tree, g, tries, worth)
    for k in range(count):
        most, most_now = max(most, tries[k]), max(most_now, tries[k] - root.before[g, k])
    if wanted < 0:
        wanted = most_now
    best, best_logit = -1, -np.inf
    for k in range(count):
        logit = root.prior[g, k] + value_logit(worth[k], most)
        if tries[k] - root.before[g, k] == wanted and logit > best_logit:
            best, best_logit = k, logit
    return best


@njit
def value_logit(value, most_visits):
    """A value on the scale of the logarithms of priors: the more was tried, the more values weigh."""
    return (VISIT_SCALE + most_visits) * VALUE_SCALE * (value + 1) / 2


@njit
def root_edge(tree, g, root, step, exploration, first_play):
    if root.gumbel:
        considered = min(tree.edges[g, 0], len(root.wanted) - 1)
        return gumbel_edge(tree, g, root, root.wanted[considered, step])
    return puct_edge(tree, g, 0, root.prior[g], exploration, first_play, ANY)


# ---- a simulation: down to a leaf, which is added, and its value back up


@njit
def descend(tree, root, rows, step, exploration, first_play, parent, edge, action):
    """Find each row's leaf: the edge of a node that is to be tried. Where the game is over, -1 for the edge:
    that leaf's value is known and is counted at once. All but the tree: [N]
    """
    for i in range(len(rows)):
        g, node = rows[i], 0
        k = root_edge(tree, g, root, step, exploration, first_play)
        while k >= 0 and tree.child[g, node, k] >= 0:
            node = tree.child[g, node, k]
            k = puct_edge(tree, g, node, tree.prior[g, node], exploration, first_play, ANY)
        parent[i], edge[i] = node, k
        if k < 0:
            back_up(tree, g, node, tree.first[g, node])
        else:
            action[i] = tree.action[g, node, k]


@njit
def step_down(tree, root, rows, node, legal, step, exploration, first_play, edge):
    """Each row's next edge among the legal ones, -1 if there is none. legal: bool [N, A]; others: [N]"""
    for i in range(len(rows)):
        g = rows[i]
        if node[i] == 0:
            edge[i] = root_edge(tree, g, root, step, exploration, first_play)
        else:
            prior = tree.prior[g, node[i]]
            edge[i] = puct_edge(tree, g, node[i], prior, exploration, first_play, legal[i])


@njit
def grow(tree, rows, parent, edge, seat, actions, counts, logits, values):
    """Add the leaf behind each row's edge (the root: parent -1) and take its value up. edge -1: `parent`
    itself is the leaf, as it had no edge to go on by. actions, logits: [N, A]; values: [N, S]; others: [N]
    """
    for i in range(len(rows)):
        g, node = rows[i], parent[i]
        if node < 0 or edge[i] >= 0:
            node = tree.used[g]
            tree.used[g] += 1
            tree.parent[g, node], tree.seat[g, node] = parent[i], seat[i]
            tree.visits[g, node] = tree.edges[g, node] = 0
            for s in range(values.shape[1]):
                tree.total[g, node, s], tree.first[g, node, s] = 0, values[i, s]
            if edge[i] >= 0:
                tree.child[g, parent[i], edge[i]] = node
        if tree.edges[g, node] == 0:
            add_edges(tree, g, node, actions[i], logits[i], counts[i])
        back_up(tree, g, node, values[i])


@njit
def add_edges(tree, g, node, actions, logits, count):
    """Edges for the likeliest of the legal actions, with the softmax of their logits as priors."""
    width, top = tree.action.shape[2], np.float32(-np.inf)
    for k in range(count):
        top = max(top, logits[k])
    bar, equals = find_bar(logits, count, width)
    kept, total = 0, np.float32(0)
    for k in range(count):
        if logits[k] <= bar:
            if equals == 0:
                continue
            equals -= 1
        prior = np.exp(logits[k] - top)
        tree.action[g, node, kept], tree.prior[g, node, kept], tree.child[g, node, kept] = (
            actions[k],
            prior,
            -1,
        )
        total += prior
        kept += 1
    for k in range(kept):
        tree.prior[g, node, k] /= total
    tree.edges[g, node] = kept


@njit
def find_bar(logits, count, width):
    """A bar that at most `width` logits are above, and how many of the others there is room for.

    By bisection: to compile a sort takes seconds.
    """
    if count <= width:
        return np.float32(-np.inf), count
    low, high = logits[0], logits[0]
    for k in range(count):
        low, high = min(low, logits[k]), max(high, logits[k])
    room = width
    for _ in range(20):
        bar, above = (low + high) / 2, 0
        for k in range(count):
            above += logits[k] > bar
        if above > width:
            low = bar
        else:
            high, room = bar, width - above
    return high, room


@njit
def back_up(tree, g, node, value):
    while node >= 0:
        tree.visits[g, node] += 1
        for s in range(len(value)):
            tree.total[g, node, s] += value[s]
        node = tree.parent[g, node]


# ---- before and after


@njit
def keep_subtree(tree, g, top, old):
    """Make `top` the root and forget all that is not below it. old: int32 [M], where nodes were before"""
    new = np.full(tree.used[g], -1, np.int32)
    kept = 0
    for node in range(top, tree.used[g]):  # children come after their parents
        if node == top or (tree.parent[g, node] >= 0 and new[tree.parent[g, node]] >= 0):
            new[node], old[kept] = kept, node
            kept += 1
    for node in range(kept):
        was = old[node]
        tree.visits[g, node], tree.edges[g, node] = tree.visits[g, was], tree.edges[g, was]
        tree.total[g, node], tree.first[g, node] = tree.total[g, was], tree.first[g, was]
        tree.seat[g, node], tree.parent[g, node] = tree.seat[g, was], new[tree.parent[g, was]]
        for k in range(tree.edges[g, node]):
            tree.action[g, node, k], tree.prior[g, node, k] = tree.action[g, was, k], tree.prior[g, was, k]
            child = tree.child[g, was, k]
            tree.child[g, node, k] = new[child] if child >= 0 else -1
    tree.parent[g, 0], tree.used[g] = -1, kept
    return kept


@njit
def child_of(tree, actions, out):
    """The node that each row's action leads to from the root, or -1."""
    for g in range(len(actions)):
        out[g] = -1
        if tree.used[g]:
            for k in range(tree.edges[g, 0]):
                if tree.action[g, 0, k] == actions[g]:
                    out[g] = tree.child[g, 0, k]


@njit
def read_roots(tree, root, rows, visits, worth, best):
    """visits: int32, worth: float32 [N, R]; best: int32 [N], the edge that a Gumbel root would choose"""
    for i in range(len(rows)):
        root_values(tree, rows[i], visits[i], worth[i])
        best[i] = gumbel_edge(tree, rows[i], root, -1)


@njit
def list_marks(legal, actions, counts):
    """A mask as numbers. legal: bool [N, A]; actions: int32 [N, A]; counts: int32 [N]"""
    for i in range(len(legal)):
        counts[i] = 0
        for action in range(legal.shape[1]):
            if legal[i, action]:
                actions[i, counts[i]] = action
                counts[i] += 1
