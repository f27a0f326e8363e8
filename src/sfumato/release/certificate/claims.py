"""What a release claims of its rows: values that ``verify`` computes again from the folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

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


def percent(part: int, whole: int) -> str:
    """A share in per cent with one decimal; 0 and 100 only if it is nothing or everything.

    >>> percent(1, 3), percent(1, 10_000), percent(9_999, 10_000), percent(3, 3)
    ('33.3%', '0.1%', '99.9%', '100%')
    """
    if part in (0, whole):
        return "100%" if part else "0%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that is claimed of the published rows.

    ``sha256`` is empty until the release is written: it is of the files, not of the rows. The groups of a
    differentially private release are the cells of its grid, and ``counted`` is the sum of its counts. Those of a
    risk-utility release are the distinct boxes, its suppressed rows are published as roots throughout, and it has a
    claim of ``utility``. ``cells`` says how much is left; a differentially private release and one of an older version
    has none. ``one_value`` counts, for each column of which no diversity is required, the rows of groups that share one
    value of it.
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
