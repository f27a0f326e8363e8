"""A hierarchy as far as a reader of a release can see it.

Some hierarchies are declared in full by the policy: a tree, intervals, a list of values. Others are built from
the cells of the table: masks, dates, and flat hierarchies without declared values. Of these a release shows only
the nodes that its boxes use. What else lies below such a node is *unlisted*:

- below a mask, every text that fits it;
- below a period, its days;
- below any other node, at least one more value, of which nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.hierarchy.declarations import Dates, Mask
from sfumato.policy.hierarchy.declared import with_missing
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.hierarchy.leaf_ranges import Ranges, read_period
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.rectangles import ANY_NUMBER
from sfumato.policy.schema import Kind
from sfumato.recoding.axis import TreeAxis

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]

MAX_MASKED = 12
"""Masked characters that are counted at most: 36^12 texts outweigh all that a release lists."""


@dataclass(frozen=True, slots=True, eq=False)
class VisibleTree:
    """The tree that a reader can rebuild, and where the nodes of the recoding stand in it.

    ``place`` holds, for each node of the recoding, the same node in ``tree``, or -1 if the reader cannot place it.
    """

    tree: Hierarchy
    place: Nodes
    is_complete: bool

    @classmethod
    def of(cls, axis: TreeAxis, named: frozenset[str | None] = frozenset()) -> VisibleTree:
        """Rebuild the hierarchy of an axis; ``named`` are labels that the reader knows from a query."""
        is_complete = is_declared_in_full(axis)
        tree = _build_declared(axis) if is_complete else _rebuild(axis, named)
        return cls(tree, _find_places(axis.nodes, tree), is_complete)

    @property
    def leaf_labels(self) -> list[str | None]:
        return [self.tree.labels[node] for node in self.tree.leaf_nodes.tolist()]

    def leaves_below(self, node: int) -> slice:
        """The leaves below a node of the recoding, as a slice of ``leaf_labels``."""
        place = self.place[node]
        return slice(self.tree.low[place], self.tree.high[place]) if place >= 0 else slice(0)

    def sum_leaves(self, weights: NDArray[Any], nodes: Nodes) -> Floats:
        """The sum of the leaf weights below each of these nodes of the recoding."""
        place = self.place[nodes]
        if not self.is_complete and self.tree.n_nodes == 1:
            return np.zeros(len(nodes))  # no value is known: the root is no leaf
        sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
        return np.where(place >= 0, sums[self.tree.high[place]] - sums[self.tree.low[place]], 0.0)


def is_declared_in_full(axis: TreeAxis) -> bool:
    """Can the whole hierarchy be rebuilt from the policy alone?"""
    return axis.is_declared or axis.attribute.declaration.is_complete(axis.attribute)


def _build_declared(axis: TreeAxis) -> Hierarchy:
    if axis.is_declared:
        return with_missing(axis.attribute.build_declared_hierarchy())
    tree = axis.attribute.as_given.build_hierarchy(())
    return tree.with_missing() if axis.has_missing else tree


def _rebuild(axis: TreeAxis, named: frozenset[str | None]) -> Hierarchy:
    """The hierarchy of the values that the release shows or the query names."""
    values = _find_known_values(axis, named)
    if len(values) == 0 and axis.has_missing:
        return Hierarchy((ROOT, None), np.array([-1, 0]))
    tree = axis.attribute.as_given.build_hierarchy(values)
    return tree.with_missing() if axis.has_missing else tree


def _find_known_values(axis: TreeAxis, named: frozenset[str | None]) -> Any:
    """The known values in the form that ``build`` reads: text, numbers or days."""
    attribute = axis.attribute
    if isinstance(attribute.hierarchy, Dates):
        return np.zeros(0, dtype="datetime64[D]")
    nodes = range(axis.nodes.n_nodes)
    shown = [label for node in nodes if (label := axis.nodes.labels[node]) and _is_single_value(axis, node)]
    if attribute.kind is not Kind.CATEGORY:
        dtype = "datetime64[D]" if attribute.kind is Kind.DATE else "float64"
        return np.array([label for label in shown if label != ROOT], dtype=dtype)
    known = list(dict.fromkeys([*shown, *sorted(label for label in named if label is not None)]))
    return attribute.declaration.keep_fitting(known)


def _find_places(nodes: Hierarchy, tree: Hierarchy) -> Nodes:
    """Follow each node's path of labels through ``tree``; -1 where it ends."""
    children = {(parent, tree.labels[node]): node for node, parent in enumerate(tree.parent.tolist()) if node}
    place = [0]
    for node, parent in enumerate(nodes.parent.tolist()[1:], start=1):
        place.append(children.get((place[parent], nodes.labels[node]), -1))
    return np.array(place, dtype=np.int64)


# ---- unlisted values -------------------------------------------------------------------------------


def count_unlisted(axis: TreeAxis, nodes: Nodes, n_listed: Floats) -> Floats:
    """How many unlisted values lie below each node: none if it is a single value, else at least one.

    A mask fits as many texts as can be written with digits, and with letters too if any label has one.
    """
    has_more = np.array([not _is_single_value(axis, node) for node in range(axis.nodes.n_nodes)])[nodes]
    mask = axis.attribute.hierarchy
    if not isinstance(mask, Mask):
        return has_more.astype(np.float64)
    characters = set("".join(label for label in axis.nodes.labels if label)) - {"*"}
    n_characters = 10.0 if all(character.isdigit() for character in characters) else 36.0
    n_masked = [
        str(axis.nodes.labels[node]).count("*") if node else mask.n_characters for node in nodes.tolist()
    ]
    n_texts = n_characters ** np.minimum(n_masked, MAX_MASKED)
    return has_more * np.maximum(n_texts - n_listed, 1.0)


def find_unlisted_ranges(axis: TreeAxis, nodes: Nodes) -> Ranges:
    """Where the unlisted numbers or days of each node lie; NaN if it is a single value."""
    outer = axis.attribute.bounds or (ANY_NUMBER.low, ANY_NUMBER.high)
    first, last = np.full((2, axis.nodes.n_nodes), np.nan)
    for node in np.unique(nodes).tolist():
        if _is_single_value(axis, node):
            continue
        is_period = node > 0 and isinstance(axis.attribute.hierarchy, Dates)
        first[node], last[node] = read_period(str(axis.nodes.labels[node])) if is_period else outer
    return Ranges(first[nodes], last[nodes])


def _is_single_value(axis: TreeAxis, node: int) -> bool:
    """Is a node of a hierarchy that was built from the table a single value, and not a set of them?"""
    label, depth = axis.nodes.labels[node], int(axis.nodes.depth[node])
    if label is None:
        return True
    return depth == axis.attribute.declaration.find_value_depth(label)
