"""Rothko-S without its rows: growth on a sample, early stops, and what is undone [LDR08, section 5.2].

problem = optimistic_problem(...)            tests instead of definitions
nodes = grow_on_sample(...)                  (optimistic) growth phase
nodes, stops = cut(nodes, axes=...)          as much of the tree as memory holds
nodes = complete(nodes, axes)                values that the sample lacks get their leaves
statistics.add(rows, leaves)                 repartitioning phase: every row of the population
pruned = prune(nodes, statistics, rules)     pruning phase
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.kernels.problem import Rules, work_of
from sfumato.methods.mondrian.kernels.tally import add_rows, fill_holds
from sfumato.methods.mondrian.kernels.trim import (
    add_from_parents,
    add_to_parents,
    fill_completed,
    fill_heights,
    fill_kept,
    fill_order,
    fill_parents,
)
from sfumato.methods.mondrian.memory import Begun, MemoryEngine, Open, Progress, one_node, range_of_codes
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.sample_tests import rules_on_sample
from sfumato.policy.options.mondrian import MondrianOptions

Ints = NDArray[np.int64]


# ---- growth ----------------------------------------------------------------------------------------


def optimistic_problem(
    problem: Problem,
    *,
    n: int,
    N: int,  # noqa: N803 - the paper's letter
    options: MondrianOptions,
) -> Problem:
    """The same problem for n of N rows: a split is made if the tests of ``sample_tests`` say so."""
    rules = rules_on_sample(
        problem.rules, problem.axes, n_sample=n, n_rows=N, alpha=options.alpha, tests=options.tests
    )
    return replace(problem, rules=rules)


def choose_sample_size(n_rows: int, options: MondrianOptions, max_rows: int) -> int:
    """As many rows as the policy asks for, or else as fit in memory."""
    if options.sample is None:
        return min(max_rows, n_rows)
    wanted = options.sample if options.sample >= 1 else options.sample * n_rows
    return max(1, min(int(wanted), max_rows, n_rows))


def grow_on_sample(
    rows: NDArray[np.uint32],
    problem: Problem,
    known: NodeRange,
    *,
    threads: int | None = None,
    progress: Progress = lambda _: None,
) -> Nodes:
    """The partition tree of a sample, (n, axes and extra columns); start and end of a node count its rows."""
    n_axes = len(problem.axes.is_tree)
    codes = np.ascontiguousarray(rows[:, :n_axes])
    engine = MemoryEngine(codes, rows[:, n_axes:], threads=threads)
    own = replace(range_of_codes(codes, problem.axes), cover=known.cover, region=known.region)
    root = Open.of(0, len(rows), own)
    return engine.grow(
        problem.axes, problem.targets, problem.rules, cells=problem.cells, queries=problem.queries,
        begun=Begun(one_node(root, 1), {0: root}), progress=progress,
    )  # fmt: skip


# ---- early stops -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stops:
    """How many splits of the sample's tree were not made, and why; those below them are not counted."""

    by_tree: int = 0
    """The tree fills the memory."""
    by_statistics: int = 0
    """What pruning must know fills the memory."""
    by_buffers: int = 0
    """More files would get too little memory each to be written in large blocks."""
    by_height: int = 0
    """The tree is as high as it may be."""


