"""The groups of a release and what became of each attribute, for its report.

Everything is read from the published rows, the recoding and the certificate. Rows are touched only to find
where a stretch of equal boxes ends and the next one begins; from there on it is groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.document import Policy
from sfumato.policy.output import bound_names, missing_name
from sfumato.policy.schema import Attribute, Role
from sfumato.recoding.axis import Axis, BoxEnds, DistinctBoxes, OrderedAxis, TreeAxis, distinct_boxes
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.tree import AnyRecoding
from sfumato.table import cells as table_cells
from sfumato.table.combinations import NumberedRows, number_combinations
from sfumato.table.source import Source
from sfumato.verify.cells import Detail, DistinctCells, label_or_bounds

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# ---- groups ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """The boxes of a recoding that rows were published in, and how many in each.

    Of a tree they are its leaves, of shared cuts the cells of their grid.
    """

    recoding: AnyRecoding
    rows: Ints
    boxes: Sequence[DistinctBoxes]
    """Along each axis."""


@dataclass(frozen=True, slots=True, eq=False)
class CellCodes:
    """A column of texts as numbers from 0; ``empty`` is that of the empty text."""

    code: Ints
    empty: int


@dataclass(frozen=True, slots=True, eq=False)
class PublishedGroups:
    """The published groups: the ``size`` of each, and the ``leaves`` of the recoding if its boxes are those of the rows.

    A run is a stretch of equal rows: ``cells`` are those of each run's quasi-identifiers, ``length`` its rows.
    """

    size: Ints
    cells: Mapping[str, CellCodes]
    length: Ints
    leaves: Leaves | None


def groups_of(
    source: Source, policy: Policy, recoding: AnyRecoding | None, weight: Ints | None = None
) -> PublishedGroups:
    """The published rows that agree in every cell of the quasi-identifiers.

    ``weight`` says how many rows each row of the source stands for, where it is not one.
    """
    names = [name for attribute in policy.schema.quasi_identifiers for name in cells_of(attribute, source)]
    columns = {name: _encode(source.column(name)) for name in names}
    starts = _run_starts(list(columns.values()), source.n_rows)
    length = np.diff(starts, append=source.n_rows) if weight is None else np.add.reduceat(weight, starts)
    runs = {name: column.take(pa.array(starts)) for name, column in columns.items()}
    boxes = None if recoding is None else _boxes(recoding, runs)
    known = {} if recoding is None or boxes is None else recoding.columns_of_distinct(boxes)
    if recoding is None or boxes is None or known.keys() != runs.keys():
        cells = {name: _number_texts(column)[0] for name, column in runs.items()}
        return PublishedGroups(_sizes(_number_lines(cells.values()).number, length), cells, length, None)
    n_boxes = len(boxes[0].which)
    both = {name: _number_texts(known[name], runs[name]) for name in names}
    codes = [np.concatenate([of_box.code, of_run.code]) for of_box, of_run in both.values()]
    joint = number_combinations(codes, in_order=False)
    size = _sizes(joint.number[n_boxes:], length, n_keys=joint.n)
    rows = np.zeros(n_boxes, dtype=np.int64)
    first = joint.first_rows()
    # leaves that publish the same labels cannot be told apart: the first has them
    rows[first[first < n_boxes]] = size[first < n_boxes]
    leaves = _with_rows(boxes, recoding, rows) if rows.sum() == length.sum() else None
    cells = {name: of_run for name, (_, of_run) in both.items()}
    return PublishedGroups(size[size > 0], cells, length, leaves)


def cells_of(attribute: Attribute, source: Source) -> list[str]:
    """The published columns that stand for a quasi-identifier."""
    own = attribute.name
    beside = (*bound_names(own), missing_name(own)) if attribute.is_ordered else ()
    return [name for name in (own, *beside) if name in source.names]


def _with_rows(boxes: Sequence[DistinctBoxes], recoding: AnyRecoding, rows: Ints) -> Leaves:
    """Those of the boxes that have rows."""
    has_rows = rows > 0
    if not has_rows.all():
        boxes = [distinct_boxes(*own.ends.take(own.which[has_rows])) for own in boxes]
    return Leaves(recoding, rows[has_rows], boxes)


def _boxes(recoding: AnyRecoding, runs: Mapping[str, pa.DictionaryArray]) -> Sequence[DistinctBoxes] | None:
    """The boxes of the recoding that may hold published rows; None if the rows show cells that it has not."""
    if not isinstance(recoding, Cuts):
        return recoding.leaf_boxes()
    places = _cells_of_grid(recoding, {name: _as_text(column) for name, column in runs.items()})
    if places is None:
        return None
    ends = recoding.ends(places)
    return [distinct_boxes(*ends.along(a)) for a in range(len(recoding.axes))]


def _cells_of_grid(cuts: Cuts, texts: Mapping[str, pa.Array]) -> Ints | None:
    """The cells of the grid whose labels are published: each axis is looked up by itself."""
    found = []
    n_pieces = [len(ends) + 1 for ends in cuts.thresholds]
    pieces = [
        axis.nodes.leaf_nodes if isinstance(axis, TreeAxis) else np.arange(n)
        for axis, n in zip(cuts.axes, n_pieces, strict=True)
    ]
    for a, axis in enumerate(cuts.axes):
        places = np.tile([piece[0] for piece in pieces], (len(pieces[a]), 1))
        places[:, a] = pieces[a]
        columns = {name: _as_text(column) for name, column in cuts.columns(places).items()}
        known = cuts.of_attribute(columns, axis.attribute.name)
        if not known.keys() <= texts.keys():
            return None
        lines = zip(*(column.to_pylist() for column in known.values()), strict=True)
        number = {line: int(piece) for line, piece in zip(lines, pieces[a], strict=True)}
        published = zip(*(texts[name].to_pylist() for name in known), strict=True)
        found.append([number.get(line, -1) for line in published])
    places = np.unique(np.array(found, dtype=np.int64).T, axis=0)
    return None if (places < 0).any() else places


def _encode(column: Any) -> pa.DictionaryArray:
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()


def _run_starts(columns: Sequence[pa.DictionaryArray], n_rows: int) -> Ints:
    differs = np.zeros(n_rows, dtype=np.bool_)
    differs[:1] = True
    for column in columns:
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        differs[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(differs)


def _as_text(cells: pa.Array) -> pa.Array:
    return cells.cast(pa.string()).fill_null("")


def _number_texts(*columns: pa.Array) -> list[CellCodes]:
    """The texts of columns as numbers, equal where texts are; each distinct text is looked at once."""
    encoded = [_encode(column) for column in columns]
    known = [pa.concat_arrays([_as_text(cells.dictionary), pa.array([""])]) for cells in encoded]
    joint = pa.concat_arrays(known).dictionary_encode()
    empty = pc.index(joint.dictionary, pa.scalar("", pa.string())).as_py()
    places = np.split(
        joint.indices.to_numpy().astype(np.int64), np.cumsum([len(texts) for texts in known[:-1]])
    )
    return [
        CellCodes(place[pc.fill_null(cells.indices, len(place) - 1).to_numpy()], empty)
        for cells, place in zip(encoded, places, strict=True)
    ]


def _number_lines(columns: Iterable[CellCodes]) -> NumberedRows:
    return number_combinations([column.code for column in columns], in_order=False)


def _sizes(key: Ints, length: Ints, *, n_keys: int = 0) -> Ints:
    return np.bincount(key, weights=length, minlength=n_keys).astype(np.int64)


# ---- attributes ------------------------------------------------------------------------------------

LEVELS = ("exact value", "narrowed", "nothing (*)", "missing")
"""How much a published cell tells; a missing cell tells that the value was missing."""


REMOVED = "removed"
"""What happened to identifiers, and to columns that were dropped."""


class Counted(NamedTuple):
    """The distinct values of a column (None if they are too many to count), and its missing cells."""

    n_distinct: int | None
    n_missing: int


@dataclass(frozen=True, slots=True)
class AttributeFacts:
    """What became of one column. ``levels`` are rows per level of detail (see LEVELS), where known.

    In ``n_missing`` rows it is missing; ``n_hidden`` rows have a box that missing is only a part of.
    """

    attribute: Attribute
    happened: str
    n_distinct: int | None = None
    n_missing: int = 0
    n_hidden: int = 0
    n_splits: int | None = None
    levels: tuple[int, ...] | None = None


def details_of(policy: Policy, cells: Source, weight: Ints | None) -> dict[str, Detail]:
    """How much the cells of each quasi-identifier tell; ``weight`` is as in ``groups_of``."""
    rows = np.ones(cells.n_rows, dtype=np.int64) if weight is None else weight
    return {
        attribute.name: DistinctCells.of(
            map(cells.column, label_or_bounds(attribute, cells_of(attribute, cells))), rows
        ).detail(attribute, excludes=policy.excludes_in_labels)
        for attribute in policy.schema.quasi_identifiers
    }


def attributes_of(
    policy: Policy,
    cells: Source,
    rows: Source,
    groups: PublishedGroups,
    details: Mapping[str, Detail],
    known: Mapping[str, Counted],
) -> list[AttributeFacts]:
    """What became of each column. Columns that are published as they are may be ``known`` already."""
    out = []
    for attribute in policy.schema:
        if attribute.role is Role.QUASI_IDENTIFIER:
            out.append(_describe_generalized(attribute, cells, groups, details[attribute.name]))
        elif attribute.name in known:
            out.append(AttributeFacts(attribute, _what_happened(attribute), *known[attribute.name]))
        elif attribute.name in rows.names:
            out.append(_describe_as_published(attribute, rows.column(attribute.name)))
        else:
            out.append(AttributeFacts(attribute, REMOVED))
    return out


def _describe_as_published(attribute: Attribute, column: Any) -> AttributeFacts:
    cells = table_cells.texts(column, attribute)
    return AttributeFacts(attribute, _what_happened(attribute), len(cells.dictionary), cells.null_count)


def _what_happened(attribute: Attribute) -> str:
    """What happened to a column that is no quasi-identifier, and is published."""
    if attribute.role is Role.PSEUDONYM:
        return "replaced by pseudonyms"
    return "published as it is" if attribute.shift is None else "published, with dates shifted"


def _describe_generalized(
    attribute: Attribute, source: Source, groups: PublishedGroups, detail: Detail
) -> AttributeFacts:
    columns = [groups.cells[name] for name in cells_of(attribute, source)]
    is_empty = np.logical_and.reduce([column.code == column.empty for column in columns])
    n_distinct = _number_lines(columns).n - bool(is_empty.any())
    if detail.exact + detail.missing == detail.rows:
        happened = "published as it is"
    else:
        happened = "hidden" if detail.nothing == detail.rows else "generalized"
    levels = (detail.exact, detail.narrowed, detail.nothing, detail.missing)
    found = AttributeFacts(attribute, happened, n_distinct, detail.missing, levels=levels)
    return found if groups.leaves is None else _with_recoding(found, groups.leaves)


def _with_recoding(fact: AttributeFacts, leaves: Leaves) -> AttributeFacts:
    """What the recoding tells beside the cells."""
    recoding, name = leaves.recoding, fact.attribute.name
    a = [axis.attribute.name for axis in recoding.axes].index(name)
    own = leaves.boxes[a]
    n_hidden = int(leaves.rows[_hides_missing(recoding.axes[a], own.ends)[own.which]].sum())
    return replace(fact, n_hidden=n_hidden, n_splits=recoding.n_splits()[name])


def has_missing_above(leaves: Leaves, names: Sequence[str]) -> bool:
    """Does a range of one of these columns that begins above the least value have missing with it?"""
    axes = zip(leaves.recoding.axes, leaves.boxes, strict=True)
    numbers = [
        (axis, own.ends)
        for axis, own in axes
        if axis.attribute.name in names and isinstance(axis, OrderedAxis)
    ]
    return any(bool((_hides_missing(axis, ends) & np.isfinite(ends.low)).any()) for axis, ends in numbers)


def _hides_missing(axis: Axis, ends: BoxEnds) -> NDArray[np.bool_]:
    """Boxes that a missing value may stand in, among others."""
    if not axis.has_missing:
        return np.zeros(len(ends.low), dtype=np.bool_)
    if isinstance(axis, TreeAxis):
        is_root = (ends.low == 0) & (axis.nodes.labels[0] is not None)
        if axis.excluded is not None:
            excludes = [axis.excluded.names_missing(number) for number in ends.high.astype(np.int64).tolist()]
            is_root &= ~np.array(excludes, dtype=np.bool_)
        return np.asarray(is_root)
    return np.asarray(ends.missing & ~np.isneginf(ends.high))
