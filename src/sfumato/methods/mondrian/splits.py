"""Choose the split of a node from frequency sets that are gathered block by block [LDR08, section 5.1].

A ``Splitter`` chooses for one node of the partition tree. It asks for frequency sets until it knows the split:

    while (collector := splitter.next(memory)) is not None:
        for rows in the blocks of the node:
            collector.add(rows)
        splitter.take(collector)
    splitter.result

The split is the one that the kernels choose where all rows of the node are in memory: the best by score, balance,
axis and threshold among those that are allowable. Usually one pass over the rows is enough. Where the sets do not
fit, a splitter takes several passes: some axes at a time, or some codes of one axis at a time, in ascending order.

Whether a split is allowable is found out in one of two ways. If what the requirement needs of every code fits in
memory, too, it is gathered in the same pass. If not, the best candidates by score are kept, and a further pass
gathers only the bins that end at their thresholds, until one of them is allowable.

**Why this module is long.** It has one class of some 600 lines, because all its steps change one state: what is known
of the codes (``low``, ``high``, ``cover``, ``is_exact``) and the search along each axis. The steps are: what to gather
next (``next``), what was gathered (``take``), thresholds, splits along hierarchies, selections, checks of candidates,
and the choice (``_decide``). The engine protocol will replace the conversation of ``next`` and ``take`` by one request;
until then the class stays whole rather than being cut where its state would have to be handed around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.feature_cells import CellWalk, NodeIds, number_ids
from sfumato.methods.mondrian.frequency_sets import (
    ENTRY,
    STRETCH,
    CellSet,
    Codes,
    Collector,
    DenseCells,
    GatherPlan,
    Histogram,
    Ints,
    Lines,
    SparseCells,
    SplitCriteria,
    Stretches,
    Window,
    bytes_per_bin,
    bytes_per_code,
    choose_layout,
    lay_out_windows,
)
from sfumato.methods.mondrian.kernels.choose import best_score, fill_word_scores, width_of
from sfumato.methods.mondrian.kernels.frequency import cover
from sfumato.methods.mondrian.kernels.problem import Queries
from sfumato.methods.mondrian.kernels.sets import (
    ends_of,
    fill_running,
    fill_whole,
    gain_of_node,
    score_of_parts,
)
from sfumato.methods.mondrian.node_range import NodeRange, QueryRegion

__all__ = ["Collector", "Split", "SplitCriteria", "Splitter", "divide_memory"]

Floats = NDArray[np.float64]
Key = tuple[float, int, int]

CHUNK = 1 << 18
"""Words that are walked in one go."""

EAGER, ALWAYS = 32, 1 << 20
"""Bytes per row, and in all, up to which what the requirement needs of every code is gathered in the first pass.

