"""Why a column was not split: which requirement refuses it, and how near a split comes to being allowed.

This looks at raw rows, and a refused split tells something about sensitive values. So it is for the owner's eyes: it is
printed to stderr, never written into a release, and never asked for by a differentially private method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import OrderedDomain
from sfumato.encoding.encoders import encode_axis, encode_label, encode_people
from sfumato.encoding.numbers import encode_number
from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import GroupStats, Needs, Requirement
from sfumato.policy.schema import Attribute
from sfumato.recoding.recoder import Partition
from sfumato.table.combinations import number_combinations
from sfumato.table.source import Source

Ints = NDArray[np.int64]

EVERY = slice(None)


class PartStatistics(Protocol):
    """From the part that each row is in, and the number of parts, to the statistics of the parts.

    ``among`` are the rows in question, if they are not all.
    """

    def __call__(self, at: Ints, n_parts: int, among: Ints | slice = EVERY) -> GroupStats: ...


MOST_GROUPS = 200
"""Only this many groups are looked at, the largest."""

MOST_THRESHOLDS = 16
"""Of a number, this many thresholds are tried, with about as many rows between any two."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A requirement that refuses, by itself, every split of a column in groups with this ``share`` of the rows.

    ``nearest`` is the best that the worst part of any split of the largest such group reaches.
    """

    requirement: Requirement
    share: float
    nearest: float
    of_people: bool = False

    def __str__(self) -> str:
        """What refuses the splits, and how near the best of them comes.

        >>> from sfumato.policy.requirements import KAnonymity
        >>> str(Refusal(KAnonymity(5), 1.0, 3.0))
        '5-anonymity refuses every split of it (the best leaves a part with 3 rows)'
        """
        reached = self.requirement.describe(self.nearest)
        if self.of_people and self.requirement.of is None:
            reached = number_of(round(self.nearest), "person", "people")
        return f"{self.requirement} refuses every split of it (the best leaves a part with {reached})"


def find_refusals(source: Source, policy: Policy, groups: Partition, name: str) -> list[Refusal]:
    """The requirements that keep a column whole in most rows of the largest groups, the strictest first."""
    chosen = np.sort(np.argsort(-groups.size, kind="stable")[:MOST_GROUPS])
    start = np.cumsum(groups.size) - groups.size
    rows = np.concatenate([groups.row_numbers[start[g] : start[g] + groups.size[g]] for g in chosen])
    group = np.repeat(np.arange(len(chosen)), groups.size[chosen])
    splits = list(_try_splits(source, policy.schema[name], rows))
    found = []
    for item in policy.requirements:
        statistics = choose_statistics(item, source, policy, rows)
        refusal = _find_refusal(item, [_Parts.of(group, part, statistics) for part in splits])
        found += [] if refusal is None else [replace(refusal, of_people=policy.person is not None)]
    return sorted(found, key=lambda refusal: -refusal.share)


def _try_splits(source: Source, attribute: Attribute, rows: NDArray[np.uint32]) -> Iterator[Ints]:
    """Splits of a column that was not split: the part that each row would go to."""
    domain, codes = encode_axis(source, attribute)
    own = codes[rows].astype(np.int64)
    if isinstance(domain, OrderedDomain):
        in_order = np.sort(own)
        tried = in_order[np.linspace(0, len(in_order) - 1, MOST_THRESHOLDS + 2).astype(np.int64)]
        for code in np.unique(tried)[1:]:
            yield (own >= code).astype(np.int64)
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
    def of(cls, group: Ints, part: Ints, statistics: PartStatistics) -> _Parts:
        n_parts = int(part.max(initial=0)) + 1
        key, at = np.unique(group * n_parts + part, return_inverse=True)
        return cls(key // n_parts, statistics(at, len(key)))


def choose_statistics(
    item: Requirement, source: Source, policy: Policy, rows: NDArray[np.uint32]
) -> PartStatistics:
    """The function that gathers what a requirement needs of parts of these rows, or of the people whose they are."""
    person = None
    if policy.person is not None:
        person = encode_people(source, policy.schema[policy.person])[0].astype(np.int64)

    def once(at: Ints, among: Ints | slice, *told: Ints) -> Any:
        """The rows that count: all, or the first ones of each person, value and part."""
        if person is None:
            return EVERY
        return number_combinations([at, person[rows][among], *told], in_order=False).first_rows()

    if Needs.VALUES in item.needs and item.of is not None:
        codes, known = encode_label(source, policy.schema[item.of])
        own, n, count = codes[rows].astype(np.int64), len(known.count), known.count
        if person is not None:
            first = number_combinations([person, codes], in_order=False).first_rows()
            count = np.bincount(codes[first], minlength=n)
        reference = known.reference_for(item, count)

        def with_values(at: Ints, n_parts: int, among: Ints | slice = EVERY) -> GroupStats:
            value = own[among]
            chosen = once(at, among, value)
            values = np.bincount(at[chosen] * n + value[chosen], minlength=n_parts * n).reshape(n_parts, n)
            return GroupStats(values.sum(axis=1), values=values, reference=reference)

        return with_values
    if Needs.MOMENTS in item.needs and item.of is not None:
        scale, codes = encode_number(source, policy.schema[item.of])
        number = scale.unit * codes[rows].astype(np.float64)

        def with_variance(at: Ints, n_parts: int, among: Ints | slice = EVERY) -> GroupStats:
            of_row = number[among]
            chosen = once(at, among, codes[rows][among].astype(np.int64))
            at, of_row = at[chosen], of_row[chosen]
            count = np.bincount(at, minlength=n_parts)
            mean = np.bincount(at, of_row, minlength=n_parts) / count
            return GroupStats(count, variance=np.bincount(at, (of_row - mean[at]) ** 2) / count)

        return with_variance

    def with_counts(at: Ints, n_parts: int, among: Ints | slice = EVERY) -> GroupStats:
        return GroupStats(np.bincount(at[once(at, among)], minlength=n_parts))

    return with_counts


def _find_refusal(item: Requirement, splits: list[_Parts]) -> Refusal | None:
    """The refusal if a requirement, by itself, refuses all of these splits in most of the rows that they would divide."""
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
    refuses = divides & ~allows
    share = float(size[refuses].sum() / max(size[divides].sum(), 1))
    if share <= 0.5:
        return None
    largest = int(np.argmax(np.where(refuses, size, -1)))
    return Refusal(item, share, _find_nearest(item, splits, largest))


def _find_nearest(item: Requirement, splits: list[_Parts], group: int) -> float:
    """The figure of the worst part of the best split of a group."""
    figures = []
    for split in splits:
        own = item.measure(split.stats)[split.group == group]
        if len(own) > 1:
            figures.append(item.worst(own))
    return item.best(np.array(figures))


__all__ = ["PartStatistics", "Refusal", "choose_statistics", "find_refusals"]
