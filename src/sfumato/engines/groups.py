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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory import everywhere, information_table
from sfumato.kernels.frequency import add_packed, add_sums, fill_ranges, n_words
from sfumato.kernels.problem import Axes, Cells, Queries, Rules, Targets, grid_of
from sfumato.kernels.sets import (
    add_counts,
    add_lines,
    add_totals,
    best_of,
    cover_of,
    ends_of,
    fill_running,
    fill_threshold_scores,
    fill_whole,
    gain_of_node,
    normalized_width,
    score_of_parts,
    shift_of,
)

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

TABLE = 1 << 20
"""How many logarithms are kept; others are computed when they are needed."""

CHUNK = 1 << 18
"""Words that are walked in one go."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What is known of a node before its rows are seen."""

    bounds: Ints  # (4, axes) outer bounds of the codes of the whole table, cover, is that exact? see ``fill_subtree``
    region: Ints | None = None  # (2, axes) while the selections have the first say, see ``split_for_queries``


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


class Judge:
    """By what splits are judged: prepared once, asked by every decision."""

    def __init__(
        self,
        axes: Axes,
        targets: Targets,
        rules: Rules,
        *,
        cells: Cells | None = None,
        queries: Queries | None = None,
    ) -> None:
        if cells is not None or not rules.count_only:
            raise NotImplementedError
        self.axes, self.targets, self.rules, self.cells, self.queries = axes, targets, rules, cells, queries
        self.grid = grid_of(axes)
        self.n_axes = len(axes.root)
        has_labels = len(targets.label) or (cells is not None and len(cells.label))
        self.table = information_table(TABLE) if has_labels else np.zeros(1)
        self.has_targets = len(targets.label) + len(targets.number) > 0
        self.n_totals = int(n_words(targets)) if self.has_targets else 1
        self.is_single = self.has_targets and self.n_totals == 2
        self.is_scored = self.has_targets or cells is not None
        label = targets.label if len(targets.label) else targets.number
        self.column = int(label[0].column) if self.is_single else 0

    def whole(self, n_codes: Sequence[int]) -> State:
        """The state of the root: codes from 0 up to as many as each axis has."""
        bounds = np.zeros((4, self.n_axes), dtype=np.int64)
        bounds[1] = np.array(n_codes, dtype=np.int64) - 1
        bounds[2] = self.axes.root
        return State(bounds, None if self.queries is None else everywhere(self.n_axes))


