"""Mondrian on tables in memory, by its parts: the encoded problem with a grower, and the groups.

It is Mondrian as published unless ``options`` say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.engines.memory import MemoryEngine
from sfumato.engines.start import scan_table
from sfumato.methods.mondrian import method
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.problem import Problem, problem_of
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import PAPER, MondrianOptions
from sfumato.policy.output import Output
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Task
from sfumato.recoding.recoder import Partition
from sfumato.table.source import Source

AS_PUBLISHED = MondrianOptions(variant=PAPER)


class UncheckedPolicy(Policy):
    """A policy without its checks: encoders and growth must also do what no policy would let happen."""

    def __post_init__(self) -> None:
        """Anything goes."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Problem):
    """The problem of a table, with its encoded rows in a grower."""

    engine: TreeGrower = field(kw_only=True)


def prepare(
    source: Source,
    schema: Schema,
    requirements: Sequence[Requirement],
    *,
    workload: Sequence[Task] = (),
    options: MondrianOptions | None = None,
    threads: int | None = None,
) -> Prepared:
    """Encode the table; raises if even the whole of it, as one group, fails a requirement."""
    policy = UncheckedPolicy(schema, tuple(requirements), tuple(workload), options or AS_PUBLISHED)
    return prepare_by(policy, source, threads=threads)


def prepare_by(policy: Policy, source: Source, *, threads: int | None = None) -> Prepared:
    """``prepare`` for a policy."""
    table, options = scan_table(source, policy), policy.options_for(MondrianOptions)
    problem = problem_of(table, table.axes(options.split_only), policy, options)
    rows = MemoryEngine().load(table).rows
    grower = TreeGrower(rows, len(problem.domains), rules=problem.rules, threads=threads)
    parts = (problem.axes, problem.targets, problem.rules, problem.cells, problem.queries)
    return Prepared(*parts, domains=problem.domains, n_columns=problem.n_columns, engine=grower)


def partition(
    source: Source,
    schema: Schema,
    requirements: Sequence[Requirement],
    *,
    workload: Sequence[Task] = (),
    options: MondrianOptions | None = None,
    output: Output = Output.LABELS,
    **given: Any,
) -> Partition:
    """The groups of a table."""
    options = options or AS_PUBLISHED
    policy = UncheckedPolicy(schema, tuple(requirements), tuple(workload), options, output)
    return method.partition(source, policy, **given)
