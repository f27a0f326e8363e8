"""Send rows of codes down a tree, to the numbers of their leaves.

The tree is first written down as a list of *turns*, each a comparison of one code with one threshold. A split
by threshold is one turn; a split along a hierarchy, whose children are ranges of codes, is a binary search,
a turn each. Then a row needs no more than one record of 16 bytes per turn, and no branch that can be
mispredicted. A block of rows goes down together, a turn at a time, so that the memory has many of them to
fetch at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.kernels.compile import inner, kernel
from sfumato.kernels.nodes import Nodes

Turns = NDArray[np.uint32]
"""(turns, 4): axis, threshold, the way of codes up to it, the way of the others. A way is the number of the next
turn; with the highest bit set it ends, at the node of its other bits, or with all bits set nowhere."""

END = 1 << 31
NOWHERE = 0xFFFFFFFF
TOGETHER = 512
"""Rows that go down the tree together."""


@inner(borrows=True)
def fill_segments(node, nodes, way, axes, upto, goal):
    """The ranges of codes that a split tells apart, ascending; returns how many.

    way          (nodes,) how each child is entered                              IN
    upto, goal   (2 * children + 2,) last code of each range and where it goes   OUT
    """
    first = nodes.first_child[node]
    a = nodes.axis[node]
    if not axes.is_tree[a]:
        upto[0], goal[0], goal[1] = nodes.threshold[node], way[first], way[first + 1]
        if nodes.otherwise[node] != 1 or axes.least_code[a] == 0:
            return 2
        upto[0], upto[1] = 0, nodes.threshold[node]  # missing, then the others up to the threshold
        goal[0], goal[1], goal[2] = way[first + 1], way[first], way[first + 1]
        return 3
    m, after = 0, np.int64(0)
    n_named, elsewhere = nodes.n_children[node], np.int64(NOWHERE)
    if nodes.branch[first + n_named - 1] < 0:  # the rest
        n_named -= 1
        elsewhere = way[first + n_named]
    for j in range(n_named):
        child = first + j
        low, high = axes.node_low[nodes.branch[child]], axes.node_high[nodes.branch[child]]
        if low > after:
            upto[m], goal[m] = low - 1, elsewhere
            m += 1
        upto[m], goal[m] = high - 1, way[child]
        m += 1
        after = high
    if after < axes.node_high[axes.root[a]]:
        goal[m] = elsewhere
        m += 1
    return m


@kernel
def fill_turns(nodes, axes, out):
    """Write a tree down as turns, at the end of ``out``; returns (the way to begin with, where they start).

    nodes  Nodes                      IN
    axes   Axes                       IN
    out    (enough, 4) uint32         OUT  see ``Turns``; numbers of turns count from out[0]

    Children stand after their parents, as growth leaves them.
    """
    n_nodes = nodes.axis.shape[0]
    way = np.empty(n_nodes, dtype=np.int64)  # how each node is entered
    most = 2
    for node in range(n_nodes):
        most = max(most, np.int64(nodes.n_children[node]))
    upto, goal = np.empty(2 * most + 2, dtype=np.int64), np.empty(2 * most + 2, dtype=np.int64)
    waiting = np.empty((64, 2), dtype=np.int64)
    end = out.shape[0]
    for back in range(n_nodes):
        node = n_nodes - 1 - back
        if nodes.axis[node] < 0:
            way[node] = END | node
            continue
        m = fill_segments(node, nodes, way, axes, upto, goal)
        # the turn at base + j parts range j from range j + 1; a search among ranges first..last starts in their middle
        base = end - (m - 1)
        end = base
        way[node] = base + (m - 1) // 2 if m > 1 else goal[0]
        depth = 0
        if m > 1:
            waiting[0, 0], waiting[0, 1] = 0, m - 1
            depth = 1
        while depth > 0:
            depth -= 1
            first, last = waiting[depth, 0], waiting[depth, 1]
            middle = (first + last) // 2
            at = base + middle
            out[at, 0], out[at, 1] = nodes.axis[node], max(upto[middle], 0)
            if first == middle:
                out[at, 2] = goal[first]
            else:
                out[at, 2] = base + (first + middle) // 2
                waiting[depth, 0], waiting[depth, 1] = first, middle
                depth += 1
            if middle + 1 == last:
                out[at, 3] = goal[last]
            else:
                out[at, 3] = base + (middle + 1 + last) // 2
                waiting[depth, 0], waiting[depth, 1] = middle + 1, last
                depth += 1
    return way[0], end


@kernel
def fill_leaves(rows, turns, start, out):
    """The leaf of each row.

    rows    (n, at least axes) uint32 of codes                        IN
    turns   (turns, 4) uint32                                         IN
    start   the first turn, or how a tree without turns ends
    out     (n,) int64: node number, -1 where the tree has no leaf    OUT
    """
    row_of, at = np.empty(TOGETHER, dtype=np.uint32), np.empty(TOGETHER, dtype=np.uint32)
    first = np.uint32(start)
    for begin in range(0, rows.shape[0], TOGETHER):
        found = out[begin : begin + TOGETHER]
        if first < np.uint32(END):
            follow(rows[begin : begin + TOGETHER], turns, first, row_of, at, found)
        else:
            found[:] = leaf_of(first)


@inner(borrows=True)
def leaf_of(way):
    """The leaf that a way ends in, -1 if it leads nowhere."""
    return np.int64(-1) if way == np.uint32(NOWHERE) else np.int64(way & np.uint32(END - 1))


@inner(borrows=True)
def follow(part, turns, first, row_of, at, out):
    """The leaf of each row of ``part``, from turn ``first`` on: all rows take one turn, then those that go on the next.

    row_of, at   (rows or more,) the rows that go on and their next turn   scratch
    out          (rows,)                                                    OUT
    """
    one, is_end = np.uint64(1), np.uint32(END)
    n_open = np.uint64(part.shape[0])
    for i in range(n_open):
        row_of[i], at[i] = np.uint32(i), first
    while n_open > 0:
        n_left = np.uint64(0)
        for j in range(n_open):
            i = np.uint64(row_of[j])
            turn = turns[np.uint64(at[j])]
            right = np.uint64(part[i, np.uint64(turn[0])] > turn[1])
            way = turn[np.uint64(2) + right]
            row_of[n_left], at[n_left] = np.uint32(i), way
            out[i] = way
            n_left += one - np.uint64(way >= is_end)
        n_open = n_left
    for i in range(np.uint64(part.shape[0])):
        out[i] = leaf_of(np.uint32(out[i]))


class Descent:
    """A tree, made ready for many rows.

    A row outside every child of a split along a hierarchy belongs to no leaf.
    """

    def __init__(self, nodes: Nodes, axes: Axes) -> None:
        room = 2 * int(nodes.n_children.sum()) + 2 * len(nodes.axis) + 2
        out = np.empty((room, 4), dtype=np.uint32)
        self.start, end = fill_turns(nodes, axes, out)
        self.turns: Turns = out[end:].copy()
        if self.start < END:
            self.start -= end
        ways = self.turns[:, 2:]
        ways[ways < END] -= end

    def leaves(self, rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The number of each row's leaf among the nodes, -1 where there is none."""
        out = np.empty(len(rows), dtype=np.int64)
        fill_leaves(rows, self.turns, self.start, out)
        return out
