"""One run of TDS over the rows of a table: the grid of cuts, and its groups.

Rows that the engine loads at once are held while they are divided; others are counted in passes. Groups that fail are
left out where the policy lets them be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.encoding.targets import Joint, Label, Number, targets_of
from sfumato.engines.protocol import Asked, Block, EncodedTable, Engine, Loaded, Rows, Work
from sfumato.errors import InputError
from sfumato.methods.groups import Chunk, Grouped, LossMeter, Ready
from sfumato.methods.own_error import ErrorMeter, ErrorPlan
from sfumato.methods.people import NOBODY, PeopleMeter, ReachedFigures
from sfumato.methods.specialization.best_score import BestScore
from sfumato.methods.specialization.column_counts import ColumnPlan
from sfumato.methods.specialization.gains import Gains
from sfumato.methods.specialization.group_rule import GroupRule, HeldPeople
from sfumato.methods.specialization.groups import CountedGroups, HeldGroups, SpecializedGroups, Survey
from sfumato.methods.specialization.loop import CutGrid, StandingGrid, specialize
from sfumato.methods.specialization.mesh import Mesh
from sfumato.methods.specialization.order import RowsByCell, count_cells, sort_rows
from sfumato.policy.document import Policy
from sfumato.policy.workload import Classify
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.recoder import Partition
from sfumato.table.combinations import number_combinations
from sfumato.table.spill import Spill

NO_ROWS = Loaded(np.empty((0, 0), dtype=np.uint32))

Ints = NDArray[np.int64]


class GridRun:
    """Specialization of the rows of a table: let all ``works`` be done and noted, then ask for the recoding.

    Groups come in the order of the cells of the grid, and the rows of a group in the order of the table. Where rows
    cannot be loaded at once, a group of more rows than can be is in several parts that follow each other, its rows
    divided among them at random. As many rows may be left out as the policy allows, or none if ``keeps_all``.
    """

    refines = False

    def __init__(
        self,
        engine: Engine,
        table: EncodedTable,
        policy: Policy,
        *,
        random: Random,
        keeps_all: bool = False,
        progress: Progress = no_progress,
    ) -> None:
        self.engine, self.table, self.policy = engine, table, policy
        self.random, self.keeps_all, self.progress = random, keeps_all, progress
        self.memory = engine.room.count_bytes // 2
        """Counts of columns have this much, and counts of cells as much again."""
        self.cuts: Cuts | None = None
        self.people = PeopleMeter.of(table.columns, policy.requirements)
        self.n_people = table.columns.n_people
        """People with a row that is published; rows, if these count."""
        self.meter = ErrorMeter.of(policy, table.columns) if policy.leaves_rows_out else None
        """Tells the better one of two runs."""
        self.errors = [] if self.meter is None else [0] * len(self.meter.tasks)
        self._last_cell: tuple[int, ...] | None = None
        """Of the parts that were noted so far."""

    def works(self) -> Iterator[tuple[Rows, Work[Grouped]]]:
        """Rows that can be loaded are read once, others twice, and their codes in a few passes more."""
        self.progress("checking", 0, 1)
        rule = GroupRule.of(self.policy, self.table.columns, keeps_all=self.keeps_all)
        self.progress("specializing", 0, self.table.n_rows)
        if self.table.n_rows <= self.engine.room.rows:
            yield NO_ROWS, Ready(self._find_at_once(rule))
        else:
            yield from self._in_parts(rule)

    def note(self, found: GridPart) -> None:
        """Raise if a group is in several parts and its statistics are to be published."""
        self.errors = [sum(both) for both in zip(self.errors, found.errors, strict=True)]
        if found.ends is None:
            return
        if self.policy.statistics and found.ends.first == self._last_cell:
            raise InputError(
                "A group has more rows than fit in memory, so its statistics cannot be taken; "
                "allow more --memory, or publish no summary."
            )
        self._last_cell = found.ends.last

    def recoding(self) -> Cuts:
        assert self.cuts is not None
        return self.cuts

    def n_splits(self) -> dict[str, int]:
        return self.recoding().n_splits()

    @property
    def published(self) -> dict[str, NDArray[np.int64]]:
        """All rows are."""
        return {}

    def people_left_out(self) -> NDArray[np.uint32]:
        """Nobody's rows: those of all groups come to a work."""
        return NOBODY

    def _find_at_once(self, rule: GroupRule) -> Grouped:
        """Rows that are held while they are divided."""
        part = self.engine.load(self.engine.open(self.table))
        domains = self.table.domains
        gains = self._gains(part)
        groups = HeldGroups(
            np.ascontiguousarray(part.rows.T[: len(domains)]),
            [domain.n_codes for domain in domains],
            rule,
            people=None if rule.person is None else HeldPeople(part.rows[:, rule.person], rule.n_people),
        )
        grid = self._specialize(gains, groups, rule)
        rows = groups.slices.rows
        start, end = groups.slices.start[: groups.n_groups], groups.slices.end[: groups.n_groups]
        if groups.n_gone:
            is_left = groups.is_gone[rows[start]]
            start, end = start[~is_left], end[~is_left]
        places = grid.places(groups.codes[:, rows[start]])
        order = np.lexsort(places.T[::-1])
        places, size = places[order], (end - start)[order]
        members = rows[np.repeat(start[order] - (np.cumsum(size) - size), size) + np.arange(size.sum())]
        if rule.person is not None:
            self.n_people = len(np.unique(part.rows[members, rule.person]))
        if self.policy.leaves_rows_out:
            n_places = [int(own.max()) + 1 for own in grid.place]
            stands = [np.isin(np.arange(n), own) for n, own in zip(n_places, places.T, strict=True)]
            places = self._show(grid, Survey(len(size), stands, 0)).move(places)
        else:
            self.cuts = grid.recoding(len(size), self.policy.output, self.policy.schema.left_out)
        found = Partition(self.recoding(), places, size, part.number(members))
        chunk = Chunk(found, part.payload, missing=LossMeter.of(domains).look_at(part).count_in(found))
        if self.people is not None:
            chunk = chunk._replace(reached=self.people.measure(self.people.look_at(part), found))
        errors = () if self.meter is None else self.meter.measure(part.rows[members], size)
        return Grouped(chunk, GridPart(CellEnds.of(found), errors))

    def _in_parts(self, rule: GroupRule) -> Iterator[tuple[Rows, Work[Grouped]]]:
        """Rows that are counted in passes, and then brought in order."""
        rows = self.engine.open(self.table)
        kept = self.engine.keep(rows, payload=False)
        gains = self._gains(kept)
        groups = CountedGroups(self.engine, kept, gains, self.table.domains, rule=rule, memory=self.memory)
        grid = self._specialize(gains, groups, rule)
        mesh = Mesh.of(grid.ends, grid.place)
        counts = groups.counts_of(mesh) or count_cells(self.engine, kept, mesh, self.memory)
        shown = None
        if self.policy.leaves_rows_out:
            survey = groups.survey(mesh)
            shown = self._show(grid, survey)
            if rule.person is not None:
                self.n_people = survey.n_people
        self.engine.discard(kept)
        by_cell = RowsByCell(self.engine, mesh, self.memory, self.random.spawn(1)[0])
        files = by_cell.files(rows, counts, self._look_at_cell)
        if shown is None:
            n_groups = counts.n if counts.mesh.is_like(mesh) else by_cell.n_cells(files)
            self.cuts = grid.recoding(n_groups, self.policy.output, self.policy.schema.left_out)
        del counts, groups, gains
        work = FindCells(mesh, self.recoding(), rule, shown, self.meter)
        for part, told, is_first in files:
            yield part, replace(work, told=told if told is None or is_first else told.of_no_group())

    def _look_at_cell(self, rows: Rows) -> LargeCell:
        """What must be known of a cell whose rows come in several parts: one pass, if anything."""
        errors = [] if self.meter is None else [ErrorPlan(self.meter)]
        people = [] if self.people is None else [PersonPlan(self.people.person, self.people.n_people)]
        if not errors and not people:
            return LargeCell((), rows.n_rows, 0, None)
        found: list[Any] = self.engine.gather(rows, Asked([*errors, *people]))
        if self.people is None:
            return LargeCell(found[0], rows.n_rows, 0, None)
        n_people = np.array([found[-1]])
        nothing = np.zeros((1, 0), dtype=np.int64)
        reached = ReachedFigures.of(self.people.measure_counts(n_people, nothing, nothing), n_people)
        return LargeCell(found[0] if errors else (), rows.n_rows, found[-1], reached)

    def _gains(self, rows: Rows) -> Gains:
        """What specializations gain, from counts of columns: one pass."""
        columns, targets = self.table.columns, [target for target, _ in _targets(self.policy)]
        plan = ColumnPlan(
            [domain.n_codes for domain in self.table.domains],
            labels=[columns.place(target) for target in targets],
            n_classes=[len(columns.count(target)) for target in targets],
            most_rows=rows.n_rows,
            most_bytes=self.memory,
        )
        (counts,) = self.engine.gather(rows, Asked([plan]))
        return Gains(counts, _weights(self.policy))

    def _specialize(self, gains: Gains, groups: SpecializedGroups, rule: GroupRule) -> CutGrid:
        chooser = BestScore(gains, groups, rule=rule, progress=self.progress)
        return CutGrid.of(specialize(self.table.domains, chooser), self.table.domains)

    def _show(self, grid: CutGrid, survey: Survey) -> StandingGrid:
        """The grid as it may be shown where groups are left out; the recoding follows."""
        shown = StandingGrid.of(grid, survey.stands)
        self.cuts = shown.recoding(survey.n_groups, self.policy.output, self.policy.schema.left_out)
        return shown


