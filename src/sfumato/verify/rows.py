"""Published rows that are to be checked: how they are opened, and what each of their columns is for.

An ordered quasi-identifier is published as its label, as two columns for its bounds, or as all three; statistics of
groups stand in columns of their own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.machine import free_memory
from sfumato.policy.document import Policy
from sfumato.policy.output import HIGH, LOW, bound_names, missing_name, statistic_names
from sfumato.policy.requirements import Needs
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify
from sfumato.table.csv_file import open_own_csv
from sfumato.table.formulas import read_escaped
from sfumato.table.opening import open_table
from sfumato.table.source import UNKNOWN, Source

CSV_COPIES = 4
"""Memory for a CSV file that is read in one go, as a multiple of its size."""

MOST_ZIPPED = 1032
"""How much longer than its gzip-ed file a text can be."""


BYTES_PER_ROW, BYTES_PER_CELL = 48, 12
"""Memory that measuring all rows at once takes."""


# ---- opening ---------------------------------------------------------------------------------------


def allowed_memory(given: int | None) -> int:
    """Bytes that checking may take: half of what is free, unless said otherwise."""
    return free_memory() // 2 if given is None else given


def is_small(table: Any, memory: int) -> bool:
    """Whether a file of text may be read in one go; anything else says itself how large it is."""
    if isinstance(table, str | Path) and Path(table).is_file():
        longer = MOST_ZIPPED if _begins(Path(table), b"\x1f\x8b") else 1
        return CSV_COPIES * longer * Path(table).stat().st_size <= memory
    return True


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:  # whoever reads it says why
        return False


def open_rows(path: Path, word: str, memory: int, policy: Policy) -> Source:
    """The rows of a release folder, as they were before cells like formulas were marked."""
    source = open_stored_rows(path, word, memory)
    return read_escaped(source) if policy.escapes_formulas else source


def open_stored_rows(path: Path, word: str, memory: int) -> Source:
    """The rows of a release folder; an InputError if they are not of the format that their name says."""
    source = open_own_csv(path, lazy=not is_small(path, memory)) if word == "csv" else open_table(path)
    if source.kind != word:
        raise InputError(f"{path.name} is not {word} inside.")
    return source


def stored_names(table: Any) -> list[str]:
    """The columns of a Parquet file, a folder of them or an Arrow table, the index of pandas included.

    Reading a table leaves an index out, so it must be looked for in the file itself.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return list(table.schema.names)
    if not isinstance(table, str | Path):
        return []
    path = Path(table)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    return list(dict.fromkeys(name for file in files for name in _names_in_parquet(file)))


def _names_in_parquet(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):  # of another format
        return []


def read_header(path: Path) -> list[str]:
    """The columns of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


# ---- columns ---------------------------------------------------------------------------------------


def group_columns(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns in which all rows of a group agree: cells of quasi-identifiers, and statistics beside them.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    >>> group_columns(policy, ["age", "sex"]), group_columns(policy, ["age_high", "age_low"])
    (['age'], ['age_low', 'age_high'])
    """
    boxes = [name for _, cells in box_columns(policy.schema, names) for name in cells]
    return [*boxes, *statistic_columns(policy, names)]


def box_columns(schema: Schema, names: Sequence[str]) -> Iterator[tuple[Attribute, tuple[str, ...]]]:
    """The columns that hold the cells of each quasi-identifier: itself, its two bounds, or both.

    Beside bounds a column may say whether missing is among the values.
    """
    for attribute in schema.quasi_identifiers:
        bounds, flag = bound_names(attribute.name), missing_name(attribute.name)
        has_bounds = all(name in names and name not in schema for name in bounds)
        own = (attribute.name,) if attribute.name in names or not has_bounds else ()
        beside = (flag,) if has_bounds and flag in names and flag not in schema else ()
        yield attribute, own + (bounds if has_bounds else ()) + beside


