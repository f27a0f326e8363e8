"""What the kernels are told of a table, wherever its rows are."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.encoding.domain import Domain
from sfumato.engines.scan import Intake
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.criteria import compile_queries, compile_rules, compile_targets
from sfumato.methods.mondrian.kernels.problem import Cells, Queries, Rules, Targets
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A table without its rows. A row has ``n_columns`` codes: quasi-identifiers, targets and sensitive values."""

    domains: tuple[Domain, ...]
    axes: Axes
    targets: Targets
    cells: Cells | None
    rules: Rules
    queries: Queries | None
    n_columns: int


def problem_of(intake: Intake, policy: Policy, options: MondrianOptions) -> Problem:
    """The problem of a table that has been scanned; raises if even the whole of it fails a requirement."""
    rules = compile_rules(policy.requirements, intake.columns)
    targets, cells = compile_targets(policy.workload, options, intake.columns)
    queries = compile_queries(policy.workload, policy.schema, intake.domains, intake.n_rows)
    axes = intake.axes(options.split_only)
    return Problem(intake.domains, axes, targets, cells, rules, queries, intake.n_columns)
