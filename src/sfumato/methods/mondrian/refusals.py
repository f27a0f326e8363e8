"""Why a column was not split: which requirement refuses it, and how near a split comes to being allowed.

This looks at raw rows, and a refused split tells something about sensitive values. So it is for the owner's eyes: it is
printed to stderr, never written into a release, and never asked for by a differentially private method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import OrderedDomain
from sfumato.encoding.encoders import encode_axis, encode_label
from sfumato.encoding.numbers import encode_number
from sfumato.policy.document import Policy
from sfumato.policy.requirements import GroupStats, Needs, Requirement
from sfumato.policy.schema import Attribute
from sfumato.recoding.groups import Partition
from sfumato.table.source import Source

Ints = NDArray[np.int64]

Statistics = Callable[[Ints, int], GroupStats]
"""The statistics of so many parts, of the part that each row is in."""

MOST_GROUPS = 200
"""The largest groups are looked at, so many of them."""

MOST_CUTS = 16
"""Of a number, so many cuts are tried, at about equal distances in rows."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A requirement that refuses, by itself, every split of a column in groups with this ``share`` of the rows.

    ``nearest`` is the best that the worst part of any split of the largest such group reaches.
    """

    requirement: Requirement
    share: float
    nearest: float

    def __str__(self) -> str:
        """What refuses a split, and what would have been reached.

        >>> from sfumato.policy.requirements import KAnonymity
        >>> str(Refusal(KAnonymity(5), 1.0, 3.0))
        '5-anonymity refuses every split of it (the best leaves a part with 3 rows)'
        """
        reached = self.requirement.describe(self.nearest)
        return f"{self.requirement} refuses every split of it (the best leaves a part with {reached})"


def refusals_of(source: Source, policy: Policy, groups: Partition, name: str) -> list[Refusal]:
    """The requirements that keep a column whole in most rows of the largest groups, the strictest first."""
    chosen = np.sort(np.argsort(-groups.size, kind="stable")[:MOST_GROUPS])
    start = np.cumsum(groups.size) - groups.size
    rows = np.concatenate([groups.row_numbers[start[g] : start[g] + groups.size[g]] for g in chosen])
    group = np.repeat(np.arange(len(chosen)), groups.size[chosen])
    splits = list(_splits(source, policy.schema[name], rows))
    found = []
    for item in policy.requirements:
        statistics = _statistics(item, source, policy, rows)
        refusal = _refusal(item, [_Parts.of(group, part, statistics) for part in splits])
        found += [] if refusal is None else [refusal]
    return sorted(found, key=lambda refusal: -refusal.share)


def _splits(source: Source, attribute: Attribute, rows: NDArray[np.uint32]) -> Iterator[Ints]:
    """Ways to split a column that is whole: the part that each row would go to."""
    domain, codes = encode_axis(source, attribute)
    own = codes[rows].astype(np.int64)
    if isinstance(domain, OrderedDomain):
        ranked = np.sort(own)
        cuts = ranked[np.linspace(0, len(ranked) - 1, MOST_CUTS + 2).astype(np.int64)]
        for cut in np.unique(cuts)[1:]:
            yield (own >= cut).astype(np.int64)
        return
    tree, node = domain.hierarchy, 0
    while len(children := tree.children(node)):
        part = np.searchsorted(tree.low[children], own, side="right") - 1
        if len(used := np.unique(part)) > 1:
            yield part.astype(np.int64)
            return
        node = int(children[used[0]])


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts of a split, group by group: which group each is of, and its statistics."""

    group: Ints
    stats: GroupStats

    @classmethod
    def of(cls, group: Ints, part: Ints, statistics: Statistics) -> _Parts:
        n_parts = int(part.max(initial=0)) + 1
        key, at = np.unique(group * n_parts + part, return_inverse=True)
        return cls(key // n_parts, statistics(at, len(key)))


def _statistics(item: Requirement, source: Source, policy: Policy, rows: NDArray[np.uint32]) -> Statistics:
    """What a requirement needs of parts of these rows."""
    if Needs.VALUES in item.needs and item.of is not None:
        codes, known = encode_label(source, policy.schema[item.of])
        own, n, reference = codes[rows].astype(np.int64), len(known.count), known.reference_for(item)

        def with_values(at: Ints, n_parts: int) -> GroupStats:
            values = np.bincount(at * n + own, minlength=n_parts * n).reshape(n_parts, n)
            return GroupStats(values.sum(axis=1), values=values, reference=reference)

        return with_values
    if Needs.MOMENTS in item.needs and item.of is not None:
        scale, codes = encode_number(source, policy.schema[item.of])
        number = scale.unit * codes[rows].astype(np.float64)

        def with_variance(at: Ints, n_parts: int) -> GroupStats:
            count = np.bincount(at, minlength=n_parts)
            mean = np.bincount(at, number, minlength=n_parts) / count
            return GroupStats(count, variance=np.bincount(at, (number - mean[at]) ** 2) / count)

        return with_variance
    return lambda at, n_parts: GroupStats(np.bincount(at, minlength=n_parts))


def _refusal(item: Requirement, splits: list[_Parts]) -> Refusal | None:
    """Whether a requirement, by itself, refuses all of these splits in most of the rows that they could divide."""
    if not splits:
        return None
    n_groups = int(splits[0].group.max()) + 1
    size = np.bincount(splits[0].group, splits[0].stats.count, minlength=n_groups)
    divides, allows = np.zeros(n_groups, dtype=np.bool_), np.zeros(n_groups, dtype=np.bool_)
    for split in splits:
        is_divided = np.bincount(split.group, minlength=n_groups) > 1
        fails = np.bincount(split.group, ~item.holds(split.stats), minlength=n_groups) > 0
        divides |= is_divided
        allows |= is_divided & ~fails
    refused = divides & ~allows
    share = float(size[refused].sum() / max(size[divides].sum(), 1))
    if share <= 0.5:
        return None
    largest = int(np.argmax(np.where(refused, size, -1)))
    return Refusal(item, share, _nearest(item, splits, largest))


def _nearest(item: Requirement, splits: list[_Parts], group: int) -> float:
    """The figure of the worst part of the best split of a group."""
    figures = []
    for split in splits:
        own = item.achieved(split.stats)[split.group == group]
        if len(own) > 1:
            figures.append(item.worst(own))
    return item.best(np.array(figures))


__all__ = ["Refusal", "refusals_of"]
