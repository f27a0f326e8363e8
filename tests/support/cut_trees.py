"""Grown trees cut into a top tree and pieces, as the engine for large tables leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mondrian_cases import Case
from numpy.typing import NDArray

from sfumato.kernels.nodes import Nodes
from sfumato.policy.output import Output
from sfumato.recoding.splits import RecodingPlan
from sfumato.recoding.tree import Recoding, recoding_of
from sfumato.recoding.tree_file import PathStep


@dataclass
class Grown:
    """A tree in codes, with what turns them into values."""

    nodes: Nodes
    covers: NDArray[np.int64]
    domains: tuple[Any, ...]
    roots: NDArray[np.int64]

    @classmethod
    def of(cls, case: Case) -> Grown:
        problem = case.problem()
        nodes = problem.engine.grow(replace(problem, queries=None))
        covers = problem.engine.covers(nodes, problem.axes)
        return cls(nodes, covers, problem.domains, problem.axes.root)

    def recoding(self, output: Output = Output.LABELS) -> Recoding:
        return recoding_of(self.nodes, self.covers, self.plan(output))

    def plan(self, output: Output = Output.LABELS) -> RecodingPlan:
        return RecodingPlan(self.domains, self.roots, output)

    def cover_of(self, leaf: int) -> NDArray[np.int64]:
        return self.covers[int((self.nodes.axis[:leaf] < 0).sum())]


@dataclass
class Part:
    """Some nodes of a tree, renumbered; ``old`` says which they were."""

    nodes: Nodes
    old: list[int]
    covers: NDArray[np.int64]


@dataclass
class Cut:
    top: Part
    pieces: list[Part] = field(default_factory=list)
    hung: dict[int, int] = field(default_factory=dict)
    leaf_covers: dict[int, NDArray[np.int64]] = field(default_factory=dict)


def part_of(tree: Grown, root: int, stops: Sequence[int]) -> Part:
    """The nodes below ``root``, breadth first; a stop is a leaf here, whatever it has below."""
    nodes, old = tree.nodes, [root]
    columns: dict[str, list[int]] = {name: [] for name in Nodes._fields}
    for node in old:
        is_leaf = nodes.axis[node] < 0 or node in stops
        first, n = int(nodes.first_child[node]), int(nodes.n_children[node])
        columns["axis"].append(-1 if is_leaf else int(nodes.axis[node]))
        columns["threshold"].append(-1 if is_leaf else int(nodes.threshold[node]))
        columns["first_child"].append(-1 if is_leaf else len(old))
        columns["n_children"].append(0 if is_leaf else n)
        for name in ("branch", "start", "end", "otherwise"):
            columns[name].append(int(getattr(nodes, name)[node]))
        old += [] if is_leaf else range(first, first + n)
    made = Nodes(*(np.array(columns[name], dtype=getattr(nodes, name).dtype) for name in Nodes._fields))
    covers = [tree.cover_of(node) for node in old if nodes.axis[node] < 0]
    return Part(made, old, np.array(covers, dtype=np.int64).reshape(len(covers), len(tree.domains)))


def cut(tree: Grown, at: Sequence[int]) -> Cut:
    """The tree cut at these nodes; the nodes that have one of them above are no cuts of their own."""
    top = part_of(tree, 0, at)
    out = Cut(top)
    for new, old in enumerate(top.old):
        if top.nodes.axis[new] >= 0:
            continue
        if old in at:
            out.hung[new] = len(out.pieces)
            out.pieces.append(part_of(tree, old, ()))
        else:
            out.leaf_covers[new] = tree.cover_of(old)
    return out


def path_to(nodes: Nodes, node: int) -> list[PathStep]:
    parent = {
        int(nodes.first_child[p]) + j: (p, j)
        for p in range(len(nodes.axis))
        for j in range(int(nodes.n_children[p]))
    }
    steps: list[PathStep] = []
    while node in parent:
        node, taken = parent[node]
        first, n = int(nodes.first_child[node]), int(nodes.n_children[node])
        branches = nodes.branch[first : first + n].tolist()
        steps.append(PathStep(int(nodes.axis[node]), int(nodes.threshold[node]), branches, taken))
    return steps[::-1]
