r"""What the labels of a release lose against the table: NCP, entropy and the answers to COUNT queries.

- **NCP** of cells is that of :mod:`sfumato.recoding.loss`.
- **Entropy loss** (non-uniform entropy) of a cell [WW99, GT09]: :math:`\log_2` of the rows of the table whose value
  lies in its label over the rows with its very value, so that a label costs as many bits as are left open. Of a column
  it is the sum over its cells, divided by what it would be if every cell were ``*``; of a release the same with the
  sums over all columns. ARX normalizes a column alike, and takes the mean of its columns [PBK16].
- **Query error**: random COUNT queries on up to three quasi-identifiers, each of which selects 1 to 50% of the rows.
  A label counts by the share of its values that a query selects; the error of an answer is its distance from the true
  count over that count, and the figure is the median.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.cells import read_ordered
from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.rectangles import Interval, Labels, Rectangle, Side
from sfumato.policy.schema import Attribute, Kind
from sfumato.randomness import Random
from sfumato.recoding import loss
from sfumato.recoding.axis import Axis, DistinctBoxes, TreeAxis
from sfumato.recoding.loss import WholeTree, worst_first
from sfumato.recoding.recoder import Partition, Recoder, RowCells
from sfumato.release.query.overlap import Excluded, NodeBoxes, make_boxes
from sfumato.release.query.select import AlikeRows, PublishedCells
from sfumato.release.query.visible_tree import VisibleTree
from sfumato.table import cells as table_cells
from sfumato.table.source import Source

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NCP, ENTROPY_LOSS, QUERY_ERROR = "ncp", "entropy loss", "query error"
OF_LOSS = (NCP, ENTROPY_LOSS, QUERY_ERROR)
"""The measures that say what is lost; each may also be of a column."""

QUERIES = 1_000
QUERY_COLUMNS = 3
LEAST_SELECTED, MOST_SELECTED = 0.01, 0.5
TRIES = 20
"""Queries that are drawn for each that is kept, at most on average; the others select too few rows, or too many."""


def measure_groups(groups: Partition, table: Source, random: Random) -> dict[str, float]:
    """What the labels of groups lose against the table that they divide; ``random`` draws the queries."""
    released = ReleasedGroups.of(groups, table)
    errors = query_errors(released, table, random)
    return {
        **released.ncp(),
        **released.entropy_loss(),
        **(of_columns(QUERY_ERROR, *median_errors(errors)) if errors else {}),
    }


def measure_rows(recoding: Recoder, table: Source, trees: Mapping[str, Hierarchy]) -> dict[str, float]:
    """The NCP of the labels that the rows of a table get; ``trees`` are the whole hierarchies."""
    values = RowCells.read(table, recoding.axes).values
    lost = loss.measure_loss(
        recoding.axes,
        loss.boxes_along(recoding.box_ends(table)),
        np.ones(table.n_rows, dtype=np.int64),
        {name: (~np.isfinite(cells)).astype(np.int64) for name, cells in values.items()},
        {name: WholeTree(tree) for name, tree in trees.items()},
    )
    return of_columns(NCP, lost.ncp, lost.by_column)


def of_columns(what: str, figure: float, columns: Mapping[str, float]) -> dict[str, float]:
    """A measure of all columns, and of each: those that lost most first."""
    return {what: figure, **{f"{what} of {name}": value for name, value in worst_first(columns).items()}}


def by_column(measures: Mapping[str, float], what: str) -> dict[str, float]:
    """A measure of each column, those that lost most first.

    >>> by_column({"ncp": 0.4, "ncp of age": 0.3, "ncp of sex": 0.5}, "ncp")
    {'sex': 0.5, 'age': 0.3}
    """
    start = f"{what} of "
    found = {name.removeprefix(start): value for name, value in measures.items() if name.startswith(start)}
    return worst_first(found)


def order_columns(measures: Mapping[str, float]) -> dict[str, float]:
    """The same measures, those of columns that lost most first."""
    columns = {what: by_column(measures, what) for what in OF_LOSS}
    of_one = {f"{what} of {name}" for what, found in columns.items() for name in found}
    out: dict[str, float] = {}
    for name, value in measures.items():
        if name not in of_one:
            out[name] = value
            out |= {f"{name} of {column}": each for column, each in columns.get(name, {}).items()}
    return out


# ---- labels and the values that they cover -------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of the table in codes, and how many rows have each code."""

    domain: Domain
    codes: NDArray[np.uint32]
    count: Ints


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedGroups:
    """The boxes of groups along each quasi-identifier, the rows of each group, and the values of the table."""

    groups: Partition
    boxes: Sequence[DistinctBoxes]
    columns: Sequence[Coded]
    trees: Mapping[str, WholeTree]
    asked: Mapping[str, WholeTree]
    """The hierarchies with all their levels, also those that are finer than what may be published."""

    @classmethod
    def of(cls, groups: Partition, table: Source) -> ReleasedGroups:
        columns = []
        for axis in groups.recoding.axes:
            domain, codes = encode_axis(table, axis.attribute)
            columns.append(
                Coded(domain, codes, np.bincount(codes, minlength=domain.n_codes).astype(np.int64))
            )
        boxes = loss.boxes_along(groups.recoding.ends(groups.leaf))
        trees = loss.whole_trees([column.domain for column in columns])
        finer = [
            a for axis in groups.recoding.axes if (a := axis.attribute).finest is not None and a.hierarchy
        ]
        given = loss.whole_trees([encode_axis(table, attribute.as_given)[0] for attribute in finer])
        return cls(groups, boxes, columns, trees, {**trees, **given})

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.groups.recoding.axes

    @property
    def n_left_out(self) -> int:
        """How many rows of the table are in no group; all of their cells is lost."""
        return int(self.columns[0].count.sum() - self.groups.size.sum())

    def ncp(self) -> dict[str, float]:
        flags = {
            axis.attribute.name: np.asarray(column.codes == 0)
            for axis, column in zip(self.axes, self.columns, strict=True)
            if isinstance(column.domain, OrderedDomain) and column.domain.has_missing
        }
        missing = loss.count_in_groups(flags, self.groups.row_numbers, self.groups.size)
        lost = loss.measure_loss(self.axes, self.boxes, self.groups.size, missing, self.trees)
        lost = lost.with_left_out(self.n_left_out)
        return of_columns(NCP, lost.ncp, lost.by_column)

    def entropy_loss(self) -> dict[str, float]:
        lost, most = {}, {}
        for axis, along, column in zip(self.axes, self.boxes, self.columns, strict=True):
            name = axis.attribute.name
            size = np.bincount(along.which, self.groups.size, minlength=len(along.low))
            covered = rows_covered(axis, along, column, self.trees.get(name))
            known = sum_of_logs(column.count, column.count)
            lost[name] = sum_of_logs(size, covered) - known
            if self.n_left_out:
                lost[name] += self.n_left_out * math.log2(column.count.sum())
            most[name] = sum_of_logs(column.count, np.full_like(column.count, column.count.sum())) - known
        columns = {name: share_of(lost[name], most[name]) for name in lost}
        return of_columns(ENTROPY_LOSS, share_of(math.fsum(lost.values()), math.fsum(most.values())), columns)


