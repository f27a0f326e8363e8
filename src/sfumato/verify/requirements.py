r"""The definitions of all requirements, computed from published rows alone.

They are written a second time on purpose [LDR08, definitions 2.1 to 2.4], and share nothing with the code by which
methods decide. ``DEFINITIONS`` has one for each class of requirements: it gives the figure of each group, and whether
the requirement holds of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from sfumato.verify.groups import (
    GroupedRows,
    WholeColumn,
    codes_of,
    sum_rows,
    sum_values,
    values_of,
    with_missing,
)

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


def measure_groups(requirement: Requirement, rows: GroupedRows, schema: Schema) -> Figures:
    """The figure of each group, and whether the requirement holds of it."""
    if type(requirement) not in DEFINITIONS:
        raise InternalError(f"verify has no definition of {requirement}.")
    return DEFINITIONS[type(requirement)](requirement, rows, schema)


def _k_anonymity(requirement: KAnonymity, rows: GroupedRows, _schema: Schema) -> Figures:
    """The number of rows [LDR08, definition 2.1]."""
    size = rows.groups.size
    return size.astype(np.float64), size >= requirement.k


def _distinct_diversity(requirement: DistinctDiversity, rows: GroupedRows, schema: Schema) -> Figures:
    """The number of different sensitive values [MKGV06]."""
    counts = _count_values(rows, schema[requirement.of])
    n_values = np.bincount(counts.group, minlength=rows.groups.n)
    return n_values.astype(np.float64), n_values >= requirement.l


def _entropy_diversity(requirement: EntropyDiversity, rows: GroupedRows, schema: Schema) -> Figures:
    r"""The entropy of the sensitive values, as an effective number of them [LDR08, definition 2.2].

    .. math:: \sum_s -p(s) \log p(s) \ge \log l
    """
    groups, counts = rows.groups, _count_values(rows, schema[requirement.of])
    share = counts.count / groups.size[counts.group]
    entropy = sum_values(-share * np.log(share), counts.group, groups.n)
    return np.exp(entropy), entropy >= math.log(requirement.l) - ENTROPY_TOLERANCE


def _recursive_diversity(requirement: RecursiveDiversity, rows: GroupedRows, schema: Schema) -> Figures:
    r"""Most frequent value against the tail, in exact integers [LDR08, definition 2.3].

    .. math:: x_1 < c\,(x_l + x_{l+1} + \dots), \qquad x_1 \ge x_2 \ge \dots

    The figure is :math:`x_1` over the tail: what c must be above. It is infinite where a group has fewer
    than l values. (c, 1)-diversity always holds.
    """
    counts = _count_values(rows, schema[requirement.of])
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


def _variance_diversity(requirement: VarianceDiversity, rows: GroupedRows, schema: Schema) -> Figures:
    """The population variance of the sensitive number [LDR08, definition 2.4]."""
    variance = _variance(rows, schema[requirement.of])
    return variance, variance >= requirement.at_least * (1 - VARIANCE_TOLERANCE)


# ---- t-closeness -----------------------------------------------------------------------------------


def count_whole_columns(policy: Policy, read: Callable[[str], Iterable[Any]]) -> dict[str, WholeColumn]:
    """The columns in which groups are compared with the whole table; ``read`` gives the pieces of a column."""
    names = {item.of for item in policy.requirements if item.of is not None and Needs.REFERENCE in item.needs}
    return {
        name: _count_pieces(values_of(piece, policy.schema[name]) for piece in read(name))
        for name in sorted(names)
    }


def _count_pieces(pieces: Iterable[pa.DictionaryArray]) -> WholeColumn:
    """Counts are added up when as many wait as are known, so that they never take much more than twice the values."""
    known, waiting, n_waiting = pa.table({"value": pa.nulls(0), "count": pa.nulls(0, pa.int64())}), [], 0
    for piece in pieces:
        values, counts = piece.value_counts().flatten()
        waiting.append(pa.table({"value": values.dictionary_decode(), "count": counts}))
        n_waiting += len(counts)
        if n_waiting > known.num_rows:
            known, waiting, n_waiting = _add_counts([known, *waiting]), [], 0
    known = _add_counts([known, *waiting])
    values = known.column("value").combine_chunks()
    return WholeColumn(values, known.column("count_sum").to_numpy().astype(np.int64))


def _add_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """One line for each value; whole numbers become floats if others do."""
    kinds = {table.schema.field("value").type for table in tables} - {pa.null()}
    kind = pa.float64() if len(kinds) > 1 else next(iter(kinds), pa.null())
    parts = [
        pa.table({"value": table.column(0).cast(kind, safe=False), "count": table.column(1)})
        for table in tables
    ]
    return pa.concat_tables(parts).group_by("value", use_threads=False).aggregate([("count", "sum")])


def _t_closeness(requirement: TCloseness, rows: GroupedRows, schema: Schema) -> Figures:
    """The earth mover's distance of each group's values from those of the whole table, in whole numbers [LLV07]."""
    attribute, groups, whole = schema[requirement.of], rows.groups, rows.whole[requirement.of]
    space = _ValueSpace.of(requirement, attribute, whole)
    column = space.find(values_of(rows.source.column(attribute.name), attribute))
    n_rows, m = whole.n_rows, len(space.values)
    is_small = int(groups.size.max(initial=1)) * n_rows * 2 * max(m, space.unit) < 2**62
    work = []
    by_group = np.argsort(groups.of_row, kind="stable")
    ends = np.searchsorted(groups.of_row[by_group], np.arange(groups.n + 1))
    step = max(1, CELLS_AT_ONCE // m)
    for start in range(0, groups.n, step):
        stop = min(start + step, groups.n)
        here = by_group[ends[start] : ends[stop]]
        at = (groups.of_row[here] - start) * m + column[here]
        weight = None if groups.weight is None else groups.weight[here]
        counts = sum_rows(weight, at, (stop - start) * m).reshape(stop - start, m)
        counts = counts.astype(np.int64 if is_small else object)
        work += space.work(counts * n_rows - counts.sum(axis=1)[:, None] * space.count).tolist()
    all_work = groups.size.astype(object) * n_rows * space.unit
    t, done = Fraction(str(requirement.t)), np.array(work, dtype=object)
    holds = done * t.denominator <= all_work * t.numerator
    return (done / all_work).astype(np.float64), holds.astype(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _ValueSpace:
    """The sensitive values of a table in their order, a missing one last, and how far apart they are."""

    distance: str
    values: pa.Array
    count: Ints
    """The rows of the table that have each value."""
    tree: Hierarchy | None
    unit: int
    """A distance of 1 in the units of ``work``."""

    @classmethod
    def of(cls, requirement: TCloseness, attribute: Attribute, whole: WholeColumn) -> _ValueSpace:
        distance, n_values = requirement.distance, len(whole.values)
        if distance == "equal":
            return cls(distance, whole.values, whole.count, None, 2)
        if attribute.kind is not Kind.CATEGORY:
            order = pc.array_sort_indices(whole.values)  # missing last
            count = whole.count[order.to_numpy()]
            return cls(distance, whole.values.take(order), count, None, max(n_values - 1, 1))
        leaf, tree = _find_leaves(attribute, whole.values.to_pylist())
        order = np.argsort(leaf)
        unit = n_values - 1 if distance == "ordered" else tree.height
        return cls(distance, whole.values.take(pa.array(order)), whole.count[order], tree, max(unit, 1))

    def find(self, cells: pa.DictionaryArray) -> NDArray[np.integer[Any]]:
        """The place of each cell's value; any place for values of the dictionary that no cell has."""
        values = cells.dictionary.cast(self.values.type, safe=False)
        known = pa.concat_arrays([values, pa.nulls(1, values.type)])
        places = pc.index_in(known, value_set=self.values).fill_null(0).to_numpy()
        return np.asarray(places[with_missing(cells).of_row])

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
        tree, place = self.tree, {value: i for i, value in enumerate(self.values.to_pylist())}
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


