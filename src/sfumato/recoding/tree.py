"""Recoding by a tree of splits in memory, and how recodings of any kind are read from a release folder.

A :class:`Recoding` is a tree of splits over the quasi-identifiers; :class:`~sfumato.recoding.cuts.Cuts` are the other
kind. Both hold thresholds and the hierarchy nodes that their boxes use, never a column's distinct values, and both
give a box to any row; see :mod:`sfumato.recoding.recoder`. In a tree, a row that belongs to no group (its branch was
empty, or a split asks what its value cannot tell) gets the box of the deepest node that still covers it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.kernels.nodes import Nodes
from sfumato.machine import free_memory
from sfumato.policy.output import Output
from sfumato.policy.schema import Schema
from sfumato.recoding.axis import (
    Axis,
    BoxEnds,
    DistinctBoxes,
    OrderedAxis,
    TreeAxis,
    axis_from_dict,
    distinct_boxes,
)
from sfumato.recoding.cuts import KIND as CUTS
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.recoder import Places, Recoder, RowCells
from sfumato.recoding.splits import (
    LEAVES_OUT,
    NODES,
    Branches,
    Decoder,
    RecodingPlan,
    Router,
    Tree,
    axis_above,
    bytes_per_node,
    count_splits,
    nodes_in_use,
    number_told_apart,
    table_of,
    tops_of,
    tree_from,
    write_document,
)
from sfumato.table.files import replace_atomically

LARGE = 10_000
"""Nodes beyond which the tree is written as Parquet beside the JSON."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recoding(Recoder):
    """The recoding of a release by Mondrian: a tree of splits, which gives any row a box.

    ``apply`` recodes rows of the same columns, and promises nothing. ``left_out`` are the columns that a release never
    has: identifiers and dropped ones. A place is a node of the tree.
    """

    axes: tuple[Axis, ...]
    tree: Tree
    output: Output = Output.LABELS
    left_out: frozenset[str] = frozenset()
    leaves_rows_out: bool = False
    """Is a row left out whose value no branch names, unless a rest takes it?"""
    _along: list[DistinctBoxes] = field(default_factory=list, init=False)
    """The boxes of the leaves along each axis, once somebody has asked for them."""

    @property
    def n_groups(self) -> int:
        return int(self.tree.is_leaf.sum())

    @property
    def has_lists(self) -> bool:
        """Does a list of cells take the place of splits?"""
        return self.tree.cells is not None

    @property
    def has_overlaps(self) -> bool:
        """May a label cover values that other groups were told apart by?"""
        is_rest = self.tree.above() >= 0
        return bool(np.any(self.tree.branch[is_rest] < 0))

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split; each cell of a list counts for those that it divides."""
        levels = None if self.tree.cells is None else self.tree.cells.levels
        counts = count_splits(self.tree.axis, tops_of(self.axes), levels)
        return {axis.attribute.name: int(n) for axis, n in zip(self.axes, counts, strict=True)}

    def boxes(self) -> BoxEnds:
        """Ends (nodes, axes) of the box of every node, as ``path_ends`` gives them."""
        router, shape = Router(self.axes), (self.tree.n_nodes, len(self.axes))
        ends = BoxEnds(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.bool_))
        for of_all, of_root in zip(ends, router.everything(), strict=True):
            of_all[0] = of_root
        router.fill_boxes(self.tree, ends)
        return number_told_apart(self.axes, self.tree, ends.high, self.tree.narrow(ends))

    def leaf_boxes(self) -> Sequence[DistinctBoxes]:
        """The distinct boxes of the leaves along each axis, worked out once: rows and report both begin with them."""
        if not self._along:
            ends = self.ends(np.flatnonzero(self.tree.is_leaf))
            self._along.extend(distinct_boxes(*ends.along(a)) for a in range(len(self.axes)))
        return self._along

    def columns(
        self, places: Places, expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """The published quasi-identifier columns of rows at these places."""
        is_leaf = self.tree.is_leaf
        if len(places) < self.n_groups or not is_leaf[places].all():
            return Recoder.columns(self, places, expand)
        number = (np.cumsum(is_leaf) - 1)[places]
        boxes = [own._replace(which=own.which[number]) for own in self.leaf_boxes()]
        return self.columns_of_distinct(boxes, expand)

    def path_ends(self, places: Places) -> BoxEnds:
        """The ends (places, axes) of the boxes of these nodes of the tree, with all that was told apart on the way."""
        return self.boxes().take(places)

    def _group_ends(self, a: int) -> BoxEnds:
        return self.boxes().take(self.tree.is_leaf).along(a)

    # -- any rows ----------------------------------------------------------------------------------

    def _locate(self, cells: RowCells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        places, at = np.unique(self._places(cells), return_inverse=True)
        return places, at

    def _places(self, cells: RowCells) -> NDArray[np.int64]:
        router, branches = self._router()
        out, matrix = np.zeros(cells.n_rows, dtype=np.int64), cells.matrix(self.axes)
        router.fill_places(matrix, self.tree, branches, out)
        self.tree.place_in_lists(matrix, self.axes, out)
        if self.leaves_rows_out:
            self.tree.leave_out(router.is_tree, out)
        return out

    def _router(self) -> tuple[Router, Branches]:
        router = Router(self.axes)
        return router, router.branches(self.tree)

    def prepare(self) -> Recoder:
        """The same recoding for many parts of rows: what each of them needs is worked out once."""
        return _PreparedRecoding(
            self.axes,
            self.tree,
            self.output,
            self.left_out,
            self.leaves_rows_out,
            self.boxes(),
            self._router(),
        )

    def leaves_from_left(self) -> NDArray[np.int64]:
        """The leaves in the order in which the groups of a table come."""
        found, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            first, n = int(self.tree.first_child[node]), int(self.tree.n_children[node])
            if n:
                waiting += range(first + n - 1, first - 1, -1)
            else:
                found.append(node)
        return np.array(found)

    # -- on disk -----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write ``recoding.json``, with ``recoding.parquet`` beside it when the tree is large."""
        nodes = table_of(self.tree, self.axes)
        if nodes.num_rows > LARGE:
            with replace_atomically(folder / NODES) as temporary:
                pq.write_table(nodes, temporary, write_statistics=False)
        stored = NODES if nodes.num_rows > LARGE else nodes.to_pydict()
        write_document(
            folder,
            self.axes,
            self.output,
            stored,
            has_rests=self.tree.has_rests,
            leaves_rows_out=self.leaves_rows_out,
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any], schema: Schema, folder: Path) -> Recoding:
        """The tree that ``write`` wrote into ``folder``."""
        nodes = pq.read_table(folder / NODES) if document["nodes"] == NODES else pa.table(document["nodes"])
        axes = tuple(axis_from_dict(entry, schema) for entry in document["attributes"])
        tree, leaves_out = tree_from(nodes, len(axes)), bool(document.get(LEAVES_OUT, False))
        return cls(axes, tree, Output(document["output"]), schema.left_out, leaves_out)

    @classmethod
    def read(cls, folder: Path, schema: Schema) -> Recoding:
        """The tree of a release folder, in memory; the function ``read`` reads recodings of any kind and size."""
        found = read(folder, schema, memory=sys.maxsize)
        if not isinstance(found, Recoding):
            raise InputError(f"The recoding of {folder} has shared cuts and no tree of splits.")
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _PreparedRecoding(Recoding):
    """A recoding whose boxes were worked out once, for many parts of rows."""

    all_boxes: BoxEnds | None = None
    router: tuple[Router, Branches] | None = None

    def boxes(self) -> BoxEnds:
        assert self.all_boxes is not None
        return self.all_boxes

    def _router(self) -> tuple[Router, Branches]:
        assert self.router is not None
        return self.router


