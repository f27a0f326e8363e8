"""Roles of columns that follow from other columns, where name and cells of one alone do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.errors import TableError, short
from sfumato.policy.schema import Kind, Role
from sfumato.profiling.facts import ColumnFacts, Shape, measure
from sfumato.profiling.guess import Guess, add_declaration, guess
from sfumato.profiling.uniqueness import count_alone, sample_rows
from sfumato.progress import Progress
from sfumato.table.identifiers import identifying_word
from sfumato.table.source import Source

PASSING = (Role.SENSITIVE, Role.OTHER)
"""Roles of columns that are published as they are."""
MOST_ALONE = 0.05
"""Share of the rows that may stand alone by the columns that pass."""
FEWEST_ROWS = 20
"""In a table of fewer rows nearly every row stands alone by something."""


def guess_columns(table: Source, progress: Progress) -> list[Guess]:
    """What each column is by itself, and what others give away."""
    guesses = []
    for i, name in enumerate(table.names):
        progress("profiling", i, len(table.names))
        guesses.append(guess(measure(table, name)))
    return _align_roles(guesses)


# ---- columns that another one gives away ---------------------------------------------------------------


def _align_roles(guesses: list[Guess]) -> list[Guess]:
    """Give a column that another one gives away the role of that one: else it would undo what is done to the other."""
    published = [found for found in guesses if found.role.is_published and found.facts.n_distinct > 1]
    protected = [found for found in published if found.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)]
    return [_align_role(found, protected) if found in published else found for found in guesses]


def _align_role(found: Guess, protected: Sequence[Guess]) -> Guess:
    determining = [
        other for other in protected if other is not found and determines(other.facts, found.facts)
    ]
    if not determining:
        return found
    owner = min(determining, key=lambda other: (other.facts.n_distinct, other.role is Role.SENSITIVE))
    other = short(owner.name)
    if determines(found.facts, owner.facts):
        why = f"It says the same as {other} in other words: dropping one of the two loses nothing."
    else:
        why = f"Each value of {other} goes with one value here."
    if found.role is not Role.OTHER:
        return replace(found, why=(*found.why, why))
    shared = f"{why} So it has the role of {other}, which it would give away."
    return add_declaration(replace(found, role=owner.role, why=(shared,), is_unknown=False))


def determines(left: ColumnFacts, right: ColumnFacts) -> bool:
    """Whether each value of ``left`` always goes with one value of ``right``, and not by mere rarity."""
    if right.n_codes > left.n_codes or left.n_codes * 10 > left.n_rows:
        return False
    if left.n_codes < 2 or right.n_codes < 2:
        return False
    for rows in (slice(0, 2_000), slice(None)):  # nearly all pairs fail at once
        seen = np.full(left.n_codes, -1, dtype=np.int64)
        seen[left.codes[rows]] = right.codes[rows]
        if not np.array_equal(seen[left.codes[rows]], right.codes[rows]):
            return False
    return True


# ---- columns that must not pass as they are ----------------------------------------------------------------

GENERALIZED = (
    "The name says nothing, so others may know it. Else: other (passes as it is), sensitive or drop."
)
NAMED = (
    'Its name also says "{}", as those of identifiers do, so it is generalized. If it is what to analyse and leads to '
    "nobody: sensitive, with passes: unique."
)
SINGLING_OUT = (
    f"With the others that pass as they are it would single out more than {MOST_ALONE:.0%} of the rows, so it is "
    "generalized. If it is what to analyse: sensitive or other (passes as it is)."
)


def generalize_unknown(guesses: Sequence[Guess]) -> list[Guess]:
    """Make a quasi-identifier of every column of which nothing is known: as it is, it might single people out."""
    return [_generalize(found, GENERALIZED) if found.is_unknown else found for found in guesses]


def generalize_named(guesses: Sequence[Guess]) -> list[Guess]:
    """Make quasi-identifiers of passing columns that ``publish`` would refuse by their names."""
    return [
        _generalize(found, *found.why, NAMED.format(word))
        if found.role in PASSING
        and (word := identifying_word(found.name, found.facts.n_distinct, found.facts.n_rows))
        else found
        for found in guesses
    ]


def generalize_singling_out(guesses: Sequence[Guess]) -> list[Guess]:
    """Make quasi-identifiers of passing columns until those that are left single out few rows, all of them together.

    So no three of them single out more either. Of a handful of rows nothing can be said: names decide.
    """
    found_as = {found.name: found for found in guesses}
    passing = [found.facts for found in guesses if found.role in PASSING and found.facts.n_codes > 1]
    passing = sorted(sample_rows(passing), key=lambda facts: (facts.kind is Kind.CATEGORY, -facts.n_codes))
    n_rows = passing[0].n_rows if passing else 0
    while n_rows >= FEWEST_ROWS and passing and count_alone(passing).n_rows > MOST_ALONE * n_rows:
        name = passing.pop(0).name
        found_as[name] = _generalize(found_as[name], *found_as[name].why, SINGLING_OUT)
    return list(found_as.values())


def _generalize(found: Guess, *why: str) -> Guess:
    return add_declaration(replace(found, role=Role.QUASI_IDENTIFIER, kind=Kind.CATEGORY, why=why))


# ---- a policy needs a quasi-identifier ---------------------------------------------------------------------


def ensure_quasi_identifier(guesses: Sequence[Guess]) -> list[Guess]:
    """Make the most telling column a quasi-identifier if no column looks like one: a policy needs one."""
    if any(found.role is Role.QUASI_IDENTIFIER for found in guesses):
        return list(guesses)
    if all(found.facts.shape is Shape.NESTED for found in guesses):
        raise TableError(
            "No column of the table has cells that a policy can read; there is nothing to publish."
        )
    preference = [Role.OTHER, Role.SENSITIVE, Role.DROP, Role.IDENTIFIER]

    def plausible(found: Guess) -> tuple[bool, bool, int, int]:
        is_constant = found.facts.n_distinct < 2
        is_usable = found.facts.shape is not Shape.NESTED
        return is_usable, not is_constant, -preference.index(found.role), found.facts.n_distinct

    chosen = max(guesses, key=plausible)
    why = "No column looks like what others know of a person, and a policy needs one: this is a mere guess."
    new = _generalize(replace(chosen, is_unknown=False), why)
    return [new if found is chosen else found for found in guesses]
