"""Where a simulation goes, and what a root makes of all of them, compiled: PUCT, or at a root Gumbel's way.

Sections and appendices are those of Danihelka et al. 2022.
"""

from typing import NamedTuple

import numpy as np

from ludus.core.dice import next64
from ludus.core.jit import inner, njit
from ludus.search.tree import LEAST, LOST, ONE, ZERO, add_missing, back_up, copy_row

VISIT_SCALE = 50.0
"""So many visits values weigh from the start, beside priors at a Gumbel root."""
TINY = 1e-30
EQUAL = np.float32(1e-6)
"""Values that are closer are the same."""
FREE = 8
"""Ways that one simulation may take to known values, before it must find a leaf to evaluate."""
ANY = np.zeros(0, bool)
"""Instead of a mask: every edge can be taken."""


class Root(NamedTuple):
    """What is special at the roots, for the length of one run. Noise is here, and never in the tree."""

    gumbel: bool
    prior: np.ndarray  # float32 [G, R]: with noise; logarithms for a Gumbel root
    ranked: np.ndarray  # int32 [G, C]: the edges that a Gumbel root compares, the likeliest first
    turns: np.ndarray  # int32 [G, C]: how many turns each of them had in this run
    turn: np.ndarray  # int32 [G]: how many all of them had
    wanted: np.ndarray  # int32 [C + 1, simulations]: `halving` of each number of actions
    c_scale: float


@njit
def add_gumbel(prior, rows, edges, scale, rng):
    """Gumbel noise on the logarithms of priors. prior: [G, R]; rows: [N]; edges: [G]; rng: [N, 2]"""
    for i in range(len(rows)):
        for k in range(edges[rows[i]]):
            uniform = (np.float64(next64(rng[i]) >> np.uint64(11)) + 0.5) / 2.0**53
            prior[rows[i], k] -= scale * np.float32(np.log(-np.log(uniform)))


# ---- choosing an edge


@inner(fastmath=True)
def puct_edge(tree, g, node, prior, c_puct, first_play_reduction, legal, barred):
    """The most promising edge, or -1 if there is none. prior: of its edges; legal: bool [A] or ANY

    barred: an edge that is not to be taken, or -1
    """
    visits, start, count = tree.visits[g, node], tree.start[g, node], tree.edges[g, node]
    untried = np.float32(tree.total[g, node, tree.seat[g, node]] / visits - first_play_reduction)
    curious = np.float32(c_puct * np.sqrt(visits))
    tries, mean = tree.tries[g, start : start + count], tree.mean[g, start : start + count]
    scores = np.empty(count, np.float32)
    for k in range(count):  # apart from the comparison, so that it runs on vectors
        value = mean[k] if tries[k] > 0 else untried
        scores[k] = value + curious * prior[k] / (ONE + tries[k])
    if barred >= 0:
        scores[barred - start] = LEAST
    best, most = -1, LEAST
    for k in range(count):
        if scores[k] > most and (len(legal) == 0 or legal[tree.action[g, start + k]]):
            best, most = start + k, scores[k]
    return best


@inner
def priors(tree, g, node):
    start = tree.start[g, node]
    return tree.prior[g, start : start + tree.edges[g, node]]


@inner
def is_proven(tree, g, edge):
    return tree.tries[g, edge] > 0 and tree.open[g, tree.child[g, edge]] == 0


@inner
def is_done(tree, g, edge):
    """Proven, and no better than another one that is, or lost."""
    return tree.tries[g, edge] > 0 and tree.mean[g, edge] <= LEAST


@inner
def root_value(tree, g, edge):
    """What a tried edge of the root is worth to the seat to move there."""
    child, seat = tree.child[g, edge], tree.seat[g, 0]
    if tree.open[g, child] == 0:
        return tree.first[g, child, seat]
    return tree.total[g, child, seat] / np.float32(tree.visits[g, child])


