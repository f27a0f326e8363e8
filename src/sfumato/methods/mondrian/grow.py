"""Mondrian: greedy recursive partitioning of the quasi-identifier space [LDR08, section 2.2].

The result is minimal: no group can be split any further without breaking the requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.encoding.batches import WholeTable
from sfumato.encoding.domain import Domain, axes_of
from sfumato.encoding.encoders import encode_axis
from sfumato.encoding.targets import Columns, columns_for
from sfumato.methods.mondrian.criteria import compile_queries, compile_rules, compile_targets
from sfumato.methods.mondrian.memory import TreeGrower
from sfumato.methods.mondrian.problem import Problem
from sfumato.methods.mondrian.sample import SAMPLE_SEED
from sfumato.methods.mondrian.sampled_growth import begin_on_sample
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.output import Output
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Task
from sfumato.progress import Progress, no_progress
from sfumato.recoding.recoder import Partition
from sfumato.recoding.splits import RecodingPlan
from sfumato.recoding.tree import recoding_of
from sfumato.table.cells import give_back_memory
from sfumato.table.source import Source
from sfumato.table.spill import Counters


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Problem):
    """The problem of a table in memory, with its encoded rows in an engine."""

    engine: TreeGrower = field(kw_only=True)


def prepare(
    source: Source,
    schema: Schema,
    requirements: Sequence[Requirement],
    *,
    workload: Sequence[Task] = (),
    options: MondrianOptions | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Prepared:
    """Encode the table; raises if even the whole of it, as one group, fails a requirement."""
    options = options or MondrianOptions()
    quasi = schema.quasi_identifiers
    table = WholeTable(source, schema)
    columns = Columns.of_table(table, columns_for(schema, requirements, workload), n_axes=len(quasi))
    progress("checking", 0, 1)
    rules = compile_rules(requirements, columns)
    targets, cells = compile_targets(workload, options, columns)
    codes = np.empty((source.n_rows, len(quasi)), dtype=np.uint32)
    domains: list[Domain] = []
    for i, attribute in enumerate(quasi):
        progress("encoding", i, len(quasi))
        domain, codes[:, i] = encode_axis(source, attribute)
        domains.append(domain)
    axes = axes_of(tuple(domains), split_only=options.split_only)
    queries = compile_queries(workload, schema, domains, source.n_rows)
    give_back_memory()
    engine = TreeGrower(codes, columns.matrix(table), threads=threads)
    return Prepared(axes, targets, rules, cells, queries, domains=tuple(domains), engine=engine)


def partition(
    source: Source,
    schema: Schema,
    requirements: Sequence[Requirement],
    *,
    workload: Sequence[Task] = (),
    options: MondrianOptions | None = None,
    output: Output = Output.LABELS,
    threads: int | None = None,
    seed: int = SAMPLE_SEED,
    counters: Counters | None = None,
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows into groups that satisfy every requirement, as useful as possible for the workload.

    If the policy asks for a sample, it is drawn from ``seed``, and ``counters`` tell how it went.
    """
    options = options or MondrianOptions()
    problem = prepare(
        source, schema, requirements, workload=workload, options=options, threads=threads, progress=progress
    )
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress("splitting", done, source.n_rows)

    progress("splitting", 0, source.n_rows)
    begun = begin_on_sample(
        problem.engine, problem, options, seed=seed, counters=Counters() if counters is None else counters
    )
    nodes = problem.engine.grow(problem, begun=begun, progress=count)
    covers = problem.engine.covers(nodes, problem.axes)
    leaf = np.flatnonzero(nodes.axis < 0)
    by_start = np.argsort(nodes.start[leaf])
    plan = RecodingPlan(problem.domains, problem.axes.root, output, schema.left_out)
    return Partition(
        recoding_of(nodes, covers, plan),
        leaf[by_start],
        (nodes.end - nodes.start)[leaf][by_start],
        problem.engine.row_numbers(),
    )
