"""The steps of Rothko-S on its tree [LDR08, section 5.2]; ``tree_run`` reads and writes the rows between them.

problem = optimistic_problem(...)                 tests in place of definitions
nodes = grow_on_sample(...)                       (optimistic) growth phase
nodes, stops = trim_tree(nodes, axes, ...)        as much of the tree as memory holds
nodes = complete(nodes, axes)                     values that the sample lacks get their leaves
statistics.add(rows, leaves)                      repartitioning phase: every row of the population
pruned = prune(nodes, statistics)                 pruning phase: undo the splits that break the requirement
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.errors import InternalError
from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.begun_tree import BegunTree
from sfumato.methods.mondrian.kernels.problem import NODE, REST, Rules
from sfumato.methods.mondrian.kernels.trim import (
    add_from_parents,
    add_to_parents,
    fill_completed,
    fill_heights,
    fill_kept,
    fill_parents,
    fill_remaining,
)
from sfumato.methods.mondrian.memory import RowCounter, TreeGrower, range_of_codes
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.people import person_column
from sfumato.methods.mondrian.people_counts import PeopleStatistics
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.sample_tests import rules_on_sample
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.methods.mondrian.subtree import list_children, list_leaves
from sfumato.policy.options.mondrian import MondrianOptions

SAMPLE_SEED = 0
"""Samples are drawn from this unless a seed is given: same input and policy, same boxes."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


# ---- growth ----------------------------------------------------------------------------------------


def optimistic_problem(
    problem: SplitProblem,
    *,
    n: int,
    N: int,  # noqa: N803 - the paper's letter
    options: MondrianOptions,
) -> SplitProblem:
    """The same problem for n of N rows, or people: a split is made if the tests of ``sample_tests`` say so."""
    rules = rules_on_sample(
        problem.rules, problem.axes, n_sample=n, n_rows=N, alpha=options.alpha, tests=options.tests
    )
    return replace(problem, rules=rules, leaves_rows_out=False)


def choose_sample_size(n_rows: int, options: MondrianOptions, max_rows: int) -> int:
    """As many rows as the policy asks for, or else as fit in memory."""
    if options.sample is None:
        return min(max_rows, n_rows)
    wanted = options.sample if options.sample >= 1 else options.sample * n_rows
    return max(1, min(int(wanted), max_rows, n_rows))


def grow_on_sample(
    rows: NDArray[np.uint32],
    problem: SplitProblem,
    known: NodeRange,
    *,
    threads: int | None = None,
    progress: RowCounter = lambda _: None,
) -> Nodes:
    """The partition tree of a sample, (n, axes and extra columns); start and end of a node count its rows."""
    grower = TreeGrower(rows, len(problem.axes.is_tree), rules=problem.rules, threads=threads)
    own = replace(range_of_codes(grower.rows, problem.axes), cover=known.cover, region=known.region)
    if problem.loss is not None:  # the ends of the box, not those of the rows
        own = known
    return grower.grow(problem, begun=BegunTree.of_root(own, len(rows)), progress=progress)


