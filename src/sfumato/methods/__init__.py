"""Which method makes the groups: the policy says."""

from __future__ import annotations

from sfumato.methods.mondrian import grow
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.progress import Progress, no_progress
from sfumato.recoding.groups import Partition
from sfumato.table.source import Source


def partition(
    source: Source, policy: Policy, *, threads: int | None = None, progress: Progress = no_progress
) -> Partition:
    """Divide the rows into groups that satisfy every requirement, by the method of the policy."""
    if isinstance(policy.method, TdsOptions):
        from sfumato.methods.specialization import tds  # noqa: PLC0415 - each method is imported where it is asked for

        return tds.partition(source, policy, threads=threads, progress=progress)
    assert isinstance(policy.method, MondrianOptions)  # a private method has no groups
    return grow.partition(
        source,
        policy.schema,
        policy.requirements,
        workload=policy.workload,
        options=policy.method,
        output=policy.output,
        threads=threads,
        progress=progress,
    )


__all__ = ["partition"]
