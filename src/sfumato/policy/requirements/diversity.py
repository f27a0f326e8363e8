r"""Diversity of the sensitive values of every group [LDR08, definitions 2.2 to 2.4; MKGV06].

All are *monotone*: if two disjoint groups satisfy one, so does their union. So a partition can be refined
until a group fails, and merging groups never breaks a promise. Where people are counted, this is true of distinct
diversity alone, and nothing rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from sfumato.errors import number_of, short
from sfumato.policy.kinds import read_exactly
from sfumato.policy.requirements.group_stats import GroupStats, Needs
from sfumato.policy.requirements.promise import (
    FIGURE_TOLERANCE,
    Promise,
    format_figure,
    format_margin,
    format_ordinal,
)
from sfumato.policy.requirements.requirement import Requirement
from sfumato.policy.schema import Attribute, Kind

ENTROPY_TOLERANCE = 1e-12
"""Entropies (in nats) closer than this are equal: the roundoff of a sum of logarithms, no more."""

RATIO_TOLERANCE = 1e-12
"""The ratio of a certificate was divided in floating point; ``holds`` compares whole numbers."""


@dataclass(frozen=True, slots=True)
class DistinctDiversity(Requirement):
    """Every group holds at least ``l`` different sensitive values [MKGV06].

    Monotone: a union has all values of its parts.

    >>> DistinctDiversity(2, of="disease").holds(GroupStats(np.array([4, 4]), values=np.array([[4, 0], [3, 1]])))
    array([False,  True])
    """

    l: Annotated[int, Ge(1), "The least number of different values."]  # noqa: E741
    of: Annotated[str, "The sensitive column."]
    word: ClassVar[str] = "distinct-diversity"
    meaning: ClassVar[str] = "Every group holds at least l different sensitive values."
    example: ClassVar[Mapping[str, Any]] = {"l": 3, "of": "disease"}
    needs: ClassVar[Needs] = Needs.VALUES
    figure: ClassVar[str] = "fewest different values"

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity of {self.of!r}"

    @property
    def fewest_rows(self) -> int:
        return self.l

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        return self.measure(groups) >= self.l

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        assert groups.values is not None
        return np.asarray(np.count_nonzero(groups.values, axis=1), dtype=np.float64)

    def is_met_by(self, figure: float) -> bool:
        return figure >= self.l

    def describe(self, figure: float) -> str:
        return number_of(round(figure), "different value")

    def promise(self, figure: float) -> Promise:
        return Promise(
            name=f"distinct {self.l}-diversity of {self.of}",
            meaning=f"Every group holds at least {self.l:,} different values of {self.of}.",
            asked=f"at least {number_of(self.l, 'value')}",
            achieved=number_of(round(figure), "value"),
            margin=format_margin(figure, self.l),
            holds=self.is_met_by(figure),
        )


@dataclass(frozen=True, slots=True)
class EntropyDiversity(Requirement):
    r"""The sensitive values of every group are as mixed as ``l`` equally frequent ones [LDR08, definition 2.2].

    .. math:: -\sum_s p(s) \log p(s) \ge \log l, \qquad 0 \log 0 = 0

    ``l`` is any real number from 1. The figure of a group is :math:`e^H`, H being its entropy: so many equally
    frequent values would have it.

    >>> two_even_values = GroupStats(np.array([4]), values=np.array([[2, 2, 0]]))
    >>> EntropyDiversity(2, of="disease").holds(two_even_values)
    array([ True])
    """

    l: Annotated[float, Ge(1), "The effective number of values, any real number of at least 1."]  # noqa: E741
    of: Annotated[str, "The sensitive column."]
    word: ClassVar[str] = "entropy-diversity"
    meaning: ClassVar[str] = "The sensitive values of every group have entropy of at least log l."
    example: ClassVar[Mapping[str, Any]] = {"l": 3, "of": "disease"}
    needs: ClassVar[Needs] = Needs.VALUES
    figure: ClassVar[str] = "least entropy, as an effective number of values"

    def __str__(self) -> str:
        return f"entropy {self.l:g}-diversity of {self.of!r}"

    @property
    def fewest_rows(self) -> int:
        """So many effective values need as many rows; the slack keeps the tolerance of the entropy."""
        return math.ceil(self.l - 1e-9)

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        return self._entropy(groups) >= math.log(self.l) - ENTROPY_TOLERANCE

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        return np.exp(self._entropy(groups))

    @staticmethod
    def _entropy(groups: GroupStats) -> NDArray[np.float64]:
        assert groups.values is not None
        counts = groups.values.astype(np.float64)
        n = counts.sum(axis=1)
        terms = np.where(counts > 0, counts * np.log(np.maximum(counts, 1)), 0.0)
        return np.asarray(np.log(n) - terms.sum(axis=1) / n)

    def describe(self, figure: float) -> str:
        return f"the entropy of {figure:.4g} equally frequent values"

    def describe_worst(self, figure: float, *, digits: int = 12) -> str:
        return f"the worst group counts as {figure:.{digits}g} equally frequent values"

    def is_met_by(self, figure: float) -> bool:
        return math.log(max(figure, 1.0)) >= math.log(self.l) - FIGURE_TOLERANCE

    def promise(self, figure: float) -> Promise:
        return Promise(
            name=f"entropy {self.l:g}-diversity of {self.of}",
            meaning=f"Within every group, {self.of} is at least as uncertain as a draw from {self.l:g} equally "
            "frequent values.",
            asked=f"at least {self.l:g} values",
            achieved=f"{figure:.4g} values",
            margin=format_margin(figure, self.l),
            holds=self.is_met_by(figure),
        )


@dataclass(frozen=True, slots=True)
class RecursiveDiversity(Requirement):
    r"""The most frequent value of a group is not too frequent [LDR08, definition 2.3].

    With :math:`x_1 \ge x_2 \ge \dots` the counts of the sensitive values, most frequent first:

    .. math:: x_1 < c\,(x_l + x_{l+1} + \dots)

    ``l = 1`` always holds. ``c`` is kept as the exact fraction of its decimal text, so that a
    boundary such as 3 < 0.1 x 30 is decided exactly.

    >>> counts = GroupStats(np.array([52]), values=np.array([[1, 50, 1]]))
    >>> RecursiveDiversity(c=25, l=2, of="d").holds(counts), RecursiveDiversity(c=26, l=2, of="d").holds(counts)
    (array([False]), array([ True]))
    """

    c: Annotated[float, Gt(0), "The factor, above 0: the smaller, the stricter."]
    l: Annotated[int, Ge(1), "The rank from which values are counted together."]  # noqa: E741
    of: Annotated[str, "The sensitive column."]
    word: ClassVar[str] = "recursive-diversity"
    meaning: ClassVar[str] = (
        "The most frequent sensitive value of every group is less frequent than c times the l-th and all rarer ones "
        "together."
    )
    example: ClassVar[Mapping[str, Any]] = {"c": 2, "l": 3, "of": "disease"}
    needs: ClassVar[Needs] = Needs.VALUES
    figure: ClassVar[str] = "least c that the groups satisfy (below the c asked for)"
    is_better_smaller: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"recursive ({self.c:g}, {self.l})-diversity of {self.of!r}"

    @property
    def exact_c(self) -> Fraction:
        """What is written, as a fraction; beyond nine digits or so rounded down, which asks for a little more.

        Beyond 2^32, more than all rows, one c is as good as another. So products with counts fit 64 bits.
        """
        c = min(read_exactly(self.c), Fraction(2**32))
        finest = min(10**9, 2**33 // math.ceil(c))
        return c if c.denominator <= finest else Fraction(math.floor(c * finest), finest)

    @property
    def fewest_rows(self) -> int:
        return self.l

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        if self.l == 1:
            return np.ones(len(groups.count), dtype=np.bool_)
        most, tail = self._most_and_tail(groups)
        return most * self.exact_c.denominator < tail * self.exact_c.numerator

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        most, tail = self._most_and_tail(groups)
        with np.errstate(divide="ignore"):
            return np.where(tail > 0, most / np.maximum(tail, 1), np.inf)

    def _most_and_tail(self, groups: GroupStats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert groups.values is not None
        ranked = -np.sort(-groups.values, axis=1)
        return ranked[:, 0], ranked[:, self.l - 1 :].sum(axis=1)

    def describe(self, figure: float) -> str:
        if math.isinf(figure):
            return f"fewer than {self.l} different values"
        return f"a diversity that needs a c above {figure:.4g}"

    def describe_worst(self, figure: float, *, digits: int = 12) -> str:
        if math.isinf(figure):
            return f"the worst group has fewer than {self.l} different values"
        return f"the worst group needs a c above {figure:.{digits}g}"

    def is_met_by(self, figure: float) -> bool:
        return self.l == 1 or figure < self.c * (1 + RATIO_TOLERANCE)

    def promise(self, figure: float) -> Promise:
        return Promise(
            name=f"recursive ({self.c:g}, {self.l})-diversity of {self.of}",
            meaning=f"Within every group, the most frequent value of {self.of} has fewer rows than {self.c:g} times "
            f"all values from the {format_ordinal(self.l)} most frequent on.",
            asked=f"a ratio below {self.c:g}",
            achieved=f"a ratio of {figure:.4g}",
            margin="always holds" if self.l == 1 else format_margin(self.c, figure),
            holds=self.is_met_by(figure),
        )


@dataclass(frozen=True, slots=True)
class VarianceDiversity(Requirement):
    r"""The sensitive number has a population variance of at least ``at_least`` [LDR08, definition 2.4].

    Monotone: let groups 1 and 2 have sizes :math:`n_i`, means :math:`m_i`, variances :math:`v_i \ge v`.
    The variance of the union about its own mean :math:`m` is

    .. math:: \frac{n_1 v_1 + n_2 v_2}{n_1 + n_2} + \frac{n_1 (m_1 - m)^2 + n_2 (m_2 - m)^2}{n_1 + n_2}
              \;\ge\; \frac{n_1 v + n_2 v}{n_1 + n_2} \;=\; v,

    since the second term, the variance between the groups, is never negative.

    >>> VarianceDiversity(1.0, of="salary").holds(GroupStats(np.array([2]), variance=np.array([1.0])))
    array([ True])
    """

    at_least: Annotated[float, Ge(0), "The least variance, in squared units of the column."]
    of: Annotated[str, "The sensitive column, a number."]
    word: ClassVar[str] = "variance-diversity"
    meaning: ClassVar[str] = "The sensitive number has a population variance of at least this in every group."
    example: ClassVar[Mapping[str, Any]] = {"at-least": 1e8, "of": "salary"}
    needs: ClassVar[Needs] = Needs.MOMENTS
    figure: ClassVar[str] = "least variance"

    def __str__(self) -> str:
        return f"variance diversity of at least {self.at_least:g} of {self.of!r}"

    @property
    def fewest_rows(self) -> int:
        return 2 if self.at_least > 0 else 1

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        assert groups.variance is not None
        return groups.variance >= self.at_least

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        assert groups.variance is not None
        return groups.variance

    def describe(self, figure: float) -> str:
        return f"a variance of {figure:.6g}"

    def is_met_by(self, figure: float) -> bool:
        return figure >= self.at_least * (1 - FIGURE_TOLERANCE)

    def promise(self, figure: float) -> Promise:
        least = format_figure(self.at_least)
        return Promise(
            name=f"variance diversity of {self.of}",
            meaning=f"Within every group, {self.of} has a variance of at least {least}.",
            asked=f"at least {least}",
            achieved=format_figure(figure),
            margin=format_margin(figure, self.at_least),
            holds=self.is_met_by(figure),
        )

    def object_to(self, attribute: Attribute) -> str | None:
        if objection := Requirement.object_to(self, attribute):
            return objection
        if attribute.kind is Kind.NUMBER:
            return None
        return (
            f"column {short(attribute.name)} is not a number; add type: number, or ask for entropy-diversity."
        )