AnyRecoding = Recoding | Cuts


def read(
    folder: Path, schema: Schema, *, memory: int | None = None, beside: Path | None = None
) -> AnyRecoding | LargeRecoding:
    """The recoding of a release folder; ``schema`` is that of the policy in it.

    A tree that would take more than ``memory`` bytes, or a quarter of what is free, is left on disk. Temporary
    files of such a tree lie ``beside`` a file, or where temporary files belong.
    """
    path = Path(folder) / "recoding.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "kind" in document and document["kind"] == CUTS:
            return Cuts.from_document(document, schema)
        if document["nodes"] == NODES:
            n_nodes = pq.read_metadata(path.parent / NODES).num_rows
            share = memory or free_memory() // 4
            if n_nodes * bytes_per_node(len(document["attributes"])) > share:
                return LargeRecoding.from_document(document, schema, path.parent, memory=share, beside=beside)
        return Recoding.from_document(document, schema, path.parent)
    except FileNotFoundError:
        raise InputError(f"{folder} has no recoding to apply; was it published without one?") from None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise InputError(f"{path} is not a recoding that this version can read.") from None


def recoding_of(nodes: Nodes, covers: NDArray[np.int64], plan: RecodingPlan) -> Recoding:
    """The recoding of a grown tree: codes become values, and hierarchies keep only the nodes in use.

    covers   (leaves, axes) the hierarchy node that covers the rows of a leaf, or their span; -1 where there is none;
             with lists, the cells of the leaves stand behind them
    """
    above = axis_above(nodes.axis, nodes.first_child, nodes.n_children)
    has_lists = covers.shape[1] > len(plan.domains)
    decoder = Decoder.of(nodes_in_use(nodes, covers, above, plan.is_tree), plan, has_lists=has_lists)
    tree = decoder.tree(nodes, covers, above)
    return Recoding(decoder.axes, tree, plan.output, plan.left_out, plan.leaves_rows_out)


__all__ = [
    "AnyRecoding",
    "LargeRecoding",
    "OrderedAxis",
    "Recoding",
    "Tree",
    "TreeAxis",
    "read",
    "recoding_of",
]
