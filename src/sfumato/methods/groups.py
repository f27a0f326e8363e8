"""From groups to published rows, for the methods whose rows form groups.

Groups are published as they are found, chunk by chunk: all at once where the rows are in memory, and some at a time
elsewhere, so that memory never holds all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import Domain
from sfumato.engines.protocol import UNLIMITED, Engine, Loaded, Published, Rows, Work
from sfumato.engines.scan import Intake
from sfumato.errors import InternalError
from sfumato.methods.people import Codes, PeopleMeter, ReachedFigures
from sfumato.methods.protocol import Draft, Extras
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.policy.workload import Select
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding import loss
from sfumato.recoding.loss import LostDetail, Missing, WholeTree
from sfumato.recoding.pseudonyms import GroupPseudonyms, Pseudonyms
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import published_rows
from sfumato.recoding.tree import Recoding
from sfumato.release.query import select
from sfumato.table.cells import give_back_memory
from sfumato.table.source import Source


class Chunk(NamedTuple):
    """Some finished groups.

    ``payload`` has the columns that are published as they are, in the order of row numbers; without it they are those of
    the table, if there are any.
    """

    groups: Partition
    payload: pa.Table | None
    statistics: Mapping[str, pa.Scalar] | None = None
    """Statistics of the whole group, if these rows are only a part of it."""
    missing: Missing | None = None
    """How many rows of each group are missing in a column, if the work was not given the rows."""
    reached: ReachedFigures | None = None
    """What groups reach by their people, if not all rows of these are here."""


class Grouped(NamedTuple):
    """What a work finds of a part of the rows: some groups, and a ``note`` for the run that it works for."""

    chunk: Chunk
    note: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """The work of a part whose groups are found already."""

    found: Grouped

    def __call__(self, part: Loaded) -> Grouped:  # noqa: ARG002 - nothing is left to find
        return self.found


class Run(Protocol):
    """A run that finds groups: let all works be done and noted first; the other answers are known afterwards."""

    def works(self) -> Iterator[tuple[Rows, Work[Grouped]]]:
        """Parts of the rows, and the work that finds the groups of each.

        The rows of one group may be in several parts that follow each other.
        """

    def note(self, note: Any) -> None:
        """Take note of what a work has found, in the order of works."""

    def recoding(self) -> Any:
        """How further rows are recoded."""

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""

    def people_left_out(self) -> Codes:
        """Whose each row is that was left out and came to no work, if people count."""

    @property
    def published(self) -> Mapping[str, NDArray[np.int64]]:
        """How often each sensitive value counts in what is published, where that is not as in the whole table."""


class Told(NamedTuple):
    """What is told of the groups of a work that were published.

    returned  how many of their rows each selection returns
    lost      the detail that their labels lose
    groups    they themselves, if somebody wants to know
    reached   what they reach by their people, if these count
    """

    note: Any
    returned: list[int]
    lost: LostDetail
    groups: Partition | None
    reached: ReachedFigures | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LossMeter:
    """What is needed of a table to say what the labels of its rows lose.

    ``missing`` are the places among its quasi-identifiers of the numbers and dates that have missing cells, and
    ``trees`` the whole hierarchies of the others.
    """

    missing: Mapping[str, int]
    trees: Mapping[str, WholeTree]

    @classmethod
    def of(cls, domains: Sequence[Domain]) -> LossMeter:
        return cls(loss.places_of_missing(domains), loss.whole_trees(domains))

    def look_at(self, part: Loaded) -> MissingCells:
        """The missing cells of rows, before somebody takes these away to find their groups."""
        return MissingCells(loss.missing_cells(part.rows, self.missing), part.numbers)

    def measure(self, groups: Partition, missing: Missing) -> LostDetail:
        """What the labels of groups lose."""
        axes, boxes = groups.recoding.axes, loss.boxes_along(groups.recoding.ends(groups.leaf))
        return loss.measure_loss(axes, boxes, groups.size, missing, self.trees)


class MissingCells(NamedTuple):
    """The rows of a part that are missing in a column; ``numbers`` are those of ``Loaded``."""

    flags: Mapping[str, NDArray[np.bool_]]
    numbers: NDArray[np.uint32] | None

    def count_in(self, groups: Partition) -> Missing:
        """How many there are in each group of these rows."""
        rows: NDArray[Any] = groups.row_numbers
        if self.flags and self.numbers is not None:
            order = np.argsort(self.numbers)
            rows = order[np.searchsorted(self.numbers, rows, sorter=order)]
        return loss.count_in_groups(self.flags, rows, groups.size)


@dataclass(frozen=True, slots=True, eq=False)
class PublishGroups:
    """Publish the groups that a work finds; ``random`` is for the order of their rows.

    ``source`` has the columns that are published as they are, unless these come with the groups. ``meter`` says what is
    lost.
    """

    work: Work[Grouped]
    source: Source
    policy: Policy
    statistic_types: Mapping[str, pa.DataType]
    random: Random
    keeps_groups: bool
    meter: LossMeter
    people: PeopleMeter | None = None
    pseudonyms: Pseudonyms | None = None
    progress: Progress = no_progress

    def __reduce__(self) -> tuple[Any, ...]:
        """Elsewhere, the columns come with the groups, and nobody is told how far the work is."""
        source = replace(self.source, read=_not_here, stream=None, index=None)
        return PublishGroups, (
            self.work,
            source,
            self.policy,
            self.statistic_types,
            self.random,
            self.keeps_groups,
            self.meter,
            self.people,
            self.pseudonyms,
        )

    def __call__(self, part: Loaded) -> Published[Told]:
        missing = self.meter.look_at(part)
        cells = None if self.people is None or not part.n_rows else self.people.look_at(part)
        chunk, note = self.work(part)
        counted = missing.count_in(chunk.groups) if chunk.missing is None else chunk.missing
        lost = self.meter.measure(chunk.groups, counted)
        reached = chunk.reached
        if reached is None and self.people is not None and cells is not None and len(chunk.groups.size):
            reached = self.people.measure(cells, chunk.groups)
        give_back_memory()
        self.progress("publishing", 0, 1)
        rows = self._recode(chunk)
        conditions = [predicate.parse(task.where, self.policy.schema) for task in self.policy.selections]
        returned = [
            int(select.select_rows(condition, rows, chunk.groups.recoding, self.policy).sum())
            for condition in conditions
        ]
        groups = chunk.groups if self.keeps_groups else None
        return Published(rows, Told(note, returned, lost, groups, reached))

    def _recode(self, chunk: Chunk) -> pa.Table:
        """The published rows; statistics have the type that they have in the whole table."""
        n_rows, source = len(chunk.groups.row_numbers), self.source
        if chunk.payload is not None:
            payload = chunk.payload  # with the rows that are left out
            source = Source(source.names, payload.num_rows, source.kind, source.where, payload.column)
        keys = self.random.random(n_rows)
        are_whole = chunk.statistics is None
        codes = GroupPseudonyms(self.pseudonyms, self.random, are_whole) if self.pseudonyms else None
        rows = published_rows(source, self.policy, chunk.groups, keys, chunk.statistics or {}, codes)
        for name, kind in self.statistic_types.items():
            if name in rows.column_names:
                rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).cast(kind))
        return rows


def _not_here(name: str) -> pa.ChunkedArray:
    raise InternalError(f"Column {name!r} was asked for where the table is not.")


class Outcome(NamedTuple):
    """What a run made of all rows.

    returned  how many of the published rows each selection returns
    lost      the detail that labels lose
    n_left    how many rows are left out
    groups    the groups, if they were all found at once
    reached   what groups of people reach, part by part, if they count people
    """

    returned: list[int]
    lost: LostDetail
    n_left: int
    groups: Partition | None
    reached: list[ReachedFigures]


def draft_groups(
    run: Run,
    engine: Engine,
    table: Intake,
    policy: Policy,
    *,
    random: Random,
    method: str,
    extras: Extras,
    progress: Progress,
) -> tuple[Draft, Outcome]:
    """Publish groups as they are found, and draft their release; ``method`` is what the certificate calls the way."""
    people = PeopleMeter.of(table.columns, policy.requirements, run.published)
    works = _works_that_publish(run, engine, table, policy, random, progress, people, extras.pseudonyms)
    with engine.sink(extras.file_format, escapes=policy.escapes_formulas) as sink:
        outcome = _note_all(engine.publish(works, sink), run, table, policy)
    lost = outcome.lost.with_left_out(outcome.n_left)
    figures: dict[str, Any] = {"splits": run.n_splits(), "loss": lost.as_dict()}
    if outcome.returned:
        each = zip(policy.selections, outcome.returned, table.true_counts, strict=True)
        figures["imprecision"] = [_describe_imprecision(task, found, true) for task, found, true in each]
    if told_of_run := engine.describe(method):
        figures["io"] = told_of_run
    recoding = run.recoding() if policy.keeps_recoding else None
    only = outcome.groups
    reason = None if only is None else partial(_explain, table.source, policy, only)
    losses = None if only is None else partial(_explain_losses, table.source, policy, only)
    counted = None
    if people is not None:
        n_rows = (
            table.columns.count(table.columns.person) if outcome.n_left and table.columns.person else None
        )
        counted = people.join(outcome.reached, run.people_left_out(), n_rows)
    draft = Draft(
        sink.rows(),
        policy,
        recoding,
        figures=figures,
        suppressed=outcome.n_left,
        reason=reason,
        losses=losses,
        people=counted,
    )
    return draft, outcome


def measure_groups(
    run: Run, engine: Engine, table: Intake, policy: Policy, *, random: Random, progress: Progress
) -> tuple[Partition, Outcome]:
    """All groups of a run over rows that can be loaded at once, and what it made of them."""
    works = _works_that_publish(run, engine, table, policy, random, progress)
    outcome = _note_all((told for _, told in engine.finish(works)), run, table, policy)
    if outcome.groups is None:
        raise InternalError("The groups of a table in memory are found at once.")
    return outcome.groups, outcome


def _works_that_publish(
    run: Run,
    engine: Engine,
    table: Intake,
    policy: Policy,
    random: Random,
    progress: Progress,
    people: PeopleMeter | None = None,
    pseudonyms: Pseudonyms | None = None,
) -> Iterator[tuple[Rows, PublishGroups]]:
    publish = partial(
        PublishGroups,
        source=table.source,
        policy=policy,
        statistic_types=table.statistic_types,
        keeps_groups=engine.room.rows == UNLIMITED,  # all rows are at hand
        meter=LossMeter.of(table.domains),
        people=people,
        pseudonyms=pseudonyms,
        progress=progress,
    )
    for number, (rows, work) in enumerate(run.works()):
        yield rows, publish(work, random=random if number == 0 else random.spawn(1)[0])


def _note_all(found: Iterator[Told], run: Run, table: Intake, policy: Policy) -> Outcome:
    """Take note of what works have found, in their order."""
    returned = [0] * len(policy.selections)
    lost = LostDetail(0, dict.fromkeys([axis.name for axis in policy.schema.quasi_identifiers], 0))
    groups: list[Partition | None] = []
    reached: list[ReachedFigures] = []
    for told in found:
        run.note(told.note)
        returned = [sum(both) for both in zip(returned, told.returned, strict=True)]
        lost += told.lost
        groups.append(told.groups)
        reached += [] if told.reached is None else [told.reached]
        table.let_go()
    only = groups[0] if len(groups) == 1 else None
    return Outcome(returned, lost, table.n_rows - lost.rows, only, reached)


def find_chunks(run: Run, engine: Engine) -> Iterator[Chunk]:
    """The groups of a run, some at a time, as they are found."""
    for chunk, note in engine.finish(run.works()):
        run.note(note)
        yield chunk


def hold_groups(run: Run, engine: Engine) -> Partition:
    """All groups of a run over rows that can be loaded at once."""
    chunks = [chunk.groups for chunk in find_chunks(run, engine)]
    if len(chunks) == 1:
        return chunks[0]
    recoding: Recoding = run.recoding()
    size, row_numbers = (
        np.concatenate([getattr(each, name) for each in chunks]) for name in ("size", "row_numbers")
    )
    return Partition(recoding, recoding.leaves_from_left(), size, row_numbers)


def _describe_imprecision(task: Select, returned: int, true: int) -> dict[str, Any]:
    return {"where": task.where, "true": true, "returned": returned, "imprecision": returned - true}


def _explain(source: Source, policy: Policy, groups: Partition, name: str) -> str:
    """Which requirement keeps a column whole, and how near a split comes to being allowed."""
    from sfumato.methods.refusals import find_refusals  # noqa: PLC0415 - few releases need it

    found = find_refusals(source, policy, groups, name)
    return "; ".join(map(str, found)) or "no requirement alone refuses to split it in most groups"


def _explain_losses(source: Source, policy: Policy, groups: Partition) -> list[str]:
    """What each column lost, and why."""
    from sfumato.methods.lost.reasons import GroupedRows, explain_losses  # noqa: PLC0415 - as above

    return [
        str(column)
        for column in explain_losses(source, policy, GroupedRows.of_partition(groups, source.n_rows))
    ]
