"""One quasi-identifier in a recoding: what its boxes are called, and where the cell of any row belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.cells import distinct_cells
from sfumato.encoding.domain import EXACT_LIMIT, MISSING, Domain, OrderedDomain
from sfumato.policy.hierarchy.declared import OR_MISSING, leaf_codes, with_missing
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import bound_names, missing_name
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.recoding.decision_list import NumberCells, TreeCells
from sfumato.recoding.exclusions import ExcludedNodes
from sfumato.table.combinations import number_combinations

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SUPPRESSED = "*"


@dataclass(frozen=True, slots=True)
class OrderedAxis:
    """A number or date column that is split by thresholds; ``low`` and ``high`` are the outer ends shown.

    On an axis that ``is_declared`` any cell that is no number or date is missing. If it ``shows_least``, the low end of a
    group's box is the least value of its rows, and belongs to it. If it ``flags_missing``, a column beside the two bounds
    says whether missing belongs to the box; without it the low bound is empty then. ``cells`` are those of decision
    lists, if there are any.
    """

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool
    is_declared: bool = False
    shows_least: bool = False
    cells: NumberCells | None = None
    flags_missing: bool = False

    def ends(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The ends to publish of boxes low < x <= high; on a grid the first value is a step above ``low``."""
        is_outer = np.isnan(low) | np.isneginf(low)
        first = np.where(is_outer, self.low, low if self.shows_least else self._next(low))
        return first, np.where(np.isposinf(high), self.high, high)

    def _next(self, values: Floats) -> Floats:
        """The next value that the grid allows; added up in decimals: after 0.2 comes 0.3, not 0.30000000000000004."""
        if self.grid is None or float(self.grid).is_integer():
            return values + (self.grid or 0.0)
        step = Decimal(repr(float(self.grid)))
        return np.array([float(Decimal(repr(value)) + step) for value in values.tolist()], dtype=np.float64)

    def labels(self, low: Floats, high: Floats, missing: Flags) -> pa.Array:
        """Text of each box; null (an empty cell) for missing alone.

        >>> age = OrderedAxis(Attribute("age", "quasi-identifier", Kind.NUMBER), 0, 110, 1.0, True)
        >>> low, high = np.array([np.nan, 24, 24, 49]), np.array([24, 49, 25, np.inf])
        >>> age.labels(low, high, np.array([True, False, False, True])).to_pylist()
        ['[0, 24] or missing', '[25, 49]', '25', '[50, 110] or missing']
        """
        is_missing = np.isneginf(high)
        first, last = self.ends(low, np.where(is_missing, 0.0, high))
        is_closed = np.isnan(low) | np.isneginf(low) | (self.grid is not None) | self.shows_least
        opening = pc.if_else(pa.array(is_closed), "[", "(")
        one, other = self.texts(first), self.texts(last)
        interval = pc.binary_join_element_wise(opening, one, ", ", other, "]", "")
        label = pc.if_else(pa.array(first == last), other, interval)
        with_missing = pc.binary_join_element_wise(label, OR_MISSING, "")
        label = pc.if_else(pa.array(missing), with_missing, label)
        return pc.if_else(pa.array(is_missing), None, label)

    def texts(self, values: Floats) -> pa.Array:
        """Numbers and dates as people write them: 5, 0.25, 2024-03-05."""
        if self.attribute.kind is Kind.DATE:
            return pa.array(values.astype(np.int32)).cast(pa.date32()).cast(pa.string())
        is_whole = (values == np.rint(values)) & (np.abs(values) < EXACT_LIMIT)
        whole = pa.array(np.where(is_whole, values, 0).astype(np.int64)).cast(pa.string())
        return (
            whole
            if is_whole.all()
            else pc.if_else(pa.array(is_whole), whole, pa.array(values).cast(pa.string()))
        )

    @property
    def bound_names(self) -> tuple[str, ...]:
        """The columns of ``bounds``."""
        name = self.attribute.name
        return (*bound_names(name), missing_name(name)) if self.flags_missing else bound_names(name)

    def bounds(self, low: Floats, high: Floats, missing: Flags) -> tuple[pa.Array, ...]:
        """The ends as columns, none where the box is missing alone, and whether missing belongs to it.

        >>> age = OrderedAxis(Attribute("age", "quasi-identifier", Kind.NUMBER), 0, 110, 1.0, True, flags_missing=True)
        >>> ends = np.array([24, -np.inf]), np.array([49, -np.inf]), np.array([True, True])
        >>> [column.to_pylist() for column in age.bounds(*ends)]
        [[25, None], [49, None], [True, True]]
        >>> [column.to_pylist() for column in replace(age, flags_missing=False).bounds(*ends)]
        [[None, None], [49, None]]
        """
        first, last = self.ends(low, high)
        is_missing = np.isneginf(high)
        if self.flags_missing:
            ends = _bound(first, is_missing, self), _bound(last, is_missing, self)
            return (*ends, pa.array(is_missing | missing))
        return _bound(first, is_missing | missing, self), _bound(last, is_missing, self)

    @property
    def top(self) -> float:
        """The high end of a box that nothing limits; of a column without any value, missing."""
        return MISSING if self.low > self.high else np.inf


