r"""What every requirement means, from published rows alone: the definitions of ``verify``.

They are written a second time on purpose [LDR08, definitions 2.1 to 2.4], and share nothing with the code by which
methods decide. ``DEFINITIONS`` has one for each class of requirements: the figure of each group, and whether the
requirement holds of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, InternalError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Needs,
    RecursiveDiversity,
    Requirement,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.table.cells import numbers
from sfumato.verify.groups import Codes, Groups, codes_of, summed, values_of, with_missing
from sfumato.verify.portions import Evidence

ENTROPY_TOLERANCE = 1e-12
"""In nats: the roundoff of a sum of logarithms, so that l equally frequent values are exactly l-diverse."""

VARIANCE_TOLERANCE = 1e-9
"""Relative, downwards: a variance is a sum of rounded squares."""

CELLS_AT_ONCE = 1 << 18
"""Groups times sensitive values whose counts are looked at in one go."""

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


# ---- t-closeness -----------------------------------------------------------------------------------


def count_references(policy: Policy, read: Callable[[str], Iterable[Any]]) -> Mapping[str, Mapping[Any, int]]:
    """Of each column that groups are compared in with the whole table: the rows of each value, None for missing ones.

    ``read`` gives the pieces of a column.
    """
    names = {item.of for item in policy.requirements if item.of is not None and Needs.REFERENCE in item.needs}
    found: dict[str, Counter[Any]] = {name: Counter() for name in sorted(names)}
    for name, count in found.items():
        for piece in read(name):
            for pair in values_of(piece, policy.schema[name]).value_counts().to_pylist():
                count[pair["values"]] += pair["counts"]
    return found


def _t_closeness(requirement: TCloseness, evidence: Evidence, schema: Schema) -> Figures:
    """The earth mover's distance of each group's values from those of the whole table, in whole numbers [LLV07]."""
    attribute, groups, whole = schema[requirement.of], evidence.groups, evidence.whole[requirement.of]
    space = _ValueSpace.of(requirement, attribute, whole)
    known = values_of(evidence.source.column(attribute.name), attribute)
    place = {value: i for i, value in enumerate(space.values)}
    places = [place.get(value, 0) for value in [*known.dictionary.to_pylist(), None]]  # 0: of no row
    column = np.array(places)[with_missing(known).of_row]
    table, n_rows, m = np.array([whole[value] for value in space.values]), sum(whole.values()), len(place)
    is_small = int(groups.size.max(initial=1)) * n_rows * 2 * max(m, space.unit) < 2**62
    work = []
    by_group = np.argsort(groups.of_row, kind="stable")
    ends = np.searchsorted(groups.of_row[by_group], np.arange(groups.n + 1))
    step = max(1, CELLS_AT_ONCE // m)
    for start in range(0, groups.n, step):
        stop = min(start + step, groups.n)
        rows = by_group[ends[start] : ends[stop]]
        at = (groups.of_row[rows] - start) * m + column[rows]
        weight = None if groups.weight is None else groups.weight[rows]
        counts = summed(weight, at, (stop - start) * m).reshape(stop - start, m)
        counts = counts.astype(np.int64 if is_small else object)
        work += space.work(counts * n_rows - counts.sum(axis=1)[:, None] * table).tolist()
    all_work = groups.size.astype(object) * n_rows * space.unit
    t, done = Fraction(str(requirement.t)), np.array(work, dtype=object)
    holds = done * t.denominator <= all_work * t.numerator
    return (done / all_work).astype(np.float64), holds.astype(np.bool_)


@dataclass(frozen=True, slots=True)
class _ValueSpace:
    """The sensitive values of a table in their order, a missing one last, and how far apart they are."""

    distance: str
    values: list[Any]
    tree: Hierarchy | None
    unit: int
    """A distance of 1 in the units of ``work``."""

    @classmethod
    def of(cls, requirement: TCloseness, attribute: Attribute, values: Iterable[Any]) -> _ValueSpace:
        known, missing = [value for value in values if value is not None], [None] * (None in values)
        if requirement.distance == "equal":
            return cls(requirement.distance, known + missing, None, 2)
        if attribute.kind is not Kind.CATEGORY:
            return cls(requirement.distance, sorted(known) + missing, None, max(len(known + missing) - 1, 1))
        tree = attribute.build_hierarchy(known)
        leaf = dict(zip(known, attribute.locate(tree, known).tolist(), strict=True))
        if n_strange := sum(code < 0 for code in leaf.values()):
            raise HierarchyError(
                f"Column {attribute.name!r} has {number_of(n_strange, 'sensitive value')} that its hierarchy or "
                "declared values lack."
            )
        ordered, tree = (
            sorted(known, key=leaf.__getitem__) + missing,
            tree.with_missing() if missing else tree,
        )
        unit = len(ordered) - 1 if requirement.distance == "ordered" else tree.height
        return cls(requirement.distance, ordered, tree, max(unit, 1))

    def work(self, extra: NDArray[Any]) -> NDArray[Any]:
        """What it takes to level out what each group has too much and too little, (groups, values)."""
        if self.distance == "equal":
            return np.asarray(np.abs(extra).sum(axis=1))
        if self.distance == "ordered":
            return np.asarray(np.abs(np.cumsum(extra, axis=1)).sum(axis=1))
        return self._work_in_tree(extra)

    def _work_in_tree(self, extra: NDArray[Any]) -> NDArray[Any]:
        """At every node, what is too much in some children goes to those that have too little; the rest goes upwards."""
        assert self.tree is not None
        tree, place = self.tree, {value: i for i, value in enumerate(self.values)}
        nothing = extra[:, 0] * 0
        of_node, height, total = [nothing] * tree.n_nodes, [0] * tree.n_nodes, nothing
        for node in reversed(range(tree.n_nodes)):
            below = tree.children(node).tolist()
            if not below:
                at = place.get(tree.labels[node])
                of_node[node] = nothing if at is None else extra[:, at]
                continue
            parts = [of_node[child] for child in below]
            height[node] = 1 + max(height[child] for child in below)
            positive = sum((np.maximum(part, 0) for part in parts), nothing)
            negative = sum((np.maximum(-part, 0) for part in parts), nothing)
            of_node[node] = sum(parts, nothing)
            total = total + height[node] * np.minimum(positive, negative)
        return np.asarray(total)


DEFINITIONS: Mapping[type[Requirement], Callable[[Any, Evidence, Schema], Figures]] = {
    KAnonymity: _k_anonymity,
    DistinctDiversity: _distinct_diversity,
    EntropyDiversity: _entropy_diversity,
    RecursiveDiversity: _recursive_diversity,
    TCloseness: _t_closeness,
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