def sum_of_logs(weight: NDArray[Any], value: NDArray[Any]) -> float:
    """The sum of weights times logarithms of values, over what has a weight."""
    kept = weight > 0
    return math.fsum(weight[kept] * np.log2(value[kept].astype(np.float64)))


def share_of(part: float, whole: float) -> float:
    """A share from 0 to 1; 0 of a column of one value, which has nothing to lose."""
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0


def rows_covered(axis: Axis, boxes: DistinctBoxes, column: Coded, tree: WholeTree | None) -> Ints:
    """How many rows of the table have a value that lies in the label of each box."""
    total = np.concatenate([[0], np.cumsum(column.count)])
    if isinstance(axis, TreeAxis):
        assert tree is not None
        excluded = Excluded.of(axis, boxes.high)
        part, whole = (_rows_below(nodes, axis, total, tree) for nodes in (excluded.node, boxes.low))
        return excluded.subtract(part, whole).astype(np.int64)
    domain = column.domain
    assert isinstance(domain, OrderedDomain)
    least = int(domain.has_missing)
    values = np.asarray(domain.value(np.arange(least, domain.n_codes)))
    side: Literal["left", "right"] = "left" if axis.shows_least else "right"
    first = np.where(np.isnan(boxes.low), 0, np.searchsorted(values, boxes.low, side=side))
    end = np.searchsorted(values, boxes.high, side="right")
    inside = np.asarray(total[least + np.maximum(end, first)] - total[least + first])
    has_missing = np.isneginf(boxes.high) | loss.shares_of(axis, boxes, None).is_mixed
    return np.where(has_missing, total[least], 0) + np.where(np.isneginf(boxes.high), 0, inside)


def _rows_below(nodes: NDArray[Any], axis: TreeAxis, total: Ints, tree: WholeTree) -> Ints:
    first, end = tree.leaves_of(axis.nodes, nodes)
    return np.asarray(total[end] - total[first])


# ---- COUNT queries -------------------------------------------------------------------------------------


class QueryError(NamedTuple):
    """How far the answer to a COUNT query is from the truth, and what the query is about."""

    names: tuple[str, ...]
    error: float


def median_errors(errors: Sequence[QueryError]) -> tuple[float, dict[str, float]]:
    """The median of all errors, and of those that ask for each column."""
    names = dict.fromkeys(name for one in errors for name in one.names)
    columns = {name: float(np.median([one.error for one in errors if name in one.names])) for name in names}
    return float(np.median([one.error for one in errors])), columns