It is cheaper than to check some candidates in a pass of their own."""

FIRST_CHECK = 64
"""Candidates that are checked against the requirement at first; every further pass checks many times more."""

KEPT, MOST_KEPT = 24, 1 << 16
"""Bytes of a candidate that is kept (code, rows, score), and how many are kept of an axis at most."""

UNCHECKED = np.dtype(
    [("rank", np.int64), ("largest", np.int64), ("axis", np.int64), ("code", np.int64), ("n_bins", np.int64),
     ("score", np.float64), ("is_cut", np.bool_)],
)  # fmt: skip
"""A candidate that can be checked; ``is_cut``: of its axis, no candidate after this one is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The split of a node, and what is known of its children."""

    axis: int
    threshold: int  # ordered: the last code that goes left; tree: the hierarchy node that is specialized
    branches: list[int]  # 0 and 1, or the hierarchy nodes in use
    sizes: list[int]  # rows of each child
    edges: Ints  # the last code of each child but the last one
    ranges: list[NodeRange]  # of the children

    def places(self, codes: Codes) -> NDArray[np.intp]:
        """Which child each row goes to, by its codes of ``axis``."""
        return np.searchsorted(self.edges, codes, side="left")


class Phase(Enum):
    """What a split is wanted for."""

    QUERIES = "queries"
    SCORE = "score"
    MEDIAN = "median"


# ---- candidates ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class SplitCandidate:
    """A split that may be taken."""

    score: float
    largest: int
    axis: int
    edges: Ints
    sizes: Ints
    branches: list[int]
    n_checked: int = 0  # parts that are known to satisfy the requirement


@dataclass(slots=True, eq=False)
class BestThresholds:
    """The best thresholds of an axis that were not checked yet, best first."""

    code: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    score: Floats = field(default_factory=lambda: np.zeros(0))
    is_cut: bool = False  # were there more than these?
    floor: Key | None = None  # all up to here have failed: minus the score, rows of the largest part, code

    def add(self, code: Ints, rows: Ints, score: Floats, n_rows: int, keep: int) -> None:
        """Keep the best of these thresholds and of those before, ``keep`` of them at most."""
        largest = np.maximum(rows, n_rows - rows)
        if self.floor is not None:
            worse, least, last = -self.floor[0], self.floor[1], self.floor[2]
            is_tie = score == worse
            below = (score < worse) | (is_tie & ((largest > least) | ((largest == least) & (code > last))))
            code, rows, score = code[below], rows[below], score[below]
        code = np.concatenate([self.code, code])
        rows = np.concatenate([self.rows, rows])
        score = np.concatenate([self.score, score])
        order = np.lexsort((code, np.maximum(rows, n_rows - rows), -score))
        self.is_cut |= len(order) > keep
        order = order[:keep]
        self.code, self.rows, self.score = code[order], rows[order], score[order]

    def drop(self, n: int, n_rows: int) -> None:
        """Drop the first n, which have failed."""
        if n:
            rows = int(self.rows[n - 1])
            self.floor = -float(self.score[n - 1]), max(rows, n_rows - rows), int(self.code[n - 1])
            self.code, self.rows, self.score = self.code[n:], self.rows[n:], self.score[n:]


class MiddleStretch(NamedTuple):
    """A stretch of codes, low .. high, that holds the middle row of a node, and the rows before it."""

    low: int
    high: int
    rows_before: int


@dataclass(slots=True, eq=False)
class AxisSearch:
    """The search along one axis: how far its codes have been walked, and its best splits so far."""

    axis: int
    is_tree: bool
    left: Ints  # words of the codes walked
    next_code: int  # the first code that was not yet walked
    phases: frozenset[Phase] = frozenset(Phase)  # what the walk is for
    last_code: int = -1  # the last code walked that some row has
    is_part: bool = False  # are its codes walked in several passes?
    is_done: bool = False
    middle: MiddleStretch | None = None  # while the middle row is looked for in ever finer stretches
    best: dict[Phase, SplitCandidate] = field(default_factory=dict)  # known to be allowable
    waiting: dict[Phase, SplitCandidate] = field(default_factory=dict)  # tree: to be checked
    lists: dict[Phase, BestThresholds] = field(default_factory=dict)  # ordered: to be checked
    child: list[Ints] = field(default_factory=list)  # tree: which children of the cover are in use ...
    part: list[Ints] = field(default_factory=list)  # ... and running totals up to each
    cells: CellWalk | None = None

    def restart(self, phase: Phase, first_code: int) -> None:
        """Walk the codes once more: all thresholds that were kept have failed, and there are others."""
        self.left[:] = 0
        self.next_code, self.last_code = first_code, -1
        self.phases, self.is_part, self.is_done, self.cells = frozenset([phase]), False, False, None
        self.lists[phase].is_cut = False


# ---- splitters -------------------------------------------------------------------------------------


class Splitter:
    """Chooses the split of one node.

    result            the split, None for a leaf; known once ``next`` has returned None
    low, high, cover  (axes,) what is known of the codes by then, see ``NodeRange``
    """

    def __init__(self, criteria: SplitCriteria, known: NodeRange, n_rows: int) -> None:
        self.criteria, self.n_rows = criteria, n_rows
        self.low, self.high, self.cover = known.low.copy(), known.high.copy(), known.cover.copy()
        self.region = None if known.region is None else QueryRegion(*(ends.copy() for ends in known.region))
        self.result: Split | None = None
        self.is_decided = False
        self.layout = choose_layout(criteria, n_rows)
        self.node: Ints | None = None if criteria.has_targets else np.array([n_rows])
        self.ids: list[NodeIds] | None = None if criteria.features else []
        low, high = self.low, self.high
        self.is_exact = known.is_exact | (low == high)
        can_split = n_rows >= max(2 * criteria.rules.least_rows, 2)
        self.searches = {
            axis: AxisSearch(
                axis, bool(criteria.axes.is_tree[axis]), np.zeros(criteria.n_totals, np.int64), int(low[axis])
            )
            for axis in np.flatnonzero(criteria.axes.may_split & (low < high)).tolist()
            if can_split
        }
        self._active: Ints | None = None
        self._best: dict[Phase, SplitCandidate | None] = {}
        self._closed_phases: set[Phase] = set()
        self._n_checks = 0
        self._decide()

    @property
    def covers(self) -> Ints:
        """The lowest hierarchy node of each tree axis that covers the rows, -1 elsewhere; known once decided."""
        covers = np.full(self.criteria.n_axes, -1, dtype=np.int64)
        for axis in np.flatnonzero(self.criteria.axes.is_tree).tolist():
            covers[axis] = self._cover(axis)
        return covers

    def _cover(self, axis: int) -> int:
        known, low, high = int(self.cover[axis]), int(self.low[axis]), int(self.high[axis])
        return int(cover(self.criteria.grid, known, low, high))

    # -- what to gather ------------------------------------------------------------------------------

    def next(self, memory: int) -> Collector | None:
        """The next frequency sets to gather, in at most ``memory`` bytes; None if the split is known.

        Asked again before ``take``, it starts anew: a smaller share gives a smaller collector. A share that is
        too small for anything is exceeded by as little as can be.
        """
        if self.is_decided:
            return None
        if self.searches and not self._wants_ranges([]) and self._has_unchecked():
            return self._gather_for_check(memory)
        waiting = self._list_unwalked()
        if waiting and waiting[0].middle is not None:
            return self._gather_near_middle(waiting[0], memory)
        criteria, layout = self.criteria, self.layout
        spans = [(search.axis, search.next_code, int(self.high[search.axis])) for search in waiting]
        per_code = layout.n_bytes + self._cell_bytes()
        n_lines = sum(high - low + 1 for _, low, high in spans)
        if n_lines * per_code <= memory and not any(search.is_part for search in waiting):
            return self._gather_all(spans, memory - n_lines * per_code)
        is_unsure = self._is_median_only() and not self.is_exact[[search.axis for search in waiting]].all()
        if self._wants_ranges([]) or self.ids is None or is_unsure:
            return self._collect(GatherPlan(has_ranges=True, has_totals=True))
        room = max(1, memory // per_code)
        chosen: list[tuple[int, int, int]] = []
        for axis, low, high in spans:
            if sum(high - low + 1 for _, low, high in [*chosen, (axis, low, high)]) > room:
                break
            if self.searches[axis].is_part:
                break
            chosen.append((axis, low, high))
        keep = self._n_to_keep(memory)
        if chosen:
            windows = lay_out_windows(chosen)
            cells = [self._make_dense_cells(window) for window in windows]
            return self._collect(GatherPlan(windows, cells=cells, keep=keep))
        if self._is_median_only() and criteria.rules.count_only and not waiting[0].is_tree:
            return self._gather_near_middle(waiting[0], memory)
        return self._gather_slice(*spans[0], memory, room, keep)

    @property
    def wanted(self) -> int:
        """Bytes with which the next pass can gather all that is needed; with fewer, there are more passes."""
        if self.is_decided:
            return 0
        if self.searches and not self._wants_ranges([]) and self._has_unchecked():
            return self._bins_to_check() * bytes_per_bin(self.criteria)
        n_lines = sum(int(self.high[search.axis]) - search.next_code + 1 for search in self._list_unwalked())
        return n_lines * (self.layout.n_bytes + self._cell_bytes())

    def _list_unwalked(self) -> list[AxisSearch]:
        """The axes whose codes are still to be walked: those that were begun first, and for Median the widest."""
        waiting = [search for search in self.searches.values() if not search.is_done]
        if self._is_median_only() and self.is_exact[[search.axis for search in waiting]].all():
            waiting = [search for search in self._sort_by_width() if not search.is_done]
        return sorted(waiting, key=lambda search: not search.is_part)

    def _is_median_only(self) -> bool:
        """Is Median the only criterion? Then the widest axes may be all that matters."""
        return not self.criteria.is_scored and self.region is None

    def _gather_near_middle(self, search: AxisSearch, memory: int) -> Collector:
        """Look for the middle row of an axis too wide for ``memory``: count rows in ever finer stretches of codes."""
        low, high, _ = search.middle or (search.next_code, int(self.high[search.axis]), 0)
        by = ((high - low) // max(2, memory // STRETCH)).bit_length()
        return self._collect(GatherPlan(stretches=Stretches(search.axis, low, high, by)))

    def _gather_all(self, spans: Sequence[tuple[int, int, int]], room: int) -> Collector:
        """All codes of all axes; with what the requirement needs of them, if ``room`` bytes are enough for it."""
        windows = lay_out_windows(spans)
        criteria = self.criteria
        histograms: list[Histogram] = []
        if not criteria.rules.count_only:
            histograms = [
                Histogram(criteria, window.axis, window.n_lines, low=window.low) for window in windows
            ]
            n_bytes = sum(each.n_bytes for each in histograms)
            if n_bytes > min(room, max(EAGER * self.n_rows, ALWAYS)):
                histograms = []
        return self._collect(
            GatherPlan(
                windows,
                has_ranges=self._wants_ranges([window.axis for window in windows]),
                has_totals=self.ids is None,
                histograms=histograms,
                cells=[self._make_dense_cells(window) for window in windows],
                keep=self._n_to_keep(room),
            )
        )

    def _gather_slice(self, axis: int, low: int, high: int, memory: int, room: int, keep: int) -> Collector:
        """The next codes of one axis, as many as there is room for."""
        criteria, layout = self.criteria, self.layout
        n_ids = sum(ids.n_ids for ids in self.ids or ())
        if n_ids * (high - low + 1) <= 4 * self.n_rows or not criteria.features:
            windows = lay_out_windows([(axis, low, min(high, low + room - 1))])
            cells: list[list[CellSet]] = [self._make_dense_cells(windows[0])]
        else:
            n_codes = max(1, memory // 4 // layout.n_bytes)
            windows = lay_out_windows([(axis, low, min(high, low + n_codes - 1))])
            most = max(1, memory * 3 // 4 // (4 * ENTRY * len(criteria.features)))
            cells = [
                [SparseCells(ids.feature, windows[0], ids.rank, ids.n_ids, most) for ids in self.ids or ()]
            ]
        return self._collect(
            GatherPlan(windows, is_part=True, has_totals=self.node is None, cells=cells, keep=keep)
        )

    def _collect(self, plan: GatherPlan) -> Collector:
        return Collector(self.criteria, self.layout, plan)

    def _cell_bytes(self) -> int:
        """Bytes of a code with the ids of all cells."""
        if self.ids is None:
            return sum(bytes_per_code(feature, feature.n_ids) for feature in self.criteria.features)
        return sum(bytes_per_code(ids.feature, ids.n_ids) for ids in self.ids)

    def _make_dense_cells(self, window: Window) -> list[CellSet]:
        if self.ids is None:
            none = np.zeros(0, dtype=np.uint32)
            return [DenseCells(feature, window, none, feature.n_ids) for feature in self.criteria.features]
        return [DenseCells(ids.feature, window, ids.rank, ids.n_ids) for ids in self.ids]

    def _n_to_keep(self, memory: int) -> int:
        """How many candidates of an axis to keep for checks."""
        if self.criteria.rules.count_only:
            return 1
        return max(FIRST_CHECK, min(MOST_KEPT, memory // (16 * KEPT * max(1, len(self.searches)))))

    def _wants_ranges(self, expected: Sequence[int]) -> bool:
        """Are the ranges of some trees unknown, apart from those of axes that are ``expected`` to be gathered?"""
        unknown = self.criteria.axes.is_tree & ~self.is_exact
        unknown[np.array(expected, dtype=np.intp)] = False
        return bool(unknown.any())

    # -- what was gathered ---------------------------------------------------------------------------

    def take(self, collector: Collector) -> None:
        """Take what was gathered of all rows of the node, and decide if that is enough."""
        collector.close()
        plan = collector.plan
        if not plan.windows and collector.histograms:
            self._check_candidates(collector)
            self._decide()
            return
        if plan.stretches is not None:
            self._narrow(plan.stretches)
            self._decide()
            return
        if collector.low is not None and collector.high is not None:
            self._note_ranges(collector.low, collector.high)
        self._note_totals(collector)
        if not plan.is_part:
            for window in plan.windows:
                first, last = ends_of(collector.lines_of(window), self.layout.words)
                self.low[window.axis] = window.low + first
                self.high[window.axis] = window.low + last
                self.is_exact[window.axis] = True
        for window in plan.windows:
            search = self.searches[window.axis]
            search.is_part = plan.is_part
            self._walk(search, window, collector)
        self._decide()

    def _note_ranges(self, low: Ints, high: Ints) -> None:
        self.low[:], self.high[:] = low, high
        self.is_exact[:] = True
        for search in self.searches.values():
            search.next_code = max(search.next_code, int(low[search.axis]))
            search.is_done |= low[search.axis] == high[search.axis]

    def _note_totals(self, collector: Collector) -> None:
        windows = collector.plan.windows
        if self.node is None and collector.plan.has_totals:
            self.node = collector.totals
        elif self.node is None and windows:
            self.node = collector.totals
            lines = collector.lines_of(windows[0])
            fill_whole(lines, self.layout.words, self.layout.shift, self.node)
        if self.ids is None and collector.ids:
            is_raw = bool(windows)  # the sets have ids as they are
            features = zip(self.criteria.features, collector.ids, strict=True)
            self.ids = [number_ids(feature, totals, compact=not is_raw) for feature, totals in features]

    def _walk(self, search: AxisSearch, window: Window, collector: Collector) -> None:
        """Walk the codes of a window in ascending order, and compare the splits that they offer."""
        layout, criteria = self.layout, self.criteria
        lines, sets = collector.lines_of(window), collector.cells.get(window.axis, ())
        high = min([window.high, *(each.high for each in sets)])
        step = max(1, CHUNK // (criteria.n_totals + sum(ids.n_ids for ids in self.ids or ())))
        code = np.empty(step, dtype=np.int64)
        total = np.empty((criteria.n_totals, step), dtype=np.int64)
        n_lines = high - window.low + 1
        for start in range(0, n_lines, step):
            chunk: Lines = lines[start * layout.words : min(start + step, n_lines) * layout.words]
            before = int(search.left[0])
            m = fill_running(chunk, layout.words, layout.shift, window.low + start, search.left, code, total)
            if m:
                self._score_thresholds(search, before, code[:m].copy(), total[:, :m].copy(), sets, collector)
        search.next_code = high + 1
        if search.next_code > self.high[search.axis]:
            search.is_done = True
            self.high[search.axis] = search.last_code
            self.is_exact[search.axis] = True
            if search.is_tree:
                self._score_tree_split(search, window, collector)
            search.cells = None

    def _narrow(self, found: Stretches) -> None:
        """Look for the middle row in a finer stretch, or take the best threshold beside it."""
        search = self.searches[found.axis]
        before = 0 if search.middle is None else search.middle.rows_before
        up_to = before + np.cumsum(found.counts)
        at = int(np.searchsorted(up_to, (self.n_rows - 1) // 2, side="right"))
        if found.by > 0:
            low = found.low + (at << found.by)
            high = min(found.high, low + (1 << found.by) - 1)
            search.middle = MiddleStretch(low, high, int(up_to[at - 1]) if at else before)
            return
        code = np.flatnonzero(found.counts)
        thresholds, rows = np.append(found.last_below, found.low + code), np.append(before, up_to[code])
        least = self.criteria.rules.least_rows
        first, last = np.searchsorted(rows, [least, self.n_rows - least + 1]).tolist()
        nothing = self._collect(GatherPlan())
        score = np.zeros(max(0, last - first))
        self._compare(search, Phase.MEDIAN, thresholds[first:last], rows[first:last], score, nothing)
        search.middle, search.is_done = None, True

    def _score_thresholds(
        self,
        search: AxisSearch,
        before: int,
        code: Ints,
        total: Ints,
        sets: Sequence[CellSet],
        collector: Collector,
    ) -> None:
        """Compare the thresholds at some codes, given the words up to each; ``before`` them there are so many rows."""
        if search.last_code < 0:
            self.low[search.axis] = code[0]
        walked, search.last_code = search.last_code, int(code[-1])
        if sets and search.cells is None:
            search.cells = CellWalk(self.ids or (), self.criteria.table)
        entries = [each.entries(code) for each in sets]
        if search.is_tree:
            self._note_children(search, code, total)
            if search.cells is not None:
                search.cells.add_groups(entries, self._find_children(search.axis, code))
            return
        by_cells = None if search.cells is None else search.cells.score_thresholds(entries, len(code))
        for phase in self._phases():
            if phase not in search.phases:
                continue
            thresholds, rows = code, total[0]
            if phase is Phase.QUERIES:
                thresholds, rows = self._add_query_ends(search.axis, walked, before, code, total[0])
            least = self.criteria.rules.least_rows
            first, last = np.searchsorted(rows, [least, self.n_rows - least + 1]).tolist()
            if first >= last:
                continue
            score = np.zeros(last - first)
            if phase is Phase.QUERIES:
                score = self._score_for_queries(search.axis, thresholds[first:last], rows[first:last])
            elif phase is Phase.SCORE and by_cells is not None:
                score = by_cells[first:last]
            elif phase is Phase.SCORE:
                self._fill_scores(total[:, first:last], score)
            self._compare(search, phase, thresholds[first:last], rows[first:last], score, collector)

    def _compare(
        self, search: AxisSearch, phase: Phase, code: Ints, rows: Ints, score: Floats, collector: Collector
    ) -> None:
        """Compare some thresholds that leave enough rows on both sides."""
        if phase is Phase.QUERIES:
            is_better = score > self._score_of_no_split()
            code, rows, score = code[is_better], rows[is_better], score[is_better]
        if len(code) == 0:
            return
        histogram = collector.histograms.get(search.axis)
        if self.criteria.rules.count_only:
            t = int(best_score(rows, self.n_rows, score, 0))
        elif histogram is None:
            search.lists.setdefault(phase, BestThresholds()).add(
                code, rows, score, self.n_rows, collector.plan.keep
            )
            return
        else:
            order = np.lexsort((code, np.maximum(rows, self.n_rows - rows), -score))
            first = self.criteria.first_allowable(
                code[order] - histogram.low, rows[order], self.n_rows, histogram
            )
            if first < 0:
                return
            t = int(order[first])
        self._propose(
            search, phase, self._make_candidate(search.axis, int(code[t]), int(rows[t]), float(score[t]))
        )

    def _make_candidate(self, axis: int, code: int, rows: int, score: float) -> SplitCandidate:
        sizes = np.array([rows, self.n_rows - rows])
        return SplitCandidate(score, int(sizes.max()), axis, np.array([code]), sizes, [0, 1])

    def _propose(self, search: AxisSearch, phase: Phase, candidate: SplitCandidate) -> None:
        """Note an allowable candidate if it is the best of its axis so far; they come by ascending codes."""
        best = search.best.get(phase)
        if best is None or (-candidate.score, candidate.largest) < (-best.score, best.largest):
            search.best[phase] = candidate

    def _fill_scores(self, total: Ints, out: Floats) -> None:
        criteria = self.criteria
        words: Ints = np.ascontiguousarray(total)
        fill_word_scores(words, self.node, 0, len(out), criteria.targets, criteria.table, out)

    # -- trees ---------------------------------------------------------------------------------------

    def _child_nodes(self, node: int) -> Ints:
        axes = self.criteria.axes
        start = axes.child_start[node]
        return axes.child[start : start + axes.n_children[node]]

    def _find_children(self, axis: int, code: Ints) -> Ints:
        """Which child of the cover each code belongs to."""
        low = self.criteria.axes.node_low[self._child_nodes(self._cover(axis))]
        return np.searchsorted(low, code, side="right") - 1

    def _note_children(self, search: AxisSearch, code: Ints, total: Ints) -> None:
        """Note the words up to the last code of each child of the cover."""
        child = self._find_children(search.axis, code)
        is_last = np.append(child[1:] != child[:-1], True)
        if search.child and search.child[-1][-1] == child[0]:  # it goes on
            search.child[-1], search.part[-1] = search.child[-1][:-1], search.part[-1][:, :-1]
        search.child.append(child[is_last])
        search.part.append(total[:, is_last])

    def _score_tree_split(self, search: AxisSearch, window: Window, collector: Collector) -> None:
        """Compare the split into the children of the cover."""
        criteria = self.criteria
        child = np.concatenate(search.child)
        up_to = np.concatenate(search.part, axis=1).T
        parts: Ints = np.ascontiguousarray(up_to)
        parts[1:] -= up_to[:-1]
        search.child, search.part = [], []
        sizes = parts[:, 0].copy()
        if len(child) < 2 or sizes.min() < criteria.rules.least_rows:
            return
        branches = self._child_nodes(self._cover(search.axis))[child]
        last = criteria.axes.node_high[branches] - 1
        histogram = collector.histograms.get(search.axis)
        if histogram is not None:
            place = np.append(-1, np.minimum(last, window.high) - window.low)
            if not criteria.parts_hold(place, sizes, histogram):
                return
        for phase in self._phases():
            score = 0.0
            if phase is Phase.QUERIES:
                score = self._score_children_for_queries(search.axis, branches, sizes)
                if score <= self._score_of_no_split():
                    continue
            elif phase is Phase.SCORE and search.cells is not None:
                score = search.cells.score_of_groups()
            elif phase is Phase.SCORE:
                score = float(
                    score_of_parts(parts, self.node, criteria.targets, criteria.is_single, criteria.table)
                )
            candidate = SplitCandidate(
                score, int(sizes.max()), search.axis, last[:-1], sizes, branches.tolist()
            )
            if histogram is not None or criteria.rules.count_only:
                search.best[phase] = candidate
            else:
                search.waiting[phase] = candidate

    # -- selections ----------------------------------------------------------------------------------

    def _queries(self) -> Queries:
        assert self.criteria.queries is not None
        return self.criteria.queries

    def _active_queries(self) -> Ints:
        """The queries that overlap the region of the node; on a tree the region is the range of the cover."""
        if self._active is None:
            assert self.region is not None
            axes, queries = self.criteria.axes, self._queries()
            for axis in np.flatnonzero(axes.is_tree).tolist():
                cover = self._cover(axis)
                self.region.after[axis] = axes.node_low[cover] - 1
                self.region.last[axis] = axes.node_high[cover] - 1
            overlaps = (queries.high > self.region.after) & (queries.low <= self.region.last)
            self._active = np.flatnonzero(overlaps.all(axis=1))
        return self._active

    def _score_of_no_split(self) -> float:
        """Minus the cost of the queries if the node is not split."""
        return -float(self.n_rows * int(self._queries().weight[self._active_queries()].sum()))

    def _weigh_queries(self, axis: int, up_to: Ints, beyond: Ints) -> tuple[Ints, Ints]:
        """The weight of the active queries that begin at ``up_to`` or before, and that end at ``beyond`` or after."""
        queries, active = self._queries(), self._active_queries()
        weight = queries.weight[active]

        def below(ends: Ints, limit: Ints) -> Ints:
            order = np.argsort(ends)
            running = np.append(0, np.cumsum(weight[order]))
            return np.asarray(running[np.searchsorted(ends[order], limit, side="left")])

        return (
            below(queries.low[active, axis], up_to + 1),
            int(weight.sum()) - below(queries.high[active, axis], beyond),
        )

    def _score_for_queries(self, axis: int, code: Ints, rows: Ints) -> Floats:
        """Minus the cost of each threshold, see ``fill_costs``."""
        left, right = self._weigh_queries(axis, code, code + 1)
        return -(rows * left + (self.n_rows - rows) * right).astype(np.float64)

    def _score_children_for_queries(self, axis: int, branches: Ints, sizes: Ints) -> float:
        """Minus the cost of the split into these children."""
        low, last = self.criteria.axes.node_low[branches], self.criteria.axes.node_high[branches] - 1
        begun, not_ended = self._weigh_queries(axis, last, low)
        every = int(self._queries().weight[self._active_queries()].sum())
        return -float((sizes * (begun + not_ended - every)).sum())

    def _add_query_ends(
        self, axis: int, walked: int, before: int, code: Ints, rows: Ints
    ) -> tuple[Ints, Ints]:
        """The codes, and the ends of active queries between them, each with the rows up to there.

        Ends up to the code that was ``walked`` last, with the rows ``before``, were taken earlier.
        """
        ends = np.unique(self._queries().high[self._active_queries(), axis])
        thresholds = np.union1d(code, ends[(ends > walked) & (ends < code[-1])])
        return thresholds, np.append(before, rows)[np.searchsorted(code, thresholds, side="right")]

    # -- checks of candidates -------------------------------------------------------------------------

    def _order_unchecked(self, phase: Phase) -> tuple[Ints, Ints]:
        """Candidates that can be checked, best first: the axis of each, and the bins that its check takes.

        Once all candidates that were kept of an axis are listed, though it has more, what comes next is not known.
        """
        ranks = {search.axis: i for i, search in enumerate(self._sort_by_width())}
        found = [np.zeros(0, dtype=UNCHECKED)]
        for search in self._list_comparable():
            if phase in search.waiting:
                tree = search.waiting[phase]
                own = np.zeros(1, dtype=UNCHECKED)
                own["largest"], own["score"] = tree.largest, tree.score
                own["n_bins"] = len(tree.sizes) - tree.n_checked + 1
            elif phase in search.lists:
                listed = search.lists[phase]
                own = np.zeros(len(listed.code), dtype=UNCHECKED)
                own["largest"] = np.maximum(listed.rows, self.n_rows - listed.rows)
                own["code"], own["score"], own["n_bins"] = listed.code, listed.score, 1
                own["is_cut"][-1:] = listed.is_cut
            else:
                continue
            own["axis"], own["rank"] = search.axis, ranks[search.axis] if phase is Phase.MEDIAN else 0
            found.append(own)
        table = np.concatenate(found)
        keys = (table["code"], table["axis"], table["largest"], -table["score"], table["rank"])
        table = table[np.lexsort(keys)]
        stops = np.flatnonzero(table["is_cut"])
        table = table[: stops[0] + 1] if len(stops) else table
        return table["axis"], table["n_bins"]

    def _sort_by_width(self) -> list[AxisSearch]:
        """Widest first."""
        return sorted(self.searches.values(), key=lambda search: (-self._width(search.axis), search.axis))

    def _gather_for_check(self, memory: int) -> Collector:
        """What the requirement must know of the next candidates."""
        criteria = self.criteria
        phase = self._open_phase()
        axis, cost = self._order_unchecked(phase)
        room = min(max(2, memory // bytes_per_bin(criteria)), self._bins_to_check())
        is_new = np.zeros(len(axis), dtype=np.int64)
        is_new[np.unique(axis, return_index=True)[1]] = 1  # every axis has one more bin than edges
        n = max(1, int(np.searchsorted(np.cumsum(cost + is_new), room, side="right")))
        histograms = []
        for a, n_here in zip(*np.unique(axis[:n], return_counts=True), strict=True):
            search = self.searches[int(a)]
            edges = (
                self._part_edges(search.waiting[phase], room)
                if search.is_tree
                else np.sort(search.lists[phase].code[:n_here])
            )
            histograms.append(Histogram(criteria, search.axis, len(edges) + 1, edges=edges))
        return self._collect(GatherPlan(histograms=histograms))

    def _bins_to_check(self) -> int:
        """How many bins to gather for the next check."""
        n_open = sum(
            len(search.lists[phase].code) for search in self._list_comparable() for phase in search.lists
        ) + sum(len(tree.sizes) for search in self._list_comparable() for tree in search.waiting.values())
        return min(FIRST_CHECK << 6 * min(self._n_checks, 6), n_open + 2 * len(self.searches))

    def _part_edges(self, tree: SplitCandidate, room: int) -> Ints:
        """Where the next parts of a tree that were not yet checked begin and end, as many as there is room for."""
        first = tree.n_checked
        last = min(len(tree.sizes), first + room)
        high = self.criteria.axes.node_high[np.array(tree.branches[first:last])] - 1
        return np.append(self.criteria.axes.node_low[tree.branches[first]] - 1, high)

    def _check_candidates(self, collector: Collector) -> None:
        """Find the first allowable one of the candidates that bins were gathered for."""
        phase = self._open_phase()
        self._n_checks += 1
        found = False
        for axis, histogram in collector.histograms.items():
            search = self.searches[axis]
            if search.is_tree:
                tree = search.waiting[phase]
                n_parts = len(histogram.edges) - 1
                sizes = tree.sizes[tree.n_checked : tree.n_checked + n_parts]
                if not self.criteria.parts_hold(np.arange(n_parts + 1), sizes, histogram):
                    del search.waiting[phase]
                    continue
                tree.n_checked += n_parts
                if tree.n_checked == len(tree.sizes):
                    search.best[phase] = tree
                    found = True
                continue
            listed, n = search.lists[phase], len(histogram.edges)
            at = np.searchsorted(histogram.edges, listed.code[:n])
            t = self.criteria.first_allowable(at, listed.rows[:n], self.n_rows, histogram)
            if t < 0:
                listed.drop(n, self.n_rows)
                continue
            search.best[phase] = self._make_candidate(
                axis, int(listed.code[t]), int(listed.rows[t]), float(listed.score[t])
            )
            found = True
        if found:
            self._best[phase] = self._find_best(phase)

    # -- the choice ----------------------------------------------------------------------------------

    def _phases(self) -> Iterator[Phase]:
        """What splits are wanted for, in the order in which they are tried."""
        if self.region is not None and len(self._active_queries()):
            yield Phase.QUERIES
        if self.criteria.is_scored:
            yield Phase.SCORE
        if not self.criteria.is_scored or self.criteria.targets.median_below_gain > 0.0:
            yield Phase.MEDIAN

    def _open_phase(self) -> Phase:
        """What a split is wanted for now: the first phase that has not been tried in vain."""
        return next(phase for phase in self._phases() if phase not in self._closed_phases)

    def _decide(self) -> None:
        """Choose the split, if enough is known."""
        if self._wants_ranges([]):
            return
        self.is_decided = not self.searches
        while not self.is_decided and self._list_comparable():
            phase = self._open_phase()
            if not self._is_known(phase):
                return
            best = self._best.setdefault(phase, self._find_best(phase))
            is_last = phase is Phase.MEDIAN or (
                phase is Phase.SCORE and (best is None or not self._is_left_to_median(best))
            )
            if best is not None and (is_last or phase is Phase.QUERIES):
                self._split(best, stays=phase is Phase.QUERIES)
                is_last = True
            self._closed_phases.add(phase)
            self.is_decided = is_last

    def _list_comparable(self) -> list[AxisSearch]:
        """The axes that can be compared: all, as soon as all are walked; or the widest for Median."""
        searches = list(self.searches.values())
        if all(search.is_done for search in searches):
            return searches
        if self._is_median_only() and self.is_exact[list(self.searches)].all():
            return list(takewhile(lambda search: search.is_done, self._sort_by_width()))
        return []

    def _has_unchecked(self) -> bool:
        """Are there candidates to be checked?"""
        if self.criteria.rules.count_only or not self._list_comparable():
            return False
        phase = self._open_phase()
        return any(
            phase in search.waiting or (phase in search.lists and len(search.lists[phase].code) > 0)
            for search in self._list_comparable()
        )

    def _is_known(self, phase: Phase) -> bool:
        """Is the best allowable candidate known, or that there is none?"""
        ready = self._list_comparable()
        if phase in self._best:
            return True
        is_found = any(phase in search.best for search in ready)
        if self.criteria.rules.count_only or not any(search.lists or search.waiting for search in ready):
            return is_found or len(ready) == len(self.searches)
        for search in ready:
            listed = search.lists.get(phase)
            if listed is not None and listed.is_cut and len(listed.code) == 0:
                search.restart(phase, int(self.low[search.axis]))
        return not self._has_unchecked() and len(self._list_comparable()) == len(self.searches)

    def _find_best(self, phase: Phase) -> SplitCandidate | None:
        """The best candidate that is known to be allowable."""
        found = [search.best[phase] for search in self._sort_by_width() if phase in search.best]
        if phase is not Phase.MEDIAN:
            found.sort(key=lambda candidate: (-candidate.score, candidate.largest, candidate.axis))
        return found[0] if found else None

    def _width(self, axis: int) -> float:
        low, high = int(self.low[axis]), int(self.high[axis])
        known = self._cover(axis) if self.criteria.axes.is_tree[axis] else 0
        return float(width_of(self.criteria.grid, axis, low, high, known))

    def _is_left_to_median(self, best: SplitCandidate) -> bool:
        """Does it gain less than the limit below which Median splits? Never if there is no such limit."""
        limit = self.criteria.targets.median_below_gain
        return limit > 0.0 and self._gain(best) < limit

    def _gain(self, best: SplitCandidate) -> float:
        criteria = self.criteria
        if not criteria.features:
            return float(gain_of_node(self.node, self.n_rows, criteria.targets, criteria.table, best.score))
        gain = best.score
        for ids in self.ids or ():
            gain -= ids.feature.weight * ids.score_unsplit(criteria.table)
        return gain * criteria.targets.gain_scale / self.n_rows

    def _split(self, best: SplitCandidate, *, stays: bool) -> None:
        axes, axis = self.criteria.axes, best.axis
        is_tree = bool(axes.is_tree[axis])
        region = self.region if stays else None
        here = NodeRange(self.low, self.high, self.cover, self.is_exact, region)
        threshold = self._cover(axis) if is_tree else int(best.edges[0])
        ranges = [here.child(axes, axis, threshold, branch) for branch in best.branches]
        self.result = Split(axis, threshold, best.branches, best.sizes.tolist(), best.edges, ranges)


def divide_memory(splitters: Sequence[Splitter], memory: int) -> list[int]:
    """The bytes that each splitter may take in one pass: what it wants, and an equal part of what is left.

    If there is too little for all, each gets the same share of what it wants.
    """
    wanted = [splitter.wanted for splitter in splitters]
    left = memory - sum(wanted)
    if left < 0:
        return [each * memory // sum(wanted) for each in wanted]
    return [each + left // len(splitters) for each in wanted]
