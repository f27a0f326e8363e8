"""A tree that is streamed to disk while it is grown, so that it is never in memory as a whole.

Each path from the root to a leaf is a rule, and the set of all rules makes the recoding [LDR08, section 5.1.2].
The tree is grown in *pieces*, each below a leaf of the *top tree*, and a piece is written as soon as it is
finished. How a recoding is used that does not fit in memory, :mod:`sfumato.recoding.large_tree` says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.kernels.nodes import Nodes
from sfumato.policy.schema import Schema
from sfumato.recoding import tree as recodings
from sfumato.recoding.axis import Axis
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.recoder import Applied
from sfumato.recoding.splits import (
    NODES,
    Decoder,
    RecodingPlan,
    Tree,
    add_no_cells,
    axis_above,
    bytes_per_node,
    join_trees,
    nodes_in_use,
    table_of,
)
from sfumato.recoding.tree import Recoding, recoding_of
from sfumato.table import formulas
from sfumato.table import write as table_write
from sfumato.table.files import check_file_target
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.spill import Spill, while_spilling
from sfumato.table.write import TableWriter

SMALL = 1_000_000
"""Nodes up to which a tree is kept in memory when it is finished, unless a share of memory is given."""

ROW_GROUP = 1 << 17
"""Nodes of a row group of the file."""

ROW_BYTES = 512
"""Memory for a row that waits to be written, with the copies that writing makes of it."""

_STORED = {
    "axis": np.int32,
    "threshold": np.int64,
    "first_child": np.int32,
    "n_children": np.int32,
    "branch": np.int64,
    "otherwise": np.int32,
}
"""What of a node is stored, and how; its rows are nobody's business any more."""


class AnyTree(Protocol):
    """Where the pieces of a tree go."""

    def piece(self, nodes: Nodes, covers: NDArray[np.int64]) -> int:
        """Keep a subtree in codes, as ``TreeGrower`` gives it, and return its number.

        covers   (leaves, axes), or twice as many columns if cells stand behind, see ``split_cells``
        """
        ...

    def finish(
        self,
        top: Nodes,
        piece_of_leaf: Mapping[int, int],
        leaf_covers: Mapping[int, NDArray[np.int64]],
        plan: RecodingPlan,
    ) -> Recoding | LargeRecoding | None:
        """The recoding of the top tree with piece ``piece_of_leaf[leaf]`` in place of a leaf.

        Its other leaves are groups themselves, with their covers.
        """
        ...


class NoTree:
    """Keeps nothing, where no recoding is wanted."""

    def __init__(self) -> None:
        self.n_pieces = 0

    def piece(self, nodes: Nodes, covers: NDArray[np.int64]) -> int:  # noqa: ARG002 - nothing is kept
        """Only a number."""
        self.n_pieces += 1
        return self.n_pieces - 1

    def finish(self, *_: Any) -> None:
        """No recoding."""


