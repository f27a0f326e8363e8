"""Refinement of a block of the tree by a decision list.

The tree divides rows and never pools them again, so that every leaf may keep up to k - 1 rows too many. The list begins
anew with all rows of a block, but only at the levels that the leaves of the tree have come to:

1. Each leaf has a level vector: for each quasi-identifier the least level with a cell that contains its label. A range of
   numbers may lie across the border of two cells; so each leaf has a second vector, with the least level whose cells are
   as wide as its ranges. The top vector, one cell for all rows, is added.
2. The vectors are ordered by the total price of the block's rows at these levels, ties by the levels themselves.
3. For each vector in turn the rows that are left are grouped into its cells. Cells that satisfy the requirement are
   published and take their rows.
4. While the rows that are left over do not satisfy it, the cell published last is taken back. They are the pool. If the
   block may leave out as many rows as were left over at first, and that costs less, they are left out instead.
5. The list is kept if its labels cost less than those of the tree.

A row belongs to the first published cell that contains it, else to the pool. Rows are grouped by their values alone, and
cells of a vector stand in the order of their keys; so the order of the rows makes no difference.

A cell is labelled as a leaf is: along a hierarchy by the least node that covers its rows, and for numbers by the public
slices from the least to the greatest value, cut to the block's range and also to the cell. Without the last, cells 9, 10
and 11 could all be labelled [9, 11] and would be one group to whoever reads them. With it no two groups share all
labels: a label lies inside its cell, so all rows that fit it were taken when the first of the two was published.

Prices are whole numbers: the price of a step of each attribute (at most 2^31 / its steps), times steps, times rows. Their
sums fit in 64 bits as long as rows times attributes are below 2^32; a block has at most 2^20 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.kernels.decision_list import (
    CountScratch,
    KeyParts,
    RowsOfCombinations,
    SweepScratch,
    count_kept,
    count_kept_by_people,
    fill_ends,
    sweep,
)
from sfumato.methods.mondrian.kernels.grow import fill_covers
from sfumato.methods.mondrian.kernels.problem import VALUES, VARIANCE, Rules, Table, pack_axes, table, work_of
from sfumato.methods.mondrian.levels import MISSING_KEY, AxisLevels, GroupLabels, NumberLevels, TreeLevels
from sfumato.methods.mondrian.people import new_stamps
from sfumato.table.combinations import number_combinations

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WORD_BITS = 64

SPARSE = 4
"""Codes are counted in place, if there are at most so many per row."""


@dataclass(frozen=True, slots=True, eq=False)
class ListProblem:
    """All that the list depends on, but for the rows and the tree.

    levels   of each axis
    prices   (axes,) of one leaf or one step
    rules    the requirement; the rows are all rows, not a sample
    row_price   of a row that is left out
    allowance   what may be left out
    most_cells   the first cells that stay, whatever they cost; None: none was taken back
    """

    axes: Axes
    levels: tuple[AxisLevels, ...]
    prices: Ints
    rules: Rules
    row_price: int = 0
    allowance: Allowance = NOTHING
    most_cells: int | None = None


class TreeLeaves(NamedTuple):
    """The leaves of the tree in a block: their labels, and their rows from ``start`` to ``end``."""

    labels: GroupLabels
    start: Ints
    end: Ints


class DecisionList(NamedTuple):
    """The published cells, in order.

    levels   (cells, axes) level vectors
    keys     (cells, axes) which cell of that level it is, see ``levels``
    labels   of the cells, and of the pool last, if rows are left over
    """

    levels: Ints
    keys: Ints
    labels: GroupLabels


class RefinedBlock(NamedTuple):
    """A list that costs less than the tree, and the cell of each row.

    The pool's number comes after all cells; without a pool it is that of rows that are left out.
    """

    cells: DecisionList
    cell: NDArray[np.int32]
    n_rows: Ints  # of each cell, and of the pool if rows are left over
    price: int
    tree_price: int


def list_bytes(n_axes: int) -> int:
    """Memory for a row of a block while its list is made, on top of what growth takes."""
    return 12 * n_axes + 110


def refine(rows: Codes, leaves: TreeLeaves, problem: ListProblem) -> RefinedBlock | None:
    """The decision list of a block, None if it does not lose less than the tree.

    rows   (n, columns) codes of the quasi-identifiers, then of sensitive values, in the order of the leaves
    """
    refined = make_list(rows, leaves, problem)
    return refined if refined.price < refined.tree_price or problem.most_cells is not None else None


def make_list(rows: Codes, leaves: TreeLeaves, problem: ListProblem) -> RefinedBlock:
    """The decision list of a block, whatever it costs."""
    if len(problem.rules.tests):
        raise InternalError("A decision list is made of all rows, not of a sample.")
    block = _Block.of(rows, problem)
    vectors = vectors_of(leaves.labels, problem.levels)
    is_whole = ~problem.axes.may_split
    vectors[:, is_whole] = vectors[-1, is_whole]  # the top vector is the last
    vectors = order_vectors(np.unique(vectors, axis=0), block)
    published, cell = block.sweep(vectors)
    return block.publish(vectors, published, cell, price_tree(rows, leaves, problem))


# ---- prices ----------------------------------------------------------------------------------------


def price_groups(labels: GroupLabels, n_rows: Ints, missing: Ints, problem: ListProblem) -> Ints:
    """The price of each group: its rows times the widths of its labels; missing among values costs all steps.

    missing   (groups, axes) rows that are missing, of axes of numbers
    """
    total = np.zeros(len(n_rows), dtype=np.int64)
    for a, axis in enumerate(problem.levels):
        if isinstance(axis, TreeLevels):
            node = labels.low[:, a]
            lost = n_rows * (problem.axes.node_high[node] - problem.axes.node_low[node] - 1)
        else:
            width = labels.high[:, a] - labels.low[:, a]
            known = (n_rows - missing[:, a]) * width + missing[:, a] * axis.n_steps
            lost = np.where(width < 0, 0, known)
        total += lost * int(problem.prices[a])
    return total


def price_tree(rows: Codes, leaves: TreeLeaves, problem: ListProblem) -> int:
    """What the labels of the tree's leaves cost, and the rows that are in none."""
    missing = np.zeros((len(leaves.start), len(problem.levels)), dtype=np.int64)
    for a, axis in enumerate(problem.levels):
        if isinstance(axis, NumberLevels) and axis.has_missing:
            before = np.append(0, np.cumsum(rows[:, a] == 0))
            missing[:, a] = before[leaves.end] - before[leaves.start]
    n_rows = leaves.end - leaves.start
    n_left = len(rows) - int(n_rows.sum())
    return int(price_groups(leaves.labels, n_rows, missing, problem).sum()) + n_left * problem.row_price