@dataclass(frozen=True, slots=True)
class TreeAxis:
    """A column that is split along its hierarchy; ``nodes`` is the part of it that the boxes use.

    On an axis that ``is_declared`` any cell of no declared value is missing, and missing is the last leaf. ``height`` is
    that of the whole hierarchy, if there are decision lists. Labels of rests say what they exclude where the axis has
    ``excluded``; else they only cover.
    """

    attribute: Attribute
    nodes: Hierarchy
    has_missing: bool
    is_declared: bool = False
    height: int | None = None
    excluded: ExcludedNodes | None = field(default=None, compare=False, repr=False)

    @property
    def cells(self) -> TreeCells | None:
        """The cells of decision lists."""
        return None if self.height is None else TreeCells(self.nodes, self.height)

    def labels(self, ends: BoxEnds) -> pa.Array:
        """Text of each box; null (an empty cell) for missing alone."""
        if self.excluded is not None:
            return self.excluded.write(ends.low, ends.high)
        texts = pa.array(self.nodes.labels, pa.string())
        return texts.take(pa.array(ends.low.astype(np.int64)))

    def keep_below(self, ends: BoxEnds) -> BoxEnds:
        """The ends without what cannot be excluded from their nodes, as it does not lie below them."""
        if self.excluded is None:
            return ends
        return ends._replace(high=self.excluded.keep_below(ends.low, ends.high))


Axis = OrderedAxis | TreeAxis


def labels_of(axis: Axis, ends: BoxEnds) -> pa.Array:
    """What boxes along an axis are called; null for missing alone."""
    return axis.labels(ends) if isinstance(axis, TreeAxis) else axis.labels(*ends)


def axis_of(domain: Domain, used: NDArray[np.integer[Any]]) -> tuple[Axis, NDArray[np.int32]]:
    """The axis of a domain, and for a tree where each hierarchy node went; only ``used`` nodes are kept."""
    if isinstance(domain, OrderedDomain):
        axis = OrderedAxis(
            domain.attribute,
            domain.low,
            domain.high,
            domain.shown_step,
            domain.has_missing,
            domain.is_declared,
        )
        return axis, np.zeros(0, dtype=np.int32)
    kept, new = domain.hierarchy.prune(np.unique(used[used >= 0]))
    return TreeAxis(domain.attribute, kept, domain.has_missing, domain.is_declared), new


def known_nodes(axis: TreeAxis, column: Any, known: LabelDescent) -> NDArray[np.int64]:
    """The deepest known hierarchy node of each cell; ``known`` goes down the hierarchy of the axis."""
    attribute = axis.attribute
    if axis.is_declared:
        cells, values = distinct_cells(column, attribute, leniently=True)
        nodes = known.declared[leaf_codes(attribute, known.tree, values)].tolist()
        missing = int(known.declared[-1])
    else:
        cells, values = distinct_cells(column, attribute)
        if attribute.bounds is not None and attribute.kind is Kind.NUMBER:
            values = np.clip(values, *attribute.bounds)
        whole = attribute.build_hierarchy(attribute.declaration.keep_fitting(values))
        leaves = attribute.locate(whole, values).tolist()
        nodes = [0 if leaf < 0 else known.node(whole.path(whole.leaf_nodes[leaf])) for leaf in leaves]
        missing = axis.nodes.labels.index(None) if None in axis.nodes.labels else 0
    table = np.array([*nodes, missing], dtype=np.int64)
    at = cells.indices.fill_null(len(nodes)).to_numpy(zero_copy_only=False)
    return np.asarray(table[at])


class LabelDescent:
    """``Hierarchy.descend`` for many paths: children found by label.

    ``tree`` is the declared hierarchy of an axis that has one, and ``declared`` the node of each of its codes.
    """

    def __init__(self, axis: TreeAxis) -> None:
        tree = axis.nodes
        self.root = tree.labels[0]
        self.child = {
            (int(p), tree.labels[node]): node for node, p in enumerate(tree.parent.tolist()) if p >= 0
        }
        if axis.is_declared:
            self.tree = with_missing(axis.attribute.build_declared_hierarchy())
            nodes = [self.node(self.tree.path(leaf)) for leaf in self.tree.leaf_nodes.tolist()]
            self.declared = np.array(nodes, dtype=np.int64)

    def node(self, path: Sequence[str | None]) -> int:
        node = 0
        if path[0] == self.root:
            for label in path[1:]:
                below = self.child.get((node, label))
                if below is None:
                    break
                node = below
        return node


