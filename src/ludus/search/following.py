"""What a tree keeps when its game goes on: all that was found below the new root, or evaluations alone."""

import numpy as np

from ludus.core.jit import inner, njit
from ludus.search.tree import back_up, copy_row


@njit
def follow_games(tree, positions, given, counts, over, with_visits):
    """Go on from what was found of these positions (`Search.follow`), or without visits only from what was
    evaluated (`Search.restart`).

    positions: uint8 [G, M, B]; given: uint8 [N, B]; counts: of legal actions, [N]; over: bool [N]
    """
    old = np.empty(positions.shape[1], np.int32)
    for g in range(len(given)):
        top = find_position(positions[g], tree.used[g], given[g])
        whole = top >= 0 and (over[g] or tree.edges[g, top] == counts[g])
        if whole if with_visits else top >= 0 and tree.open[g, top] > 0:
            for node in range(keep_subtree(tree, g, top, with_visits, old)):
                copy_row(positions[g, old[node]], positions[g, node])
            if not with_visits:
                forget_visits(tree, g, whole)
        else:
            copy_row(given[g], positions[g, 0])
            tree.used[g] = 0


@inner
def find_position(positions, used, given):
    """The node of a position, or -1. positions: uint8 [M, B]; given: uint8 [B]"""
    for node in range(used):
        place = 0
        while place < len(given) and positions[node, place] == given[place]:
            place += 1
        if place == len(given):
            return node
    return -1


@inner
def keep_subtree(tree, g, top, with_proven, old):
    """Make `top` the root and forget all that is not below it; how many nodes there are then.

    with_proven: False forgets also what is proven. old: int32 [M], to be written: where nodes were before
    """
    new = np.full(tree.used[g], -1, np.int32)
    kept = filled = 0
    for node in range(top, tree.used[g]):  # children come after their parents, and so do their edges
        below = node == top or (tree.parent[g, node] >= 0 and new[tree.parent[g, node]] >= 0)
        if below and (with_proven or tree.open[g, node] > 0):
            new[node], old[kept] = kept, node
            kept += 1
    for node in range(kept):
        was = old[node]
        tree.visits[g, node], tree.edges[g, node] = tree.visits[g, was], tree.edges[g, was]
        tree.total[g, node], tree.first[g, node] = tree.total[g, was], tree.first[g, was]
        tree.open[g, node], tree.seat[g, node] = tree.open[g, was], tree.seat[g, was]
        tree.parent[g, node] = new[tree.parent[g, was]]
        moved = tree.start[g, was] - filled
        tree.best[g, node] = tree.best[g, was] - moved if tree.best[g, was] >= 0 else -1
        tree.start[g, node] = filled
        for e in range(filled, filled + tree.edges[g, node]):
            tree.action[g, e], tree.prior[g, e] = tree.action[g, e + moved], tree.prior[g, e + moved]
            tree.tries[g, e], tree.mean[g, e] = tree.tries[g, e + moved], tree.mean[g, e + moved]
            child = tree.child[g, e + moved]
            tree.child[g, e] = new[child] if child >= 0 else -1
            if tree.child[g, e] >= 0:
                tree.edge[g, tree.child[g, e]] = e
            elif child >= 0:
                tree.open[g, node] += 1
        filled = tree.room if node == 0 else filled + tree.edges[g, node]
    tree.parent[g, 0], tree.used[g], tree.filled[g] = -1, kept, filled
    return kept


@inner
def forget_visits(tree, g, whole):
    """A tree of which nothing is proven, as if it had never been visited, but its nodes need no evaluation.

    whole: the root has all its edges; else it must be evaluated once more, as any node that becomes a root
    """
    for node in range(tree.used[g]):
        tree.visits[g, node], tree.best[g, node] = 0, -1
        tree.total[g, node] = 0
        start = tree.start[g, node]
        tree.tries[g, start : start + tree.edges[g, node]] = 0
    if whole:
        back_up(tree, g, 0, tree.first[g, 0])
        return
    for node in range(1, tree.used[g]):
        if tree.parent[g, node] == 0:
            tree.edge[g, node] = tree.action[g, tree.edge[g, node]]
