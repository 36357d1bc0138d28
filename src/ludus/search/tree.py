"""The trees of many games as flat arrays, and what a search does to them, compiled.

Every node keeps a value for each seat, and whoever moves maximises his own: no sign is turned anywhere.
Nothing here knows a game: positions are only numbers of nodes.
"""

from typing import NamedTuple

import numpy as np

from ludus.core.dice import next64
from ludus.core.jit import njit

VISIT_SCALE = 50.0
"""So many visits values weigh from the start, beside priors at a Gumbel root (Danihelka et al. 2022)."""
TINY = 1e-30
LEAST, ZERO, ONE, TWO = np.float32(-1e30), np.float32(0), np.float32(1), np.float32(2)
"""Plain numbers would turn what they meet into float64, of which a vector holds half as many."""
HALF, SIXTH, C4, C5, C6 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720))
LOG2_E, LN_2, LEAST_EXPONENT = np.float32(np.log2(np.e)), np.float32(np.log(2)), np.float32(-100)
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
    edge: np.ndarray  # int32 [G, M]: by which one comes here from the parent
    edges: np.ndarray  # int32 [G, M]: none where the game is over
    action: np.ndarray  # int32 [G, M, W]
    prior: np.ndarray  # float32 [G, M, W]
    child: np.ndarray  # int32 [G, M, W]: the node behind an edge that was tried
    tries: np.ndarray  # float32 [G, M, W]: the child's visits, and its mean value for the seat that moves
    mean: np.ndarray  # here, side by side, because choosing reads them all


class Root(NamedTuple):
    """What is special at the roots, for the length of one run. Noise is here, and never in the tree."""

    gumbel: bool
    prior: np.ndarray  # float32 [G, W]: with noise; logarithms for a Gumbel root
    before: np.ndarray  # float32 [G, W]: how often the edges were tried in earlier moves
    wanted: np.ndarray  # int32 [considered + 1, simulations]: `halving` of each number of actions
    value_scale: float


def make_tree(games: int, nodes: int, width: int, seats: int) -> Tree:
    """Empty trees. Memory that is never written to costs nothing, so room is not spared."""

    def ints(*shape: int) -> np.ndarray:
        return np.zeros((games, *shape), np.int32)

    def floats(*shape: int) -> np.ndarray:
        return np.zeros((games, *shape), np.float32)

    return Tree(
        used=ints(), visits=ints(nodes), total=floats(nodes, seats), first=floats(nodes, seats),
        seat=np.zeros((games, nodes), np.int8), parent=ints(nodes), edge=ints(nodes), edges=ints(nodes),
        action=ints(nodes, width), prior=floats(nodes, width), child=ints(nodes, width),
        tries=floats(nodes, width), mean=floats(nodes, width),
    )  # fmt: skip


# ---- choosing an edge


@njit(fastmath=True)
def puct_edge(tree, g, node, prior, exploration, first_play, legal):
    """The most promising edge, or -1 if none is legal. prior: [W]; legal: bool [A] or ANY"""
    visits, count = tree.visits[g, node], tree.edges[g, node]
    untried = np.float32(tree.total[g, node, tree.seat[g, node]] / visits - first_play)
    curious = np.float32(exploration * np.sqrt(visits))
    tries, mean, scores = tree.tries[g, node], tree.mean[g, node], np.empty(count, np.float32)
    for k in range(count):  # apart from the comparison, so that it runs on vectors
        value = mean[k] if tries[k] > 0 else untried
        scores[k] = value + curious * prior[k] / (ONE + tries[k])
    best, most = -1, LEAST
    for k in range(count):
        if scores[k] > most and (len(legal) == 0 or legal[tree.action[g, node, k]]):
            best, most = k, scores[k]
    return best


@njit
def mixed_value(tree, g):
    """What untried actions of the root are worth: its value mixed with those of tried ones (appendix D)."""
    visits, weight, weighted = ZERO, np.float32(TINY), ZERO
    for k in range(tree.edges[g, 0]):
        if tree.tries[g, 0, k] > 0:
            visits += tree.tries[g, 0, k]
            weight += tree.prior[g, 0, k]
            weighted += tree.prior[g, 0, k] * tree.mean[g, 0, k]
    return (tree.first[g, 0, tree.seat[g, 0]] + visits * weighted / weight) / (1 + visits)


