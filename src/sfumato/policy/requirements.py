r"""What must hold of every published group [LDR08, definitions 2.1 to 2.4].

Each requirement is a value: its parameters, the statistics of a group that it ``needs``, whether it
``holds`` of groups with given statistics, and the figure by which it is judged (``achieved``).

All four are *monotone*: if two disjoint groups satisfy one, so does their union. A partition can
therefore only be refined until a group fails, and merging groups never breaks a promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Flag, auto
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PolicyError, number_of
from sfumato.policy.decimals import read_exactly

ENTROPY_TOLERANCE = 1e-12
"""Entropies (in nats) closer than this are equal: the roundoff of a sum of logarithms, no more."""


class Needs(Flag):
    """The statistics of a group that a requirement looks at."""

    COUNT = auto()
    VALUES = auto()  # rows per sensitive value
    MOMENTS = auto()  # sum and sum of squares of a sensitive number


@dataclass(frozen=True, slots=True)
class GroupStats:
    """Statistics of one or more groups, one row each.

    ``values[g, v]`` counts the rows of group ``g`` with sensitive value ``v``;
    ``variance[g]`` is the population variance of the sensitive number.
    """

    count: NDArray[np.int64]
    values: NDArray[np.int64] | None = None
    variance: NDArray[np.float64] | None = None


# The sentences are those of the policy's schema, so that code and command line say the same.


def _check_whole(what: str, given: object, example: str = "") -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise PolicyError(f"{what}: must be a whole number of at least 1{example}.")


def _check_number(what: str, given: float, *, least: float) -> None:
    if not _is_number(given) or given < least:
        raise PolicyError(f"{what}: must be a number of at least {least}.")


def _check_column(word: str, given: object) -> None:
    if not isinstance(given, str):
        raise PolicyError(f"{word} of: must be the name of one column.")


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """Every published group holds at least ``k`` rows [LDR08, definition 2.1].

    >>> KAnonymity(3).holds(GroupStats(count=np.array([2, 3])))
    array([False,  True])
    """

    k: int
    needs: ClassVar[Needs] = Needs.COUNT
    word: ClassVar[str] = "k-anonymity"
    of: ClassVar[str | None] = None
    figure: ClassVar[str] = "smallest group"

    def __post_init__(self) -> None:
        _check_whole(self.word, self.k, ", such as 5")

    def __str__(self) -> str:
        return f"{self.k}-anonymity"

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        return groups.count >= self.k

    def achieved(self, groups: GroupStats) -> NDArray[np.float64]:
        return groups.count.astype(np.float64)

    def describe(self, achieved: float) -> str:
        return number_of(round(achieved), "row")

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.k}


@dataclass(frozen=True, slots=True)
class EntropyDiversity:
    r"""The sensitive values of every group have entropy of at least :math:`\log l` [LDR08, definition 2.2].

    .. math:: -\sum_s p(s) \log p(s) \ge \log l, \qquad 0 \log 0 = 0

    ``l`` is any real number from 1; the achieved figure is :math:`e^H`, on the scale of ``l``.

    >>> two_even_values = GroupStats(np.array([4]), values=np.array([[2, 2, 0]]))
    >>> EntropyDiversity(2, of="disease").holds(two_even_values)
    array([ True])
    """

    l: float  # noqa: E741 - the letter of the definition
    of: str
    needs: ClassVar[Needs] = Needs.VALUES
    word: ClassVar[str] = "entropy-diversity"
    figure: ClassVar[str] = "least entropy, as an effective number of values"

    def __post_init__(self) -> None:
        _check_column(self.word, self.of)
        _check_number(f"{self.word} l", self.l, least=1)

    def __str__(self) -> str:
        return f"entropy {self.l:g}-diversity of {self.of!r}"

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        return self._entropy(groups) >= math.log(self.l) - ENTROPY_TOLERANCE

    def achieved(self, groups: GroupStats) -> NDArray[np.float64]:
        return np.exp(self._entropy(groups))

    @staticmethod
    def _entropy(groups: GroupStats) -> NDArray[np.float64]:
        assert groups.values is not None
        counts = groups.values.astype(np.float64)
        n = counts.sum(axis=1)
        terms = np.where(counts > 0, counts * np.log(np.maximum(counts, 1)), 0.0)
        return np.asarray(np.log(n) - terms.sum(axis=1) / n)

    def describe(self, achieved: float) -> str:
        return f"the entropy of {achieved:.4g} equally frequent values"

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"l": self.l, "of": self.of}}


@dataclass(frozen=True, slots=True)
class RecursiveDiversity:
    r"""The most frequent value of a group is not too frequent [LDR08, definition 2.3].

    With :math:`x_1 \ge x_2 \ge \dots` the counts of the sensitive values, most frequent first:

    .. math:: x_1 < c\,(x_l + x_{l+1} + \dots)

    ``l = 1`` always holds. ``c`` is kept as an exact fraction of its decimal text, so that a
    boundary such as 3 < 0.1 x 30 is judged exactly.

    >>> counts = GroupStats(np.array([52]), values=np.array([[1, 50, 1]]))
    >>> RecursiveDiversity(c=25, l=2, of="d").holds(counts), RecursiveDiversity(c=26, l=2, of="d").holds(counts)
    (array([False]), array([ True]))
    """

    c: float
    l: int  # noqa: E741 - the letter of the definition
    of: str
    needs: ClassVar[Needs] = Needs.VALUES
    word: ClassVar[str] = "recursive-diversity"
    figure: ClassVar[str] = "least c that the groups satisfy (below the c asked for)"

    def __post_init__(self) -> None:
        _check_column(self.word, self.of)
        if not _is_number(self.c) or self.c <= 0:
            raise PolicyError(f"{self.word} c: must be a number above 0.")
        _check_whole(f"{self.word} l", self.l)

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

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        if self.l == 1:
            return np.ones(len(groups.count), dtype=np.bool_)
        most, tail = self._most_and_tail(groups)
        return most * self.exact_c.denominator < tail * self.exact_c.numerator

    def achieved(self, groups: GroupStats) -> NDArray[np.float64]:
        most, tail = self._most_and_tail(groups)
        with np.errstate(divide="ignore"):
            return np.where(tail > 0, most / np.maximum(tail, 1), np.inf)

    def _most_and_tail(self, groups: GroupStats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert groups.values is not None
        ranked = -np.sort(-groups.values, axis=1)
        return ranked[:, 0], ranked[:, self.l - 1 :].sum(axis=1)

    def describe(self, achieved: float) -> str:
        if math.isinf(achieved):
            return f"fewer than {self.l} different values"
        return f"a diversity that needs a c above {achieved:.4g}"

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"c": self.c, "l": self.l, "of": self.of}}


@dataclass(frozen=True, slots=True)
class VarianceDiversity:
    r"""The sensitive number has a population variance of at least ``at_least`` [LDR08, definition 2.4].

    Monotone: let groups 1 and 2 have sizes :math:`n_i`, means :math:`m_i`, variances :math:`v_i \ge v`.
    The variance of the union about its own mean :math:`m` is

    .. math:: \frac{n_1 v_1 + n_2 v_2}{n_1 + n_2} + \frac{n_1 (m_1 - m)^2 + n_2 (m_2 - m)^2}{n_1 + n_2}
              \;\ge\; \frac{n_1 v + n_2 v}{n_1 + n_2} \;=\; v,

    since the second term, the variance between the groups, is never negative.

    >>> VarianceDiversity(1.0, of="salary").holds(GroupStats(np.array([2]), variance=np.array([1.0])))
    array([ True])
    """

    at_least: float
    of: str
    needs: ClassVar[Needs] = Needs.MOMENTS
    word: ClassVar[str] = "variance-diversity"
    figure: ClassVar[str] = "least variance"

    def __post_init__(self) -> None:
        _check_column(self.word, self.of)
        _check_number(f"{self.word} at-least", self.at_least, least=0)

    def __str__(self) -> str:
        return f"variance diversity of at least {self.at_least:g} of {self.of!r}"

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        assert groups.variance is not None
        return groups.variance >= self.at_least

    def achieved(self, groups: GroupStats) -> NDArray[np.float64]:
        assert groups.variance is not None
        return groups.variance

    def describe(self, achieved: float) -> str:
        return f"a variance of {achieved:.6g}"

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"at-least": self.at_least, "of": self.of}}


Requirement = KAnonymity | EntropyDiversity | RecursiveDiversity | VarianceDiversity
