"""What published rows cannot show, counted again in the raw table: the people of groups, and what was left out.

Each raw row is sent to a box by the recoding of the release, and must find a group of as many rows as are published. Rows
without a box were left out. A person counts once in a group, and once for each of its values there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Attribute, Role
from sfumato.policy.suppress import Suppress
from sfumato.release.certificate import Claims, RiskClaim, SmallGroups
from sfumato.release.certificate.claims import PEOPLE_COUNTED
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.source import Source
from sfumato.verify.checks import Check, check_equal
from sfumato.verify.groups import Codes, Combinations, GroupedRows, codes_of, group, values_of
from sfumato.verify.recoding import RecodingMatch
from sfumato.verify.requirements import count_whole_columns, measure_groups
from sfumato.verify.routing import NOWHERE, route_rows

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RawTable:
    """The raw table of a release, to count people in, and rows that were left out. All of it is held in memory."""

    source: Source
    person: Ints | None
    """The number of each row's person; None if groups count rows."""

    @classmethod
    def open(cls, table: Any, policy: Policy, reading: Reading = AS_USUAL) -> RawTable:
        """An InputError if it lacks a column, or says of some rows not whose they are."""
        unit = policy.person
        if unit is None and not policy.leaves_rows_out:
            raise InputError(
                "--table is for a release whose groups count people, or that leaves rows out, and this one does neither; "
                "leave it out."
            )
        source = open_as(table, policy.schema, reading)
        needed = {
            *([] if unit is None else [unit]),
            *policy.schema.names(Role.QUASI_IDENTIFIER),
            *(item.of for item in policy.requirements if item.of is not None),
        }
        for name in sorted(needed - {*source.names}):
            raise TableError(f"{source.where} has no column {name!r}, which is needed to count again.")
        return cls(source, None if unit is None else number_people(source, policy.schema[unit]))


