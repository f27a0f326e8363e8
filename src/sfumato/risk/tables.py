"""Rows as risk is counted in them: their groups, whose they are, and which people of a population are like them.

In a table rows are one group where their quasi-identifiers have the same values, whoever made the table; in a release,
where they have the same labels. A person of a population belongs to the group that the recoding of the release sends it
to, if it lies in the box there, and to no other whose label would fit it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError, did_you_mean, number_of
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.recoding.axis import OrderedAxis
from sfumato.recoding.recoder import Recoder, RowCells
from sfumato.release.folder import CERTIFICATE, RELEASES
from sfumato.release.release import Release
from sfumato.table.cells import numbers
from sfumato.table.combinations import number_combinations, number_texts
from sfumato.table.opening import open_table
from sfumato.table.reading import Reading, open_as
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows
from sfumato.verify.groups import values_of, with_missing
from sfumato.verify.recount import number_people
from sfumato.verify.rows import box_columns, raw_names

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOWHERE = -1
"""The group of somebody of the population whom no group is like."""

OWN_BOXES = (
    "Each row has a box of its own. Groups are rows with equal boxes, though others overlap them, so the figures are too "
    "high rather than too low."
)


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows in groups, and whose they are.

    of          "release" or "table"
    codes       of each quasi-identifier, by its name, the code of each row
    group       (rows,) the group of each row
    person      (rows,) whose it is; None where rows are counted
    population  (groups,) the people of the population who are like those of each group, if it was named
    """

    of: str
    source: Source
    codes: Mapping[str, Ints]
    group: Ints
    unit: str | None
    person: Ints | None
    population: Ints | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        return len(self.group)

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @property
    def n_people(self) -> int | None:
        return None if self.person is None else len(np.unique(self.person))

    @property
    def whose(self) -> str:
        """What groups count."""
        return "rows" if self.person is None else "people"

    def count(self) -> Ints:
        """The people of each group, or its rows."""
        return count_people(self.group, self.person, self.n_groups)

    def sum_weights(self, name: str) -> Floats:
        """The sum of the survey weights of each group, in which a person counts once."""
        weight = _read_weights(self.source, name)
        if self.person is None:
            return np.bincount(self.group, weight, minlength=self.n_groups).astype(np.float64)
        of_person = np.zeros(int(self.person.max()) + 1)
        of_person[self.person] = weight
        n_other = int((of_person[self.person] != weight).sum())
        if n_other:
            raise InputError(
                f"Column {name!r} gives people several weights, in {number_of(n_other, 'row')}; a person has one weight."
            )
        first = number_combinations([self.group, self.person], in_order=False).first_rows()
        summed = np.bincount(self.group[first], weight[first], minlength=self.n_groups)
        return summed.astype(np.float64)


def count_people(group: Ints, person: Ints | None, n_groups: int) -> Ints:
    """How many people each group has, or rows if ``person`` is None; those that are nowhere count in no group.

    >>> count_people(np.array([0, 0, 1, -1]), np.array([5, 5, 5, 6]), 2).tolist()
    [1, 1]
    """
    if person is not None:
        group = group[number_combinations([group, person], in_order=False).first_rows()]
    return np.bincount(group[group != NOWHERE], minlength=n_groups)


def is_release(given: Any) -> bool:
    """Whether what is to be judged is the folder of a release, and no table."""
    if not isinstance(given, str | Path):
        return isinstance(given, Release)
    path = Path(given)
    return path.is_dir() and any((path / name).exists() for name in (CERTIFICATE, *RELEASES.values()))


# ---- a table -----------------------------------------------------------------------------------------


def count_table(given: Any, policy: Policy, *, population: Any, reading: Reading) -> CountedRows:
    """The rows of any table: a raw one, or one that another tool made."""
    source = open_as(given, policy.schema, reading)
    names = raw_names(source.names, policy)
    policy = policy.expand(names)
    policy.check_columns([*names, *policy.schema.names()])  # it names all of them; only some are needed
    whole = None if population is None else _open_population(population, policy.schema, reading)
    notes: list[str] = []
    codes: dict[str, Ints] = {}
    for attribute, columns in box_columns(policy.schema, source.names):
        _check_there(columns, source)
        kinds = [attribute if name == attribute.name else Attribute(name, Role.OTHER) for name in columns]
        if not all(_reads_as(each, source) for each in kinds):
            notes.append(
                f"Column {attribute.name!r} holds cells that are no {attribute.kind}s, so they are compared as texts."
            )
            missing = attribute.missing_values
            kinds = [Attribute(name, Role.OTHER, missing_values=missing) for name in columns]
        parts = [_encode_together(each, source, whole) for each in kinds]
        codes[attribute.name] = number_combinations(parts, in_order=False).number
    unit, person = policy.person, None
    if unit is not None and unit in source.names:
        person = number_people(source, policy.schema[unit])
    elif unit is not None:
        notes.append(f"Groups count rows: the table has no column {unit!r}, which would say whose they are.")
    return _put_in_groups("table", source, codes, unit, person, whole, policy.schema, notes)


