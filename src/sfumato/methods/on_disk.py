"""Publishing a table larger than memory: groups are written as they are found, and nothing is ever whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.scan import Intake
from sfumato.errors import InputError
from sfumato.methods.mondrian.memory_plan import MemoryPlan, estimate_row_bytes
from sfumato.methods.mondrian.problem import Problem, problem_of
from sfumato.methods.mondrian.rothko import Chance, Chunk, Resources, Rothko, ScannedTable
from sfumato.methods.mondrian.sample import choose_sample_size
from sfumato.methods.specialization import tds
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, MondrianOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.requirements import KAnonymity
from sfumato.progress import Progress
from sfumato.randomness import Random, generator, seeded
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.rows import published_rows
from sfumato.recoding.tree_file import AnyTree, NoTree, TreeWriter
from sfumato.release.query import select
from sfumato.table import formulas
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill
from sfumato.table.write import ROW_GROUP, TableWriter

SAMPLE_SEED = 0
"""Rothko-S draws its sample from this unless a seed is given: same input and policy, same boxes."""


LEAST_ROW_GROUP = 1 << 14

RAW_BYTES = 32
"""Memory that a cell of the sample may take while it is drawn."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and what the certificate says of the run."""

    path: Path
    n_rows: int
    recoding: Any
    n_splits: dict[str, int]
    returned: list[int]
    """Rows that each selection of the policy returns."""
    true: list[int]
    io: dict[str, Any]


