"""Guess of one column: its role, how its cells are read and generalized, and why.

The guess follows from the column's name (:mod:`sfumato.profiling.names`) and its cells
(:mod:`sfumato.profiling.facts`). If in doubt, the rules generalize too much. Their reasons quote no cell: only counts,
and bounds rounded outward until they are nobody's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.policy.hierarchy.declaration import Declaration
from sfumato.policy.hierarchy.declarations import Dates, Flat, Mask
from sfumato.policy.hierarchy.library.codes import declare_from_library
from sfumato.policy.hierarchy.library.entries import find_entry
from sfumato.policy.kinds import read_exactly
from sfumato.policy.schema import Kind, Role
from sfumato.profiling.facts import ColumnFacts, Shape
from sfumato.profiling.names import BARE_NAMES, Hint, NameMeaning, hint_of
from sfumato.table.identifiers import tells_many_apart

K = 5
"""The k of a draft: a small promise, which any table of five rows can keep."""

PADDED_NUMBERS = (
    "Whole numbers padded with zeros, and the name says that they are amounts: read as numbers, 07 as 7."
)
PADDED_CODES = (
    "Whole numbers padded with zeros are taken for codes; if their order means something, say type: number."
)
NAMED_CODES = "They number things, and their order means nothing: taken for codes, not for numbers."

FEW_NAMES = (
    'The name says "{}", but there are few values, so it may be another thing, which others may know. If it leads to a '
    "person: identifier."
)

RANGES_OF_DAYS = (
    "By levels of the calendar it would say nothing in most rows, so it is published as ranges of days."
)
RANGES_OF_CODES = (
    "Its few whole numbers are taken in their order, so that there are ranges to publish; if their order means nothing, "
    "delete type, bounds and step."
)

LONG_CODES = 100
"""Whole numbers up to this fit many a list of codes by chance."""
COARSEST = "Finer it would cost others their detail; delete finest if it may."

Bounds = tuple[float, float]
DayBounds = tuple[str, str]


AGES: Bounds = (0.0, 110.0)


@dataclass(frozen=True, slots=True)
class Guess:
    """One column of the draft: its role, how its cells are read and generalized, and why."""

    facts: ColumnFacts
    hint: Hint
    role: Role
    why: tuple[str, ...]
    kind: Kind = Kind.CATEGORY
    hierarchy: Declaration | None = None
    bounds: Bounds | None = None
    days: DayBounds | None = None  # the bounds of dates that are published as ranges
    finest: str | int | None = None  # the level that it is never finer than
    is_unknown: bool = False  # neither name nor cells say what it is

    @property
    def name(self) -> str:
        return self.facts.name

    def as_policy(self) -> dict[str, Any]:
        """The declaration of the column, as plain data."""
        declared: dict[str, Any] = {"role": self.role.value}
        if self.kind is not Kind.CATEGORY:
            declared["type"] = self.kind.value
        if self.bounds is not None:
            declared["bounds"] = [int(end) if end.is_integer() else end for end in self.bounds]
            declared |= {"step": 1} if self.facts.is_whole else {}
        if self.days is not None:
            declared["bounds"] = list(self.days)
        if self.hierarchy is not None:
            declared["hierarchy"] = self.hierarchy.as_policy()
        if self.finest is not None:
            declared["finest"] = self.finest
        if self.facts.missing_texts and self.role.is_published:
            declared["missing-values"] = list(self.facts.missing_texts)
        return declared


# ---- what it is ----------------------------------------------------------------------------------------


def guess(facts: ColumnFacts) -> Guess:
    """What one column is, by itself."""
    hint = hint_of(facts.name)
    if facts.is_padded and hint.is_amount and not hint.is_label:
        facts = replace(facts, shape=Shape.NUMBER)
        found = _guess_role(Guess(facts, hint, Role.OTHER, ()))
        return add_declaration(replace(found, why=(*found.why, PADDED_NUMBERS)))
    return add_declaration(_guess_role(Guess(facts, hint, Role.OTHER, ())))


def _guess_role(found: Guess) -> Guess:
    """The first rule that fits. Rules that keep a person's name or number out come first."""
    for rule in (_if_unusable, _if_identifying, _if_unpublishable, _if_meaningful):
        if said := rule(found.facts, found.hint):
            return replace(found, role=said[0], why=(said[1],))
    if found.facts.n_distinct == 1 and not found.facts.n_missing:
        return replace(found, why=("All rows have the same value.",))
    if found.hint.meaning is NameMeaning.DIRECT:
        return replace(found, role=Role.QUASI_IDENTIFIER, why=(FEW_NAMES.format(found.hint.word),))
    return replace(found, why=("The name says nothing.",), is_unknown=True)