def cut(
    nodes: Nodes,
    *,
    axes: Axes | None = None,
    max_nodes: int,
    max_statistics: int,
    max_files: int,
    rows_in_memory: float,
    max_height: int | None = None,
    rules: Rules,
) -> tuple[Nodes, Stops]:
    """As many splits of the tree as there is room for, those of the largest nodes first.

    With ``axes`` a split along a hierarchy counts all children that ``complete`` will give it. ``max_statistics``
    is in bytes. A node of at most ``rows_in_memory`` rows, on the scale of the sample, is one file whatever its
    splits; a larger one needs a file for each child.
    """
    n_rows = nodes.end - nodes.start
    parent = _parents(nodes)
    height = np.empty(len(parent), dtype=np.int64)
    fill_heights(parent, height)
    splits = np.flatnonzero(nodes.axis >= 0)
    by_size = splits[np.argsort(-n_rows[splits], kind="stable")]  # a part is smaller than its whole
    max_leaves = max(1, max_statistics // Statistics.bytes_per_leaf(rules))
    no_limit = np.iinfo(np.int64).max
    room = np.array([max_nodes, max_leaves, max_files, max_height or no_limit], dtype=np.int64)
    is_kept = np.empty(len(parent), dtype=np.bool_)
    stopped = np.empty(4, dtype=np.int64)
    fill_kept(
        by_size, parent, height, _count_children(nodes, axes), n_rows > rows_in_memory, room, is_kept, stopped
    )
    return _only(nodes, is_kept, np.ones_like(is_kept))[0], Stops(*stopped.tolist())


def _count_children(nodes: Nodes, axes: Axes | None) -> NDArray[np.int64]:
    """How many children each node will have."""
    if axes is None:
        return nodes.n_children.astype(np.int64)
    is_tree = (nodes.axis >= 0) & axes.is_tree[np.maximum(nodes.axis, 0)]
    of_hierarchy = axes.n_children[np.where(is_tree, nodes.threshold, 0)] if is_tree.any() else 0
    return np.where(is_tree, of_hierarchy, nodes.n_children).astype(np.int64)


def _only(nodes: Nodes, is_split: NDArray[np.bool_], is_there: NDArray[np.bool_]) -> tuple[Nodes, Ints]:
    """The tree with only these splits and nodes; and which node each one was."""
    place, order = np.empty((2, len(is_split)), dtype=np.int64)
    first, n_children = np.empty((2, len(is_split)), dtype=np.int32)
    n = fill_order(nodes.first_child, nodes.n_children, is_split, is_there, place, order, first, n_children)
    origin = order[:n].copy()
    is_inner = n_children[:n] > 0
    return Nodes(
        axis=np.where(is_inner, nodes.axis[origin], np.int32(-1)),
        threshold=np.where(is_inner, nodes.threshold[origin], -1),
        first_child=first[:n].copy(),
        n_children=n_children[:n].copy(),
        branch=nodes.branch[place[:n]],
        start=nodes.start[origin],
        end=nodes.end[origin],
    ), origin


def complete(nodes: Nodes, axes: Axes) -> Nodes:
    """The tree with a leaf for every child of a hierarchy's node, also those that the sample lacks.

    Rows of the population may be there; ``prune`` drops the leaves where there are none.
    """
    whole = _count_children(nodes, axes)
    n = 1 + int(whole.sum())
    if n == len(nodes.axis):
        return nodes
    origin, branch, start, end = np.empty((4, n), dtype=np.int64)
    first, n_children = np.empty((2, n), dtype=np.int32)
    fill_completed(nodes, whole, axes.child_start, axes.child, origin, first, n_children, branch, start, end)
    is_inner = n_children > 0
    return Nodes(
        axis=np.where(is_inner, nodes.axis[origin], np.int32(-1)),
        threshold=np.where(is_inner, nodes.threshold[origin], -1),
        first_child=first,
        n_children=n_children,
        branch=branch,
        start=start,
        end=end,
    )


# ---- pruning ---------------------------------------------------------------------------------------


class Statistics:
    """What pruning must know of every leaf: rows, rows of each sensitive value, moments of each sensitive number.

    All are whole numbers and exact; a sum of squares is 2^32 times one number plus another.
    """

    def __init__(self, nodes: Nodes, rules: Rules) -> None:
        self.rules = rules
        leaves = np.flatnonzero(nodes.axis < 0)
        self.place = np.full(len(nodes.axis), -1, dtype=np.int64)
        """Of a node among the leaves."""
        self.place[leaves] = np.arange(len(leaves))
        n_values = int(rules.values["end"].max(initial=0))
        self.n_rows = np.zeros(len(leaves), dtype=np.int64)
        self.values = np.zeros((len(leaves), n_values), dtype=np.int64)
        self.moments = np.zeros((len(leaves), len(rules.variance), 4), dtype=np.int64)

    @staticmethod
    def bytes_per_leaf(rules: Rules) -> int:
        return 8 * (1 + int(rules.values["end"].max(initial=0)) + 4 * len(rules.variance))

    def add(self, rows: NDArray[np.uint32], leaf: NDArray[np.int64]) -> None:
        """Some rows of the population, (n, axes and extra columns), and the number of each one's leaf."""
        add_rows(
            rows, self.place[leaf], self.rules.values, self.rules.variance, self.n_rows, self.values,
            self.moments,
        )  # fmt: skip

    def holds(self, rules: Rules) -> NDArray[np.bool_]:
        """Does each leaf satisfy the requirement? An empty one does not."""
        out = np.zeros(len(self.n_rows), dtype=np.bool_)
        fill_holds(self.n_rows, self.values, self.moments, rules, work_of(rules), out)
        return out

    def together(self, places: list[int]) -> Statistics:
        """Of these leaves as one."""
        one = object.__new__(Statistics)
        one.rules, one.place = self.rules, np.zeros(1, dtype=np.int64)
        one.n_rows = self.n_rows[places].sum(keepdims=True)
        one.values = self.values[places].sum(axis=0, keepdims=True)
        one.moments = self.moments[places].sum(axis=0, keepdims=True)
        return one


class Pruned(NamedTuple):
    """A tree whose leaves satisfy the requirement; start and end of its nodes count all rows."""

    nodes: Nodes
    n_pruned: int
    """Nodes with rows that vanished."""
    origin: Ints
    """Which node each one was before."""
    n_rows: Ints
    """Of each node."""

    @property
    def is_split(self) -> bool:
        """Is any split left?"""
        return len(self.nodes.axis) > 1


def prune(nodes: Nodes, statistics: Statistics, rules: Rules) -> Pruned:
    """Undo the splits that break the requirement, given as the definitions say it.

    If a leaf violates it, all leaves below its parent are merged; if they still do, all below the grandparent,
    and so on [LDR08, section 5.2 and Figure 15]. Leaves without rows are dropped.
    """
    if len(rules.tests):
        raise InternalError("Pruning goes by the definitions, not by tests on a sample.")
    parent = _parents(nodes)
    is_split = nodes.axis >= 0
    place = statistics.place
    fine = statistics.holds(rules)
    wrong = np.flatnonzero(~is_split)
    wrong = wrong[~fine[place[wrong]] & (statistics.n_rows[place[wrong]] > 0)]
    vanished = np.zeros(len(parent), dtype=np.bool_)
    waiting = [-int(parent[node]) for node in wrong.tolist() if node > 0]
    heapq.heapify(waiting)  # children stand after their parents: the greatest number is never above another
    while waiting:
        node = -heapq.heappop(waiting)
        if not is_split[node] or vanished[node]:
            continue
        below = _below(nodes, is_split, node)
        vanished[below] = True
        is_split[node] = False
        merged = statistics.together([int(place[leaf]) for leaf in _leaves_below(nodes, node)])
        if node > 0 and merged.n_rows[0] > 0 and not merged.holds(rules)[0]:
            heapq.heappush(waiting, -int(parent[node]))
    n_rows = np.where(place >= 0, statistics.n_rows[place], 0)
    add_to_parents(parent, n_rows)
    kept, origin = _only(nodes, is_split, n_rows > 0)
    kept_rows = n_rows[origin]
    start = _starts(kept, kept_rows)
    kept = kept._replace(start=start, end=start + kept_rows)
    return Pruned(kept, int((vanished & (n_rows > 0)).sum()), origin, kept_rows)


def _starts(nodes: Nodes, n_rows: Ints) -> Ints:
    """Where the rows of each node begin if they are in the order of the leaves."""
    parent = _parents(nodes)
    before = np.cumsum(n_rows) - n_rows  # of the nodes side by side: within a family, and those before it
    eldest = nodes.first_child[parent]
    out = before - before[eldest]
    out[0] = 0
    add_from_parents(parent, out)
    return out


def _parents(nodes: Nodes) -> Ints:
    out = np.empty(len(nodes.axis), dtype=np.int64)
    fill_parents(nodes.first_child, nodes.n_children, out)
    return out


def _below(nodes: Nodes, is_split: NDArray[np.bool_], node: int) -> list[int]:
    """The nodes of the tree as it is now that stand below a node."""
    found = _children(nodes, node)
    for here in found:  # grows as it goes
        if is_split[here]:
            found += _children(nodes, here)
    return found


def _leaves_below(nodes: Nodes, node: int) -> list[int]:
    """The leaves of the whole tree below a node."""
    waiting, found = [node], []
    for here in waiting:  # grows as it goes
        if nodes.axis[here] >= 0:
            waiting += _children(nodes, here)
        else:
            found.append(here)
    return found


def _children(nodes: Nodes, node: int) -> list[int]:
    first = int(nodes.first_child[node])
    return list(range(first, first + int(nodes.n_children[node])))
