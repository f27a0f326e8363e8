"""Mondrian as a method: groups from a tree."""

from __future__ import annotations

from functools import partial
from typing import Any

from sfumato.engines.engine import Resources
from sfumato.engines.memory_plan import MemoryPlan, plan_memory
from sfumato.engines.protocol import Engine
from sfumato.engines.reservoir import seed_of_part
from sfumato.engines.start import scan_table, start_on_table
from sfumato.methods.better import choose_better
from sfumato.methods.groups import Outcome, draft_groups, hold_groups, measure_groups
from sfumato.methods.mondrian.own_reference import undo_splits
from sfumato.methods.mondrian.sample import SAMPLE_SEED, choose_sample_size
from sfumato.methods.mondrian.taken_back import NOTHING_UNDONE
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import ROTHKO_S, MondrianOptions
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random, secret
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import check_names
from sfumato.table.source import UNKNOWN, Source

RAW_BYTES = 32
"""Memory that a cell of the sample may take while it is drawn."""


class MondrianMethod:
    """Mondrian, on any engine."""

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
        options = policy.options_for(MondrianOptions)
        seed = SAMPLE_SEED if chance.number is None else chance.number
        plan = plan_memory(engine, policy, max_rows=options.rows_in_memory)
        n_sample = _most_to_sample(source, options, plan)
        table = scan_table(
            source, policy, engine, sample=n_sample, seed=seed_of_part(seed, 0), progress=progress
        )

        def start(random: Random, **options_of_run: Any) -> tuple[TreeRun, Engine]:
            started = start_on_table(
                engine, table, policy, max_rows=options.rows_in_memory, progress=progress
            )
            run = TreeRun(
                started, table, policy, random=random, sampling=seed, progress=progress, **options_of_run
            )
            return run, started

        def grow(keeps_all: bool) -> tuple[Draft, TreeRun, Outcome]:  # noqa: FBT001 - asked by choose_better
            undone = NOTHING_UNDONE if keeps_all else undo_splits(partial(start, secret()), table, policy)
            random = chance.generator()
            run, started = start(random, keeps_all=keeps_all, undone=undone)
            draft, outcome = draft_groups(
                run, started, table, policy,
                random=random, method=options.scale, extras=extras, progress=progress,
            )  # fmt: skip
            return draft, run, outcome

        return choose_better(grow, policy)


METHOD: Method = MondrianMethod()


def partition(
    source: Source,
    policy: Policy,
    *,
    threads: int | None = None,
    seed: int = SAMPLE_SEED,
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows of a table in memory into groups that satisfy every requirement; samples come from ``seed``."""
    options, engine = policy.options_for(MondrianOptions), Resources(threads)
    n_sample = _most_to_sample(source, options, MemoryPlan())
    table = scan_table(source, policy, engine, sample=n_sample, progress=progress)
    if not policy.leaves_rows_out:
        started = start_on_table(engine, table, policy, progress=progress)
        return hold_groups(
            TreeRun(started, table, policy, random=secret(), sampling=seed, progress=progress), started
        )

    def start(**options_of_run: Any) -> tuple[TreeRun, Engine]:
        started = start_on_table(engine, table, policy, progress=progress)
        run = TreeRun(
            started, table, policy, random=secret(), sampling=seed, progress=progress, **options_of_run
        )
        return run, started

    def grow(keeps_all: bool) -> tuple[Partition, TreeRun, Outcome]:  # noqa: FBT001 - asked by choose_better
        undone = NOTHING_UNDONE if keeps_all else undo_splits(start, table, policy)
        run, started = start(keeps_all=keeps_all, undone=undone)
        groups, outcome = measure_groups(run, started, table, policy, random=secret(), progress=progress)
        return groups, run, outcome

    return choose_better(grow, policy)


def _most_to_sample(source: Source, options: MondrianOptions, plan: MemoryPlan) -> int:
    """How many rows the first pass draws. If the size of the table is not known yet, fewer may be taken.

    The rows are held as they are stored until the codes are known, with a copy while some are thrown out.
    """
    if options.scale != ROTHKO_S:
        return 0
    most = min(plan.max_rows, max(plan.memory // (RAW_BYTES * len(source.names)), 1000))
    if source.n_rows == UNKNOWN:
        return most if options.sample is None or options.sample < 1 else min(most, int(options.sample))
    return choose_sample_size(source.n_rows, options, most)
