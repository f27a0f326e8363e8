"""Choose the split of a node from counts that are gathered block by block [LDR08, section 5.1].

A ``Splitter`` chooses for one node of the partition tree. It says what must be gathered until it knows the split:

    while (plan := splitter.plan) is not None:
        state = plan.new(memory, spill)
        for block in the blocks of the node:
            state.add(block)
        splitter.take(plan.answer(state))
    splitter.result

The split is the one that ``kernels.grow`` chooses where all rows of the node are in memory, because the same kernels
choose it. One pass over the rows is enough, unless sensitive values are protected and what the requirement must know of
every code does not fit in memory. Then the best candidates are listed, and a further pass gathers what it must know of
these alone; if none of them is allowable, the next ones are listed, many more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.allowances import (
    NOTHING,
    Allowance,
    fewest_to_split,
    hand_down,
    leaving_of,
    may_divide,
)
from sfumato.methods.mondrian.candidates import (
    CANDIDATE,
    CandidatePlan,
    CandidateStatistics,
    is_worse,
    order_keys,
)
from sfumato.methods.mondrian.cell_scores import CellScores
from sfumato.methods.mondrian.kernels.choose_by_rows import width_of
from sfumato.methods.mondrian.kernels.counted import (
    balance_in_stretch,
    choose_in_stretch,
    cost_of_parts,
    fill_stretch_costs,
    find_active,
    is_gain_too_little,
    score_parts,
    score_stretch,
    take_in_stretch,
    take_parts,
)
from sfumato.methods.mondrian.kernels.frequency import cover
from sfumato.methods.mondrian.kernels.problem import BestSplit, Leaving, Queries, Scratch
from sfumato.methods.mondrian.kernels.statistics import Bins
from sfumato.methods.mondrian.loss_splits import EdgePlan, LossChooser
from sfumato.methods.mondrian.node_counts import Codes, CountPlan, Ints, NodeCounts, SplitCriteria, Stretch
from sfumato.methods.mondrian.node_range import NodeRange, QueryRegion
from sfumato.methods.mondrian.people_counts import AxisParts, Candidate, PeoplePlan
from sfumato.table.spill import Spill

FIRST_LISTED, MORE = 4096, 64
"""Candidates that are listed at first, and how many times as many each time that none of them is allowable."""

NO_FLOATS = np.zeros(0)
NO_INTS = np.zeros(0, dtype=np.int64)
NO_WORDS = np.zeros(0, dtype=np.uint64)
NO_TABLE = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The split of a node, and what is known of its children."""

    axis: int
    threshold: int  # ordered: the last code that goes left; tree: the hierarchy node that is specialized
    branches: list[int]  # 0 and 1, or the hierarchy nodes in use
    sizes: list[int]  # rows of each child
    edges: Ints  # the last code of each child but the last one
    ranges: list[NodeRange]  # of the children
    otherwise: int = -1  # see ``Nodes``
    parts: AxisParts | None = None  # one for each child, and one more for rows that are left out
    allowances: Sequence[Allowance] = ()  # of the children

    def places(self, codes: Codes) -> NDArray[np.intp]:
        """Which child each row goes to, by its codes of ``axis``."""
        return np.searchsorted(self.edges, codes, side="left")


class Purpose(Enum):
    """What a split is wanted for."""

    QUERIES = "queries"
    SCORE = "score"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, eq=False)
