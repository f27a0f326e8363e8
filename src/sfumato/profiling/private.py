"""``sfumato profile --private``: draft a policy for DiffGen, with every declaration that it needs.

A differentially private release reads nothing from the table but counts, so the policy declares every domain. What is
proposed here was read from the table, and each such line is marked: the promise is of the declarations as public
knowledge, so the owner replaces them. Values that few rows share are not proposed.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import notebook
from sfumato.errors import InputError, TableError, number_of, short
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import DAYS_TO_YEARS
from sfumato.policy.kinds import read_exactly
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.policy.yaml import dump
from sfumato.profiling.draft import PolicyDraft, comment, count_roles, describe_cells, entry_lines
from sfumato.profiling.facts import Shape
from sfumato.profiling.guess import AGES, Guess, K, round_outward
from sfumato.table import cells
from sfumato.table.source import Source

EPSILON = 1.0
MOST_VALUES = 1_000
"""Values that a draft lists; a column with more is left out, until somebody declares a hierarchy."""
MOST_CLASSES = 50
FEW_CLASSES = 10
MOST_STEPS = 1_000_000
FINE = 100
"""Steps between round numbers, for numbers with decimals."""
MARK = "REPLACE what was read from the table by public knowledge"


@dataclass(frozen=True, slots=True)
class ColumnDraft:
    """One column of the draft: its declaration, what of it was read from the table, and why."""

    guess: Guess
    declaration: dict[str, Any]
    read: str
    why: str

    @property
    def name(self) -> str:
        return self.guess.name

    @property
    def is_published(self) -> bool:
        return Role(self.declaration["role"]).is_published

    def drop(self, why: str) -> ColumnDraft:
        """The same column, left out for a reason."""
        return replace(self, declaration={"role": Role.DROP.value}, read="", why=why)


@dataclass(frozen=True, slots=True, repr=False)
class PrivateDraft:
    """Draft of a policy for a private release: the declaration of each column, and the column to predict."""

    draft: PolicyDraft
    columns: tuple[ColumnDraft, ...]
    target: str

    def __repr__(self) -> str:
        return f"<Draft of a private policy for {number_of(self.draft.n_rows, 'row')}: {self.roles}>"

    @property
    def roles(self) -> str:
        """How many columns have each role."""
        return count_roles(Role(column.declaration["role"]) for column in self.columns)

    def to_yaml(self) -> str:
        """The draft as a policy with comments."""
        return "\n".join(_lines(self.draft, self.columns, self.target)) + "\n"

    def policy(self) -> Policy:
        """The policy that it drafts. It is private only when what was read from the table is replaced."""
        return Policy.parse(self.to_yaml())

    def summary(self) -> Iterator[str]:
        """How many columns have each role."""
        yield f"Drafted: {self.roles}."

    def _repr_html_(self) -> str:
        lines = [
            (
                column.name,
                column.declaration["role"],
                f"{MARK}: {column.read}." if column.read else column.why,
            )
            for column in self.columns
        ]
        return notebook.card(
            "A draft of a private policy",
            "Keep it to yourself until every bound and value in it (to_yaml) is public knowledge.",
            [("rows", f"{self.draft.n_rows:,}"), ("to predict", self.target), ("epsilon", f"{EPSILON:g}")],
            notebook.table(("Column", "Role", "What to do"), lines),
        )


def private_draft_of(draft: PolicyDraft, table: Source) -> PrivateDraft:
    """The draft for a private release of an open table, made from its draft for other releases."""
    chosen = _choose_class(draft, table)
    columns = [_declare(found, table, is_class=found is chosen) for found in draft.columns]
    return PrivateDraft(draft, tuple(_drop_refused(columns, chosen.name)), chosen.name)


# ---- what is declared --------------------------------------------------------------------------------


def _choose_class(draft: PolicyDraft, table: Source) -> Guess:
    """The column to predict: one of few values that others do not know, as far right as possible."""

    def preference(found: Guess) -> tuple[bool, bool]:
        return found.role is not Role.QUASI_IDENTIFIER, found.facts.n_distinct <= FEW_CLASSES

    able = [
        found
        for found in draft.columns
        if found.role.is_published
        and found.kind is Kind.CATEGORY
        and 2 <= found.facts.n_distinct <= MOST_CLASSES
        and len(_values(found, table)) > 1
    ]
    others = [found for found in able if _n_domains(draft) > 1 or found.role is not Role.QUASI_IDENTIFIER]
    if not others:
        raise TableError(
            f"No column of the table can be the class of a private release: a text of 2 to {MOST_CLASSES} values that at "
            f"least {K} rows share each, beside at least one column more to tell rows by."
        )
    best = max(map(preference, others))
    return [found for found in others if preference(found) == best][-1]


def _n_domains(draft: PolicyDraft) -> int:
    return sum(found.role.is_published for found in draft.columns)


def _declare(found: Guess, table: Source, *, is_class: bool) -> ColumnDraft:
    """The declaration of a column, as far as the table shows one."""
    if is_class:
        values = _values(found, table)
        declaration = {"role": Role.OTHER.value, "values": values}
        return _with_missing(
            ColumnDraft(
                found, declaration, _describe_values(found, values), "The class: what is to be predicted."
            )
        )
    if not found.role.is_published:
        return ColumnDraft(found, {"role": found.role.value}, "", " ".join(found.why))
    if found.facts.shape is Shape.DATE:
        return _with_missing(_declare_date(found, table))
    if found.kind is Kind.NUMBER:
        return _with_missing(_declare_number(found))
    return _with_missing(_declare_category(found, table))


def _with_missing(declared: ColumnDraft) -> ColumnDraft:
    texts = declared.guess.facts.missing_texts
    if not texts or not declared.is_published:
        return declared
    return replace(declared, declaration={**declared.declaration, "missing-values": list(texts)})


def _declare_number(found: Guess) -> ColumnDraft:
    low, high = found.bounds or round_outward(found.facts)
    step = _step(found, read_exactly(high) - read_exactly(low))
    declaration = {
        "role": Role.QUASI_IDENTIFIER.value,
        "type": Kind.NUMBER.value,
        "bounds": [_plain(low), _plain(high)],
        "step": _plain(float(step)),
    }
    why = "A cell outside the bounds counts as the nearer one."
    if (low, high) == AGES:
        return ColumnDraft(found, declaration, "", f"Ages of people lie between these bounds anyway. {why}")
    return ColumnDraft(found, declaration, "bounds and step", why)


def _step(found: Guess, span: Fraction) -> Fraction:
    """1 for whole numbers that are not too far apart; else a round number that goes into the bounds."""
    if found.facts.is_whole and span <= MOST_STEPS:
        return Fraction(1)
    tens = math.floor(math.log10(span))
    for step in (Fraction(f"1e{tens - n}") for n in range(12)):
        n_steps = span / step
        is_whole = step.denominator == 1 or not found.facts.is_whole
        if n_steps >= FINE and n_steps.denominator == 1 and is_whole:
            return step
    return span / FINE


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def _declare_date(found: Guess, table: Source) -> ColumnDraft:
    """From the first day of the first year to the last day of the last: no bound is the day of one person."""
    attribute = Attribute(found.name, Role.OTHER, Kind.DATE, missing_values=found.facts.missing_texts)
    days = pc.min_max(cells.dates(_distinct_texts(found, table), attribute)).as_py()
    bounds = [dt.date(days["min"].year, 1, 1), dt.date(days["max"].year, 12, 31)]
    declaration = {
        "role": Role.QUASI_IDENTIFIER.value,
        "type": Kind.DATE.value,
        "bounds": [day.isoformat() for day in bounds],
        "hierarchy": (found.hierarchy or DAYS_TO_YEARS).as_policy(),
    }
    return ColumnDraft(found, declaration, "bounds", "Whole years.")


def _declare_category(found: Guess, table: Source) -> ColumnDraft:
    values = _values(found, table)
    declared = ColumnDraft(
        found, {"role": Role.QUASI_IDENTIFIER.value, "values": values}, _describe_values(found, values), ""
    )
    if not values:
        return declared.drop(
            f"No value is shared by {K} rows: declare a hierarchy of its values to publish it."
        )
    if len(values) > MOST_VALUES:
        return declared.drop(
            f"More than {MOST_VALUES:,} values: declare a hierarchy of them, from public knowledge, to publish it."
        )
    if found.hierarchy is not None:
        return replace(
            declared, declaration={**declared.declaration, "hierarchy": found.hierarchy.as_policy()}
        )
    return declared


def _describe_values(found: Guess, values: Sequence[str]) -> str:
    rare = found.facts.n_distinct - len(values)
    left_out = (
        f" (without {number_of(rare, 'value')} of fewer than {K} rows, which become missing)" if rare else ""
    )
    return f"values{left_out}"


def _distinct_texts(found: Guess, table: Source) -> pa.Array:
    """The distinct texts of a column that do not stand for a missing value."""
    words = cells.texts(table.column(found.name), Attribute(found.name, Role.OTHER)).dictionary
    missing = pa.array(["", *found.facts.missing_texts])
    return words.filter(pc.invert(pc.is_in(words, value_set=missing)))


def _values(found: Guess, table: Source) -> list[str]:
    """The values that at least K rows share, in order, each as it is spelled: blanks around it belong to it."""
    encoded = cells.texts(table.column(found.name), Attribute(found.name, Role.OTHER))
    codes = encoded.indices.fill_null(-1).to_numpy()
    counts = np.bincount(codes + 1, minlength=len(encoded.dictionary) + 1)[1:]
    missing = {"", *found.facts.missing_texts}
    words = zip(encoded.dictionary.to_pylist(), counts.tolist(), strict=True)
    return sorted(word for word, n in words if n >= K and word not in missing and word.strip())


def _drop_refused(columns: list[ColumnDraft], target: str) -> list[ColumnDraft]:
    """The columns, without those whose declaration a private policy would refuse."""
    for _ in columns:
        try:
            Policy.from_dict(_document(columns, target))
        except InputError as error:
            wrong = {
                mistake.where[1]: mistake.sentence for mistake in error.mistakes if len(mistake.where) > 1
            }
            columns = [
                column.drop(f"Left out: {wrong[column.name]}") if column.name in wrong else column
                for column in columns
            ]
        else:
            return columns
    raise TableError(
        "No column of the table has a domain that a private policy can declare; draft one by hand."
    )


def _document(columns: Sequence[ColumnDraft], target: str) -> dict[str, Any]:
    return {
        "attributes": {column.name: column.declaration for column in columns},
        "workload": [{"classify": target}],
        "method": {"diffgen": {"epsilon": EPSILON}},
    }


# ---- the text ----------------------------------------------------------------------------------------


def _lines(draft: PolicyDraft, columns: Sequence[ColumnDraft], target: str) -> Iterator[str]:
    yield from comment(
        "A draft by sfumato profile --private of a policy for a differentially private release (DiffGen). "
        "Such a release promises that nobody's row shows, whatever an attacker knows: but only if everything that is "
        "declared here is public. Lines with the word REPLACE hold bounds and values that were read from the table. "
        "Replace them by what everybody may know (a code book, a law, the range of an instrument), whether or not it "
        "occurs in the table, and delete the mark; until then keep this file and its releases to yourself."
    )
    if draft.reading.as_options:
        yield from comment(f"The table was read with{draft.reading.as_options}; publish it with the same.")
    yield ""
    yield "attributes:"
    for column in columns:
        yield ""
        role = Role(column.declaration["role"])
        words = [describe_cells(replace(column.guess, role=role)), column.why]
        yield from comment(" ".join(filter(None, words)), indent="  ")
        if column.read:
            yield from comment(f"{MARK}: {column.read}.", indent="  ")
        yield from entry_lines("attributes", {column.name: column.declaration})
    yield ""
    yield from comment(
        f"What should stay predictable: the one column that is published beside the generalized ones. "
        f"{short(target)} is a guess; a column of few values that others may learn from will do."
    )
    yield from dump({"workload": [{"classify": target}]}).splitlines()
    yield ""
    yield from comment(
        "The privacy budget: the smaller, the more private. All releases of the table together cost the sum of "
        "theirs; publish --ledger adds them up. Columns with the role drop make room for the others."
    )
    yield f"method: {{diffgen: {{epsilon: {EPSILON}}}}}"
