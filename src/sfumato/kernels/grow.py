"""Depth-first growth of a partition tree: choose a split, move the rows in place, repeat.

A tree is a set of parallel arrays, one entry per node; the children of a node stand next to each other:

    axis         the attribute that the node is split on, -1 for a leaf
    threshold    ordered attribute: the last code (of the whole table) that goes left; tree: the node it specializes
    first_child, n_children
    branch       what makes this node its parent's child: 0 left, 1 right, or the hierarchy node
    start, end   the node's rows
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.borrow import borrowed
from sfumato.kernels.choose import choose_median, choose_scored, fill_children, information
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.frequency import cover, range_of, rank_again


class Nodes(NamedTuple):
    """The tree that a kernel writes."""

    axis: NDArray[np.int32]
    threshold: NDArray[np.int64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


@inner
def partition(part, axis, code):
    """Move the rows with at most ``code`` to the front: (how many they are, a row with their greatest code)."""
    column = part[:, axis]
    left, right = np.uint64(0), np.uint64(column.shape[0])
    border, greatest = np.uint64(0), np.int64(-1)
    one = np.uint64(1)
    while True:
        while left < right and column[left] <= code:
            if column[left] > greatest:
                border, greatest = left, np.int64(column[left])
            left += one
        while left < right and column[right - one] > code:
            right -= one
        if left >= right:
            break
        last = right - one
        for w in range(part.shape[1]):
            x = part[left, w]
            part[left, w] = part[last, w]
            part[last, w] = x
    return np.int64(left), np.int64(border)


@inner
def arrange(rows, start, n, order):
    """Put the rows into the given order: rows[start + j] becomes the old rows[order[j]]."""
    held = np.empty(rows.shape[1], dtype=rows.dtype)
    for j in range(n):
        if order[j] == start + j or order[j] < 0:
            continue
        held[:] = rows[start + j]
        place = j
        while order[place] != start + j:
            source = order[place] - start
            rows[start + place] = rows[start + source]
            order[place] = -1
            place = source
        rows[start + place] = held
        order[place] = -1


@inner
def prepare(rows, start, end, low, high, is_exact, cover_of, axes, scratch):
    """Before a scored choice: covers of the trees, and dense ranks for attributes that are mostly gaps."""
    n = end - start
    for axis in range(axes.is_tree.shape[0]):
        if not axes.may_split[axis] or low[axis] >= high[axis]:
            continue
        if axes.is_tree[axis]:
            if not is_exact[axis]:
                low[axis], high[axis] = range_of(rows[start:end, axis], low[axis], high[axis])
                is_exact[axis] = True
                cover_of[axis] = cover(axes, cover_of[axis], low[axis], high[axis])
        elif high[axis] - low[axis] + 1 > 2 * n:
            high[axis] = rank_again(rows[start:end, axis], low[axis], high[axis], scratch.bins) - 1
            low[axis] = 0


@inner
def gain_of(rows, start, end, targets, table, score):
    """What a score takes away per row, on the scale of ``median_below_gain``.

    Labels: bits. Numbers: squared error over the target's variance in the whole table.
    """
    n = end - start
    worth = score
    for t in range(targets.class_column.shape[0]):
        counts = np.zeros(targets.n_classes[t], dtype=np.int64)
        for i in range(start, end):
            counts[rows[i, targets.class_column[t]]] += 1
        label = -information(n, table)
        for count in counts:
            label += information(count, table)
        worth -= targets.class_weight[t] * label
    return worth * targets.gain_scale / n


@inner
def split_node(rows, codes, node, nodes, n_nodes, low, high, cover_of, axes, targets, rules, table, scratch):
    """Split one node if an allowable split exists: (new number of nodes, border).

    rows        (n, columns) uint32  IN+OUT  this node's slice is put in the order of its children
    codes       (n, axes) uint32     IN      codes of the whole table, by row number
    nodes                            IN+OUT  the children are appended
    low, high   (axes,)              IN+OUT  bounds of this node's codes, as they stand in ``rows``
    cover_of    (axes,)              IN+OUT  hierarchy node of a tree attribute that covers this node
    border: the last code that goes left, as it stands in ``rows``, for ``fill_child_bounds``
    """
    start, end = nodes.start[node], nodes.end[node]
    if end - start < 2 * rules.least_rows or end - start < 2:
        return n_nodes, np.int64(-1)
    is_exact = np.zeros(axes.is_tree.shape[0], dtype=np.bool_)
    by_median = targets.class_column.shape[0] + targets.number_column.shape[0] == 0
    axis, code = np.int64(-1), np.int64(-1)
    if not by_median:
        prepare(rows, start, end, low, high, is_exact, cover_of, axes, scratch)
        axis, code, score = choose_scored(
            rows, start, end, low, high, cover_of, axes, targets, rules, table, scratch
        )
        if axis >= 0 and targets.median_below_gain > 0.0:
            by_median = gain_of(rows, start, end, targets, table, score) < targets.median_below_gain
            if by_median:
                restore_codes(rows, codes, start, end, low, high, is_exact, axes)
    if by_median:
        axis, code = choose_median(rows, start, end, low, high, is_exact, cover_of, axes, rules, scratch)
    if axis < 0:
        return n_nodes, np.int64(-1)
    return divide(rows, codes, node, nodes, n_nodes, cover_of, axis, code, axes, scratch)


@inner
def restore_codes(rows, codes, start, end, low, high, is_exact, axes):
    """Give the rows of a node their own codes back: Median measures width in real values, not in ranks."""
    row_number = rows.shape[1] - 1
    for axis in range(axes.is_tree.shape[0]):
        if not axes.is_tree[axis] and axes.may_split[axis]:
            for i in range(start, end):
                rows[i, axis] = codes[rows[i, row_number], axis]
            low[axis], high[axis] = range_of(rows[start:end, axis], -1, -1)
            is_exact[axis] = True


@inner
def divide(rows, codes, node, nodes, n_nodes, cover_of, axis, code, axes, scratch):
    """Carry out a split: move the rows, append the children."""
    start, end = nodes.start[node], nodes.end[node]
    nodes.axis[node] = axis
    nodes.first_child[node] = n_nodes
    if axes.is_tree[axis]:
        parent = cover_of[axis]
        m = fill_children(rows, start, end, axis, parent, axes, scratch)
        arrange(rows, start, end - start, scratch.order)
        nodes.threshold[node] = parent
        nodes.n_children[node] = m
        before = start
        for j in range(m):
            after = start + scratch.total[0, j]
            branch = axes.child[axes.child_start[parent] + scratch.code[j]]
            append(n_nodes + j, before, after, branch, nodes)
            before = after
        return n_nodes + m, np.int64(-1)
    n_left, at_border = partition(rows[start:end], axis, code)
    middle, at_border = start + n_left, start + at_border
    nodes.threshold[node] = codes[rows[at_border, rows.shape[1] - 1], axis]
    nodes.n_children[node] = 2
    append(n_nodes, start, middle, np.int64(0), nodes)
    append(n_nodes + 1, middle, end, np.int64(1), nodes)
    return n_nodes + 2, np.int64(rows[at_border, axis])


@kernel
def append(child, start, end, branch, nodes):
    """A new open node."""
    nodes.axis[child] = -1
    nodes.threshold[child] = -1
    nodes.first_child[child] = -1
    nodes.n_children[child] = 0
    nodes.start[child], nodes.end[child], nodes.branch[child] = start, end, branch


@kernel
def fill_child_bounds(child, axis, border, nodes, axes, low, high, cover_of):
    """Narrow its parent's bounds, which stand in low, high and cover_of, to a child's."""
    if axes.is_tree[axis]:
        branch = nodes.branch[child]
        cover_of[axis] = branch
        low[axis], high[axis] = axes.node_low[branch], axes.node_high[branch] - 1
    elif nodes.branch[child] == 0:
        high[axis] = border
    else:
        low[axis] = border + 1


@kernel
def fill_subtree(
    rows, codes, nodes, once, first_low, first_high, first_cover, axes, targets, rules, table, scratch
):
    """Grow everything below node 0, depth first, or with ``once`` split node 0 alone.

    Returns (number of nodes, border of the split of node 0); with ``once`` the bounds that came in are tightened.
    """
    rows, codes, table = borrowed(rows), borrowed(codes), borrowed(table)
    nodes, axes, targets, rules, scratch = (
        borrowed(nodes), borrowed(axes), borrowed(targets), borrowed(rules), borrowed(scratch),
    )  # fmt: skip
    n_axes = axes.is_tree.shape[0]
    capacity = 256
    stack = np.empty(capacity, dtype=np.int64)  # open nodes, each with its bounds
    low = np.empty((capacity, n_axes), dtype=np.int64)
    high = np.empty((capacity, n_axes), dtype=np.int64)
    cover_of = np.empty((capacity, n_axes), dtype=np.int64)
    stack[0], low[0], high[0], cover_of[0] = 0, first_low, first_high, first_cover
    here_low, here_high, here_cover = (
        np.empty_like(first_low),
        np.empty_like(first_low),
        np.empty_like(first_low),
    )
    depth, n_nodes = 1, np.int64(1)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        here_low[:], here_high[:], here_cover[:] = low[depth], high[depth], cover_of[depth]
        before = n_nodes
        n_nodes, border = split_node(
            rows,
            codes,
            node,
            nodes,
            n_nodes,
            here_low,
            here_high,
            here_cover,
            axes,
            targets,
            rules,
            table,
            scratch,
        )
        if once:
            first_low[:], first_high[:], first_cover[:] = here_low, here_high, here_cover
            return n_nodes, border
        if depth + n_nodes - before > capacity:
            more = depth + n_nodes - before
            stack = np.concatenate((stack, np.empty(more, dtype=np.int64)))
            room = np.empty((more, n_axes), dtype=np.int64)
            low, high = np.concatenate((low, room)), np.concatenate((high, room))
            cover_of = np.concatenate((cover_of, room))
            capacity += more
        for child in range(n_nodes - 1, before - 1, -1):
            stack[depth], low[depth], high[depth], cover_of[depth] = child, here_low, here_high, here_cover
            fill_child_bounds(
                child, nodes.axis[node], border, nodes, axes, low[depth], high[depth], cover_of[depth]
            )
            depth += 1
    return n_nodes, np.int64(-1)


@kernel
def fill_covers(rows, start, end, axes, out):
    """For each leaf the lowest hierarchy node of each tree attribute that covers its rows.

    start, end   (leaves,)                        IN
    out          (leaves, axes) int64, -1: ordered OUT
    """
    for leaf in range(start.shape[0]):
        for axis in range(axes.is_tree.shape[0]):
            out[leaf, axis] = -1
            if axes.is_tree[axis]:
                least, greatest = range_of(rows[start[leaf] : end[leaf], axis], -1, -1)
                out[leaf, axis] = cover(axes, axes.root[axis], least, greatest)


@kernel
def shuffle_leaves(start, end, keys, out):
    """Random order within each leaf (Fisher-Yates); ``out`` lists row numbers leaf by leaf.

    keys   (n,) uniform in [0, 1)   IN
    out    (n,)                     IN+OUT
    """
    for leaf in range(start.shape[0]):
        for i in range(end[leaf] - 1, start[leaf], -1):
            j = start[leaf] + np.int64(keys[i] * (i - start[leaf] + 1))
            x = out[i]
            out[i] = out[j]
            out[j] = x