def number_people(source: Source, unit: Attribute) -> Ints:
    """The number of each row's person; a TableError if some rows do not say whose they are."""
    people = values_of(source.column(unit.name), Attribute(unit.name, Role.SENSITIVE, unit.kind))
    if people.null_count:
        raise TableError(
            f"Column {unit.name!r}, the unit, is missing in {number_of(people.null_count, 'row')} of {source.where}."
        )
    return np.asarray(people.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def recount(raw: RawTable, beside: RecodingMatch, policy: Policy, claimed: Claims) -> Iterator[Check]:
    """Were no more rows left out than may be, and does every requirement hold of people, with the figures claimed?

    beside   the recoding, to which all published groups have been added
    """
    box, published = _find_groups(raw.source, beside)
    n_nowhere = int((box == NOWHERE).sum())
    size = np.bincount(box[box != NOWHERE], minlength=len(published))
    n_other = int((size != published).sum())
    detail = f"{number_of(n_other, 'group')} would have other numbers of rows" if n_other else ""
    is_same = not n_other and n_nowhere == claimed.suppressed
    if not n_other and not is_same:
        detail = f"{number_of(n_nowhere, 'row')} would be in none"
    yield Check("the rows of the raw table fall into the groups of the release", is_same, detail)
    if not is_same:
        return
    if policy.suppress is not None and policy.leaves_rows_out:
        yield from _recount_left_out(box == NOWHERE, raw.person, policy.suppress)
    if raw.person is not None:
        yield from _recount_people(raw.source, raw.person, box, policy, claimed)


def _recount_left_out(is_left: Flags, person: Ints | None, suppress: Suppress) -> Iterator[Check]:
    """Are no more rows left out than may be, and where people count no rows of more people?"""

    def check(says: str, n: int, whole: int) -> Check:
        most = suppress.most_rows(whole)
        return Check(says, n <= most, "" if n <= most else f"the policy allows at most {most:,}")

    n_left = int(is_left.sum())
    yield check(f"{n_left:,} of {number_of(len(is_left), 'row')} were left out", n_left, len(is_left))
    if person is not None:
        n_people = len(np.unique(person[is_left]))
        whole = len(np.unique(person))
        of_people = number_of(whole, "person", "people")
        yield check(f"{n_people:,} of {of_people} lost a row", n_people, whole)


def _recount_people(
    source: Source, people: Ints, box: Ints, policy: Policy, claimed: Claims
) -> Iterator[Check]:
    """Does every requirement hold of people, with the figures that are claimed?"""
    kept = np.flatnonzero(box != NOWHERE)
    person = people[kept]
    n_people = len(np.unique(person))
    yield check_equal("the number of people is {}", claimed.people or 0, n_people)
    if claimed.risk is not None:
        found = _count_risk(box[kept], person)
        words = claimed.risk.words(PEOPLE_COUNTED)
        detail = "" if found == claimed.risk else f"it is {found.words(PEOPLE_COUNTED)}"
        yield Check(f"the risk of re-identification is {words}", not detail, detail)
    whole = _whole_of_pairs(source, person, kept, policy)
    for item, claim in zip(policy.requirements, claimed.requirements, strict=False):
        counted = replace(_rows_of_pairs(source, item, box[kept], person, kept, policy), whole=whole)
        figures, holds = measure_groups(item, counted, policy.schema)
        worst = item.worst(figures)
        told = item.describe_worst_of_people(worst)
        n_failing = int((~holds).sum())
        failing = "" if not n_failing else f", and {n_failing:,} of {counted.groups.n:,} groups fail"
        yield Check(f"{item} holds of people", not n_failing, f"{told}{failing}")
        is_claimed = bool(np.isclose(worst, claim.achieved, rtol=1e-9, atol=0))
        if not is_claimed:
            yield Check(f"{item.describe_worst_of_people(claim.achieved)} for {item}", False, told)


def _count_risk(box: Ints, person: Ints) -> RiskClaim:
    """The risk of people, each of whom counts once in every group with a row of theirs."""
    at = _first_of_each([box, person])
    n_people = np.bincount(box[at])
    n_people = n_people[n_people > 0]
    return SmallGroups.of(n_people).risk(rows=len(at), groups=len(n_people))


def _find_groups(source: Source, beside: RecodingMatch) -> tuple[Ints, Ints]:
    """The published group of each raw row, ``NOWHERE`` where there is none, and the rows that each group has.

    Boxes with the same labels are one group.
    """
    lines, size = beside.published()
    groups = Combinations.of(lines)
    own = [
        np.where(place >= 0, pieces.of_box[np.maximum(place, 0)], NOWHERE)
        for pieces, place in zip(beside.pieces, route_rows(beside.recoding, source), strict=True)
    ]
    return groups.find(own), np.bincount(groups.of_line, size, minlength=groups.n).astype(np.int64)


def _rows_of_pairs(
    source: Source, requirement: Requirement, box: Ints, person: Ints, kept: Ints, policy: Policy
) -> GroupedRows:
    """One row for each person of a group, or for each of its values there, as rows that stand for themselves."""
    lines = [box, person]
    if requirement.of is not None:
        lines.append(_values(source, policy.schema[requirement.of], kept))
    at = _first_of_each(lines)
    chosen = pa.array(kept[at])
    name = requirement.of or source.names[0]  # a table without columns has no rows
    columns = {name: source.column(name).take(chosen)}
    counted = Source((name,), len(at), source.kind, source.where, columns.__getitem__)
    return GroupedRows(counted, group([Codes(box[at], int(box.max()) + 1)]))


def _whole_of_pairs(source: Source, person: Ints, kept: Ints, policy: Policy) -> Any:
    """The whole table that groups are compared with: each person once for each value."""

    def read(name: str) -> list[Any]:
        at = _first_of_each([person, _values(source, policy.schema[name], kept)])
        return [source.column(name).take(pa.array(kept[at]))]

    return count_whole_columns(policy, read)


def _values(source: Source, attribute: Attribute, kept: Ints) -> Ints:
    return np.asarray(codes_of(source.column(attribute.name), attribute).of_row, dtype=np.int64)[kept]


def _first_of_each(lines: Sequence[Ints]) -> Ints:
    """The first row of each different line."""
    found = Combinations.of(lines)
    first = np.empty(found.n, dtype=np.int64)
    first[found.of_line[::-1]] = np.arange(len(found.of_line))[::-1]
    return np.sort(first)
