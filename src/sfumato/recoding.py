"""Row -> box -> published values: a total function on the domain, so that further rows can be recoded.

A recoding is a tree of splits over the quasi-identifiers. It holds thresholds and the hierarchy nodes that
its boxes use, never a column's distinct values. Any row gets a box:

- a number outside the range that was seen belongs to the outermost box on its side;
- a category that was never seen stands for its nearest known ancestor, the root if there is none;
- a row that belongs to no group (its branch was empty, or a split asks what its value cannot tell) gets the
  box of the deepest node of the tree that still covers it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato import hierarchy, tables
from sfumato.encoding import EXACT_LIMIT, MISSING, Domain, OrderedDomain
from sfumato.errors import InputError, TableError
from sfumato.hierarchy import Hierarchy
from sfumato.kernels.route import fill_boxes, fill_places
from sfumato.policy import Output
from sfumato.schema import Attribute, Kind, Schema
from sfumato.tables import Source, replace_atomically

FORMAT = 1
LARGE = 10_000
"""Nodes beyond which the tree is written as Parquet beside the JSON."""

SUPPRESSED = "*"
OR_MISSING = " or missing"


@dataclass(frozen=True, slots=True)
class OrderedAxis:
    """A number or date column that is split by thresholds; ``low`` and ``high`` are the outer ends shown."""

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool

    def ends(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ends to publish of boxes low < x <= high; on a grid the first value is a step above ``low``."""
        is_outer = np.isnan(low) | np.isneginf(low)
        first = np.where(is_outer, self.low, self._next(low))
        return first, np.where(np.isposinf(high), self.high, high)

    def _next(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The next value that the grid allows; added up in decimals: after 0.2 comes 0.3, not 0.30000000000000004."""
        if self.grid is None or float(self.grid).is_integer():
            return values + (self.grid or 0.0)
        step = Decimal(repr(float(self.grid)))
        return np.array([float(Decimal(repr(value)) + step) for value in values.tolist()], dtype=np.float64)

    def labels(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> pa.Array:
        """Text of each box; null (an empty cell) for missing alone.

        >>> age = OrderedAxis(Attribute("age", "quasi-identifier", Kind.NUMBER), 0, 110, 1.0, True)
        >>> age.labels(np.array([np.nan, 24, 24, 49]), np.array([24, 49, 25, np.inf])).to_pylist()
        ['[0, 24] or missing', '[25, 49]', '25', '[50, 110]']
        """
        is_missing = np.isneginf(high)
        first, last = self.ends(low, np.where(is_missing, 0.0, high))
        is_closed = np.isnan(low) | np.isneginf(low) | (self.grid is not None)
        opening = pc.if_else(pa.array(is_closed), "[", "(")
        one, other = self.texts(first), self.texts(last)
        interval = pc.binary_join_element_wise(opening, one, ", ", other, "]", "")
        label = pc.if_else(pa.array(first == last), other, interval)
        with_missing = pc.binary_join_element_wise(label, OR_MISSING, "")
        label = pc.if_else(pa.array(np.isnan(low) & self.has_missing), with_missing, label)
        return pc.if_else(pa.array(is_missing), None, label)

    def texts(self, values: NDArray[np.float64]) -> pa.Array:
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


@dataclass(frozen=True, slots=True)
class TreeAxis:
    """A column that is split along its hierarchy; ``nodes`` is the part of it that the boxes use."""

    attribute: Attribute
    nodes: Hierarchy
    has_missing: bool


Axis = OrderedAxis | TreeAxis


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The splits, one entry per node: children stand next to each other, after their parent.

    threshold  ordered axis: values up to it go to the first child (-inf: missing alone does)
    branch     the hierarchy node (of the axis of the parent's split) that this node stands for
    cover      (nodes, axes) the hierarchy node that covers the rows of a leaf, or that a split divides; else -1
    """

    axis: NDArray[np.int32]
    threshold: NDArray[np.float64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int32]
    cover: NDArray[np.int32]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.axis < 0


@dataclass(frozen=True, slots=True, eq=False)
class Recoding:
    """A tree of splits with what its axes mean. ``apply`` recodes any rows and promises nothing.

    ``left_out`` are the columns that a release never has: identifiers and dropped ones.
    """

    axes: tuple[Axis, ...]
    tree: Tree
    output: Output = Output.LABELS
    left_out: frozenset[str] = frozenset()

    @property
    def n_groups(self) -> int:
        return int(self.tree.is_leaf.sum())

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""
        counts = np.bincount(self.tree.axis[~self.tree.is_leaf], minlength=len(self.axes))
        return {axis.attribute.name: int(n) for axis, n in zip(self.axes, counts, strict=True)}

    def boxes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends (nodes, axes) of the box of every node, narrowed to its cover; see ``fill_boxes``."""
        tree, n_axes = self.tree, len(self.axes)
        low = np.full((len(tree.axis), n_axes), np.nan)
        high = np.full((len(tree.axis), n_axes), np.inf)
        is_tree = np.array([isinstance(axis, TreeAxis) for axis in self.axes])
        low[0, is_tree] = 0
        high[0, [isinstance(axis, OrderedAxis) and axis.low > axis.high for axis in self.axes]] = MISSING
        fill_boxes(
            is_tree, tree.axis, tree.threshold, tree.first_child, tree.n_children, tree.branch, low, high
        )
        return np.where(tree.cover >= 0, tree.cover, low), high

    def columns(
        self, nodes: NDArray[np.integer[Any]], expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """The published quasi-identifier columns of rows at these nodes of the tree.

        ``expand`` makes an array over the rows of one over the nodes.
        """
        low, high = (ends[nodes] for ends in self.boxes())
        out: dict[str, pa.Array] = {}
        for a, axis in enumerate(self.axes):
            if isinstance(axis, TreeAxis):
                out |= self._tree_column(axis, expand(low[:, a].astype(np.int32)))
            else:
                out |= self._ordered_columns(axis, low[:, a], high[:, a], expand)
        return out

    def apply(self, frame: Any) -> Any:
        """Recode the quasi-identifiers of any rows, in the kind of frame that came in.

        Columns that the release leaves out are left out here too; all others pass through.
        """
        source = tables.open_table(frame)
        return tables.hand_back(self.apply_to(source), source)

    def apply_to(self, source: Source) -> pa.Table:
        values, nodes, strange = self._read(source)
        place = self._places(source.n_rows, values, nodes)
        nodes_met, at = np.unique(place, return_inverse=True)
        recoded = self.columns(nodes_met, lambda values: values[at])
        low, _ = self.boxes()
        for a, axis in enumerate(self.axes):
            name = axis.attribute.name
            if isinstance(axis, TreeAxis):
                recoded |= self._tree_column(
                    axis, _join(axis.nodes, low[place, a].astype(np.int64), nodes[name])
                )
            elif strange[name].any():
                hidden = self.of_attribute(recoded, name).items()
                recoded |= {key: _hide(column, strange[name]) for key, column in hidden}
        quasi = {axis.attribute.name for axis in self.axes}
        out: dict[str, Any] = {}
        for name in source.names:
            if name in quasi:
                out |= self.of_attribute(recoded, name)
            elif name in recoded:
                raise TableError(
                    f"Column {name!r} of the table has the name of a published bound; rename it."
                )
            elif name not in self.left_out:
                out[name] = passed_on(source.column(name), name)
        return tables.compact(pa.table(out))

    def of_attribute(self, columns: Mapping[str, pa.Array], name: str) -> dict[str, pa.Array]:
        """Those of the published columns that stand for attribute ``name``."""
        names = (name,) if self.output is Output.LABELS else (name, f"{name}_low", f"{name}_high")
        return {key: columns[key] for key in names if key in columns}

    # -- published cells ---------------------------------------------------------------------------

    def _tree_column(self, axis: TreeAxis, nodes: NDArray[np.integer[Any]]) -> dict[str, pa.Array]:
        return {axis.attribute.name: _labelled(nodes, pa.array(axis.nodes.labels, pa.string()))}

    def _ordered_columns(
        self,
        axis: OrderedAxis,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        expand: Callable[[NDArray[Any]], NDArray[Any]],
    ) -> dict[str, pa.Array]:
        which, low, high = _distinct_boxes(low, high)
        name, at = axis.attribute.name, expand(which)
        out: dict[str, pa.Array] = {}
        if self.output is not Output.BOUNDS:
            out[name] = _labelled(at, axis.labels(low, high))
        if self.output is not Output.LABELS:
            first, last = axis.ends(low, high)
            no_low = np.isneginf(high) | (np.isnan(low) & axis.has_missing)
            out[f"{name}_low"] = _bound(first, no_low, axis).take(pa.array(at))
            out[f"{name}_high"] = _bound(last, np.isneginf(high), axis).take(pa.array(at))
        return out

    # -- strangers ---------------------------------------------------------------------------------

    def _read(
        self, source: Source
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.int64]], dict[str, NDArray[np.bool_]]]:
        """Values of ordered axes, hierarchy nodes of trees, and which ordered cells are missing unheard-of."""
        values, nodes, strange = {}, {}, {}
        for axis in self.axes:
            name = axis.attribute.name
            column = source.column(name)
            if isinstance(axis, TreeAxis):
                nodes[name] = known_nodes(axis, column)
            else:
                cells = read_ordered(axis.attribute, column)
                strange[name] = np.isneginf(cells) & (not axis.has_missing)
                values[name] = np.where(strange[name], np.nan, cells)
        return values, nodes, strange

    def _places(
        self, n_rows: int, values: Mapping[str, NDArray[np.float64]], nodes: Mapping[str, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        is_tree = np.array([isinstance(axis, TreeAxis) for axis in self.axes])
        column = np.where(is_tree, np.cumsum(is_tree) - 1, np.cumsum(~is_tree) - 1).astype(np.int64)
        trees = [axis.nodes for axis in self.axes if isinstance(axis, TreeAxis)]
        offsets = np.cumsum([0, *(tree.n_nodes for tree in trees)])
        shift = np.zeros(len(self.axes), dtype=np.int64)
        shift[is_tree] = offsets[:-1]
        last = [offset + tree.leaf_nodes[tree.high - 1] for offset, tree in zip(offsets, trees, strict=False)]
        tree = self.tree
        branch = tree.branch.astype(np.int64)
        inner = np.flatnonzero(~tree.is_leaf)
        for node in inner[is_tree[tree.axis[inner]]]:
            first = tree.first_child[node]
            branch[first : first + tree.n_children[node]] += shift[tree.axis[node]]
        out = np.empty(n_rows, dtype=np.int64)
        fill_places(
            _stacked(list(values.values()), n_rows, np.float64),
            _stacked([cells + shift for cells, shift in zip(nodes.values(), offsets, strict=False)], n_rows, np.int64),
            column, is_tree, tree.axis, tree.threshold, tree.first_child, tree.n_children, branch,
            np.concatenate(last).astype(np.int64) if last else np.zeros(0, dtype=np.int64), out,
        )  # fmt: skip
        return out

    # -- on disk -----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write ``recoding.json``, with ``recoding.parquet`` beside it when the tree is large."""
        nodes = self._node_table()
        is_large = nodes.num_rows > LARGE
        document = {
            "format": FORMAT,
            "output": str(self.output),
            "attributes": [_axis_as_dict(axis) for axis in self.axes],
            "nodes": "recoding.parquet" if is_large else nodes.to_pydict(),
        }
        if is_large:
            with replace_atomically(folder / "recoding.parquet") as temporary:
                pq.write_table(nodes, temporary, write_statistics=False)
        with replace_atomically(folder / "recoding.json") as temporary:
            temporary.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")

    def _node_table(self) -> pa.Table:
        tree = self.tree
        is_ordered = np.array([isinstance(axis, OrderedAxis) for axis in self.axes])
        has_threshold = ~tree.is_leaf & is_ordered[tree.axis] & np.isfinite(tree.threshold)
        columns = {
            "axis": tree.axis,
            "threshold": pa.array(tree.threshold, mask=~has_threshold),
            "first_child": tree.first_child,
            "n_children": tree.n_children,
            "branch": tree.branch,
        }
        for a in np.flatnonzero(~is_ordered):
            columns[f"cover_{a}"] = tree.cover[:, a]
        return pa.table(columns)

    @classmethod
    def read(cls, folder: Path, schema: Schema) -> Recoding:
        """The recoding of a release folder; ``schema`` is that of the policy beside it."""
        path = Path(folder) / "recoding.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            nodes = (
                pq.read_table(path.parent / "recoding.parquet")
                if document["nodes"] == "recoding.parquet"
                else pa.table(document["nodes"])
            )
            axes = tuple(_axis_from_dict(entry, schema) for entry in document["attributes"])
            output = Output(document["output"])
            return cls(axes, _tree_from(nodes, len(axes)), output, schema.left_out)
        except FileNotFoundError:
            raise InputError(f"{folder} has no recoding to apply.") from None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            raise InputError(f"{path} is not a recoding that this version can read.") from None