def _find_leaves(attribute: Attribute, values: Sequence[Any]) -> tuple[Ints, Hierarchy]:
    """The leaf of each value in its hierarchy, and the hierarchy; missing is a leaf behind all others."""
    known = [value for value in values if value is not None]
    tree = attribute.build_hierarchy(known)
    leaf = attribute.locate(tree, known).astype(np.int64)
    if n_strange := int(np.count_nonzero(leaf < 0)):
        raise HierarchyError(
            f"Column {attribute.name!r} has {number_of(n_strange, 'sensitive value')} that its hierarchy or "
            "declared values lack."
        )
    if len(known) == len(values):
        return leaf, tree
    return np.insert(leaf, list(values).index(None), tree.n_leaves), tree.with_missing()


DEFINITIONS: Mapping[type[Requirement], Callable[[Any, GroupedRows, Schema], Figures]] = {
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


def _count_values(rows: GroupedRows, attribute: Attribute) -> ValueCounts:
    groups, values = rows.groups, codes_of(rows.source.column(attribute.name), attribute)
    pairs = groups.of_row * values.n + values.of_row
    if groups.n * values.n <= len(pairs):  # few enough to count one by one
        counts = sum_rows(groups.weight, pairs, groups.n * values.n)
        pair = np.flatnonzero(counts)
        count = counts[pair]
    elif groups.weight is None:
        pair, count = np.unique(pairs, return_counts=True)
    else:
        pair, at = np.unique(pairs, return_inverse=True)
        count = sum_rows(groups.weight, at, len(pair))
    return ValueCounts(pair // values.n, count)


def _variance(rows: GroupedRows, attribute: Attribute) -> Floats:
    r"""The population variance of the numbers of each group [LDR08, definition 2.4].

    .. math:: \frac{1}{n} \sum (x - \bar x)^2

    Missing numbers are left out; a group without any number has variance 0. Each group is first moved to
    begin at 0, which changes no variance and keeps small differences between large numbers.
    """
    groups = rows.groups
    if attribute.name in rows.moments:
        return rows.moments[attribute.name].variance
    group, values = groups.of_row, numbers(rows.source.column(attribute.name), attribute)
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
        mean = sum_values(above, group, groups.n) / n
        variance = sum_values((above - mean[group]) ** 2, group, groups.n) / n
        return np.where(np.isfinite(mean), variance, np.inf)
