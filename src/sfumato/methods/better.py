"""The better of two growths: one that may leave rows out, and one that keeps all.

Growth is greedy, so that leaving rows out may also end worse. What is published is never worse than without: with tasks
the one with less error at them, a row that is left out counting as in one group of all; without, or if these are equal,
the one whose cells lose less, a row that is left out losing all of them. If they are equal in this, too, all rows stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from sfumato.methods.groups import Outcome
from sfumato.methods.own_error import ErrorMeter
from sfumato.policy.document import Policy
from sfumato.policy.kinds import read_exactly

T = TypeVar("T")


class ComparedRun(Protocol):
    """A run that may leave rows out, as two of them are compared."""

    @property
    def meter(self) -> ErrorMeter | None:
        """What measures the error of its groups."""

    @property
    def errors(self) -> Sequence[int]:
        """What it has measured."""

    @property
    def refines(self) -> bool:
        """May the groups be others though no row is left out?"""


Badness = tuple[Fraction, Fraction]
"""The error at the tasks, and what cells lose; the less the better."""


def choose_better(grow: Callable[[bool], tuple[T, ComparedRun, Outcome]], policy: Policy) -> T:
    """What ``grow`` makes, told whether to keep all rows: by the better of two runs if the policy lets rows go."""
    found, run, outcome = grow(not policy.leaves_rows_out)
    if not policy.leaves_rows_out or (outcome.n_left == 0 and not run.refines):
        return found  # a tree that leaves nothing out is that of all rows; a list may come from another tree
    badness = judge(run, outcome, policy)
    kept, run, outcome = grow(True)
    return found if badness < judge(run, outcome, policy) else kept


def judge(run: ComparedRun, outcome: Outcome, policy: Policy) -> Badness:
    """How bad the groups of a run are."""
    n_rows, n_left = outcome.lost.rows + outcome.n_left, outcome.n_left
    meter = run.meter or ErrorMeter(())
    error = meter.add_up(run.errors, n_left, n_rows)
    if not policy.method.overrides(policy.workload):
        for task, returned in zip(policy.selections, outcome.returned, strict=True):
            error += read_exactly(task.weight) * Fraction(returned + n_left, n_rows)
    weights = {column.name: read_exactly(column.weight) for column in policy.schema.quasi_identifiers}
    return error, outcome.lost.with_left_out(n_left).weigh(weights)
