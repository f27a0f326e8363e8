"""What the split of a node is chosen from: counts over its rows, which may be added up anywhere and in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counts import Counts
from sfumato.engines.protocol import UNLIMITED, Block
from sfumato.kernels.information import information_table
from sfumato.methods.mondrian.covers import CodeEnds
from sfumato.methods.mondrian.kernels.cells import Entries
from sfumato.methods.mondrian.kernels.frequency import (
    add_counts,
    add_packed,
    add_sums,
    add_words,
    single_packing,
)
from sfumato.methods.mondrian.kernels.problem import Cells, pack_axes, work_of
from sfumato.methods.mondrian.kernels.statistics import Bins
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.people_counts import PeopleAsker
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.statistics import GroupStatistics, count_type
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Lines = NDArray[Any]

TABLE = 1 << 20
"""Rows up to which logarithms are kept in a table; others are computed when they are needed."""

STRETCH = 1 << 17
"""Lines of words, or entries, that are looked at in one go."""

EAGER, ALWAYS = 32, 1 << 20
"""Bytes per row, and in all, up to which what the requirement needs of every code is gathered with the rest.

It is cheaper than to check some candidates in a pass of their own."""


class SplitCriteria:
    """How splits are compared, and which are allowable: prepared once for all nodes of a tree."""

    def __init__(self, problem: SplitProblem) -> None:
        self._problem = problem
        axes, targets = problem.axes, problem.targets
        self.axes, self.targets, self.rules, self.queries = axes, targets, problem.rules, problem.queries
        self.loss, self.greatest = problem.loss, problem.greatest
        self.grid = pack_axes(axes)
        self.n_axes = len(axes.root)
        self.features = () if problem.cells is None else list_cell_targets(problem.cells)
        self.is_scored = targets is not None
        self.n_words = 1 if targets is None or self.features else targets.n_words
        """Words that sum up a code or a node, see ``kernels.frequency``."""
        has_labels = targets is not None and len(targets.label)
        has_labels = has_labels or any(not feature.is_number for feature in self.features)
        needs_table = has_labels or problem.loss is not None
        self.table = information_table(TABLE) if needs_table else np.zeros(1, dtype=np.int64)
        self.score_type, self.lowest = problem.score_type, problem.lowest
        single = None if targets is None else targets.label if len(targets.label) else targets.number
        self.column = int(single[0].column) if single is not None and self.n_words == 2 else 0
        sensitive = problem.rules.sensitive
        self.values = np.zeros(0 if sensitive is None else sensitive.n_values, dtype=np.int64)
        self.work = work_of(sensitive)

    def __reduce__(self) -> tuple[Any, ...]:
        """Elsewhere it is prepared again: that is quicker than to send the table of logarithms."""
        return SplitCriteria, (self._problem,)

    def people(self, n_rows: int, most_people: int = 0) -> PeopleAsker | None:
        """Who asks for people in parts of a node of so many rows; None if groups count rows."""
        sensitive = self.rules.sensitive
        if sensitive is None or sensitive.people is None:
            return None
        return PeopleAsker(self.rules, self.greatest, n_rows, most_people)

    def whole(self, n_codes: Sequence[int]) -> NodeRange:
        """The range of the root: each axis has so many codes, from 0 on."""
        whole = NodeRange.of_root(self.axes, n_codes, has_queries=self.queries is not None)
        return whole if self.loss is None else replace(whole, low=self.axes.least_code.copy())


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
            CellTarget(False, int(t.value), int(t.cell), t.weight.item(), 1.0, cells.n_ids)
            for t in cells.label
        ),
        *(
            CellTarget(True, int(t.cell), int(t.value), t.weight.item(), float(t.scale), cells.n_ids)
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
    if criteria.n_words == 1:
        return WordLayout(1, 0, count_type(n_rows))
    assert criteria.targets is not None
    shift = int(single_packing(n_rows, criteria.targets)) if criteria.n_words == 2 else 0
    return WordLayout(1 if shift else criteria.n_words, shift, np.int64)


class Stretch(NamedTuple):
    """Some codes of an axis that occur, ascending, with the words of each."""

    code: Ints
    words: Ints  # (codes, words)


@dataclass(frozen=True, slots=True, eq=False)
class CountPlan:
    """What to gather of a node: words, and what else is needed, by code of each axis that may be split."""

    criteria: SplitCriteria
    known: NodeRange
    n_rows: int
    axes: tuple[int, ...]
    wants_ranges: bool
    """Gather the least and the greatest code of each axis, too? Those of the ``axes`` are known from their counts.

    They are gathered in any case where counts are sorted, since walking these is dear."""

    @property
    def n_bytes(self) -> int:
        """Memory with which all counts are held as tables; with less, some of them are sorted runs."""
        return sum(self.axis_bytes(axis) for axis in self.axes)

    def axis_bytes(self, axis: int) -> int:
        """Memory of the counts of one axis as tables."""
        criteria = self.criteria
        per_code = choose_layout(criteria, self.n_rows).n_bytes + sum(
            16 * each.n_ids for each in criteria.features
        )
        return self.n_codes(axis) * per_code

    def n_codes(self, axis: int) -> int:
        return int(self.known.high[axis] - self.known.low[axis]) + 1

    def new(self, room: int, spill: Spill | None) -> NodeCounts:
        """Counts of no row yet, in about ``room`` bytes of memory."""
        return NodeCounts(self, room, spill)

    def answer(self, state: NodeCounts) -> NodeCounts:
        """The counts themselves."""
        return state


class NodeCounts:
    """Counts of one node. Memory is taken with the first rows.

    Axes whose tables fit in memory share one array of lines, so that kernels count all of them in one go. The others
    are counted by sorting, see ``Counts``.
    """

    def __init__(self, plan: CountPlan, room: int, spill: Spill | None) -> None:
        self.plan, self.criteria = plan, plan.criteria
        self.layout = choose_layout(plan.criteria, plan.n_rows)
        by_size = sorted(plan.axes, key=plan.axis_bytes)
        limit = room if plan.n_bytes <= room else room // 2
        n_dense = int(
            np.searchsorted(np.cumsum([plan.axis_bytes(axis) for axis in by_size]), limit, side="right")
        )
        dense, sorted_axes = by_size[:n_dense], by_size[n_dense:]
        self.n_bytes = sum(plan.axis_bytes(axis) for axis in dense)
        share = (room - self.n_bytes) // max(1, len(sorted_axes))
        self.start: dict[int, int] = {}
        """The first line of each axis that has a table."""
        n_lines = 0
        for axis in dense:
            self.start[axis] = n_lines
            n_lines += plan.n_codes(axis)
        self._n_lines = n_lines
        self._lines: Lines | None = None
        self._listed = np.array(dense, dtype=np.uint64)
        base = np.array([self.start[axis] - int(plan.known.low[axis]) for axis in dense], dtype=np.int64)
        self._base = base.astype(np.uint64)
        share //= 1 + len(self.criteria.features)
        self.sorted = {
            axis: Counts.new(plan.n_codes(axis), n_words=self.criteria.n_words, room=share, spill=spill)
            for axis in sorted_axes
        }
        self.features = {
            axis: [
                Counts.new(
                    plan.n_codes(axis) * feature.n_ids,
                    n_words=2,
                    room=UNLIMITED if axis in self.start else share,
                    spill=spill,
                )
                for feature in self.criteria.features
            ]
            for axis in plan.axes
        }
        self.code_ends = CodeEnds(self.criteria.n_axes) if plan.wants_ranges or self.sorted else None
        self.statistics = self._make_statistics(room - self.n_bytes)
        self._bins: dict[int, Bins] = {}

    def _make_statistics(self, room: int) -> dict[int, GroupStatistics]:
        """What the requirement needs of every code, if that is little; None of it if not."""
        plan, rules = self.plan, self.criteria.rules
        if rules.sensitive is None or rules.sensitive.people is not None or self.sorted:
            return {}  # people of codes do not add up
        n_bytes = sum(map(plan.n_codes, plan.axes)) * GroupStatistics.bytes_per_group(rules)
        if n_bytes > min(room, max(EAGER * plan.n_rows, ALWAYS)):
            return {}
        self.n_bytes += n_bytes
        return {axis: GroupStatistics(plan.n_codes(axis), rules) for axis in plan.axes}

    @property
    def lines(self) -> Lines:
        """The words of all axes that have a table, one after the other."""
        if self._lines is None:
            self._lines = np.zeros(self._n_lines * self.layout.words, dtype=self.layout.dtype)
        return self._lines

    # -- adding up -----------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        """Add some rows of the node."""
        rows = block.rows
        if len(rows) == 0:
            return
        if self.code_ends is not None:
            self.code_ends.add(block)
        if self.start:
            self._add_lines(rows)
        place = {axis: self._places(rows, axis) for axis in self._counted}
        words = self._words_of(rows) if self.sorted else None
        for axis, counts in self.sorted.items():
            counts.add(place[axis], words)
        for f, feature in enumerate(self.criteria.features):
            of = rows[:, feature.id_column]
            both = np.stack([np.ones(len(rows), dtype=np.int64), rows[:, feature.other]], axis=1)
            for axis, each in self.features.items():
                each[f].add(place[axis] * np.uint64(feature.n_ids) + of, both)
        for axis, statistics in self.statistics.items():
            statistics.add(rows, place[axis])

    def merge(self, other: NodeCounts) -> None:
        """Add the counts of other rows of the node; both were made by the same plan in the same room."""
        if self.code_ends is not None and other.code_ends is not None:
            self.code_ends.merge(other.code_ends)
        self.lines[:] += other.lines
        for axis, counts in self.sorted.items():
            counts.merge(other.sorted[axis])
        for axis, each in self.features.items():
            for own, others in zip(each, other.features[axis], strict=True):
                own.merge(others)
        for axis, statistics in self.statistics.items():
            statistics.merge(other.statistics[axis])

    @property
    def can_subtract(self) -> bool:
        """Are counts of a child those of the node less its other children's? Ends of codes and sorted runs are not."""
        return not (self.sorted or self.criteria.features or self.statistics or self.code_ends is not None)

    def subtract(self, other: NodeCounts) -> None:
        """Take away the counts of some rows of the node, which were gathered by the same plan."""
        self.lines[:] -= other.lines

    def discard(self) -> None:
        """Nobody will look at these counts again."""
        for counts in (*self.sorted.values(), *(one for each in self.features.values() for one in each)):
            counts.discard()

    @property
    def _counted(self) -> Sequence[int]:
        """The axes that are counted row by row, not all of them in one go."""
        return self.plan.axes if self.criteria.features or self.statistics else [*self.sorted]

    def _places(self, rows: Codes, axis: int) -> NDArray[np.uint64]:
        """Where the code of each row stands on an axis."""
        return rows[:, axis].astype(np.uint64) - np.uint64(self.plan.known.low[axis])

    def _add_lines(self, rows: Codes) -> None:
        criteria, layout, lines = self.criteria, self.layout, self.lines
        if criteria.n_words == 1:
            add_counts(rows, self._listed, self._base, lines)
        elif layout.shift:
            add_packed(rows, criteria.column, self._listed, self._base, layout.shift, lines)
        elif criteria.n_words == 2:
            add_sums(rows, criteria.column, self._listed, self._base, lines)
        else:
            assert criteria.targets is not None
            label, number = criteria.targets.label, criteria.targets.number
            add_words(rows, layout.words, label, number, self._listed, self._base, lines)

    def _words_of(self, rows: Codes) -> Ints | None:
        """(rows, words) of each row for itself; None if only rows are counted."""
        criteria = self.criteria
        if criteria.n_words == 1:
            return None
        words = np.zeros((len(rows), criteria.n_words), dtype=np.int64)
        words[:, 0] = 1
        if criteria.n_words == 2:
            words[:, 1] = rows[:, criteria.column]
            return words
        assert criteria.targets is not None
        word = 1
        for label in criteria.targets.label:
            words[np.arange(len(rows)), word + rows[:, label.column].astype(np.int64)] = 1
            word += label.n_classes
        for number in criteria.targets.number:
            words[:, word] = rows[:, number.column]
            word += 1
        return words

    # -- walking -------------------------------------------------------------------------------------

    def stretches(self, axis: int) -> Iterator[Stretch]:
        """The codes of an axis that occur, in ascending order, some at a time."""
        low = int(self.plan.known.low[axis])
        per_code = self.criteria.n_words + sum(feature.n_ids for feature in self.criteria.features)
        step = max(1, STRETCH // per_code)
        if axis in self.sorted:
            for keys, words in self.sorted[axis].chunks():
                for at in range(0, len(keys), step):
                    yield Stretch(low + keys[at : at + step].astype(np.int64), words[at : at + step])
            return
        start, end = self.start[axis], self.start[axis] + self.plan.n_codes(axis)
        lines = self.lines.reshape(-1, self.layout.words)
        for first in range(start, end, step):
            part = lines[first : min(first + step, end)]
            used = np.flatnonzero(part[:, 0])
            if len(used):
                yield Stretch(low + first - start + used, self._unpack(part[used]))

    def _unpack(self, lines: Lines) -> Ints:
        """(codes, words) as they are compared."""
        shift = self.layout.shift
        if not shift:
            return lines.astype(np.int64)
        packed = lines[:, 0]
        return np.stack([packed >> shift, packed & ((1 << shift) - 1)], axis=1)

    def ends(self, axis: int) -> tuple[int, int]:
        """The least and the greatest code that occur on an axis."""
        first, last = -1, -1
        for stretch in self.stretches(axis):
            first = int(stretch.code[0]) if first < 0 else first
            last = int(stretch.code[-1])
        return first, last

    def totals(self) -> Ints:
        """The words of the node."""
        total = np.zeros(self.criteria.n_words, dtype=np.int64)
        axis = next((axis for axis in self.plan.axes if axis in self.start), self.plan.axes[0])
        for stretch in self.stretches(axis):
            total += stretch.words.sum(axis=0)
        return total

    def rows_up_to(self, axis: int, code: int) -> int:
        """How many rows of the node have at most this code."""
        n = 0
        for stretch in self.stretches(axis):
            at = np.searchsorted(stretch.code, code, side="right")
            n += int(stretch.words[:at, 0].sum())
        return n

    def entries(self, axis: int, feature: int, first: int, last: int) -> Iterator[tuple[Ints, Entries]]:
        """Rows by code and id of one target over cells, of the codes [first, last): the code of each entry, and they."""
        target, low = self.criteria.features[feature], int(self.plan.known.low[axis])
        ids = target.n_ids
        counts = self.features[axis][feature]
        for keys, words in counts.chunks((first - low) * ids, (last - low) * ids, together=ids):
            key = keys.astype(np.int64)
            weight, total = np.ascontiguousarray(words.T)
            of = key % ids
            cell = of if target.is_number else total // weight
            yield low + key // ids, Entries(of, cell, weight, total)

    def bins(self, axis: int) -> Bins | None:
        """Running totals of what the requirement needs, by code; None if that was not gathered."""
        if axis in self.statistics and axis not in self._bins:
            known = self.plan.known
            self._bins[axis] = self.statistics[axis].as_bins(np.arange(known.low[axis], known.high[axis]))
        return self._bins.get(axis)