def join(tree: Hierarchy, box: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest node at or above ``box`` that covers ``cell`` too."""
    last = tree.leaf_nodes[tree.high - 1]
    box = box.copy()
    while (outside := (cell < box) | (cell > last[box])).any():
        box[outside] = tree.parent[box[outside]]
    return box


class BoxEnds(NamedTuple):
    """Ends of boxes as ``fill_boxes`` has them, (boxes, axes), or along one axis (boxes,).

    Along a hierarchy ``low`` is a node, and ``high`` the number of the set of nodes that its label excludes, if any does.
    """

    low: Floats
    high: Floats
    missing: Flags

    @classmethod
    def unlimited(cls, shape: tuple[int, ...]) -> BoxEnds:
        """Ends that limit nothing, missing included."""
        return cls(np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape, dtype=np.bool_))

    def along(self, a: int) -> BoxEnds:
        """The ends along one axis."""
        return BoxEnds(self.low[:, a], self.high[:, a], self.missing[:, a])

    def take(self, places: NDArray[Any]) -> BoxEnds:
        """The ends of these boxes."""
        return BoxEnds(self.low[places], self.high[places], self.missing[places])


class DistinctBoxes(NamedTuple):
    """The distinct boxes along one axis: ``which`` of them each place has, and their ends."""

    which: NDArray[np.int32]
    low: Floats
    high: Floats
    missing: Flags

    @property
    def ends(self) -> BoxEnds:
        return BoxEnds(self.low, self.high, self.missing)


def distinct_boxes(low: Floats, high: Floats, missing: Flags) -> DistinctBoxes:
    """Number the distinct boxes, in ascending order of their ends, NaN at the end."""
    found = number_combinations([low, high, missing.astype(np.int64)])
    first = found.first_rows()
    return DistinctBoxes(found.number.astype(np.int32), low[first], high[first], missing[first])


def _bound(values: NDArray[np.float64], is_null: NDArray[np.bool_], axis: OrderedAxis) -> pa.Array:
    if axis.attribute.kind is Kind.DATE:
        return pa.array(np.where(is_null, 0, values).astype(np.int32), mask=is_null).cast(pa.date32())
    is_whole = axis.grid is not None and all(float(x).is_integer() for x in (axis.grid, axis.low, axis.high))
    kept = np.where(is_null, 0, values)
    return pa.array(kept.astype(np.int64) if is_whole else kept, mask=is_null)


# ---- on disk ---------------------------------------------------------------------------------------


def axis_as_dict(axis: Axis) -> dict[str, Any]:
    common: dict[str, Any] = {"name": axis.attribute.name, "missing": axis.has_missing}
    if axis.is_declared:
        common["declared"] = True
    if isinstance(axis, TreeAxis):
        bounds = list(axis.attribute.bounds) if axis.attribute.bounds else None
        tree = {"labels": list(axis.nodes.labels), "parent": axis.nodes.parent.tolist()}
        levels = {} if axis.height is None else {"levels": {"height": axis.height}}
        excluding = {} if axis.excluded is None else {"excluding": True}
        return {**common, "kind": "tree", "bounds": bounds, **tree, **levels, **excluding}
    if axis.shows_least:
        common["closed"] = True
    if axis.cells is not None:
        common["levels"] = {"lower": axis.cells.lower, "step": axis.cells.step, "steps": axis.cells.n_steps}
    if axis.flags_missing:
        common["flagged"] = True
    return {**common, "kind": "ordered", "low": axis.low, "high": axis.high, "grid": axis.grid}


def axis_from_dict(entry: Mapping[str, Any], schema: Schema) -> Axis:
    attribute, is_declared = schema[entry["name"]], bool(entry.get("declared", False))
    levels = entry.get("levels")
    if entry["kind"] == "ordered":
        closed, flagged = (bool(entry.get(key, False)) for key in ("closed", "flagged"))
        cells = levels and NumberCells(
            levels["lower"], levels["step"], levels["steps"], entry["missing"],
            is_stepped=attribute.finest is not None or levels["step"] == entry["grid"],
        )  # fmt: skip
        return OrderedAxis(
            attribute,
            entry["low"],
            entry["high"],
            entry["grid"],
            entry["missing"],
            is_declared,
            closed,
            cells,
            flagged,
        )
    if entry["bounds"] is not None:
        attribute = replace(attribute, bounds=tuple(entry["bounds"]))
    nodes = Hierarchy(tuple(entry["labels"]), np.array(entry["parent"], dtype=np.int32))
    excluded = ExcludedNodes(nodes) if entry.get("excluding", False) else None
    return TreeAxis(attribute, nodes, entry["missing"], is_declared, levels and levels["height"], excluded)
