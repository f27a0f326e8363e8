"""Measures published rows: groups, the figure of every requirement, and what else a certificate claims of them.

Nothing here knows how a release was made: groups are found by comparing cells.

- A *group* is the rows that agree in every published quasi-identifier cell, and in every statistic that is published
  beside them, as they stand in the file: null, NaN and an empty text are three values (in CSV they are one: an empty
  cell), and -0.0 is another number than 0.0. A missing cell matches only cells that are missing in the same way. Rows
  that another tool calls suppressed (``*`` throughout) are rows like any others.
- A sensitive value is a text, number or date, as the policy declares the column; missing is one more.
- Finer groups and merged sensitive values make every requirement harder to meet, so wherever a reading of the cells is
  in doubt the stricter one is taken.

Rows that do not fit in memory are measured in portions of whole groups, and the figures are put together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import TableError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.release.certificate import AloneClaim, Claim, Claims, SmallGroups
from sfumato.release.folder import sha256_of
from sfumato.table.cells import texts
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import Detail, DistinctCells, FoundGroups, claim_of, label_or_bounds
from sfumato.verify.checks import Check
from sfumato.verify.groups import GroupedRows, codes_of, fold_lookalikes
from sfumato.verify.passed import count_alone
from sfumato.verify.people import describe_shown, measure_shown, note_people
from sfumato.verify.portions import SHARE, Portions, collect, group_lines, rows_at_once
from sfumato.verify.pseudonyms import Linked, check_linked, find_linked
from sfumato.verify.recoding import RecodingMatch
from sfumato.verify.requirements import Figures, count_whole_columns, measure_groups
from sfumato.verify.rows import (
    allowed_memory,
    box_columns,
    columns_to_check,
    columns_without_diversity,
    fits_in_memory,
    is_small,
    open_rows,
)
from sfumato.verify.statistics import Finding, check_statistics


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """One requirement: the figure of the worst group, and how many groups fail it."""

    requirement: Requirement
    achieved: float
    n_failing: int

    @property
    def holds(self) -> bool:
        return self.n_failing == 0


@dataclass(frozen=True, slots=True)
class Measures:
    """Everything about published rows that a certificate claims."""

    rows: int
    groups: int
    requirements: tuple[RequirementResult, ...]
    small: SmallGroups
    details: Mapping[str, Detail] = field(default_factory=dict)
    """How much the cells of each quasi-identifier tell."""
    one_value: Mapping[str, int] = field(default_factory=dict)
    """The rows of groups that share one value of a column without a required diversity, by column."""
    respelled: Mapping[str, int] = field(default_factory=dict)
    """How many spellings of sensitive values, at least, count as a value that they look like, by column."""
    counts_people: bool = False
    """Do groups count people? What requirements reach is then what the rows show of it."""
    alone: AloneClaim | None = None
    """The rows that are alone by all columns that are published as they are, if they were counted."""
    linked: Mapping[str, Linked] = field(default_factory=dict)
    """What the pseudonyms of each column tell, if that was looked at."""


@dataclass(frozen=True, slots=True)
class RowFindings:
    """What was found in published rows that were checked by a policy."""

    measures: Measures
    statistics: tuple[Finding, ...]
    policy: Policy
    cells: Mapping[str, DistinctCells] = field(default_factory=dict)
    """The distinct cells of each quasi-identifier, as long as portions are put together."""
    sha256: str = ""
    """Of the file of the rows, if they came from one: where the same file lies, it need not be read again."""
    groups: FoundGroups | None = None
    """None if they do not fit in memory."""

    def statistic_checks(self) -> list[Check]:
        """Whether the published statistics of groups are possible, or right."""
        return [Check(item.claim, not item.n_wrong, item.detail) for item in self.statistics]


def measure(table: Any, policy: Policy, *, memory: int | None = None) -> Measures:
    """Rows, groups and the figure that each requirement of the policy reaches.

    ``table`` is any table of published rows; its quasi-identifier cells are taken as they stand. A file that
    does not fit in ``memory`` (bytes; half of what is free if not given) is checked in portions.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: [k-anonymity: 2]}")
    >>> import pyarrow as pa
    >>> found = measure(pa.table({"age": ["[0, 9]", "[10, 19]", "[0, 9]"]}), policy)
    >>> found.groups, found.requirements
    (2, (RequirementResult(requirement=KAnonymity(k=2), achieved=1.0, n_failing=1),))
    """
    memory = allowed_memory(memory)
    if isinstance(table, FiledRows):
        source = open_rows(table.path, table.format, memory, policy)
    else:
        source = table if isinstance(table, Source) else open_table(table, lazy=not is_small(table, memory))
    return examine_source(source, policy, memory, None, with_statistics=False).measures


def examine(
    rows: pa.Table | FiledRows, policy: Policy, *, memory: int | None = None, scratch: Path | None = None
) -> RowFindings:
    """What ``verify_folder`` will find in published rows; of those that are in memory, all but their statistics.

    ``scratch`` is a folder for what does not fit in ``memory``.
    """
    memory = allowed_memory(memory)
    if isinstance(rows, pa.Table):
        found = examine_source(open_table(rows), policy, memory, scratch, with_statistics=False)
        return _with_passed(found, open_table(rows), memory, scratch)
    rows.sha256 = sha256_of(rows.path)
    source = open_rows(rows.path, rows.format, memory, policy)
    found = replace(examine_source(source, policy, memory, scratch), sha256=rows.sha256)
    return _with_passed(found, source, memory, scratch)


def examine_release(
    source: Source, policy: Policy, memory: int, scratch: Path | None, *, beside: RecodingMatch | None
) -> RowFindings:
    """What is found in the rows of a release folder, with all that its certificate claims of them."""
    found = examine_source(source, policy, memory, scratch, beside=beside)
    return _with_passed(found, source, memory, scratch)


def _with_passed(found: RowFindings, source: Source, memory: int, scratch: Path | None) -> RowFindings:
    asked = source, found.policy, memory, scratch or _folder_for_files(source)
    return replace(
        found, measures=replace(found.measures, alone=count_alone(*asked), linked=find_linked(*asked))
    )


def examine_source(
    source: Source,
    policy: Policy,
    memory: int,
    scratch: Path | None,
    *,
    with_statistics: bool = True,
    beside: RecodingMatch | None = None,
) -> RowFindings:
    """What is found in the rows of a table; all groups are added to the recoding ``beside`` it."""
    checked = columns_to_check(source.names, policy, with_statistics=with_statistics)
    if fits_in_memory(source, checked, memory):
        source = replace(source, read=cache(source.read))  # columns are looked at more than once
        whole = count_whole_columns(policy, lambda name: [source.column(name)])
        rows = replace(GroupedRows.of(source, checked.cells), whole=whole)
        found = _examine_groups(rows, policy, with_statistics=with_statistics, beside=beside)
        return _with_groups(_merge([found], source), rows)
    n_rows = rows_at_once(memory, len(checked.names))

    def read(*names: str) -> Iterator[Any]:
        return source.batches(names, rows=n_rows, memory=memory // SHARE)

    whole = count_whole_columns(policy, lambda name: (batch.column(name) for batch in read(name)))
    portions = Portions(checked, memory=memory, folder=scratch or _folder_for_files(source))
    try:
        collect(read(*checked.names), portions)
        parts = []
        for lines in portions:
            rows = replace(group_lines(lines, checked), whole=whole)
            parts.append(_examine_groups(rows, policy, with_statistics=with_statistics, beside=beside))
        merged = _merge(parts, source)
        return merged if portions.has_spilled else _with_groups(merged, rows)
    finally:
        portions.close()


def _with_groups(found: RowFindings, rows: GroupedRows) -> RowFindings:
    """The findings with all groups, which fit in memory."""
    return replace(
        found, groups=FoundGroups(rows.cells_of_groups(), rows.groups.size, found.measures.details)
    )


def _examine_groups(
    rows: GroupedRows, policy: Policy, *, with_statistics: bool, beside: RecodingMatch | None
) -> RowFindings:
    groups = rows.groups
    if beside is not None:
        beside.add(rows)
    counts_people = policy.person is not None
    judge = measure_shown if counts_people else measure_groups
    results = tuple(
        _measure_requirement(item, judge(item, rows, policy.schema)) for item in policy.requirements
    )
    has_any = with_statistics and policy.statistics
    statistics = tuple(check_statistics(rows, policy)) if has_any else ()
    one_value = {
        attribute.name: _rows_of_one_value(rows, attribute)
        for attribute in columns_without_diversity(policy)
        if attribute.name in rows.source.names or attribute.name in rows.moments
    }
    measures = Measures(
        int(groups.size.sum()),
        groups.n,
        results,
        SmallGroups.of(groups.size),
        one_value=one_value,
        respelled=_count_respelled(rows, policy),
        counts_people=counts_people,
    )
    return RowFindings(measures, statistics, policy, _distinct_cells(rows, policy.schema))


def _distinct_cells(rows: GroupedRows, schema: Schema) -> dict[str, DistinctCells]:
    return {
        attribute.name: DistinctCells.of(
            map(rows.labels, label_or_bounds(attribute, names)), rows.groups.size
        )
        for attribute, names in box_columns(schema, rows.source.names)
    }


def _rows_of_one_value(rows: GroupedRows, attribute: Attribute) -> int:
    """How many rows stand in groups whose rows all have the same value; missing is a value like others."""
    groups = rows.groups
    if attribute.name in rows.moments:
        moments = rows.moments[attribute.name]
        least, most = moments.ends
        is_one = (moments.count == 0) | ((moments.count == groups.size) & (least == most))
    else:
        values = codes_of(rows.source.column(attribute.name), attribute)
        is_one = groups.share_one(values.of_row)
    return int(groups.size[is_one].sum())


def _count_respelled(rows: GroupedRows, policy: Policy) -> dict[str, int]:
    """How many spellings of sensitive values count as a value that they look like."""
    found = {}
    for requirement in policy.requirements:
        attribute = None if requirement.of is None else policy.schema[requirement.of]
        if attribute is not None and attribute.kind is Kind.CATEGORY:
            cells = texts(rows.source.column(attribute.name), attribute)
            n_values = len(fold_lookalikes(cells).dictionary)
            if len(cells.dictionary) > n_values:
                found[attribute.name] = len(cells.dictionary) - n_values
    return found


def _merge(parts: Sequence[RowFindings], source: Source) -> RowFindings:
    """Put the findings of portions together: sums, and the worst of the worst groups."""
    if not parts:
        raise TableError(f"{source.where} has no rows; a table needs at least one.")
    measures = [part.measures for part in parts]
    requirements = tuple(
        RequirementResult(
            items[0].requirement,
            items[0].requirement.worst(np.array([item.achieved for item in items])),
            sum(item.n_failing for item in items),
        )
        for items in zip(*(found.requirements for found in measures), strict=True)
    )
    rows, groups = sum(found.rows for found in measures), sum(found.groups for found in measures)
    statistics = tuple(
        Finding(found[0].claim, sum(item.n_wrong for item in found), groups)
        for found in zip(*(part.statistics for part in parts), strict=True)
    )
    policy = parts[0].policy
    one_value = {name: sum(found.one_value[name] for found in measures) for name in measures[0].one_value}
    cells = {name: DistinctCells.join([part.cells[name] for part in parts]) for name in parts[0].cells}
    excludes = policy.excludes_in_labels
    details = {name: found.detail(policy.schema[name], excludes=excludes) for name, found in cells.items()}
    names = {name for found in measures for name in found.respelled}
    respelled = {name: max(found.respelled.get(name, 0) for found in measures) for name in sorted(names)}
    small = reduce(SmallGroups.join, (found.small for found in measures))
    found = Measures(
        rows, groups, requirements, small, details, one_value, respelled, policy.person is not None
    )
    return RowFindings(found, statistics, policy)


def _folder_for_files(source: Source) -> Path:
    """Beside the table's own folder if that can be written, else where temporary files belong."""
    beside = Path(source.where).resolve().parent.parent
    return beside if os.access(beside, os.W_OK) else Path(tempfile.gettempdir())