def _if_unusable(facts: ColumnFacts, _: Hint) -> tuple[Role, str] | None:
    if facts.shape is Shape.NESTED:
        return Role.DROP, "The cells are lists, structures, durations or no text: no policy can read them."
    if facts.shape is Shape.EMPTY:
        return Role.DROP, "Every cell is missing."
    return None


def _if_identifying(facts: ColumnFacts, hint: Hint) -> tuple[Role, str] | None:
    """Names, numbers and codes of people, whether or not the name of the column says so."""
    if facts.content:
        return Role.IDENTIFIER, f"Its values are {facts.content}: they lead straight to a person."
    is_direct = hint.meaning is NameMeaning.DIRECT and not (hint.word in BARE_NAMES and not _is_text(facts))
    if is_direct and tells_many_apart(facts.n_distinct, facts.n_rows):
        return Role.IDENTIFIER, f'The name says "{hint.word}": it leads straight to a person.'
    if hint.meaning is NameMeaning.KEY and _is_key_of_people(facts, hint):
        return Role.IDENTIFIER, f'The name says "{hint.word}". {_rows_per_value(facts)}'
    if _numbers_the_rows(facts):
        return Role.IDENTIFIER, "It numbers the rows."
    is_named = hint.otherwise is not NameMeaning.NONE or hint.meaning is NameMeaning.NOTE
    if facts.is_unique and not is_named and _can_be_key(facts) and facts.shape is not Shape.PROSE:
        return Role.IDENTIFIER, "Every row has a value of its own: it works as a row identifier."
    is_many = facts.n_distinct > max(50, 0.05 * facts.n_rows)
    is_code = facts.shape is Shape.CODE and not facts.library and not _is_postcode_like(facts)
    if is_code and is_many and not is_named:
        return Role.IDENTIFIER, f"Codes with many values. {_rows_per_value(facts)}"
    return None


def _is_text(facts: ColumnFacts) -> bool:
    return facts.shape in (Shape.TEXT, Shape.PROSE)


def _is_key_of_people(facts: ColumnFacts, hint: Hint) -> bool:
    """Not a code of departments or states: those have few values, or a name that says so."""
    if facts.n_distinct > 0.2 * facts.n_rows or (hint.is_person and facts.n_distinct > 2):
        return True
    return facts.n_distinct > 50 and hint.otherwise is NameMeaning.NONE


def _can_be_key(facts: ColumnFacts) -> bool:
    if 2 * facts.n_present < facts.n_rows:  # a few cells differ by chance
        return False
    if facts.shape is Shape.NUMBER:
        return facts.is_whole and facts.n_rows >= 20
    return facts.shape is not Shape.DATE and facts.n_rows >= K


def _numbers_the_rows(facts: ColumnFacts) -> bool:
    span = facts.ends[1] - facts.ends[0]
    is_dense = facts.shape is Shape.NUMBER and facts.is_whole and span + 1 == facts.n_rows
    return is_dense and facts.is_unique and facts.n_rows >= 20


def _rows_per_value(facts: ColumnFacts) -> str:
    if facts.is_unique:
        return "Every row has one of its own."
    mean = facts.n_present / max(facts.n_distinct, 1)
    often = f"{mean:.1f} rows each on average" if mean >= 1.05 else "now and then"
    return f"Values repeat, {often}: one person or household seems to have several."