@inner
def mixed_value(tree, g):
    """What untried actions of the root are worth: its value mixed with those of tried ones (appendix D)."""
    visits, weight, weighted = ZERO, np.float32(TINY), ZERO
    for k in range(tree.edges[g, 0]):
        if tree.tries[g, k] > 0:
            visits += tree.tries[g, k]
            weight += tree.prior[g, k]
            weighted += tree.prior[g, k] * root_value(tree, g, k)
    return (tree.first[g, 0, tree.seat[g, 0]] + visits * weighted / weight) / (1 + visits)


@inner
def value_logit(value, most_tries, scale):
    """A value on the scale of the logarithms of priors: the more was tried, the more values weigh."""
    return (VISIT_SCALE + most_tries) * scale * (value + 1) / 2


@njit
def rank_edges(prior, rows, edges, ranked):
    """The likeliest edges of the roots, in order. prior: [G, R]; edges: [G]; ranked: int32 [G, C]"""
    for g in rows:
        left = prior[g, : edges[g]].copy()
        for place in range(min(len(left), ranked.shape[1])):
            ranked[g, place] = left.argmax()
            left[ranked[g, place]] = -np.inf


@inner
def rate_ranked(tree, g, root, logits):
    """Noisy priors and values of the edges that a Gumbel root compares; next to nothing where nothing is left
    to find. logits: [C], to be written"""
    considered, most, untried = min(tree.edges[g, 0], len(logits)), ZERO, False
    for place in range(considered):
        tries = tree.tries[g, root.ranked[g, place]]
        most, untried = max(most, tries), untried or tries == 0
    mixed = mixed_value(tree, g) if untried else ZERO
    for place in range(considered):
        edge = root.ranked[g, place]
        value = tree.mean[g, edge] if tree.tries[g, edge] > 0 else mixed
        logits[place] = root.prior[g, edge] + value_logit(value, most, root.c_scale)
    return considered


@inner
def gumbel_edge(tree, g, root):
    """The next edge by sequential halving. Those that are proven take their turns without a simulation, as
    there is nothing to find; what is saved goes to the best of the others."""
    logits = np.empty(root.ranked.shape[1], np.float32)
    considered = rate_ranked(tree, g, root, logits)
    while root.turn[g] < root.wanted.shape[1]:
        wanted, best = root.wanted[considered, root.turn[g]], -1
        for place in range(considered):
            if root.turns[g, place] == wanted and (best < 0 or logits[place] > logits[best]):
                best = place
        root.turn[g] += 1
        root.turns[g, best] += 1
        if not is_proven(tree, g, root.ranked[g, best]):
            return root.ranked[g, best]
    best = -1
    for place in range(considered):
        if not is_proven(tree, g, root.ranked[g, place]) and (best < 0 or logits[place] > logits[best]):
            best = place
    return root.ranked[g, best] if best >= 0 else likeliest_open(tree, g, root)


@inner
def likeliest_open(tree, g, root):
    """Of the edges of a root that are not proven."""
    best = -1
    for k in range(tree.edges[g, 0]):
        if not is_proven(tree, g, k) and (best < 0 or root.prior[g, k] > root.prior[g, best]):
            best = k
    return best


@inner
def root_edge(tree, g, root, c_puct, first_play_reduction, barred):
    if root.gumbel:
        return gumbel_edge(tree, g, root)
    return puct_edge(tree, g, 0, root.prior[g], c_puct, first_play_reduction, ANY, barred)


# ---- a simulation goes down


@njit
def descend(tree, root, rows, c_puct, first_play_reduction, positions, which, parent, edge, action, states):
    """Find leaves that are to be evaluated, at most one for each row: `which` row, the edge of its parent
    that is to be tried, the edge's action and the parent's position.

    A leaf that an earlier search evaluated is counted at once. So is a way that ends where the value is
    proven, and it adds nothing: so another one is taken, up to FREE times, and then one that leaves out what
    is proven. So each simulation brings the proof of the root nearer. Gives the number of rows that are not
    proven yet, and that of leaves.

    positions: of all nodes, uint8 [G, M, B]; states: uint8 [N, B]; all others but the tree: [N]
    """
    going = found = 0
    for i in range(len(rows)):
        g, node, e = rows[i], 0, -1
        taken = e
        going += tree.open[g, 0] > 0
        for way in range(FREE + 1 if tree.open[g, 0] > 0 else 0):
            if way == 0 or not root.gumbel:  # a turn of a Gumbel root is one leaf
                barred = tree.best[g, 0] if way == FREE else -1
                taken = root_edge(tree, g, root, c_puct, first_play_reduction, barred)
            node, e = walk_down(tree, g, taken, c_puct, first_play_reduction, way == FREE)
            if e >= 0 and tree.child[g, e] < 0:
                break
            evaluated = e >= 0
            if evaluated:
                node, e = tree.child[g, e], -1
            back_up(tree, g, node, tree.first[g, node])
            if evaluated:
                break
        if e >= 0:
            which[found], parent[found], edge[found], action[found] = i, node, e, tree.action[g, e]
            copy_row(positions[g, node], states[found])
            found += 1
    return going, found