# ---- level vectors ---------------------------------------------------------------------------------


def vectors_of(labels: GroupLabels, levels: Sequence[AxisLevels]) -> Ints:
    """The distinct level vectors of these labels and the top vector, in lexicographic order."""
    by_place, by_width = [], []
    for axis, *ends in zip(levels, labels.low.T, labels.high.T, labels.missing.T, strict=True):
        by_place.append(axis.levels_by_place(*ends))
        by_width.append(axis.levels_by_width(*ends))
    top = [axis.top for axis in levels]
    return np.unique(np.vstack([np.stack(by_place, axis=1), np.stack(by_width, axis=1), top]), axis=0)


def order_vectors(vectors: Ints, block: _Block) -> Ints:
    """The vectors by the price of the block's rows in their cells, cut to the block but not narrowed; ties as given."""
    price = np.zeros(len(vectors), dtype=np.int64)
    for a, column in enumerate(block.columns):
        for level in np.unique(vectors[:, a]).tolist():
            widths = column.axis.widths(level, column.codes)
            steps = int(np.dot(widths, column.count_rows(block)))
            price[vectors[:, a] == level] += steps * int(block.problem.prices[a])
    return vectors[np.argsort(price, kind="stable")]


# ---- the rows of a block ---------------------------------------------------------------------------