@njit
def gumbel_edge(tree, g, root, wanted):
    """The best of those edges that were tried so often in this run; with wanted = -1, of the most tried."""
    tries, most, most_now = tree.tries[g, 0], ZERO, ZERO
    for k in range(tree.edges[g, 0]):
        most, most_now = max(most, tries[k]), max(most_now, tries[k] - root.before[g, k])
    if wanted < 0:
        wanted = most_now
    best, best_logit, mixed = -1, LEAST, mixed_value(tree, g)
    for k in range(tree.edges[g, 0]):
        if tries[k] - root.before[g, k] == wanted:
            value = tree.mean[g, 0, k] if tries[k] > 0 else mixed
            logit = root.prior[g, k] + value_logit(value, most, root.value_scale)
            if logit > best_logit:
                best, best_logit = k, logit
    return best


@njit
def value_logit(value, most_tries, scale):
    """A value on the scale of the logarithms of priors: the more was tried, the more values weigh."""
    return (VISIT_SCALE + most_tries) * scale * (value + 1) / 2


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
        while k >= 0 and tree.tries[g, node, k] > 0:
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
            add_missing(tree, g, node[i], legal[i])
            prior = tree.prior[g, node[i]]
            edge[i] = puct_edge(tree, g, node[i], prior, exploration, first_play, legal[i])


@njit
def add_missing(tree, g, node, legal):
    """Edges for actions that are legal this time and never were before: of middling likelihood."""
    count, missing = tree.edges[g, node], legal.copy()
    for k in range(count):
        missing[tree.action[g, node, k]] = False
    for action in range(len(legal) if count else 0):
        k = tree.edges[g, node]
        if missing[action] and k < tree.action.shape[2]:
            tree.action[g, node, k], tree.prior[g, node, k] = action, ONE / count
            tree.tries[g, node, k] = 0
            tree.edges[g, node] += 1


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
                tree.child[g, parent[i], edge[i]], tree.edge[g, node] = node, edge[i]
        if tree.edges[g, node] == 0:
            add_edges(tree, g, node, actions[i], logits[i], counts[i])
        back_up(tree, g, node, values[i])


@njit
def add_edges(tree, g, node, actions, logits, count):
    """Edges for the likeliest of the legal actions, with the softmax of their logits as priors."""
    action, prior, tries = tree.action[g, node], tree.prior[g, node], tree.tries[g, node]
    width, kept = len(action), 0
    bar, equals = find_bar(logits, count, width)
    for k in range(count):
        if kept == width:
            break
        action[kept], prior[kept] = actions[k], logits[k]
        above = logits[k] > bar
        taken = above or equals > 0
        equals -= taken and not above
        kept += taken
    softmax(prior[:kept])
    for k in range(kept):
        tries[k] = 0
    tree.edges[g, node] = kept


@njit(fastmath=True)
def softmax(logits):
    """In place. By loops that run on vectors, unlike calls of `exp`, which took longer than all else here."""
    top, total, powers = LEAST, ZERO, np.empty(len(logits), np.int32)
    for k in range(len(logits)):
        top = max(top, logits[k])
    for k in range(len(logits)):
        exponent = max((logits[k] - top) * LOG2_E, LEAST_EXPONENT)
        whole = np.floor(exponent + HALF)
        rest = (exponent - whole) * LN_2  # in [-0.35, 0.35]: a few terms of its series are enough
        logits[k] = ONE + rest * (
            ONE + rest * (HALF + rest * (SIXTH + rest * (C4 + rest * (C5 + rest * C6))))
        )
        powers[k] = (np.int32(whole) + np.int32(127)) << np.int32(23)  # 2 ** whole, as a float's bits
    scale = powers.view(np.float32)
    for k in range(len(logits)):
        logits[k] *= scale[k]
        total += logits[k]
    for k in range(len(logits)):
        logits[k] /= total


@njit(fastmath=True)
def find_bar(logits, count, width):
    """A bar that at most `width` logits are above, and how many of the others there is room for.

    By bisection, as near as makes no difference: a sort takes longer, and seconds to compile.
    """
    if count <= width:
        return LEAST, count
    low, high = logits[0], logits[0]
    for k in range(count):
        low, high = min(low, logits[k]), max(high, logits[k])
    room = width
    for _ in range(12):
        bar, above = (low + high) / TWO, ZERO
        for k in range(count):
            above += ONE if logits[k] > bar else ZERO
        if above > width:
            low = bar
        else:
            high, room = bar, width - int(above)
    return high, room


