"""Starts the engine that was chosen."""

from __future__ import annotations

from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.memory_plan import MemoryPlan, plan_memory
from sfumato.engines.passed import PassedColumns, PassedFindings, look_at_passed
from sfumato.engines.protocol import Engine
from sfumato.engines.raw import TableAtHand, TableInBatches
from sfumato.engines.rows import RowLayout
from sfumato.engines.scan import Intake
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress
from sfumato.table.source import Source
from sfumato.table.spill import SharedSpill

HERE = Resources()
"""In memory, by this process."""

NO_COLUMNS = RowLayout(())
EVERYTHING = MemoryPlan()


def start_engine(
    chosen: Resources = HERE,
    *,
    layout: RowLayout = NO_COLUMNS,
    plan: MemoryPlan = EVERYTHING,
    progress: Progress = no_progress,
) -> Engine:
    """The chosen engine. On disk, rows are stored in a ``layout``, and ``plan`` says what there is room for."""
    if chosen.spill is None:
        return MemoryEngine(threads=chosen.threads, progress=progress)
    if chosen.jobs is not None:
        from sfumato.engines.spark.engine import start_spark  # noqa: PLC0415 - few have it

        return start_spark(chosen, layout, plan)
    return DiskEngine(
        chosen.spill,
        layout,
        plan.room,
        writer_bytes=plan.writer_bytes,
        tree_bytes=chosen.memory // 4,
        threads=chosen.threads,
        progress=progress,
    )


def start_on_table(
    chosen: Resources,
    table: Intake,
    policy: Policy,
    *,
    max_rows: int | None = None,
    progress: Progress = no_progress,
) -> Engine:
    """The chosen engine for the rows of a table that was scanned; the policy may fix how many rows it loads at most."""
    plan = plan_memory(chosen, policy, payload_bytes=table.payload_bytes, max_rows=max_rows)
    return start_engine(chosen, layout=table.layout, plan=plan, progress=progress)


def look_at_columns(
    source: Source, policy: Policy, chosen: Resources = HERE, *, progress: Progress = no_progress
) -> PassedFindings | None:
    """What is to be known of columns before they are published as they are, found in one pass; None if nothing is."""
    if chosen.spill is None:
        return look_at_passed(TableAtHand(source, policy.schema), PassedColumns(policy), policy)
    memory = chosen.memory // 2
    if chosen.jobs is not None:
        from sfumato.engines.spark.engine import open_slices  # noqa: PLC0415 - few have it

        looking = PassedColumns(policy, spill=SharedSpill(chosen.jobs.folder), memory=memory)
        return look_at_passed(open_slices(chosen, source, policy, memory=memory), looking, policy)
    counters = chosen.spill.counters
    raw = TableInBatches(source, policy.schema, memory=memory // 4, counters=counters, progress=progress)
    looking = PassedColumns(policy, spill=chosen.spill, memory=memory)
    counters.input_passes += bool(looking.names)
    return look_at_passed(raw, looking, policy)


def scan_table(
    source: Source,
    policy: Policy,
    chosen: Resources = HERE,
    *,
    sample: int = 0,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Intake:
    """Scan a table once, so that its rows can be read as codes, and draw a ``sample`` of so many rows on the way."""
    if chosen.spill is None:
        table = Intake.at_hand(source, policy, progress=progress)
        table.scan(sample=sample, seed=seed)
        return table
    if chosen.jobs is not None:
        from sfumato.engines.spark.engine import open_intake  # noqa: PLC0415 - few have it

        table = open_intake(chosen, source, policy, memory=chosen.memory // 2, progress=progress)
    else:
        table = Intake.in_batches(
            source, policy, spill=chosen.spill, memory=chosen.memory // 2, progress=progress
        )
    table.scan(sample=sample, seed=seed)
    chosen.spill.counters.encoded_bytes = table.encoded_bytes
    # Rows are divided over files while the file that they come from is still there; and the release is written.
    chosen.spill.check_room(3 * table.encoded_bytes, f"Publishing {table.n_rows:,} rows")
    return table
