"""Base class of recodings, and the groups of a table in one.

A recoding knows where rows belong (their *places*) and the box of each place; from these follow the published
columns, and those of any further rows:

- a number outside the range that was seen belongs to the outermost box on its side;
- a category that was never seen stands for its nearest known ancestor, the root if there is none;
- a missing number where none was could be anything.

Rows go where splits send them, never to "the label that contains them": several labels may. The label of a number that
was never seen may not contain it, since labels are narrowed to the rows of the release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.cells import read_ordered
from sfumato.errors import TableError
from sfumato.kernels.shuffle import shuffle_leaves
from sfumato.policy.finest import FinestSlices
from sfumato.policy.output import Output, bound_names, missing_name
from sfumato.policy.schema import Attribute, Kind
from sfumato.recoding.axis import (
    SUPPRESSED,
    Axis,
    BoxEnds,
    DistinctBoxes,
    LabelDescent,
    OrderedAxis,
    TreeAxis,
    distinct_boxes,
    join,
    known_nodes,
    labels_of,
)
from sfumato.table import cells as table_cells
from sfumato.table import opening
from sfumato.table.cells import UnreadableCells
from sfumato.table.combinations import number_combinations
from sfumato.table.source import Count, Source
from sfumato.table.write import compact, hand_back

Floats = NDArray[np.float64]
Places = NDArray[np.integer[Any]]
"""Where rows or groups belong; what a place is, only the recoding knows."""

PART_ROWS = 65_536
"""Rows that are recoded at a time where they come in parts."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCells:
    """The cells of rows as a recoding sees them, by attribute.

    ``values`` are those of ordered axes (missing -inf, or NaN where the recoding knows no missing, which
    ``strange`` marks), ``nodes`` the deepest known hierarchy nodes of the others.
    """

    n_rows: int
    values: Mapping[str, Floats]
    nodes: Mapping[str, NDArray[np.int64]]
    strange: Mapping[str, NDArray[np.bool_]]

    @classmethod
    def read(cls, source: Source, axes: tuple[Axis, ...], known: Known | None = None) -> RowCells:
        """The cells of these rows; ``known`` saves time where further rows are read with the same axes."""
        known = known_of(axes) if known is None else known
        values, nodes, strange = {}, {}, {}
        for axis in axes:
            name = axis.attribute.name
            column = source.column(name)
            if isinstance(axis, TreeAxis):
                nodes[name] = known_nodes(axis, column, known[name])
            else:
                cells = read_ordered(axis.attribute, column, leniently=axis.is_declared)
                if slices := FinestSlices.of(axis.attribute):
                    cells = slices.represent(cells)
                strange[name] = np.isneginf(cells) & (not axis.has_missing)
                values[name] = np.where(strange[name], np.nan, cells)
        return cls(source.n_rows, values, nodes, strange)

    def take(self, rows: NDArray[np.int64]) -> RowCells:
        """The cells of some of the rows."""
        values = {name: cells[rows] for name, cells in self.values.items()}
        nodes = {name: cells[rows] for name, cells in self.nodes.items()}
        strange = {name: cells[rows] for name, cells in self.strange.items()}
        return RowCells(len(rows), values, nodes, strange)

    def matrix(self, axes: tuple[Axis, ...]) -> Floats:
        """All cells as numbers (rows, axes): values, or hierarchy nodes."""
        out = np.empty((self.n_rows, len(axes)))
        for a, axis in enumerate(axes):
            name = axis.attribute.name
            out[:, a] = self.nodes[name] if isinstance(axis, TreeAxis) else self.values[name]
        return out


Known = Mapping[str, LabelDescent]
"""How to go down the hierarchy of each tree axis by labels."""


def known_of(axes: tuple[Axis, ...]) -> Known:
    return {axis.attribute.name: LabelDescent(axis) for axis in axes if isinstance(axis, TreeAxis)}


