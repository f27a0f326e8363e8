"""The error of groups at the tasks of a workload, by which the better of two growths is told.

The error at a class is the entropy within groups times their rows, and at a number the squared error around the means of
groups; where other features help to predict, within their cells, too. A row that is left out has the mean error that it
would have in one group of all rows. All is in whole numbers and fractions, so that neither the order of rows nor the
parts in which they come make a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.numbers import SumsWithin
from sfumato.encoding.targets import Cell, Columns, Number, Pair, Target, cell_of, targets_of
from sfumato.engines.protocol import Block
from sfumato.kernels.information import information_of
from sfumato.policy.document import Policy
from sfumato.policy.kinds import read_exactly
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]

DIGITS = 20
"""Binary digits after the point of a squared error, as information has them."""


class MeasuredTask(NamedTuple):
    """A target: its columns in the row matrix, and the error of all rows as one group.

    value   the column of the number, or of the class; of the class and the cell together, if there are cells
    cell    the column of the cell, None if there are none
    n_values, n_cells   how many of them there are; a number has no values
    """

    is_number: bool
    value: int
    cell: int | None
    n_values: int
    n_cells: int
    weight: Fraction
    whole: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class ErrorMeter:
    """Measures errors at the targets of a workload."""

    tasks: Sequence[MeasuredTask]

    @classmethod
    def of(cls, policy: Policy, columns: Columns) -> ErrorMeter:
        """For the tasks of a policy that have targets; none if something else decides in their place."""
        tasks = () if policy.method.overrides(policy.workload) else policy.predictions
        return cls(
            [
                _measured_task(target, cell_of(task, target, columns.schema), task.weight, columns)
                for task in tasks
                for target in targets_of(task)
            ]
        )

    def measure(self, rows: NDArray[np.uint32], size: Ints) -> list[int]:
        """The error at each target of groups of these sizes, one after the other in ``rows``."""
        group = np.repeat(np.arange(len(size)), size)
        return [_error_at(task, rows, group) for task in self.tasks]

    def add_up(self, errors: Sequence[int], n_left: int, n_rows: int) -> Fraction:
        """The weighted sum of the errors as shares of those of one group, with so many rows that are left out."""
        total = Fraction(0)
        for task, error in zip(self.tasks, errors, strict=True):
            if task.whole > 0:
                total += task.weight * (error / task.whole + Fraction(n_left, n_rows))
        return total


def _measured_task(target: Target, cell: Cell | None, weight: float, columns: Columns) -> MeasuredTask:
    n_values, n_cells = 0, 1 if cell is None else len(columns.count(cell))
    if isinstance(target, Number):
        sums = [columns.sums(target)] if cell is None else columns.sums_within(target, cell)
        whole = Fraction(sum(_squared_error(each.n, each.total, each.squares) for each in sums))
        value = columns.place(target)
    else:
        within = np.array([columns.n_rows]) if cell is None else columns.count(cell)
        classes = target if cell is None else Pair(cell, target)
        n_values = len(columns.count(classes))
        whole = Fraction(
            int(information_of(within).sum()) - int(information_of(columns.count(classes)).sum())
        )
        value = columns.place(classes)
    return MeasuredTask(
        isinstance(target, Number),
        value,
        None if cell is None else columns.place(cell),
        n_values,
        n_cells,
        read_exactly(weight),
        whole,
    )


def _error_at(task: MeasuredTask, rows: NDArray[np.uint32], group: Ints) -> int:
    within = group if task.cell is None else _number_pairs(group, rows[:, task.cell])
    if task.is_number:
        sums = SumsWithin(int(within.max(initial=-1)) + 1)
        sums.add(rows[:, task.value], within.astype(np.uint32))
        return sum(_squared_error(each.n, each.total, each.squares) for each in sums.all())
    return _information_in(np.bincount(within)) - _information_in(
        np.bincount(_number_pairs(group, rows[:, task.value]))
    )


def _number_pairs(group: Ints, code: NDArray[Any]) -> Ints:
    """A number for each pair of a group and a code."""
    pair = group * (int(code.max(initial=0)) + 1) + code
    return np.unique(pair, return_inverse=True)[1].astype(np.int64)


def _information_in(counts: Ints) -> int:
    return int(information_of(counts).sum())


def _squared_error(n: int, total: int, squares: int) -> int:
    """The squared error around a mean, rounded down, with DIGITS binary digits after the point."""
    return ((n * squares - total * total) << DIGITS) // n if n else 0


# ---- a group that is not loaded at once ------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ErrorPlan:
    """Gather what the error of one group is worked out from."""

    meter: ErrorMeter

    @property
    def n_bytes(self) -> int:
        """Memory of the counts."""
        return sum(8 * task.n_values + 40 * task.n_cells for task in self.meter.tasks)

    def new(self, _room: int, _spill: Spill | None = None) -> ErrorCounts:
        """Counts of no row yet."""
        return ErrorCounts(self.meter.tasks)

    def answer(self, state: ErrorCounts) -> list[int]:
        """The error at each target."""
        return [
            sum(_squared_error(each.n, each.total, each.squares) for each in sums.all())
            if task.is_number
            else _information_in(sums.n.astype(np.int64)) - _information_in(values)
            for task, values, sums in zip(state.tasks, state.values, state.within, strict=True)
        ]


class ErrorCounts:
    """The state of an ``ErrorPlan``: rows of each value, and what each cell has."""

    def __init__(self, tasks: Sequence[MeasuredTask]) -> None:
        self.tasks = tasks
        self.values = [np.zeros(task.n_values, dtype=np.int64) for task in tasks]
        self.within = [SumsWithin(task.n_cells) for task in tasks]

    def add(self, block: Block) -> None:
        """Add some rows of the group."""
        for task, values, within in zip(self.tasks, self.values, self.within, strict=True):
            value = block.rows[:, task.value]
            cell = np.zeros_like(value) if task.cell is None else block.rows[:, task.cell]
            within.add(value, cell)
            if not task.is_number:
                np.add(values, np.bincount(value, minlength=task.n_values), out=values)

    def merge(self, other: ErrorCounts) -> None:
        """Add other rows of the group."""
        for own, more in zip(self.values, other.values, strict=True):
            np.add(own, more, out=own)
        for within, more_within in zip(self.within, other.within, strict=True):
            within.merge(more_within)
