"""Measures published rows that lie in a warehouse, by SQL: its answers come here, and no row.

A requirement is decided by the statement that ``verify --sql`` prints. So that it decides as the other measures of this
package do, ``release`` is here the table as :mod:`sfumato.verify.groups` reads it: sensitive texts that look alike are
one value, 0.0 and -0.0 are two cells, and NaN is missing among values. Whatever SQL could not see is refused, or
said by ``unseen``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, TableError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import RISK_LIMITS, AloneClaim, SmallGroups
from sfumato.table.formulas import BEGINS_FORMULA, MARK, NO_FORMULA
from sfumato.verify.cells import DistinctCells, label_or_bounds
from sfumato.verify.checks import Check
from sfumato.verify.groups import fold_lookalikes
from sfumato.verify.measure import Measures, RequirementResult
from sfumato.verify.people import shown_by_rows
from sfumato.verify.rows import box_columns, columns_without_diversity, group_columns
from sfumato.verify.sql import (
    INFINITE,
    WITHOUT_SQL,
    count_failing,
    fill_in,
    find_worst,
    has_sql,
    quote_name,
    translate,
    without_words,
    write_literal,
)

MOST_RESPELLED = 10_000
"""Spellings of sensitive values that a statement can list."""

GROUPS = "SELECT {cells}, COUNT(*) AS {n_rows} FROM release GROUP BY {cells}"
BELOW = ", ".join(
    f"SUM(CASE WHEN {{n_rows}} < {limit} THEN {{n_rows}} ELSE 0 END) AS below_{limit}"
    for limit in RISK_LIMITS
)
SIZES = f"""
SELECT COUNT(*) AS n_groups, SUM({{n_rows}}) AS n_rows, MIN({{n_rows}}) AS smallest, {BELOW} FROM ({GROUPS}) AS sizes
"""
ONE_VALUE = """
WITH sensitive AS (SELECT {cells}, {value} AS {sensitive_value} FROM release),
counts AS (SELECT {cells}, {sensitive_value}, COUNT(*) AS {n_rows} FROM sensitive GROUP BY {cells}, {sensitive_value}),
alike AS (SELECT {cells}, SUM({n_rows}) AS {n_in_group} FROM counts GROUP BY {cells} HAVING COUNT(*) = 1)
SELECT COALESCE(SUM({n_in_group}), 0) AS n_rows FROM alike
"""
INFINITE_NUMBERS = f"SELECT COUNT(*) AS n_rows FROM release WHERE ABS({{value}}) = {INFINITE}"
ODD_TEXTS = "[^ -~]|^ | $"
"""Texts that are not what they look like have such a character: any but those that ASCII prints, or a blank around."""


class NoAnswer(InputError):  # noqa: N818 - reads as a sentence
    """A warehouse could not answer, which says nothing of the rows."""


class Warehouse(Protocol):
    """Who holds published rows in a table, and answers statements about them."""

    dialect: str
    table: str
    """The name of the table."""

    def ask(self, statement: str) -> pa.Table:
        """The answer to a statement; a TableError if a cell cannot be read as what it should be."""
        ...


OpenWarehouse = Callable[[Any], AbstractContextManager[Warehouse]]
"""Puts a table, a path or a frame, into a warehouse for a while."""


def measure_by_sql(warehouse: Warehouse, policy: Policy, *, is_release: bool = False) -> Measures:
    """What ``measure`` finds, by statements that a warehouse answers; of a release also which rows are alone."""
    refuse_without_sql(policy)
    rows = _Release(warehouse, policy)
    sizes = rows.ask_one(SIZES)
    if not sizes["n_groups"]:
        raise TableError("The table has no rows; a table needs at least one.")
    for attribute in rows.values:
        rows.refuse_infinite(attribute)
    return Measures(
        int(sizes["n_rows"]),
        sizes["n_groups"],
        tuple(rows.judge(item) for item in policy.requirements),
        SmallGroups(sizes["smallest"], tuple(int(sizes[f"below_{limit}"]) for limit in RISK_LIMITS)),
        {
            a.name: rows.distinct_cells(label_or_bounds(a, own)).detail(a, excludes=policy.excludes_in_labels)
            for a, own in box_columns(policy.schema, rows.names)
        },
        {a.name: int(rows.ask_one(ONE_VALUE, a)["n_rows"]) for a in rows.without_diversity},
        rows.count_respelled(),
        alone=rows.count_alone() if is_release else None,
        counts_people=policy.person is not None,
    )


def refuse_without_sql(policy: Policy) -> None:
    """Raise if a claim of the policy cannot be decided by SQL."""
    if policy.method.form in WITHOUT_SQL:
        raise InputError(
            f"The claims of this policy ({WITHOUT_SQL[policy.method.form]}) have no SQL; leave out --engine."
        )
    for item in policy.requirements:
        asked = _asked_of_rows(item, policy)
        if asked is not None and not has_sql(asked, policy.schema):
            raise InputError(
                f"{item} has no SQL, as the policy does not list the values; leave out --engine."
            )


def _asked_of_rows(requirement: Requirement, policy: Policy) -> Requirement | None:
    """What rows must satisfy: the requirement, or what they show of it where people count; None if that is nothing."""
    return requirement if policy.person is None else shown_by_rows(requirement)


def unseen(policy: Policy, *, has_recoding: bool) -> Iterator[Check]:
    """What of a release is not compared with rows in a warehouse."""
    detail = "verify without --engine does"
    if policy.statistics:
        yield Check("the statistics of groups are not held against the rows", True, detail, is_note=True)
    if has_recoding:
        yield Check("the recoding is not held against the rows", True, detail, is_note=True)
    if policy.schema.names(Role.PSEUDONYM):
        yield Check("the pseudonyms are not held against the groups", True, detail, is_note=True)


def tells_apart(warehouse: Warehouse, name: str) -> bool:
    """Whether a column has two different cells."""
    distinct = f"SELECT DISTINCT {quote_name(name)} FROM {warehouse.table} LIMIT 2"
    found = warehouse.ask(translate(f"SELECT COUNT(*) AS n FROM ({distinct}) AS cells", warehouse.dialect))
    return bool(found.column("n")[0].as_py() > 1)


def stored_schema(warehouse: Warehouse) -> pa.Schema:
    """The columns of the table, and how they are stored."""
    return warehouse.ask(f"SELECT * FROM {warehouse.table} LIMIT 0").schema


class _Release:
    """The table ``release`` of all statements, and what is asked of it."""

    def __init__(self, warehouse: Warehouse, policy: Policy) -> None:
        self.warehouse, self.policy = warehouse, policy
        self.schema = stored_schema(warehouse)
        self.names: list[str] = self.schema.names
        self.without_diversity = [a for a in columns_without_diversity(policy) if a.name in self.names]
        required = {item.of: policy.schema[item.of] for item in policy.requirements if item.of is not None}
        self.values = [*required.values(), *self.without_diversity]
        self._respelled: set[str] = set()
        self._joins: list[str] = []
        columns = {name: self._cell(name) for name in group_columns(policy, self.names)}
        columns |= {attribute.name: self._value(attribute) for attribute in self.values}
        listed = ", ".join(f"{cell} AS {quote_name(name)}" for name, cell in columns.items())
        self.text = f"SELECT {listed} FROM {warehouse.table} AS published{''.join(self._joins)}"

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, statement: str) -> pa.Table:
        """The answer to a statement over ``release``."""
        return self.warehouse.ask(
            translate(f"WITH release AS ({self.text}) {statement}", self.warehouse.dialect)
        )

    def ask_one(self, text: str, of: Attribute | None = None) -> dict[str, Any]:
        """The one line that answers a question about groups, and the values ``of`` a column."""
        filled = fill_in(text, self.policy, self.names, of=of)
        found: dict[str, Any] = self.ask(f"SELECT * FROM ({filled}) AS answer").to_pylist()[0]
        return found

    def judge(self, requirement: Requirement) -> RequirementResult:
        """The figure of the worst group, and how many groups fail, by the statement of a requirement."""
        of_rows = _asked_of_rows(requirement, self.policy)
        if of_rows is None:
            return RequirementResult(requirement, math.nan, 0)
        asked = of_rows, self.policy, self.names
        worst = self.ask(find_worst(*asked)).column("worst")[0].as_py()
        n_failing = self.ask(count_failing(*asked)).column("n_groups")[0].as_py()
        return RequirementResult(requirement, math.inf if worst is None else worst, n_failing)

    def distinct_cells(self, names: Sequence[str]) -> DistinctCells:
        """The distinct cells of one quasi-identifier, which may have several columns."""
        cells = [quote_name(name) for name in names]
        shown = ", ".join(f"CAST({cell} AS TEXT) AS cell_{at}" for at, cell in enumerate(cells))
        text = f"SELECT {shown}, COUNT(*) AS n FROM release GROUP BY {', '.join(cells)}"
        *columns, rows = self.ask(text).columns
        texts = tuple(column.combine_chunks().cast(pa.string()) for column in columns)
        return DistinctCells(texts, rows.to_numpy().astype(np.int64))

    def refuse_infinite(self, attribute: Attribute) -> None:
        """Raise if a column of numbers has an infinite one."""
        if attribute.kind is Kind.NUMBER and (n := self.ask_one(INFINITE_NUMBERS, attribute)["n_rows"]):
            raise TableError(f"Column {attribute.name!r} has {number_of(n, 'row')} with an infinite number.")

    def count_respelled(self) -> dict[str, int]:
        """How many spellings of sensitive values count as a value that they look like."""
        found = {}
        for attribute in {item.name: item for item in self.values if item.name in self._respelled}.values():
            before, after = (
                self._count_values(attribute, table) for table in (self.warehouse.table, "release")
            )
            if before > after:
                found[attribute.name] = before - after
        return found

    def count_alone(self) -> AloneClaim | None:
        """How many rows have cells that no other row has, of all that is published as it is; '' is missing."""
        names = [attribute.name for attribute in self.policy.schema.passed if attribute.name in self.names]
        if not names:
            return None
        cells = [
            f"COALESCE({self._stored(name)}, '')"
            if _is_text(self.schema.field(name).type)
            else self._cell(name)
            for name in names
        ]
        shown = ", ".join(f"{cell} AS cell_{at}" for at, cell in enumerate(cells))
        keys = ", ".join(f"cell_{at}" for at in range(len(cells)))
        rows = f"SELECT {shown} FROM {self.warehouse.table} AS published"
        alone = f"SELECT {keys} FROM ({rows}) AS passed GROUP BY {keys} HAVING COUNT(*) = 1"
        text = f"SELECT COUNT(*) AS n FROM ({alone}) AS alone"
        found = self.warehouse.ask(translate(text, self.warehouse.dialect))
        return AloneClaim(len(names), int(found.column("n")[0].as_py()))

    def _count_values(self, attribute: Attribute, table: str) -> int:
        cell = without_words(quote_name(attribute.name), ["", *attribute.missing_values])
        text = f"SELECT COUNT(DISTINCT {cell}) AS n FROM {table}"
        n: int = self.ask(text).column("n")[0].as_py()
        return n

    # -- cells as they are measured ------------------------------------------------------------------

    def _cell(self, name: str) -> str:
        """A cell that tells groups apart, as it stands."""
        if pa.types.is_floating(self.schema.field(name).type):
            return f"CAST({self._stored(name)} AS TEXT)"  # SQL takes 0.0 and -0.0 for one number
        return self._stored(name)

    def _value(self, attribute: Attribute) -> str:
        """A value that is counted in groups."""
        cell, stored = self._stored(attribute.name), self.schema.field(attribute.name).type
        if pa.types.is_floating(stored):
            return f"CASE WHEN ISNAN({cell}) THEN NULL ELSE {cell} + 0e0 END"  # -0.0 + 0 is 0.0
        if attribute.kind is Kind.DATE:
            if _is_text(stored):
                cell = f"SUBSTRING(TRIM({without_words(cell, ['', *attribute.missing_values])}), 1, 10)"
            return f"CAST({cell} AS DATE)"
        is_folded = attribute.kind is Kind.CATEGORY and attribute.role is Role.SENSITIVE and _is_text(stored)
        return self._fold(attribute, cell) if is_folded else cell

    def _stored(self, name: str) -> str:
        """A cell as it was before cells like formulas were marked."""
        cell = f"published.{quote_name(name)}"
        if not (self.policy.escapes_formulas and _is_text(self.schema.field(name).type)):
            return cell
        rest = f"SUBSTRING({cell}, 2)"
        is_formula = f"REGEXP_MATCHES({rest}, {write_literal(BEGINS_FORMULA)})"
        is_number = f"REGEXP_MATCHES({rest}, {write_literal(NO_FORMULA)})"
        is_marked = f"SUBSTRING({cell}, 1, 1) = {write_literal(MARK)} AND {is_formula} AND NOT {is_number}"
        return f"CASE WHEN {is_marked} THEN {rest} ELSE {cell} END"

    def _fold(self, attribute: Attribute, cell: str) -> str:
        """A sensitive text, and one text for all that look alike: those that SQL would take for others are listed."""
        odd = f"REGEXP_MATCHES({cell}, {write_literal(ODD_TEXTS)})"
        text = f"SELECT DISTINCT {cell} AS cell FROM {self.warehouse.table} AS published WHERE {odd}"
        found = self.warehouse.ask(translate(text, self.warehouse.dialect)).column("cell").to_pylist()
        raw = [each for each in found if each not in attribute.missing_values]
        folded = fold_lookalikes(pa.array(raw, pa.string()).dictionary_encode()).to_pylist()
        pairs = [(one, plain) for one, plain in zip(raw, folded, strict=True) if one != plain]
        if not pairs:
            return cell
        if len(pairs) > MOST_RESPELLED:
            raise InputError(
                f"Column {attribute.name!r} has {number_of(len(pairs), 'value')} that may look like others, "
                "too many for SQL; leave out --engine."
            )
        alias = f"folded_{len(self._joins)}"
        listed = ", ".join(f"({write_literal(one)}, {write_literal(plain)})" for one, plain in pairs)
        self._joins.append(f" LEFT JOIN (VALUES {listed}) AS {alias}(odd, plain) ON {cell} = {alias}.odd")
        self._respelled.add(attribute.name)
        return f"CASE WHEN {alias}.odd IS NULL THEN {cell} ELSE {alias}.plain END"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
