"""A tree of splits that does not fit in memory: it stays in its file, and rows come to it by a merge.

The file is read once from its beginning to its end, a *block* of nodes at a time. Children stand after their
parents, so a row that leaves a block goes to a later one: it is put aside until that block's turn comes. Rows
that have found their box are put aside again, by row number, and come back in the order of the table.

Which block a split belongs to is where its children begin, so that siblings are never parted; a block reads on
until the last of its siblings. A split whose children are in a later block stands there once more, as a *stub*,
with its box.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.output import Output
from sfumato.policy.schema import Schema
from sfumato.recoding.axis import Axis, Floats, TreeAxis, axis_from_dict, distinct_boxes, join
from sfumato.recoding.recoder import Cells, Recoder, after, evenly_spelled, known_of, parts_of
from sfumato.recoding.ways import NODES, Ints, Tree, Ways, bytes_per_node, joined, tree_from, write_document
from sfumato.table.buckets import Buckets, Records
from sfumato.table.files import replace_atomically
from sfumato.table.source import Source, changed
from sfumato.table.spill import Spill

BATCH_NODES = 1 << 16
"""Nodes that are read from the file at a time."""

LEAST_BLOCK = 4
LEAST_PART, MOST_PART = 16, 1 << 16
"""Rows that are sent down, and come back, at a time."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LargeRecoding(Recoder):
    """A recoding whose tree is in ``path``, a Parquet file as ``Recoding.write`` makes it.

    ``memory`` bounds what its uses take, in bytes, but for the table that ``apply`` is given and returns.
    """

    axes: tuple[Axis, ...]
    path: Path
    output: Output
    left_out: frozenset[str]
    memory: int

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], schema: Schema, folder: Path, *, memory: int
    ) -> LargeRecoding:
        """The recoding that was written into ``folder``, with its nodes beside the document."""
        axes = tuple(axis_from_dict(entry, schema) for entry in document["attributes"])
        return cls(axes, folder / NODES, Output(document["output"]), schema.left_out, memory)

    def at(self, folder: Path) -> LargeRecoding:
        """The same recoding in the folder that it was written into: its first one may be a temporary one."""
        return replace(self, path=folder / NODES)

    @property
    def n_nodes(self) -> int:
        with _opened(self.path) as file:
            return int(file.metadata.num_rows)

    @property
    def n_groups(self) -> int:
        return int(self._counts()[0])

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""
        counts = self._counts()[1:].tolist()
        return {axis.attribute.name: n for axis, n in zip(self.axes, counts, strict=True)}

    def _counts(self) -> NDArray[np.int64]:
        """How many nodes are leaves, and how many are split on each axis."""
        total = np.zeros(1 + len(self.axes), dtype=np.int64)
        with _opened(self.path) as file:
            for batch in file.iter_batches(BATCH_NODES, columns=["axis"]):
                total += np.bincount(np.asarray(batch.column(0)) + 1, minlength=len(total))
        return total

    def write(self, folder: Path) -> None:
        """Write ``recoding.json`` and ``recoding.parquet``, which is the same file where it can be."""
        with replace_atomically(folder / NODES) as temporary:
            try:
                os.link(self.path, temporary)
            except OSError:  # on another disk, or one that knows no links
                shutil.copyfile(self.path, temporary)
        write_document(folder, self.axes, self.output, NODES)

    # -- rows --------------------------------------------------------------------------------------

    def stream(self, source: Source, *, beside: Path | None = None) -> Iterator[pa.Table]:
        """``apply_to`` some rows at a time, in their order. The table is read twice."""
        for part, low, high in self._row_ends(source, beside):
            yield self.put_together(part, self._columns(low, high))

    def recoded(self, source: Source) -> dict[str, Any]:
        """The quasi-identifier columns of any rows as ``apply_to`` publishes them."""
        parts = [self._columns(low, high) for _, low, high in self._row_ends(source)]
        return {name: pa.chunked_array([part[name] for part in parts]) for name in parts[0]}

    def box_ends(self, source: Source) -> tuple[Floats, Floats]:
        """The ends (rows, axes) of the box that each of any rows gets: what ``apply_to`` publishes."""
        parts = [(low, high) for _, low, high in self._row_ends(source)]
        low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        high[np.isnan(high)] = np.inf
        return low, high

    def _columns(self, low: Floats, high: Floats) -> dict[str, pa.Array]:
        """Published columns; a high end of NaN marks a number that is missing where none was."""
        strange = {axis.attribute.name: np.isnan(high[:, a]) for a, axis in enumerate(self.axes)}
        return self.hidden(self.columns_of(low, np.where(np.isnan(high), np.inf, high)), strange)

    def _row_ends(
        self, source: Source, beside: Path | None = None
    ) -> Iterator[tuple[Source, Floats, Floats]]:
        """The rows in their order, some at a time, with the ends of their boxes."""
        known, source = known_of(self.axes), evenly_spelled(source, self.axes)
        with Spill(beside) as spill, closing(_Merge(self, spill)) as merge:
            for part in parts_of(source, [axis.attribute.name for axis in self.axes]):
                with after(merge.n_rows):
                    cells = Cells.read(part, self.axes, known)
                merge.add(cells.matrix(self.axes))
            found = _Queue(merge.ends())
            n_rows = 0
            for part in parts_of(source):
                n_rows += part.n_rows
                if n_rows > merge.n_rows:
                    break
                yield part, *found.take(part.n_rows)
            if n_rows != merge.n_rows:
                raise changed(source.where)

    def _group_ends(self, a: int) -> tuple[Floats, Floats]:
        low, high = np.zeros(0), np.zeros(0)
        with Spill() as spill, closing(_Sweep(self, spill)) as sweep:
            for number in range(sweep.n_blocks):
                block = sweep.block(number)
                cover, leaves = block.tree.cover[block.is_group, a], block.is_group
                found = np.where(cover >= 0, cover, block.low[leaves, a]), block.high[leaves, a]
                _, low, high = distinct_boxes(np.append(low, found[0]), np.append(high, found[1]))
                sweep.leave(block, block.is_exit)
        return low, high