class _Column(NamedTuple):
    """One quasi-identifier of a block: only the values that occur, in order."""

    a: int
    axis: AxisLevels
    codes: Ints  # a code for each value

    def count_rows(self, block: _Block) -> Ints:
        """How many rows have each value."""
        n_rows = np.bincount(block.values[:, self.a], block.n_rows, len(self.codes))
        return n_rows.astype(np.int64)

    @property
    def has_missing(self) -> bool:
        """Is the first value missing?"""
        return isinstance(self.axis, NumberLevels) and self.axis.position[self.codes[0]] == MISSING_KEY


def _compress(codes: NDArray[np.uint32], axis: AxisLevels) -> tuple[Ints, NDArray[np.uint32]]:
    """A code of each value that occurs, and the value of each row; codes at one position are one value."""
    used, place = _distinct_codes(codes)
    is_new = np.ones(len(used), dtype=np.bool_)
    if isinstance(axis, NumberLevels):
        is_new[1:] = np.diff(axis.position[used]) != 0
    return used[is_new], (np.cumsum(is_new) - 1).astype(np.uint32)[place]


def _distinct_codes(codes: NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """The same as ``np.unique`` gives; counted, not sorted, if the codes are not much greater than the rows are many."""
    greatest = int(codes.max())
    if greatest > SPARSE * len(codes):
        used, place = np.unique(codes, return_inverse=True)
        return used.astype(np.int64), place
    is_used = np.bincount(codes) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The rows of a block by their distinct combinations of values, in lexicographic order.

    values   (combinations, axes)
    n_rows   (combinations,)
    number   (rows,) the combination of each row
    """

    problem: ListProblem
    rows: Codes
    columns: tuple[_Column, ...]
    values: Codes
    n_rows: Ints
    number: Ints

    @classmethod
    def of(cls, rows: Codes, problem: ListProblem) -> _Block:
        compressed = [_compress(rows[:, a], axis) for a, axis in enumerate(problem.levels)]
        found = number_combinations([values for _, values in compressed])
        first = found.first_rows()
        values = np.stack([values[first] for _, values in compressed], axis=1)
        columns = tuple(
            _Column(a, axis, codes)
            for a, (axis, (codes, _)) in enumerate(zip(problem.levels, compressed, strict=True))
        )
        return cls(problem, rows, columns, values, found.count_rows(), found.number)

    def sweep(self, vectors: Ints) -> tuple[Ints, NDArray[np.int32]]:
        """The published cells (vector, a combination), as found, and the cell of each combination, -1: none."""
        rules, m = self.problem.rules, len(self.values)
        keys = _pack_keys(self.columns, vectors)
        start = np.append(0, np.cumsum(self.n_rows))
        looks_at_rows = rules.sensitive is not None
        order = np.argsort(self.number, kind="stable") if looks_at_rows else np.arange(len(self.rows))
        published, cell = np.empty((m, 2), dtype=np.int64), np.empty(m, dtype=np.int32)
        scratch = SweepScratch(
            slots=np.empty(1 << (2 * m - 1).bit_length(), dtype=np.int32),
            key=np.empty((m, keys.n_words), dtype=np.uint64),
            n_rows=np.empty(m, dtype=np.int64),
            cell=np.empty(m, dtype=np.int32),
            number=np.empty(m, dtype=np.int32),
            place=np.empty(m, dtype=np.int64),
            listed=np.empty(len(self.rows) if looks_at_rows else 0, dtype=np.int64),
            values=_no_values(rules),
            work=work_of(rules.sensitive),
            stamps=new_stamps(self.rows, rules),
        )
        least_rows = max(rules.least_rows, rules.diverse_rows, 1)
        by_combination = RowsOfCombinations(self.rows, order, start)
        with np.errstate(
            over="ignore"
        ):  # products of hashing wrap; only without the compiler would they warn
            n = sweep(self.values.copy(), keys, by_combination, least_rows, rules, scratch, published, cell)
        return published[:n], cell

    def publish(self, vectors: Ints, published: Ints, cell: NDArray[Any], tree_price: int) -> RefinedBlock:
        """Put the cells in order, take back those that the pool needs or leave it out, and label what stays."""
        levels = vectors[published[:, 0]]
        keys = self._keys(levels, published[:, 1])
        order = np.lexsort((*keys.T[::-1], published[:, 0]))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        cell = np.append(place, len(order))[cell]  # -1 is the last: the pool
        levels, keys = levels[order], keys[order]
        if self.problem.most_cells is not None:
            n_kept = min(self.problem.most_cells, len(order))
            n_kept = self._count_kept(np.minimum(cell, n_kept), n_kept)
            return self._keep(np.minimum(cell, n_kept), levels[:n_kept], keys[:n_kept], tree_price)
        n_kept = self._count_kept(cell, len(order))
        found = self._keep(np.minimum(cell, n_kept), levels[:n_kept], keys[:n_kept], tree_price)
        if n_kept == len(order) or not self._may_leave_out(cell == len(order)):
            return found
        without = self._keep(cell, levels, keys, tree_price, leaves_pool=True)
        return without if without.price < found.price else found

    def _may_leave_out(self, chosen: Bools) -> bool:
        """Do these combinations stand for few enough rows, and people?"""
        allowance, sensitive = self.problem.allowance, self.problem.rules.sensitive
        if self.n_rows[chosen].sum() > allowance.rows:
            return False
        if sensitive is None or sensitive.people is None:
            return True
        return len(np.unique(self.rows[chosen[self.number], sensitive.people.column])) <= allowance.people

    def _keep(
        self, cell: Ints, levels: Ints, keys: Ints, tree_price: int, *, leaves_pool: bool = False
    ) -> RefinedBlock:
        """The list of these cells; the combinations of no cell are the pool, or left out."""
        n_rows = np.bincount(cell, self.n_rows, len(levels)).astype(np.int64)
        n_left = 0
        if leaves_pool:
            n_rows, n_left = n_rows[: len(levels)], int(n_rows[len(levels) :].sum())
        labels, missing = self._label(cell, len(n_rows), levels, keys)
        price = (
            int(price_groups(labels, n_rows, missing, self.problem).sum()) + n_left * self.problem.row_price
        )
        cells = DecisionList(levels, keys, labels)
        return RefinedBlock(cells, cell[self.number].astype(np.int32), n_rows, price, tree_price)

    def _keys(self, levels: Ints, combinations: Ints) -> Ints:
        """The keys of the cells of these levels that hold these combinations."""
        out = np.empty(levels.shape, dtype=np.int64)
        for a, column in enumerate(self.columns):
            codes = column.codes[self.values[combinations, a]]
            for level in np.unique(levels[:, a]).tolist():
                at = levels[:, a] == level
                out[at, a] = column.axis.keys(level, codes[at])
        return out

    def _count_kept(self, cell: Ints, n_cells: int) -> int:
        """How many cells stay published, see ``count_kept``."""
        rules = self.problem.rules
        of_rows = cell[self.number]
        order = np.argsort(of_rows, kind="stable")
        start = np.searchsorted(of_rows[order], np.arange(n_cells + 2))
        sensitive = rules.sensitive
        if sensitive is not None and sensitive.people is not None:
            scratch = CountScratch(_no_values(rules), work_of(sensitive), new_stamps(self.rows, rules))
            return int(count_kept_by_people(self.rows, order, start, rules, scratch))
        tables: tuple[Table, Table] = (
            (table(VALUES, []), table(VARIANCE, []))
            if sensitive is None
            else (sensitive.values, sensitive.variance)
        )
        return int(count_kept(self.rows, order, start, rules, tables, _no_values(rules), work_of(sensitive)))

    def _label(self, cell: Ints, n_groups: int, levels: Ints, keys: Ints) -> tuple[GroupLabels, Ints]:
        """Labels of the cells and the pool, and how many of their rows are missing on each axis."""
        n_axes = len(self.columns)
        order = np.argsort(cell, kind="stable")
        start = np.searchsorted(cell[order], np.arange(n_groups + 1))
        least, greatest, missing = np.empty((3, n_groups, n_axes), dtype=np.int64)
        has_missing = np.array([column.has_missing for column in self.columns])
        fill_ends(self.values, order, start, self.n_rows, has_missing, least, greatest, missing)
        covers = self._cover(least, greatest)
        low, high = covers, np.full(covers.shape, -1, dtype=np.int64)
        for a, column in enumerate(self.columns):
            if isinstance(column.axis, NumberLevels):
                ends = (least[:, a], greatest[:, a])
                low[:, a], high[:, a] = _narrow(column, *ends, levels[:, a], keys[:, a])
        return GroupLabels(low, high, missing > 0), missing

    def _cover(self, least: Ints, greatest: Ints) -> Ints:
        """The least hierarchy nodes that cover these values, -1 on axes of numbers."""
        ends = np.zeros((2 * len(least), least.shape[1]), dtype=np.uint32)
        for a, column in enumerate(self.columns):
            if isinstance(column.axis, TreeLevels):
                ends[0::2, a] = column.codes[least[:, a]]
                ends[1::2, a] = column.codes[greatest[:, a]]
        start = np.arange(0, len(ends), 2)
        out = np.empty(least.shape, dtype=np.int64)
        fill_covers(ends, start, start + 2, pack_axes(self.problem.axes), False, out)
        return out


def _narrow(column: _Column, least: Ints, greatest: Ints, levels: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Ranges of numbers to publish, those of the cells and of the pool; 0 and -1 for missing alone."""
    axis = column.axis
    assert isinstance(axis, NumberLevels)
    is_missing = greatest < least
    position = axis.position[column.codes]
    low, high = axis.narrow(
        position[np.where(is_missing, 0, least)],
        position[np.where(is_missing, 0, greatest)],
        axis.first,
        axis.last,
    )
    first, last = axis.cut(levels, keys)
    n = len(levels)
    low[:n], high[:n] = np.maximum(low[:n], first), np.minimum(high[:n], last)
    return np.where(is_missing, 0, low), np.where(is_missing, -1, high)


def _no_values(rules: Rules) -> Ints:
    return np.zeros(0 if rules.sensitive is None else rules.sensitive.n_values, dtype=np.int64)


def _pack_keys(columns: Sequence[_Column], vectors: Ints) -> KeyParts:
    """The parts of cell keys: for each axis, level and value which cell it is, at its place in a word."""
    start, parts, end = np.full(vectors.shape, -1, dtype=np.int64), [], 0
    word, shift, words = 0, 0, []
    for a, column in enumerate(columns):
        n_bits = (len(column.codes) - 1).bit_length()
        if shift + n_bits > WORD_BITS:
            word, shift = word + 1, 0
        for level in np.unique(vectors[:, a]).tolist():
            cells = np.unique(column.axis.keys(level, column.codes), return_inverse=True)[1]
            if cells[-1] > 0:
                parts.append(cells.astype(np.uint64) << np.uint64(shift))
                start[vectors[:, a] == level, a] = end
                end += len(cells)
        words.append(word)
        shift += n_bits
    packed: NDArray[Any] = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    return KeyParts(packed, start, np.array(words, dtype=np.int64), word + 1)
