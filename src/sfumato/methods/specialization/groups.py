"""The groups of the grid, for a chooser that must know the smallest part that a candidate would make.

In memory, rows stand group by group and are divided as the grid is. Outside, a pass over the rows counts the
cells of a mesh finer than the grid: one that is already cut where the next specializations are likely to cut.
Cells with their counts then stand for the rows, and no further pass is needed until a candidate comes up that the
mesh does not resolve. Groups and parts only ever get smaller, so what was once found stays an upper bound.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes, Domain
from sfumato.engines.protocol import Asked, Engine, Rows
from sfumato.errors import InputError
from sfumato.methods.specialization.gains import CandidateFacts, Gains
from sfumato.methods.specialization.group_rule import (
    MOST_AT_ONCE,
    CellPeople,
    CheckedParts,
    CountPeople,
    GroupRule,
    Parts,
)
from sfumato.methods.specialization.kernels.cuts import GroupSlices, OfferedParts, lower_least, split_groups
from sfumato.methods.specialization.loop import Candidate, Piece, parts_of
from sfumato.methods.specialization.mesh import CellCounts, Mesh, MeshPlan, SlicePlan, move_cells, sort_cells
from sfumato.table.combinations import number_combinations

Ints = NDArray[np.int64]

NOBODY = np.zeros(0, dtype=np.int64)
"""The places of no rows."""


class SpecializedGroups(Protocol):
    """The groups of the grid, as a chooser asks for them. Candidates go by the numbers that they were offered with."""

    n_groups: int

    def offer(self, number: int, candidate: Candidate) -> None:
        """Consider a new candidate."""

    @property
    def most_at_once(self) -> int:
        """How many candidates are worth to be tested at once."""

    def is_exact(self, number: int) -> bool:
        """Is ``least`` of this candidate the smallest part that it would make of any group?"""

    def lower(self, number: int, least: Ints, waiting: Ints, anonymity: int) -> None:
        """Make ``least`` of this candidate exact, and lower that of others that are ``waiting`` as far as is known."""

    def hold(self, asked: Mapping[int, Candidate]) -> Mapping[int, bool]:
        """Would the groups satisfy the rule with each of these candidates? Only the first must be answered.

        It is one whose ``least`` is exact.
        """

    def take(self, number: int, candidate: Candidate) -> None:
        """Divide the groups that lie in its piece."""


class HeldGroups:
    """Groups of rows in memory.

    codes    (axes, n) uint32
    n_codes  of each axis
    rule     what they must satisfy
    people   counts people of rows, if the rule does
    weight   (n,) int64: how many rows each stands for; empty: for itself
    group    (n,) the group that each belongs to, numbered from 0; None: all to one
    """

    def __init__(
        self,
        codes: Codes,
        n_codes: Sequence[int],
        rule: GroupRule,
        *,
        people: CountPeople | None = None,
        weight: Ints | None = None,
        group: Ints | None = None,
    ) -> None:
        n = codes.shape[1]
        self.codes, self.rule, self.people = codes, rule, people
        self.weight = np.zeros(0, dtype=np.int64) if weight is None else weight
        self.order = [np.argsort(column, kind="stable").astype(np.uint32) for column in codes]
        self.below = [
            np.cumsum(np.bincount(column, minlength=n)) for column, n in zip(codes, n_codes, strict=True)
        ]
        self.offered = OfferedParts(
            np.cumsum([0, *n_codes], dtype=np.int64),
            np.full(sum(n_codes), -1, dtype=np.int64),
            np.zeros(sum(n_codes), dtype=np.int64),
        )
        self.most_parts = 0
        of_row = np.zeros(n, dtype=np.int64) if group is None else group
        size = np.bincount(of_row)
        self.n_groups = self.n_touched = len(size)
        start, end, touched = np.zeros((3, n), dtype=np.int64)
        end[: self.n_groups] = np.cumsum(size)
        start[: self.n_groups] = end[: self.n_groups] - size
        touched[: self.n_groups] = np.arange(self.n_groups)
        rows = np.argsort(of_row, kind="stable").astype(np.uint32)
        self.slices = GroupSlices(rows, start, end, of_row, touched)
        self.is_gone = np.zeros(n if rule.leaves_rows_out else 0, dtype=np.bool_)
        """Of each row: is its group left out?"""
        self.n_gone = 0
        self._checked: dict[Piece, CheckedParts] = {}
        """What becomes of the parts of candidates that were tested since the groups were divided last."""
        if rule.leaves_rows_out and self.n_groups > 1:
            whole = Parts(np.arange(n), of_row, self._add_up(np.arange(n), of_row), NOBODY, 0)
            self._leave_out(*rule.check_parts([whole], people))

    @property
    def most_at_once(self) -> int:
        return 1

    def offer(self, number: int, candidate: Candidate) -> None:
        first = self.offered.first[candidate.piece.axis]
        self.most_parts = max(self.most_parts, len(candidate.parts))
        for p, part in enumerate(candidate.parts):
            self.offered.candidate[first + part.low : first + part.high] = number
            self.offered.part[first + part.low : first + part.high] = p

    def is_exact(self, number: int) -> bool:  # noqa: ARG002 - all are, or none
        return self.n_touched == 0

    def lower(self, number: int, least: Ints, waiting: Ints, anonymity: int) -> None:  # noqa: ARG002 - all are lowered
        """By the groups that the last specialization touched: nothing has become of the others."""
        lower_least(
            self.codes, self.weight, self.offered, self.most_parts, self.slices, self.n_touched, least
        )
        self.n_touched = 0

    def hold(self, asked: Mapping[int, Candidate]) -> Mapping[int, bool]:
        found = self.rule.check_parts([self._divide(one) for one in asked.values()], self.people)
        self._checked |= zip((one.piece for one in asked.values()), found, strict=True)
        return {number: one.holds(self.rule) for number, one in zip(asked, found, strict=True)}

    def _divide(self, candidate: Candidate) -> Parts:
        """The parts of the groups that lie in the piece of a candidate."""
        a = candidate.piece.axis
        rows = self._rows_in(candidate.piece)
        gone = np.flatnonzero(self.is_gone)
        if len(gone):
            rows = rows[~self.is_gone[rows]]
        part = self.offered.part[self.offered.first[a] + self.codes[a, rows]]
        found = number_combinations([self.slices.group[rows], part], in_order=False).number
        return Parts(rows, found, self._add_up(rows, found), gone, self.n_gone)

    def _add_up(self, rows: NDArray[np.integer], part: Ints) -> Ints:
        """The rows of each part."""
        return np.bincount(part, self.weight[rows] if len(self.weight) else None).astype(np.int64)

    def _leave_out(self, found: CheckedParts) -> None:
        self.is_gone[found.failing()] = True
        self.n_gone = found.n_rows

    def _rows_in(self, piece: Piece) -> NDArray[np.uint32]:
        below = [int(self.below[piece.axis][code - 1]) if code else 0 for code in (piece.low, piece.high)]
        return self.order[piece.axis][slice(*below)]

    def take(self, number: int, candidate: Candidate) -> None:  # noqa: ARG002 - it is the one of these parts
        a, piece = candidate.piece.axis, candidate.piece
        if (found := self._checked.get(piece)) is not None and self.rule.leaves_rows_out:
            self._leave_out(found)
        self._checked.clear()
        inside = self._rows_in(piece)
        first, after = self.offered.first[a], self.offered.first[a + 1]
        self.n_groups, self.n_touched = split_groups(
            inside,
            self.codes[a],
            self.offered.part[first:after],
            len(candidate.parts),
            self.n_groups,
            self.slices,
        )
        self.offered.candidate[first + piece.low : first + piece.high] = -1


# ---- rows outside memory ---------------------------------------------------------------------------

MOST_STEPS = 1000
"""Specializations that a mesh looks ahead."""

EMPTY_BITS = 8
"""A mesh may have 2^8 times as many cells as fit in memory: most cells have no rows."""

DROPPED_BITS = 1.5
"""Where the cells do not fit, a mesh of 2^1.5 times fewer is tried."""

PIECE_BYTES = 1000
"""Memory for a piece of a cut and what is known of it, about."""

FEWEST_PIECES = 1 << 16
"""Pieces that are held however little memory there is."""


class Stop(NamedTuple):
    """A list of steps may end after so many; the mesh then has 2^bits cells."""

    n_steps: int
    bits: float


class CountedGroups:
    """Groups of rows that are counted in passes, within ``memory`` bytes.

    Where not even the cells of one candidate fit, they are counted slice by slice, in a pass each.
    """

    def __init__(
        self,
        engine: Engine,
        rows: Rows,
        gains: Gains,
        domains: Sequence[Domain],
        *,
        rule: GroupRule,
        memory: int,
    ) -> None:
        self.engine, self.rows, self.gains, self.domains = engine, rows, gains, domains
        self.rule, self.memory = rule, memory
        self.n_groups = 1
        self.cuts = [{domain.n_codes} for domain in domains]
        """Where the pieces of each axis end."""
        self.open: dict[int, Candidate] = {}
        self.is_whole = True
        """Has nothing been divided yet? Then counts of columns say it all."""
        self.exact: set[int] = set()
        self.held: HeldGroups | None = None
        """The cells of ``mesh``, as rows."""
        self.mesh: Mesh | None = None
        self.resolved: set[Piece] = set()
        self.is_sliced = False

    @property
    def most_at_once(self) -> int:
        return MOST_AT_ONCE

    def offer(self, number: int, candidate: Candidate) -> None:
        if number >= max(self.memory // PIECE_BYTES, FEWEST_PIECES):
            raise InputError(
                f"The cuts have more than {number:,} pieces, too many to be held in memory; ask for larger groups, "
                "or allow more --memory."
            )
        self.open[number] = candidate
        if self.held is not None and candidate.piece in self.resolved:
            self.held.offer(number, self._in_mesh(candidate))

    def is_exact(self, number: int) -> bool:
        """What divides nothing needs no pass: all groups are large enough as they are."""
        candidate = self.open[number]
        if self.held is not None and candidate.piece in self.resolved:
            return self.held.is_exact(number)
        is_known = self.is_whole and self.rule.is_told_by_rows
        return is_known or number in self.exact or self._is_free(candidate)

    def _is_free(self, candidate: Candidate) -> bool:
        facts = self.gains.of(candidate)
        return facts is not None and facts.is_free

    def lower(self, number: int, least: Ints, waiting: Ints, anonymity: int) -> None:
        if self.held is None or self.open[number].piece not in self.resolved:
            self.held, self.mesh = None, None
            if not self.is_sliced:
                self._count(number, least, waiting, anonymity)
            if self.is_sliced:
                self._count_slices(number, least)
                return
        assert self.held is not None
        self.held.lower(number, least, waiting, anonymity)

    def hold(self, asked: Mapping[int, Candidate]) -> Mapping[int, bool]:
        if self.held is None:
            number, candidate = next(iter(asked.items()))
            return {number: self._hold_in_slices(candidate)}
        return self.held.hold(
            {number: self._in_mesh(one) for number, one in asked.items() if one.piece in self.resolved}
        )

    def take(self, number: int, candidate: Candidate) -> None:
        self.open.pop(number)
        self.exact.discard(number)
        axis = candidate.piece.axis
        self.cuts[axis].update(candidate.ends)
        if not self._is_free(candidate):
            self.is_whole = False
            # a cut of the same axis divides other groups
            self.exact = {other for other in self.exact if self.open[other].piece.axis == axis}
        if self.held is not None:
            assert candidate.piece in self.resolved
            self.held.take(number, self._in_mesh(candidate))
            self.n_groups = self.held.n_groups

    def counts_of(self, mesh: Mesh) -> CellCounts | None:
        """The cells of the grid and their rows, if they are known; ``mesh`` is that of the grid's pieces."""
        if self.held is None or self.mesh is None:
            return None
        counts = CellCounts(mesh, self.held.n_groups)
        pieces = [np.searchsorted(ends, fine) for ends, fine in zip(mesh.ends, self.mesh.ends, strict=True)]
        places = np.stack(
            [place[to][codes] for place, to, codes in zip(mesh.place, pieces, self.held.codes, strict=True)],
            axis=1,
        )
        counts.add(mesh.number_cells(places), self.held.weight)
        return counts

    def survey(self, mesh: Mesh) -> Survey:
        """Which groups stand; ``mesh`` is that of the grid's pieces."""
        stands = [np.zeros(size, dtype=np.bool_) for size in mesh.size]
        n_groups, is_there = 0, self._nobody()
        for counts, found in self._check_slices(SlicePlan.of_all(mesh, most_cells(mesh, self.memory))):
            standing = np.flatnonzero(~found.fails)
            n_groups += len(standing)
            for own, places in zip(stands, mesh.places(counts.cells()[standing]).T, strict=True):
                own[places] = True
            people = self._people_of(counts)
            if people is not None and len(standing):
                n_rows = counts.n_rows()[standing].sum(keepdims=True)
                (keys,) = people([Parts(standing, np.zeros_like(standing), n_rows, NOBODY, 0)])
                for _, person in keys.walk():
                    is_there[person] = True
                keys.discard()
        return Survey(n_groups, stands, int(is_there.sum()))

    def _nobody(self) -> NDArray[np.bool_]:
        """Flags of people, if they count."""
        return np.zeros(0 if self.rule.person is None else self.rule.n_people, dtype=np.bool_)

    # -- a mesh that fits in memory ------------------------------------------------------------------

    def _count(self, number: int, least: Ints, waiting: Ints, anonymity: int) -> None:
        """Count the cells of as fine a mesh as fits in memory, in one pass."""
        self.open = {other: self.open[other] for other in waiting.tolist()}
        steps, stops = self._outlook(number, least, anonymity)
        levels = StepLevels.of(self._ends(), steps, stops, self.memory)
        (found,) = self.engine.gather(self.rows, Asked([MeshPlan(levels)]))
        if found.counts is None:
            self.is_sliced = True
            return
        self.mesh = found.counts.mesh
        self.resolved = {step.piece for step in levels.steps_of(found.level)}
        self.held = self._hold(found.counts)
        self.n_groups = self.held.n_groups
        for other, candidate in self.open.items():
            if candidate.piece in self.resolved:
                self.held.offer(other, self._in_mesh(candidate))

    def _hold(self, counts: CellCounts) -> HeldGroups:
        """The cells that were counted as rows, in the groups that they make now."""
        places = counts.mesh.places(counts.cells())
        grid = Mesh.of(self._ends())
        order, start = sort_cells(move_cells(counts.cells(), counts.mesh, grid))
        group = np.empty(counts.n, dtype=np.int64)
        group[order] = np.repeat(np.arange(len(start)), np.diff(start, append=counts.n))
        return HeldGroups(
            np.ascontiguousarray(places.T, dtype=np.uint32),
            counts.mesh.size,
            self.rule,
            people=self._people_of(counts),
            weight=counts.n_rows().copy(),
            group=group,
        )

    def _people_of(self, counts: CellCounts) -> CountPeople | None:
        """Counts the people of cells, if the rule does."""
        return None if self.rule.person is None else CellPeople(self.engine, self.rows, counts, self.rule)

    def _outlook(self, number: int, least: Ints, anonymity: int) -> tuple[list[Candidate], list[Stop]]:
        """The candidates, and what may come after them, best known score first; and where the list may be cut short.

        The candidate that is asked for comes first. What divides nothing is taken without being asked for, so the list
        is not cut between it and the one before.
        """
        steps: list[Candidate] = []
        stops: list[Stop] = []
        heap: list[tuple[bool, float, int, Piece, Candidate]] = []

        def push(candidate: Candidate, smallest: int | None = None) -> None:
            facts = self.gains.of(candidate)
            if facts is None or facts.smallest < self.rule.fewest_rows:
                return
            is_later = smallest is None and not facts.is_free
            smallest = int(self.rule.clip(facts.smallest if smallest is None else smallest))
            score = score_of(facts, smallest, anonymity)
            heapq.heappush(heap, (is_later, -score, facts.largest, candidate.piece, candidate))

        for other, candidate in self.open.items():
            if other != number:
                push(candidate, int(least[other]))
        sizes = [len(ends) for ends in self.cuts]
        most_bits = math.log2(most_cells(self._mesh_of([]), self.memory)) + EMPTY_BITS
        step: Candidate | None = self.open[number]
        while step is not None:
            facts = self.gains.of(step)
            assert facts is not None
            steps.append(step)
            sizes[step.piece.axis] += facts.n_filled - 1
            for part in step.parts:
                parts = parts_of(part, self.domains[part.axis], self.gains.threshold)
                if parts:
                    push(Candidate(part, parts))
            is_free = bool(heap) and math.isinf(heap[0][1])
            bits = sum(map(math.log2, sizes))
            if not is_free:
                stops.append(Stop(len(steps), bits))
            is_enough = len(steps) >= MOST_STEPS or bits > most_bits
            step = heapq.heappop(heap)[-1] if heap and (is_free or not is_enough) else None
        return steps, stops

    def _mesh_of(self, steps: Sequence[Candidate]) -> Mesh:
        """The grid as it is, cut further by these."""
        return cut_further(self._ends(), steps)

    def _ends(self) -> list[Ints]:
        return [np.array(sorted(ends)) for ends in self.cuts]

    def _in_mesh(self, candidate: Candidate) -> Candidate:
        """The same candidate, its codes being the pieces of the mesh."""
        assert self.mesh is not None
        piece = candidate.piece
        ends = self.mesh.ends[piece.axis]

        def move(part: Piece) -> Piece:
            low, high = np.searchsorted(ends, [part.low, part.high - 1], side="right")
            return Piece(part.axis, int(low), int(high) + 1)

        return Candidate(move(piece), tuple(move(part) for part in candidate.parts))

    # -- no mesh fits: one candidate, slice by slice -------------------------------------------------

    def _count_slices(self, number: int, least: Ints) -> None:
        """The smallest part that one candidate makes, from as many passes as it takes."""
        plan = self._slice_of(self.open[number])
        for counts in self._count_slice(plan):
            if counts.n:
                least[number] = min(least[number], counts.n_rows().min())
            if least[number] < self.rule.fewest_rows:
                break
        self.exact.add(number)

    def _slice_of(self, candidate: Candidate) -> SlicePlan:
        """The cells that the parts of one candidate are made of."""
        piece, mesh = candidate.piece, self._mesh_of([candidate])
        return SlicePlan(mesh, most_cells(mesh, self.memory), piece.axis, piece.low, piece.high)

    def _count_slice(self, plan: SlicePlan) -> Iterator[CellCounts]:
        """The counts of the cells of a slice, as many at once as fit in memory."""
        waiting = [plan]
        while waiting:
            plan = waiting.pop()
            (counts,) = self.engine.gather(self.rows, Asked([plan]))
            waiting += plan.rest(counts)
            yield counts

    def _check_slices(
        self, plan: SlicePlan, note: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[CellCounts, CheckedParts]]:
        """The cells of a slice as groups, and which of them fail."""
        for counts in self._count_slice(plan):
            if counts.n:
                cells = np.arange(counts.n)
                parts = Parts(cells, cells, counts.n_rows(), NOBODY, 0)
                (found,) = self.rule.check_parts([parts], self._people_of(counts), note)
                yield counts, found

    def _hold_in_slices(self, candidate: Candidate) -> bool:
        """Would all groups satisfy the rule with a candidate, but for those that may be left out?"""
        plan, rule = self._slice_of(candidate), self.rule
        if not rule.leaves_rows_out:
            return all(found.holds(rule) for _, found in self._check_slices(plan))
        is_out, n_rows = self._nobody(), 0
        for _, found in self._check_slices(SlicePlan.of_all(plan.mesh, plan.most), is_out):
            n_rows += found.n_rows
        return n_rows == 0 or rule.may_leave_out(n_rows, int(is_out.sum()))