def _if_unpublishable(facts: ColumnFacts, hint: Hint) -> tuple[Role, str] | None:
    """What cannot be generalized and would single people out as it is."""
    is_rich = facts.n_distinct > max(20, 0.2 * facts.n_rows)
    if facts.shape is Shape.PROSE and (is_rich or hint.meaning is NameMeaning.NOTE):
        return Role.DROP, "Free text: no hierarchy generalizes it, and anything may stand in it."
    if hint.meaning is NameMeaning.NOTE and facts.kind is Kind.CATEGORY and is_rich:
        return Role.DROP, f'The name says "{hint.word}": free text may name people.'
    if hint.meaning is NameMeaning.WEIGHT:
        return Role.DROP, (
            f'The name says "{hint.word}": a survey weight is nearly a fingerprint. '
            "Publish it as other only if nobody outside can have it."
        )
    if facts.shape is Shape.ODD_DATE and facts.n_distinct > 50:
        return (
            Role.DROP,
            "Dates that are not written as 2024-03-05. Name their format (--dates), and they can be generalized.",
        )
    if facts.shape is Shape.NUMBER and not abs(facts.ends[1] - facts.ends[0]) < 1e300:
        return Role.DROP, "The numbers are too far apart to be given bounds."
    is_rare = (facts.share_alone > 0.5 and facts.n_distinct > 20) or facts.n_distinct > 100_000
    if facts.kind is Kind.CATEGORY and is_rare and not facts.library and not _is_masked_by(facts, hint):
        return Role.DROP, (
            f"{percent(facts.share_alone)} of the rows have a text of their own. "
            "Give it a hierarchy and make it a quasi-identifier, if it is worth one."
        )
    return None


def _if_meaningful(facts: ColumnFacts, hint: Hint) -> tuple[Role, str] | None:
    """What the name says, and what was generalized before or happened on a day."""
    if facts.shape is Shape.DATE:
        return (
            Role.QUASI_IDENTIFIER,
            "Days on which something happened to a person are often known to others.",
        )
    meaning = hint.meaning if hint.meaning in (NameMeaning.SENSITIVE, NameMeaning.KNOWN) else hint.otherwise
    if meaning is NameMeaning.SENSITIVE:
        return (Role.SENSITIVE, f"Nobody should learn it about a person{_by(hint)}.")
    if meaning is NameMeaning.KNOWN:
        return Role.QUASI_IDENTIFIER, f"Others may know it of a person{_by(hint)}."
    if facts.shape in (Shape.INTERVAL, Shape.MASKED):
        return Role.QUASI_IDENTIFIER, "Somebody found it worth generalizing before."
    return None


def _by(hint: Hint) -> str:
    return (
        f' (the name says "{hint.word}")'
        if hint.meaning in (NameMeaning.SENSITIVE, NameMeaning.KNOWN)
        else ""
    )


# ---- how it is read and generalized ----------------------------------------------------------------------


def add_declaration(found: Guess) -> Guess:
    """Type, bounds and hierarchy, for the role that a guess has."""
    facts, hint = found.facts, found.hint
    if not found.role.is_published:
        return found
    if facts.shape is Shape.DATE and found.role is Role.QUASI_IDENTIFIER:
        return replace(found, kind=Kind.DATE, hierarchy=Dates(_date_levels(found)))
    if facts.shape is Shape.NUMBER and not _is_code(found):
        is_bounded = facts.is_exact or found.role is not Role.QUASI_IDENTIFIER
        return _as_number(found) if is_bounded else _as_category(found)
    if facts.shape is Shape.NUMBER and hint.meaning is NameMeaning.KEY:
        found = replace(found, why=(*found.why, NAMED_CODES))
    if facts.is_padded and not hint.is_postcode:
        found = replace(found, why=(*found.why, PADDED_CODES))
    return _as_category(found)


def _is_code(found: Guess) -> bool:
    """Whether whole numbers are codes of kinds rather than amounts."""
    facts, hint = found.facts, found.hint
    if _has_library(found):
        return True
    if not facts.is_whole:
        return False
    if hint.is_postcode or hint.meaning is NameMeaning.KEY or facts.n_distinct <= 2:
        return True
    if hint.is_label and not hint.is_amount:
        return facts.n_distinct <= 50 or _is_postcode_like(facts)
    return not hint.is_amount and facts.n_distinct <= 10 and max(map(abs, facts.ends)) < 100


