r"""What published labels stand for: nodes of the hierarchies that a policy declares, their utility and their weight.

Computed anew from policy and labels, by the definitions [FEB12, section 2.1.2]. A column is *open* if its hierarchy is
made of the values of a table and these are not declared: then depths are known, but not how many leaves there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, TableError
from sfumato.policy.hierarchy.declarations import Mask, NumberRanges
from sfumato.policy.hierarchy.files import ROOT, Label
from sfumato.policy.hierarchy.library.codes import LibraryCodes
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import DEPTH, HARMONIC, INVERSE, LOG, MODEL_2, Utility, Weights
from sfumato.policy.schema import Attribute, Kind
from sfumato.table.cells import ordered, texts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Cell = Label | tuple[Any, ...]
"""A published cell: its label, its two bounds, or all three."""

STAND_IN = "\ufffe"
"""What stands for a character that a mask hides: no text of a table has it."""


# ---- hierarchies -----------------------------------------------------------------------------------------


def declared_tree(attribute: Attribute) -> Hierarchy:
    """The hierarchy that the policy alone declares; dates are over all days of their bounds."""
    days: Any = ()
    if attribute.kind is Kind.DATE and attribute.bounds is not None:
        first, last = attribute.bounds
        days = np.arange(int(first), int(last) + 1).astype("datetime64[D]")
    return attribute.build_hierarchy(days)


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A quasi-identifier and its hierarchy, as far as it is known."""

    attribute: Attribute
    tree: Hierarchy
    is_open: bool = False
    """Are there leaves that nobody here knows of?"""

    @classmethod
    def of(
        cls,
        attribute: Attribute,
        *,
        has_missing: bool,
        labels: Iterable[Cell] = (),
        values: Any = None,
        has_all: bool = False,
    ) -> LabelColumn:
        """The column of published ``labels``; of an open one also some ``values``, which may be all that there are.

        >>> column = LabelColumn.of(Attribute("zip", "quasi-identifier", hierarchy={"mask": 3}), has_missing=False,
        ...                    labels=["53*", "7", "*"])
        >>> [column.tree.depth[list(column.nodes(label))].tolist() for label in ("53*", "7", "*", "6**")]
        [[2], [1], [0], []]
        """
        if attribute.is_ordered or (attribute.kind is Kind.DATE and attribute.bounds is None):
            raise HierarchyError(
                f"The policy of the release declares no hierarchy of column {attribute.name!r}, or no bounds of it."
            )
        is_open = attribute.declaration.is_open(attribute)
        if not is_open:
            tree = declared_tree(attribute)
        elif has_all:
            tree = attribute.build_hierarchy(values)
        else:
            tree = _open_tree(attribute, labels, () if values is None else values)
        return cls(attribute, tree.with_missing() if has_missing else tree, is_open and not has_all)

    def nodes(self, cell: Cell) -> tuple[int, ...]:
        """All nodes that a cell may stand for; a missing label is the leaf for it.

        >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER, bounds=(0, 3), hierarchy={"balanced": 2})
        >>> column = LabelColumn.of(age, has_missing=True)
        >>> column.nodes("[0, 2)"), column.nodes((0, 1)), column.nodes(("[0, 2)", 2, 3)), column.nodes((None, 3))
        ((1,), (1,), (), (0,))
        """
        if not isinstance(cell, tuple):
            return self._nodes.get(cell, ())
        *label, low, high = cell
        found = self._nodes_by_ends.get((low, high), ())
        return tuple(node for node in found if not label or self.tree.labels[node] == label[0])

    @cached_property
    def _nodes(self) -> dict[Label, tuple[int, ...]]:
        found: dict[Label, tuple[int, ...]] = {}
        for node, label in enumerate(self.tree.labels):
            found[label] = (*found.get(label, ()), node)
        return found

    @cached_property
    def _nodes_by_ends(self) -> dict[tuple[float | None, float | None], tuple[int, ...]]:
        """Nodes by their first and last value: no first where missing belongs to a node, neither of missing alone."""
        first, last = self._ends()
        found: dict[tuple[float | None, float | None], tuple[int, ...]] = {}
        for node, (low, high) in enumerate(zip(self.tree.low.tolist(), self.tree.high.tolist(), strict=True)):
            ends = (
                first[low] if high <= len(first) else None,
                last[min(high, len(last)) - 1] if low < len(last) else None,
            )
            found[ends] = (*found.get(ends, ()), node)
        return found

    def _ends(self) -> tuple[list[float], list[float]]:
        """The first and the last value of each leaf of a grid, or of days."""
        if self.attribute.kind is Kind.DATE:
            begin, end = map(int, self.attribute.bounds or (0, 0))
            days = np.arange(begin, end + 1)
            leaf = self.attribute.locate(self.tree, days.astype("datetime64[D]"))
            starts = np.flatnonzero(np.diff(leaf, prepend=-1))
            ends = np.append(starts[1:], len(days)) - 1
            return days[starts].astype(np.float64).tolist(), days[ends].astype(np.float64).tolist()
        assert isinstance(self.attribute.hierarchy, NumberRanges)
        grid = self.attribute.hierarchy.make_grid(self.attribute)
        edges = grid.edges.tolist()
        return (edges, edges) if grid.step is not None else (edges[:-1], edges[1:])

    # -- utility and weight ----------------------------------------------------------------------------

    def utility(self, measure: Utility) -> Floats | None:
        r"""The utility of each node: its depth, 1 / n, or ln(n(root) / n) for n leaves; None if that is not known.

        >>> LabelColumn(Attribute("x", "quasi-identifier"), Hierarchy.flat("ab")).utility("inverse").tolist()
        [0.5, 1.0, 1.0]
        """
        n_leaves = (self.tree.high - self.tree.low).astype(np.float64)
        if isinstance(measure, Mapping) and self.attribute.name in measure:
            of_depth = measure[self.attribute.name]
            return np.array([of_depth[min(depth, len(of_depth) - 1)] for depth in self.tree.depth.tolist()])
        if measure == DEPTH or isinstance(measure, Mapping):
            return self.tree.depth.astype(np.float64)
        if self.is_open or measure not in (INVERSE, LOG):
            return None
        return 1 / n_leaves if measure == INVERSE else np.log(n_leaves[0]) - np.log(n_leaves)

    def weight(self, given: Weights, n_columns: int) -> Floats | None:
        """The weight of each node; None if it is not known.

        In the harmonic model one over the weight of a node is the sum of the same over the leaves below it.
        """
        own = given.attributes.get(self.attribute.name, 1.0)
        factor = 1.0 if isinstance(own, Mapping) else float(own)
        if given.model == MODEL_2:
            return np.full(self.tree.n_nodes, factor / n_columns)
        found = np.full(self.tree.n_nodes, factor)
        if given.model == HARMONIC:
            if self.is_open:
                return None
            found *= self._harmonic(own if isinstance(own, Mapping) else {})
        found[0] = 0
        return found

    def _harmonic(self, by_label: Mapping[str, float]) -> Floats:
        tree = self.tree
        leaves = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
        weight = np.array([1.0 if label is None else by_label.get(label, 1.0) for label in leaves])
        is_zero = weight == 0
        sums = np.append(0, np.cumsum(1 / np.where(is_zero, 1, weight)))
        zeros = np.append(0, np.cumsum(is_zero))
        is_sensitive = zeros[tree.high] == zeros[tree.low]
        return np.where(is_sensitive, 1 / (sums[tree.high] - sums[tree.low]), 0.0)

    # -- cells of a table --------------------------------------------------------------------------------

    def codes(self, cells: pa.DictionaryArray, where: str) -> Ints:
        """The leaf of each cell of a table; a TableError where the hierarchy has none for it."""
        leaf = self.attribute.locate(self.tree, values_of(cells, self.attribute)).astype(np.int64)
        missing = self.tree.n_leaves - 1 if self.tree.labels[-1] is None else -1
        at = cells.indices.fill_null(len(leaf)).to_numpy(zero_copy_only=False)
        found: Ints = np.append(leaf, missing)[at]
        if n_strange := int(np.count_nonzero(found < 0)):
            raise TableError(
                f"Column {self.attribute.name!r} of {where} has {n_strange:,} cells that the hierarchy of the release "
                "lacks; is it the side table of this release?"
            )
        return found