def statistic_columns(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns of statistics that are there: they tell rows apart as quasi-identifiers do."""
    expected = [name for a in policy.schema for name in names_of_statistics(a, policy.statistics)]
    return [name for name in expected if name in names and name not in policy.schema]


def published_names(policy: Policy, there: Sequence[str]) -> list[str]:
    """The columns of a release of groups; what is split by thresholds has bounds where they are asked for.

    Whether bounds tell of missing depends on the table: they do if that column is ``there``.
    """
    return [name for attribute in policy.schema.published for name in _published_as(attribute, policy, there)]


def _published_as(attribute: Attribute, policy: Policy, there: Sequence[str]) -> tuple[str, ...]:
    own = names_of_statistics(attribute, policy.statistics)
    is_box = attribute.role is Role.QUASI_IDENTIFIER and attribute.is_ordered
    if not is_box or not policy.output.has_bounds:
        return (attribute.name, *own)
    flag = missing_name(attribute.name)
    bounds = (
        *bound_names(attribute.name),
        *([flag] if policy.method.flags_missing and flag in there else []),
    )
    return (attribute.name, *bounds) if policy.output.has_labels else bounds


def check_columns(names: Sequence[str], policy: Policy) -> None:
    """Refuse a table that lacks a quasi-identifier or a required column, or has one that the policy does not name."""
    needed = {*policy.schema.names(Role.QUASI_IDENTIFIER), *(item.of for item in policy.requirements)}
    optional = [name for name in policy.schema.names() if name not in needed]
    as_declared = dict.fromkeys(names)
    for name in statistic_columns(policy, names):
        del as_declared[name]
    for attribute, columns in box_columns(policy.schema, names):
        if len(columns) > 1:
            for bound in columns:
                as_declared.pop(bound, None)
            as_declared[attribute.name] = None
    policy.check_columns([*as_declared, *optional])


def raw_names(names: Sequence[str], policy: Policy) -> list[str]:
    """The columns that patterns of the policy may stand for: bounds and statistics are none, what they are of is."""
    exact, loose = frozenset(policy.schema.names()), policy.schema.expand(names)
    added = {name for a in loose for name in names_of_statistics(a, policy.statistics)}
    added |= {
        name for _, columns in box_columns(policy.schema, names) for name in columns if len(columns) > 1
    }
    for own in (attribute.name for attribute in loose.quasi_identifiers):
        bounds = bound_names(own)
        added |= {*bounds, missing_name(own)} if set(bounds) <= set(names) else set()
    kept = [name for name in names if name in exact or name not in added]
    for low in [name for name in kept if name.endswith(LOW) and name not in exact]:
        base = low.removesuffix(LOW)
        high, known = base + HIGH, policy.schema.expand([base]).find(base)
        if high in kept and base not in kept and known and known.role is Role.QUASI_IDENTIFIER:
            kept = [name for name in kept if name not in (low, high, missing_name(base))] + [base]
    return kept


def names_of_statistics(attribute: Attribute, statistics: Sequence[str]) -> tuple[str, ...]:
    """The columns of statistics of one attribute: of numbers that are published, and of dates in boxes.

    >>> names_of_statistics(Attribute("born", Role.QUASI_IDENTIFIER, Kind.DATE), ["mean"])
    ('born_mean',)
    """
    kinds = {Kind.NUMBER, Kind.DATE} if attribute.role is Role.QUASI_IDENTIFIER else {Kind.NUMBER}
    if not attribute.role.is_published or attribute.kind not in kinds:
        return ()
    return statistic_names(attribute.name, statistics)


# ---- what a check reads ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedColumns:
    """The columns that a check reads: cells that tell groups apart, values that are counted in each, and numbers."""

    cells: Sequence[str]
    values: Sequence[str]
    numbers: Sequence[Attribute]

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(dict.fromkeys([*self.keys, *(attribute.name for attribute in self.numbers)]))

    @property
    def keys(self) -> list[str]:
        """The columns in which rows must agree to be one line."""
        return list(dict.fromkeys([*self.cells, *self.values]))


def columns_to_check(names: Sequence[str], policy: Policy, *, with_statistics: bool) -> CheckedColumns:
    """Of the columns of these names, those that requirements, one-value claims and statistics are checked with."""
    schema = policy.schema
    values: list[Attribute] = []
    numbers: list[Attribute] = []
    for item in policy.requirements:
        if item.of is not None:
            (numbers if Needs.MOMENTS in item.needs else values).append(schema[item.of])
    for attribute in columns_without_diversity(policy):
        if attribute.name in names:
            (numbers if attribute.kind is Kind.NUMBER else values).append(attribute)
    if with_statistics:
        others = [schema[name] for name in schema.names(Role.SENSITIVE, Role.OTHER)]
        numbers += [a for a in others if {*names_of_statistics(a, policy.statistics)} & {*names}]
    return CheckedColumns(
        cells=group_columns(policy, names),
        values=list(dict.fromkeys(attribute.name for attribute in values)),
        numbers=list({attribute.name: attribute for attribute in numbers}.values()),
    )


def columns_without_diversity(policy: Policy) -> tuple[Attribute, ...]:
    """The sensitive columns and classes, published as they are, of which no diversity is required."""
    diverse = {requirement.of for requirement in policy.requirements}
    classes = {name for task in policy.workload if isinstance(task, Classify) for name in task.targets}
    return tuple(
        attribute
        for attribute in policy.schema.published
        if (attribute.role is Role.SENSITIVE or (attribute.role is Role.OTHER and attribute.name in classes))
        and attribute.name not in diverse
    )


def fits_in_memory(source: Source, checked: CheckedColumns, memory: int) -> bool:
    """Can all rows be measured at once?"""
    if source.stream is None:  # it is in memory
        return True
    n_bytes = BYTES_PER_ROW + BYTES_PER_CELL * len(checked.names)
    return source.n_rows != UNKNOWN and source.n_rows * n_bytes <= memory
