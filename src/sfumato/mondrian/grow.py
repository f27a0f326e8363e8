"""Mondrian: greedy recursive partitioning of the quasi-identifier space [LDR08, section 2.2].

The result is minimal: no group can be split any further without breaking the requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import encoding, tables
from sfumato.axes import axis_of
from sfumato.columns import ColumnsInMemory, wanted
from sfumato.encoding import Domain, OrderedDomain
from sfumato.engines.memory import MemoryEngine
from sfumato.kernels.compile import is_warm
from sfumato.kernels.grow import Nodes
from sfumato.mondrian.criteria import compile_queries, compile_rules, compile_targets
from sfumato.mondrian.problem import Problem
from sfumato.partition import Partition, Progress, no_progress
from sfumato.policy import MondrianOptions, Output
from sfumato.recoding import Recoding, Tree
from sfumato.requirement import Requirement
from sfumato.schema import Schema
from sfumato.tables import Source
from sfumato.workload import Task


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Problem):
    """A table ready to be split: what the kernels are told, and encoded rows in an engine."""

    engine: MemoryEngine


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
    columns = ColumnsInMemory(source, schema, wanted(schema, requirements, workload), n_axes=len(quasi))
    progress("checking", 0, 1)
    rules = compile_rules(requirements, columns)
    targets, cells = compile_targets(workload, options, columns)
    codes = np.empty((source.n_rows, len(quasi)), dtype=np.uint32)
    domains: list[Domain] = []
    for i, attribute in enumerate(quasi):
        progress("encoding", i, len(quasi))
        domain, codes[:, i] = encoding.encode_axis(source, attribute)
        domains.append(domain)
    axes = encoding.axes_of(tuple(domains), split_only=options.split_only)
    queries = compile_queries(workload, schema, domains, source.n_rows)
    tables.give_back_memory()
    extra = columns.matrix()
    engine = MemoryEngine(codes, extra, threads=threads)
    n_columns = len(quasi) + extra.shape[1]
    return Prepared(tuple(domains), axes, targets, cells, rules, queries, n_columns, engine)


def partition(
    source: Source,
    schema: Schema,
    requirements: Sequence[Requirement],
    *,
    workload: Sequence[Task] = (),
    options: MondrianOptions | None = None,
    output: Output = Output.LABELS,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows into groups that satisfy every requirement, as useful as possible for the workload."""
    problem = prepare(
        source, schema, requirements, workload=workload, options=options, threads=threads, progress=progress
    )
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress("splitting", done, source.n_rows)

    progress("splitting" if is_warm() else "compiling (once)", 0, source.n_rows)
    nodes = problem.engine.grow(
        problem.axes,
        problem.targets,
        problem.rules,
        cells=problem.cells,
        queries=problem.queries,
        progress=count,
    )
    covers = problem.engine.covers(nodes, problem.axes)
    leaf = np.flatnonzero(nodes.axis < 0)
    by_start = np.argsort(nodes.start[leaf])
    return Partition(
        recoding_of(nodes, covers, problem, output, schema.left_out),
        leaf[by_start],
        (nodes.end - nodes.start)[leaf][by_start],
        problem.engine.row_numbers(),
    )


def recoding_of(
    nodes: Nodes, covers: NDArray[np.int64], problem: Problem, output: Output, left_out: frozenset[str]
) -> Recoding:
    """The recoding of a grown tree: codes become values, and hierarchies keep only the nodes in use."""
    domains, roots = problem.domains, problem.axes.root
    is_leaf = nodes.axis < 0
    n_nodes = len(nodes.axis)
    threshold = np.full(n_nodes, np.nan)
    branch = np.full(n_nodes, -1, dtype=np.int32)
    cover = np.full((n_nodes, len(domains)), -1, dtype=np.int32)
    parent_axis = _parent_axis(nodes)
    axes = []
    for a, domain in enumerate(domains):
        here = nodes.axis == a
        if isinstance(domain, OrderedDomain):
            threshold[here] = domain.value(nodes.threshold[here])
            branch[parent_axis == a] = nodes.branch[parent_axis == a]
            axes.append(axis_of(domain, np.zeros(0, dtype=np.int64))[0])
            continue
        below = parent_axis == a
        own = [nodes.branch[below] - roots[a], nodes.threshold[here] - roots[a], covers[:, a] - roots[a]]
        axis, new = axis_of(domain, np.concatenate(own))
        branch[below] = new[own[0]]
        cover[here, a] = new[own[1]]
        cover[is_leaf, a] = new[own[2]]
        axes.append(axis)
    tree = Tree(nodes.axis, threshold, nodes.first_child, nodes.n_children, branch, cover)
    return Recoding(tuple(axes), tree, output, left_out)


def _parent_axis(nodes: Nodes) -> NDArray[np.int32]:
    """The attribute that made each node, -1 for the root."""
    out = np.full(len(nodes.axis), -1, dtype=np.int32)
    inner = np.flatnonzero(nodes.axis >= 0)
    n_children = nodes.n_children[inner]
    first = np.repeat(nodes.first_child[inner], n_children)
    within = np.arange(len(first)) - np.repeat(np.cumsum(n_children) - n_children, n_children)
    out[first + within] = np.repeat(nodes.axis[inner], n_children)
    return out
