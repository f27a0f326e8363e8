"""What was found of the risk of a table or a release: values, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import notebook
from sfumato.errors import enumerate_names, number_of
from sfumato.release.certificate import RiskClaim
from sfumato.release.certificate.claims import one_in, percent_of
from sfumato.risk.measures import Known
from sfumato.risk.minimal_uniques import Scores
from sfumato.risk.uniqueness import NAMES, PopulationUniques

FORMAT = 1

KNOWS: Mapping[Known, str] = {
    "table": "the population is given",
    "fraction": "by the sampling fraction",
    "weights": "by survey weights",
}


@dataclass(frozen=True, slots=True)
class Suda:
    """Minimal sample uniques of up to ``most`` columns.

    sizes    how many there are of each size: pairs of a row and a set of columns
    columns  the share of the scores of all rows that each column has a part in; None where no row has a score
    scores   the score of each row, in the order of the table; not written
    """

    definition: Scores
    most: int
    sizes: Mapping[int, int]
    columns: Mapping[str, float | None]
    scores: NDArray[np.float64] = field(compare=False, repr=False)

    @property
    def ranked(self) -> Sequence[tuple[str, float | None]]:
        """The columns with their parts, the largest first."""
        return sorted(self.columns.items(), key=lambda item: -(item[1] or 0.0))

    def as_dict(self) -> dict[str, Any]:
        sizes = {str(size): n for size, n in self.sizes.items()}
        return {"definition": self.definition, "sizes": sizes, "columns": dict(self.columns)}


@dataclass(frozen=True, slots=True, repr=False)
class Risk:
    """The risk of a table or a release; None is what nobody asked for, or what nothing could tell.

    ``of`` is "table" or "release". ``unit`` is the column that tells people apart, if they are counted and not rows.
    ``individual`` is the largest and the mean risk by survey weights. ``n_alone`` is how many people, or rows, are alone
    in the sample. ``notes`` say what to know beside the figures.
    """

    of: str
    unit: str | None
    quasi_identifiers: Sequence[str]
    n_rows: int
    n_people: int | None
    n_groups: int
    prosecutor: RiskClaim
    n_alone: int
    known: Known | None = None
    journalist: RiskClaim | None = None
    marketer: float | None = None
    individual: tuple[float, float] | None = None
    uniques: PopulationUniques | None = None
    suda: Suda | None = None
    notes: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """What a limit is held against: the journalist's where the population is known, else the prosecutor's."""
        return (self.journalist or self.prosecutor).largest

    @property
    def whose(self) -> str:
        """What groups count."""
        return "rows" if self.unit is None else "people"

    def as_dict(self) -> dict[str, Any]:
        """As the command writes it; what was not asked for is None."""
        return {
            "format": FORMAT,
            "of": self.of,
            "unit": self.unit,
            "quasi-identifiers": list(self.quasi_identifiers),
            "rows": self.n_rows,
            "people": self.n_people,
            "groups": self.n_groups,
            "prosecutor": _claim_as_dict(self.prosecutor),
            "journalist": None
            if self.journalist is None
            else {**_claim_as_dict(self.journalist), "population": self.known},
            "marketer": None if self.marketer is None else {"mean": self.marketer},
            "individual": None
            if self.individual is None
            else dict(zip(("largest", "mean"), self.individual, strict=True)),
            "uniques": {"sample": self.n_alone, "population": _uniques_as_dict(self.uniques)},
            "suda": None if self.suda is None else self.suda.as_dict(),
            "attacks": None,
            "together": None,
        }

    def to_json(self) -> str:
        """What ``sfumato risk --out`` writes."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def headline(self) -> str:
        """What was judged, in one sentence."""
        people = "" if self.n_people is None else f" of {number_of(self.n_people, 'person', 'people')}"
        names = enumerate_names(list(self.quasi_identifiers))
        groups = number_of(self.n_groups, "group")
        return f"The {self.of} has {number_of(self.n_rows, 'row')}{people} in {groups} by {names}."

    @property
    def lines(self) -> Sequence[tuple[str, str]]:
        """Each figure that was asked for, for people to read: its name and what it says."""
        whose = self.whose
        lines = [
            ("prosecutor: knows who is in it", self.prosecutor.words(whose)),
            (f"{whose} alone in it", number_of(self.n_alone, *_words_of(whose))),
        ]
        if self.journalist is not None and self.known is not None:
            lines.append((f"journalist: {KNOWS[self.known]}", self.journalist.words(whose)))
        if self.marketer is not None:
            lines.append(
                ("marketer: links everybody", f"{percent_of(self.marketer)} of the {whose} linked rightly")
            )
        if self.individual is not None:
            largest, mean = self.individual
            lines.append(
                ("individual, by survey weights", f"{one_in(largest)} at most, {one_in(mean)} on average")
            )
        if self.uniques is not None:
            lines += _lines_of_uniques(self.uniques)
        if self.suda is not None:
            lines += _lines_of_suda(self.suda)
        return lines

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        lines = [f"  {name:<{width}}  {words}" for name, words in self.lines]
        return "\n".join([self.headline, *lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<Risk of {number_of(self.n_groups, 'group')}: {self.prosecutor.words(self.whose)}>"

    def _repr_html_(self) -> str:
        """The figures as a table, for a notebook."""
        return (
            notebook.paragraphs([self.headline])
            + notebook.table(("", "risk"), self.lines)
            + notebook.paragraphs(self.notes)
        )


def _words_of(whose: str) -> tuple[str, str]:
    return ("row", "rows") if whose == "rows" else ("person", "people")


def _lines_of_uniques(found: PopulationUniques) -> list[tuple[str, str]]:
    """A range, not a number of many digits: the estimates differ by more than their digits say."""
    lines = []
    if found.range is not None:
        low, high = map(_about, found.range)
        lines.append(("alone in the population", f"about {low} to {high} (Pitman, slide negative binomial)"))
    for name, estimate in found.estimates.items():
        words = "did not converge" if estimate.value is None else f"about {_about(estimate.value)}"
        rule = ", which the rule of Dankar and others takes" if name == found.rule else ""
        lines.append((f"alone in the population, {NAMES[name]}", words + rule))
    return lines


def _lines_of_suda(found: Suda) -> list[tuple[str, str]]:
    sizes = ", ".join(f"{n:,} of {number_of(size, 'column')}" for size, n in found.sizes.items())
    lines = [("minimal sample uniques", sizes)]
    for name, share in found.ranked:
        words = "no score" if share is None else f"{percent_of(share)} of the scores"
        lines.append((f"part of {name} in them ({found.definition})", words))
    return lines


def _about(value: float) -> str:
    """A number with two digits.

    >>> _about(12_345), _about(7.2)
    ('12,000', '7.2')
    """
    return f"{float(f'{value:.2g}'):,.10g}"


def _claim_as_dict(claim: RiskClaim) -> dict[str, Any]:
    return {"largest": claim.largest, "mean": claim.mean, "above": dict(claim.above)}


def _uniques_as_dict(found: PopulationUniques | None) -> dict[str, Any] | None:
    if found is None:
        return None
    estimates = {
        name: {"estimate": own.value, "converged": own.converged} for name, own in found.estimates.items()
    }
    return {**estimates, "rule": found.rule}