def passed_on(column: Any, name: str) -> Any:
    """A column that is published as it is, stored in a way that every format and reader knows.

    >>> passed_on(pa.chunked_array([pa.nulls(1)]), "ward").type
    DataType(string)
    """
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
        column = column.cast(column.type.value_type)
    value = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(value) or pa.types.is_interval(value) or isinstance(value, pa.BaseExtensionType):
        raise TableError(
            f"Column {name!r} is stored as {value}, where a cell must hold one value; convert it, or drop it."
        )
    if not any(is_kind(value) for is_kind in _BYTES_AND_VIEWS):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        raise TableError(
            f"Column {name!r} holds text that is not UTF-8; save it as UTF-8, or drop it."
        ) from None


_BYTES_AND_VIEWS = (
    pa.types.is_null,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_string_view,
    pa.types.is_binary_view,
)


# ---- making one ------------------------------------------------------------------------------------


def axis_of(domain: Domain, used: NDArray[np.integer[Any]]) -> tuple[Axis, NDArray[np.int32]]:
    """The axis of a domain, and for a tree where each hierarchy node went; only ``used`` nodes are kept."""
    if isinstance(domain, OrderedDomain):
        axis = OrderedAxis(domain.attribute, domain.low, domain.high, domain.grid, domain.has_missing)
        return axis, np.zeros(0, dtype=np.int32)
    kept, new = domain.hierarchy.prune(np.unique(used[used >= 0]))
    return TreeAxis(domain.attribute, kept, domain.has_missing), new


