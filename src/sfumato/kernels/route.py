"""Send rows down a finished tree.

Here ordered values are real numbers, not codes: a row that the tree never saw has no code.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.late import Late


@Late
def fill_places(
    values, tree_nodes, column, is_tree, axis, threshold, first_child, n_children, first_branch, branch, otherwise,
    last, end, out,
):  # fmt: skip
    """Send each row down from the node that it is at, to a leaf or as far as the tree knows its values.

    A row that reaches a node from ``end`` on stops there, and another call goes on with it: only nodes before ``end``
    are read.

    values        (n, ordered) float64, missing -inf, or NaN where the tree knows no missing    IN
    tree_nodes    (n, trees) int64: the row's hierarchy node, all axes numbered in one sequence IN
    column        (axes,) column of ``values`` or ``tree_nodes``                                IN
    first_branch  (nodes,) where the branches of a node's children begin in ``branch``          IN
    branch        (children,) hierarchy nodes, numbered as in ``tree_nodes``, -1 for the rest       IN
    otherwise     (nodes,) which child takes missing numbers and values that no branch names, -1: none   IN
    last          (hierarchy nodes,) the last descendant of each                                IN
    out           (n,) int64: the node that the row is at                                       IN+OUT
    """
    for i in range(out.shape[0]):
        node = out[i]
        while node < end and axis[node] >= 0:
            a = axis[node]
            first, n = np.int64(first_child[node]), np.int64(n_children[node])
            if a >= is_tree.shape[0]:  # a list of cells
                break
            if is_tree[a]:
                wanted = tree_nodes[i, column[a]]
                at = np.int64(first_branch[node])
                low, high = np.int64(0), n - 1
                if branch[at + high] < 0:  # the rest is asked last
                    high -= 1
                while low < high:
                    middle = (low + high + 1) // 2
                    if branch[at + middle] <= wanted:
                        low = middle
                    else:
                        high = middle - 1
                if branch[at + low] <= wanted <= last[branch[at + low]]:
                    node = first + low
                elif otherwise[node] >= 0:
                    node = first + otherwise[node]
                else:
                    break
            else:
                x = values[i, column[a]]
                if otherwise[node] >= 0 and not x > -np.inf:
                    node = first + otherwise[node]
                elif np.isnan(x):
                    break
                else:
                    node = first if x <= threshold[node] else first + 1
        out[i] = node


@Late
def fill_boxes(
    is_tree, axis, threshold, first_child, n_children, branch, otherwise, start, end, low, high, missing
):
    """The boxes of the children of the nodes from ``start`` up to ``end``; parents come before children.

    Ordered axes: low < x <= high, or with ``missing`` no value at all; a low of NaN means that nothing limits it, and a
    high of -inf that missing stands alone. Tree axes: ``low`` is the hierarchy node, and ``high`` the last split of this
    axis whose rest the node is in; -1 in none, and inf where nobody asks.
    low, high   (nodes, axes) float64, the lines of these nodes filled in   IN+OUT
    missing     (nodes, axes) bool                                           IN+OUT
    """
    for node in range(start, end):
        a = axis[node]
        if a < 0:
            continue
        for j in range(n_children[node]):
            child = first_child[node] + j
            for b in range(
                low.shape[1]
            ):  # low[child] = low[node] would take seconds to compile, for its errors
                low[child, b] = low[node, b]
                high[child, b] = high[node, b]
                missing[child, b] = missing[node, b]
            if a >= is_tree.shape[0]:  # cells of a list: their labels say more
                continue
            if is_tree[a]:
                if branch[child] >= 0:
                    low[child, a] = branch[child]
                elif high[child, a] < np.inf:
                    high[child, a] = node
                continue
            is_with = j == max(otherwise[node], 0)  # missing is the lowest number, unless a child takes it
            missing[child, a] = missing[node, a] and is_with
            if j == 0:
                high[child, a] = threshold[node]
            elif threshold[node] > -np.inf or np.isnan(low[node, a]):
                low[child, a] = threshold[node]