# ---- what fits in memory -----------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What a tree that was grown on a sample may take.

    max_nodes         nodes
    max_statistics    bytes of what pruning must know of its leaves
    max_files         files that rows are divided over
    rows_in_memory    rows of the sample up to which a node is one file, whatever its splits; the rows of a larger one
                      are divided, a file for each child
    max_height        splits above any node
    """

    max_nodes: int
    max_statistics: int
    max_files: int
    rows_in_memory: float
    max_height: int | None = None


def trim_tree(nodes: Nodes, axes: Axes, rules: Rules, limits: TreeLimits) -> tuple[Nodes, Stops]:
    """The tree with as many of its splits as the limits allow, those of the largest nodes first.

    A split along a hierarchy counts all children that ``complete`` will give it.
    """
    n_rows = nodes.end - nodes.start
    parent = find_parents(nodes)
    height = np.empty(len(parent), dtype=np.int64)
    fill_heights(parent, height)
    splits = np.flatnonzero(nodes.axis >= 0)
    by_size = splits[np.argsort(-n_rows[splits], kind="stable")]  # a part is smaller than its whole
    max_leaves = max(1, limits.max_statistics // GroupStatistics.bytes_per_group(rules))
    max_height = limits.max_height or np.iinfo(np.int64).max
    most = np.array([limits.max_nodes, max_leaves, limits.max_files, max_height], dtype=np.int64)
    is_large = n_rows > limits.rows_in_memory
    is_kept = np.empty(len(parent), dtype=np.bool_)
    stopped = np.empty(4, dtype=np.int64)
    fill_kept(by_size, parent, height, _count_children(nodes, axes), is_large, most, is_kept, stopped)
    return keep_splits(nodes, is_split=is_kept, is_there=np.ones_like(is_kept))[0], Stops(*stopped.tolist())


def _count_children(nodes: Nodes, axes: Axes) -> Ints:
    """How many children each node has once the tree is complete."""
    is_tree = (nodes.axis >= 0) & axes.is_tree[np.maximum(nodes.axis, 0)] & ~_has_rest(nodes)
    of_hierarchy = axes.n_children[np.where(is_tree, nodes.threshold, 0)] if is_tree.any() else 0
    return np.where(is_tree, of_hierarchy, nodes.n_children).astype(np.int64)


def _has_rest(nodes: Nodes) -> Flags:
    """Which splits have a child for the rest, so that none of its values can be lacking."""
    last = np.maximum(nodes.first_child + nodes.n_children - 1, 0)
    return np.asarray((nodes.axis >= 0) & (nodes.branch[last] == REST))


def keep_splits(nodes: Nodes, *, is_split: Flags, is_there: Flags) -> tuple[Nodes, Ints]:
    """The tree with only these splits and nodes, and which node of the old tree each one was."""
    place, order = np.empty((2, len(is_split)), dtype=np.int64)
    first, n_children = np.empty((2, len(is_split)), dtype=np.int32)
    n = fill_remaining(
        nodes.first_child, nodes.n_children, is_split, is_there, place, order, first, n_children
    )
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
        otherwise=np.where(is_inner, nodes.otherwise[origin], np.int32(-1)),
    ), origin


def complete(nodes: Nodes, axes: Axes) -> Nodes:
    """The tree with a leaf for every child of a hierarchy's node, also for those that the sample lacks.

    Rows of the population may be there; ``prune`` drops the leaves where there are none.
    """
    n_children = _count_children(nodes, axes)
    n = 1 + int(n_children.sum())
    if n == len(nodes.axis):
        return nodes
    out = Nodes(*(np.empty(n, dtype=NODE[name]) for name in Nodes._fields))
    fill_completed(nodes, n_children, axes.child_start, axes.child, out)
    return out


# ---- pruning ---------------------------------------------------------------------------------------


class LeafStatistics:
    """What pruning must know of the leaves of a tree.

    Rows of leaves add up. Where people count, they do not, for whoever is in two leaves is one: ``people`` are counted by
    keys until ``settle`` finds, level by level, which nodes would hold.
    """

    def __init__(self, nodes: Nodes, rules: Rules) -> None:
        self.rules = rules
        is_leaf = nodes.axis < 0
        self.place = np.where(is_leaf, _first_leaves(nodes), -1)
        """Where a node stands among the leaves, as they follow each other, -1 if it is none."""
        of_people = person_column(rules) is not None
        self.groups = GroupStatistics(int(is_leaf.sum()), Rules(1, 1, None) if of_people else rules)
        self.people: PeopleStatistics | None = None
        self._holds: Flags | None = None
        """Of each node, where people count: would it satisfy the requirement as one group?"""

    @property
    def n_rows(self) -> Ints:
        """The rows of each leaf."""
        return self.groups.n_rows

    def add(self, rows: NDArray[np.uint32], leaf: Ints) -> None:
        """Some rows of the population, (n, axes and extra columns), and the number of each one's leaf."""
        self.groups.add(rows, self.place[leaf])
        if self.people is not None:
            self.people.add(Block(rows, None))

    def merge(self, other: LeafStatistics) -> None:
        """The rows of another part of the population."""
        self.groups.merge(other.groups)
        if self.people is not None and other.people is not None:
            self.people.merge(other.people)

    def find_failing(self) -> Ints:
        """The leaves, by their numbers as nodes, that have rows and do not satisfy the requirement."""
        leaves = np.flatnonzero(self.place >= 0)
        holds = self.groups.hold()[self.place[leaves]] if self._holds is None else self._holds[leaves]
        return leaves[~holds & (self.n_rows[self.place[leaves]] > 0)]

    def holds_as_one(self, nodes: Nodes, node: int) -> bool:
        """Would the leaves below a node satisfy the requirement if they were one? Without any row, they would."""
        if self._holds is None:
            return self.groups.hold_as_one(self.place[list_leaves(nodes, node)])
        return bool(self._holds[node])

    def settle(self, nodes: Nodes) -> None:
        """All rows have been added: find which nodes would hold by their people, and let go of these."""
        people, self.people = self.people, None
        if people is not None:
            self._holds = _find_holding(nodes, people)
            people.discard()