class CellEnds(NamedTuple):
    """The first and the last cell of the grid that some rows are in."""

    first: tuple[int, ...]
    last: tuple[int, ...]

    @classmethod
    def of(cls, groups: Partition) -> CellEnds | None:
        """None if there are no groups."""
        if not len(groups.size):
            return None
        first, last = (tuple(groups.leaf[at].tolist()) for at in (0, -1))
        return cls(first, last)


class GridPart(NamedTuple):
    """What a run must know of the groups of a part: where they are, and their error at each task."""

    ends: CellEnds | None
    errors: Sequence[int] = ()


class LargeCell(NamedTuple):
    """What is known of a cell whose rows come in several parts: errors, rows, people, and what it reaches by these."""

    errors: Sequence[int]
    n_rows: int
    n_people: int
    reached: ReachedFigures | None

    def of_no_group(self) -> LargeCell:
        """The same for a further part of its rows, which counts as no group."""
        reached = None if self.reached is None else self.reached._replace(n_groups=0)
        return self._replace(errors=[0] * len(self.errors), reached=reached)


@dataclass(frozen=True, slots=True)
class PersonPlan:
    """Gather how many people rows have, by the column of their numbers."""

    person: int
    n_people: int

    @property
    def n_bytes(self) -> int:
        """Memory of the flags."""
        return self.n_people

    def new(self, _room: int, _spill: Spill | None) -> PersonFlags:
        """Nobody yet."""
        return PersonFlags(self)

    def answer(self, state: PersonFlags) -> int:
        """How many there are."""
        return int(state.is_there.sum())


