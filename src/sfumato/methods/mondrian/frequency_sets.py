"""Frequency sets of one node, gathered block by block.

A splitter (``splits``) says by a ``GatherPlan`` what it needs next. A ``Collector`` is shown the rows and adds them up;
the splitter then chooses from what was gathered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.information import information_table
from sfumato.methods.mondrian.kernels.frequency import (
    add_packed,
    add_sums,
    add_words,
    fill_ranges,
    n_words,
    packing,
)
from sfumato.methods.mondrian.kernels.problem import Cells, pack_axes, work_of
from sfumato.methods.mondrian.kernels.sets import (
    accumulate,
    add_counts,
    add_dense,
    add_ids,
    add_to_histogram,
    add_totals,
    fill_entries,
    first_allowable,
    parts_hold,
)
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import SplitProblem

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Lines = NDArray[Any]

TABLE = 1 << 20
"""Rows up to which logarithms are kept in a table; others are computed when they are needed."""

ENTRY = 3 * 8
"""Bytes of an entry of a sparse set: key, rows, sum."""

STRETCH = 2 * 8
"""Bytes of a stretch of codes: its rows, and those of a block."""

NOTHING = np.zeros(0, dtype=np.int64)


class SplitCriteria:
    """How splits are compared, and which are allowable: prepared once for all nodes of a tree."""

    def __init__(self, problem: SplitProblem) -> None:
        axes, targets, rules = problem.axes, problem.targets, problem.rules
        self.axes, self.targets, self.rules, self.queries = axes, targets, rules, problem.queries
        self.grid = pack_axes(axes)
        self.n_axes = len(axes.root)
        self.features = () if problem.cells is None else list_cell_targets(problem.cells)
        has_labels = len(targets.label) or any(not feature.is_number for feature in self.features)
        self.table = information_table(TABLE) if has_labels else np.zeros(1)
        self.has_targets = len(targets.label) + len(targets.number) > 0
        self.is_scored = self.has_targets or problem.cells is not None
        self.n_totals = int(n_words(targets)) if self.has_targets else 1
        """Words that sum up a node, see ``kernels.frequency``."""
        self.is_single = self.has_targets and self.n_totals == 2
        single = targets.label if len(targets.label) else targets.number
        self.column = int(single[0].column) if self.is_single else 0
        self.n_values = int(rules.values["end"].max(initial=0))
        self._values = np.zeros(self.n_values, dtype=np.int64)
        self._work = work_of(rules)

    def whole(self, n_codes: Sequence[int]) -> NodeRange:
        """The range of the root: each axis has so many codes, from 0 on."""
        return NodeRange.of_root(self.axes, n_codes, has_queries=self.queries is not None)

    def first_allowable(self, at: Ints, rows: Ints, n_rows: int, histogram: Histogram) -> int:
        """The first of some thresholds that is allowable, -1 if none is; each comes after the bin ``at``."""
        return int(
            first_allowable(
                at, rows, n_rows, histogram.counts, histogram.moments, self.rules, self._values, self._work
            )
        )

    def parts_hold(self, place: Ints, sizes: Ints, histogram: Histogram) -> bool:
        """Does every part satisfy the requirement? Part j has the bins after place[j], up to place[j + 1]."""
        return bool(
            parts_hold(
                place, sizes, histogram.counts, histogram.moments, self.rules, self._values, self._work
            )
        )


@dataclass(frozen=True, slots=True)
class CellTarget:
    """A target that is scored over the cells of its features."""

    is_number: bool
    id_column: int  # label: cells with classes; number: cells
    other: int  # label: cells; number: the number
    weight: float
    scale: float
    n_ids: int


def list_cell_targets(cells: Cells) -> tuple[CellTarget, ...]:
    """The targets over cells, labels before numbers."""
    return (
        *(
            CellTarget(False, int(t.value), int(t.cell), float(t.weight), 1.0, cells.n_ids)
            for t in cells.label
        ),
        *(
            CellTarget(True, int(t.cell), int(t.value), float(t.weight), float(t.scale), cells.n_ids)
            for t in cells.number
        ),
    )


@dataclass(frozen=True, slots=True)
class WordLayout:
    """How the words of a code are stored (rows, and what the targets need, see ``kernels.frequency``)."""

    words: int
    shift: int  # of the rows above the sum in one word; 0: not packed
    dtype: type[np.uint32 | np.int64]

    @property
    def n_bytes(self) -> int:
        """Bytes of one code."""
        return self.words * np.dtype(self.dtype).itemsize


def choose_layout(criteria: SplitCriteria, n_rows: int) -> WordLayout:
    """The smallest layout for a node of so many rows."""
    if not criteria.has_targets:
        return WordLayout(1, 0, np.uint32)
    shift = int(packing(n_rows, criteria.targets.largest)) if criteria.is_single else 0
    return WordLayout(1 if shift else criteria.n_totals, shift, np.int64)


@dataclass(frozen=True, slots=True)
class Window:
    """Codes of one axis whose words are gathered: low .. high. Their lines begin at ``start``."""

    axis: int
    low: int
    high: int
    start: int

    @property
    def n_lines(self) -> int:
        return self.high - self.low + 1


def lay_out_windows(spans: Iterable[tuple[int, int, int]]) -> list[Window]:
    """Windows (axis, low, high) whose lines stand one after the other."""
    windows: list[Window] = []
    start = 0
    for axis, low, high in spans:
        windows.append(Window(axis, low, high, start))
        start += high - low + 1
    return windows


class Stretches:
    """How many rows each stretch of 2^by codes of one axis has.

    ``last_below`` is the greatest code below the first stretch that some row has, -1 if there is none.
    """

    def __init__(self, axis: int, low: int, high: int, by: int) -> None:
        self.axis, self.low, self.high, self.by = axis, low, high, by
        self.counts = np.zeros(((high - low) >> by) + 1, dtype=np.int64)
        self.n_bytes = len(self.counts) * STRETCH
        self.last_below = -1

    def add(self, rows: Codes) -> None:
        codes = rows[:, self.axis]
        below = codes[codes < self.low]
        self.last_below = max(self.last_below, int(below.max(initial=0)) if len(below) else -1)
        codes = codes[(codes >= self.low) & (codes <= self.high)]
        stretch = (codes - np.uint32(self.low)) >> np.uint32(self.by)
        self.counts += np.bincount(stretch, minlength=len(self.counts))


# ---- the requirement -------------------------------------------------------------------------------


class Histogram:
    """What the requirement must know of each bin of an axis: rows of each sensitive value, moments of numbers.

    Bins are the codes from ``low`` on; or, with ``edges``, the ranges of codes that end with each edge.
    """

    def __init__(
        self, criteria: SplitCriteria, axis: int, n_bins: int, *, low: int = -1, edges: Ints = NOTHING
    ) -> None:
        self.rules, self.axis, self.low, self.edges = criteria.rules, axis, low, edges
        self._shape = n_bins, criteria.n_values
        self.n_bytes = n_bins * bytes_per_bin(criteria)
        self._counts: NDArray[np.uint32] | None = None
        self.moments: Ints = np.zeros((0, 0, 4), dtype=np.int64)

    @property
    def counts(self) -> NDArray[np.uint32]:
        if self._counts is None:
            self._counts = np.zeros(self._shape, dtype=np.uint32)
            self.moments = np.zeros((self._shape[0], len(self.rules.variance), 4), dtype=np.int64)
        return self._counts

    def add(self, rows: Codes) -> None:
        counts = self.counts
        rules = self.rules
        add_to_histogram(
            rows, self.axis, self.low, self.edges, rules.values, rules.variance, counts, self.moments
        )

    def close(self) -> None:
        """All rows were added: make the bins running totals."""
        accumulate(self.counts, self.moments)


def bytes_per_bin(criteria: SplitCriteria) -> int:
    """Bytes of a bin of a histogram."""
    return 4 * criteria.n_values + 32 * len(criteria.rules.variance)


# ---- cells -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entries:
    """The rows of some codes by the ids of a target over cells: an entry for each code and id that occur together."""

    end: Ints  # (codes,) where the entries of each code end
    of: Ints  # (entries,) the id
    weight: Ints  # (entries,) rows
    total: Ints  # (entries,) the sum of the number


class DenseCells:
    """Rows, and the sum of a number, by code and id: a line of all ids per code."""

    def __init__(self, feature: CellTarget, window: Window, rank: Codes, n_ids: int) -> None:
        self.feature, self.window, self.rank, self.n_ids = feature, window, rank, n_ids
        self.n_bytes = window.n_lines * bytes_per_code(feature, n_ids)
        self.high = window.high
        self._counts: NDArray[np.uint32] | None = None
        self._sums: Ints = np.zeros((0, n_ids), dtype=np.int64)

    def add(self, rows: Codes) -> None:
        feature, window = self.feature, self.window
        if self._counts is None:
            self._counts = np.zeros((window.n_lines, self.n_ids), dtype=np.uint32)
            if feature.is_number:
                self._sums = np.zeros((window.n_lines, self.n_ids), dtype=np.int64)
        add_dense(
            rows, window.axis, window.low, feature.id_column, self.rank, feature.other,
            self._counts, self._sums,
        )  # fmt: skip

    def close(self) -> None:
        """All rows were added; nothing is left to do."""

    def entries(self, code: Ints) -> Entries:
        """The entries of some codes, of which each occurs."""
        assert self._counts is not None
        end = np.empty(len(code), dtype=np.int64)
        of, weight, total = np.zeros((3, len(code) * self.n_ids), dtype=np.int64)
        n = fill_entries(code - self.window.low, self._counts, self._sums, end, of, weight, total)
        return Entries(end, of[:n], weight[:n], total[:n])


class SparseCells:
    """What ``DenseCells`` gathers, as a sorted list of entries.

    It holds at most ``max_entries``: if there are more, the last codes are given up, and ``high`` is lowered.
    """

    def __init__(
        self, feature: CellTarget, window: Window, rank: Codes, n_ids: int, max_entries: int
    ) -> None:
        self.feature, self.window, self.rank, self.n_ids = feature, window, rank, n_ids
        self.max_entries = max_entries
        self.n_bytes = 4 * max_entries * ENTRY
        self.high = window.high
        self._key = np.zeros(0, dtype=np.uint64)
        self._words = np.zeros((0, 2), dtype=np.int64)
        self._fresh: list[tuple[NDArray[np.uint64], Ints]] = []
        self._n_fresh = 0

    def add(self, rows: Codes) -> None:
        feature, window = self.feature, self.window
        rows = rows[rows[:, window.axis] <= self.high]
        key = (rows[:, window.axis] - np.uint32(window.low)).astype(np.uint64) * np.uint64(self.n_ids)
        of = rows[:, feature.id_column]
        key += self.rank[of] if len(self.rank) else of
        words = np.ones((len(rows), 2), dtype=np.int64)
        words[:, 1] = rows[:, feature.other] if feature.is_number else 0
        self._fresh.append((key, words))
        self._n_fresh += len(rows)
        if self._n_fresh > max(len(self._key), self.max_entries):
            self.close()

    def close(self) -> None:
        """Merge fresh entries with the others, and give up the last codes if there are too many."""
        key = np.concatenate([self._key, *(key for key, _ in self._fresh)])
        words = np.concatenate([self._words, *(words for _, words in self._fresh)])
        self._fresh, self._n_fresh = [], 0
        if len(key) == 0:
            return
        order = np.argsort(key, kind="stable")
        key = key[order]
        start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        self._key, self._words = key[start], np.add.reduceat(words[order], start, axis=0)
        if len(start) > self.max_entries:
            ids = np.uint64(self.n_ids)
            over = max(self._key[self.max_entries] // ids, self._key[0] // ids + np.uint64(1))
            n = int(np.searchsorted(self._key, over * ids))
            self._key, self._words = self._key[:n].copy(), self._words[:n].copy()
            self.high = min(self.high, self.window.low + int(over) - 1)

    def entries(self, code: Ints) -> Entries:
        """The entries of some codes."""
        ids = np.uint64(self.n_ids)
        ends = (code - self.window.low + 1).astype(np.uint64) * ids
        end = np.searchsorted(self._key, ends)
        first = int(np.searchsorted(self._key, ends[0] - ids)) if len(code) else 0
        here = slice(first, int(end[-1]) if len(code) else 0)
        of = (self._key[here] % ids).astype(np.int64)
        weight, total = np.ascontiguousarray(self._words[here].T)
        return Entries(end - first, of, weight, total)


CellSet = DenseCells | SparseCells


def bytes_per_code(feature: CellTarget, n_ids: int) -> int:
    """Bytes of a code in dense cells."""
    return n_ids * (12 if feature.is_number else 4)


# ---- gathering -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class GatherPlan:
    """What to gather of a node in one pass over its rows.

    windows       codes whose words are gathered, one window for each axis
    is_part       is there only one window, outside which some rows of the node lie?
    has_ranges    gather the least and the greatest code of each axis?
    has_totals    gather the words, and the ids of cells, of the node as a whole?
    histograms    for the requirement
    cells         for each window, what each target over cells needs
    stretches     rows of stretches of codes, to find the middle row
    keep          how many candidates of an axis are kept when they are compared
    """

    windows: Sequence[Window] = ()
    is_part: bool = False
    has_ranges: bool = False
    has_totals: bool = False
    histograms: Sequence[Histogram] = ()
    cells: Sequence[Sequence[CellSet]] = ()
    stretches: Stretches | None = None
    keep: int = 1

    @property
    def n_lines(self) -> int:
        """Lines of words, one for each code."""
        return sum(window.n_lines for window in self.windows)


class Collector:
    """Frequency sets of one node while they are gathered. Memory is taken with the first rows."""

    def __init__(self, criteria: SplitCriteria, layout: WordLayout, plan: GatherPlan) -> None:
        self.criteria, self.layout, self.plan = criteria, layout, plan
        windows = plan.windows
        self.histograms = {each.axis: each for each in plan.histograms}
        self.cells = dict(zip((window.axis for window in windows), plan.cells, strict=False))
        self.n_bytes = (
            plan.n_lines * layout.n_bytes
            + sum(each.n_bytes for each in plan.histograms)
            + (0 if plan.stretches is None else plan.stretches.n_bytes)
            + sum(each.n_bytes for sets in plan.cells for each in sets)
            + (sum(16 * feature.n_ids for feature in criteria.features) if plan.has_totals else 0)
        )
        self._listed = np.array([window.axis for window in windows], dtype=np.uint64)
        base = np.array([window.start - window.low for window in windows], dtype=np.int64)
        self._base = base.astype(np.uint64)
        self._lines: Lines | None = None
        self.totals = np.zeros(criteria.n_totals, dtype=np.int64)
        self.ids: list[Ints] = []  # (ids, 2) of each feature, see ``add_ids``
        self.low: Ints | None = None  # (axes,) least and greatest codes, if wanted
        self.high: Ints | None = None

    @property
    def lines(self) -> Lines:
        """The words of all windows, one after the other."""
        if self._lines is None:
            self._lines = np.zeros(self.plan.n_lines * self.layout.words, dtype=self.layout.dtype)
        return self._lines

    def lines_of(self, window: Window) -> Lines:
        """The words of one window."""
        words = self.layout.words
        return self.lines[window.start * words : (window.start + window.n_lines) * words]

    def add(self, rows: Codes) -> None:
        """Add some rows of the node: (n, columns) in C order."""
        if len(rows) == 0:
            return
        plan = self.plan
        if plan.has_ranges:
            self._add_ranges(rows)
        if plan.has_totals:
            self._add_totals(rows)
        if plan.stretches is not None:
            plan.stretches.add(rows)
        for histogram in self.histograms.values():
            histogram.add(rows)
        if plan.is_part:
            (window,) = plan.windows
            codes = rows[:, window.axis]
            rows = rows[(codes >= window.low) & (codes <= window.high)]
        if plan.windows and len(rows):
            self._add_lines(rows)
            for sets in self.cells.values():
                for cells in sets:
                    cells.add(rows)

    def close(self) -> None:
        """All rows of the node were added."""
        for histogram in self.histograms.values():
            histogram.close()
        for sets in self.cells.values():
            for cells in sets:
                cells.close()

    def _add_lines(self, rows: Codes) -> None:
        criteria, layout, lines = self.criteria, self.layout, self.lines
        label, number = criteria.targets.label, criteria.targets.number
        if layout.dtype is np.uint32:
            add_counts(rows, self._listed, self._base, lines)
        elif layout.shift:
            add_packed(rows, criteria.column, self._listed, self._base, layout.shift, lines)
        elif criteria.is_single:
            add_sums(rows, criteria.column, self._listed, self._base, lines)
        else:
            add_words(rows, layout.words, label, number, self._listed, self._base, lines)

    def _add_totals(self, rows: Codes) -> None:
        criteria = self.criteria
        label, number = criteria.targets.label, criteria.targets.number
        if criteria.has_targets:
            add_totals(rows, criteria.column, label, number, criteria.is_single, self.totals)
        if not self.ids:
            self.ids = [np.zeros((feature.n_ids, 2), dtype=np.int64) for feature in criteria.features]
        for feature, out in zip(criteria.features, self.ids, strict=True):
            add_ids(rows, feature.id_column, feature.other, feature.is_number, out)

    def _add_ranges(self, rows: Codes) -> None:
        low, high = np.empty((2, rows.shape[1]), dtype=np.int64)
        fill_ranges(rows, low, high)
        n_axes = self.criteria.n_axes
        self.low = low[:n_axes] if self.low is None else np.minimum(self.low, low[:n_axes])
        self.high = high[:n_axes] if self.high is None else np.maximum(self.high, high[:n_axes])
