"""What a release claims of its rows: values that ``verify`` computes again from the folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.options.risk_utility import AtLeast


@dataclass(frozen=True, slots=True)
class Claim:
    """One requirement, as the policy writes it, and the figure that the worst group reaches.

    ``achieved`` is infinite where no finite figure is enough; JSON knows no infinity and holds null then.
    """

    requirement: Mapping[str, Any]
    figure: str
    achieved: float


@dataclass(frozen=True, slots=True)
class UtilityClaim:
    """How much utility the published rows of a risk-utility release keep, on average and at least.

    ``at_least`` is the share of its utility that each row keeps, or the utility that it has, None if none is promised.
    ``risk_at_most`` is the risk that no row exceeds by promise, counted against the side table, None if none is promised.
    ``mean`` and ``least`` are None where the folder does not tell: it takes the values of the table. ``missing`` are the
    columns that have a leaf for missing cells.
    """

    measure: str
    at_least: AtLeast | None
    mean: float | None
    least: float | None
    missing: tuple[str, ...] = ()
    risk_at_most: Fraction | None = None


@dataclass(frozen=True, slots=True)
class CellsClaim:
    """How many of ``all`` published cells of quasi-identifiers are exact or narrowed; the others tell nothing (``*``).

    An empty cell tells that a value is missing, and counts as exact.
    """

    exact: int
    narrowed: int
    all: int

    def __str__(self) -> str:
        """The shares, for people.

        >>> str(CellsClaim(exact=1, narrowed=7, all=1000))
        '0.1% exact, 0.7% narrowed, 99.2% *'
        """
        parts = {"exact": self.exact, "narrowed": self.narrowed, "*": self.nothing}
        return ", ".join(f"{percent(n, self.all)} {word}" for word, n in parts.items())

    @property
    def nothing(self) -> int:
        return self.all - self.exact - self.narrowed


@dataclass(frozen=True, slots=True)
class AloneClaim:
    """How many ``rows`` are alone by all ``columns`` that are published as they are: no other row has these cells."""

    columns: int
    rows: int

    @property
    def words(self) -> str:
        """Which columns these are.

        >>> AloneClaim(1, 0).words, AloneClaim(3, 0).words
        ('the column that is published as it is', 'the 3 columns that are published as they are')
        """
        if self.columns == 1:
            return "the column that is published as it is"
        return f"the {self.columns:,} columns that are published as they are"


def percent(part: int, whole: int) -> str:
    """How much of the whole a part is, in per cent with one decimal; 0 and 100 only if it is nothing or everything.

    >>> percent(1, 3), percent(1, 10_000), percent(9_999, 10_000), percent(3, 3)
    ('33.3%', '0.1%', '99.9%', '100%')
    """
    return percent_of(part / whole if part else 0.0)


def percent_of(share: float) -> str:
    """A share in per cent, see :func:`percent`."""
    if share in (0, 1):
        return "100%" if share else "0%"
    return f"{min(max(100 * share, 0.1), 99.9):.1f}%"


@dataclass(frozen=True, slots=True)
class SmallGroups:
    """How small the groups are: the ``smallest``, and the rows of groups with fewer than 5, 11 and 20.

    Those of parts of the rows are joined to those of all.

    >>> both = SmallGroups.of(np.array([4, 12])).join(SmallGroups.of(np.array([10])))
    >>> both, both.risk(rows=26, groups=3).above
    (SmallGroups(smallest=4, below=(4, 14, 26)), {'1/5': 0.15384615384615385, '1/11': 0.5384615384615384, '1/20': 1.0})
    """

    smallest: int
    below: tuple[int, ...]

    @classmethod
    def of(cls, size: NDArray[np.int64]) -> Self:
        """Of groups with these numbers of rows."""
        return cls(int(size.min()), tuple(int(size[size < limit].sum()) for limit in RISK_LIMITS))

    def join(self, other: SmallGroups) -> SmallGroups:
        below = (mine + theirs for mine, theirs in zip(self.below, other.below, strict=True))
        return SmallGroups(min(self.smallest, other.smallest), tuple(below))

    def risk(self, *, rows: int, groups: int) -> RiskClaim:
        """The risk of so many rows in so many groups."""
        above = {f"1/{limit}": n / rows for limit, n in zip(RISK_LIMITS, self.below, strict=True)}
        return RiskClaim(1 / self.smallest, groups / rows, above)


PEOPLE_COUNTED = "people, each counted once in a group"
"""Whose shares have a risk above a limit, where groups count people: who is in two groups counts in both."""

RISK_LIMITS = (5, 11, 20)
"""Risks of one in so many are told apart: those that guidelines for health data and official statistics name."""


@dataclass(frozen=True, slots=True)
class RiskClaim:
    """The risk of re-identification: whoever knows that a person is in the table picks one of the rows of its group.

    (The *prosecutor's* risk of the literature.) ``largest`` and ``mean`` are over all rows; ``above`` says which share of
    them has a risk above 1/5, 1/11 and 1/20.

    >>> str(SmallGroups(10, (0, 20, 100)).risk(rows=1000, groups=50))
    '1 in 10 at most, 1 in 20 on average; above 1/5: 0%, above 1/11: 2.0%, above 1/20: 10.0% of the rows'
    """

    largest: float
    mean: float
    above: Mapping[str, float]

    def __str__(self) -> str:
        return self.words()

    def words(self, whose: str = "rows") -> str:
        """For people to read: of ``whose`` shares they are."""
        shares = ", ".join(f"above {limit}: {percent_of(share)}" for limit, share in self.above.items())
        return f"{one_in(self.largest)} at most, {one_in(self.mean)} on average; {shares} of the {whose}"


def one_in(risk: float) -> str:
    """A risk as people say it.

    >>> one_in(1 / 10), one_in(0.0740740), one_in(1.0), one_in(1 / 41_234)
    ('1 in 10', '1 in 13.5', '1 in 1', '1 in 41,234')
    """
    return f"1 in {1 / risk:,.0f}" if risk < RARE else f"1 in {round(1 / risk, 1):g}"


RARE = 0.01
"""A risk below which decimals of "one in so many" say nothing."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that is claimed of the published rows.

    ``sha256`` is empty until the release is written: it is of the files, not of the rows. The groups of a
    differentially private release are the cells of its grid, and ``counted`` is the sum of its counts. Those of a
    risk-utility release are the distinct boxes, its suppressed rows are published as roots throughout, and it has a
    claim of ``utility``. ``cells`` says how much is left; a differentially private release and one of an older version
    has none. ``one_value`` counts, for each column of which no diversity is required, the rows of groups that share one
    value of it. ``risk`` is claimed of rows in groups; an older version did not. Where groups count people, ``unit``
    is the column that tells them apart, and ``people`` is how many they are; what is achieved is then of people, and the
    owner's word.
    ``alone_by_passed`` is None where nothing is published as it is, and of older versions.
    """

    rows: int
    groups: int
    requirements: tuple[Claim, ...] = ()
    suppressed: int = 0
    sha256: Mapping[str, str] = field(default_factory=dict)
    counted: int | None = None
    utility: UtilityClaim | None = None
    cells: CellsClaim | None = None
    one_value: Mapping[str, int] = field(default_factory=dict)
    risk: RiskClaim | None = None
    unit: str | None = None
    people: int | None = None
    alone_by_passed: AloneClaim | None = None
