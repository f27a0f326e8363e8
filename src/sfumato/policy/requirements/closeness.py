r"""t-closeness: the sensitive values of every group are distributed nearly as in the whole table [LLV07].

The distance of a group's shares p from the table's shares q is the earth mover's: the least work of turning one into
the other, where moving a share from one value to another costs their distance, at most 1. All three distances of the
paper are sums over sets of values,

.. math:: D(p, q) = \sum_j w_j\, |p(S_j) - q(S_j)|, \qquad w_j \ge 0:

equal
    All values are 1 apart. The sets are single values, each with the weight 1/2.
ordered
    Values at places i and j of m are |i - j| / (m - 1) apart. The sets are the first i values, i < m, each with the
    weight 1 / (m - 1).
hierarchical
    Values are as far apart as their lowest common ancestor is high: its height over that of the hierarchy, H. The
    paper moves what each child of a node N has too much to its siblings that lack it, and the rest upwards:
    :math:`\frac{height(N)}{H} \min(pos(N), neg(N))`, where pos and neg sum what children have too much and too
    little. Since :math:`\min(a, b) = (a + b - |a - b|) / 2`, :math:`pos + neg` is the sum of :math:`|p(C) - q(C)|`
    over the children and :math:`pos - neg = p(N) - q(N)`, the sum over all N is one over sets: every node C below a
    node N, with the weight :math:`(height(N) - height(C)) / 2H`.

**Monotone.** Let two disjoint groups of :math:`n_1` and :math:`n_2` rows have shares :math:`p_1, p_2` with distances
of at most t from q. The union has the shares :math:`\lambda p_1 + (1 - \lambda) p_2` with
:math:`\lambda = n_1 / (n_1 + n_2)`. Each :math:`|p(S) - q(S)|` is convex in p, and so is their sum with weights that
are not negative: :math:`D(\lambda p_1 + (1 - \lambda) p_2, q) \le \lambda D(p_1, q) + (1 - \lambda) D(p_2, q) \le t`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, number_of, short
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import read_exactly
from sfumato.policy.requirements.group_stats import GroupStats, Needs, Reference
from sfumato.policy.requirements.promise import FIGURE_TOLERANCE, Promise, format_margin
from sfumato.policy.requirements.requirement import Requirement
from sfumato.policy.schema import Attribute, Kind

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TCloseness(Requirement):
    """The distance of every group's sensitive values from the whole table's is at most ``t`` [LLV07].

    Salaries of 3k to 11k, one row each; those of a group are 3k, 4k and 5k:

    >>> asked = TCloseness(0.375, of="salary", distance="ordered")
    >>> table = asked.reference(Attribute("salary", "sensitive", type="number"), dict.fromkeys(range(3, 12), 1))
    >>> group = GroupStats(np.array([3]), values=np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0]]), reference=table)
    >>> asked.measure(group), asked.holds(group)
    (array([0.375]), array([ True]))
    """

    t: Annotated[float, Ge(0), Le(1), "The largest distance, from 0 (the same shares) to 1."]
    of: Annotated[str, "The sensitive column."]
    distance: Annotated[
        Literal["equal", "ordered", "hierarchical"],
        "How far apart two values are: all alike, by their places in an order, or by their hierarchy.",
    ] = "equal"
    word: ClassVar[str] = "t-closeness"
    meaning: ClassVar[str] = (
        "The sensitive values of every group are distributed nearly as in the whole table."
    )
    example: ClassVar[Mapping[str, Any]] = {"t": 0.2, "of": "disease"}
    needs: ClassVar[Needs] = Needs.VALUES | Needs.REFERENCE
    figure: ClassVar[str] = "largest distance from the whole table"
    is_better_smaller: ClassVar[bool] = True

    def __str__(self) -> str:
        how = "" if self.distance == "equal" else f" ({self.distance} distance)"
        return f"{self.t:g}-closeness of {self.of!r}{how}"

    @property
    def fewest_rows(self) -> int:
        return 1

    @property
    def exact_t(self) -> Fraction:
        """What is written, as a fraction."""
        return read_exactly(self.t)

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        gaps, whole = self._gaps(groups)
        return np.asarray(gaps * self.exact_t.denominator <= whole * self.exact_t.numerator, dtype=np.bool_)

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        gaps, whole = self._gaps(groups)
        return np.asarray(gaps / whole, dtype=np.float64)

    @staticmethod
    def _gaps(groups: GroupStats) -> tuple[NDArray[Any], NDArray[Any]]:
        """The distance of each group as a fraction of two whole numbers of any size."""
        assert groups.values is not None
        assert groups.reference is not None
        table = groups.reference
        counts = np.vstack([groups.values, table.counts])[:, table.order].astype(object)
        before = np.hstack([np.zeros((len(counts), 1), dtype=object), np.cumsum(counts, axis=1)])
        inside = before[:, table.last] - before[:, table.first]
        n_rows, n = before[-1, -1], before[:-1, -1]
        gaps = np.abs(inside[:-1] * n_rows - n[:, None] * inside[-1]) * table.weight.astype(object)
        return gaps.sum(axis=1), n * n_rows * table.scale

    def is_met_by(self, figure: float) -> bool:
        return figure <= self.t + FIGURE_TOLERANCE

    def describe(self, figure: float) -> str:
        return f"a distance of {figure:.4g} from the whole table"

    def promise(self, figure: float) -> Promise:
        return Promise(
            name=f"{self.t:g}-closeness of {self.of}",
            meaning=f"The values of {self.of} are distributed in every group nearly as in the whole table: the "
            f"earth mover's distance ({self.distance}) is at most {self.t:g} of 1.",
            asked=f"at most {self.t:g}",
            achieved=f"{figure:.4g}",
            margin=format_margin(self.t, figure),
            holds=self.is_met_by(figure),
        )

    def object_to(self, attribute: Attribute) -> str | None:
        if objection := Requirement.object_to(self, attribute):
            return objection
        name, is_category = short(attribute.name), attribute.kind is Kind.CATEGORY
        if self.distance == "hierarchical" and not (is_category and attribute.hierarchy is not None):
            return f"column {name} is no category with a hierarchy; add one, or leave out distance."
        if self.distance == "ordered" and is_category and not (attribute.values or attribute.hierarchy):
            return (
                f"column {name} has no order; add type: number, values or a hierarchy, or leave out distance."
            )
        return None

    def reference(self, attribute: Attribute, rows: Mapping[Any, int]) -> Reference:
        """The whole table; a set of values for every term of the distance."""
        values, counts = [*rows], np.array([*rows.values()], dtype=np.int64)
        places = np.arange(len(values))
        if self.distance == "equal":
            return Reference(counts, places, places, places + 1, np.ones_like(places), 2)
        if self.distance == "hierarchical":
            return _by_nodes(attribute, values, counts)
        order = places
        if attribute.kind is Kind.CATEGORY:  # numbers and dates have the order of their codes
            order = np.argsort(_leaves_of(attribute, values)[1])
        ends = places[1:]
        return Reference(counts, order, 0 * ends, ends, np.ones_like(ends), max(len(ends), 1))


def _leaves_of(attribute: Attribute, values: Sequence[Any]) -> tuple[Hierarchy, Ints]:
    """The hierarchy of a category, and the leaf of each value; a missing one is the last child of the root."""
    known = [value for value in values if value is not None]
    tree = attribute.build_hierarchy(known)
    leaf = attribute.locate(tree, known).astype(np.int64)
    if n_strange := int(np.count_nonzero(leaf < 0)):
        raise HierarchyError(
            f"Column {short(attribute.name)} has {number_of(n_strange, 'sensitive value')} that its hierarchy or "
            "declared values lack; add them."
        )
    if len(known) < len(values):
        tree = tree.with_missing()
        leaf = np.append(leaf, tree.n_leaves - 1)
    return tree, leaf


def _by_nodes(attribute: Attribute, values: Sequence[Any], counts: Ints) -> Reference:
    """A set for each node below the root that any value is in."""
    tree, leaf = _leaves_of(attribute, values)
    height = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in range(tree.n_nodes - 1, 0, -1):
        height[tree.parent[node]] = max(height[tree.parent[node]], height[node] + 1)
    order = np.argsort(leaf)
    first, last = (np.searchsorted(leaf[order], ends[1:]) for ends in (tree.low, tree.high))
    weight, is_used = height[tree.parent[1:]] - height[1:], last > first
    return Reference(
        counts, order, first[is_used], last[is_used], weight[is_used], 2 * max(int(height[0]), 1)
    )