def _reads_as(attribute: Attribute, source: Source) -> bool:
    """Whether every cell of a column is of its kind."""
    if attribute.kind is Kind.CATEGORY:
        return True
    with suppress(TableError):
        values_of(source.column(attribute.name), attribute)
        return True
    return False


def _encode_together(attribute: Attribute, source: Source, whole: Source | None) -> Ints:
    """The cells of a column as codes, first those of the table and then those of the population."""
    parts = [values_of(source.column(attribute.name), attribute)]
    if whole is not None:
        with of_population():
            _check_there([attribute.name], whole)
            parts.append(values_of(whole.column(attribute.name), attribute))
    kinds = {part.dictionary.type for part in parts}
    if len(kinds) > 1:  # numbers of several widths
        kind = pa.int64() if all(map(pa.types.is_integer, kinds)) else pa.float64()
        parts = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(kind)) for part in parts]
    joined = pa.chunked_array(parts).unify_dictionaries()
    return np.concatenate([with_missing(chunk).of_row.astype(np.int64) for chunk in joined.chunks])


# ---- a release ---------------------------------------------------------------------------------------


def count_release(given: Any, *, table: Any, population: Any, reading: Reading) -> CountedRows:
    """The published rows of a release, or with the raw ``table`` the people whose they are."""
    release = given if isinstance(given, Release) else Release.read(given)
    policy, schema = release.policy, release.policy.schema
    _check_form(policy, has_other=table is not None or population is not None)
    names = release.rows.column_names
    columns = dict(box_columns(schema, names))
    wanted = list(dict.fromkeys([name for own in columns.values() for name in own] + _passed(policy, names)))
    rows = release.rows.load(wanted) if isinstance(release.rows, FiledRows) else release.rows.select(wanted)
    source, recoded = open_table(rows), rows
    unit, person, notes = policy.person, None, [OWN_BOXES] * (policy.method.form is Form.BOXES)
    if table is not None:
        source, recoded, person = _count_again(release, rows, columns, table, reading)
    elif unit is not None:
        way_out = " Name the raw table (--table) to count people." * (policy.method.form is Form.GROUPS)
        notes.append(f"Groups count rows: the release does not say whose they are.{way_out}")
    whole, whole_recoded = None, None
    if population is not None:
        whole = _open_population(population, schema, reading)
        with of_population():
            whole, whole_recoded = _recode(release, whole)
            inside = np.flatnonzero(_lie_in_boxes(release.recoding, whole))
            whole, whole_recoded = whole.take(inside), whole_recoded.take(pa.array(inside))
    both = [recoded, *([] if whole_recoded is None else [whole_recoded])]
    codes = {attribute.name: _number_cells(own, both) for attribute, own in columns.items()}
    return _put_in_groups("release", source, codes, unit, person, whole, schema, notes)


def _check_form(policy: Policy, *, has_other: bool) -> None:
    form = policy.method.form
    if policy.is_private or form is Form.COUNTS:
        raise InputError(
            "The release is differentially private: its epsilon bounds the risk of everybody, and groups of noisy counts "
            "or of drawn rows hold no people. Judge the raw table instead, with its --policy."
        )
    if form is not Form.GROUPS and has_other:
        raise InputError(
            "The rows of this release have boxes of their own and no recoding, so nobody else can be sent to a group; "
            "verify --side-table counts their risk again."
        )


def _passed(policy: Policy, names: Sequence[str]) -> list[str]:
    """The published columns that are no quasi-identifiers; weights may be among them."""
    return [a.name for a in policy.schema.published if a.role is Role.OTHER and a.name in names]


def _count_again(
    release: Release, rows: pa.Table, columns: Mapping[Attribute, Sequence[str]], table: Any, reading: Reading
) -> tuple[Source, pa.Table, Ints]:
    """The raw rows that are published, they recoded, and whose they are."""
    policy = release.policy
    if policy.person is None:
        raise InputError(
            "--table is for a release whose groups count people, and this one counts rows; leave it out."
        )
    raw = open_as(table, policy.schema, reading)
    _check_there([policy.person, *policy.schema.names(Role.QUASI_IDENTIFIER)], raw)
    kept, recoded = _recode(release, raw)
    n = rows.num_rows
    both = number_combinations([_number_cells(own, [rows, recoded]) for own in columns.values()])
    published, again = (np.bincount(part, minlength=both.n) for part in (both.number[:n], both.number[n:]))
    if (published != again).any():
        raise InputError(
            "Recoded, the rows of the raw table are not those of the release; is it the table that it was made from?"
        )
    return kept, recoded, number_people(kept, policy.schema[policy.person])


