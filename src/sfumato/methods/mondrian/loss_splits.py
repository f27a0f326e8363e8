"""Choose the split of a node by loss from counts that are gathered block by block; see ``kernels.loss``.

The split is the one that growth in memory chooses, because the same kernels list and score the candidates. Only the
requirement is asked here, from statistics of the codes, and only for the best candidates, one after the other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.kernels.counted import (
    children_by_loss,
    nodes_by_loss,
    steps_of,
    thresholds_by_loss,
)
from sfumato.methods.mondrian.kernels.frequency import cover
from sfumato.methods.mondrian.kernels.problem import (
    CHILDREN,
    ONE_NODE,
    REST,
    THRESHOLD,
    ListedSplits,
    Scratch,
    new_leaving,
    new_listed_splits,
)
from sfumato.methods.mondrian.kernels.statistics import Bins
from sfumato.methods.mondrian.node_counts import Ints, NodeCounts, SplitCriteria
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.people_counts import AxisParts, Candidate, PeopleAsker, PeoplePlan, Standing
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.table.spill import Spill

FIRST_LISTED, MORE = 4096, 64
"""Candidates whose statistics are gathered at first, and how many times as many each time that none is allowable."""

CANDIDATE = np.dtype(
    [("axis", np.int64), ("kind", np.int64), ("number", np.int64), ("score", np.float64), ("largest", np.int64),
     ("n_first", np.int64), ("goes_left", np.bool_), ("n_left", np.int64)]
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class FoundCodes:
    """The codes of an axis that occur, ascending, with the words of each."""

    code: Ints
    words: Ints  # (codes, words)

    @property
    def n_missing(self) -> int:
        """Rows of code 0."""
        return int(self.words[0, 0]) if self.code[0] == 0 else 0


@dataclass(frozen=True, slots=True, eq=False)
class LossChoice:
    """The split of a node that was chosen by loss."""

    axis: int
    threshold: int
    branches: list[int]
    sizes: list[int]
    otherwise: int
    parts: AxisParts
    """One for each branch, and one more for rows that are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgePlan:
    """Gather what the requirement must know of the rows between some codes of each axis."""

    criteria: SplitCriteria
    edges: Mapping[int, Ints]
    """The last code of each bin but the last one."""

    @property
    def n_bytes(self) -> int:
        """Memory of the statistics."""
        n_bins = sum(len(edges) + 1 for edges in self.edges.values())
        return n_bins * GroupStatistics.bytes_per_group(self.criteria.rules)

    def new(self, _room: int, _spill: Spill | None = None) -> EdgeStatistics:
        """Statistics of no row yet."""
        return EdgeStatistics(self)

    def answer(self, state: EdgeStatistics) -> EdgeStatistics:
        """The statistics themselves."""
        return state


class EdgeStatistics:
    """The state of an ``EdgePlan``."""

    def __init__(self, plan: EdgePlan) -> None:
        self.edges = plan.edges
        self.statistics = {
            axis: GroupStatistics(len(edges) + 1, plan.criteria.rules) for axis, edges in plan.edges.items()
        }

    def add(self, block: Block) -> None:
        """Add some rows of the node."""
        for axis, statistics in self.statistics.items():
            statistics.add(block.rows, np.searchsorted(self.edges[axis], block.rows[:, axis], side="left"))

    def merge(self, other: EdgeStatistics) -> None:
        """Add the statistics of other rows of the node."""
        for axis, statistics in self.statistics.items():
            statistics.merge(other.statistics[axis])

    def bins(self, axis: int) -> Bins:
        """Running totals over the bins of an axis; ask once."""
        return self.statistics[axis].as_bins(self.edges[axis])


