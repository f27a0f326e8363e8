"""What a differentially private release cost: its epsilon and delta, draw by draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import number_of

DEFINITION = "epsilon-differential privacy"
DEFINITION_WITH_DELTA = "(epsilon, delta)-differential privacy, in both directions"
NEIGHBOURS = "one row added or removed"
NEIGHBOURING_PEOPLE = "one person added or removed, of whom at most {} read"
FROM_NOBODY = "secret"
"""How the statement about the randomness begins if the release is private."""

USEFUL = 0.5
"""A release that can be expected to hold less than this part of the drawn rows is of little use."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How rows were drawn: each with this ``chance``, and boxes published if at least so many rows had them.

    ``side_rows`` and ``side_sha256`` are of the public side table. ``outlook`` is the share of its own rows whose box is
    drawn often enough on average, were it the table: None where that was not computed. It depends on nothing secret.
    """

    chance: Fraction
    least: int
    side_rows: int
    side_sha256: str | None = None
    outlook: float | None = None

    @property
    def is_useful(self) -> bool:
        """Can most drawn rows be expected to be published, as far as anybody knows?"""
        return self.outlook is None or self.outlook >= USEFUL


@dataclass(frozen=True, slots=True)
class Privacy:
    """What a differentially private release cost, in exact fractions of epsilon, draw by draw.

    Each line of the ``ledger`` is one draw: what was drawn, of what, by which mechanism, its share and its scale, and
    the result where nothing else in the release tells it.
    ``randomness`` says where the noise came from, and ``public`` what was declared and not read from the table.
    Where rows were drawn (``sampling``), ``delta`` is the one that is reached. With ``rows_at_most`` shares are what a
    person pays, of whom so many rows are read; None: one row is one person.
    """

    epsilon: Fraction
    composition: str
    ledger: tuple[Mapping[str, Any], ...]
    spent: Fraction
    unspent: Fraction
    randomness: str
    public: tuple[str, ...]
    delta: Fraction = Fraction(0)
    sampling: Sampling | None = None
    rows_at_most: int | None = None

    @property
    def neighbours(self) -> str:
        """What two tables may differ in that can hardly be told apart."""
        return describe_neighbours(self.rows_at_most)

    @property
    def is_secret(self) -> bool:
        """Was the noise secret? Whoever can repeat it can take it away."""
        return self.randomness.startswith(FROM_NOBODY)

    @property
    def definition(self) -> str:
        return DEFINITION if self.sampling is None else DEFINITION_WITH_DELTA

    @property
    def promise(self) -> str:
        """The numbers of the promise, for people."""
        delta = "" if self.sampling is None else f", delta {float(self.delta):.6g}"
        return f"epsilon {self.epsilon}{delta}, {self.neighbours}"


def describe_neighbours(rows_at_most: int | None) -> str:
    """What two tables may differ in, if a person has at most so many rows.

    >>> describe_neighbours(4)
    'one person added or removed, of whom at most 4 rows are read'
    >>> describe_neighbours(1)
    'one person added or removed, of whom at most 1 row is read'
    """
    if rows_at_most is None:
        return NEIGHBOURS
    return NEIGHBOURING_PEOPLE.format(
        f"{number_of(rows_at_most, 'row')} {'is' if rows_at_most == 1 else 'are'}"
    )