def claims(found: Measures) -> Claims:
    """What a certificate may claim of published rows: what ``verify`` will find.

    Twelve digits of each figure: the last ones of a sum depend on the order of the rows, which is secret.
    """
    requirements = tuple(
        Claim(item.requirement.as_policy(), item.requirement.figure, float(f"{item.achieved:.12g}"))
        for item in found.requirements
    )
    return Claims(
        rows=found.rows,
        groups=found.groups,
        requirements=requirements,
        cells=claim_of(found.details.values()),
        one_value=found.one_value,
        risk=None if found.counts_people else found.small.risk(rows=found.rows, groups=found.groups),
        alone_by_passed=found.alone,
    )


def _measure_requirement(requirement: Requirement, figures: Figures) -> RequirementResult:
    achieved, holds = figures
    return RequirementResult(requirement, requirement.worst(achieved), int(np.count_nonzero(~holds)))


NOTHING_PROMISED = Check(
    "nothing is promised", True, "the policy requires nothing of the groups", is_note=True
)


def shown_figures(found: Measures) -> dict[int, float]:
    """What rows show of people in the worst group, by the number of the requirement."""
    shown = enumerate(item.achieved for item in found.requirements)
    return {number: figure for number, figure in shown if not np.isnan(figure)}


def check_promises(found: Measures) -> Iterator[Check]:
    """Every requirement, with the figure of the worst group."""
    if not found.requirements:
        yield NOTHING_PROMISED
    for item in found.requirements:
        if found.counts_people and item.holds:
            yield note_people(item.requirement)
            continue
        worst = item.requirement.describe_worst(item.achieved)
        if found.counts_people:
            worst = describe_shown(item.requirement, item.achieved)
        failing = "" if item.holds else f", and {item.n_failing:,} of {found.groups:,} groups fail"
        yield Check(f"{item.requirement} holds", item.holds, f"{worst}{failing}")
    for name, detail in found.details.items():
        if detail.too_fine is not None:
            what = f"of {number_of(detail.too_fine, 'row')} it is" if detail.too_fine else ""
            yield Check(f"no label of {name!r} is finer than the policy's finest", not what, what)
    for name, n in found.respelled.items():
        claim = f"values of {name!r} that look alike count as one"
        yield Check(claim, True, f"{n:,} or more are other spellings of one", is_note=True)
    yield from check_linked(found.linked)