# ---- the tree, block by block ----------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Block:
    """Some nodes of the tree with their boxes: first the stubs, then those of the file.

    ``groups`` are where the children of the stubs begin in the file, ascending, and ``first`` where those of
    every node do. An exit is a split whose children are not here; ``tree`` has it as a leaf.
    """

    tree: Tree
    branches: Ints
    low: Floats
    high: Floats
    groups: Ints
    first: Ints
    axis: NDArray[np.int32]
    is_exit: NDArray[np.bool_]
    is_group: NDArray[np.bool_]


class _Sweep:
    """One pass over the nodes of a large recoding."""

    def __init__(self, recoding: LargeRecoding, spill: Spill) -> None:
        n_axes = len(recoding.axes)
        self.n_axes = n_axes
        self.ways = Ways(recoding.axes)
        self.size = max(recoding.memory // (8 * bytes_per_node(n_axes)), LEAST_BLOCK)
        self.nodes = _Nodes(recoding.path, n_axes, min(BATCH_NODES, self.size))
        self.n_blocks = -(-self.nodes.n_nodes // self.size)
        kind = np.dtype(
            [("group", np.int64), ("n", np.int32), ("axis", np.int32), ("divides", np.int32),
             ("threshold", np.float64), ("low", np.float64, (n_axes,)), ("high", np.float64, (n_axes,))]
        )  # fmt: skip
        self.stubs = Buckets(spill, kind, memory=recoding.memory // 16)
        self.done = 0
        """Nodes before this one were in an earlier block."""

    def close(self) -> None:
        self.nodes.close()
        self.stubs.close()

    def bucket(self, group: Ints) -> Ints:
        """The block of the children that begin here."""
        return group // self.size

    def block(self, number: int) -> _Block:
        """The block of this number. Blocks come in ascending order; one that nobody waits for may be left out."""
        stubs = self.stubs.take(number)
        stubs = stubs[np.argsort(stubs["group"])]
        start = number * self.size
        end = min(start + self.size, self.nodes.n_nodes)
        here = self.nodes.between(start, end)
        here.axis[: max(self.done - start, 0)] = -1  # an earlier block read on until here
        n_done = min(max(self.done - start, 0), end - start)
        is_inside = (here.axis >= 0) & (here.first_child < end)
        ends = ((here.first_child + here.n_children.astype(np.int64))[is_inside], stubs["group"] + stubs["n"])
        stop = max(end, *(int(found.max(initial=0)) for found in ends))
        if stop > end:
            here = joined([here, self.nodes.between(end, stop)])
        self.done = max(self.done, stop)
        return self._with_stubs(stubs, here, start, end, n_done)

    def _with_stubs(self, stubs: Records, here: Tree, start: int, end: int, n_done: int) -> _Block:
        n_stubs, n_nodes = len(stubs), len(stubs) + here.n_nodes
        axis = np.concatenate([stubs["axis"], here.axis])
        first = np.concatenate([stubs["group"], here.first_child.astype(np.int64)])
        is_exit = (axis >= 0) & (first >= end)
        is_group = axis < 0
        is_group[n_stubs : n_stubs + n_done] = False
        own_axis = np.where(is_exit, np.int32(-1), axis)
        cover = np.full((n_stubs, self.n_axes), -1, dtype=np.int32)
        cover[np.arange(n_stubs), stubs["axis"]] = stubs["divides"]
        tree = Tree(
            own_axis,
            np.concatenate([stubs["threshold"], here.threshold]),
            np.where(own_axis >= 0, first - start + n_stubs, -1).astype(np.int32),
            np.concatenate([stubs["n"], here.n_children]),
            np.concatenate([np.full(n_stubs, -1, dtype=np.int32), here.branch]),
            np.concatenate([cover, here.cover]),
        )
        low, high = np.full((n_nodes, self.n_axes), np.nan), np.full((n_nodes, self.n_axes), np.inf)
        low[:n_stubs], high[:n_stubs] = stubs["low"], stubs["high"]
        if start == 0:
            low[0], high[0] = self.ways.everything()
        self.ways.fill_boxes(tree, low, high)
        return _Block(
            tree, self.ways.branches(tree), low, high, stubs["group"].copy(), first, axis, is_exit, is_group
        )

    def leave(self, block: _Block, exits: NDArray[np.bool_]) -> None:
        """These exits of a block become stubs of later ones."""
        at = np.flatnonzero(exits)
        stubs = np.empty(len(at), dtype=self.stubs.kind)
        stubs["group"], stubs["n"], stubs["axis"] = block.first[at], block.tree.n_children[at], block.axis[at]
        stubs["divides"] = block.tree.cover[at, block.axis[at]]
        stubs["threshold"] = block.tree.threshold[at]
        stubs["low"], stubs["high"] = block.low[at], block.high[at]
        self.stubs.add(self.bucket(stubs["group"]), stubs)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, buffer_size=1 << 18)
    except FileNotFoundError:
        raise InputError(
            f"{path} is gone, which held the nodes of a recoding; read its release again."
        ) from None
    except (OSError, pa.ArrowException):
        raise InputError(f"{path} is not a recoding that this version can read.") from None


class _Nodes:
    """The nodes of a file, read from its beginning to its end."""

    def __init__(self, path: Path, n_axes: int, batch: int) -> None:
        self.n_axes, self.batch = n_axes, batch
        self.file = _opened(path)
        groups = self.file.metadata
        sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        self.starts = np.cumsum([0, *sizes])
        self.n_nodes = int(self.starts[-1])
        self.held: list[Tree] = []
        self.at = 0
        """The first node of those held."""
        self.next = 0
        """The first node of those to be read."""
        self.batches: Iterator[pa.RecordBatch] = iter(())

    def close(self) -> None:
        self.file.close()

    def between(self, start: int, end: int) -> Tree:
        """The nodes from ``start`` on; nobody asks for those before it again."""
        if start >= self.next:
            self._skip_to(start)
        while self.next < end:
            nodes = tree_from(pa.Table.from_batches([next(self.batches)]), self.n_axes)
            _check(nodes, self.next, self.n_nodes, self.n_axes)
            self.held.append(nodes)
            self.next += nodes.n_nodes
        while self.held and self.at + self.held[0].n_nodes <= start:
            self.at += self.held.pop(0).n_nodes
        if not self.held:
            self.at = self.next
            return tree_from(self.file.schema_arrow.empty_table(), self.n_axes)
        return _slice(joined(self.held), start - self.at, end - self.at)

    def _skip_to(self, node: int) -> None:
        """Go on with the row group that holds this node, if it is not the one being read."""
        group = int(np.searchsorted(self.starts, node, side="right")) - 1
        if self.next == 0 or self.starts[group] > self.next:
            self.held, self.at, self.next = [], int(self.starts[group]), int(self.starts[group])
            self.batches = self.file.iter_batches(
                self.batch, row_groups=list(range(group, len(self.starts) - 1))
            )


def _slice(tree: Tree, start: int, end: int) -> Tree:
    return Tree(
        tree.axis[start:end].copy(),
        tree.threshold[start:end],
        tree.first_child[start:end],
        tree.n_children[start:end],
        tree.branch[start:end],
        tree.cover[start:end],
    )


def _check(nodes: Tree, start: int, n_nodes: int, n_axes: int) -> None:
    """A damaged file must not send rows back, or out of it."""
    inner = nodes.axis >= 0
    first = nodes.first_child[inner].astype(np.int64)
    own = start + np.flatnonzero(inner)
    is_fine = (first > own) & (nodes.n_children[inner] > 0) & (first + nodes.n_children[inner] <= n_nodes)
    if not is_fine.all() or (nodes.axis >= n_axes).any():
        raise InputError("The nodes of a recoding are not those of a tree; its file is damaged.")


# ---- rows, sent down and brought back --------------------------------------------------------------


class _Merge:
    """Rows on their way through the tree, and back into their order."""

    def __init__(self, recoding: LargeRecoding, spill: Spill) -> None:
        n_axes = len(recoding.axes)
        self.axes = recoding.axes
        self.sweep = _Sweep(recoding, spill)
        waiting = np.dtype([("group", np.int64), ("row", np.int64), ("cell", np.float64, (n_axes,))])
        ends = np.dtype([("row", np.int64), ("low", np.float64, (n_axes,)), ("high", np.float64, (n_axes,))])
        self.waiting = Buckets(spill, waiting, memory=recoding.memory // 16)
        self.found = Buckets(spill, ends, memory=recoding.memory // 16)
        self.part = int(np.clip(recoding.memory // (16 * ends.itemsize), LEAST_PART, MOST_PART))
        self.n_rows = 0
        self.last = -1
        """The last block that rows wait for."""
        self.block = self.sweep.block(0)
        self.used = np.zeros(len(self.block.axis), dtype=np.bool_)

    def close(self) -> None:
        self.sweep.close()
        self.waiting.close()
        self.found.close()

    def add(self, cells: Floats) -> None:
        """Send further rows of the table into the first block."""
        for start in range(0, len(cells), self.part):
            part = cells[start : start + self.part]
            rows = np.arange(self.n_rows, self.n_rows + len(part))
            self.n_rows += len(part)
            self._send(part, rows, np.zeros(len(part), dtype=np.int64))

    def ends(self) -> Iterator[tuple[Floats, Floats]]:
        """The ends of the boxes of all rows in their order, some rows at a time.

        A number that is missing where the recoding knows no missing has two ends of NaN.
        """
        self._leave()
        number = 1
        while number <= self.last:
            self._enter(number)
            number += 1
        for part in range(-(-self.n_rows // self.part)):
            found = self.found.take(part)
            found = found[np.argsort(found["row"])]
            yield found["low"].copy(), found["high"].copy()

    def _enter(self, number: int) -> None:
        chunks = self.waiting.chunks(number, self.part)
        first = next(chunks, None)
        if first is None:
            return
        self.block = self.sweep.block(number)
        self.used = np.zeros(len(self.block.axis), dtype=np.bool_)
        for chunk in itertools.chain([first], chunks):
            at = np.searchsorted(self.block.groups, chunk["group"])
            self._send(chunk["cell"], chunk["row"], at.astype(np.int64))
        self._leave()

    def _leave(self) -> None:
        self.sweep.leave(self.block, self.used)

    def _send(self, cells: Floats, rows: Ints, at: Ints) -> None:
        """Send rows down from these nodes of the block; put aside where they arrive."""
        block = self.block
        self.sweep.ways.fill_places(cells, block.tree, block.branches, at)
        leaves = block.is_exit[at]
        self._put_aside(cells[leaves], rows[leaves], at[leaves])
        self._settle(cells[~leaves], rows[~leaves], at[~leaves])

    def _put_aside(self, cells: Floats, rows: Ints, at: Ints) -> None:
        self.used[at] = True
        records = np.empty(len(rows), dtype=self.waiting.kind)
        records["group"], records["row"], records["cell"] = self.block.first[at], rows, cells
        bucket = self.sweep.bucket(records["group"])
        self.last = max(self.last, int(bucket.max(initial=-1)))
        self.waiting.add(bucket, records)

    def _settle(self, cells: Floats, rows: Ints, at: Ints) -> None:
        records = np.empty(len(rows), dtype=self.found.kind)
        cover = self.block.tree.cover[at]
        low, high = np.where(cover >= 0, cover, self.block.low[at]), self.block.high[at]
        for a, axis in enumerate(self.axes):
            if isinstance(axis, TreeAxis):
                low[:, a] = join(axis.nodes, low[:, a].astype(np.int64), cells[:, a].astype(np.int64))
        strange = np.isnan(cells)
        records["row"] = rows
        records["low"], records["high"] = np.where(strange, np.nan, low), np.where(strange, np.nan, high)
        self.found.add(rows // self.part, records)


class _Queue:
    """Ends of boxes that come in parts of one size and are taken in parts of another."""

    def __init__(self, parts: Iterator[tuple[Floats, Floats]]) -> None:
        self.parts = parts
        self.held: list[tuple[Floats, Floats]] = []

    def take(self, n: int) -> tuple[Floats, Floats]:
        while sum(len(low) for low, _ in self.held) < n:
            self.held.append(next(self.parts))
        low, high = (np.concatenate(ends) for ends in zip(*self.held, strict=True))
        self.held = [(low[n:], high[n:])]
        return low[:n], high[:n]
