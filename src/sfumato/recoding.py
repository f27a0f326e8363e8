"""Row -> box -> published values: a total function on the domain, so that further rows can be recoded.

A :class:`Recoding` is a tree of splits over the quasi-identifiers; :class:`~sfumato.cuts.Cuts` are the other kind.
Both hold thresholds and the hierarchy nodes that their boxes use, never a column's distinct values, and both give
a box to any row; see :mod:`sfumato.boxes`. In a tree, a row that belongs to no group (its branch was empty, or a
split asks what its value cannot tell) gets the box of the deepest node that still covers it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.axes import Axis, Floats, OrderedAxis, TreeAxis, axis_as_dict, axis_from_dict, axis_of
from sfumato.boxes import Boxes, Cells, Places
from sfumato.cuts import KIND as CUTS
from sfumato.cuts import Cuts
from sfumato.encoding import MISSING, Domain, OrderedDomain
from sfumato.errors import InputError
from sfumato.kernels.grow import Nodes
from sfumato.kernels.route import fill_boxes, fill_places
from sfumato.policy import Output
from sfumato.schema import Schema
from sfumato.tables import replace_atomically

FORMAT = 1
LARGE = 10_000
"""Nodes beyond which the tree is written as Parquet beside the JSON."""


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recoding(Boxes):
    """A tree of splits with what its axes mean. ``apply`` recodes any rows and promises nothing.

    ``left_out`` are the columns that a release never has: identifiers and dropped ones. A place is a node of the tree.
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

    def boxes(self) -> tuple[Floats, Floats]:
        """Ends (nodes, axes) of the box of every node, narrowed to its cover."""
        tree, n_axes = self.tree, len(self.axes)
        low = np.full((len(tree.axis), n_axes), np.nan)
        high = np.full((len(tree.axis), n_axes), np.inf)
        is_tree = np.array([isinstance(axis, TreeAxis) for axis in self.axes])
        low[0, is_tree] = 0
        high[0] = [axis.top if isinstance(axis, OrderedAxis) else np.inf for axis in self.axes]
        fill_boxes(
            is_tree, tree.axis, tree.threshold, tree.first_child, tree.n_children, tree.branch, low, high
        )
        return np.where(tree.cover >= 0, tree.cover, low), high

    def ends(self, places: Places) -> tuple[Floats, Floats]:
        """The ends (places, axes) of the boxes of these nodes of the tree."""
        low, high = self.boxes()
        return low[places], high[places]

    def _group_ends(self, a: int) -> tuple[Floats, Floats]:
        low, high = self.boxes()
        return low[self.tree.is_leaf, a], high[self.tree.is_leaf, a]

    # -- strangers ---------------------------------------------------------------------------------

    def _locate(self, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        places, at = np.unique(self._places(cells), return_inverse=True)
        return places, at

    def _places(self, cells: Cells) -> NDArray[np.int64]:
        is_tree = np.array([isinstance(axis, TreeAxis) for axis in self.axes])
        column = np.where(is_tree, np.cumsum(is_tree) - 1, np.cumsum(~is_tree) - 1).astype(np.int64)
        trees = [axis.nodes for axis in self.axes if isinstance(axis, TreeAxis)]
        offsets = np.cumsum([0, *(tree.n_nodes for tree in trees)])
        shift = np.zeros(len(self.axes), dtype=np.int64)
        shift[is_tree] = offsets[:-1]
        last = [offset + tree.leaf_nodes[tree.high - 1] for offset, tree in zip(offsets, trees, strict=False)]
        nodes = [cells + offset for cells, offset in zip(cells.nodes.values(), offsets, strict=False)]
        tree = self.tree
        branch = tree.branch.astype(np.int64)
        inner = np.flatnonzero(~tree.is_leaf)
        for node in inner[is_tree[tree.axis[inner]]]:
            first = tree.first_child[node]
            branch[first : first + tree.n_children[node]] += shift[tree.axis[node]]
        out = np.empty(cells.n_rows, dtype=np.int64)
        fill_places(
            _stacked(list(cells.values.values()), cells.n_rows, np.float64),
            _stacked(nodes, cells.n_rows, np.int64),
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
            "attributes": [axis_as_dict(axis) for axis in self.axes],
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
    def from_document(cls, document: Mapping[str, Any], schema: Schema, folder: Path) -> Recoding:
        """The tree that ``write`` wrote into ``folder``."""
        nodes = (
            pq.read_table(folder / "recoding.parquet")
            if document["nodes"] == "recoding.parquet"
            else pa.table(document["nodes"])
        )
        axes = tuple(axis_from_dict(entry, schema) for entry in document["attributes"])
        return cls(axes, _tree_from(nodes, len(axes)), Output(document["output"]), schema.left_out)

    @classmethod
    def read(cls, folder: Path, schema: Schema) -> Recoding:
        """The tree of a release folder; the function ``read`` reads recodings of either kind."""
        found = read(folder, schema)
        if not isinstance(found, Recoding):
            raise InputError(f"The recoding of {folder} has shared cuts and no tree of splits.")
        return found


AnyRecoding = Recoding | Cuts


# ---- codes become values ---------------------------------------------------------------------------


def recoding_of(
    nodes: Nodes,
    covers: NDArray[np.int64],
    domains: Sequence[Domain],
    roots: NDArray[np.int64],
    output: Output,
    left_out: frozenset[str],
) -> Recoding:
    """The recoding of a grown tree: codes become values, and hierarchies keep only the nodes in use.

    covers   (leaves, axes) the hierarchy node that covers the rows of a leaf, -1 where none does
    roots    (axes,) number of the first node of an axis' hierarchy, as ``Axes`` has it
    """
    above = axis_above(nodes)
    axes, new = axes_in_use(nodes_in_use(nodes, covers, above, domains, roots), domains)
    return Recoding(axes, tree_of(nodes, covers, above, new, domains, roots), output, left_out)


def nodes_in_use(
    nodes: Nodes,
    covers: NDArray[np.int64],
    above: NDArray[np.int32],
    domains: Sequence[Domain],
    roots: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    """The hierarchy nodes of each axis that splits, branches and covers name; none of an ordered axis."""
    found = []
    for a, domain in enumerate(domains):
        if isinstance(domain, OrderedDomain):
            found.append(np.zeros(0, dtype=np.int64))
            continue
        named = (nodes.branch[above == a], nodes.threshold[nodes.axis == a], covers[covers[:, a] >= 0, a])
        found.append(np.unique(np.concatenate(named)) - roots[a])
    return found


def axes_in_use(
    used: Sequence[NDArray[np.int64]], domains: Sequence[Domain]
) -> tuple[tuple[Axis, ...], tuple[NDArray[np.int32], ...]]:
    """The axes of a recoding that uses these hierarchy nodes, and where each node of a hierarchy went."""
    made = [axis_of(domain, nodes) for domain, nodes in zip(domains, used, strict=True)]
    return tuple(axis for axis, _ in made), tuple(new for _, new in made)


def tree_of(
    nodes: Nodes,
    covers: NDArray[np.int64],
    above: NDArray[np.int32],
    new: Sequence[NDArray[np.int32]],
    domains: Sequence[Domain],
    roots: NDArray[np.int64],
) -> Tree:
    """The same tree in values and in the nodes of pruned hierarchies; see ``axes_in_use`` for ``new``."""
    is_leaf = nodes.axis < 0
    n_nodes = len(nodes.axis)
    threshold = np.full(n_nodes, np.nan)
    branch = np.full(n_nodes, -1, dtype=np.int32)
    cover = np.full((n_nodes, len(domains)), -1, dtype=np.int32)
    for a, domain in enumerate(domains):
        here, below = nodes.axis == a, above == a
        if isinstance(domain, OrderedDomain):
            threshold[here] = domain.value(nodes.threshold[here])
            branch[below] = nodes.branch[below]
            continue
        branch[below] = new[a][nodes.branch[below] - roots[a]]
        cover[here, a] = new[a][nodes.threshold[here] - roots[a]]
        cover[is_leaf, a] = np.where(covers[:, a] < 0, -1, new[a][np.maximum(covers[:, a] - roots[a], 0)])
    return Tree(nodes.axis, threshold, nodes.first_child, nodes.n_children, branch, cover)


def axis_above(nodes: Nodes) -> NDArray[np.int32]:
    """The attribute that made each node, -1 for the root."""
    out = np.full(len(nodes.axis), -1, dtype=np.int32)
    inner = np.flatnonzero(nodes.axis >= 0)
    n_children = nodes.n_children[inner]
    first = np.repeat(nodes.first_child[inner], n_children)
    within = np.arange(len(first)) - np.repeat(np.cumsum(n_children) - n_children, n_children)
    out[first + within] = np.repeat(nodes.axis[inner], n_children)
    return out


# ---- on disk ---------------------------------------------------------------------------------------


def read(folder: Path, schema: Schema) -> AnyRecoding:
    """The recoding of a release folder; ``schema`` is that of the policy beside it."""
    path = Path(folder) / "recoding.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "kind" in document and document["kind"] == CUTS:
            return Cuts.from_document(document, schema)
        return Recoding.from_document(document, schema, path.parent)
    except FileNotFoundError:
        raise InputError(f"{folder} has no recoding to apply.") from None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise InputError(f"{path} is not a recoding that this version can read.") from None


def _stacked(columns: list[NDArray[Any]], n_rows: int, dtype: Any) -> NDArray[Any]:
    return np.stack(columns, axis=1).astype(dtype) if columns else np.zeros((n_rows, 0), dtype=dtype)


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
