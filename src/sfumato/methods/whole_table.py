"""Does the whole table, as one group, satisfy a requirement? If not, no groups can."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.encoding.numbers import Sums
from sfumato.encoding.targets import Columns, Label, sensitive_column
from sfumato.errors import RequirementUnreachable, number_of
from sfumato.policy.requirements import GroupStats, Requirement


def check_whole_table(requirement: Requirement, columns: Columns) -> None:
    """Raise unless all rows as one group satisfy the requirement."""
    groups = _measure_whole_table(requirement, columns)
    if not requirement.holds(groups)[0]:
        best = requirement.describe(float(requirement.measure(groups)[0]))
        if columns.person is not None and requirement.of is None:
            best = number_of(columns.n_people, "person", "people")
        raise RequirementUnreachable(requirement, best=best, n_rows=columns.n_rows)


def _measure_whole_table(requirement: Requirement, columns: Columns) -> GroupStats:
    """The statistics of all rows, or people, as one group."""
    count, column = np.array([columns.n_people]), sensitive_column(requirement)
    if column is None:
        return GroupStats(count)
    if isinstance(column, Label):
        counts = columns.count_pairs(column)
        reference = columns.labels[column.name].reference_for(requirement, counts)
        return GroupStats(counts.sum(keepdims=True), values=counts[None, :], reference=reference)
    variance = variance_of(columns.sums_of_pairs(column)) * columns.scale(column).exact_unit ** 2
    return GroupStats(count, variance=np.array([float(variance)]))


def variance_of(sums: Sums) -> Fraction:
    """Population variance, exactly, so that the order of the rows cannot matter."""
    return Fraction(sums.squared_errors, sums.n**2) if sums.n else Fraction(0)
