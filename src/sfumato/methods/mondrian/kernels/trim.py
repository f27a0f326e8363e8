"""Make a tree smaller or larger: nodes in another order, without some, or with more children.

Children always stand after their parents, side by side. The new order is breadth first.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import kernel

NODES, LEAVES, FILES, HEIGHT = range(4)
"""What limits the size of a tree: entries of ``most`` and ``stopped`` in ``fill_kept``."""


@kernel
def fill_parents(first_child, n_children, out):
    """The parent of each node, -1 for the root; out is (nodes,) int64."""
    out[0] = -1
    for node in range(first_child.shape[0]):
        for j in range(n_children[node]):
            out[first_child[node] + j] = node


@kernel
def add_to_parents(parent, out):
    """Add to each node what those below it have; out is (nodes,) int64   IN+OUT."""
    for back in range(1, parent.shape[0]):
        node = parent.shape[0] - back
        out[parent[node]] += out[node]


@kernel
def add_from_parents(parent, out):
    """Add to each node what those above it have; out is (nodes,) int64   IN+OUT."""
    for node in range(1, parent.shape[0]):
        out[node] += out[parent[node]]


@kernel
def fill_heights(parent, out):
    """How far below the root each node is; out is (nodes,) int64."""
    out[0] = 0
    for node in range(1, parent.shape[0]):
        out[node] = out[parent[node]] + 1


@kernel
def fill_kept(order, parent, height, n_children, is_large, most, is_kept, stopped):
    """Which splits the limits allow, in the given order; a split below one that is not made is not considered.

    order        (splits,) nodes, parents before children                               IN
    n_children   (nodes,) int64, as they will be                                        IN
    is_large     (nodes,) bool: each child needs a file of its own                      IN
    most         (4,) nodes, leaves, files and height at most                           IN
    is_kept      (nodes,) bool                                                          OUT
    stopped      (4,) splits that were not made because of each limit                   OUT
    """
    n_nodes, n_leaves, n_files = np.int64(1), np.int64(1), np.int64(1)
    is_kept[:] = False
    stopped[:] = 0
    for i in range(order.shape[0]):
        node = order[i]
        if parent[node] >= 0 and not is_kept[parent[node]]:
            continue
        more = n_children[node]
        more_files = more - 1 if is_large[node] else np.int64(0)
        if height[node] >= most[HEIGHT]:
            stopped[HEIGHT] += 1
        elif n_nodes + more > most[NODES]:
            stopped[NODES] += 1
        elif n_leaves + more - 1 > most[LEAVES]:
            stopped[LEAVES] += 1
        elif n_files + more_files > most[FILES]:
            stopped[FILES] += 1
        else:
            is_kept[node] = True
            n_nodes, n_leaves, n_files = n_nodes + more, n_leaves + more - 1, n_files + more_files


@kernel
def fill_remaining(first_child, n_children, is_split, is_there, place, order, first, n):
    """The nodes of a tree with only some of its splits and nodes; returns how many there are.

    is_split   (nodes,) bool                                                 IN
    is_there   (nodes,) bool: children that are not are left out             IN
    place      (nodes,) int64: where each new one stands                     OUT
    order      (nodes,) int64: which node that is                            OUT
    first, n   (nodes,) int32: first child and number of children of each    OUT

    ``place`` and ``order`` differ where all children of a split but one are left out: that child takes the place of its
    parent.
    """
    place[0] = 0
    n_nodes, at = 1, 0
    while at < n_nodes:
        node = place[at]
        while True:
            begin = n_nodes
            if is_split[node]:
                for j in range(n_children[node]):
                    if is_there[first_child[node] + j]:
                        place[n_nodes] = first_child[node] + j
                        n_nodes += 1
            if n_nodes - begin != 1 or n_children[node] == 1:
                break
            node, n_nodes = place[begin], begin
        order[at] = node
        first[at], n[at] = begin if n_nodes > begin else -1, n_nodes - begin
        at += 1
    return n_nodes


@kernel
def fill_completed(nodes, n_children, child_start, child, out):
    """The tree with all children of each hierarchy's node that is split.

    nodes               Nodes                                              IN
    n_children          (nodes,) int64: how many children each will have   IN
    child_start, child  of ``Axes``                                        IN
    out                 Nodes, of as many as there will be                 OUT
    """
    origin = np.empty(out.axis.shape[0], dtype=np.int64)  # the node that each new one was, -1: none
    origin[0] = 0
    out.branch[0], out.start[0], out.end[0] = nodes.branch[0], nodes.start[0], nodes.end[0]
    n_nodes = 1
    for at in range(origin.shape[0]):
        node = origin[at]
        out.axis[at], out.threshold[at], out.first_child[at], out.n_children[at] = -1, -1, -1, 0
        out.otherwise[at] = -1
        if node < 0 or nodes.axis[node] < 0:
            continue
        out.axis[at], out.threshold[at] = nodes.axis[node], nodes.threshold[node]
        out.otherwise[at] = nodes.otherwise[node]
        out.first_child[at], out.n_children[at] = n_nodes, n_children[node]
        old, old_end = nodes.first_child[node], nodes.first_child[node] + nodes.n_children[node]
        is_complete = nodes.n_children[node] == n_children[node]
        here = nodes.start[node]
        for j in range(n_children[node]):
            value = nodes.branch[old] if is_complete else child[child_start[nodes.threshold[node]] + j]
            is_known = old < old_end and nodes.branch[old] == value
            origin[n_nodes] = old if is_known else -1
            out.branch[n_nodes], out.start[n_nodes] = value, here
            here = nodes.end[old] if is_known else here
            out.end[n_nodes] = here
            old += 1 if is_known else 0
            n_nodes += 1