class KnownParts:
    """Decides whether parts of a node satisfy the requirement, from running totals over the codes of each axis."""

    def __init__(self, criteria: SplitCriteria, bins: Mapping[int, Bins], first: Mapping[int, int]) -> None:
        self.criteria, self.bins, self.first = criteria, bins, first

    def _up_to(self, axis: int, code: int) -> tuple[Any, Any, Any]:
        bins = self.bins[axis]
        if code < self.first[axis]:
            return np.int64(0), np.zeros(bins.values.shape[1], dtype=np.int64), np.zeros_like(bins.moments[0])
        at = int(np.searchsorted(bins.edges, code, side="left"))
        return bins.n_rows[at], bins.values[at].astype(np.int64), bins.moments[at]

    def _between(self, axis: int, low: int, high: int) -> list[Any]:
        """What is known of the codes (low, high]."""
        return [
            after - before
            for before, after in zip(self._up_to(axis, low), self._up_to(axis, high), strict=True)
        ]

    def _all(self, axis: int) -> list[Any]:
        bins = self.bins[axis]
        return [bins.n_rows[-1], bins.values[-1].astype(np.int64), bins.moments[-1]]

    def hold(self, parts: Sequence[Sequence[Any]]) -> NDArray[np.bool_]:
        """Which of these parts satisfy the requirement."""
        groups = GroupStatistics(len(parts), self.criteria.rules)
        groups.n_rows = np.array([part[0] for part in parts], dtype=np.int64)
        groups.values = np.array([part[1] for part in parts], dtype=np.int64).reshape(len(parts), -1)
        groups.moments = np.array([part[2] for part in parts], dtype=np.int64).reshape(groups.moments.shape)
        return groups.hold()

    def both_hold(self, candidate: Any) -> bool:
        """Do both parts of a division in two, but for one left out?"""
        axis, number = int(candidate["axis"]), int(candidate["number"])
        if candidate["kind"] == THRESHOLD:
            first = self._between(axis, -1, number)
            if not candidate["goes_left"]:
                first = [one - other for one, other in zip(first, self._missing(axis), strict=True)]
        else:
            axes = self.criteria.axes
            first = self._between(axis, int(axes.node_low[number]) - 1, int(axes.node_high[number]) - 1)
        if candidate["n_left"]:
            return bool(self.hold([first]).all())
        others = [one - other for one, other in zip(self._all(axis), first, strict=True)]
        return bool(self.hold([first, others]).all())

    def _missing(self, axis: int) -> list[Any]:
        has_missing = bool(self.criteria.axes.least_code[axis])
        return self._between(axis, -1, 0 if has_missing else -1)

    def find_standing(self, axis: int, children: Ints) -> Standing:
        """Which of these hierarchy nodes satisfy the requirement."""
        axes = self.criteria.axes
        parts = [
            self._between(axis, int(axes.node_low[node]) - 1, int(axes.node_high[node]) - 1)
            for node in children
        ]
        stands = self.hold(parts) if parts else np.zeros(0, dtype=np.bool_)
        left = [part for part, alone in zip(parts, stands, strict=True) if not alone and part[0] > 0]
        if not left:
            return Standing(stands, True)
        return Standing(stands, bool(self.hold([[sum(each) for each in zip(*left, strict=True)]])[0]))