def read_ordered(attribute: Attribute, column: Any) -> NDArray[np.float64]:
    """Cells of an ordered column as numbers; missing is -inf."""
    cells = (
        tables.dates(column, attribute).cast(pa.int32())
        if attribute.kind is Kind.DATE
        else tables.numbers(column, attribute)
    )
    values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.float64)
    if cells.null_count:
        values[np.asarray(cells.is_null().to_numpy(zero_copy_only=False))] = MISSING
    return values


def known_nodes(axis: TreeAxis, column: Any) -> NDArray[np.int64]:
    """The deepest known hierarchy node of each cell."""
    attribute = axis.attribute
    if attribute.kind is Kind.CATEGORY:
        cells = tables.texts(column, attribute)
        values: Any = cells.dictionary.to_pylist()
    else:
        raw = (
            tables.dates(column, attribute)
            if attribute.kind is Kind.DATE
            else tables.numbers(column, attribute)
        )
        cells = raw.dictionary_encode()
        values = cells.dictionary.to_numpy(zero_copy_only=False)
        values = values.astype("datetime64[D]" if attribute.kind is Kind.DATE else np.float64)
        if attribute.bounds is not None and attribute.kind is Kind.NUMBER:
            values = np.clip(values, *attribute.bounds)
    whole = hierarchy.build(attribute, _maskable(attribute, values))
    leaves = hierarchy.locate(attribute, whole, values)
    known = _Descent(axis.nodes)
    nodes = [0 if leaf < 0 else known.node(whole.path(whole.leaf_nodes[leaf])) for leaf in leaves.tolist()]
    missing = axis.nodes.labels.index(None) if None in axis.nodes.labels else 0
    table = np.array([*nodes, missing], dtype=np.int64)
    at = cells.indices.fill_null(len(nodes)).to_numpy(zero_copy_only=False)
    return np.asarray(table[at])