def query_errors(
    released: ReleasedGroups, table: Source, random: Random, n_queries: int = QUERIES
) -> list[QueryError]:
    """The errors of random queries; fewer than asked for where hardly any selects the right number of rows."""
    rows = published_boxes(released)
    size, n_rows = rows.size, table.n_rows
    asked = [AskedColumn.of(table, axis.attribute) for axis in released.axes]
    found: list[QueryError] = []
    for _ in range(TRIES * n_queries):
        if len(found) == n_queries:
            break
        chosen = draw_query(asked, random)
        inside = np.ones(n_rows, dtype=np.bool_)
        for column, side in chosen:
            inside &= column.test(side)
        true = int(inside.sum())
        if not LEAST_SELECTED * n_rows <= true <= MOST_SELECTED * n_rows:
            continue
        rectangle = Rectangle({column.name: side for column, side in chosen})
        answer = float(size @ rows.overlap_one(rectangle).share)
        found.append(QueryError(tuple(rectangle.sides), abs(answer - true) / true))
    return found


def published_boxes(released: ReleasedGroups) -> AlikeRows:
    """The groups as COUNT sees them; who asks knows the values of each column."""
    cells = {}
    for axis, along in zip(released.axes, released.boxes, strict=True):
        name, every = axis.attribute.name, np.arange(len(along.low))
        boxes = make_boxes(axis, along.ends)
        if isinstance(boxes, NodeBoxes):
            boxes = _with_all_values(boxes, released.asked[name])
        cells[name] = PublishedCells(boxes, every, along.which.astype(np.int64))
    size = released.groups.size
    return AlikeRows(cells, np.arange(len(size)), len(size), size)


def _with_all_values(boxes: NodeBoxes, tree: WholeTree) -> NodeBoxes:
    place = tree.find_places(boxes.axis.nodes)
    return replace(boxes, known=VisibleTree(tree.hierarchy, place, is_complete=True))


@dataclass(frozen=True, slots=True, eq=False)
class AskedColumn:
    """A column as queries ask for it: its values in order, how many rows have each, and which of them each row has.

    ``labels`` are the texts of categories; a row whose cell is missing has the place -1.
    """

    name: str
    values: Floats
    labels: Sequence[str] | None
    count: Ints
    of_row: Ints

    @classmethod
    def of(cls, table: Source, attribute: Attribute) -> AskedColumn:
        column = table.column(attribute.name)
        if attribute.kind is Kind.CATEGORY:
            cells = table_cells.texts(column, attribute)
            texts = np.array([*cells.dictionary.to_pylist(), ""], dtype=object)
            at = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            labels, place, count = np.unique(texts[at[at >= 0]], return_inverse=True, return_counts=True)
            of_row = np.full(len(at), -1, dtype=np.int64)
            of_row[at >= 0] = place
            return cls(
                attribute.name, np.arange(len(labels), dtype=np.float64), labels.tolist(), count, of_row
            )
        cells = read_ordered(attribute, column)
        is_known = np.isfinite(cells)
        values, at, count = np.unique(cells[is_known], return_inverse=True, return_counts=True)
        of_row = np.full(len(cells), -1, dtype=np.int64)
        of_row[is_known] = at
        return cls(attribute.name, values, None, count.astype(np.int64), of_row)

    def draw(self, share: float, random: Random) -> Side:
        """A range of numbers, or a set of categories, that about this share of the rows have."""
        wanted = share * len(self.of_row)
        if self.labels is not None:
            order = random.permutation(len(self.labels))
            n = int(np.searchsorted(np.cumsum(self.count[order]), wanted)) + 1
            return Labels(frozenset(self.labels[i] for i in order[:n].tolist()))
        total = np.cumsum(self.count)
        start = random.random() * max(float(total[-1]) - wanted, 0.0)
        first, last = np.searchsorted(total, [start, start + wanted]).tolist()
        first, last = (min(place, len(self.values) - 1) for place in (first, last))
        return Interval(float(self.values[first]), float(self.values[last]))

    def test(self, side: Side) -> Flags:
        """Which rows lie in it."""
        if isinstance(side, Labels):
            assert self.labels is not None
            inside = np.array([label in side for label in self.labels], dtype=np.bool_)
        else:
            inside = (self.values >= side.low) & (self.values <= side.high)
        return np.asarray(np.append(inside, [False])[self.of_row])


def draw_query(columns: Sequence[AskedColumn], random: Random) -> list[tuple[AskedColumn, Side]]:
    """A random condition: some columns with a range or a set each, which together aim at 1 to 50% of the rows."""
    known = [column for column in columns if len(column.values)]
    n = min(QUERY_COLUMNS, len(known))
    if not n:
        return []
    share = random.uniform(LEAST_SELECTED, MOST_SELECTED) ** (1 / n)
    places = sorted(random.choice(len(known), size=n, replace=False).tolist())
    return [(known[place], known[place].draw(share, random)) for place in places]