def _as_number(found: Guess) -> Guess:
    facts, why = found.facts, found.why
    if found.role is not Role.QUASI_IDENTIFIER:
        return replace(found, kind=Kind.NUMBER)
    bounds = _age_bounds(facts) if found.hint.is_age else None
    if bounds is None:
        bounds = round_outward(facts)
        why = (
            *why,
            "The bounds are published, so they are rounded outward: better state publicly known ones.",
        )
    if found.hint.is_label and not found.hint.is_amount:
        why = (*why, "Codes are taken in numeric order; a hierarchy of them would do better.")
    return replace(found, kind=Kind.NUMBER, bounds=bounds, why=why)


def _has_library(found: Guess) -> bool:
    """Is there a hierarchy of the library, and if the values are numbers, are these no amounts and no mere few?"""
    facts = found.facts
    is_code = facts.shape is not Shape.NUMBER or (facts.ends[1] >= LONG_CODES and not found.hint.is_amount)
    return bool(facts.library) and is_code


def _age_bounds(facts: ColumnFacts) -> Bounds | None:
    """Ages of people lie between 0 and 110 whatever the table holds."""
    return AGES if facts.ends[0] >= 0 and facts.ends[1] <= 110 else None


def _as_category(found: Guess) -> Guess:
    facts = found.facts
    if found.role is not Role.QUASI_IDENTIFIER:
        return found
    if _is_masked_by(facts, found.hint):
        lost = facts.shape is Shape.NUMBER and not facts.is_fixed_width
        why = "Digits are masked from the right."
        why += " Leading zeros seem to be lost: are these numbers that should be texts?" if lost else ""
        why += f" Or, from the library: {{library: {facts.library}}}." if facts.library else ""
        return replace(found, hierarchy=Mask(facts.width), why=(*found.why, why))
    if _has_library(found):
        title = find_entry(facts.library).title
        why = f"All its values are known to the hierarchy {facts.library} of the library ({title})."
        return replace(found, hierarchy=declare_from_library(facts.library), why=(*found.why, why))
    if facts.shape in (Shape.INTERVAL, Shape.MASKED):
        return replace(
            found, hierarchy=Flat(), why=(*found.why, "Its values are generalized already: kept as they are.")
        )
    return replace(found, why=(*found.why, *_advice(facts, found.hint)))


def _advice(facts: ColumnFacts, hint: Hint) -> Iterator[str]:
    if facts.shape is Shape.NUMBER and not facts.is_exact:
        yield "Numbers so large are not exact, so they are taken for codes."
    elif facts.shape is Shape.NUMBER and facts.n_distinct > 2 and hint.meaning is not NameMeaning.KEY:
        yield "A few whole numbers are taken for codes; type: number would keep their order."
    if facts.shape is Shape.NEARLY_NUMBER:
        yield "Nearly all of it are numbers: list the other texts under missing-values for type: number."
    if facts.shape is Shape.ODD_DATE:
        yield "Dates that are not written as 2024-03-05: name their format (--dates), and they can be generalized."
    if facts.n_distinct > 20:
        yield "Without a hierarchy its values are published whole or not at all (*): give it one."


def with_ranges(found: Guess) -> Guess:
    """The same column published as ranges, where its values have an order that codes and levels make no use of.

    A range says something where nothing but all values together would be common to a group.
    """
    facts = found.facts
    if found.role is not Role.QUASI_IDENTIFIER:
        return found
    if isinstance(found.hierarchy, Dates):
        first, last = facts.years[0] // 10 * 10, facts.years[1] // 10 * 10 + 9
        days = (f"{max(first, 1):04d}-01-01", f"{last:04d}-12-31")
        return replace(found, hierarchy=None, days=days, why=(*found.why, RANGES_OF_DAYS))
    is_code = facts.shape is Shape.NUMBER and found.kind is Kind.CATEGORY and found.hierarchy is None
    has_order = facts.n_distinct > 2 and facts.is_exact and found.hint.meaning is not NameMeaning.KEY
    if found.is_unknown and is_code and has_order:
        return _as_number(replace(found, why=(*found.why[:1], RANGES_OF_CODES)))
    return found


