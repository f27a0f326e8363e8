"""Each quasi-identifier before and after: the cells of the raw table, and what the release tells of them.

Numbers and dates are counted in bins, categories by nodes of their hierarchy. A published row counts in each bin or node
by the share of its label that lies there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.cells import read_ordered
from sfumato.encoding.domain import TreeDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import Form
from sfumato.policy.rectangles import MISSING_ALONE, Interval, Labels, Rectangle, Side, below
from sfumato.policy.schema import Attribute, Kind
from sfumato.recoding.axis import OrderedAxis
from sfumato.recoding.loss import WholeTree
from sfumato.release.query.answers import QueryRows
from sfumato.release.query.overlap import NodeBoxes
from sfumato.release.query.select import AlikeRows, group_rows
from sfumato.release.query.visible_tree import VisibleTree
from sfumato.release.release import Release
from sfumato.report.distributions import Density, count_numbers
from sfumato.table import cells as table_cells
from sfumato.table.source import Source

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_BARS = 12


@dataclass(frozen=True, slots=True)
class NodeRows:
    """A value, or a node of the hierarchy: its rows before; after, how many surely are its, and how many to expect.

    Of counts with noise none is certain. Of the rows before, ``left_out`` are not in the release.
    """

    label: str | None
    before: int
    certain: int
    expected: float
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    """A category before and after, and the share of the published rows that each level of the hierarchy labels."""

    attribute: Attribute
    nodes: tuple[NodeRows, ...]
    levels: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ComparedNumbers:
    """A number or date before and after, in the same bins; ``left_out`` are rows that are not in the release."""

    attribute: Attribute
    before: Density
    after: Density
    left_out: NDArray[np.float64] | None = None


Compared = ComparedNodes | ComparedNumbers


def compare_columns(release: Release, source: Source, left_out: Ints | None = None) -> Iterator[Compared]:
    """Every quasi-identifier of a release beside the raw table, in the order of the policy.

    ``left_out`` are the numbers of the rows that are not in the release, where that is known.
    """
    gone = np.zeros(source.n_rows, dtype=np.bool_)
    if left_out is not None:
        gone[left_out] = True
    for attribute in release.policy.schema.quasi_identifiers:
        compare = _compare_nodes if attribute.kind is Kind.CATEGORY else _compare_numbers
        yield compare(release, source, attribute, gone)


# ---- what a release tells --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Published:
    """The published cells of one column. Their owner knows the whole hierarchy, ``tree``."""

    name: str
    alike: AlikeRows

    @classmethod
    def of(cls, release: Release, name: str, tree: Hierarchy | None) -> _Published:
        asked = QueryRows.of(release, name)
        alike = group_rows([name], asked.rows, asked.recoding, asked.policy, weight=asked.weight)
        cells = alike.cells[name]
        if tree is not None and isinstance(cells.boxes, NodeBoxes):
            place = WholeTree(tree).find_places(cells.boxes.axis.nodes)
            known = replace(cells.boxes, known=VisibleTree(tree, place, is_complete=True))
            alike = replace(alike, cells={name: replace(cells, boxes=known, asked={})})
        return cls(name, alike)

    @property
    def n_rows(self) -> int:
        return int(self.alike.size.sum())

    @property
    def line(self) -> OrderedAxis | None:
        """Where numbers may lie, if the release says so."""
        axis = self.alike.cells[self.name].boxes.axis
        return axis if isinstance(axis, OrderedAxis) else None

    def rows_in(self, side: Side) -> tuple[int, float]:
        """How many rows surely have a value of the side, and how many are expected to."""
        found, size = self.alike.overlap([Rectangle({self.name: side})]), self.alike.size
        return int(size[found.is_inside].sum()), float(size @ found.share)

    def levels(self, tree: Hierarchy) -> tuple[tuple[str, float], ...]:
        """The share of the rows at each level of the hierarchy, the single values first; levels count from them up."""
        cells, size = self.alike.cells[self.name], self.alike.size
        assert isinstance(cells.boxes, NodeBoxes)
        node = WholeTree(tree).find_places(cells.boxes.axis.nodes)[cells.boxes.nodes]
        of_label = np.zeros(int(cells.label.max(initial=0)) + 1, dtype=np.int64)
        of_label[cells.label] = np.where((tree.high - tree.low)[node] == 1, tree.height, tree.depth[node])
        rows = np.bincount(of_label[cells.at], size, minlength=tree.height + 1)
        words = {tree.height: "single values", 0: "*"}
        return tuple(
            (words.get(depth, f"level {tree.height - depth}"), float(rows[depth]) / max(rows.sum(), 1))
            for depth in range(tree.height, -1, -1)
            if rows[depth]
        )


# ---- categories ------------------------------------------------------------------------------------------


def _compare_nodes(release: Release, source: Source, attribute: Attribute, gone: Flags) -> ComparedNodes:
    is_counted = release.policy.method.form is Form.COUNTS
    tree, leaf = _find_declared(source, attribute) if is_counted else _find_leaves(source, attribute)
    rows, left_out = (np.bincount(own, minlength=tree.n_leaves) for own in (leaf, leaf[gone]))
    published = _Published.of(release, attribute.name, None if is_counted else tree)
    labels = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    found = []
    for label, codes in _choose_nodes(tree, rows):
        before = int(rows[codes].sum())
        certain, expected = published.rows_in(Labels(frozenset(labels[code] for code in codes.tolist())))
        if before or expected:
            found.append(
                NodeRows(label, before, 0 if is_counted else certain, expected, int(left_out[codes].sum()))
            )
    return ComparedNodes(attribute, tuple(found), () if is_counted else published.levels(tree))


def _find_leaves(source: Source, attribute: Attribute) -> tuple[Hierarchy, Ints]:
    """The hierarchy, and the leaf of each row."""
    domain, codes = encode_axis(source, attribute)
    assert isinstance(domain, TreeDomain)
    return domain.hierarchy, codes.astype(np.int64)


def _find_declared(source: Source, attribute: Attribute) -> tuple[Hierarchy, Ints]:
    """The same by declared values alone: any other cell is missing."""
    tree = attribute.build_declared_hierarchy().with_missing()
    cells = table_cells.texts(source.column(attribute.name), attribute)
    code = {tree.labels[node]: at for at, node in enumerate(tree.leaf_nodes.tolist())}
    of_text = np.array([code.get(text, code[None]) for text in [*cells.dictionary.to_pylist(), None]])
    at = cells.indices.fill_null(len(of_text) - 1).to_numpy(zero_copy_only=False)
    return tree, of_text[at].astype(np.int64)


def _choose_nodes(tree: Hierarchy, rows: Ints) -> Iterator[tuple[str | None, Ints]]:
    """As fine a level of the hierarchy as has room, or the nodes below the root with most rows and all others."""
    chosen = _level(tree, 1)
    for depth in range(2, tree.height + 1):
        if len(finer := _level(tree, depth)) > MOST_BARS:
            break
        chosen = finer
    below_node = np.append(0, np.cumsum(rows))
    n_rows = below_node[tree.high] - below_node[tree.low]
    if len(chosen) > MOST_BARS:
        largest = sorted(chosen, key=lambda node: -n_rows[node])[: MOST_BARS - 1]
        others = [node for node in chosen if node not in {*largest}]
        chosen = sorted(largest)
    else:
        others = []
    for node in chosen:
        yield tree.labels[node], np.arange(tree.low[node], tree.high[node])
    if others:
        codes = [np.arange(tree.low[node], tree.high[node]) for node in others]
        yield f"{len(others):,} others", np.concatenate(codes)


def _level(tree: Hierarchy, depth: int) -> list[int]:
    """The nodes of a level, and the leaves above it."""
    if tree.n_nodes == 1:
        return [0]
    is_leaf = tree.high - tree.low == 1
    is_last = np.ones(tree.n_nodes, dtype=np.bool_)
    is_last[tree.parent[1:]] = False
    return np.flatnonzero((tree.depth == depth) | (is_leaf & is_last & (tree.depth < depth))).tolist()


# ---- numbers and dates -----------------------------------------------------------------------------------


def _compare_numbers(release: Release, source: Source, attribute: Attribute, gone: Flags) -> Compared:
    is_counted = release.policy.method.form is Form.COUNTS
    values = read_ordered(attribute, source.column(attribute.name), leniently=is_counted)
    has_value = np.isfinite(values)
    n_missing, n_missing_gone = (int(np.count_nonzero(~own)) for own in (has_value, has_value[gone]))
    values, gone = values[has_value], gone[has_value]
    if attribute.bounds is not None:
        values = np.clip(values, *attribute.bounds)
    tree = None if is_counted or attribute.is_ordered else _find_leaves(source, attribute)[0]
    published = _Published.of(release, attribute.name, tree)
    certain, expected = published.rows_in(MISSING_ALONE)
    if not len(values):
        return ComparedNodes(attribute, (NodeRows(None, n_missing, certain, expected, n_missing_gone),))
    before = count_numbers(values, attribute, n_missing=n_missing, like=published.line)
    rows = np.array([published.rows_in(bin_)[1] for bin_ in _bins(before.edges)])
    far = max(round(published.n_rows - rows.sum() - expected), 0)
    after = replace(before, rows=rows, n_far=far, n_missing=round(expected))
    left_out = np.histogram(values[gone], before.edges)[0].astype(np.float64) if gone.any() else None
    return ComparedNumbers(attribute, before, after, left_out)


def _bins(edges: NDArray[np.float64]) -> Sequence[Interval]:
    """The bins between edges; each but the last is without its upper edge."""
    ends: list[Any] = [*(below(edge) for edge in edges[1:-1].tolist()), float(edges[-1])]
    return [Interval(low, high) for low, high in zip(edges[:-1].tolist(), ends, strict=True)]


__all__ = ["Compared", "ComparedNodes", "ComparedNumbers", "NodeRows", "compare_columns"]