def _find_holding(nodes: Nodes, people: PeopleStatistics) -> Flags:
    """Would each node satisfy the requirement as one group? The leaves below those of a level are joined to groups.

    people   counted in the leaves, in the order in which they follow each other
    """
    parent, first = find_parents(nodes), _first_leaves(nodes)
    height = np.empty(len(parent), dtype=np.int64)
    fill_heights(parent, height)
    leaves = np.flatnonzero(nodes.axis < 0)
    above = leaves[np.argsort(first[leaves])]
    out = np.empty(len(height), dtype=np.bool_)
    for level in range(int(height.max()), -1, -1):
        here = np.flatnonzero(height == level)
        here = here[np.argsort(first[here])]
        group = np.full(len(height), -1, dtype=np.int64)
        group[here] = np.arange(len(here))
        told = people.describe(0, group[above])
        out[here] = told.hold(people.plan.rules) | (told.n_people == 0)
        above = np.where(height[above] == level, parent[above], above)
    return out


def _first_leaves(nodes: Nodes) -> Ints:
    """The first leaf below each node, as leaves follow each other from 0 on."""
    n_leaves = (nodes.axis < 0).astype(np.int64)
    add_to_parents(find_parents(nodes), n_leaves)
    return _find_starts(nodes, n_leaves)


class PrunedTree(NamedTuple):
    """A tree whose leaves satisfy the requirement; start and end of its nodes count all rows."""

    nodes: Nodes
    n_pruned: int
    """How many nodes that have rows were undone."""
    origin: Ints
    """Which node each one was before."""
    n_rows: Ints
    """The rows of each node."""

    @property
    def is_split(self) -> bool:
        """Is any split left?"""
        return len(self.nodes.axis) > 1


def prune(nodes: Nodes, statistics: LeafStatistics) -> PrunedTree:
    """Undo the splits that break the requirement, by its definitions.

    If a leaf violates it, all leaves below its parent are merged; if they still do, all below the grandparent,
    and so on [LDR08, section 5.2 and Figure 15]. Leaves without rows are dropped.
    """
    if len(statistics.rules.tests):
        raise InternalError("Pruning goes by the definitions, not by tests on a sample.")
    parent = find_parents(nodes)
    is_split = nodes.axis >= 0
    is_undone = np.zeros(len(parent), dtype=np.bool_)
    waiting = [-int(parent[node]) for node in statistics.find_failing().tolist() if node > 0]
    heapq.heapify(waiting)  # children stand after their parents: the greatest number is never above another
    while waiting:
        node = -heapq.heappop(waiting)
        if not is_split[node] or is_undone[node]:
            continue
        is_undone[_list_below(nodes, is_split, node)] = True
        is_split[node] = False
        if node > 0 and not statistics.holds_as_one(nodes, node):
            heapq.heappush(waiting, -int(parent[node]))
    place = statistics.place
    n_rows = np.where(place >= 0, statistics.n_rows[place], 0)
    add_to_parents(parent, n_rows)
    kept, origin = keep_splits(nodes, is_split=is_split, is_there=n_rows > 0)
    kept_rows = n_rows[origin]
    start = _find_starts(kept, kept_rows)
    otherwise = find_otherwise(kept, kept_rows) if (nodes.otherwise >= 0).any() else kept.otherwise
    kept = kept._replace(start=start, end=start + kept_rows, otherwise=otherwise)
    return PrunedTree(kept, int((is_undone & (n_rows > 0)).sum()), origin, kept_rows)


def find_otherwise(nodes: Nodes, n_rows: Ints) -> NDArray[np.int32]:
    """Which child takes all other values: the rest, or else the largest; a threshold says so itself."""
    out = nodes.otherwise.copy()
    for node in np.flatnonzero(nodes.axis >= 0).tolist():
        children = list_children(nodes, node)
        if nodes.branch[children[-1]] == REST:
            out[node] = len(children) - 1
        elif nodes.otherwise[node] >= len(children) or len(children) > 2:
            out[node] = int(np.argmax(n_rows[children.start : children.stop]))
    return out


def _find_starts(nodes: Nodes, n_rows: Ints) -> Ints:
    """Where the rows of each node begin if they are in the order of the leaves."""
    parent = find_parents(nodes)
    before = np.cumsum(n_rows) - n_rows  # of the nodes side by side: siblings, and those before them
    out = before - before[nodes.first_child[parent]]
    out[0] = 0
    add_from_parents(parent, out)
    return out


def find_parents(nodes: Nodes) -> Ints:
    """The parent of each node, -1 for the root."""
    out = np.empty(len(nodes.axis), dtype=np.int64)
    fill_parents(nodes.first_child, nodes.n_children, out)
    return out


def _list_below(nodes: Nodes, is_split: Flags, node: int) -> list[int]:
    """The nodes below a node, as far as splits have not been undone."""
    found = list(list_children(nodes, node))
    for each in found:  # the list grows while it is walked
        if is_split[each]:
            found += list_children(nodes, each)
    return found