class HeldTree:
    """Keeps the pieces in memory."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Nodes, NDArray[np.int64]]] = []

    def piece(self, nodes: Nodes, covers: NDArray[np.int64]) -> int:
        self._pieces.append((nodes, covers))
        return len(self._pieces) - 1

    def finish(
        self,
        top: Nodes,
        piece_of_leaf: Mapping[int, int],
        leaf_covers: Mapping[int, NDArray[np.int64]],
        plan: RecodingPlan,
    ) -> Recoding:
        """The recoding of the top tree with its pieces, as ``AnyTree`` says."""
        whole, n_axes = top, len(plan.domains)
        n_columns = max([n_axes, *(covers.shape[1] for _, covers in self._pieces)])
        covers = np.full((len(top.axis), n_columns), -1, dtype=np.int64)  # by node
        for leaf in np.flatnonzero(top.axis < 0).tolist():
            if leaf not in piece_of_leaf:
                covers[leaf, :n_axes] = leaf_covers[leaf]
                continue
            nodes, own = self._pieces[piece_of_leaf[leaf]]
            by_node = np.full((len(nodes.axis), n_columns), -1, dtype=np.int64)
            by_node[nodes.axis < 0, : own.shape[1]] = own
            whole, covers = _hang(nodes, whole, leaf), np.concatenate([covers, by_node[1:]])
            covers[leaf] = by_node[0]
        return recoding_of(whole, covers[whole.axis < 0], plan)


class _Piece(NamedTuple):
    """The first node of a piece, and where the piece lies in the file."""

    axis: int
    threshold: int
    n_children: int
    otherwise: int
    cover: NDArray[np.int64] | None  # of a piece that is a leaf
    offset: int
    n_nodes: int
    n_leaves: int
    n_columns: int  # of its covers, and cells


class TreeWriter:
    """A partition tree on its way to disk: of the pieces only their first nodes stay in memory.

    A finished tree of at most ``memory`` bytes (or of a million nodes) becomes an ordinary recoding; a larger
    one stays in ``folder``, from where it is written into a release before the folder is removed.
    """

    def __init__(self, folder: Path, is_tree: NDArray[np.bool_], *, memory: int | None = None) -> None:
        self.folder, self.is_tree, self.n_axes, self.memory = folder, is_tree, len(is_tree), memory
        self.pieces: list[_Piece] = []
        self.n_columns = self.n_axes
        """Columns of covers, and of cells behind them as soon as there is a list."""
        self.used = np.zeros(0, dtype=np.bool_)
        """Is a hierarchy node in use? All hierarchies are numbered in one sequence."""
        self.path = folder / "tree"

    def piece(self, nodes: Nodes, covers: NDArray[np.int64]) -> int:
        """Write a subtree in codes, as ``TreeGrower`` gives it, and return its number."""
        above = axis_above(nodes.axis, nodes.first_child, nodes.n_children)
        self._note(nodes_in_use(nodes, covers, above, self.is_tree))
        with while_spilling(self.folder), self.path.open("ab") as file:
            offset = file.tell()
            for name, kind in _STORED.items():
                file.write(np.ascontiguousarray(getattr(nodes, name), dtype=kind).data)
            file.write(np.ascontiguousarray(covers, dtype=np.int64).data)
        one_leaf = covers[0].copy() if nodes.axis[0] < 0 else None
        root = (
            int(nodes.axis[0]), int(nodes.threshold[0]), int(nodes.n_children[0]), int(nodes.otherwise[0]), one_leaf,
        )  # fmt: skip
        self.pieces.append(_Piece(*root, offset, len(nodes.axis), *covers.shape))
        self.n_columns = max(self.n_columns, covers.shape[1])
        return len(self.pieces) - 1

    def _note(self, found: Sequence[NDArray[np.int64]]) -> None:
        for nodes in found:
            if len(nodes) and nodes[-1] >= len(self.used):
                more = np.zeros(int(nodes[-1]) + 1, dtype=np.bool_)
                self.used = np.concatenate([self.used, more])
            self.used[nodes] = True

    def finish(
        self,
        top: Nodes,
        piece_of_leaf: Mapping[int, int],
        leaf_covers: Mapping[int, NDArray[np.int64]],
        plan: RecodingPlan,
    ) -> Recoding | LargeRecoding:
        """The recoding of the top tree with its pieces, as ``AnyTree`` says."""
        whole_top, covers = self._top(top, piece_of_leaf, leaf_covers)
        above = axis_above(top.axis, top.first_child, top.n_children)
        self._note(nodes_in_use(top, covers, above, plan.is_tree))
        used = [self._in_use(*pair) for pair in zip(plan.domains, plan.roots, strict=True)]
        decoder = Decoder.of(used, plan, has_lists=self.n_columns > self.n_axes)
        n_nodes = len(top.axis) + sum(self.pieces[number].n_nodes - 1 for number in piece_of_leaf.values())
        narrow = np.int32 if n_nodes <= np.iinfo(np.int32).max else np.int64
        trees = (
            replace(tree, first_child=tree.first_child.astype(narrow))
            for tree in self._trees(whole_top, covers, above, piece_of_leaf, decoder)
        )
        most = SMALL if self.memory is None else self.memory // bytes_per_node(self.n_axes)
        try:
            if n_nodes <= most:
                whole = join_trees(list(trees))
                return Recoding(decoder.axes, whole, plan.output, plan.left_out, plan.leaves_rows_out)
            memory = self.memory or SMALL * bytes_per_node(self.n_axes)
            path = self.folder / NODES
            _write_trees(path, trees, decoder.axes)
            return LargeRecoding(
                decoder.axes, path, plan.output, plan.left_out, memory, leaves_rows_out=plan.leaves_rows_out
            )
        finally:
            self.path.unlink(missing_ok=True)

    def _in_use(self, domain: Domain, root: int) -> NDArray[np.int64]:
        if isinstance(domain, OrderedDomain):
            return np.zeros(0, dtype=np.int64)
        return root + np.flatnonzero(self.used[root : root + domain.hierarchy.n_nodes])

    def _top(
        self, top: Nodes, piece_of_leaf: Mapping[int, int], leaf_covers: Mapping[int, NDArray[np.int64]]
    ) -> tuple[Nodes, NDArray[np.int64]]:
        """The top tree with the first nodes of the pieces in place of its leaves, and the covers of the others.

        The rest of each piece stands behind the top tree, in the order of the leaves.
        """
        whole = Nodes(*(np.array(getattr(top, name)) for name in Nodes._fields))
        whole = whole._replace(first_child=top.first_child.astype(np.int64))
        behind = len(top.axis)
        covers = []
        for leaf in np.flatnonzero(top.axis < 0).tolist():
            if leaf not in piece_of_leaf:
                covers.append(leaf_covers[leaf])
                continue
            piece = self.pieces[piece_of_leaf[leaf]]
            if piece.cover is not None:
                covers.append(piece.cover)
                continue
            whole.axis[leaf], whole.threshold[leaf] = piece.axis, piece.threshold
            whole.first_child[leaf], whole.n_children[leaf] = behind, piece.n_children
            whole.otherwise[leaf] = piece.otherwise
            behind += piece.n_nodes - 1
        found = [add_no_cells(own[None, :], self.n_columns) for own in covers]
        return whole, np.concatenate([np.zeros((0, self.n_columns), dtype=np.int64), *found])

    def _trees(
        self,
        top: Nodes,
        covers: NDArray[np.int64],
        above: NDArray[np.int32],
        piece_of_leaf: Mapping[int, int],
        decoder: Decoder,
    ) -> Iterator[Tree]:
        """The whole tree in values, piece by piece."""
        yield decoder.tree(top, covers, above)
        behind = len(top.axis)
        for leaf in sorted(piece_of_leaf):
            piece = self.pieces[piece_of_leaf[leaf]]
            if piece.cover is None:
                nodes, covers = self._read(piece)
                above = axis_above(nodes.axis, nodes.first_child, nodes.n_children)
                shifted = np.where(nodes.axis >= 0, nodes.first_child + np.int64(behind - 1), -1)
                nodes = nodes._replace(first_child=shifted)
                rest = Nodes(*(getattr(nodes, name)[1:] for name in Nodes._fields))
                yield decoder.tree(rest, covers, above[1:])
                behind += piece.n_nodes - 1

    def _read(self, piece: _Piece) -> tuple[Nodes, NDArray[np.int64]]:
        with while_spilling(self.folder), self.path.open("rb") as file:
            file.seek(piece.offset)
            found = {
                name: np.fromfile(file, dtype=kind, count=piece.n_nodes) for name, kind in _STORED.items()
            }
            covers = np.fromfile(file, dtype=np.int64, count=piece.n_leaves * piece.n_columns)
        no_rows = np.zeros(piece.n_nodes, dtype=np.int64)
        leaves = add_no_cells(covers.reshape(piece.n_leaves, piece.n_columns), self.n_columns)
        return Nodes(**found, start=no_rows, end=no_rows), leaves


def _write_trees(path: Path, trees: Iterator[Tree], axes: Sequence[Axis]) -> None:
    """Consecutive parts of a tree as one file, in row groups of about ``ROW_GROUP`` nodes."""
    waiting: list[Tree] = []
    writer: pq.ParquetWriter | None = None
    with while_spilling(path.parent):
        try:
            for tree in itertools.chain(trees, [None]):
                if tree is not None:
                    waiting.append(tree)
                n_waiting = sum(part.n_nodes for part in waiting)
                if n_waiting >= ROW_GROUP or (tree is None and waiting):
                    table = table_of(join_trees(waiting), axes)
                    waiting = []
                    writer = writer or pq.ParquetWriter(path, table.schema, write_statistics=False)
                    writer.write_table(table, row_group_size=ROW_GROUP)
        finally:
            if writer is not None:
                writer.close()


# ---- the labels of a piece -------------------------------------------------------------------------


class PathStep(NamedTuple):
    """One split on the way from the root to a piece, in codes as ``Nodes`` has them."""

    axis: int
    threshold: int
    branches: Sequence[int]  # of all children
    taken: int  # which of them leads to the piece
    otherwise: int = -1  # see ``Nodes``


def recode_piece(
    path: Sequence[PathStep], nodes: Nodes, covers: NDArray[np.int64], plan: RecodingPlan
) -> tuple[Recoding, NDArray[np.int64]]:
    """A recoding for the leaves of one piece, and their places in it, in the order of ``covers``.

    It has the splits of the path and below them the piece. The boxes of the piece's leaves are those of the
    whole tree; what lies beside the path is left out, so rows must not be sent down.
    """
    head, end = _path_nodes(path, plan.domains)
    whole = _hang(nodes, head, end)
    places = np.flatnonzero(nodes.axis < 0)
    places = np.where(places == 0, end, places + len(head.axis) - 1)
    leaves = np.flatnonzero(whole.axis < 0)
    with_others = np.full((len(leaves), covers.shape[1]), -1, dtype=np.int64)
    with_others[np.searchsorted(leaves, places)] = covers
    return recoding_of(whole, with_others, plan), places


def _path_nodes(path: Sequence[PathStep], domains: Sequence[Domain]) -> tuple[Nodes, int]:
    """The splits of a path, with no more children than boxes need, and the node where the path ends.

    The box below a split of a hierarchy is the branch taken, or the rest of all branches; that below a threshold is one
    of its two sides.
    """
    axis, threshold, first_child, n_children, branch, otherwise = [-1], [0], [-1], [0], [-1], [-1]
    at = 0
    for step in path:
        needs_all = isinstance(domains[step.axis], OrderedDomain) or step.branches[step.taken] < 0
        kept = [int(x) for x in step.branches] if needs_all else [int(step.branches[step.taken])]
        axis[at], threshold[at] = step.axis, step.threshold
        first_child[at], n_children[at], otherwise[at] = len(axis), len(kept), step.otherwise
        at = len(axis) + (step.taken if needs_all else 0)
        axis += [-1] * len(kept)
        threshold += [0] * len(kept)
        first_child += [-1] * len(kept)
        n_children += [0] * len(kept)
        branch += kept
        otherwise += [-1] * len(kept)
    small = [np.array(column, dtype=np.int32) for column in (axis, first_child, n_children, otherwise)]
    wide = [np.array(column, dtype=np.int64) for column in (threshold, branch)]
    no_rows = np.zeros(len(axis), dtype=np.int64)
    return Nodes(small[0], wide[0], small[1], small[2], wide[1], no_rows, no_rows, small[3]), at


def _hang(piece: Nodes, top: Nodes, at: int) -> Nodes:
    """The tree with a piece in place of its leaf ``at``, whose branch stays; the rest of the piece comes last."""
    offset = np.int32(len(top.axis) - 1)
    piece = piece._replace(
        first_child=np.where(piece.first_child >= 0, piece.first_child + offset, np.int32(-1))
    )
    whole = Nodes(*(np.concatenate([getattr(top, name), getattr(piece, name)[1:]]) for name in Nodes._fields))
    for name in Nodes._fields:
        if name != "branch":
            getattr(whole, name)[at] = getattr(piece, name)[0]
    return whole


# ---- recoding a file -------------------------------------------------------------------------------


def apply_to_file(
    folder: Path,
    schema: Schema,
    table: Any,
    out: Path,
    *,
    memory: int | None = None,
    reading: Reading = AS_USUAL,
    overwrite: bool = True,
    is_escaped: bool = False,
) -> Applied:
    """Recode a table with the recoding of a release folder, some rows at a time.

    The file appears whole or not at all; cells that are like formulas are marked in it if it ``is_escaped``.
    """
    check_file_target(out, overwrite=overwrite)
    recoding = recodings.read(folder, schema, memory=memory, beside=out)
    row_group = (
        table_write.ROW_GROUP
        if memory is None
        else int(np.clip(memory // ROW_BYTES, 1 << 13, table_write.ROW_GROUP))
    )
    with Spill(out) as spill, TableWriter(out, row_group=row_group, overwrite=overwrite) as writer:
        source = open_as(table, schema, reading, lazy=True, spool=spill.path("stdin"))
        left_out: list[int] = []
        for part in recoding.stream(source, left_out=left_out.append):
            writer.append(formulas.escape(part) if is_escaped else part)
    return Applied(writer.n_rows, sum(left_out))