def cells_of(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """The cells of a table, as the kind of their column reads them."""
    if attribute.kind is Kind.CATEGORY:
        return texts(column, attribute)
    return ordered(column, attribute).dictionary_encode()


def values_of(cells: pa.DictionaryArray, attribute: Attribute) -> Any:
    """The distinct values of cells, as hierarchies are built of them."""
    if attribute.kind is Kind.CATEGORY:
        return cells.dictionary.to_pylist()
    values = cells.dictionary.to_numpy(zero_copy_only=False)
    return values.astype("datetime64[D]" if attribute.kind is Kind.DATE else np.float64)


def _open_tree(attribute: Attribute, labels: Iterable[Cell], values: Any) -> Hierarchy:
    """A hierarchy with a node for each label, at its depth, and below the root a value of every length that may occur."""
    shown = [label for label in labels if isinstance(label, str) and label != ROOT]
    if isinstance(attribute.hierarchy, LibraryCodes):
        return _open_codes(attribute.hierarchy, {*values, *shown})
    if not isinstance(attribute.hierarchy, Mask):
        known = attribute.build_hierarchy(values).labels[1:]
        return Hierarchy.flat(
            dict.fromkeys(label for label in (*known, *shown, STAND_IN) if label is not None)
        )
    longest = attribute.hierarchy.n_characters
    strangers = [STAND_IN * n for n in range(1, longest + 1)]
    stand_ins = [_unmask(label) for label in shown if len(label) <= longest]
    return attribute.build_hierarchy(sorted({*values, *stand_ins, *strangers}))


def _open_codes(codes: LibraryCodes, labels: Iterable[str]) -> Hierarchy:
    """The tree of these labels, and below the root a value of every depth that may occur."""
    paths = {path for label in labels if (path := codes.path_to(label))}
    inner = {path[:n] for path in paths for n in range(1, len(path))}
    strangers = {
        (ROOT, *(f"{STAND_IN * depth}{n}" for n in range(depth))) for depth in range(1, codes.height + 1)
    }
    return Hierarchy.from_paths(sorted((paths | strangers) - inner))


def _unmask(label: str) -> str:
    """A value that a mask would publish as this label, in time."""
    kept = label.rstrip(ROOT)
    return kept + STAND_IN * (len(label) - len(kept)) if kept else label


__all__ = ["Cell", "LabelColumn", "cells_of", "declared_tree", "values_of"]