@njit
def back_up(tree, g, node, value):
    """Count a value for every seat, from a node up to the root."""
    while node >= 0:
        tree.visits[g, node] += 1
        for s in range(len(value)):
            tree.total[g, node, s] += value[s]
        parent = tree.parent[g, node]
        if parent >= 0:
            k, seat = tree.edge[g, node], tree.seat[g, parent]
            tree.tries[g, parent, k] = tree.visits[g, node]
            tree.mean[g, parent, k] = tree.total[g, node, seat] / tree.visits[g, node]
        node = parent


# ---- before and after


@njit
def add_gumbel(prior, rows, edges, scale, rng):
    """Gumbel noise on the logarithms of priors. prior: [G, W]; rows: [N]; edges: [G]; rng: [N, 2]"""
    for i in range(len(rows)):
        for k in range(edges[rows[i]]):
            uniform = (np.float64(next64(rng[i]) >> np.uint64(11)) + 0.5) / 2.0**53
            prior[rows[i], k] -= scale * np.float32(np.log(-np.log(uniform)))


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
        tree.seat[g, node], tree.edge[g, node] = tree.seat[g, was], tree.edge[g, was]
        tree.parent[g, node] = new[tree.parent[g, was]]
        for k in range(tree.edges[g, node]):
            tree.action[g, node, k], tree.prior[g, node, k] = tree.action[g, was, k], tree.prior[g, was, k]
            tree.tries[g, node, k], tree.mean[g, node, k] = tree.tries[g, was, k], tree.mean[g, was, k]
            if tree.tries[g, was, k] > 0:
                tree.child[g, node, k] = new[tree.child[g, was, k]]
    tree.parent[g, 0], tree.used[g] = -1, kept
    return kept


@njit
def child_of(tree, actions, out):
    """The node that each row's action leads to from the root, or -1."""
    for g in range(len(actions)):
        out[g] = -1
        if tree.used[g]:
            for k in range(tree.edges[g, 0]):
                if tree.action[g, 0, k] == actions[g] and tree.tries[g, 0, k] > 0:
                    out[g] = tree.child[g, 0, k]


@njit
def read_roots(tree, root, rows, best, value, visits, policy):
    """What was found, as in `Result`; all that is written to holds zeros before."""
    for g in rows:
        read_policy(tree, g, root, policy[g])
        chosen = gumbel_edge(tree, g, root, -1) if root.gumbel else most_tried(tree, g)
        best[g] = tree.action[g, 0, chosen]
        weight = ZERO
        for k in range(tree.edges[g, 0]):
            if tree.tries[g, 0, k] > 0:
                child = tree.child[g, 0, k]
                visits[g, k] = tree.visits[g, child]
                weight += policy[g, k]
                for s in range(value.shape[1]):
                    value[g, s] += policy[g, k] * tree.total[g, child, s] / visits[g, k]
        for s in range(value.shape[1]):
            value[g, s] /= weight


@njit
def read_policy(tree, g, root, out):
    """Shares of what was tried; or for a Gumbel root, priors improved by completed values (section 4)."""
    most, top, total, mixed = ZERO, LEAST, ZERO, mixed_value(tree, g)
    for k in range(tree.edges[g, 0]):
        most = max(most, tree.tries[g, 0, k])
    for k in range(tree.edges[g, 0]):
        out[k] = tree.tries[g, 0, k]
        if root.gumbel:
            value = tree.mean[g, 0, k] if tree.tries[g, 0, k] > 0 else mixed
            out[k] = np.log(tree.prior[g, 0, k] + TINY) + value_logit(value, most, root.value_scale)
            top = max(top, out[k])
    for k in range(tree.edges[g, 0]):
        if root.gumbel:
            out[k] = np.exp(out[k] - top)
        total += out[k]
    for k in range(tree.edges[g, 0]):
        out[k] /= total


@njit
def most_tried(tree, g):
    """Of those tried equally often, the better."""
    best, most = -1, LEAST
    for k in range(tree.edges[g, 0]):
        score = tree.tries[g, 0, k] + tree.mean[g, 0, k] / 4
        if tree.tries[g, 0, k] > 0 and score > most:
            best, most = k, score
    return best


@njit
def list_marks(legal, actions, counts):
    """A mask as numbers, as many as there is room for. legal: bool [N, A]; actions: int32 [N, room]"""
    for i in range(len(legal)):
        counts[i] = 0
        for action in range(legal.shape[1]):
            if legal[i, action] and counts[i] < actions.shape[1]:
                actions[i, counts[i]] = action
                counts[i] += 1