def write_rows(
    source: Source,
    policy: Policy,
    path: Path,
    *,
    spill: Spill,
    memory: int,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress,
) -> Written:
    """Write the published rows of ``source`` to ``path``, within ``memory`` bytes for what grows with the data."""
    intake = Intake(source, policy, spill=spill, memory=memory // 2, progress=progress)
    n_sample = _sample_size(source, policy, _plan(policy, memory), memory)
    draw = seeded(SAMPLE_SEED if seed is None else seed)
    intake.scan(sample=n_sample, random=draw)
    plan = _plan(policy, memory, intake.payload_bytes)
    spill.counters.encoded_bytes = intake.encoded_bytes
    _check_room(intake, spill)
    problem, random = problem_of(intake, policy), generator(seed)
    if isinstance(policy.method, TdsOptions):
        run = Tds(intake, problem, policy, plan, spill=spill, random=random, progress=progress)
        return _written(run, intake, policy, path, random)
    assert isinstance(policy.method, MondrianOptions)  # a private method has no groups
    tree: AnyTree = NoTree()
    if policy.keeps_recoding:
        tree = TreeWriter(spill.folder, len(problem.domains), memory=memory // 4)
    rothko = Rothko(
        ScannedTable(intake, intake.layout, intake.ends, _sample(intake, policy.method, plan, draw)),
        problem,
        policy,
        resources=Resources(plan, spill, threads),
        chance=Chance(sampling=draw, shuffling=random),
        tree=tree,
        progress=progress,
    )
    return _written(rothko, intake, policy, path, random)


def _written(run: Rothko | Tds, intake: Intake, policy: Policy, path: Path, random: Random) -> Written:
    """Write the groups as they are found."""
    conditions = [predicate.parse(task.where, policy.schema) for task in policy.selections]
    returned = [0] * len(conditions)
    row_group = min(ROW_GROUP, max(run.plan.max_rows, LEAST_ROW_GROUP))  # the writer holds one
    with TableWriter(path, row_group=row_group) as writer:
        for chunk in run.chunks():
            rows = _published(chunk, intake, policy, random)
            for i, condition in enumerate(conditions):
                returned[i] += int(select.select_rows(condition, rows, chunk.groups.recoding, policy).sum())
            writer.append(formulas.escape(rows) if policy.escapes_formulas else rows)
            intake.let_go()
    recoding = run.recoding() if policy.keeps_recoding else None
    return Written(
        path,
        writer.n_rows,
        recoding,
        run.n_splits(),
        returned,
        intake.true_counts if conditions else [],
        _io(policy, run),
    )


@dataclass(slots=True, eq=False)
class Tds:
    """Top-down specialization, as the driver of Rothko presents itself."""

    intake: Intake
    problem: Problem
    policy: Policy
    plan: MemoryPlan
    spill: Spill
    random: Random
    progress: Progress
    cuts: Cuts | None = None

    def chunks(self) -> Iterator[Chunk]:
        """The groups, in the order of the cells of the grid."""
        self.cuts, portions = tds.grow_on_disk(
            self.intake, self.problem, self.policy, spill=self.spill, layout=self.intake.layout,
            memory=self.plan.count_bytes, at_once=self.plan.max_rows, random=self.random, progress=self.progress,
        )  # fmt: skip
        last = None
        for groups, payload in portions:
            here = tuple(groups.leaf[0].tolist())
            if here == last and self.policy.statistics:
                raise InputError(
                    "A group has more rows than fit in memory, so its statistics cannot be taken; "
                    "allow more --memory, or publish no summary."
                )
            last = tuple(groups.leaf[-1].tolist())
            yield Chunk(groups, payload)

    def recoding(self) -> Cuts:
        assert self.cuts is not None
        return self.cuts

    def n_splits(self) -> dict[str, int]:
        return self.recoding().n_splits()


def _plan(policy: Policy, memory: int, payload_bytes: int = 0) -> MemoryPlan:
    n_axes = len(policy.schema.quasi_identifiers)
    targets = {name for task in policy.predictions for name in task.targets}
    sensitive = {requirement.of for requirement in policy.requirements if requirement.of}
    options = policy.method if isinstance(policy.method, MondrianOptions) else MondrianOptions()
    row_bytes = estimate_row_bytes(
        n_axes=n_axes,
        n_extra=len(targets | sensitive) + 1,
        n_published=len(policy.schema.published),
        payload_bytes=payload_bytes,
        min_group=max((one.k for one in policy.requirements if isinstance(one, KAnonymity)), default=1),
    )
    return MemoryPlan.of(memory, row_bytes=row_bytes, max_rows=options.rows_in_memory)


def _sample_size(source: Source, policy: Policy, plan: MemoryPlan, memory: int) -> int:
    """How many rows the first pass draws; a share of a number that is not yet known is taken afterwards.

    They are held as they are stored, with a copy while some are thrown out, until the codes are known.
    """
    options = policy.method
    if not (isinstance(options, MondrianOptions) and options.scale == ROTHKO_S):
        return 0
    most = min(plan.max_rows, max(memory // (RAW_BYTES * len(source.names)), 1000))
    if source.n_rows == UNKNOWN:
        return most if options.sample is None or options.sample < 1 else min(most, int(options.sample))
    return choose_sample_size(source.n_rows, options, most)


def _sample(intake: Intake, options: MondrianOptions, plan: MemoryPlan, draw: Random) -> NDArray[np.uint32]:
    """What was drawn, or as much of it as the policy asks for."""
    sample = intake.take_sample()
    wanted = choose_sample_size(intake.n_rows, options, plan.max_rows)
    if len(sample) <= wanted:
        return sample
    return sample[np.sort(draw.choice(len(sample), wanted, replace=False))]


def _published(chunk: Chunk, intake: Intake, policy: Policy, random: Random) -> pa.Table:
    """The rows of some finished groups; statistics have the type that they have in the whole table."""
    n_rows, source = len(chunk.groups.row_numbers), intake.source
    read = _no_column if chunk.payload is None else chunk.payload.column
    own = Source(source.names, n_rows, source.kind, source.where, read)
    rows = published_rows(own, policy, chunk.groups, random.random(n_rows), chunk.statistics)
    for name, kind in intake.statistic_types.items():
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).cast(kind))
    return rows


def _no_column(name: str) -> pa.ChunkedArray:
    raise KeyError(name)


def _check_room(intake: Intake, spill: Spill) -> None:
    """Rows are divided over files while the file that they come from is still there; and the release is written."""
    spill.check_room(3 * intake.encoded_bytes, f"Publishing {intake.n_rows:,} rows")


def _io(policy: Policy, run: Rothko | Tds) -> dict[str, Any]:
    method = policy.method.scale if isinstance(policy.method, MondrianOptions) else policy.method.name
    figures = run.spill.counters.as_figures()
    return {"engine": "disk", "method": method, "rows-in-memory": run.plan.max_rows, **figures}
