"""Which split? Decided from frequency sets, gathered block by block [LDR08, section 5.1].

A ``Decision`` is about one node of the partition tree. It asks for frequency sets until it knows the split:

    while (collector := decision.next(memory)) is not None:
        for rows in the blocks of the node:
            collector.add(rows)
        decision.take(collector)
    decision.result

The split is the one that the kernels choose where all rows of the node are in memory. Usually one pass over
the rows is enough. Where the sets do not fit, a decision takes several: some axes at a time, or some codes of
one axis at a time, in ascending order.

The requirement is another matter than the score. Where what it needs of every code does not fit beside the
rest, the best candidates are tried in a pass of their own, on bins that end where they cut: as few as can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.feature_cells import CellWalk, NodeIds, node_ids
from sfumato.methods.mondrian.frequency_sets import (
    ENTRY,
    STRETCH,
    CellSet,
    Codes,
    Collector,
    DenseCells,
    Evidence,
    Ints,
    Judge,
    Lines,
    SparseCells,
    State,
    Stretches,
    Window,
    bytes_per_bin,
    bytes_per_code,
    layout_of,
    windows_of,
)
from sfumato.methods.mondrian.kernels.problem import Queries
from sfumato.methods.mondrian.kernels.sets import (
    best_of,
    cover_of,
    ends_of,
    fill_running,
    fill_threshold_scores,
    fill_whole,
    gain_of_node,
    normalized_width,
    score_of_parts,
)

__all__ = ["Collector", "Decision", "Judge", "Split", "State", "shares"]

Floats = NDArray[np.float64]
Key = tuple[float, int, int]

CHUNK = 1 << 18
"""Words that are walked in one go."""

EAGER, ALWAYS = 32, 1 << 20
"""Bytes per row, and in all, up to which it is cheaper to know the requirement of every code than to try some."""

FIRST_TRIAL = 64
"""Candidates that are tried for the requirement at first; every further trial takes many times more."""

KEPT, MOST_KEPT = 24, 1 << 16
"""Bytes of a candidate that is kept: code, rows, score; and how many of an axis there are at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The children of a node."""

    axis: int
    threshold: int  # ordered: the last code that goes left; tree: the hierarchy node that is specialized
    branches: list[int]  # 0 and 1, or the hierarchy nodes in use
    sizes: list[int]  # rows of each child
    edges: Ints  # the last code of each child but the last one
    states: list[State]  # of the children

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
class Candidate:
    """A split that may be taken."""

    score: float
    largest: int
    axis: int
    edges: Ints
    sizes: Ints
    branches: list[int]
    n_tried: int = 0  # parts that are known to satisfy the requirement


@dataclass(slots=True, eq=False)
class Shortlist:
    """The best thresholds of an axis that were not yet tried, best first."""

    code: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    score: Floats = field(default_factory=lambda: np.zeros(0))
    is_cut: bool = False  # there are more than these
    floor: Key | None = None  # up to here all have failed

    def add(self, code: Ints, rows: Ints, score: Floats, n_rows: int, keep: int) -> None:
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
        """The first n have failed."""
        if n:
            rows = int(self.rows[n - 1])
            self.floor = -float(self.score[n - 1]), max(rows, n_rows - rows), int(self.code[n - 1])
            self.code, self.rows, self.score = self.code[n:], self.rows[n:], self.score[n:]


@dataclass(slots=True, eq=False)
class Race:
    """One axis in a decision: how far its codes have been walked, and its best splits so far."""

    axis: int
    is_tree: bool
    left: Ints  # words of the codes walked
    next_code: int  # the first code that was not yet walked
    phases: frozenset[Phase] = frozenset(Phase)  # what the walk is for
    last_code: int = -1  # the last code walked that some row has
    is_part: bool = False  # are its codes walked in several passes?
    is_done: bool = False
    middle: tuple[int, int, int] | None = (
        None  # a stretch of codes with the middle row, and the rows before it
    )
    best: dict[Phase, Candidate] = field(default_factory=dict)  # known to be allowable
    waiting: dict[Phase, Candidate] = field(default_factory=dict)  # tree: to be tried
    lists: dict[Phase, Shortlist] = field(default_factory=dict)  # ordered: to be tried
    child: list[Ints] = field(default_factory=list)  # tree: which children of the cover are in use ...
    part: list[Ints] = field(default_factory=list)  # ... and running totals up to each
    cells: CellWalk | None = None

    def again(self, phase: Phase, first_code: int) -> None:
        """Walk the codes once more: the shortlist has run out."""
        self.left[:] = 0
        self.next_code, self.last_code = first_code, -1
        self.phases, self.is_part, self.is_done, self.cells = frozenset([phase]), False, False, None
        self.lists[phase].is_cut = False


# ---- decisions -------------------------------------------------------------------------------------


class Decision:
    """The split of one node.

    result   the split, None for a leaf; once ``next`` has returned None
    bounds   (4, axes) what is known of the codes by then, see ``State``
    """

    def __init__(self, judge: Judge, state: State, n_rows: int) -> None:
        self.judge, self.n_rows = judge, n_rows
        self.bounds = state.bounds.copy()
        self.region = None if state.region is None else state.region.copy()
        self.result: Split | None = None
        self.is_decided = False
        self.layout = layout_of(judge, n_rows)
        self.node: Ints | None = None if judge.has_targets else np.array([n_rows])
        self.ids: list[NodeIds] | None = None if judge.features else []
        low, high = self.bounds[0], self.bounds[1]
        self.is_exact = (self.bounds[3] == 1) | (low == high)
        can_split = n_rows >= max(2 * judge.rules.least_rows, 2)
        self.races = {
            axis: Race(
                axis, bool(judge.axes.is_tree[axis]), np.zeros(judge.n_totals, np.int64), int(low[axis])
            )
            for axis in np.flatnonzero(judge.axes.may_split & (low < high)).tolist()
            if can_split
        }
        self._active: Ints | None = None
        self._outcome: dict[Phase, Candidate | None] = {}
        self._passed: set[Phase] = set()
        self._n_trials = 0
        self._settle()

    @property
    def covers(self) -> Ints:
        """The lowest hierarchy node of each tree axis that covers the rows, -1 elsewhere; known once decided."""
        covers = np.full(self.judge.n_axes, -1, dtype=np.int64)
        for axis in np.flatnonzero(self.judge.axes.is_tree).tolist():
            covers[axis] = self._cover(axis)
        return covers

    def _cover(self, axis: int) -> int:
        low, high, known = (int(x) for x in self.bounds[:3, axis])
        return int(cover_of(self.judge.grid, known, low, high))

    # -- what to gather ------------------------------------------------------------------------------

    def next(self, memory: int) -> Collector | None:
        """The next frequency sets to gather, in at most ``memory`` bytes; None if the split is known.

        Asked again before ``take``, it starts anew: a smaller share gives a smaller collector. A share that is
        too small for anything is exceeded by as little as can be.
        """
        if self.is_decided:
            return None
        if self.races and not self._wants_ranges([]) and self._can_try():
            return self._trial(memory)
        waiting = self._waiting()
        if waiting and waiting[0].middle is not None:
            return self._near_middle(waiting[0], memory)
        judge, layout = self.judge, self.layout
        spans = [(race.axis, race.next_code, int(self.bounds[1, race.axis])) for race in waiting]
        per_code = layout.n_bytes + self._cell_bytes()
        n_lines = sum(high - low + 1 for _, low, high in spans)
        if n_lines * per_code <= memory and not any(race.is_part for race in waiting):
            return self._all_at_once(spans, memory - n_lines * per_code)
        is_unsure = self._is_plain() and not self.is_exact[[race.axis for race in waiting]].all()
        if self._wants_ranges([]) or self.ids is None or is_unsure:
            return Collector(judge, layout, wants_ranges=True, wants_totals=True)
        room = max(1, memory // per_code)
        chosen: list[tuple[int, int, int]] = []
        for axis, low, high in spans:
            if sum(high - low + 1 for _, low, high in [*chosen, (axis, low, high)]) > room:
                break
            if self.races[axis].is_part:
                break
            chosen.append((axis, low, high))
        keep = self._keep(memory)
        if chosen:
            windows = windows_of(chosen)
            cells = [self._dense(window) for window in windows]
            return Collector(judge, layout, windows, cells=cells, keep=keep)
        if self._is_plain() and judge.rules.count_only and not waiting[0].is_tree:
            return self._near_middle(waiting[0], memory)
        return self._slice(*spans[0], memory, room, keep)

    @property
    def wanted(self) -> int:
        """The bytes that let the next pass tell all it can; with fewer, there are more passes."""
        if self.is_decided:
            return 0
        if self.races and not self._wants_ranges([]) and self._can_try():
            return self._room_to_try() * bytes_per_bin(self.judge)
        n_lines = sum(int(self.bounds[1, race.axis]) - race.next_code + 1 for race in self._waiting())
        return n_lines * (self.layout.n_bytes + self._cell_bytes())

    def _waiting(self) -> list[Race]:
        """Whose codes are still to be walked: those in the midst of it first, then for Median the widest."""
        waiting = [race for race in self.races.values() if not race.is_done]
        if self._is_plain() and self.is_exact[[race.axis for race in waiting]].all():
            waiting = [race for race in self._by_width() if not race.is_done]
        return sorted(waiting, key=lambda race: not race.is_part)

    def _is_plain(self) -> bool:
        """Is it Median from the first, so that the widest axes may be all that matters?"""
        return not self.judge.is_scored and self.region is None

    def _near_middle(self, race: Race, memory: int) -> Collector:
        """Rows of an axis too wide for ``memory``: of ever finer stretches of codes around the middle row."""
        low, high, _ = race.middle or (race.next_code, int(self.bounds[1, race.axis]), 0)
        by = ((high - low) // max(2, memory // STRETCH)).bit_length()
        return Collector(self.judge, self.layout, stretches=Stretches(race.axis, low, high, by))

    def _all_at_once(self, spans: Sequence[tuple[int, int, int]], room: int) -> Collector:
        """What there is to know of all axes; with what the requirement needs, if there is room for it."""
        windows = windows_of(spans)
        judge = self.judge
        evidence: list[Evidence] = []
        if not judge.rules.count_only:
            evidence = [Evidence(judge, window.axis, window.n_lines, low=window.low) for window in windows]
            n_bytes = sum(each.n_bytes for each in evidence)
            if n_bytes > min(room, max(EAGER * self.n_rows, ALWAYS)):
                evidence = []
        return Collector(
            judge,
            self.layout,
            windows,
            wants_ranges=self._wants_ranges([window.axis for window in windows]),
            wants_totals=self.ids is None,
            evidence=evidence,
            cells=[self._dense(window) for window in windows],
            keep=self._keep(room),
        )

    def _slice(self, axis: int, low: int, high: int, memory: int, room: int, keep: int) -> Collector:
        """The next codes of one axis."""
        judge, layout = self.judge, self.layout
        wants_totals = self.node is None
        n_ids = sum(ids.n_ids for ids in self.ids or ())
        if n_ids * (high - low + 1) <= 4 * self.n_rows or not judge.features:
            windows = windows_of([(axis, low, min(high, low + room - 1))])
            cells: list[list[CellSet]] = [self._dense(windows[0])]
        else:
            n_codes = max(1, memory // 4 // layout.n_bytes)
            windows = windows_of([(axis, low, min(high, low + n_codes - 1))])
            most = max(1, memory * 3 // 4 // (4 * ENTRY * len(judge.features)))
            cells = [
                [SparseCells(ids.feature, windows[0], ids.rank, ids.n_ids, most) for ids in self.ids or ()]
            ]
        return Collector(
            judge, layout, windows, is_part=True, wants_totals=wants_totals, cells=cells, keep=keep
        )

    def _cell_bytes(self) -> int:
        """Of a code with all its ids."""
        if self.ids is None:
            return sum(bytes_per_code(feature, feature.n_ids) for feature in self.judge.features)
        return sum(bytes_per_code(ids.feature, ids.n_ids) for ids in self.ids)

    def _dense(self, window: Window) -> list[CellSet]:
        if self.ids is None:
            none = np.zeros(0, dtype=np.uint32)
            return [DenseCells(feature, window, none, feature.n_ids) for feature in self.judge.features]
        return [DenseCells(ids.feature, window, ids.rank, ids.n_ids) for ids in self.ids]

    def _keep(self, memory: int) -> int:
        """How many candidates of an axis to keep."""
        if self.judge.rules.count_only:
            return 1
        return max(FIRST_TRIAL, min(MOST_KEPT, memory // (16 * KEPT * max(1, len(self.races)))))

    def _wants_ranges(self, told: Sequence[int]) -> bool:
        """Are the ranges of some trees unknown, beside those that will be told?"""
        unknown = self.judge.axes.is_tree & ~self.is_exact
        unknown[np.array(told, dtype=np.intp)] = False
        return bool(unknown.any())

    # -- what was gathered ---------------------------------------------------------------------------

    def take(self, collector: Collector) -> None:
        """The frequency sets of all rows of the node."""
        collector.close()
        if not collector.windows and collector.evidence:
            self._judge_trial(collector)
            self._settle()
            return
        if collector.stretches is not None:
            self._narrow(collector.stretches)
            self._settle()
            return
        if collector.low is not None and collector.high is not None:
            self._know(collector.low, collector.high)
        self._know_node(collector)
        if not collector.is_part:
            for window in collector.windows:
                first, last = ends_of(collector.lines_of(window), self.layout.words)
                self.bounds[0, window.axis] = window.low + first
                self.bounds[1, window.axis] = window.low + last
                self.is_exact[window.axis] = True
        for window in collector.windows:
            race = self.races[window.axis]
            race.is_part = collector.is_part
            self._walk(race, window, collector)
        self._settle()

    def _know(self, low: Ints, high: Ints) -> None:
        self.bounds[0], self.bounds[1] = low, high
        self.is_exact[:] = True
        for race in self.races.values():
            race.next_code = max(race.next_code, int(low[race.axis]))
            race.is_done |= low[race.axis] == high[race.axis]

    def _know_node(self, collector: Collector) -> None:
        if self.node is None and collector.wants_totals:
            self.node = collector.totals
        elif self.node is None and collector.windows:
            self.node = collector.totals
            lines = collector.lines_of(collector.windows[0])
            fill_whole(lines, self.layout.words, self.layout.shift, self.node)
        if self.ids is None and collector.ids:
            is_raw = bool(collector.windows)  # the sets have ids as they are
            features = zip(self.judge.features, collector.ids, strict=True)
            self.ids = [node_ids(feature, totals, compact=not is_raw) for feature, totals in features]

    def _walk(self, race: Race, window: Window, collector: Collector) -> None:
        layout, judge = self.layout, self.judge
        lines, sets = collector.lines_of(window), collector.cells.get(window.axis, ())
        high = min([window.high, *(each.high for each in sets)])
        step = max(1, CHUNK // (judge.n_totals + sum(ids.n_ids for ids in self.ids or ())))
        code = np.empty(step, dtype=np.int64)
        total = np.empty((judge.n_totals, step), dtype=np.int64)
        n_lines = high - window.low + 1
        for start in range(0, n_lines, step):
            chunk: Lines = lines[start * layout.words : min(start + step, n_lines) * layout.words]
            before = int(race.left[0])
            m = fill_running(chunk, layout.words, layout.shift, window.low + start, race.left, code, total)
            if m:
                self._weigh(race, before, code[:m].copy(), total[:, :m].copy(), sets, collector)
        race.next_code = high + 1
        if race.next_code > self.bounds[1, race.axis]:
            race.is_done = True
            self.bounds[1, race.axis] = race.last_code
            self.is_exact[race.axis] = True
            if race.is_tree:
                self._weigh_tree(race, window, collector)
            race.cells = None

    def _narrow(self, found: Stretches) -> None:
        """Look for the middle row in a finer stretch, or take the best threshold beside it."""
        race = self.races[found.axis]
        before = 0 if race.middle is None else race.middle[2]
        up_to = before + np.cumsum(found.counts)
        at = int(np.searchsorted(up_to, (self.n_rows - 1) // 2, side="right"))
        if found.by > 0:
            low = found.low + (at << found.by)
            high = min(found.high, low + (1 << found.by) - 1)
            race.middle = low, high, int(up_to[at - 1]) if at else before
            return
        code = np.flatnonzero(found.counts)
        cuts, rows = np.append(found.last_below, found.low + code), np.append(before, up_to[code])
        least = self.judge.rules.least_rows
        first, last = np.searchsorted(rows, [least, self.n_rows - least + 1]).tolist()
        nothing = Collector(self.judge, self.layout)
        score = np.zeros(max(0, last - first))
        self._enter(race, Phase.MEDIAN, cuts[first:last], rows[first:last], score, nothing)
        race.middle, race.is_done = None, True

    def _weigh(
        self, race: Race, before: int, code: Ints, total: Ints, sets: Sequence[CellSet], collector: Collector
    ) -> None:
        """Compare the thresholds at some codes, given the words up to each."""
        if race.last_code < 0:
            self.bounds[0, race.axis] = code[0]
        walked, race.last_code = race.last_code, int(code[-1])
        if sets and race.cells is None:
            race.cells = CellWalk(self.ids or (), self.judge.table)
        entries = [each.entries(code) for each in sets]
        if race.is_tree:
            self._group(race, code, total)
            if race.cells is not None:
                race.cells.groups(entries, self._children(race.axis, code))
            return
        by_cells = None if race.cells is None else race.cells.thresholds(entries, len(code))
        for phase in self._phases():
            if phase not in race.phases:
                continue
            cuts, rows = code, total[0]
            if phase is Phase.QUERIES:
                cuts, rows = self._with_ends(race.axis, walked, before, code, total[0])
            least = self.judge.rules.least_rows
            first, last = np.searchsorted(rows, [least, self.n_rows - least + 1]).tolist()
            if first >= last:
                continue
            score = np.zeros(last - first)
            if phase is Phase.QUERIES:
                score = self._costs(race.axis, cuts[first:last], rows[first:last])
            elif phase is Phase.SCORE and by_cells is not None:
                score = by_cells[first:last]
            elif phase is Phase.SCORE:
                self._fill_scores(total[:, first:last], score)
            self._enter(race, phase, cuts[first:last], rows[first:last], score, collector)

    def _enter(
        self, race: Race, phase: Phase, code: Ints, rows: Ints, score: Floats, collector: Collector
    ) -> None:
        """Compare some thresholds that leave enough rows on both sides."""
        if phase is Phase.QUERIES:
            is_worth = score > self._no_split()
            code, rows, score = code[is_worth], rows[is_worth], score[is_worth]
        if len(code) == 0:
            return
        evidence = collector.evidence.get(race.axis)
        if self.judge.rules.count_only:
            t = int(best_of(rows, self.n_rows, score))
        elif evidence is None:
            race.lists.setdefault(phase, Shortlist()).add(code, rows, score, self.n_rows, collector.keep)
            return
        else:
            order = np.lexsort((code, np.maximum(rows, self.n_rows - rows), -score))
            first = self.judge.first_allowable(code[order] - evidence.low, rows[order], self.n_rows, evidence)
            if first < 0:
                return
            t = int(order[first])
        self._propose(race, phase, self._threshold(race.axis, int(code[t]), int(rows[t]), float(score[t])))

    def _threshold(self, axis: int, code: int, rows: int, score: float) -> Candidate:
        sizes = np.array([rows, self.n_rows - rows])
        return Candidate(score, int(sizes.max()), axis, np.array([code]), sizes, [0, 1])

    def _propose(self, race: Race, phase: Phase, candidate: Candidate) -> None:
        """A candidate that is allowable; those of one axis come by ascending codes."""
        best = race.best.get(phase)
        if best is None or (-candidate.score, candidate.largest) < (-best.score, best.largest):
            race.best[phase] = candidate

    def _fill_scores(self, total: Ints, out: Floats) -> None:
        judge = self.judge
        fill_threshold_scores(np.ascontiguousarray(total), self.node, judge.targets, judge.table, out)

    # -- trees ---------------------------------------------------------------------------------------

    def _child_nodes(self, node: int) -> Ints:
        axes = self.judge.axes
        start = axes.child_start[node]
        return axes.child[start : start + axes.n_children[node]]

    def _children(self, axis: int, code: Ints) -> Ints:
        """Which child of the cover each code belongs to."""
        low = self.judge.axes.node_low[self._child_nodes(self._cover(axis))]
        return np.searchsorted(low, code, side="right") - 1

    def _group(self, race: Race, code: Ints, total: Ints) -> None:
        """Note the words up to the last code of each child of the cover."""
        child = self._children(race.axis, code)
        is_last = np.append(child[1:] != child[:-1], True)
        if race.child and race.child[-1][-1] == child[0]:  # it goes on
            race.child[-1], race.part[-1] = race.child[-1][:-1], race.part[-1][:, :-1]
        race.child.append(child[is_last])
        race.part.append(total[:, is_last])

    def _weigh_tree(self, race: Race, window: Window, collector: Collector) -> None:
        """Compare the split into the children of the cover."""
        judge = self.judge
        child = np.concatenate(race.child)
        up_to = np.concatenate(race.part, axis=1).T
        parts: Ints = np.ascontiguousarray(up_to)
        parts[1:] -= up_to[:-1]
        race.child, race.part = [], []
        sizes = parts[:, 0].copy()
        if len(child) < 2 or sizes.min() < judge.rules.least_rows:
            return
        branches = self._child_nodes(self._cover(race.axis))[child]
        last = judge.axes.node_high[branches] - 1
        evidence = collector.evidence.get(race.axis)
        if evidence is not None:
            place = np.append(-1, np.minimum(last, window.high) - window.low)
            if not judge.parts_hold(place, sizes, evidence):
                return
        for phase in self._phases():
            score = 0.0
            if phase is Phase.QUERIES:
                score = self._cost_of_children(race.axis, branches, sizes)
                if score <= self._no_split():
                    continue
            elif phase is Phase.SCORE and race.cells is not None:
                score = race.cells.score_of_groups()
            elif phase is Phase.SCORE:
                score = float(score_of_parts(parts, self.node, judge.targets, judge.is_single, judge.table))
            candidate = Candidate(score, int(sizes.max()), race.axis, last[:-1], sizes, branches.tolist())
            if evidence is not None or judge.rules.count_only:
                race.best[phase] = candidate
            else:
                race.waiting[phase] = candidate

    # -- selections ----------------------------------------------------------------------------------

    def _queries(self) -> Queries:
        assert self.judge.queries is not None
        return self.judge.queries

    def _active_queries(self) -> Ints:
        """Those that overlap the region, which is a cover's range on a tree."""
        if self._active is None:
            assert self.region is not None
            axes, queries = self.judge.axes, self._queries()
            for axis in np.flatnonzero(axes.is_tree).tolist():
                cover = self._cover(axis)
                self.region[0, axis] = axes.node_low[cover] - 1
                self.region[1, axis] = axes.node_high[cover] - 1
            overlaps = (queries.high > self.region[0]) & (queries.low <= self.region[1])
            self._active = np.flatnonzero(overlaps.all(axis=1))
        return self._active

    def _no_split(self) -> float:
        """The score of no split at all."""
        return -float(self.n_rows * int(self._queries().weight[self._active_queries()].sum()))

    def _weights(self, axis: int, up_to: Ints, beyond: Ints) -> tuple[Ints, Ints]:
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

    def _costs(self, axis: int, code: Ints, rows: Ints) -> Floats:
        """Minus the cost of each threshold, see ``fill_costs``."""
        left, right = self._weights(axis, code, code + 1)
        return -(rows * left + (self.n_rows - rows) * right).astype(np.float64)

    def _cost_of_children(self, axis: int, branches: Ints, sizes: Ints) -> float:
        low, last = self.judge.axes.node_low[branches], self.judge.axes.node_high[branches] - 1
        begun, not_ended = self._weights(axis, last, low)
        every = int(self._queries().weight[self._active_queries()].sum())
        return -float((sizes * (begun + not_ended - every)).sum())

    def _with_ends(self, axis: int, walked: int, before: int, code: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The codes and the ends of active queries up to the last of them, each with the rows up to there.

        Ends up to the code ``walked`` last, with the rows ``before``, have been looked at.
        """
        ends = np.unique(self._queries().high[self._active_queries(), axis])
        cuts = np.union1d(code, ends[(ends > walked) & (ends < code[-1])])
        return cuts, np.append(before, rows)[np.searchsorted(code, cuts, side="right")]

    # -- trials --------------------------------------------------------------------------------------

    def _sorted(self, phase: Phase) -> tuple[Ints, Ints]:
        """Candidates that can be tried, best first: their axis, and the bins each takes.

        Where a shortlist was cut, what comes after its last one is not known.
        """
        ranks = {race.axis: i for i, race in enumerate(self._by_width())}
        columns: list[Ints] = []
        score: list[Floats] = []
        for race in self._ready():
            rank = ranks[race.axis] if phase is Phase.MEDIAN else 0
            if phase in race.waiting:
                tree = race.waiting[phase]
                score.append(np.array([tree.score]))
                n_bins = len(tree.sizes) - tree.n_tried + 1
                columns.append(np.array([[rank, tree.largest, race.axis, 0, n_bins, 0]]))
            elif phase in race.lists:
                listed = race.lists[phase]
                here = np.zeros((len(listed.code), 6), dtype=np.int64)
                here[:, 0], here[:, 2], here[:, 3], here[:, 4] = rank, race.axis, listed.code, 1
                here[:, 1] = np.maximum(listed.rows, self.n_rows - listed.rows)
                here[-1:, 5] = listed.is_cut
                columns.append(here)
                score.append(listed.score)
        if not columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        table, scores = np.concatenate(columns), np.concatenate(score)
        order = np.lexsort((table[:, 3], table[:, 2], table[:, 1], -scores, table[:, 0]))
        table = table[order]
        stops = np.flatnonzero(table[:, 5])
        table = table[: stops[0] + 1] if len(stops) else table
        return table[:, 2], table[:, 4]

    def _by_width(self) -> list[Race]:
        """Widest first."""
        return sorted(self.races.values(), key=lambda race: (-self._width(race.axis), race.axis))

    def _trial(self, memory: int) -> Collector:
        """What the requirement needs to know of the next candidates."""
        judge = self.judge
        phase = self._open_phase()
        axis, cost = self._sorted(phase)
        room = min(max(2, memory // bytes_per_bin(judge)), self._room_to_try())
        is_new = np.zeros(len(axis), dtype=np.int64)
        is_new[np.unique(axis, return_index=True)[1]] = 1  # every axis has one more bin than edges
        n = max(1, int(np.searchsorted(np.cumsum(cost + is_new), room, side="right")))
        evidence = []
        for a, n_here in zip(*np.unique(axis[:n], return_counts=True), strict=True):
            race = self.races[int(a)]
            edges = (
                self._part_edges(race.waiting[phase], room)
                if race.is_tree
                else np.sort(race.lists[phase].code[:n_here])
            )
            evidence.append(Evidence(judge, race.axis, len(edges) + 1, edges=edges))
        return Collector(judge, self.layout, evidence=evidence)

    def _room_to_try(self) -> int:
        """Bins that the next trial is worth."""
        n_open = sum(len(race.lists[phase].code) for race in self._ready() for phase in race.lists) + sum(
            len(tree.sizes) for race in self._ready() for tree in race.waiting.values()
        )
        return min(FIRST_TRIAL << 6 * min(self._n_trials, 6), n_open + 2 * len(self.races))

    def _part_edges(self, tree: Candidate, room: int) -> Ints:
        """Where the next parts of a tree that were not yet tried begin and end, as many as there is room for."""
        first = tree.n_tried
        last = min(len(tree.sizes), first + room)
        high = self.judge.axes.node_high[np.array(tree.branches[first:last])] - 1
        return np.append(self.judge.axes.node_low[tree.branches[first]] - 1, high)

    def _judge_trial(self, trial: Collector) -> None:
        """Which of the candidates tried are allowable? The first of them is taken."""
        phase = self._open_phase()
        self._n_trials += 1
        found = False
        for axis, evidence in trial.evidence.items():
            race = self.races[axis]
            if race.is_tree:
                tree = race.waiting[phase]
                n_parts = len(evidence.edges) - 1
                sizes = tree.sizes[tree.n_tried : tree.n_tried + n_parts]
                if not self.judge.parts_hold(np.arange(n_parts + 1), sizes, evidence):
                    del race.waiting[phase]
                    continue
                tree.n_tried += n_parts
                if tree.n_tried == len(tree.sizes):
                    race.best[phase] = tree
                    found = True
                continue
            listed, n = race.lists[phase], len(evidence.edges)
            at = np.searchsorted(evidence.edges, listed.code[:n])
            t = self.judge.first_allowable(at, listed.rows[:n], self.n_rows, evidence)
            if t < 0:
                listed.drop(n, self.n_rows)
                continue
            race.best[phase] = self._threshold(
                axis, int(listed.code[t]), int(listed.rows[t]), float(listed.score[t])
            )
            found = True
        if found:
            self._outcome[phase] = self._first(phase)

    # -- the choice ----------------------------------------------------------------------------------

    def _phases(self) -> Iterator[Phase]:
        """What the walked codes must tell."""
        if self.region is not None and len(self._active_queries()):
            yield Phase.QUERIES
        if self.judge.is_scored:
            yield Phase.SCORE
        if not self.judge.is_scored or self.judge.targets.median_below_gain > 0.0:
            yield Phase.MEDIAN

    def _open_phase(self) -> Phase:
        """What a split is wanted for at present."""
        return next(phase for phase in self._phases() if phase not in self._passed)

    def _settle(self) -> None:
        """Decide, if all is known."""
        if self._wants_ranges([]):
            return
        self.is_decided = not self.races
        while not self.is_decided and self._ready():
            phase = self._open_phase()
            if not self._is_known(phase):
                return
            best = self._outcome.setdefault(phase, self._first(phase))
            is_last = phase is Phase.MEDIAN or (
                phase is Phase.SCORE and (best is None or not self._is_left_to_median(best))
            )
            if best is not None and (is_last or phase is Phase.QUERIES):
                self._split(best, stays=phase is Phase.QUERIES)
                is_last = True
            self._passed.add(phase)
            self.is_decided = is_last

    def _ready(self) -> list[Race]:
        """The axes that can be compared: all, as soon as all are walked; or the widest for Median."""
        races = list(self.races.values())
        if all(race.is_done for race in races):
            return races
        if self._is_plain() and self.is_exact[list(self.races)].all():
            return list(takewhile(lambda race: race.is_done, self._by_width()))
        return []

    def _can_try(self) -> bool:
        """Are there candidates to be tried?"""
        if self.judge.rules.count_only or not self._ready():
            return False
        phase = self._open_phase()
        return any(
            phase in race.waiting or (phase in race.lists and len(race.lists[phase].code) > 0)
            for race in self._ready()
        )

    def _is_known(self, phase: Phase) -> bool:
        """Is the best allowable candidate known, or that there is none?"""
        ready = self._ready()
        if phase in self._outcome:
            return True
        is_found = any(phase in race.best for race in ready)
        if self.judge.rules.count_only or not any(race.lists or race.waiting for race in ready):
            return is_found or len(ready) == len(self.races)
        for race in ready:
            listed = race.lists.get(phase)
            if listed is not None and listed.is_cut and len(listed.code) == 0:
                race.again(phase, int(self.bounds[0, race.axis]))
        return not self._can_try() and len(self._ready()) == len(self.races)

    def _first(self, phase: Phase) -> Candidate | None:
        """The best of those that are known to be allowable."""
        found = [race.best[phase] for race in self._by_width() if phase in race.best]
        if phase is not Phase.MEDIAN:
            found.sort(key=lambda candidate: (-candidate.score, candidate.largest, candidate.axis))
        return found[0] if found else None

    def _width(self, axis: int) -> float:
        low, high = int(self.bounds[0, axis]), int(self.bounds[1, axis])
        cover = self._cover(axis) if self.judge.axes.is_tree[axis] else 0
        return float(normalized_width(self.judge.grid, axis, low, high, cover))

    def _is_left_to_median(self, best: Candidate) -> bool:
        """Does it gain less than Median is preferred below? Never where there is no such limit, however it is rounded."""
        limit = self.judge.targets.median_below_gain
        return limit > 0.0 and self._gain(best) < limit

    def _gain(self, best: Candidate) -> float:
        judge = self.judge
        if not judge.features:
            return float(gain_of_node(self.node, self.n_rows, judge.targets, judge.table, best.score))
        worth = best.score
        for ids in self.ids or ():
            worth -= ids.feature.weight * ids.worth(judge.table)
        return worth * judge.targets.gain_scale / self.n_rows

    def _split(self, best: Candidate, *, stays: bool) -> None:
        axes, axis = self.judge.axes, best.axis
        is_tree = bool(axes.is_tree[axis])
        states = []
        for j, branch in enumerate(best.branches):
            bounds = self.bounds.copy()
            bounds[3] = 0
            region = self.region.copy() if stays and self.region is not None else None
            if is_tree:
                bounds[:3, axis] = axes.node_low[branch], axes.node_high[branch] - 1, branch
            else:
                bounds[1 - j, axis] = best.edges[0] + j
                if region is not None:
                    region[1 - j, axis] = best.edges[0]
            states.append(State(bounds, region))
        threshold = self._cover(axis) if is_tree else int(best.edges[0])
        self.result = Split(axis, threshold, best.branches, best.sizes.tolist(), best.edges, states)


def shares(decisions: Sequence[Decision], memory: int) -> list[int]:
    """What each of some decisions may take in one pass: what it wants and a part of what is left.

    If not all can have what they want, everyone gets as much of it in proportion.
    """
    wanted = [decision.wanted for decision in decisions]
    left = memory - sum(wanted)
    if left < 0:
        return [each * memory // sum(wanted) for each in wanted]
    return [each + left // len(decisions) for each in wanted]
