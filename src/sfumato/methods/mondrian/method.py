"""Mondrian as a method: groups from a tree that is grown in memory, or by Rothko on disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato.engines.engine import MEMORY, Resources
from sfumato.engines.protocol import Room
from sfumato.engines.reservoir import seed_of_part
from sfumato.engines.start import start_engine
from sfumato.methods import groups
from sfumato.methods.memory_plan import MemoryPlan
from sfumato.methods.mondrian import grow
from sfumato.methods.mondrian.problem import problem_of
from sfumato.methods.mondrian.rothko import Chance, Rothko, ScannedTable
from sfumato.methods.mondrian.sample import SAMPLE_SEED, choose_sample_size
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, MondrianOptions
from sfumato.progress import Progress, no_progress
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import check_names
from sfumato.recoding.tree_file import AnyTree, NoTree, TreeWriter
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Counters, Spill

SAMPLING_FIGURES = (
    "repartitions", "levels", "pruned", "stopped-by-tree", "stopped-by-statistics", "stopped-by-height", "fallbacks",
    "nonminimal",
)  # fmt: skip
"""What the certificate says of a sample that was drawn in memory."""

RAW_BYTES = 32
"""Memory that a cell of the sample may take while it is drawn."""


class MondrianMethod:
    """Mondrian, in memory or on disk."""

    only_in_memory = False

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:  # noqa: ARG002 - every method is asked
        """Raise if there is a side table."""
        refuse_side_table(extras)

    def partition(
        self, source: Source, policy: Policy, *, threads: int | None, progress: Progress
    ) -> Partition:
        """The groups of a table in memory."""
        return partition(source, policy, threads=threads, progress=progress)

    def draft(
        self,
        source: Source,
        policy: Policy,
        engine: Resources,
        *,
        chance: Seed,
        extras: Extras,
        progress: Progress,
    ) -> Draft:
        """Rows in groups, and the tree as a recoding."""
        check_names(policy)
        if engine.spill is not None:
            return _draft_on_disk(source, policy, engine, engine.spill, chance, extras, progress)
        counters = Counters()
        found = partition(
            source,
            policy,
            threads=engine.threads,
            seed=_choose_seed(chance),
            counters=counters,
            progress=progress,
        )
        draft = groups.make_draft(found, source, policy, chance=chance, progress=progress)
        return replace(draft, figures={**draft.figures, **_describe_sampling(counters)})


METHOD: Method = MondrianMethod()


def partition(
    source: Source,
    policy: Policy,
    *,
    threads: int | None = None,
    seed: int = SAMPLE_SEED,
    counters: Counters | None = None,
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows of a table in memory into groups that satisfy every requirement."""
    return grow.partition(
        source,
        policy.schema,
        policy.requirements,
        workload=policy.workload,
        options=policy.options_for(MondrianOptions),
        output=policy.output,
        threads=threads,
        seed=seed,
        counters=counters,
        progress=progress,
    )


def _choose_seed(chance: Seed) -> int:
    """The seed of samples."""
    return SAMPLE_SEED if chance.number is None else chance.number


def _describe_sampling(counters: Counters) -> dict[str, Any]:
    """How a run in memory went that began on a sample, if one did."""
    found = counters.as_figures()
    told = {name: found[name] for name in SAMPLING_FIGURES if found[name]}
    return {"io": {"engine": MEMORY, "method": ROTHKO_S, **told}} if told else {}


def _draft_on_disk(
    source: Source,
    policy: Policy,
    engine: Resources,
    spill: Spill,
    chance: Seed,
    extras: Extras,
    progress: Progress,
) -> Draft:
    """Rows in groups that Rothko finds, written to a file as they are found."""
    options = policy.options_for(MondrianOptions)
    seed = _choose_seed(chance)
    before = groups.plan_memory(policy, engine.memory, max_rows=options.rows_in_memory)
    n_sample = _most_to_sample(source, options, before, engine.memory)
    intake = groups.scan_table(
        source, policy, engine, spill, sample=n_sample, seed=seed_of_part(seed, 0), progress=progress
    )
    plan = groups.plan_memory(
        policy, engine.memory, payload_bytes=intake.payload_bytes, max_rows=options.rows_in_memory
    )
    problem, random = problem_of(intake, intake.axes(options.split_only), policy, options), chance.generator()
    tree: AnyTree = NoTree()
    if policy.keeps_recoding:
        tree = TreeWriter(spill.folder, len(problem.domains), memory=engine.memory // 4)
    sample = intake.take_sample(choose_sample_size(intake.n_rows, options, plan.max_rows))
    room = Room(plan.count_bytes, plan.max_rows, plan.max_files)
    run = Rothko(
        ScannedTable(intake, intake.n_columns, intake.code_ends, sample),
        problem,
        policy,
        engine=start_engine(
            engine, layout=intake.layout, room=room, writer_bytes=plan.writer_bytes, progress=progress
        ),
        chance=Chance(sampling=seed, shuffling=random),
        tree=tree,
        counters=spill.counters,
        threads=engine.threads,
        progress=progress,
    )
    file = groups.RowFile(spill, options.scale, extras.file_format, plan.max_rows)
    return groups.write_draft(run, intake, policy, file, random=random)


def _most_to_sample(source: Source, options: MondrianOptions, plan: MemoryPlan, memory: int) -> int:
    """How many rows the first pass draws. If the size of the table is not known yet, fewer may be taken.

    The rows are held as they are stored until the codes are known, with a copy while some are thrown out.
    """
    if options.scale != ROTHKO_S:
        return 0
    most = min(plan.max_rows, max(memory // (RAW_BYTES * len(source.names)), 1000))
    if source.n_rows == UNKNOWN:
        return most if options.sample is None or options.sample < 1 else min(most, int(options.sample))
    return choose_sample_size(source.n_rows, options, most)
