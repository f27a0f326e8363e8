"""The draft for a table, step by step.

1. Each column is guessed by itself (:mod:`sfumato.profiling.guess`); one that another gives away gets its role.
2. What nobody knows, and what would single people out, is generalized (:mod:`sfumato.profiling.roles`).
3. Columns are ranked by what they add to the rows that stand alone (:mod:`sfumato.profiling.uniqueness`).
4. A sample is divided into groups, as publishing would (:mod:`sfumato.profiling.trial`). Dates and numbers that say
   nothing in it are published as ranges. If more than half of the columns still say nothing, hierarchies keep their
   highest level only, if that helps; then unknown columns that say nothing are dropped, those first that say least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sfumato.policy.schema import Role
from sfumato.profiling import trial
from sfumato.profiling.draft import People, PolicyDraft, Trial
from sfumato.profiling.guess import Guess, percent, with_coarsest, with_ranges
from sfumato.profiling.names import NameMeaning
from sfumato.profiling.roles import (
    ensure_quasi_identifier,
    generalize_named,
    generalize_singling_out,
    generalize_unknown,
    guess_columns,
)
from sfumato.profiling.uniqueness import Ranking, find_uniqueness, rank_columns, sample_rows
from sfumato.progress import Progress, no_progress
from sfumato.table.allowance import Gauge
from sfumato.table.reading import Reading
from sfumato.table.source import Source

BYTES_PER_ROW, BYTES_PER_CELL = 64, 8
"""Memory that looking at all columns takes, one after the other."""
MOST_DROPPED = 0.2
"""Share of the columns that may be dropped for the sake of the others: dropping everything is no draft."""


def draft_of(table: Source, reading: Reading, progress: Progress = no_progress) -> PolicyDraft:
    """The draft for a table that is open.

    >>> import pyarrow as pa
    >>> from sfumato.table.opening import open_table
    >>> from sfumato.table.reading import AS_USUAL
    >>> table = open_table(pa.table({"age": [31, 31, 45, 45, 60], "disease": ["a", "b", "a", "b", "a"]}))
    >>> draft = draft_of(table, AS_USUAL)
    >>> [(guess.name, guess.role.value) for guess in draft.columns]
    [('age', 'quasi-identifier'), ('disease', 'sensitive')]
    """
    guesses = look_at(table, progress)
    known = {found.name for found in guesses if found.role is Role.QUASI_IDENTIFIER}
    guesses = generalize_singling_out(generalize_named(generalize_unknown(guesses)))
    guesses = ensure_quasi_identifier(guesses)
    draft = PolicyDraft(table.n_rows, tuple(guesses), reading, people=_find_people(guesses))
    draft = replace(draft, ranking=_rank(draft, known))
    draft = _try_out(draft, table, progress)
    quasi = [found.facts for found in draft.columns if found.role is Role.QUASI_IDENTIFIER]
    return replace(draft, uniqueness=tuple(find_uniqueness(sample_rows(quasi))))


def first_draft_of(table: Source, reading: Reading, progress: Progress = no_progress) -> PolicyDraft:
    """What each column seems to be, before anything is counted or tried out."""
    return PolicyDraft(table.n_rows, tuple(ensure_quasi_identifier(look_at(table, progress))), reading)


def look_at(table: Source, progress: Progress) -> list[Guess]:
    """A guess for each column, if memory allows to look at them all."""
    Gauge(table.where).foresee(table.n_rows * (BYTES_PER_ROW + BYTES_PER_CELL * len(table.names)))
    return guess_columns(table, progress)


def _rank(draft: PolicyDraft, known: set[str]) -> Ranking:
    """What the columns that names do not settle add to those that they do."""
    facts = [found.facts for found in draft.columns if found.role.is_published and found.facts.n_codes > 1]
    facts = list(sample_rows(facts))
    return rank_columns(
        [each for each in facts if each.name in known], [each for each in facts if each.name not in known]
    )


# ---- people ----------------------------------------------------------------------------------------------


def _find_people(guesses: list[Guess]) -> People | None:
    """The column that numbers people, if they have several rows each; one that speaks of persons before any other."""
    numbers = [found for found in guesses if found.role is Role.IDENTIFIER and _repeats_like_a_number(found)]
    if not numbers:
        return None
    chosen = max(numbers, key=lambda found: (found.hint.is_person, found.facts.n_distinct))
    objection = (
        "it is missing in some rows, and nobody knows whose these are" if chosen.facts.n_missing else ""
    )
    return People(chosen.name, chosen.facts.n_distinct, objection)


def _repeats_like_a_number(found: Guess) -> bool:
    """Names repeat by chance; numbers of people do not."""
    facts = found.facts
    is_number = found.hint.meaning is NameMeaning.KEY or bool(facts.width and facts.is_digits)
    return is_number and 1 < facts.n_distinct < facts.n_present and "name" not in facts.content


# ---- a trial ---------------------------------------------------------------------------------------------


def _try_out(draft: PolicyDraft, table: Source, progress: Progress) -> PolicyDraft:
    """Drop unknown columns until at least half of the columns say something in most rows of a sample."""
    people = draft.counted
    of_person = next((f.facts.codes for f in draft.columns if people and f.name == people.name), None)
    sample = table.take(trial.choose_rows(table.n_rows, of_person))
    draft = _measure(draft, sample, progress)
    softer = [with_ranges(found) if found.name in draft.silent else found for found in draft.columns]
    if softer != list(draft.columns):
        draft = _measure(replace(draft, columns=tuple(softer)), sample, progress)
    if _n_too_silent(draft) > 0:
        coarser = [with_coarsest(found) if found.name in draft.silent else found for found in draft.columns]
        tried = _measure(replace(draft, columns=tuple(coarser)), sample, progress)
        draft = tried if len(tried.silent) < len(draft.silent) else draft
    left = math.floor(MOST_DROPPED * len(draft.published))
    while True:
        candidates = _find_least_telling(draft)
        n_dropped = min(_n_too_silent(draft), left, len(candidates))
        if n_dropped <= 0:
            return draft
        left -= n_dropped
        draft = _measure(_drop(draft, candidates[:n_dropped]), sample, progress)


def _find_least_telling(draft: PolicyDraft) -> list[str]:
    """The unknown columns that say nothing in most rows, first those that say least, then those that single out most."""
    stars = {} if draft.trial is None else draft.trial.stars
    unknown = {found.name for found in draft.published if found.is_unknown}
    ranked = [name for name in draft.ranking.names if name in draft.silent & unknown]
    return sorted(ranked, key=lambda name: -stars[name])


def _n_too_silent(draft: PolicyDraft) -> int:
    """How many columns say nothing beyond half of those that are published."""
    return math.ceil(len(draft.silent) - len(draft.published) / 2)


def _measure(draft: PolicyDraft, sample: Source, progress: Progress) -> PolicyDraft:
    """The draft with what it leaves of the columns of a sample."""
    progress("trying out", 0, 1)
    return replace(draft, trial=Trial(sample.n_rows, trial.share_of_stars(sample, draft.policy())))


def _drop(draft: PolicyDraft, names: Sequence[str]) -> PolicyDraft:
    stars = {} if draft.trial is None else draft.trial.stars

    def dropped(found: Guess) -> Guess:
        why = (
            f"The name says nothing, and generalized it would be * in {percent(stars[found.name])} of the rows, so it "
            "makes room for others. Else: other (passes as it is), or a quasi-identifier with a hierarchy."
        )
        return Guess(found.facts, found.hint, Role.DROP, (why,))

    return replace(draft, columns=tuple(dropped(f) if f.name in names else f for f in draft.columns))