class PersonFlags:
    """The state of a ``PersonPlan``."""

    def __init__(self, plan: PersonPlan) -> None:
        self.person = plan.person
        self.is_there = np.zeros(plan.n_people, dtype=np.bool_)

    def add(self, block: Block) -> None:
        """Add some rows."""
        self.is_there[block.rows[:, self.person]] = True

    def merge(self, other: PersonFlags) -> None:
        """Add the rows of another state."""
        self.is_there |= other.is_there


@dataclass(frozen=True, slots=True, eq=False)
class FindCells:
    """The work on rows that can be loaded: their groups are the cells of a mesh.

    shown  how the places of cells are published, if groups may be left out
    told   what is known of the one cell that these rows are a part of
    """

    mesh: Mesh
    recoding: Cuts
    rule: GroupRule
    shown: StandingGrid | None = None
    meter: ErrorMeter | None = None
    told: LargeCell | None = None

    def __call__(self, part: Loaded) -> Grouped:
        cells, size, order = sort_rows(self.mesh, part)
        if self.rule.leaves_rows_out:
            stands = self._stand(part.rows[order], size)
            cells, size, order = cells[stands], size[stands], order[np.repeat(stands, size)]
        places = self.mesh.places(cells)
        if self.shown is not None:
            places = self.shown.move(places)
        groups = Partition(self.recoding, places, size, part.number(order))
        told = self.told if len(size) else None
        reached = None if told is None else told.reached
        errors = self._measure(part.rows[order], size)
        return Grouped(Chunk(groups, part.payload, reached=reached), GridPart(CellEnds.of(groups), errors))

    def _stand(self, rows: Codes, size: Ints) -> NDArray[np.bool_]:
        """Which of the cells are published; ``rows`` are those of one after the other."""
        if self.told is not None:
            n = self.told.n_rows if self.rule.person is None else self.told.n_people
            return np.array([n >= self.rule.k])
        if self.rule.person is None:
            return size >= self.rule.k
        group = np.repeat(np.arange(len(size)), size)
        pairs = number_combinations([group, rows[:, self.rule.person]], in_order=False)
        return np.bincount(group[pairs.first_rows()], minlength=len(size)) >= self.rule.k

    def _measure(self, rows: Codes, size: Ints) -> Sequence[int]:
        """The error of the groups that these are the rows of."""
        if self.meter is None or not len(size):
            return [0] * (0 if self.meter is None else len(self.meter.tasks))
        return self.meter.measure(rows, size) if self.told is None else self.told.errors


def _targets(policy: Policy) -> Iterator[tuple[Label | Joint, float]]:
    """What is classified, and the weight of its gain."""
    for task in policy.workload:
        if isinstance(task, Classify):
            for target in targets_of(task):
                assert not isinstance(target, Number)  # classes are no numbers
                yield target, task.weight


def _weights(policy: Policy) -> NDArray[np.float64]:
    weights = [weight for _, weight in _targets(policy)]
    return np.array(weights if len(weights) > 1 else [1.0])
