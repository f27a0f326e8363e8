r"""What every requirement means, from published rows alone: the definitions of ``verify``.

They are written a second time on purpose [LDR08, definitions 2.1 to 2.4], and share nothing with the code by which
methods decide. ``DEFINITIONS`` has one for each class of requirements: the figure of each group, and whether the
requirement holds of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
    VarianceDiversity,
)
from sfumato.policy.schema import Attribute, Schema
from sfumato.table.cells import numbers
from sfumato.verify.groups import Codes, Groups, codes_of, summed
from sfumato.verify.portions import Evidence

ENTROPY_TOLERANCE = 1e-12
"""In nats: the roundoff of a sum of logarithms, so that l equally frequent values are exactly l-diverse."""

VARIANCE_TOLERANCE = 1e-9
"""Relative, downwards: a variance is a sum of rounded squares."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Figures = tuple[Floats, NDArray[np.bool_]]
"""Of each group: its figure, and whether the requirement holds."""


def measure_groups(requirement: Requirement, evidence: Evidence, schema: Schema) -> Figures:
    """The figure of each group, and whether the requirement holds of it."""
    if type(requirement) not in DEFINITIONS:
        raise InternalError(f"verify has no definition of {requirement}.")
    return DEFINITIONS[type(requirement)](requirement, evidence, schema)


def _k_anonymity(requirement: KAnonymity, evidence: Evidence, _schema: Schema) -> Figures:
    """The number of rows [LDR08, definition 2.1]."""
    size = evidence.groups.size
    return size.astype(np.float64), size >= requirement.k


def _distinct_diversity(requirement: DistinctDiversity, evidence: Evidence, schema: Schema) -> Figures:
    """The number of different sensitive values [MKGV06]."""
    counts = _count_values(evidence, schema[requirement.of])
    n_values = np.bincount(counts.group, minlength=evidence.groups.n)
    return n_values.astype(np.float64), n_values >= requirement.l


def _entropy_diversity(requirement: EntropyDiversity, evidence: Evidence, schema: Schema) -> Figures:
    r"""The entropy of the sensitive values, as an effective number of them [LDR08, definition 2.2].

    .. math:: \sum_s -p(s) \log p(s) \ge \log l
    """
    groups, counts = evidence.groups, _count_values(evidence, schema[requirement.of])
    share = counts.count / groups.size[counts.group]
    entropy = _sums(-share * np.log(share), counts.group, groups)
    return np.exp(entropy), entropy >= math.log(requirement.l) - ENTROPY_TOLERANCE


def _recursive_diversity(requirement: RecursiveDiversity, evidence: Evidence, schema: Schema) -> Figures:
    r"""Most frequent value against the tail, in exact integers [LDR08, definition 2.3].

    .. math:: x_1 < c\,(x_l + x_{l+1} + \dots), \qquad x_1 \ge x_2 \ge \dots

    The figure is :math:`x_1` over the tail: what c must be above. It is infinite where a group has fewer
    than l values. (c, 1)-diversity always holds.
    """
    counts = _count_values(evidence, schema[requirement.of])
    falling = np.lexsort((-counts.count, counts.group))  # within each group, most frequent first
    count = counts.count[falling]
    starts = np.flatnonzero(np.diff(counts.group, prepend=-1))
    rank = np.arange(len(count)) - np.repeat(starts, np.diff(starts, append=len(count)))
    most = count[starts]
    tail = np.add.reduceat(np.where(rank >= requirement.l - 1, count, 0), starts)
    figure = np.divide(most, tail, out=np.full(len(most), np.inf), where=tail > 0)
    if requirement.l == 1:
        return figure, np.ones(len(most), dtype=np.bool_)
    c = Fraction(str(requirement.c))
    holds = most.astype(object) * c.denominator < tail.astype(object) * c.numerator  # Python's integers
    return figure, holds.astype(np.bool_)


def _variance_diversity(requirement: VarianceDiversity, evidence: Evidence, schema: Schema) -> Figures:
    """The population variance of the sensitive number [LDR08, definition 2.4]."""
    variance = _variance(evidence, schema[requirement.of])
    return variance, variance >= requirement.at_least * (1 - VARIANCE_TOLERANCE)


DEFINITIONS: Mapping[type[Requirement], Callable[[Any, Evidence, Schema], Figures]] = {
    KAnonymity: _k_anonymity,
    DistinctDiversity: _distinct_diversity,
    EntropyDiversity: _entropy_diversity,
    RecursiveDiversity: _recursive_diversity,
    VarianceDiversity: _variance_diversity,
}
"""The definition of each requirement."""


# ---- statistics of groups ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How often each sensitive value stands in each group: one entry per pair that occurs, by group."""

    group: Ints
    count: Ints


def _count_values(evidence: Evidence, attribute: Attribute) -> ValueCounts:
    return _counts(evidence.groups, codes_of(evidence.source.column(attribute.name), attribute))


def _counts(groups: Groups, values: Codes) -> ValueCounts:
    pairs = groups.of_row * values.n + values.of_row
    if groups.n * values.n <= len(pairs):  # few enough to count one by one
        counts = summed(groups.weight, pairs, groups.n * values.n)
        pair = np.flatnonzero(counts)
        count = counts[pair]
    elif groups.weight is None:
        pair, count = np.unique(pairs, return_counts=True)
    else:
        pair, at = np.unique(pairs, return_inverse=True)
        count = summed(groups.weight, at, len(pair))
    return ValueCounts(pair // values.n, count)


def _variance(evidence: Evidence, attribute: Attribute) -> Floats:
    r"""The population variance of the numbers of each group [LDR08, definition 2.4].

    .. math:: \frac{1}{n} \sum (x - \bar x)^2

    Missing numbers are left out; a group without any number has variance 0. Each group is first moved to
    begin at 0, which changes no variance and keeps small differences between large numbers.
    """
    groups = evidence.groups
    if attribute.name in evidence.moments:
        return evidence.moments[attribute.name].variance
    group, values = groups.of_row, numbers(evidence.source.column(attribute.name), attribute)
    if values.null_count:
        group, values = group[values.is_valid().to_numpy(zero_copy_only=False)], values.drop_null()
    number = values.to_numpy(zero_copy_only=False)
    is_whole = number.dtype.kind == "i"
    least = np.full(groups.n, np.iinfo(np.int64).max if is_whole else np.inf, dtype=number.dtype)
    np.minimum.at(least, group, number)
    with np.errstate(over="ignore", invalid="ignore"):
        above = number - least[group]  # of whole numbers modulo 2^64, hence right as unsigned
        above = (above.view(np.uint64) if is_whole else above).astype(np.float64)
        n = np.maximum(np.bincount(group, minlength=groups.n), 1)
        mean = _sums(above, group, groups) / n
        variance = _sums((above - mean[group]) ** 2, group, groups) / n
        return np.where(np.isfinite(mean), variance, np.inf)


def _sums(values: Floats, group: Ints, groups: Groups) -> Floats:
    return np.asarray(np.bincount(group, weights=values, minlength=groups.n), dtype=np.float64)