class Survey(NamedTuple):
    """The groups of a grid that stand: how many there are, which pieces of each axis they have, and their people.

    Pieces go by their places.
    """

    n_groups: int
    stands: list[NDArray[np.bool_]]
    n_people: int


def most_cells(mesh: Mesh, memory: int) -> int:
    """Cells that fit in memory: two sets of them while one is made of the other, or one and its rows."""
    counted = CellCounts.cell_bytes(mesh.n_words)
    as_row = 52 + 16 * len(mesh.size)
    return max(memory // (counted + max(counted, as_row)), 2)


def cut_further(ends: Sequence[Ints], steps: Sequence[Candidate]) -> Mesh:
    """The mesh of a grid that is cut at these ends, and by these steps."""
    cuts = [set(end.tolist()) for end in ends]
    for step in steps:
        cuts[step.piece.axis].update(step.ends)
    return Mesh.of([np.array(sorted(cut)) for cut in cuts])


@dataclass(frozen=True, slots=True, eq=False)
class StepLevels:
    """Meshes of a grid that is cut further by a list of steps, and by ever fewer of them, in ``memory`` bytes."""

    ends: Sequence[Ints]
    steps: Sequence[Candidate]
    n_steps: Sequence[int]
    memory: int

    @classmethod
    def of(
        cls, ends: Sequence[Ints], steps: Sequence[Candidate], stops: Sequence[Stop], memory: int
    ) -> StepLevels:
        """Each mesh has 2^1.5 times fewer cells than the one before, or is the coarsest."""
        chosen = [stops[-1]]
        for stop in reversed(stops):
            if stop.bits <= chosen[-1].bits - DROPPED_BITS:
                chosen.append(stop)
        if chosen[-1] != stops[0]:
            chosen.append(stops[0])
        return cls(ends, steps, [stop.n_steps for stop in chosen], memory)

    @property
    def n_levels(self) -> int:
        return len(self.n_steps)

    def steps_of(self, level: int) -> Sequence[Candidate]:
        return self.steps[: self.n_steps[level]]

    def mesh(self, level: int) -> Mesh:
        return cut_further(self.ends, self.steps_of(level))

    def most(self, mesh: Mesh) -> int:
        return most_cells(mesh, self.memory)


def score_of(facts: CandidateFacts, least: int, anonymity: int) -> float:
    """InfoGain for the loss of anonymity, were ``least`` the smallest part."""
    if facts.is_free:
        return math.inf
    return facts.gain / (facts.rows * (anonymity - min(least, anonymity) + 1))