class LossChooser:
    """Chooses the split of one node by loss."""

    def __init__(
        self,
        criteria: SplitCriteria,
        known: NodeRange,
        n_rows: int,
        counts: NodeCounts,
        allowance: Allowance = NOTHING,
    ) -> None:
        assert criteria.loss is not None
        self.allowance = allowance
        self.criteria, self.known, self.n_rows, self.counts = criteria, known, n_rows, counts
        self.loss, self.axes = criteria.loss, criteria.axes
        self.node = counts.totals()
        self._children: dict[int, tuple[Ints, Ints]] = {}

    def choose(self) -> Generator[EdgePlan | PeoplePlan, Any, LossChoice | None]:
        """The best allowable split, None if there is none; asks for statistics where the requirement needs them."""
        rules = self.criteria.rules
        if (people := self.criteria.people(self.n_rows, self.allowance.people)) is not None:
            return (yield from self._choose_of_people(people))
        if rules.sensitive is None:
            stand = self._stand_by_rows()
            return self._finish(self._list_best(1, None, stand), stand)
        if self.counts.statistics:
            bins = {axis: self.counts.bins(axis) for axis in self.counts.plan.axes}
            first = {axis: int(self.counts.plan.known.low[axis]) for axis in bins}
            known = KnownParts(self.criteria, {a: own for a, own in bins.items() if own is not None}, first)
            stand = self._stand(known)
            return self._finish(self._first_that_holds(self._list_best(None, None, stand), known), stand)
        trees = {axis: self._child_edges(axis) for axis in self._tree_axes()}
        stand = {}
        if trees:
            found = yield EdgePlan(self.criteria, trees)
            own = {axis: found.bins(axis) for axis in trees}
            stand = self._stand(KnownParts(self.criteria, own, dict.fromkeys(own, 0)))
        floor, n = None, FIRST_LISTED
        while True:
            listed = self._list_best(n, floor, stand)
            if len(listed) == 0:
                return None
            edges = self._edges_of(listed)
            found = yield EdgePlan(self.criteria, edges)
            own = {axis: found.bins(axis) for axis in edges}
            best = self._first_that_holds(listed, KnownParts(self.criteria, own, dict.fromkeys(own, 0)))
            if len(best) or len(listed) < n:
                return self._finish(best, stand)
            floor, n = listed[-1], n * MORE

    def _choose_of_people(self, people: PeopleAsker) -> Generator[PeoplePlan, Any, LossChoice | None]:
        """The best split whose parts hold by their people: these are counted for the best ones, until one holds."""
        trees = self._tree_axes()
        found = yield from people.find_standing([self._child_parts(axis) for axis in trees])
        stand = dict(zip(trees, found, strict=True))
        floor, n = None, FIRST_LISTED
        while True:
            listed = self._list_best(n, floor, stand)
            if len(listed) == 0:
                return None
            first = yield from people.first_that_holds([self._parts_of(one) for one in listed])
            if first is not None:
                return self._finish(listed[first : first + 1], stand)
            if len(listed) < n:
                return None
            floor, n = listed[-1], n * MORE

    def _child_parts(self, axis: int) -> tuple[AxisParts, Ints]:
        """The children of the cover that have rows as parts, and their rows."""
        nodes, rows = self._find_children(axis)
        return AxisParts(axis, self.axes.node_high[nodes[:-1]] - 1, np.arange(len(nodes))), rows

    def _parts_of(self, one: Any) -> Candidate:
        """A candidate as parts; of children it is known that they hold."""
        n_first = int(one["n_first"])
        if one["kind"] == CHILDREN:
            return Candidate(None, np.zeros(0, dtype=np.int64))
        sizes = np.array([n_first, self.n_rows - n_first])
        return Candidate(self._two_parts(one), sizes, leaves=bool(one["n_left"]))

    def _two_parts(self, one: Any) -> AxisParts:
        """The parts of a division in two."""
        axis, number = int(one["axis"]), int(one["number"])
        if one["kind"] == THRESHOLD:
            first_code = int(self.axes.least_code[axis] > 0 and not one["goes_left"])  # missing is code 0
            edges = [first_code - 1, number]
        else:
            edges = [int(self.axes.node_low[number]) - 1, int(self.axes.node_high[number]) - 1]
        return AxisParts(axis, np.array(edges), np.array([1, 0, 1]))

    # -- candidates ----------------------------------------------------------------------------------

    def _list_best(self, n: int | None, floor: Any, stand: Mapping[int, Standing]) -> NDArray[Any]:
        """The best n candidates after ``floor``, best first."""
        listed = np.zeros(0, dtype=CANDIDATE)
        for axis in self.counts.plan.axes:
            for found in self._candidates(axis, stand):
                new = found if floor is None else found[_is_after(found, floor)]
                listed = np.concatenate([listed, new])
                listed = listed[np.lexsort(_order(listed))][:n]
        return listed

    def _candidates(self, axis: int, stand: Mapping[int, Standing]) -> Iterator[NDArray[Any]]:
        if not self.axes.is_tree[axis]:
            yield from self._thresholds(axis)
            return
        codes = self._codes(axis)
        if len(codes.code) < 2:
            return
        children, _ = self._find_children(axis)
        stands, rest_holds, may_go = stand[axis]
        top, scratch = self._top(axis, codes), self._scratch(codes, len(children))
        all_stay = rest_holds and (self.loss.has_rest or bool(stands.all()))
        if all_stay or (self.allowance and may_go):
            split = children_by_loss(
                axis, top, len(codes.code), self.n_rows, self.node, not all_stay, self.criteria.grid,
                self.criteria.targets, self.loss, self.criteria.table, scratch, self._flags(axis, top, stands),
            )  # fmt: skip
            if split.axis >= 0:
                record = (axis, CHILDREN, top, split.score, split.largest, 0, False, split.n_left)
                yield np.array([record], dtype=CANDIDATE)
        if not self.loss.has_rest:
            return
        n = nodes_by_loss(
            axis, top, len(codes.code), self.n_rows, self.node, self.criteria.grid, self.criteria.targets,
            self.criteria.rules, self.loss, self.criteria.table, scratch,
        )  # fmt: skip
        yield self._listed(axis, ONE_NODE, n, scratch)

    def _thresholds(self, axis: int) -> Iterator[NDArray[Any]]:
        """The thresholds of an ordered axis, stretch by stretch; each begins with the last code of the one before."""
        has_missing = bool(self.axes.least_code[axis])
        low, high = self.counts.ends(axis)
        missing, least = np.zeros(len(self.node), dtype=np.int64), low
        if has_missing and low == 0:
            first = next(self.counts.stretches(axis))
            missing[:] = first.words[0]
            least = self._second_code(axis)
        if least < 0 or (least == high and low == high):
            return
        facts = np.zeros(4, dtype=np.int64)
        steps_of(
            axis, least, high, int(self.known.low[axis]), int(self.known.high[axis]), self.criteria.grid, self.loss,
            facts,
        )  # fmt: skip
        before, left = None, np.zeros(len(self.node), dtype=np.int64)
        for stretch in self.counts.stretches(axis):
            code, words = stretch.code, stretch.words
            if before is not None:
                code, words = np.append(before[0], code), np.concatenate([before[1], words])
            scratch = self._scratch(FoundCodes(code, words), 2, left)
            n = thresholds_by_loss(
                axis, len(code), self.n_rows, facts, missing, self.node, self.criteria.grid, self.criteria.targets,
                self.criteria.rules, self.loss, self.criteria.table, scratch,
            )  # fmt: skip
            yield self._listed(axis, THRESHOLD, n, scratch)
            left = left + words[:-1].sum(axis=0)
            before = code[-1:], words[-1:]

    def _second_code(self, axis: int) -> int:
        """The least code that is a value, -1 if there is none."""
        for stretch in self.counts.stretches(axis):
            values = stretch.code[stretch.code > 0]
            if len(values):
                return int(values[0])
        return -1

    def _listed(self, axis: int, kind: int, n: int, scratch: Scratch) -> NDArray[Any]:
        listed = scratch.listed_splits
        assert listed is not None
        out = np.zeros(n, dtype=CANDIDATE)
        out["axis"], out["kind"], out["number"] = axis, kind, listed.number[:n]
        out["score"], out["n_first"] = listed.score[:n], listed.n_first[:n]
        out["largest"] = np.maximum(out["n_first"], self.n_rows - out["n_first"])
        out["goes_left"], out["n_left"] = listed.last[:n] != 0, listed.n_left[:n]
        return out[out["score"] > 0]

    # -- what is counted -----------------------------------------------------------------------------

    def _codes(self, axis: int) -> FoundCodes:
        stretches = list(self.counts.stretches(axis))
        code = np.concatenate([one.code for one in stretches])
        return FoundCodes(code, np.concatenate([one.words for one in stretches]))

    def _tree_axes(self) -> list[int]:
        return [axis for axis in self.counts.plan.axes if self.axes.is_tree[axis]]

    def _top(self, axis: int, codes: FoundCodes) -> int:
        known = int(self.known.cover[axis])
        return int(cover(self.criteria.grid, known, int(codes.code[0]), int(codes.code[-1])))

    def _find_children(self, axis: int) -> tuple[Ints, Ints]:
        """The children of the cover that have rows, and their rows."""
        if axis not in self._children:
            codes, axes = self._codes(axis), self.axes
            top = self._top(axis, codes)
            start = axes.child_start[top]
            nodes = axes.child[start : start + axes.n_children[top]]
            rows = np.zeros(len(nodes), dtype=np.int64)
            if len(nodes):
                at = np.searchsorted(axes.node_low[nodes], codes.code, side="right") - 1
                np.add.at(rows, at, codes.words[:, 0])
            self._children[axis] = nodes[rows > 0], rows[rows > 0]
        return self._children[axis]

    def _stand_by_rows(self) -> dict[int, Standing]:
        """Which children stand alone, where only rows are counted."""
        least, found = self.criteria.rules.least_rows, {}
        for axis in self._tree_axes():
            _, rows = self._find_children(axis)
            stands = rows >= least
            n_left = int(rows[~stands].sum())
            found[axis] = Standing(stands, n_left == 0 or n_left >= least)
        return found

    def _stand(self, known: KnownParts) -> dict[int, Standing]:
        return {axis: known.find_standing(axis, self._find_children(axis)[0]) for axis in self._tree_axes()}

    def _flags(self, axis: int, top: int, stands: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The same by number of child of ``top``."""
        nodes, axes = self._find_children(axis)[0], self.axes
        start = axes.child_start[top]
        of_top = axes.child[start : start + axes.n_children[top]]
        flags = np.zeros(max(1, len(of_top)), dtype=np.bool_)
        flags[np.searchsorted(of_top, nodes[stands])] = True
        return flags

    def _child_edges(self, axis: int) -> Ints:
        nodes = self._find_children(axis)[0]
        ends = np.concatenate([self.axes.node_low[nodes] - 1, self.axes.node_high[nodes] - 1])
        return np.unique(ends[ends >= 0])

    def _edges_of(self, listed: NDArray[Any]) -> dict[int, Ints]:
        edges: dict[int, Ints] = {}
        for axis in np.unique(listed["axis"]).tolist():
            own = listed[listed["axis"] == axis]
            if self.axes.is_tree[axis]:
                nodes = own["number"][own["kind"] == ONE_NODE]
                ends = [self.axes.node_low[nodes] - 1, self.axes.node_high[nodes] - 1]
            else:
                ends = [own["number"], np.zeros(int(self.axes.least_code[axis] > 0), dtype=np.int64)]
            found = np.unique(np.concatenate(ends))
            edges[axis] = found[found >= 0]
        return edges

    def _scratch(self, codes: FoundCodes, n_children: int, left: Ints | None = None) -> Scratch:
        """Working space with these codes, and the running totals up to each."""
        criteria, m = self.criteria, len(codes.code)
        total = np.cumsum(codes.words.T, axis=1, dtype=np.int64)
        total = total if left is None else total + left[:, None]
        n_hierarchy = len(self.axes.node_low)
        n_parts = max(n_children, int(self.axes.n_children.max(initial=0))) + 1
        listed: ListedSplits = new_listed_splits(m + 2 * n_hierarchy, n_parts, len(self.node))
        leaving = None
        if self.allowance:
            leaving = new_leaving(1)
            leaving.allowance[:] = self.allowance
        none, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
        return Scratch(
            bins=none, listed=none.view(np.uint64), base=none.view(np.uint64), width=floats,
            places=np.zeros((0, 0), dtype=np.uint64), code=np.ascontiguousarray(codes.code),
            total=np.ascontiguousarray(total), score=floats, right=floats, lowest=criteria.lowest,
            is_fine=np.zeros((2, 0), dtype=np.bool_), order=none, key=none, place=none, values=criteria.values,
            is_top=np.zeros((0, 0), dtype=np.bool_), top=np.zeros((0, 0), dtype=np.int64), n_top=none,
            work=criteria.work, listed_splits=listed, leaving=leaving,
        )  # fmt: skip

    # -- the choice ----------------------------------------------------------------------------------

    def _first_that_holds(self, listed: NDArray[Any], known: KnownParts) -> NDArray[Any]:
        """The first candidate that is allowable; none if none is."""
        for at in range(len(listed)):
            if listed["kind"][at] == CHILDREN or known.both_hold(listed[at]):
                return listed[at : at + 1]
        return listed[:0]

    def _finish(self, listed: NDArray[Any], stand: Mapping[int, Standing]) -> LossChoice | None:
        if len(listed) == 0:
            return None
        best = listed[0]
        axis, number, n_first = int(best["axis"]), int(best["number"]), int(best["n_first"])
        if best["kind"] == THRESHOLD:
            otherwise = 0 if best["goes_left"] else 1
            sizes = [n_first, self.n_rows - n_first]
            return LossChoice(axis, number, [0, 1], sizes, otherwise, self._two_parts(best))
        if best["kind"] == ONE_NODE:
            top, parts = int(self.known.cover[axis]), self._two_parts(best)
            if best["n_left"]:
                return LossChoice(axis, top, [number], [n_first], 0, parts)
            return LossChoice(axis, top, [number, REST], [n_first, self.n_rows - n_first], 1, parts)
        stands = stand[axis].alone
        nodes, rows = self._find_children(axis)
        parts = self._child_parts(axis)[0]._replace(
            part=np.where(stands, np.cumsum(stands) - 1, np.count_nonzero(stands))
        )
        branches, sizes = nodes[stands].tolist(), rows[stands].tolist()
        otherwise = int(np.argmax(sizes))
        if not stands.all() and not best["n_left"]:
            branches, sizes = [*branches, REST], [*sizes, int(rows[~stands].sum())]
            otherwise = len(branches) - 1
        return LossChoice(axis, number, branches, sizes, otherwise, parts)


def _order(listed: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """What candidates are ordered by, last to first, see ``kernels.loss``."""
    return (
        listed["n_left"], listed["number"], listed["kind"], listed["axis"], listed["largest"], -listed["score"],
    )  # fmt: skip


def _is_after(listed: NDArray[Any], floor: Any) -> NDArray[np.bool_]:
    """Which candidates come after ``floor``."""
    after, is_tie = np.zeros(len(listed), dtype=np.bool_), np.ones(len(listed), dtype=np.bool_)
    for own, other in zip(reversed(_order(listed)), reversed(_order(floor)), strict=True):
        after |= is_tie & (own > other)
        is_tie &= own == other
    return after