def with_coarsest(found: Guess) -> Guess:
    """The same column with nothing finer than the highest level below all values together, if it has levels."""
    if isinstance(found.hierarchy, Mask) and found.hierarchy.n_characters > 1:
        return replace(found, finest=found.hierarchy.n_characters - 1, why=(*found.why, COARSEST))
    if found.hierarchy is not None and found.facts.library:
        levels = find_entry(found.facts.library).levels
        return replace(found, finest=levels[-1], why=(*found.why, COARSEST)) if len(levels) > 1 else found
    return found


def _is_postcode_like(facts: ColumnFacts) -> bool:
    return facts.is_digits and facts.is_fixed_width and 3 <= facts.width <= 6


def _is_masked_by(facts: ColumnFacts, hint: Hint) -> bool:
    """Whether the front of a text says more about it than the end: postcodes, and codes of one width."""
    if facts.has_stars:
        return False  # half masked already: a mask of ours would take 537** for a value and for a node
    if hint.is_postcode:
        return 3 <= facts.width <= 12 and facts.shape in (Shape.CODE, Shape.NUMBER, Shape.TEXT)
    is_code = facts.has_leading_zeros or (hint.is_label and facts.n_distinct > 20)
    return _is_postcode_like(facts) and is_code


def _date_levels(found: Guess) -> tuple[str, ...]:
    if found.hint.is_birth or found.facts.n_years > 20:
        return "day", "month", "year", "decade"
    return "day", "month", "quarter", "year"


def round_outward(facts: ColumnFacts) -> Bounds:
    """Round numbers outside the ends of a column, so that no bound is the value of one person.

    An end that at least one row in a hundred shares may stay where it is if it is round already. Round
    means a multiple of the largest of ..., 1, 2, 5, 10, 20, ... that fits five times between the ends.

    >>> round_outward(ColumnFacts("children", 1473, Shape.NUMBER, is_whole=True, ends=(0, 16), n_at_ends=(97, 1)))
    (0.0, 18.0)
    >>> round_outward(ColumnFacts("dose", 90, Shape.NUMBER, ends=(0.31, 0.68), n_at_ends=(1, 1)))
    (0.0, 0.7)
    """
    low, high = map(read_exactly, facts.ends)  # as written: 0.7 is seven tenths
    unit = _unit(facts)
    often = max(10, facts.n_rows / 100)
    first, last = math.floor(low / unit), math.ceil(high / unit)
    if facts.n_at_ends[0] < often:
        first = 0 if 0 <= low <= high - low else math.ceil(low / unit) - 1
    if facts.n_at_ends[1] < often or first == last:
        last = math.floor(high / unit) + 1
    return float(first * unit), float(last * unit)


def _unit(facts: ColumnFacts) -> Fraction:
    """A round number, a fifth of the span of a column at most; exact, and never tiny beside the ends."""
    low, high = facts.ends
    largest = max(abs(low), abs(high))
    span = max(high - low, largest / 1_000) if high > low else largest
    span = max(span, 1e-300) if largest else 1.0
    tens = Fraction(10) ** math.floor(math.log10(span))
    units = (digit * tens * scale for scale in (1, Fraction(1, 10)) for digit in (5, 2, 1))
    unit = next(unit for unit in units if 5 * unit <= Fraction(span))
    return max(unit, Fraction(1)) if facts.is_whole else unit


def percent(share: float) -> str:
    """A share in words that are never wrong: little is not nothing, and nearly all is not all.

    >>> percent(0.5), percent(0.00001), percent(0.99999), percent(1), percent(0)
    ('50%', 'under 0.1%', 'over 99.9%', '100%', '0%')
    """
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{100 * share:.3g}%"
