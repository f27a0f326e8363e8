"""Top-down specialization for classification (TDS) [FWY05], the baseline of [LDR08, section 4.4].

Of the candidates that are valid (every group of the grid keeps at least k rows) and beneficial (its rows have
more than one class), the one of the best score is taken, until there is none:

.. math:: Score(v) = InfoGain(v) / (AnonyLoss(v) + 1)

InfoGain is over the rows at v, per row; AnonyLoss is by how much the smallest group of the grid would shrink. A
number is divided where InfoGain is greatest. Ties: the smaller largest part, the attribute, the order of codes.

With a ``unit``, groups keep k people; scores stay on rows. With ``suppress``, groups below k are left out: a candidate is
valid if all of them together have no more rows, and people, than may be left out (``group_rule``). In AnonyLoss such a
group counts as one of k rows.

Departs from the paper: a node of whose children only one has rows is replaced by them at once. It divides no group
and so costs nothing, and what lies below would otherwise wait for a score that is always 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato.engines.engine import Resources
from sfumato.engines.start import scan_table, start_engine, start_on_table
from sfumato.methods.better import choose_better
from sfumato.methods.groups import Outcome, draft_groups, hold_groups, measure_groups
from sfumato.methods.protocol import Draft, Extras, Method, Seed, refuse_side_table
from sfumato.methods.specialization.grid_run import GridRun
from sfumato.policy.document import Policy
from sfumato.progress import Progress, no_progress
from sfumato.randomness import secret
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import check_names
from sfumato.table.source import Source


def partition(source: Source, policy: Policy, *, progress: Progress = no_progress) -> Partition:
    """Divide the rows of a table in memory into groups that satisfy the requirement, as useful as possible."""
    table = scan_table(source, policy, progress=progress)

    def grow(keeps_all: bool) -> tuple[Partition, GridRun, Outcome]:  # noqa: FBT001 - asked by choose_better
        engine, random = start_engine(progress=progress), secret()
        run = GridRun(engine, table, policy, random=random, keeps_all=keeps_all, progress=progress)
        groups, outcome = measure_groups(run, engine, table, policy, random=random, progress=progress)
        return groups, run, outcome

    if policy.leaves_rows_out:
        return choose_better(grow, policy)
    engine = start_engine(progress=progress)
    return hold_groups(GridRun(engine, table, policy, random=secret(), progress=progress), engine)


class Specialization:
    """Top-down specialization, on any engine."""

    only_in_memory = False

    def check(self, table: Any, policy: Policy, extras: Extras) -> None:  # noqa: ARG002 - every method is asked
        """There is no side table."""
        refuse_side_table(extras)

    def partition(
        self,
        source: Source,
        policy: Policy,
        *,
        threads: int | None,  # noqa: ARG002 - every method takes it; this one has nothing to share out
        progress: Progress,
    ) -> Partition:
        """The groups of a table in memory."""
        return partition(source, policy, progress=progress)

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
        """Rows in groups, and the cuts as a recoding."""
        check_names(policy)
        table = scan_table(source, policy, engine, progress=progress)

        def grow(keeps_all: bool) -> tuple[Draft, GridRun, Outcome]:  # noqa: FBT001 - asked by choose_better
            started, random = start_on_table(engine, table, policy, progress=progress), chance.generator()
            run = GridRun(started, table, policy, random=random, keeps_all=keeps_all, progress=progress)
            draft, outcome = draft_groups(
                run, started, table, policy,
                random=random, method=policy.method.name, extras=extras, progress=progress,
            )  # fmt: skip
            if draft.people is not None:
                draft = replace(draft, people=draft.people._replace(n_people=run.n_people))
            return draft, run, outcome

        return choose_better(grow, policy)


METHOD: Method = Specialization()

__all__ = ["METHOD", "partition"]
