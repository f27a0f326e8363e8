"""A tree of splits that does not fit in memory: its nodes are mapped from a file, and rows go down as in memory.

The published file is Parquet, which cannot be mapped. So the nodes are copied once into a file of records, and
their boxes worked out there. The tree is then used in *windows* of consecutive nodes: children stand after
their parents, so rows that leave a window go on in a later one. What a window took of memory is given back before
the next.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.output import Output
from sfumato.policy.schema import Schema
from sfumato.recoding.axis import Axis, BoxEnds, Floats, axis_from_dict, distinct_boxes
from sfumato.recoding.decision_list import CellKeys
from sfumato.recoding.recoder import Places, Recoder, RowCells
from sfumato.recoding.splits import (
    FIELDS,
    LEAVES_OUT,
    NODES,
    Branches,
    Ints,
    Router,
    Tree,
    count_splits,
    number_told_apart,
    tops_of,
    tree_from,
    write_document,
)
from sfumato.table.distinct import let_go
from sfumato.table.files import replace_atomically
from sfumato.table.spill import Spill, while_spilling

BATCH_NODES = 1 << 16
"""Nodes that are read from the published file at a time."""

LEAST_WINDOW = 4


@dataclass(frozen=True, eq=False, repr=False)
class LargeRecoding(Recoder):
    """A recoding whose tree is in ``path``, a Parquet file as ``Recoding.write`` makes it.

    ``memory`` bounds what the tree takes of memory while it is used, in bytes. Its nodes are mapped from a
    temporary file ``beside`` this path, or where temporary files belong.
    """

    axes: tuple[Axis, ...]
    path: Path
    output: Output
    left_out: frozenset[str]
    memory: int
    beside: Path | None = None
    leaves_rows_out: bool = False
    """Is a row left out whose value no branch names, unless a rest takes it?"""

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], schema: Schema, folder: Path, *, memory: int, beside: Path | None
    ) -> LargeRecoding:
        """The recoding that was written into ``folder``, with its nodes beside the document."""
        axes = tuple(axis_from_dict(entry, schema) for entry in document["attributes"])
        output, leaves_out = Output(document["output"]), bool(document.get(LEAVES_OUT, False))
        return cls(axes, folder / NODES, output, schema.left_out, memory, beside, leaves_out)

    def at(self, folder: Path) -> LargeRecoding:
        """The same recoding in the folder that it was written into: its first one may be a temporary one."""
        return replace(self, path=folder / NODES)

    @property
    def n_nodes(self) -> int:
        with _reading(self.path) as file:
            return int(file.metadata.num_rows)

    @property
    def n_groups(self) -> int:
        return int(self._counts()[0])

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split; each cell of a list counts for those that it divides."""
        counts = self._counts()[1:].tolist()
        return {axis.attribute.name: n for axis, n in zip(self.axes, counts, strict=True)}

    def _counts(self) -> NDArray[np.int64]:
        """How many nodes are leaves, and how many are split on each axis."""
        total, tops = np.zeros(1 + len(self.axes), dtype=np.int64), tops_of(self.axes)
        with _reading(self.path) as file:
            levels = [name for name in file.schema_arrow.names if name.startswith("level_")]
            for batch in file.iter_batches(BATCH_NODES, columns=["axis", *levels]):
                axis, *of_cells = (np.asarray(column) for column in batch.columns)
                total[0] += np.count_nonzero(axis < 0)
                total[1:] += count_splits(axis, tops, np.stack(of_cells, axis=1) if of_cells else None)
        return total

    def write(self, folder: Path) -> None:
        """Write ``recoding.json`` and ``recoding.parquet``, which is the same file where it can be."""
        with replace_atomically(folder / NODES) as temporary:
            try:
                os.link(self.path, temporary)
            except OSError:  # on another disk, or one that knows no links
                shutil.copyfile(self.path, temporary)
        with _reading(self.path) as file:
            has_rests = "otherwise" in file.schema_arrow.names
        write_document(
            folder, self.axes, self.output, NODES, has_rests=has_rests, leaves_rows_out=self.leaves_rows_out
        )

    # -- rows --------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> MappedNodes:
        """The nodes with their boxes. Their file has no name any more: it is gone when this recoding is."""
        with Spill(self.beside) as spill:
            return MappedNodes(self.path, self.axes, self.memory, spill.path("tree"))

    def path_ends(self, places: Places) -> BoxEnds:
        """The ends (places, axes) of the boxes of these nodes of the tree, with all that was told apart on the way."""
        return self.nodes.ends(places)

    def _locate(self, cells: RowCells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = self.nodes.place(cells.matrix(self.axes))
        if self.leaves_rows_out:
            self.nodes.tree.leave_out(self.nodes.router.is_tree, found)
        places, at = np.unique(found, return_inverse=True)
        return places, at

    def _group_ends(self, a: int) -> BoxEnds:
        return self.nodes.group_ends(a)


class MappedNodes:
    """All nodes of a large tree, with their boxes, as records in a file that is mapped into memory."""

    def __init__(self, published: Path, axes: Sequence[Axis], memory: int, path: Path) -> None:
        """Copy the nodes that were published in one file to another, which no longer needs its name then."""
        n_axes = len(axes)
        kind = np.dtype(
            [
                ("axis", np.int32),
                ("n_children", np.int32),
                ("threshold", np.float64),
                ("first_child", np.int64),
                ("branch", np.int32),
                ("first_branch", np.int64),
                (
                    "branch_of_child",
                    np.int64,
                ),  # those of all splits in the order of the splits, as ``Branches``
                ("cover", np.int32, (n_axes,)),
                ("otherwise", np.int32),
                ("low", np.float64, (n_axes,)),
                ("high", np.float64, (n_axes,)),
                ("missing", np.bool_, (n_axes,)),
                *_fields_of_leaves(published, n_axes),
            ],
            align=True,
        )
        self.window = max(memory // (8 * kind.itemsize), LEAST_WINDOW)
        _copy(published, path, kind, min(BATCH_NODES, self.window))
        self._mapped = np.memmap(path, dtype=kind, mode="r+")
        nodes = np.asarray(self._mapped)
        names = kind.names or ()
        labels = (
            BoxEnds(*(nodes[f"label_{name}"] for name in BoxEnds._fields)) if "label_low" in names else None
        )
        cells = CellKeys(nodes["level"], nodes["key"]) if "level" in names else None
        self.axes = axes
        self.n_kinds = len(axes) + all(axis.cells is not None for axis in axes)
        """What a node may be split on: an axis, or a list."""
        self.tree = Tree(**{name: nodes[name] for name in FIELDS}, labels=labels, cells=cells)
        self.branches = Branches(nodes["first_branch"], nodes["branch_of_child"])
        self.boxes = BoxEnds(*(nodes[name] for name in BoxEnds._fields))
        self.router = Router(axes)
        self._fill_in()

    def place(self, cells: Floats) -> Ints:
        """The deepest node that each row surely belongs to; ``cells`` are as ``RowCells.matrix`` gives them."""
        out = np.zeros(len(cells), dtype=np.int64)
        for start, end in self._windows():
            here = np.flatnonzero((out >= start) & (out < end))
            if len(here):
                found = out[here]
                self.router.fill_places(cells[here], self.tree, self.branches, found, end=end)
                self.tree.place_in_lists(cells[here], self.axes, found)
                out[here] = found
        return out

    def ends(self, places: Places) -> BoxEnds:
        """The ends (places, axes) of the boxes of these nodes."""
        shape = (len(places), self.boxes.low.shape[1])
        found = BoxEnds(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.bool_))
        for start, end in self._windows():
            here = np.flatnonzero((places >= start) & (places < end))
            for of_all, own in zip(found, self._narrow(places[here]), strict=True):
                of_all[here] = own
        return found

    def group_ends(self, a: int) -> BoxEnds:
        """The distinct boxes of groups along axis ``a``."""
        found = BoxEnds(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.bool_))
        for start, end in self._windows():
            leaves = start + np.flatnonzero(self.tree.axis[start:end] < 0)
            both = zip(found, self._narrow(leaves).along(a), strict=True)
            found = distinct_boxes(*(np.append(known, more) for known, more in both)).ends
        return found

    def _narrow(self, nodes: Places) -> BoxEnds:
        """The ends of the boxes of nodes, narrowed to what is published."""
        ends = self.tree.narrow(self.boxes.take(nodes), nodes)
        return number_told_apart(self.axes, self.tree, self.boxes.high, ends)

    def _windows(self) -> Iterator[tuple[int, int]]:
        """The first node and the end of each window; its memory is given back when the next is asked for."""
        for start in range(0, self.tree.n_nodes, self.window):
            yield start, min(start + self.window, self.tree.n_nodes)
            let_go(self._mapped)

    # -- after the copy ----------------------------------------------------------------------------

    def _fill_in(self) -> None:
        """Check the tree, fill in its boxes, and put the branches of all children next to each other."""
        for of_all, of_root in zip(self.boxes, self.router.everything(), strict=True):
            of_all[0] = of_root
        n_before = 0
        for start, end in self._windows():
            self._check(start, end, n_before)
            for part in self._parts(start, end):
                n_before += self._number_branches(*part, n_before)
                self.router.fill_boxes(self.tree, self.boxes, start=part[0], end=part[1])
                let_go(self._mapped)

    def _check(self, start: int, end: int, n_before: int) -> None:
        """A damaged file must not send rows back, or out of it. ``n_before`` nodes are children of earlier ones."""
        own = start + np.flatnonzero(self.tree.axis[start:end] >= 0)
        axis, first, n = self.tree.axis[own], self.tree.first_child[own], self.tree.n_children[own]
        is_fine = (first > own) & (n > 0) & (first + n <= self.tree.n_nodes) & (axis < self.n_kinds)
        if not is_fine.all() or n_before + n.sum() >= self.tree.n_nodes:
            raise InputError("The nodes of a recoding are not those of a tree; its file is damaged.")

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A window in parts. Children outside the window stand next to each other, as far as they are of one part.

        To touch a page may bring the megabyte around it into memory, so that few places may be touched at a time.
        """
        first, n = self.tree.first_child[start:end], self.tree.n_children[start:end]
        outside = np.flatnonzero((self.tree.axis[start:end] >= 0) & (first >= end))
        is_apart = first[outside][1:] != (first + n)[outside][:-1]
        return itertools.pairwise([start, *(start + outside[1:][is_apart]).tolist(), end])

    def _number_branches(self, start: int, end: int, n_before: int) -> int:
        """Copy the branches of the children of some nodes behind those of earlier nodes; returns how many."""
        axis = self.tree.axis[start:end]
        n = np.where(axis >= 0, self.tree.n_children[start:end], 0)
        before, total = np.cumsum(n) - n, int(n.sum())
        children = np.repeat(self.tree.first_child[start:end] - before, n) + np.arange(total)
        self.branches.first[start:end] = n_before + before
        branch = self.tree.branch[children]
        named = branch >= 0  # the rest is no node, and neither is a cell of a list
        shift = np.where(named, self.router.shift[np.where(named, np.repeat(axis, n), 0)], 0)
        self.branches.node[n_before : n_before + total] = branch + shift
        return total


def _fields_of_leaves(published: Path, n_axes: int) -> list[tuple[str, Any, tuple[int]]]:
    """The fields of labels and of cells of lists, if the published nodes have any."""
    with _reading(published) as file:
        names = file.schema_arrow.names
    labels = [("label_low", np.float64), ("label_high", np.float64), ("label_missing", np.bool_)]
    cells = [("level", np.int8), ("key", np.int64)]
    has_labels = any(name.startswith("value_") for name in names)
    fields = labels * has_labels + cells * ("level_0" in names)
    return [(name, kind, (n_axes,)) for name, kind in fields]


def _copy(published: Path, path: Path, kind: np.dtype[Any], batch_nodes: int) -> None:
    """Write the nodes of a published file as records; what is not published of them is zero for now."""
    n_axes = kind["low"].shape[0]
    with while_spilling(path.parent), path.open("wb") as file, _reading(published) as nodes:
        for batch in nodes.iter_batches(batch_nodes):
            tree = tree_from(pa.Table.from_batches([batch]), n_axes)
            records = np.zeros(tree.n_nodes, dtype=kind)
            for name in FIELDS:
                records[name] = getattr(tree, name)
            if tree.labels is not None:
                for name, ends in zip(BoxEnds._fields, tree.labels, strict=True):
                    records[f"label_{name}"] = ends
            if tree.cells is not None:
                records["level"], records["key"] = tree.cells
            with while_spilling(path.parent):
                file.write(records.view(np.uint8).data)


@contextmanager
def _reading(path: Path) -> Iterator[pq.ParquetFile]:
    """The published nodes, and one sentence for whatever is wrong with their file."""
    try:
        with pq.ParquetFile(path, buffer_size=1 << 18) as file:
            yield file
    except FileNotFoundError:
        raise InputError(
            f"{path} is gone, which held the nodes of a recoding; read its release again."
        ) from None
    except (OSError, KeyError, pa.ArrowException):
        raise InputError(f"{path} is not a recoding that this version can read.") from None
