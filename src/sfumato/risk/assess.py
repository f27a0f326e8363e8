"""The risk of a table or a release: the one way in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.risk.measures import RiskInPopulation, of_fraction, of_population, of_weights, prosecutor
from sfumato.risk.minimal_uniques import SCORES, Scores, find_minimal_uniques, score_of
from sfumato.risk.result import Risk, Suda
from sfumato.risk.tables import CountedRows, count_release, count_table, is_release
from sfumato.risk.uniqueness import NAMES, GroupCounts, PopulationUniques, estimate_uniques
from sfumato.table.reading import AS_USUAL, Reading

UPWARDS = (
    "Estimates of who is alone in the population are likely too high: on samples of the American Community Survey all "
    "of them were 1.03 to 6.4 times the truth."
)


def risk(
    given: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    table: Any = None,
    population: Any = None,
    sampling_fraction: float | None = None,
    weight: str | None = None,
    suda: int | None = None,
    suda_scores: str = "elliot",
    reading: Reading = AS_USUAL,
) -> Risk:
    """The risk that rows of a table or a release are traced to people.

    ``given``: a release (its folder, or a :class:`Release`), or any table with the ``policy`` that names its
    quasi-identifiers: a raw one, or one that another tool made. A path or a frame.

    ``table``: the raw table of a release whose groups count people, to count them.

    Of the population one thing may be known: a table of it (``population``), the share of it that was sampled
    (``sampling_fraction``), or how many people each row stands for (``weight``, a column of the table). With a fraction,
    those who are alone in the population are estimated.

    ``suda``: search minimal sample uniques of up to so many columns, and score them by one of two definitions
    (``suda_scores``: elliot or ihsn). ``reading`` says how the text of tables is written.
    """
    _check_options(population, sampling_fraction, weight, suda)
    if is_release(given):
        if policy is not None:
            raise InputError("A release folder has its own policy; leave out --policy.")
        rows = count_release(given, table=table, population=population, reading=reading)
    else:
        if policy is None:
            raise InputError(
                "To judge a table give its --policy too, which says what its quasi-identifiers are."
            )
        if table is not None:
            raise InputError("--table is for a release folder; leave it out.")
        rows = count_table(given, Policy.of(policy), population=population, reading=reading)
    people = rows.count()
    known = _find_population(rows, people, sampling_fraction, weight)
    groups = GroupCounts.of(people)
    uniques = None if sampling_fraction is None else estimate_uniques(groups, sampling_fraction)
    return Risk(
        of=rows.of,
        unit=rows.unit,
        quasi_identifiers=tuple(rows.codes),
        n_rows=rows.n_rows,
        n_people=rows.n_people,
        n_groups=rows.n_groups,
        prosecutor=prosecutor(people),
        n_alone=groups.alone,
        known=None if known is None else known.known,
        journalist=None if known is None else known.journalist,
        marketer=None if known is None else known.marketer,
        individual=None if weight is None or known is None else (known.journalist.largest, known.marketer),
        uniques=uniques,
        suda=None if suda is None else _find_suda(rows, suda, _scores_named(suda_scores)),
        notes=(*rows.notes, *_notes_of(uniques, sampling_fraction)),
    )


def _check_options(population: Any, fraction: float | None, weight: str | None, suda: int | None) -> None:
    if sum(known is not None for known in (population, fraction, weight)) > 1:
        raise InputError(
            "The population is known in one way: give one of --population, --sampling-fraction and --weight."
        )
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(
            "The sampling fraction is the share of the population that is in the table: above 0, and at most 1."
        )
    if suda is not None and suda < 1:
        raise InputError("Minimal sample uniques have at least 1 column; give --suda a larger number.")


def _scores_named(word: str) -> Scores:
    for scores in SCORES:
        if scores == word:
            return scores
    raise InputError(f"The scores of minimal sample uniques are {' or '.join(SCORES)}.")


def _find_population(
    rows: CountedRows, people: Any, fraction: float | None, weight: str | None
) -> RiskInPopulation | None:
    if rows.population is not None:
        return of_population(people, rows.population)
    if fraction is not None:
        return of_fraction(people, fraction)
    return None if weight is None else of_weights(people, rows.sum_weights(weight))


def _find_suda(rows: CountedRows, most: int, scores: Scores) -> Suda:
    n_columns = len(rows.codes)
    most = min(most, n_columns)
    found = find_minimal_uniques(list(rows.codes.values()), most=most, person=rows.person)
    size = found.size
    of_size = np.array(
        [0.0] + [score_of(i, of=n_columns, most=most, scores=scores) for i in range(1, most + 1)]
    )
    n_of_size = np.bincount(size, minlength=most + 1)
    return Suda(
        definition=scores,
        most=most,
        sizes={i: int(n_of_size[i]) for i in range(1, most + 1)},
        columns=dict(zip(rows.codes, found.share_columns(of_size[size]), strict=True)),
        scores=found.score_rows(of_size[size]),
    )


def _notes_of(found: PopulationUniques | None, fraction: float | None) -> list[str]:
    if found is None or fraction == 1:
        return []
    return [UPWARDS] * any(own.converged for own in found.estimates.values()) + [
        f"The estimate of {NAMES[name]} did not converge: {own.reason}."
        for name, own in found.estimates.items()
        if not own.converged
    ]


__all__ = ["risk"]
