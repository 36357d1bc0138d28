"""The trees of many games as flat arrays, and what a search does to them, compiled.

Every node keeps a value for each seat, and the seat to move maximises its own: no sign is turned anywhere.
Where nothing is left to chance, values that are certain are proven (`settle`). Nothing here knows a game:
positions are only numbers of nodes.
"""

from typing import NamedTuple

import numpy as np

from ludus.core.jit import inner, njit

LEAST, ZERO, ONE, TWO = np.float32(-1e30), np.float32(0), np.float32(1), np.float32(2)
"""Plain numbers would turn what they meet into float64, of which a vector holds half as many."""
WON, LOST = np.float32(1 - 1e-6), np.float32(-1 + 1e-6)
"""Utilities are in [-1, 1]: nothing is better or worse than these."""
HALF, SIXTH, C4, C5, C6 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720))
LOG2_E, LN_2, LEAST_EXPONENT = np.float32(np.log2(np.e)), np.float32(np.log(2)), np.float32(-100)


class Tree(NamedTuple):
    """G trees of up to M nodes and E edges (legal actions). Node 0 is the root; S seats.

    The edges of a node stand side by side, those of the root first. A node may be there before it is visited:
    its evaluation is of an earlier search (`following.py`).
    """

    room: int  # for edges of the root
    used: np.ndarray  # int32 [G]: nodes; none until the root was evaluated
    filled: np.ndarray  # int32 [G]: edges that are taken
    visits: np.ndarray  # int32 [G, M]: its own evaluation, and those of all below it
    total: np.ndarray  # float32 [G, M, S]: sum of the values of all these
    first: np.ndarray  # float32 [G, M, S]: its own, or the proven one
    seat: np.ndarray  # int32 [G, M]: whose turn it is
    parent: np.ndarray  # int32 [G, M]: -1 for the root
    edge: np.ndarray  # int32 [G, M]: by which one comes here from the parent
    start: np.ndarray  # int32 [G, M]: its first edge
    edges: np.ndarray  # int32 [G, M]: how many; none where the game is over
    open: np.ndarray  # int32 [G, M]: legal actions that are not proven, with an edge or not; 0: it is proven
    best: np.ndarray  # int32 [G, M]: the best of its proven edges, or -1
    action: np.ndarray  # int32 [G, E]
    prior: np.ndarray  # float32 [G, E]
    child: np.ndarray  # int32 [G, E]: the node behind an edge, or -1
    tries: np.ndarray  # float32 [G, E]: the child's visits
    mean: np.ndarray  # float32 [G, E]: and its value to the mover; LEAST if nothing is left to find


def make_tree(games: int, nodes: int, room: int, width: int, seats: int) -> Tree:
    """Empty trees. room: for edges of a root; width: for those of another node

    Memory that is never written to costs nothing, so room is not spared.
    """
    counts = ("visits", "parent", "edge", "start", "edges", "open", "best", "seat")
    kind = np.dtype(
        [(name, np.int32) for name in counts] + [(name, np.float32, seats) for name in ("total", "first")]
    )
    # What is known of a node lies in one place, since a way down reads all of it.
    node = np.zeros((games, nodes), kind)
    used, filled = np.zeros((2, games), np.int32)
    edges = room + (nodes - 1) * width
    action, child = np.zeros((2, games, edges), np.int32)
    prior, tries, mean = np.zeros((3, games, edges), np.float32)
    fields = {name: node[name] for name in kind.names or ()}
    return Tree(room, used, filled, **fields, action=action, prior=prior, child=child, tries=tries, mean=mean)


# ---- a leaf is added, and its value goes up