class Children:
    """The children of the hierarchy node that covers a node's rows, those in use."""

    at: Ints  # which child of the cover each is
    branch: Ints  # the hierarchy node
    words: Ints  # (children, words)
    last: Ints  # the last code of each

    @property
    def largest(self) -> int:
        return int(self.words[:, 0].max())


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The split of a node, None for a leaf, and the hierarchy nodes that cover its rows."""

    split: Split | None
    covers: Ints


@dataclass(frozen=True, slots=True, eq=False)
class ChoosePlan:
    """Choose the split of a node where its counts are gathered, so that these can stay there.

    Where one pass is not enough, the answer is the counts.
    """

    counting: CountPlan
    known: NodeRange
    allowance: Allowance = NOTHING

    @property
    def n_bytes(self) -> int:
        return self.counting.n_bytes

    def new(self, room: int, spill: Spill | None) -> NodeCounts:
        return self.counting.new(room, spill)

    def answer(self, state: NodeCounts) -> Choice | NodeCounts:
        splitter = Splitter(self.counting.criteria, self.known, self.counting.n_rows, self.allowance)
        splitter.take(state)
        return Choice(splitter.result, splitter.covers) if splitter.is_decided else state


Plan = CountPlan | CandidatePlan | EdgePlan | PeoplePlan


class Splitter:
    """Chooses the split of one node.

    plan              what must be gathered next; None once the split is known
    result            the split, None for a leaf
    counts            what the split was chosen from, if counts of a child can be subtracted from it
    low, high, cover  (axes,) what is known of the codes by then, see ``NodeRange``
    """

    def __init__(
        self, criteria: SplitCriteria, known: NodeRange, n_rows: int, allowance: Allowance = NOTHING
    ) -> None:
        self.criteria, self.known, self.n_rows, self.allowance = criteria, known, n_rows, allowance
        self.low, self.high, self.cover = known.low.copy(), known.high.copy(), known.cover.copy()
        self.is_exact = known.is_exact | (self.low == self.high)
        self.region = None if known.region is None else QueryRegion(*(ends.copy() for ends in known.region))
        self.result: Split | None = None
        self.counts: NodeCounts | None = None
        self._covers: Ints | None = None
        self._node: Ints = np.array([n_rows])
        self._active = NO_INTS
        self._children: dict[int, Children] = {}
        self._stands: dict[int, NDArray[np.bool_]] = {}
        """Of axes where children may be left out: which of them stay."""
        self._steps = self._choose()
        self.plan: Plan | None = next(self._steps, None)

    def take(self, found: Any) -> None:
        """Take what was gathered of all rows of the node, or what was chosen from it."""
        if isinstance(found, Choice):
            self.plan, self.result, self._covers = None, found.split, found.covers
            return
        try:
            self.plan = self._steps.send(found)
        except StopIteration:
            self.plan = None

    def count_as(self, parent: CountPlan) -> None:
        """Gather what was gathered of the node's parent, so that one can be subtracted from the other."""
        self.plan = parent

    @property
    def is_decided(self) -> bool:
        return self.plan is None

    @property
    def open_plan(self) -> Plan:
        """The plan of a splitter that has not decided."""
        assert self.plan is not None
        return self.plan

    def ask(self, *, keeps_counts: bool) -> Plan | ChoosePlan:
        """What must be gathered next; counts that nobody keeps are answered by what is chosen from them."""
        plan = self.open_plan
        if keeps_counts or not isinstance(plan, CountPlan):
            return plan
        return ChoosePlan(plan, self.known, self.allowance)

    @property
    def covers(self) -> Ints:
        """The lowest hierarchy node of each tree axis that covers the rows, -1 elsewhere; known once decided."""
        if self._covers is not None:
            return self._covers
        covers = np.full(self.criteria.n_axes, -1, dtype=np.int64)
        for axis in np.flatnonzero(self.criteria.axes.is_tree).tolist():
            covers[axis] = self._cover(axis)
        return covers

    def _cover(self, axis: int) -> int:
        known, low, high = int(self.cover[axis]), int(self.low[axis]), int(self.high[axis])
        return int(cover(self.criteria.grid, known, low, high))

    # -- the course of a choice ----------------------------------------------------------------------

    def _choose(self) -> Generator[Plan, Any, None]:
        axes, rules = self.criteria.axes, self.criteria.rules
        can_split = self.n_rows >= fewest_to_split(rules.least_rows, self.allowance)
        by_loss = self.criteria.loss is not None
        is_open = axes.may_split & ((self.low < self.high) | (by_loss & (axes.least_code > 0)))
        open_axes = np.flatnonzero(is_open) if can_split else NO_INTS
        unknown = axes.is_tree & ~self.is_exact
        unknown[open_axes] = False
        if not (len(open_axes) or unknown.any()):
            return
        first = (
            np.where(axes.least_code > 0, 0, self.low) if by_loss else self.low.copy()
        )  # missing is counted, too
        known = NodeRange(first, self.high.copy(), self.cover, self.is_exact, None)
        counts = yield CountPlan(
            self.criteria, known, self.n_rows, tuple(open_axes.tolist()), bool(unknown.any())
        )
        assert isinstance(counts, NodeCounts)
        yield from self._choose_from(counts)
        counts.discard()  # only now: whoever leaves before may hand them to somebody else
        if self.result is not None:
            self.result = replace(self.result, allowances=(yield from self._hand_down(self.result)))
        self.counts = counts if counts.can_subtract and not self._leaves_rows_out else None

    @property
    def _leaves_rows_out(self) -> bool:
        """Are some of the rows in no child of the split?"""
        return self.result is not None and sum(self.result.sizes) < self.n_rows

    def _choose_from(self, counts: NodeCounts) -> Generator[Plan, Any, None]:
        if self.criteria.loss is not None:
            yield from self._choose_by_loss(counts)
            return
        self._note(counts)
        for purpose in self._purposes():
            best = yield from self._find_best(purpose, counts)
            if best is not None and (
                purpose is not Purpose.SCORE or not self._is_left_to_median(best, counts)
            ):
                region = self.region if purpose is Purpose.QUERIES else None
                self._split(best, counts, NodeRange(self.low, self.high, self.cover, self.is_exact, region))
                return
            if best is None and purpose is Purpose.SCORE:
                return

    def _choose_by_loss(self, counts: NodeCounts) -> Generator[Plan, Any, None]:
        """The split that selections want most, or else saves most, see ``LossChooser``; ranges stay those of boxes."""
        if not counts.plan.axes:
            return
        here = NodeRange(self.low.copy(), self.high.copy(), self.cover, self.is_exact.copy(), None)
        if self.region is not None:
            self._note(counts)
            best = (yield from self._find_best(Purpose.QUERIES, counts)) if len(self._active) else None
            if best is not None:
                self._split(best, counts, replace(here, region=self.region))
                return
        found = yield from LossChooser(self.criteria, here, self.n_rows, counts, self.allowance).choose()
        if found is not None:
            children = [
                here.child(self.criteria.axes, found.axis, found.threshold, branch)
                for branch in found.branches
            ]
            self.result = Split(
                found.axis, found.threshold, found.branches, found.sizes, NO_INTS, children, found.otherwise,
                found.parts,
            )  # fmt: skip

    def _hand_down(self, split: Split) -> Generator[PeoplePlan, Any, list[Allowance]]:
        """The allowances of its children; where people count, it must be known how many they have."""
        sizes, left = split.sizes, self.allowance.rows - (self.n_rows - sum(split.sizes))
        people = self.criteria.people(self.n_rows)
        if left == 0:
            return [NOTHING] * len(sizes)
        by_rows = hand_down(left, sizes)
        if people is None:
            return [Allowance(rows, rows) for rows in by_rows]
        assert split.parts is not None
        found = yield people.plan_of_people(split.parts)
        n_people = found.n_people.tolist()
        gone = n_people[len(sizes)] if self._leaves_rows_out else 0
        by_people = hand_down(self.allowance.people - gone, n_people[: len(sizes)])
        return [Allowance(*both).if_any() for both in zip(by_rows, by_people, strict=True)]

    def _note(self, counts: NodeCounts) -> None:
        """What counts say of the node as a whole: its ranges, its words, the queries that overlap it."""
        if counts.code_ends is not None:
            self.low[:], self.high[:] = counts.code_ends.get()
            self.is_exact[:] = True
        else:
            for axis in counts.plan.axes:
                self.low[axis], self.high[axis] = counts.ends(axis)
                self.is_exact[axis] = True
        if counts.plan.axes:
            self._node = counts.totals()
        if self.region is not None:
            self._active = self._find_active(self.region)

    def _purposes(self) -> Iterator[Purpose]:
        """What splits are wanted for, in the order in which they are tried."""
        if len(self._active):
            yield Purpose.QUERIES
        if self.criteria.is_scored:
            yield Purpose.SCORE
        if self.criteria.targets is None or self.criteria.targets.median_below_gain is not None:
            yield Purpose.MEDIAN

    def _find_best(self, purpose: Purpose, counts: NodeCounts) -> Generator[Plan, Any, BestSplit | None]:
        """The best allowable split for a purpose, None if there is none."""
        axes = [axis for axis in counts.plan.axes if self.low[axis] < self.high[axis]]
        axes = self._order_axes(purpose, axes)
        if self.criteria.rules.sensitive is None or counts.statistics:
            return self._take_first(purpose, axes, partial(self._take, purpose, counts))
        people = self.criteria.people(self.n_rows, self.allowance.people)
        floor, n = None, FIRST_LISTED
        while True:
            listed, is_all = self._list_candidates(purpose, axes, counts, floor, n)
            if len(listed) == 0:
                return None
            if people is not None:
                first = yield from people.first_that_holds([self._parts_of(one, counts) for one in listed])
                if first is not None or is_all:
                    return None if first is None else self._as_best(listed[first])
                floor, n = listed[-1], n * MORE
                continue
            is_tree = self.criteria.axes.is_tree
            borders = {
                axis: self._find_children(axis, counts).last
                for axis in axes
                if is_tree[axis] and axis in listed["axis"]
            }
            found = yield CandidatePlan(self.criteria, listed, borders, is_all)
            assert isinstance(found, CandidateStatistics)
            take = partial(self._take_listed, found, counts)
            best = self._take_first(purpose, [axis for axis in axes if axis in found.edges], take)
            if best is not None or found.is_all:
                return best
            floor, n = found.listed[-1], n * MORE

    def _parts_of(self, one: Any, counts: NodeCounts) -> Candidate:
        """A candidate as parts, with the rows of each."""
        axis, code = int(one["axis"]), int(one["code"])
        if self.criteria.axes.is_tree[axis]:
            children = self._find_children(axis, counts)
            parts = AxisParts(axis, children.last[:-1], np.arange(len(children.last)))
            return Candidate(parts, children.words[:, 0], leaving=self._leaving_of(axis, children))
        sizes = np.array([one["rows"], self.n_rows - one["rows"]])
        return Candidate(AxisParts(axis, np.array([code]), np.arange(2)), sizes)

    @staticmethod
    def _as_best(one: Any) -> BestSplit:
        return BestSplit(int(one["axis"]), int(one["code"]), one["score"].item(), int(one["largest"]))

    def _order_axes(self, purpose: Purpose, axes: Sequence[int]) -> list[int]:
        """Median: the widest first. Else ordered axes before those with a hierarchy, as ``choose_split`` goes."""
        if purpose is Purpose.MEDIAN:
            return sorted(axes, key=lambda axis: (-self._width(axis), axis))
        if purpose is Purpose.QUERIES:
            return list(axes)
        return sorted(axes, key=lambda axis: (bool(self.criteria.axes.is_tree[axis]), axis))

    def _take_first(self, purpose: Purpose, axes: Sequence[int], take: Any) -> BestSplit | None:
        """The best split of all axes; for Median that of the first axis that has one."""
        # no part is smaller than 0 rows: a tie with no split loses
        none = BestSplit(-1, -1, self._no_split(purpose), 0 if purpose is Purpose.QUERIES else self.n_rows)
        best = none
        for axis in axes:
            best = BestSplit(*take(axis, best))
            if purpose is Purpose.MEDIAN and best.axis >= 0:
                break
        return best if best.axis >= 0 else None

    def _no_split(self, purpose: Purpose) -> float:
        """A score that a split must exceed."""
        if purpose is not Purpose.QUERIES:
            return self.criteria.lowest
        return self.criteria.score_type(-self.n_rows * self._active_weight()).item()

    # -- one axis ------------------------------------------------------------------------------------

    def _take(self, purpose: Purpose, counts: NodeCounts, axis: int, best: BestSplit) -> BestSplit:
        """The best allowable split of an axis if it beats ``best``, else ``best``."""
        criteria = self.criteria
        rules, bins = criteria.rules, counts.bins(axis)
        if criteria.axes.is_tree[axis]:
            children = self._find_children(axis, counts)
            if not may_divide(children.words[:, 0], rules.least_rows, self.allowance):
                return best
            score = self._score_children(purpose, axis, children, counts)
            return self._take_parts(axis, children, score, bins, best)
        for m, scratch in self._walk(purpose, axis, counts):
            if purpose is Purpose.MEDIAN:
                best = balance_in_stretch(axis, m, self.n_rows, bins, rules, scratch, best)
            elif purpose is Purpose.SCORE and not criteria.features:
                best = choose_in_stretch(
                    axis, m, self.n_rows, int(self._node[-1]), self._node, bins,
                    criteria.targets, rules, criteria.table, scratch, best,
                )  # fmt: skip
            else:
                best = take_in_stretch(axis, m, self.n_rows, bins, rules, scratch, best)
        return best

    def _walk(self, purpose: Purpose, axis: int, counts: NodeCounts) -> Iterator[tuple[int, Scratch]]:
        """The stretches of an ordered axis: how many thresholds each has, and they with totals and scores.

        The scores of targets are left to those who compare them.
        """
        by_cells = None
        if purpose is Purpose.SCORE and self.criteria.features:
            by_cells = CellScores(counts, axis)
        before, left = -1, np.zeros(self.criteria.n_words, dtype=np.int64)
        for stretch in counts.stretches(axis):
            m = len(stretch.code)
            scratch = self._scratch(stretch, left)
            if purpose is Purpose.QUERIES:
                m = int(
                    fill_stretch_costs(
                        axis, m, self.n_rows, before, int(left[0]), self._active, self._queries(), scratch
                    )
                )
            elif by_cells is not None:
                scratch.score[:m] = by_cells.score_thresholds(stretch.code)
            yield m, scratch
            before = int(stretch.code[-1])
            left = left + stretch.words.sum(axis=0)

    def _scratch(self, stretch: Stretch, left: Ints) -> Scratch:
        """Working space with the codes of a stretch, and the running totals up to each."""
        n_more = len(self._active)
        m, words = stretch.words.shape
        code = np.empty(m + n_more, dtype=np.int64)
        code[:m] = stretch.code
        total = np.empty((max(2, words), m + n_more), dtype=np.int64)
        np.cumsum(stretch.words.T, axis=1, out=total[:words, :m])
        total[:words, :m] += left[:, None]
        return self._make_scratch(code, total)

    def _make_scratch(self, code: Ints, total: Ints, place: Ints = NO_INTS) -> Scratch:
        criteria, n = self.criteria, len(code)
        return Scratch(
            bins=NO_INTS, listed=NO_WORDS, base=NO_WORDS, width=NO_FLOATS, places=NO_TABLE.view(np.uint64),
            code=code, total=total, score=np.empty(n, dtype=criteria.score_type),
            right=np.empty(n, dtype=criteria.score_type), lowest=criteria.lowest,
            is_fine=np.empty((2, n), dtype=np.bool_),
            order=NO_INTS, key=NO_INTS, place=place, values=criteria.values,
            is_top=NO_TABLE.astype(np.bool_), top=NO_TABLE, n_top=NO_INTS, work=criteria.work,
        )  # fmt: skip

    def _width(self, axis: int) -> float:
        low, high = int(self.low[axis]), int(self.high[axis])
        known = self._cover(axis) if self.criteria.axes.is_tree[axis] else 0
        return float(width_of(self.criteria.grid, axis, low, high, known))

    # -- hierarchies ---------------------------------------------------------------------------------

    def _child_nodes(self, axis: int) -> Ints:
        """The children of the hierarchy node that covers the rows."""
        axes, node = self.criteria.axes, self._cover(axis)
        start = axes.child_start[node]
        return axes.child[start : start + axes.n_children[node]]

    def _find_children(self, axis: int, counts: NodeCounts) -> Children:
        """The children that have rows, and their words."""
        if axis not in self._children:
            nodes, axes = self._child_nodes(axis), self.criteria.axes
            words = np.zeros((len(nodes), self.criteria.n_words), dtype=np.int64)
            for stretch in counts.stretches(axis):
                child = np.searchsorted(axes.node_low[nodes], stretch.code, side="right") - 1
                np.add.at(words, child, stretch.words)
            at = np.flatnonzero(words[:, 0])
            self._children[axis] = Children(at, nodes[at], words[at], axes.node_high[nodes[at]] - 1)
        return self._children[axis]

    def _score_children(self, purpose: Purpose, axis: int, children: Children, counts: NodeCounts) -> float:
        criteria = self.criteria
        found: tuple[float, int]  # with the largest part
        if purpose is Purpose.MEDIAN:
            return criteria.score_type(0).item()
        if purpose is Purpose.QUERIES:
            sizes = np.cumsum(children.words[:, 0])
            scratch = self._make_scratch(children.at, np.stack([sizes, sizes]))
            found = cost_of_parts(
                axis, self._cover(axis), len(sizes), self._active, self._queries(), criteria.grid, scratch
            )
            return found[0]
        if criteria.features:
            first = criteria.axes.node_low[children.branch]
            return CellScores(counts, axis).score_groups(list(zip(first, children.last + 1, strict=True)))
        return self._score_words(children.words)

    def _score_words(self, words: Ints) -> float:
        """The score of the division into parts with these words (parts, words)."""
        criteria, scores = self.criteria, np.empty(len(words), dtype=self.criteria.score_type)
        found: tuple[float, int]  # with the largest part
        found = score_parts(words, self._node, criteria.targets, criteria.table, scores)
        return found[0]

    def _take_parts(
        self, axis: int, children: Children, score: float, bins: Bins | None, best: BestSplit
    ) -> BestSplit:
        """The split into these children if it is allowable and beats ``best``, else ``best``."""
        place = NO_INTS if bins is None else np.searchsorted(bins.edges, children.last, side="left")
        sizes = np.cumsum(children.words[:, 0])
        scratch = self._make_scratch(children.at, np.stack([sizes, sizes]), place)
        scratch = scratch._replace(leaving=self._leaving_of(axis, children))
        n, rules = len(children.at), self.criteria.rules
        return BestSplit(*take_parts(axis, n, score, children.largest, bins, rules, scratch, best))

    def _leaving_of(self, axis: int, children: Children) -> Leaving | None:
        """Working space for children that may be left out, None if none may; which of them stand is looked up there."""
        if not self.allowance:
            return None
        leaving = leaving_of(self.criteria.grid, axis, self._cover(axis), children.branch, self.allowance)
        self._stands[axis] = leaving.stands
        return leaving

    # -- selections ----------------------------------------------------------------------------------

    def _queries(self) -> Queries:
        assert self.criteria.queries is not None
        return self.criteria.queries

    def _find_active(self, region: QueryRegion) -> Ints:
        """The queries that overlap the region of the node; on a tree the region is the range of the cover."""
        axes, queries = self.criteria.axes, self._queries()
        for axis in np.flatnonzero(axes.is_tree).tolist():
            node = self._cover(axis)
            region.after[axis] = axes.node_low[node] - 1
            region.last[axis] = axes.node_high[node] - 1
        active = np.empty(len(queries.weight), dtype=np.int64)
        n_active, _ = find_active(queries, np.stack(region), active)
        return active[:n_active]

    def _active_weight(self) -> int:
        return int(self._queries().weight[self._active].sum())

    # -- candidates ----------------------------------------------------------------------------------

    def _list_candidates(
        self, purpose: Purpose, axes: Sequence[int], counts: NodeCounts, floor: Any, n: int
    ) -> tuple[NDArray[Any], bool]:
        """The best n candidates after ``floor``, best first, whether or not they are allowable; and are these all?"""
        listed, is_all = np.zeros(0, dtype=CANDIDATE[self.criteria.score_type]), True
        for rank, axis in enumerate(axes):
            for found in self._score_candidates(purpose, axis, counts):
                found["axis"], found["rank"] = axis, rank if purpose is Purpose.MEDIAN else 0
                new = found if floor is None else found[is_worse(found, floor)]
                listed = np.concatenate([listed, new])
                listed = listed[np.lexsort(order_keys(listed))]
                is_all &= len(listed) <= n
                listed = listed[:n]
        return listed, is_all

    def _score_candidates(self, purpose: Purpose, axis: int, counts: NodeCounts) -> Iterator[NDArray[Any]]:
        """The candidates of an axis that leave enough rows in every part."""
        criteria, least = self.criteria, self.criteria.rules.least_rows
        no_split, record = self._no_split(purpose), CANDIDATE[criteria.score_type]
        if criteria.axes.is_tree[axis]:
            children = self._find_children(axis, counts)
            if may_divide(children.words[:, 0], least, self.allowance):
                score = self._score_children(purpose, axis, children, counts)
                if score > no_split:
                    yield np.array([(0, score, children.largest, axis, -1, 0)], dtype=record)
            return
        for m, scratch in self._walk(purpose, axis, counts):
            if purpose is Purpose.SCORE and not criteria.features:
                first, last = score_stretch(
                    m,
                    self.n_rows,
                    int(self._node[-1]),
                    self._node,
                    criteria.targets,
                    least,
                    criteria.table,
                    scratch,
                )
            else:
                first, last = np.searchsorted(scratch.total[0, :m], [least, self.n_rows - least + 1]).tolist()
            found = np.zeros(max(0, last - first), dtype=record)
            found["score"] = 0 if purpose is Purpose.MEDIAN else scratch.score[first:last]
            found["code"], found["rows"] = scratch.code[first:last], scratch.total[0, first:last]
            found["largest"] = np.maximum(found["rows"], self.n_rows - found["rows"])
            yield found[found["score"] > no_split]

    def _take_listed(
        self, found: CandidateStatistics, counts: NodeCounts, axis: int, best: BestSplit
    ) -> BestSplit:
        """The best allowable one of the candidates of an axis if it beats ``best``, else ``best``."""
        own = found.listed[found.listed["axis"] == axis]
        if self.criteria.axes.is_tree[axis]:
            children = self._find_children(axis, counts)
            return self._take_parts(axis, children, own["score"][0].item(), found.bins(axis), best)
        own = np.sort(own, order="code")
        rows = own["rows"].copy()
        scratch = self._make_scratch(own["code"].copy(), np.stack([rows, rows]))
        scratch.score[:] = own["score"]
        return BestSplit(
            *take_in_stretch(
                axis, len(own), self.n_rows, found.bins(axis), self.criteria.rules, scratch, best
            )
        )

    # -- the choice ----------------------------------------------------------------------------------

    def _is_left_to_median(self, best: BestSplit, counts: NodeCounts) -> bool:
        """Does it gain less than the limit below which Median splits? Never if there is no such limit."""
        targets = self.criteria.targets
        assert targets is not None
        if targets.median_below_gain is None:
            return False
        if self.criteria.features:
            unsplit = CellScores(counts, counts.plan.axes[0]).score_unsplit()
        else:
            unsplit = self._score_words(self._node[np.newaxis])
        return bool(
            is_gain_too_little(
                best.score, unsplit, self.n_rows, targets.gain_scale, targets.median_below_gain
            )
        )

    def _split(self, best: BestSplit, counts: NodeCounts, here: NodeRange) -> None:
        """Take a split of a node of this range."""
        axes, axis = self.criteria.axes, int(best.axis)
        if axes.is_tree[axis]:
            children = self._find_children(axis, counts)
            stays = self._stands.get(axis, np.ones(len(children.at), dtype=np.bool_))
            threshold, branches = self._cover(axis), children.branch[stays].tolist()
            edges, sizes = children.last[stays][:-1], children.words[stays, 0].tolist()
            otherwise = int(np.argmax(sizes))
            parts = AxisParts(
                axis, children.last[:-1], np.where(stays, np.cumsum(stays) - 1, np.count_nonzero(stays))
            )
        else:
            threshold, branches = int(best.code), [0, 1]
            left = counts.rows_up_to(axis, threshold)
            edges, sizes = np.array([threshold]), [left, self.n_rows - left]
            otherwise = 0  # missing is the lowest number
            parts = AxisParts(axis, edges, np.arange(2))
        ranges = [here.child(axes, axis, threshold, branch) for branch in branches]
        if self.criteria.loss is None:
            otherwise = -1
        self.result = Split(axis, threshold, branches, sizes, edges, ranges, otherwise, parts)