class Recoder(ABC):
    """What all recodings share: they know where rows belong, and the box of each place.

    ``apply`` recodes any rows and promises nothing.

    Ends of boxes are as ``fill_boxes`` has them. On an ordered axis a box is low < x <= high, where a low end
    of NaN or -inf means that nothing limits it, and a high end of -inf that it is missing alone; ``missing`` says
    whether a missing cell belongs to it, too. On a tree axis ``low`` is the node of ``axis.nodes``, ``high`` the number
    of what its label excludes where the axis has ``excluded``, and ``missing`` means nothing.
    """

    __slots__ = ()

    axes: tuple[Axis, ...]
    output: Output
    left_out: frozenset[str]

    @property
    def leaves_rows_out(self) -> bool:
        """Is a row left out whose value no branch names, unless a rest takes it?"""
        return False

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {n:,}" for name, n in self.n_splits().items())
        return f"<{type(self).__name__} with splits of {splits}>"

    @abstractmethod
    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the files of the recoding into a release folder."""

    def ends(self, places: Places) -> BoxEnds:
        """The ends (places, axes) of the boxes of these places, as their labels say."""
        return self._keep_below(self.path_ends(places))

    @abstractmethod
    def path_ends(self, places: Places) -> BoxEnds:
        """The same, but sets of excluded nodes hold all that was told apart on the way, below the box's node or not."""

    @abstractmethod
    def _locate(self, cells: RowCells) -> tuple[Places, Any]:
        """Places, and which of them each row has."""

    @abstractmethod
    def _group_ends(self, a: int) -> BoxEnds:
        """The ends along axis ``a`` of all boxes that groups have."""

    def pieces(self, a: int) -> tuple[pa.Array, BoxEnds]:
        """The distinct boxes of groups along axis ``a``: published label, and ends.

        A null label is missing alone. Nodes of a hierarchy that stand in several places may share a label.
        """
        ends = distinct_boxes(*self._group_ends(a)).ends
        if isinstance(axis := self.axes[a], TreeAxis) and axis.excluded is not None:
            ends = distinct_boxes(*axis.keep_below(ends)).ends
        low = np.where(np.isnan(ends.low), -np.inf, ends.low)  # both limit nothing
        ends = ends.take(np.lexsort((ends.missing, low, ends.high)))
        return labels_of(self.axes[a], ends), ends

    def columns_of(
        self, ends: BoxEnds, expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """The published quasi-identifier columns of boxes with these ends.

        ``expand`` makes an array over the rows of one over the boxes.
        """
        boxes = [distinct_boxes(*ends.along(a)) for a in range(len(self.axes))]
        return self.columns_of_distinct(boxes, expand)

    def columns_of_distinct(
        self, boxes: Sequence[DistinctBoxes], expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """The same where the boxes along each axis are known."""
        out: dict[str, pa.Array] = {}
        for a, along in enumerate(boxes):
            out |= self.columns_along(a, along, expand)
        return out

    def columns_along(
        self, a: int, boxes: DistinctBoxes, expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """Those of them that stand for axis ``a``."""
        axis = self.axes[a]
        if isinstance(axis, TreeAxis):
            return {axis.attribute.name: _label_cells(boxes.which, axis.labels(boxes.ends), expand)}
        return self._ordered_columns(axis, boxes, expand)

    def hide_strange(
        self, columns: dict[str, pa.Array], strange: Mapping[str, NDArray[np.bool_]]
    ) -> dict[str, pa.Array]:
        """The columns without the cells that are missing where the recoding knows no missing."""
        out = dict(columns)
        for name, rows in strange.items():
            if rows.any():
                out |= {key: _hide(cells, rows) for key, cells in self.of_attribute(columns, name).items()}
        return out

    def apply(self, frame: Any) -> Any:
        """Recode the quasi-identifiers of any rows, in the kind of frame that came in.

        Rows are sent down the splits. A label may not contain the number of a row if the splits never saw it: between
        people of 12 and 78, somebody of 40 gets the label of one side. If the release left rows out, rows are
        left out here whose value is in no part of a split.

        Columns that the release leaves out are left out here too; all others pass through.
        """
        source, recoded = self.recode(opening.open_table(frame))
        return hand_back(recoded, source)

    def apply_to(self, source: Source) -> pa.Table:
        return compact(self.recode(source)[1])

    def recode(self, source: Source, known: Known | None = None) -> tuple[Source, pa.Table]:
        """The rows that are not left out, and they recoded; ``known`` is that of ``RowCells.read``."""
        cells = RowCells.read(source, self.axes, known)
        places, at = self._locate(cells)
        if self.leaves_rows_out:
            rows, places, at = self._keep_somewhere(places, at)
            if len(rows) < cells.n_rows:
                source, cells = source.take(rows), cells.take(rows)
        return source, self.put_together(source, self._columns_at(cells, places, at))

    def _keep_somewhere(self, places: Places, at: Any) -> tuple[NDArray[np.int64], Places, Any]:
        """The rows that are not left out, and their places as ``_locate`` gives them."""
        if (places[:1] < 0).any():  # places are sorted
            rows = np.flatnonzero(at > 0)
            return rows, places[1:], at[rows] - 1
        return np.arange(len(at)), places, at

    def find_left_out(self, source: Source) -> NDArray[np.bool_]:
        """Which of any rows are left out: their value is in no part of a split."""
        is_out = np.zeros(source.n_rows, dtype=np.bool_)
        if self.leaves_rows_out:
            is_out[:] = True
            is_out[self._keep_somewhere(*self._locate(RowCells.read(source, self.axes)))[0]] = False
        return is_out

    def put_together(self, source: Source, recoded: Mapping[str, Any]) -> pa.Table:
        """The columns of rows that were recoded, with those that pass through, in the order of the table."""
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
                out[name] = pass_on(source.column(name), name)
        return pa.table(out)

    def of_attribute(self, columns: Mapping[str, pa.Array], name: str) -> dict[str, pa.Array]:
        """Those of the published columns that stand for attribute ``name``."""
        names = (name, *bound_names(name), missing_name(name)) if self.output.has_bounds else (name,)
        return {key: columns[key] for key in names if key in columns}

    def _ordered_columns(
        self, axis: OrderedAxis, boxes: DistinctBoxes, expand: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> dict[str, pa.Array]:
        which, name = boxes.which, axis.attribute.name
        out: dict[str, pa.Array] = {}
        if self.output.has_labels:
            out[name] = _label_cells(which, axis.labels(*boxes.ends), expand)
        if self.output.has_bounds:
            at = expand(which)
            for own, ends in zip(axis.bound_names, axis.bounds(*boxes.ends), strict=True):
                out[own] = ends.take(pa.array(at))
        return out

    # -- any rows ----------------------------------------------------------------------------------

    def box_ends(self, source: Source) -> BoxEnds:
        """The ends (rows, axes) of the box that each of any rows gets: what ``apply_to`` publishes.

        A missing number where the recoding knows no missing has an unlimited box, and a row that is left out that of all.
        """
        cells = RowCells.read(source, self.axes)
        places, at = self._locate(cells)
        low, high, missing = self._ends_anywhere(places).take(np.arange(len(places))[at])
        for a, axis in enumerate(self.axes):
            name = axis.attribute.name
            if isinstance(axis, TreeAxis):
                low[:, a] = join(axis.nodes, low[:, a].astype(np.int64), cells.nodes[name])
            else:
                low[cells.strange[name], a], high[cells.strange[name], a] = np.nan, np.inf
        return self._keep_below(BoxEnds(low, high, missing))

    def _ends_anywhere(self, places: Places) -> BoxEnds:
        """``path_ends``, and of rows that are left out the ends of the box of all."""
        return self.path_ends(np.maximum(places, 0))

    def _keep_below(self, ends: BoxEnds) -> BoxEnds:
        """The ends (boxes, axes) of boxes as their labels say: only what lies below a node is excluded from it."""
        high = ends.high.copy()
        for a, axis in enumerate(self.axes):
            if isinstance(axis, TreeAxis):
                high[:, a] = axis.keep_below(ends.along(a)).high
        return ends._replace(high=high)

    def columns(
        self, places: Places, expand: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> dict[str, pa.Array]:
        """The published quasi-identifier columns of rows at these places.

        ``expand`` makes an array over the rows of one over the places.
        """
        return self.columns_of(self.ends(places), expand)

    def recode_columns(self, source: Source, known: Known | None = None) -> dict[str, Any]:
        """The quasi-identifier columns of any rows as ``apply_to`` publishes them, none of which is left out."""
        cells = RowCells.read(source, self.axes, known)
        return self._columns_at(cells, *self._locate(cells))

    def _columns_at(self, cells: RowCells, places: Places, at: Any) -> dict[str, Any]:
        """The quasi-identifier columns of rows at these places."""
        ends = self.path_ends(places)
        found: dict[str, pa.Array] = {}
        for a, axis in enumerate(self.axes):
            along = ends.along(a)
            if isinstance(axis, TreeAxis):
                node = join(axis.nodes, along.low.astype(np.int64)[at], cells.nodes[axis.attribute.name])
                found |= tree_column(axis, node, along.high[at])
            else:
                found |= self.columns_along(a, distinct_boxes(*along), lambda values: values[at])
        return self.hide_strange(found, cells.strange)

    def prepare(self) -> Recoder:
        """The same recoding for many parts of rows: what each of them needs is worked out once."""
        return self

    def stream(
        self,
        source: Source,
        spelling: Spelling | None = None,
        *,
        first_row: int = 0,
        left_out: Callable[[int], None] = lambda _: None,
    ) -> Iterator[pa.Table]:
        """``apply_to`` some rows at a time, in their order, for a ``TableWriter``: not yet compact.

        If they are a slice of a table, its ``spelling`` is that of the table, and ``first_row`` where the slice begins.
        ``left_out`` is told how many rows of each part are left out.
        """
        if spelling is None:
            spelling = Spelling.of(source, self.axes)
            spelling.look_at(source)
        prepared, known, n_rows = self.prepare(), known_of(self.axes), first_row
        for part in parts_of(spelling.spell(source)):
            with after(n_rows):
                _, recoded = prepared.recode(part, known)
            left_out(part.n_rows - recoded.num_rows)
            yield recoded
            n_rows += part.n_rows


# ---- the groups of a table -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The groups of the fitted rows.

    ``leaf`` says where each group stands in the recoding, ``size`` its number of rows, and ``row_numbers``
    lists the rows group by group. Their order within a group says something of the input's: a release takes
    those that ``shuffle`` gives.
    """

    recoding: Recoder
    leaf: NDArray[np.int64]
    size: NDArray[np.int64]
    row_numbers: NDArray[np.uint32]

    def shuffle(self, random: NDArray[np.float64]) -> NDArray[np.uint32]:
        """The row numbers in random order within each group; ``random`` is one number in [0, 1) per row."""
        end = np.cumsum(self.size)
        out = self.row_numbers.copy()
        shuffle_leaves(end - self.size, end, random, out)
        return out

    def columns(self) -> dict[str, pa.Array]:
        """The published quasi-identifier columns, row by row in the order of the groups."""
        return self.recoding.columns(self.leaf, lambda values: np.repeat(values, self.size))

    def of_row(self, n_rows: int | None = None) -> NDArray[np.int64]:
        """The group of each row of a table with so many rows, -1 of one that is left out; without a number none is."""
        out = np.full(len(self.row_numbers) if n_rows is None else n_rows, -1, dtype=np.int64)
        out[self.row_numbers] = np.repeat(np.arange(len(self.size)), self.size)
        return out

    def count_people(self, person: NDArray[np.integer]) -> NDArray[np.int64]:
        """How many people are in each group, each of whom counts once there; ``person`` is that of each row."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        first = number_combinations([group, person[self.row_numbers]], in_order=False).first_rows()
        return np.bincount(group[first], minlength=len(self.size)).astype(np.int64)


class Applied(NamedTuple):
    """How many further rows were recoded, and how many left out."""

    n_rows: int
    n_left_out: int


# ---- rows, some at a time --------------------------------------------------------------------------


def parts_of(source: Source, names: Sequence[str] | None = None) -> Iterator[Source]:
    """The rows in their order, some at a time; only these columns of them, if any are named."""
    names = source.names if names is None else names
    for batch in source.batches(names, rows=PART_ROWS):
        if batch.num_rows:
            read = pa.Table.from_batches([batch]).column
            yield replace(source, names=tuple(names), n_rows=batch.num_rows, read=read, stream=None)


@dataclass(slots=True)
class Spelling:
    """How the cells of categories are spelled that are times or fractions, so that parts of a table can be read.

    They are spelled as the whole column allows: a time at midnight as a date, if all of them are. So each slice of a
    table is looked at first, what was found is merged, and then each can be read; text is what it is.
    """

    categories: tuple[Attribute, ...]
    of_column: dict[str, int]

    @classmethod
    def of(cls, source: Source, axes: tuple[Axis, ...]) -> Spelling:
        """That of the columns that need one, of which nothing was looked at yet."""
        found = [
            axis.attribute
            for axis in axes
            if axis.attribute.kind is Kind.CATEGORY
            and not axis.is_declared  # no cell's text depends on others
        ]
        if source.kind == "csv" or not found:
            return cls((), {})
        first = next(source.batches([attribute.name for attribute in found], rows=1))
        odd = [
            attribute for attribute, field in zip(found, first.schema, strict=True) if not is_text(field.type)
        ]
        return cls(tuple(odd), {attribute.name: 0 for attribute in odd})

    def look_at(self, source: Source) -> None:
        """Look at some or all rows of the table."""
        for batch in source.batches(list(self.of_column)) if self.categories else ():
            for attribute in self.categories:
                found = table_cells.spelling_of(batch.column(attribute.name), attribute)
                self.of_column[attribute.name] = max(found, self.of_column[attribute.name])

    def merge(self, other: Spelling) -> None:
        """Look at the rows that another one has seen."""
        self.of_column = {name: max(own, other.of_column[name]) for name, own in self.of_column.items()}

    def spell(self, source: Source) -> Source:
        """Some or all rows of the table, each cell with the text that it has in the whole table."""
        if not self.categories:
            return source
        odd = {attribute.name: attribute for attribute in self.categories}

        def stream(names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
            for batch in source.batches(names, memory=memory, count=count):
                columns = [
                    table_cells.texts(column, odd[name], spelling=self.of_column[name])
                    if name in odd
                    else column
                    for name, column in zip(names, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))

        return replace(source, stream=stream)


def is_text(kind: pa.DataType) -> bool:
    """Is a cell of this type text however many others there are? So are whole numbers, days and truth values."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return not (pa.types.is_floating(value) or pa.types.is_timestamp(value))


@contextmanager
def after(n_rows: int) -> Iterator[None]:
    """A cell that cannot be read is reported with its row in the whole table, of which so many came before."""
    try:
        yield
    except UnreadableCells as error:
        raise error.after(n_rows) from None


# ---- published cells -------------------------------------------------------------------------------


def tree_column(
    axis: TreeAxis, nodes: NDArray[np.integer[Any]], told: Floats | None = None
) -> dict[str, pa.Array]:
    """The published column of these nodes, from whose rows the sets of nodes of the numbers ``told`` were told apart."""
    name = axis.attribute.name
    if axis.excluded is None or told is None:
        return {name: _label_cells(nodes, pa.array(axis.nodes.labels, pa.string()), np.asarray)}
    ends = axis.keep_below(BoxEnds(nodes.astype(np.float64), told, np.zeros(len(nodes), dtype=np.bool_)))
    boxes = distinct_boxes(*ends)
    return {name: _label_cells(boxes.which, axis.labels(boxes.ends), np.asarray)}


def _label_cells(
    which: NDArray[np.integer[Any]], labels: pa.Array, expand: Callable[[NDArray[Any]], NDArray[Any]]
) -> pa.DictionaryArray:
    """A column of labels in ascending order; a null label makes an empty cell.

    ``which`` label each place has; ``expand`` makes an array over the rows of one over the places.
    """
    distinct = labels.dictionary_encode()  # a label may stand at several nodes
    ascending = table_cells.reorder(distinct, pc.sort_indices(distinct.dictionary).to_numpy())
    code = ascending.indices.fill_null(0).to_numpy()
    is_null = np.asarray(labels.is_null()) if labels.null_count else None
    indices = pa.array(expand(code[which]), mask=None if is_null is None else expand(is_null[which]))
    return pa.DictionaryArray.from_arrays(indices, ascending.dictionary)


def _hide(column: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    """A cell that is missing where the recoding knows no missing: any value could stand there."""
    if pa.types.is_dictionary(column.type):
        texts = np.where(rows, SUPPRESSED, column.cast(pa.string()).to_numpy(zero_copy_only=False))
        return pa.array(texts, pa.string()).dictionary_encode()
    return (
        pa.array(column.to_pylist(), column.type, mask=rows)
        if column.null_count == 0
        else _null_cells(column, rows)
    )


def _null_cells(column: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    return pa.array(
        [None if hide else cell for cell, hide in zip(column.to_pylist(), rows, strict=True)], column.type
    )


def pass_on(column: Any, name: str) -> Any:
    """A column that is published as it is, stored in a way that every format and reader knows.

    >>> pass_on(pa.chunked_array([pa.nulls(1)]), "ward").type
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