@njit
def grow(
    tree, positions, rows, parent, edge, seat, states, known, worth, actions, counts, logits, values, width,
    sharpness, hidden, certain,
):  # fmt: skip
    """Add the leaf behind each row's edge (the root: parent -1) and take its value up. edge -1: `parent`
    itself is the leaf, as it had no edge to go on by. A leaf that an earlier one of the same game made
    needless is left out.

    positions: of all nodes, uint8 [G, M, B], to be written; states: uint8 [N, B]; known: values that need no
    evaluation and no edges, bool [N]; worth: these, [N, S]. What was evaluated, one after the other:
    actions, logits [K, A]; counts [K]; values [K, S]. Others: [N]
    width: edges at most, but for the root. sharpness: of priors, 1 / temperature. certain: play has no
    chance, so values can be proven
    """
    evaluated = 0
    for i in range(len(rows)):
        g, node, k = rows[i], parent[i], evaluated
        evaluated += not known[i]
        if is_settled(tree, g, node):
            continue
        value, count = (worth[i], 0) if known[i] else (values[k], counts[k])
        if node < 0 or edge[i] >= 0:
            node = add_node(tree, g, parent[i], edge[i])
            tree.seat[g, node], tree.open[g, node] = seat[i], count if certain else count + 1
            for s in range(len(value)):
                tree.total[g, node, s], tree.first[g, node, s] = 0, value[s]
            if hidden and node > 0:
                tree.filled[g] += width  # more may become legal
        if tree.edges[g, node] == 0 and count > 0:
            most = width if node > 0 else count
            add_edges(tree, g, node, actions[k], logits[k], count, most, sharpness)
            if node == 0:
                adopt(tree, g)
            elif not hidden:
                tree.filled[g] += tree.edges[g, node]
        if not hidden:
            copy_row(states[i], positions[g, node])
        back_up(tree, g, node, value)
        if tree.open[g, node] == 0:
            settle(tree, g, node)


@inner
def copy_row(given, out):
    """out[:] = given, in half the time. Both: [B]"""
    for k in range(len(out)):
        out[k] = given[k]


@inner
def is_settled(tree, g, node):
    """Whether this node or one above it is proven, so that nothing is left to find here."""
    while node >= 0:
        if tree.open[g, node] == 0:
            return True
        node = tree.parent[g, node]
    return False


@inner
def add_node(tree, g, parent, edge):
    if parent < 0:
        node = start = 0
        if tree.used[g] == 0:
            tree.used[g], tree.filled[g] = 1, tree.room
    else:
        node, start = tree.used[g], tree.filled[g]
        tree.child[g, edge] = node
        tree.used[g] += 1
    tree.parent[g, node], tree.edge[g, node], tree.start[g, node] = parent, edge, start
    tree.visits[g, node] = tree.edges[g, node] = 0
    tree.best[g, node] = -1
    return node


@inner
def adopt(tree, g):
    """A root has new edges: find those of the nodes that were below it before, which know their actions."""
    for node in range(1, tree.used[g]):
        k = 0
        while tree.parent[g, node] == 0 and tree.action[g, k] != tree.edge[g, node]:
            k += 1
        if tree.parent[g, node] == 0:
            tree.child[g, k], tree.edge[g, node] = node, k


@inner
def add_edges(tree, g, node, actions, logits, count, width, sharpness):
    """Edges for the likeliest of the legal actions, with the softmax of their logits as priors."""
    start, kept = tree.start[g, node], 0
    room = start + min(count, width)
    action, prior, tries = tree.action[g, start:room], tree.prior[g, start:room], tree.tries[g, start:room]
    child = tree.child[g, start:room]
    bar, equals = find_bar(logits, count, width)
    for k in range(count):
        if kept == len(action):
            break
        action[kept], prior[kept] = actions[k], logits[k]
        above = logits[k] > bar
        taken = above or equals > 0
        equals -= taken and not above
        kept += taken
    softmax(prior[:kept], sharpness)
    for k in range(kept):
        tries[k], child[k] = 0, -1
    tree.edges[g, node] = kept


