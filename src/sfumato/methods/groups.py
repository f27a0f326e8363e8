"""From groups to published rows, for the methods whose rows form groups.

In memory all groups are there at once. On disk they are written as they are found, so that memory never holds all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from sfumato.engines import protocol
from sfumato.engines.engine import DISK, Resources
from sfumato.engines.memory import encode_table
from sfumato.engines.rows import MOST_FILES
from sfumato.engines.scan import Intake
from sfumato.engines.start import start_engine
from sfumato.methods.memory_plan import MemoryPlan, estimate_row_bytes
from sfumato.methods.protocol import Draft, Extras, Seed
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.workload import Select
from sfumato.progress import Progress
from sfumato.randomness import Random, secret
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import published_rows
from sfumato.release.query import select
from sfumato.table import formulas
from sfumato.table.cells import give_back_memory
from sfumato.table.source import Source
from sfumato.table.spill import Spill
from sfumato.table.stored import FiledRows
from sfumato.table.write import ROW_GROUP, TableWriter

LEAST_ROW_GROUP = 1 << 14
"""Rows of a Parquet row group at least, however little memory there is."""


# ---- in memory ---------------------------------------------------------------------------------------


def make_draft(
    groups: Partition, source: Source, policy: Policy, *, chance: Seed, progress: Progress
) -> Draft:
    """Draft the release of groups that are in memory."""
    give_back_memory()
    progress("publishing", 0, 1)
    rows = published_rows(source, policy, groups, chance.generator().random(source.n_rows))
    figures: dict[str, Any] = {"splits": groups.recoding.n_splits()}
    if policy.selections:
        figures["imprecision"] = [
            _count_imprecision(task, source, policy, groups, rows) for task in policy.selections
        ]
    recoding = groups.recoding if policy.keeps_recoding else None
    return Draft(rows, policy, recoding, figures=figures, reason=partial(_explain, source, policy, groups))


def _count_imprecision(
    task: Select, source: Source, policy: Policy, groups: Partition, rows: pa.Table
) -> dict[str, Any]:
    """How many rows the condition asks for, and how many the release returns [LDR08, section 3.2]."""
    condition = predicate.parse(task.where, policy.schema)
    returned, true, _ = select.imprecision(condition, source, policy.schema, rows, groups.recoding, policy)
    return _describe_imprecision(task, returned, true)


def _describe_imprecision(task: Select, returned: int, true: int) -> dict[str, Any]:
    return {"where": task.where, "true": true, "returned": returned, "imprecision": returned - true}


def _explain(source: Source, policy: Policy, groups: Partition, name: str) -> str:
    """Which requirement keeps a column whole, and how near a split comes to being allowed."""
    from sfumato.methods.refusals import find_refusals  # noqa: PLC0415 - few releases need it

    found = find_refusals(source, policy, groups, name)
    return "; ".join(map(str, found)) or "no requirement alone refuses to split it in most groups"


# ---- on disk -----------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    """Some finished groups; ``payload`` has the columns that are published as they are, in the order of row numbers."""

    groups: Partition
    payload: pa.Table | None
    statistics: Mapping[str, pa.Scalar] = MappingProxyType({})
    """Statistics of the whole group, if these rows are only a part of it."""


def plan_memory(
    policy: Policy, memory: int, *, payload_bytes: int = 0, max_rows: int | None = None
) -> MemoryPlan:
    """Divide ``memory`` for the rows of a policy, each with ``payload_bytes`` that are published as they are."""
    targets = {name for task in policy.predictions for name in task.targets}
    sensitive = {requirement.of for requirement in policy.requirements if requirement.of}
    row_bytes = estimate_row_bytes(
        n_axes=len(policy.schema.quasi_identifiers),
        n_extra=len(targets | sensitive) + 1,
        n_published=len(policy.schema.published),
        payload_bytes=payload_bytes,
        min_group=max((one.k for one in policy.requirements if isinstance(one, KAnonymity)), default=1),
    )
    return MemoryPlan.of(memory, row_bytes=row_bytes, max_rows=max_rows)


class Grower(Protocol):
    """A run that finds groups: take all chunks first; the other answers are known afterwards."""

    def chunks(self) -> Iterator[Chunk]:
        """The groups, some at a time."""

    def recoding(self) -> Any:
        """How further rows are recoded."""

    def n_splits(self) -> dict[str, int]:
        """How often each quasi-identifier was split."""


@dataclass(frozen=True, slots=True)
class RowFile:
    """The file that published rows are written to, and what the certificate says of the run."""

    spill: Spill
    method: str
    format: str
    max_rows: int
    """Rows that were held in memory at once."""

    @property
    def path(self) -> Path:
        return self.spill.path("release").with_suffix(f".{self.format}")


class Run(Protocol):
    """Makes a run over the rows of a table."""

    def __call__(
        self,
        engine: protocol.Engine,
        table: protocol.EncodedTable,
        policy: Policy,
        *,
        random: Random,
        progress: Progress,
    ) -> Grower: ...


def hold_groups(run: Run, source: Source, policy: Policy, *, progress: Progress) -> Partition:
    """The groups of a table in memory."""
    table = encode_table(source, policy, progress=progress)
    engine = start_engine(progress=progress)
    (chunk,) = run(engine, table, policy, random=secret(), progress=progress).chunks()
    return chunk.groups


def draft_groups(
    run: Run,
    source: Source,
    policy: Policy,
    choice: Resources,
    *,
    chance: Seed,
    extras: Extras,
    progress: Progress,
) -> Draft:
    """Draft the release of the groups that a run finds, in memory or on disk."""
    if choice.spill is None:
        groups = hold_groups(run, source, policy, progress=progress)
        return make_draft(groups, source, policy, chance=chance, progress=progress)
    spill, random = choice.spill, chance.generator()
    intake = scan_table(source, policy, choice, spill, progress=progress)
    plan = plan_memory(policy, choice.memory, payload_bytes=intake.payload_bytes)
    room = protocol.Room(plan.count_bytes, plan.max_rows, MOST_FILES)
    engine = start_engine(
        choice, layout=intake.layout, room=room, writer_bytes=plan.count_bytes // 2, progress=progress
    )
    found = run(engine, intake, policy, random=random, progress=progress)
    file = RowFile(spill, policy.method.name, extras.file_format, plan.max_rows)
    return write_draft(found, intake, policy, file, random=random)


def scan_table(
    source: Source,
    policy: Policy,
    engine: Resources,
    spill: Spill,
    *,
    sample: int = 0,
    seed: int = 0,
    progress: Progress,
) -> Intake:
    """Scan a table once, so that its rows can be read as codes, and draw a ``sample`` of so many rows on the way."""
    intake = Intake(source, policy, spill=spill, memory=engine.memory // 2, progress=progress)
    intake.scan(sample=sample, seed=seed)
    spill.counters.encoded_bytes = intake.encoded_bytes
    # Rows are divided over files while the file that they come from is still there; and the release is written.
    spill.check_room(3 * intake.encoded_bytes, f"Publishing {intake.n_rows:,} rows")
    return intake


def write_draft(run: Grower, intake: Intake, policy: Policy, file: RowFile, *, random: Random) -> Draft:
    """Write groups to a file as they are found, and draft their release."""
    path = file.path
    conditions = [predicate.parse(task.where, policy.schema) for task in policy.selections]
    returned = [0] * len(conditions)
    row_group = min(ROW_GROUP, max(file.max_rows, LEAST_ROW_GROUP))  # the writer holds one
    with TableWriter(path, row_group=row_group) as writer:
        for chunk in run.chunks():
            rows = _recode_chunk(chunk, intake, policy, random)
            for i, condition in enumerate(conditions):
                returned[i] += int(select.select_rows(condition, rows, chunk.groups.recoding, policy).sum())
            writer.append(formulas.escape(rows) if policy.escapes_formulas else rows)
            intake.let_go()
    recoding = run.recoding() if policy.keeps_recoding else None
    figures: dict[str, Any] = {"splits": run.n_splits()}
    if conditions:
        each = zip(policy.selections, returned, intake.true_counts, strict=True)
        figures["imprecision"] = [_describe_imprecision(task, found, true) for task, found, true in each]
    counters = file.spill.counters.as_figures()
    figures["io"] = {"engine": DISK, "method": file.method, "rows-in-memory": file.max_rows, **counters}
    filed = FiledRows(path, file.format, n_rows=writer.n_rows, is_escaped=policy.escapes_formulas)
    return Draft(filed, policy, recoding, figures=figures)


def _recode_chunk(chunk: Chunk, intake: Intake, policy: Policy, random: Random) -> pa.Table:
    """The published rows of some finished groups; statistics have the type that they have in the whole table."""
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