def _recode(release: Release, source: Source) -> tuple[Source, pa.Table]:
    """The rows that the recoding leaves in, and their labels."""
    if not isinstance(release.recoding, Recoder):
        raise InputError("The release has no recoding, so nobody else can be sent to its groups.")
    _check_there(release.policy.schema.names(Role.QUASI_IDENTIFIER), source)
    left_out = release.recoding.find_left_out(source)
    kept = source.take(np.flatnonzero(~left_out)) if left_out.any() else source
    return kept, pa.table(release.recoding.recode_columns(kept))


def _lie_in_boxes(recoding: Any, source: Source) -> NDArray[np.bool_]:
    """Which rows lie in the box that they are sent to: boxes are narrowed to the rows of the release.

    Along a hierarchy, the label of a row that does not was widened, and is that of no group.
    """
    ends, cells = recoding.box_ends(source), RowCells.read(source, recoding.axes)
    inside = np.ones(source.n_rows, dtype=np.bool_)
    for a, axis in enumerate(recoding.axes):
        if isinstance(axis, OrderedAxis):
            low, high, missing = ends.along(a)
            first, last = axis.ends(low, high)
            values = cells.values[axis.attribute.name]
            fits = (values >= first) & (values <= last)
            inside &= np.where(np.isneginf(values), missing | np.isneginf(high), fits)
    return inside


def _number_cells(names: Sequence[str], tables: Sequence[pa.Table]) -> Ints:
    """The cells of the columns of one quasi-identifier as codes, first those of the first table."""
    parts = [number_texts(*(table.column(name) for table in tables)) for name in names]
    return number_combinations(parts, in_order=False).number


# ---- both --------------------------------------------------------------------------------------------


def _put_in_groups(
    of: str,
    source: Source,
    codes: Mapping[str, Ints],
    unit: str | None,
    person: Ints | None,
    whole: Source | None,
    schema: Schema,
    notes: Sequence[str],
) -> CountedRows:
    """The groups of the rows; behind those of the table, ``codes`` has the rows of the population."""
    n_rows = source.n_rows
    both = number_combinations(list(codes.values()), in_order=False)
    used, group = np.unique(both.number[:n_rows], return_inverse=True)
    unit = unit if person is not None else None
    own = {name: code[:n_rows] for name, code in codes.items()}
    rows = CountedRows(of, source, own, group, unit, person, notes=tuple(notes))
    if whole is None:
        return rows
    place = np.full(both.n, NOWHERE)
    place[used] = np.arange(len(used))
    others = None
    if unit is not None and unit in whole.names:
        with of_population():
            others = number_people(whole, schema[unit])
    found = count_people(place[both.number[n_rows:]], others, len(used))
    _check_population(rows, found)
    return replace(rows, population=found)


def _check_population(rows: CountedRows, found: Ints) -> None:
    """Everybody of the table is of the population."""
    n_lacking = int((found < rows.count()).sum())
    if n_lacking:
        raise InputError(
            f"The population lacks {rows.whose} of the {rows.of}: in {number_of(n_lacking, 'group')} of "
            f"{rows.n_groups:,} it has fewer. It must hold everybody, with the same columns written in the same way."
            + (
                " If the table was recoded by another tool, nothing says which label a person gets."
                * (rows.of == "table")
            )
        )


def _open_population(population: Any, schema: Schema, reading: Reading) -> Source:
    with of_population():
        return open_as(population, schema, reading)


def _check_there(names: Sequence[str], source: Source) -> None:
    for name in names:
        if name not in source.names:
            raise TableError(f"{source.where} has no column {name!r}.{did_you_mean(name, source.names)}")


def _read_weights(source: Source, name: str) -> Floats:
    _check_there([name], source)
    cells = numbers(source.column(name), Attribute(name, Role.OTHER, Kind.NUMBER))
    if cells.null_count:
        raise InputError(f"Column {name!r} lacks the weight of {number_of(cells.null_count, 'row')}.")
    weight = np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)
    n_low = int((weight < 1).sum())
    if n_low:
        raise InputError(
            f"Column {name!r} has weights below 1 in {number_of(n_low, 'row')}; a survey weight says how many people a "
            "row stands for, itself among them."
        )
    return weight


@contextmanager
def of_population() -> Iterator[None]:
    """Say of an error that the population has it."""
    try:
        yield
    except TableError as error:
        raise TableError(f"In the population: {error}") from None