@njit(fastmath=True)
def softmax(logits, sharpness):
    """Of logits * sharpness, in place. By loops that run on vectors, unlike calls of `exp`, which took longer
    than all else here."""
    top, total, powers = LEAST, ZERO, np.empty(len(logits), np.int32)
    for k in range(len(logits)):
        top = max(top, logits[k])
    for k in range(len(logits)):
        exponent = max((logits[k] - top) * (LOG2_E * sharpness), LEAST_EXPONENT)
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


@inner(fastmath=True)
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


@inner
def back_up(tree, g, node, value):
    """Count a value for every seat, from a node up to the root."""
    while node >= 0:
        tree.visits[g, node] += 1
        for s in range(len(value)):
            tree.total[g, node, s] += value[s]
        parent = tree.parent[g, node]
        if parent >= 0:
            e, seat = tree.edge[g, node], tree.seat[g, parent]
            tree.tries[g, e] = tree.visits[g, node]
            tree.mean[g, e] = tree.total[g, node, seat] / tree.visits[g, node]
        node = parent


@inner
def settle(tree, g, node):
    """A node is proven: tell those above it. A parent is proven too once it has a certain win, or once all
    its legal actions are proven; what its seat does best is then its value (Winands et al. 2008, for any
    number of seats and any values)."""
    while True:
        correct(tree, g, node)
        parent, edge = tree.parent[g, node], tree.edge[g, node]
        if parent < 0:
            return
        seat, rival = tree.seat[g, parent], tree.best[g, parent]
        value = tree.first[g, node, seat]
        tree.open[g, parent] -= 1
        if rival < 0 or is_better(tree, g, node, tree.child[g, rival], seat):
            if rival >= 0:
                tree.mean[g, rival] = LEAST
            tree.best[g, parent] = edge
            tree.mean[g, edge] = value if value > LOST else LEAST
        else:
            tree.mean[g, edge] = LEAST
        if tree.open[g, parent] > 0 and value < WON:
            return
        tree.open[g, parent] = 0
        best = tree.child[g, tree.best[g, parent]]
        for s in range(tree.first.shape[2]):
            tree.first[g, parent, s] = tree.first[g, best, s]
        node = parent


@inner
def is_better(tree, g, node, other, seat):
    """Of two proven nodes, for the seat that moves there. Of two that are lost, the one whose proof took more
    visits: it holds out longer."""
    value, bar = tree.first[g, node, seat], tree.first[g, other, seat]
    return value > bar or (bar <= LOST and tree.visits[g, node] > tree.visits[g, other])


@inner
def correct(tree, g, node):
    """All visits of a proven node had its value: count them so, here and above."""
    changed = False
    for s in range(tree.first.shape[2]):
        change = tree.visits[g, node] * tree.first[g, node, s] - tree.total[g, node, s]
        changed |= change != 0
        above = node
        while above >= 0 and change != 0:
            tree.total[g, above, s] += change
            above = tree.parent[g, above]
    while changed and tree.parent[g, node] >= 0:
        parent = tree.parent[g, node]
        total = tree.total[g, node, tree.seat[g, parent]]
        tree.mean[g, tree.edge[g, node]] = total / tree.visits[g, node]
        node = parent


@inner
def add_missing(tree, g, node, legal, width):
    """Edges for actions that are legal this time and never were before: of middling likelihood."""
    start, count, missing = tree.start[g, node], tree.edges[g, node], legal.copy()
    for e in range(start, start + count):
        missing[tree.action[g, e]] = False
    for action in range(len(legal) if count else 0):
        k = tree.edges[g, node]
        if missing[action] and k < width:
            tree.action[g, start + k], tree.prior[g, start + k] = action, ONE / count
            tree.tries[g, start + k], tree.child[g, start + k] = 0, -1
            tree.edges[g, node] += 1


@njit
def list_marks(legal, actions, counts):
    """A mask as numbers, as many as there is room for. legal: bool [N, A]; actions: int32 [N, room]"""
    for i in range(len(legal)):
        counts[i] = 0
        for action in range(legal.shape[1]):
            if legal[i, action] and counts[i] < actions.shape[1]:
                actions[i, counts[i]] = action
                counts[i] += 1
