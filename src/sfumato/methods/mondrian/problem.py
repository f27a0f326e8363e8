"""What kernels are told of a table: which columns there are, what splits are for, and what groups must satisfy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.encoding.domain import Domain, TreeDomain
from sfumato.encoding.slices import Slices
from sfumato.engines.protocol import EncodedTable
from sfumato.errors import TableError
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.criteria import (
    compile_queries,
    compile_rules,
    compile_targets,
    count_classes,
    list_tasks,
    uses_cells,
)
from sfumato.methods.mondrian.kernels.problem import Cells, Loss, Queries, Rules, ScoreType, Targets
from sfumato.methods.mondrian.kernels.scores import LOWEST
from sfumato.methods.mondrian.prices import compile_loss, slice_numbers
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import Criterion, MondrianOptions
from sfumato.policy.output import BOXES, object_to_exclusions


@dataclass(frozen=True, slots=True, eq=False)
class SplitProblem:
    """All that the choice of a split depends on, but for the rows.

    axes      the quasi-identifiers
    targets   what splits should keep predictable; None: nothing in particular, which is Median
    rules     the requirement
    cells     targets that other features help to predict, in place of those in ``targets``
    queries   selections that splits serve first
    loss      what cells cost, if splits go by that; with targets, by both
    leaves_rows_out   may splits leave rows out, see ``kernels.leave_out``?
    greatest  the greatest code of each column of the row matrix, where people are counted
    """

    axes: Axes
    targets: Targets | None
    rules: Rules
    cells: Cells | None = None
    queries: Queries | None = None
    loss: Loss | None = None
    leaves_rows_out: bool = False
    greatest: tuple[int, ...] = ()

    @property
    def score_type(self) -> ScoreType:
        """What scores are: whole numbers, unless there is a number among the targets, or splits go by loss."""
        if self.loss is not None:
            return np.float64
        return np.int64 if self.targets is None else self.targets.label.dtype["weight"].type

    @property
    def least_gain(self) -> float | None:
        """The gain below which a split is left to Median; None: none is."""
        if self.loss is not None:
            return None
        return math.inf if self.targets is None else self.targets.median_below_gain

    @property
    def lowest(self) -> float:
        """Lower than any score, and of their type."""
        return LOWEST if self.score_type is np.int64 else -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Problem(SplitProblem):
    """The problem of a table, with the domains of its quasi-identifiers; its rows have so many columns of codes."""

    domains: tuple[Domain, ...] = field(kw_only=True)
    n_columns: int = field(kw_only=True)
    slices: Sequence[Slices | None] = field(default=(), kw_only=True)
    """Public slices of each ordered axis that labels are narrowed to; none: they are boxes."""


def problem_of(table: EncodedTable, axes: Axes, policy: Policy, options: MondrianOptions) -> Problem:
    """The problem of an encoded table; raises if even the whole of it fails a requirement."""
    if policy.excludes_in_labels:
        _check_labels(table.domains)
    rules = compile_rules(policy.requirements, table.columns)
    workload = policy.workload
    n_classes, has_cells = count_classes(workload, table.columns), uses_cells(workload, policy.schema)
    criterion = options.criterion_for(workload, n_classes=n_classes, has_cells=has_cells)
    targets, cells, queries, loss = None, None, None, None
    if criterion in (Criterion.MIXED, Criterion.TASKS):
        targets, cells = compile_targets(workload, options, table.columns)
        queries = compile_queries(workload, policy.schema, table.domains, table.n_rows)
    slices = slice_numbers(table.domains, policy.published_numbers)
    if criterion in (Criterion.LOSS, Criterion.MIXED):
        weights = [domain.attribute.weight for domain in table.domains]
        loss = compile_loss(
            table.domains,
            slices,
            weights,
            tasks=() if targets is None else list_tasks(workload, options, table.columns),
            n_rows=table.n_rows,
            has_rest=options.has_rest(workload, n_classes=n_classes, has_cells=has_cells),
            loss_weight=options.weight_of_loss,
        )
    return Problem(
        axes, targets, rules, cells, queries, loss, policy.leaves_rows_out, _find_greatest(table),
        domains=table.domains, n_columns=table.n_columns,
        slices=() if policy.published_numbers.kind == BOXES and loss is None else slices,
    )  # fmt: skip


def _find_greatest(table: EncodedTable) -> tuple[int, ...]:
    """The greatest code of each column, where people are counted."""
    if table.columns.person is None:
        return ()
    return (*(domain.n_codes - 1 for domain in table.domains), *table.columns.greatest)


def _check_labels(domains: Sequence[Domain]) -> None:
    """No value of the table looks like the label of a rest that says what it excludes."""
    for domain in domains:
        if isinstance(domain, TreeDomain) and (objection := object_to_exclusions(domain.hierarchy.labels)):
            raise TableError(f"Column {domain.attribute.name!r} has {objection}")