@njit
def descend_apart(tree, root, g, c_puct, first_play_reduction, parent, edge, action):
    """Find leaves of one game that are evaluated together, up to as many as there is room for: how many.

    Until all are found, a way that was taken counts as a visit that everybody lost (a virtual loss), so that
    the next one is another. parent, edge, action: int32 [K]
    """
    found, likely = 0, np.empty(len(edge), np.float32)
    while found < len(edge) and tree.open[g, 0] > 0:
        e = root_edge(tree, g, root, c_puct, first_play_reduction, -1)
        node, e = walk_down(tree, g, e, c_puct, first_play_reduction, False)
        prior, k = prior_of(tree, root, g, node), e - tree.start[g, node]
        if e < 0 or prior[k] <= LEAST:
            break  # known, or all that is left is being evaluated
        parent[found], edge[found], action[found] = node, e, tree.action[g, e]
        likely[found], prior[k] = prior[k], LEAST
        count_virtual(tree, g, node, 1)
        found += 1
    for i in range(found):
        prior_of(tree, root, g, parent[i])[edge[i] - tree.start[g, parent[i]]] = likely[i]
        count_virtual(tree, g, parent[i], -1)
    return found


@inner
def prior_of(tree, root, g, node):
    return root.prior[g] if node == 0 else priors(tree, g, node)


@inner
def count_virtual(tree, g, node, visits):
    """Count a visit that everybody lost, from a node up to the root; -1: take it back."""
    while node >= 0:
        tree.visits[g, node] += visits
        for s in range(tree.total.shape[2]):
            tree.total[g, node, s] -= visits
        parent = tree.parent[g, node]
        if parent >= 0:
            e = tree.edge[g, node]
            tree.tries[g, e] = tree.visits[g, node]
            tree.mean[g, e] = tree.total[g, node, tree.seat[g, parent]] / tree.visits[g, node]
        node = parent


@inner
def walk_down(tree, g, e, c_puct, first_play_reduction, forced):
    """From an edge of the root by the most promising ones to one that was not tried, and the node before it;
    or -1 and a node whose value is known. forced: only by edges that are not proven"""
    node = 0
    while e >= 0 and tree.tries[g, e] > 0:
        node = tree.child[g, e]
        if tree.open[g, node] == 0:
            return node, -1
        barred = tree.best[g, node] if forced else -1
        e = puct_edge(tree, g, node, priors(tree, g, node), c_puct, first_play_reduction, ANY, barred)
    if e < 0 and tree.best[g, node] >= 0:  # all that `width` kept is lost
        node = tree.child[g, tree.best[g, node]]
    return node, e


@njit
def step_down(tree, root, rows, node, legal, width, c_puct, first_play_reduction, edge):
    """Each row's next edge among the legal ones, -1 if there is none. legal: bool [N, A]; others: [N]"""
    for i in range(len(rows)):
        g = rows[i]
        if node[i] == 0:
            edge[i] = root_edge(tree, g, root, c_puct, first_play_reduction, -1)
        else:
            add_missing(tree, g, node[i], legal[i], width)
            prior = priors(tree, g, node[i])
            edge[i] = puct_edge(tree, g, node[i], prior, c_puct, first_play_reduction, legal[i], -1)


# ---- what was found