class Phase(Enum):
    """What a split is wanted for."""

    QUERIES = "queries"
    SCORE = "score"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the words of a code are stored."""

    words: int
    shift: int  # of the rows above the sum in one word; 0: not packed
    dtype: type[np.uint32 | np.int64]

    @property
    def n_bytes(self) -> int:
        """Of one code."""
        return self.words * np.dtype(self.dtype).itemsize


def layout_of(judge: Judge, n_rows: int) -> Layout:
    if not judge.has_targets:
        return Layout(1, 0, np.uint32)
    shift = int(shift_of(n_rows, judge.targets.largest)) if judge.is_single else 0
    return Layout(1 if shift else judge.n_totals, shift, np.int64)


# ---- gathering -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """Codes of one axis whose words are gathered: low .. high, from line ``start`` on."""

    axis: int
    low: int
    high: int
    start: int

    @property
    def n_lines(self) -> int:
        return self.high - self.low + 1


class Collector:
    """Frequency sets of one node while they are gathered. Memory is taken with the first rows."""

    def __init__(
        self, judge: Judge, layout: Layout, windows: Sequence[Window], *, is_part: bool, wants_ranges: bool
    ) -> None:
        self.judge, self.layout, self.windows = judge, layout, windows
        self.is_part = is_part  # one window, which some rows of the node do not belong to
        self.wants_ranges = wants_ranges
        self.n_lines = sum(window.n_lines for window in windows)
        self.n_bytes = self.n_lines * layout.n_bytes + 64 * judge.n_axes
        self._listed = np.array([window.axis for window in windows], dtype=np.uint64)
        base = np.array([window.start - window.low for window in windows], dtype=np.int64)
        self._base = base.astype(np.uint64)
        self._lines: NDArray[np.uint32 | np.int64] | None = None
        self.totals = np.zeros(judge.n_totals, dtype=np.int64)
        self.low: Ints | None = None  # (axes,) least and greatest codes, if wanted
        self.high: Ints | None = None

    @property
    def lines(self) -> NDArray[np.uint32 | np.int64]:
        if self._lines is None:
            self._lines = np.zeros(self.n_lines * self.layout.words, dtype=self.layout.dtype)
        return self._lines

    def add(self, rows: Codes) -> None:
        """Some rows of the node: (n, columns) in C order."""
        if len(rows) == 0:
            return
        judge, layout = self.judge, self.layout
        targets = judge.targets
        if self.wants_ranges:
            self._add_ranges(rows)
        if self.is_part:
            (window,) = self.windows
            if judge.has_targets:
                add_totals(rows, judge.column, targets.label, targets.number, judge.is_single, self.totals)
            codes = rows[:, window.axis]
            rows = rows[(codes >= window.low) & (codes <= window.high)]
        if not self.windows:
            return
        if layout.dtype is np.uint32:
            add_counts(rows, self._listed, self._base, self.lines)
        elif layout.shift:
            add_packed(rows, judge.column, self._listed, self._base, layout.shift, self.lines)
        elif judge.is_single:
            add_sums(rows, judge.column, self._listed, self._base, self.lines)
        else:
            add_lines(rows, layout.words, targets.label, targets.number, self._listed, self._base, self.lines)

    def _add_ranges(self, rows: Codes) -> None:
        low, high = np.empty((2, rows.shape[1]), dtype=np.int64)
        fill_ranges(rows, low, high)
        n_axes = self.judge.n_axes
        self.low = low[:n_axes] if self.low is None else np.minimum(self.low, low[:n_axes])
        self.high = high[:n_axes] if self.high is None else np.maximum(self.high, high[:n_axes])

    def lines_of(self, window: Window) -> NDArray[np.uint32 | np.int64]:
        words = self.layout.words
        return self.lines[window.start * words : (window.start + window.n_lines) * words]


# ---- deciding --------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Candidate:
    """A split that may be taken."""

    score: float
    largest: int
    axis: int
    edges: Ints
    sizes: list[int]
    branches: list[int]

    def key(self) -> tuple[float, int, int, int]:
        """The least is the best."""
        return -self.score, self.largest, self.axis, int(self.edges[0])


@dataclass(slots=True, eq=False)
class Race:
    """One axis in a decision: how far its codes have been walked, and its best splits so far."""

    axis: int
    is_tree: bool
    left: Ints  # words of the codes walked
    next_code: int  # the first code that was not yet walked
    last_code: int = -1  # the last one of these that some row has
    best: dict[Phase, Candidate] = field(default_factory=dict)
    child: list[Ints] = field(default_factory=list)  # tree: which children of the cover are in use ...
    part: list[Ints] = field(default_factory=list)  # ... and running totals up to each
    is_part: bool = False  # are its codes walked in several passes?
    is_done: bool = False


class Decision:
    """The split of one node."""

    def __init__(self, judge: Judge, state: State, n_rows: int) -> None:
        self.judge, self.n_rows = judge, n_rows
        self.bounds = state.bounds.copy()
        self.region = None if state.region is None else state.region.copy()
        self.result: Split | None = None
        self.is_decided = False
        self.layout = layout_of(judge, n_rows)
        self.node: Ints | None = None if judge.has_targets else np.array([n_rows])
        low, high = self.bounds[0], self.bounds[1]
        self.is_exact = (self.bounds[3] == 1) | (low == high)
        can_split = n_rows >= max(2 * judge.rules.least_rows, 2)
        self.races = {
            axis: Race(axis, bool(judge.axes.is_tree[axis]), self._no_words(), int(low[axis]))
            for axis in np.flatnonzero(judge.axes.may_split & (low < high)).tolist()
            if can_split
        }
        self._active: Ints | None = None
        self._settle()

    def _no_words(self) -> Ints:
        return np.zeros(self.judge.n_totals, dtype=np.int64)

    @property
    def covers(self) -> Ints:
        """The lowest hierarchy node of each tree axis that covers the rows, -1 elsewhere; known once decided."""
        is_tree = self.judge.axes.is_tree
        covers = np.full(self.judge.n_axes, -1, dtype=np.int64)
        for axis in np.flatnonzero(is_tree).tolist():
            covers[axis] = self._cover(axis)
        return covers

    def _cover(self, axis: int) -> int:
        low, high, known = (int(x) for x in self.bounds[:3, axis])
        return int(cover_of(self.judge.grid, known, low, high))

    # -- what to gather ------------------------------------------------------------------------------

    def next(self, memory: int) -> Collector | None:
        """The next frequency sets to gather, in at most ``memory`` bytes; None if the split is known.

        Asked again before ``take``, it starts anew: a smaller share gives a smaller collector.
        """
        if self.is_decided:
            return None
        judge, layout = self.judge, self.layout
        waiting = [race for race in self.races.values() if not race.is_done]
        n_lines = sum(self._n_lines(race) for race in waiting)
        fits = n_lines * layout.n_bytes <= memory and not any(race.is_part for race in waiting)
        wants_ranges = self._wants_ranges(waiting, fits=fits)
        if (wants_ranges and not fits) or not waiting:
            return Collector(judge, layout, [], is_part=False, wants_ranges=True)
        if fits:
            return Collector(
                judge, layout, windows_of(self._spans(waiting)), is_part=False, wants_ranges=wants_ranges
            )
        room = max(1, memory // layout.n_bytes)
        chosen, n_lines = [], 0
        for low, high, axis in self._spans(waiting):
            n_lines += high - low + 1
            if n_lines > room or self.races[axis].is_part:
                break
            chosen.append((low, high, axis))
        is_part = not chosen
        if is_part:
            low, high, axis = next(self._spans(waiting))
            chosen = [(low, min(high, low + room - 1), axis)]
        return Collector(judge, layout, windows_of(chosen), is_part=is_part, wants_ranges=False)

    def _n_lines(self, race: Race) -> int:
        return int(self.bounds[1, race.axis]) - race.next_code + 1

    def _spans(self, races: Sequence[Race]) -> Iterator[tuple[int, int, int]]:
        for race in races:
            yield race.next_code, int(self.bounds[1, race.axis]), race.axis

    def _wants_ranges(self, waiting: Sequence[Race], *, fits: bool) -> bool:
        """Must the ranges of some trees be gathered apart?

        Those that are never split tell the covers; and where not all fits at once, others must be known before.
        """
        unknown = self.judge.axes.is_tree & ~self.is_exact
        if fits:
            unknown[[race.axis for race in waiting]] = False
        return bool(unknown.any())

    # -- what was gathered ---------------------------------------------------------------------------

    def take(self, collector: Collector) -> None:
        """The frequency sets of all rows of the node."""
        if collector.low is not None and collector.high is not None:
            self._know(np.ones(self.judge.n_axes, dtype=np.bool_), collector.low, collector.high)
        if self.judge.has_targets and self.node is None and collector.windows:
            self.node = collector.totals
            if not collector.is_part:
                fill_whole(
                    collector.lines_of(collector.windows[0]), self.layout.words, self.layout.shift, self.node
                )
        if not collector.is_part:
            for window in collector.windows:
                first, last = ends_of(collector.lines_of(window), self.layout.words)
                self.bounds[0, window.axis] = window.low + first
                self.bounds[1, window.axis] = window.low + last
                self.is_exact[window.axis] = True
        for window in collector.windows:
            self.races[window.axis].is_part = collector.is_part
            self._walk(self.races[window.axis], window, collector.lines_of(window))
        self._settle()

    def _know(self, axes: NDArray[np.bool_], low: Ints, high: Ints) -> None:
        self.bounds[0, axes], self.bounds[1, axes] = low[axes], high[axes]
        self.is_exact |= axes
        for race in self.races.values():
            race.next_code = max(race.next_code, int(self.bounds[0, race.axis]))

    def _walk(self, race: Race, window: Window, lines: NDArray[np.uint32 | np.int64]) -> None:
        layout, judge = self.layout, self.judge
        step = max(1, CHUNK // judge.n_totals)
        code = np.empty(step, dtype=np.int64)
        total = np.empty((judge.n_totals, step), dtype=np.int64)
        for start in range(0, window.n_lines, step):
            chunk = lines[start * layout.words : (start + step) * layout.words]
            before = int(race.left[0])
            m = fill_running(chunk, layout.words, layout.shift, window.low + start, race.left, code[:], total)
            self._weigh(race, before, code[:m], np.ascontiguousarray(total[:, :m]))
        race.next_code = window.high + 1
        if race.next_code > self.bounds[1, race.axis]:
            race.is_done = True
            self.bounds[1, race.axis] = race.last_code
            self.is_exact[race.axis] = True
            if race.is_tree:
                self._weigh_tree(race)

    def _weigh(self, race: Race, before: int, code: Ints, total: Ints) -> None:
        """Compare the thresholds at some codes, given the words up to each."""
        if len(code) == 0:
            return
        if race.last_code < 0:
            self.bounds[0, race.axis] = code[0]
        race.last_code = int(code[-1])
        if race.is_tree:
            self._group(race, code, total)
            return
        for phase in self._phases():
            if phase is Phase.QUERIES:
                cuts, rows = self._with_ends(race.axis, before, code, total[0])
            else:
                cuts, rows = code, total[0]
            least = self.judge.rules.least_rows
            first, last = np.searchsorted(rows, [least, self.n_rows - least + 1]).tolist()
            if first >= last:
                continue
            cuts, rows = cuts[first:last], rows[first:last]
            score = self._scores(phase, race.axis, cuts, rows, total[:, first:last])
            t = int(best_of(rows, self.n_rows, score))
            self._propose(phase, self._threshold(race.axis, int(cuts[t]), int(rows[t]), float(score[t])))

    def _threshold(self, axis: int, code: int, rows: int, score: float) -> Candidate:
        sizes = [rows, self.n_rows - rows]
        return Candidate(score, max(sizes), axis, np.array([code]), sizes, [0, 1])

    def _propose(self, phase: Phase, candidate: Candidate) -> None:
        best = self.races[candidate.axis].best
        if phase not in best or candidate.key() < best[phase].key():
            best[phase] = candidate

    def _scores(self, phase: Phase, axis: int, code: Ints, rows: Ints, total: Ints) -> NDArray[np.float64]:
        score = np.zeros(len(code))
        if phase is Phase.QUERIES:
            left, right = self._weights(axis, code, code + 1)
            score = -(rows * left + (self.n_rows - rows) * right).astype(np.float64)
        elif phase is Phase.SCORE:
            judge = self.judge
            fill_threshold_scores(np.ascontiguousarray(total), self.node, judge.targets, judge.table, score)
        return score

    # -- trees ---------------------------------------------------------------------------------------

    def _group(self, race: Race, code: Ints, total: Ints) -> None:
        """Note the words up to the last code of each child of the cover."""
        low = self._child_lows(self._cover(race.axis))
        child = np.searchsorted(low, code, side="right") - 1
        is_last = np.append(child[1:] != child[:-1], True)
        if race.child and race.child[-1][-1] == child[0]:  # it goes on
            race.child[-1], race.part[-1] = race.child[-1][:-1], race.part[-1][:, :-1]
        race.child.append(child[is_last])
        race.part.append(total[:, is_last])

    def _child_nodes(self, node: int) -> Ints:
        axes = self.judge.axes
        start = axes.child_start[node]
        return axes.child[start : start + axes.n_children[node]]

    def _child_lows(self, node: int) -> Ints:
        children = self._child_nodes(node)
        return self.judge.axes.node_low[children] if len(children) else np.zeros(1, dtype=np.int64)

    def _weigh_tree(self, race: Race) -> None:
        judge = self.judge
        cover = self._cover(race.axis)
        nodes = self._child_nodes(cover)
        if len(nodes) == 0:
            return
        child = np.concatenate(race.child)
        parts = np.ascontiguousarray(np.diff(np.concatenate(race.part, axis=1), prepend=0).T)
        race.child, race.part = [], []
        sizes = parts[:, 0]
        if len(child) < 2 or sizes.min() < judge.rules.least_rows:
            return
        branches = nodes[child]
        edges = judge.axes.node_high[branches[:-1]] - 1
        for phase in self._phases():
            score = 0.0
            if phase is Phase.QUERIES:
                left, right = self._weights(
                    race.axis, judge.axes.node_high[branches] - 1, judge.axes.node_low[branches]
                )
                weight = left + right - int(self._queries().weight[self._active].sum())
                score = -float((sizes * weight).sum())
            elif phase is Phase.SCORE:
                score = score_of_parts(parts, self.node, judge.targets, judge.is_single, judge.table)
            self._propose(
                phase, Candidate(score, int(sizes.max()), race.axis, edges, sizes.tolist(), branches.tolist())
            )

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

    def _weights(self, axis: int, up_to: Ints, beyond: Ints) -> tuple[Ints, Ints]:
        """The weight of the active queries that begin at ``up_to`` or before, and that end at ``beyond`` or after."""
        queries, active = self._queries(), self._active_queries()
        weight = queries.weight[active]

        def below(ends: Ints, limit: Ints) -> Ints:
            order = np.argsort(ends)
            running = np.append(0, np.cumsum(weight[order]))
            return running[np.searchsorted(ends[order], limit, side="left")]

        return (
            below(queries.low[active, axis], up_to + 1),
            int(weight.sum()) - below(queries.high[active, axis], beyond),
        )

    def _with_ends(self, axis: int, before: int, code: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The codes and the ends of active queries up to the last of them, each with the rows up to there."""
        ends = np.unique(self._queries().high[self._active_queries(), axis])
        cuts = np.union1d(code, ends[ends < code[-1]])
        return cuts, np.append(before, rows)[np.searchsorted(code, cuts, side="right")]

    # -- the choice ----------------------------------------------------------------------------------

    def _phases(self) -> Iterator[Phase]:
        """What the walked codes must tell."""
        if self.region is not None and len(self._active_queries()):
            yield Phase.QUERIES
        if self.judge.is_scored:
            yield Phase.SCORE
        if not self.judge.is_scored or self.judge.targets.median_below_gain > 0.0:
            yield Phase.MEDIAN

    def _settle(self) -> None:
        """Decide, if all is known."""
        if any(not race.is_done for race in self.races.values()) or self._wants_ranges([], fits=True):
            return
        self.is_decided = True
        best: Candidate | None = None
        for phase in self._phases() if self.races else ():
            is_first = best is None
            if phase is Phase.QUERIES:
                weight = int(self._queries().weight[self._active].sum())
                best = self._first(phase)
                if best is not None and best.score <= -float(self.n_rows * weight):
                    best = None
                if best is not None:
                    self._split(best, stays=True)
                    return
            elif phase is Phase.SCORE:
                best = self._first(phase)
            elif is_first and self.judge.is_scored:
                break  # no split was allowable
            elif is_first or self._gain(best) < self.judge.targets.median_below_gain:
                best = self._first(phase)
        if best is not None:
            self._split(best, stays=False)

    def _first(self, phase: Phase) -> Candidate | None:
        found = [race.best[phase] for race in self.races.values() if phase in race.best]
        if phase is Phase.MEDIAN:
            return min(
                found, key=lambda candidate: (-self._width(candidate.axis), candidate.axis), default=None
            )
        return min(found, key=Candidate.key, default=None)

    def _width(self, axis: int) -> float:
        low, high = int(self.bounds[0, axis]), int(self.bounds[1, axis])
        cover = self._cover(axis) if self.judge.axes.is_tree[axis] else 0
        return float(normalized_width(self.judge.grid, axis, low, high, cover))

    def _gain(self, best: Candidate | None) -> float:
        assert best is not None
        return float(gain_of_node(self.node, self.n_rows, self.judge.targets, self.judge.table, best.score))

    def _split(self, best: Candidate, *, stays: bool) -> None:
        axis, is_tree = best.axis, bool(self.judge.axes.is_tree[best.axis])
        states = []
        for j, branch in enumerate(best.branches):
            bounds = self.bounds.copy()
            bounds[3] = 0
            region = self.region.copy() if stays and self.region is not None else None
            if is_tree:
                bounds[0, axis] = self.judge.axes.node_low[branch]
                bounds[1, axis] = self.judge.axes.node_high[branch] - 1
                bounds[2, axis] = branch
            else:
                bounds[1 - j, axis] = best.edges[0] + j
                if region is not None:
                    region[1 - j, axis] = best.edges[0]
            states.append(State(bounds, region))
        threshold = self._cover(axis) if is_tree else int(best.edges[0])
        self.result = Split(axis, threshold, best.branches, best.sizes, best.edges, states)


def windows_of(spans: Iterator[tuple[int, int, int]] | Sequence[tuple[int, int, int]]) -> list[Window]:
    """Windows whose lines stand one after the other."""
    windows: list[Window] = []
    start = 0
    for low, high, axis in spans:
        windows.append(Window(axis, low, high, start))
        start += high - low + 1
    return windows
