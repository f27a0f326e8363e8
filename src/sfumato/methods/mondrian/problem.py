"""What kernels are told of a table: which columns there are, what splits are for, and what groups must satisfy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from sfumato.encoding.domain import Domain
from sfumato.engines.protocol import EncodedTable
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.criteria import compile_queries, compile_rules, compile_targets
from sfumato.methods.mondrian.kernels.problem import Cells, Queries, Rules, ScoreType, Targets
from sfumato.methods.mondrian.kernels.scores import LOWEST
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions


@dataclass(frozen=True, slots=True, eq=False)
class SplitProblem:
    """All that the choice of a split depends on, but for the rows.

    axes      the quasi-identifiers
    targets   what splits should keep predictable; None: nothing in particular, which is Median
    rules     the requirement
    cells     targets that other features help to predict, in place of those in ``targets``
    queries   selections that splits serve first
    """

    axes: Axes
    targets: Targets | None
    rules: Rules
    cells: Cells | None = None
    queries: Queries | None = None

    @property
    def score_type(self) -> ScoreType:
        """What scores are: whole numbers, unless there is a number among the targets."""
        return np.int64 if self.targets is None else self.targets.label.dtype["weight"].type

    @property
    def least_gain(self) -> float | None:
        """The gain below which a split is left to Median; None: none is."""
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


def problem_of(table: EncodedTable, axes: Axes, policy: Policy, options: MondrianOptions) -> Problem:
    """The problem of an encoded table; raises if even the whole of it fails a requirement."""
    rules = compile_rules(policy.requirements, table.columns)
    targets, cells = compile_targets(policy.workload, options, table.columns)
    queries = compile_queries(policy.workload, policy.schema, table.domains, table.n_rows)
    return Problem(axes, targets, rules, cells, queries, domains=table.domains, n_columns=table.n_columns)
