"""What must hold of every published group.

A requirement is a value that says everything about itself: its parameters with their words in a policy, the statistics
it ``needs``, whether it ``holds`` of groups, the figure by which it is measured (``measure``) and which direction is
better, whether a figure is enough (``is_met_by``), what it asks of the column, and its ``promise`` in words. To add one,
write its class and name it in ``REQUIREMENTS``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.policy.requirements.closeness import TCloseness
from sfumato.policy.requirements.diversity import (
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    VarianceDiversity,
)
from sfumato.policy.requirements.group_stats import GroupStats, Needs, Reference
from sfumato.policy.requirements.k_anonymity import KAnonymity
from sfumato.policy.requirements.promise import Promise
from sfumato.policy.requirements.requirement import Requirement

REQUIREMENTS: Mapping[str, type[Requirement]] = {
    kind.word: kind
    for kind in (
        KAnonymity,
        EntropyDiversity,
        RecursiveDiversity,
        VarianceDiversity,
        DistinctDiversity,
        TCloseness,
    )
}
"""Every requirement, by its word in a policy."""

__all__ = [
    "REQUIREMENTS",
    "DistinctDiversity",
    "EntropyDiversity",
    "GroupStats",
    "KAnonymity",
    "Needs",
    "Promise",
    "RecursiveDiversity",
    "Reference",
    "Requirement",
    "TCloseness",
    "VarianceDiversity",
]