def _maskable(attribute: Attribute, values: Any) -> Any:
    """Without the texts that are too long for a mask: they belong nowhere below the root."""
    if isinstance(attribute.hierarchy, Mapping) and "mask" in attribute.hierarchy:
        return [value for value in values if len(value) <= attribute.hierarchy["mask"]]
    return values


class _Descent:
    """``Hierarchy.descend`` for many paths: children found by label."""

    def __init__(self, tree: Hierarchy) -> None:
        self.root = tree.labels[0]
        self.child = {
            (int(p), tree.labels[node]): node for node, p in enumerate(tree.parent.tolist()) if p >= 0
        }

    def node(self, path: Sequence[str | None]) -> int:
        node = 0
        if path[0] == self.root:
            for label in path[1:]:
                below = self.child.get((node, label))
                if below is None:
                    break
                node = below
        return node


def _join(tree: Hierarchy, box: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest node at or above ``box`` that covers ``cell`` too."""
    last = tree.leaf_nodes[tree.high - 1]
    box = box.copy()
    while (outside := (cell < box) | (cell > last[box])).any():
        box[outside] = tree.parent[box[outside]]
    return box


def _distinct_boxes(
    low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Number the distinct (low, high) pairs: (which pair each node has, their ends)."""
    ends, codes = np.unique(np.concatenate([low, high]), return_inverse=True)  # one NaN, at the end
    key = codes[: len(low)].astype(np.int64) * len(ends) + codes[len(low) :]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return which.astype(np.int32), low[first], high[first]


def _bound(values: NDArray[np.float64], is_null: NDArray[np.bool_], axis: OrderedAxis) -> pa.Array:
    if axis.attribute.kind is Kind.DATE:
        return pa.array(np.where(is_null, 0, values).astype(np.int32), mask=is_null).cast(pa.date32())
    is_whole = axis.grid is not None and all(float(x).is_integer() for x in (axis.grid, axis.low, axis.high))
    kept = np.where(is_null, 0, values)
    return pa.array(kept.astype(np.int64) if is_whole else kept, mask=is_null)


def _labelled(at: NDArray[np.integer[Any]], labels: pa.Array) -> pa.DictionaryArray:
    """A column of labels; a null label makes an empty cell."""
    is_null = np.asarray(labels.is_null())
    indices = pa.array(at.astype(np.int32, copy=False), mask=is_null[at] if is_null.any() else None)
    return pa.DictionaryArray.from_arrays(indices, labels.fill_null(""))


def _hide(column: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    """A cell that is missing where the recoding knows no missing: any value could stand there."""
    if pa.types.is_dictionary(column.type):
        return pa.array(
            np.where(rows, SUPPRESSED, column.cast(pa.string()).to_numpy(zero_copy_only=False)), pa.string()
        )
    return (
        pa.array(column.to_pylist(), column.type, mask=rows)
        if column.null_count == 0
        else _nulled(column, rows)
    )


def _nulled(column: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    return pa.array(
        [None if hide else cell for cell, hide in zip(column.to_pylist(), rows, strict=True)], column.type
    )


def _stacked(columns: list[NDArray[Any]], n_rows: int, dtype: Any) -> NDArray[Any]:
    return np.stack(columns, axis=1).astype(dtype) if columns else np.zeros((n_rows, 0), dtype=dtype)


def _axis_as_dict(axis: Axis) -> dict[str, Any]:
    common = {"name": axis.attribute.name, "missing": axis.has_missing}
    if isinstance(axis, TreeAxis):
        bounds = list(axis.attribute.bounds) if axis.attribute.bounds else None
        tree = {"labels": list(axis.nodes.labels), "parent": axis.nodes.parent.tolist()}
        return {**common, "kind": "tree", "bounds": bounds, **tree}
    return {**common, "kind": "ordered", "low": axis.low, "high": axis.high, "grid": axis.grid}


def _axis_from_dict(entry: Mapping[str, Any], schema: Schema) -> Axis:
    attribute = schema[entry["name"]]
    if entry["kind"] == "ordered":
        return OrderedAxis(attribute, entry["low"], entry["high"], entry["grid"], entry["missing"])
    if entry["bounds"] is not None:
        attribute = replace(attribute, bounds=tuple(entry["bounds"]))
    nodes = Hierarchy(tuple(entry["labels"]), np.array(entry["parent"], dtype=np.int32))
    return TreeAxis(attribute, nodes, entry["missing"])


def _tree_from(nodes: pa.Table, n_axes: int) -> Tree:
    def column(name: str, dtype: Any) -> NDArray[Any]:
        return np.asarray(nodes.column(name)).astype(dtype)

    cover = np.full((nodes.num_rows, n_axes), -1, dtype=np.int32)
    for a in range(n_axes):
        if f"cover_{a}" in nodes.column_names:
            cover[:, a] = column(f"cover_{a}", np.int32)
    return Tree(
        column("axis", np.int32),
        np.asarray(nodes.column("threshold").cast(pa.float64()).fill_null(MISSING)),  # may be null throughout
        column("first_child", np.int32),
        column("n_children", np.int32),
        column("branch", np.int32),
        cover,
    )