@njit
def read_roots(tree, root, rows, best, value, visits, policy, means):
    """What was found, as in `Result`; all that is written to holds zeros before."""
    for g in rows:
        read_policy(tree, g, root, policy[g])
        best[g] = tree.action[g, best_edge(tree, g, root)]
        weight = ZERO
        for k in range(tree.edges[g, 0]):
            if tree.tries[g, k] > 0:
                child = tree.child[g, k]
                visits[g, k], means[g, k] = tree.visits[g, child], root_value(tree, g, k)
                weight += policy[g, k]
                for s in range(value.shape[1]):
                    value[g, s] += policy[g, k] * tree.total[g, child, s] / visits[g, k]
        for s in range(value.shape[1]):
            if tree.open[g, 0] == 0:
                value[g, s] = tree.first[g, 0, s]
            elif weight > 0:
                value[g, s] /= weight
            else:
                value[g, s] = tree.total[g, 0, s] / tree.visits[g, 0]


@inner
def best_edge(tree, g, root):
    """What to play: what is proven to be best, and nothing that is proven to be worse or lost."""
    proven = tree.best[g, 0]
    if tree.open[g, 0] == 0:
        return proven
    chosen = halving_winner(tree, g, root) if root.gumbel else most_tried(tree, g)
    if chosen < 0:
        chosen = likeliest_open(tree, g, root)
    if proven >= 0 and not is_done(tree, g, proven) and tree.tries[g, chosen] > 0:
        if root_value(tree, g, proven) > root_value(tree, g, chosen):
            return proven
    return chosen


@inner
def halving_winner(tree, g, root):
    """Of the edges with the most turns, the better; -1 if all that were compared are done with."""
    logits = np.empty(root.ranked.shape[1], np.float32)
    best = -1
    for place in range(rate_ranked(tree, g, root, logits)):
        if is_done(tree, g, root.ranked[g, place]):
            continue
        more = root.turns[g, place] - root.turns[g, best] if best >= 0 else 1
        if more > 0 or (more == 0 and logits[place] > logits[best]):
            best = place
    return root.ranked[g, best] if best >= 0 else -1


@inner
def most_tried(tree, g):
    """Of those tried equally often, the better; -1 if all that were tried are done with."""
    best, most = -1, LEAST
    for k in range(tree.edges[g, 0]):
        score = tree.tries[g, k] + tree.mean[g, k] / 4
        if tree.tries[g, k] > 0 and not is_done(tree, g, k) and score > most:
            best, most = k, score
    return best


@inner
def read_policy(tree, g, root, out):
    """Shares of what was tried; or for a Gumbel root, priors improved by completed values (section 4).
    Nothing for what is proven to be worse than something else, or lost."""
    most, top, total, mixed = ZERO, LEAST, ZERO, mixed_value(tree, g)
    count, solved = tree.edges[g, 0], tree.open[g, 0] == 0
    for k in range(count):
        most = max(most, tree.tries[g, k])
    for k in range(count):
        out[k] = tree.tries[g, k]
        tried = out[k] > 0  # few are, and handing the tree to a function costs more than all else here
        if root.gumbel:
            value = root_value(tree, g, k) if tried else mixed
            out[k] = np.log(tree.prior[g, k] + TINY) + value_logit(value, most, root.c_scale)
        if is_beaten(tree, g, k) if tried else solved:
            out[k] = LEAST if root.gumbel else ZERO
        top = max(top, out[k])
    for k in range(count):
        if root.gumbel:
            out[k] = np.exp(out[k] - top)
        elif top == 0 and not is_beaten(tree, g, k):
            out[k] = tree.prior[g, k]  # all that was tried is lost
        total += out[k]
    for k in range(count):
        out[k] /= total


@inner
def is_beaten(tree, g, edge):
    """Whether an edge of the root is proven to be worse than another, or not needed as that one wins."""
    solved, best = tree.open[g, 0] == 0, tree.best[g, 0]
    if not is_proven(tree, g, edge):
        return solved
    value = root_value(tree, g, edge)
    return value < root_value(tree, g, best) - EQUAL or (not solved and value <= LOST)
