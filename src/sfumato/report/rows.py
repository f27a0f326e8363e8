"""What a report looks at: the published rows, or as much of them as stands for all where they are very many.

Of more than ``SMALL`` rows one pass gathers, in bounded memory, the distinct cells of the quasi-identifiers with their
number of rows (those of one group in two, four, ... where they are too many), how many cells are missing, and a
uniform sample of the other columns. The same rows give the same sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Role
from sfumato.randomness import seeded
from sfumato.report.groups import cells_of
from sfumato.table.cells import texts
from sfumato.table.csv_file import as_read_from_csv
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.stored import ROWS_AT_ONCE, FiledRows
from sfumato.table.write import compact
from sfumato.verify.cells import Detail, FoundGroups
from sfumato.verify.portions import Lines, hash_lines, lines_of
from sfumato.verify.rows import CheckedColumns

Ints = NDArray[np.int64]

SMALL = 100_000
"""Rows that are few enough to be looked at all at once."""

MOST_GROUPS = 1 << 17
SAMPLE = 100_000
MOST_DISTINCT = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The rows that a report looks at: ``cells`` of the quasi-identifiers, and ``rows`` of the other columns.

    Of a release that ``is_large`` they are not all rows. Each line of ``cells`` then stands for ``weight`` rows, and one
    group in ``one_in`` is there; ``rows`` is a sample, each of whose rows stands for ``scale`` others. How many cells
    are ``missing`` and how many distinct values a column has (None if too many to count) is known of all rows.
    """

    cells: Source
    rows: Source
    n_rows: int
    is_large: bool = False
    weight: Ints | None = None
    one_in: int = 1
    scale: float = 1.0
    missing: Mapping[str, int] = field(default_factory=dict)
    n_distinct: Mapping[str, int | None] = field(default_factory=dict)
    details: Mapping[str, Detail] = field(default_factory=dict)
    """How much the cells of each quasi-identifier tell, if that is known of all rows."""

    @property
    def note(self) -> str:
        """What of the report is not counted row by row, in words; nothing of a small release."""
        if not self.is_large:
            return ""
        of_groups = (
            "Group sizes and what is said of quasi-identifiers are those of one group in "
            f"{self.one_in:,}, chosen at random, and"
            if self.one_in > 1
            else "The"
        )
        return (
            f"This release is large. {of_groups} distributions of the other columns are drawn from "
            f"{self.rows.n_rows:,} published rows, chosen at random; all other figures are of all rows."
        )


def view_of(
    rows: pa.Table | FiledRows, policy: Policy, format_: str, found: FoundGroups | None = None
) -> View:
    """The rows that a report looks at; those in memory as they will be read from a release of ``format_``.

    Where ``verify`` has ``found`` their groups, they are not looked for again.
    """
    n_rows = rows.n_rows if isinstance(rows, FiledRows) else rows.num_rows
    if n_rows > SMALL:  # wherever they are, so that the same rows have the same report
        return _gather(rows, policy, format_, found)
    source = open_table(rows.load() if isinstance(rows, FiledRows) else _as_read(rows, format_))
    return View(source, source, source.n_rows)


def _as_read(rows: pa.Table, format_: str) -> pa.Table:
    """The rows as whoever reads the release finds them."""
    return as_read_from_csv(rows) if format_ == "csv" else rows


def _gather(rows: pa.Table | FiledRows, policy: Policy, format_: str, found: FoundGroups | None) -> View:
    source = rows.source() if isinstance(rows, FiledRows) else open_table(rows)
    cells = [name for attribute in policy.schema.quasi_identifiers for name in cells_of(attribute, source)]
    published = [a for a in policy.schema.published if a.role is not Role.QUASI_IDENTIFIER]
    others = [attribute for attribute in published if attribute.name in source.names]
    sample = _Sample(others)
    details: Mapping[str, Detail] = {}
    if found is None or not {*cells} <= {*found.cells.column_names}:
        groups = _Groups(cells)
        for table in _parts(rows, [*cells, *sample.names], format_):
            groups.add(table)
            sample.add(table)
        lines, one_in = groups.lines(), groups.one_in
    else:
        for table in _parts(rows, sample.names or cells[:1], format_):
            sample.add(table)
        lines, one_in = _thin(_lines_found(found, cells, format_), 1)
        details = found.details if one_in == 1 else details
    sampled = sample.table()
    return View(
        open_table(lines.keys),
        open_table(sampled) if sample.names else open_table(lines.keys.slice(0, 1)),
        sample.n_rows,
        True,
        lines.n_rows,
        one_in,
        sample.n_rows / max(len(sampled), 1),
        sample.missing,
        {name: None if known is None else len(known) for name, known in sample.distinct.items()},
        details,
    )


def _parts(rows: pa.Table | FiledRows, names: Sequence[str], format_: str) -> Iterator[pa.Table]:
    """Some rows at a time, in their order."""
    if isinstance(rows, FiledRows):
        return rows.tables(names)
    wanted, starts = rows.select(list(names)), range(0, rows.num_rows, ROWS_AT_ONCE)
    return (_as_read(wanted.slice(start, ROWS_AT_ONCE), format_) for start in starts)


# ---- groups ----------------------------------------------------------------------------------------


class _Groups:
    """The distinct cells of quasi-identifiers, and how many rows have them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns, self.one_in = CheckedColumns(names, (), ()), 1
        self._held: list[Lines] = []

    def add(self, table: pa.Table) -> None:
        (batch,) = table.select(self.columns.cells).combine_chunks().to_batches()
        self._held.append(_choose(lines_of(batch, self.columns), self.one_in))
        if sum(map(len, self._held)) > 2 * MOST_GROUPS:
            self.lines()

    def lines(self) -> Lines:
        """One line for each group, of at most ``MOST_GROUPS``."""
        keys = pa.concat_tables([lines.keys for lines in self._held])
        whole = Lines(keys, np.concatenate([lines.n_rows for lines in self._held])).condense()
        whole, self.one_in = _thin(whole, self.one_in)
        self._held = [whole]
        return whole


def _lines_found(found: FoundGroups, names: Sequence[str], format_: str) -> Lines:
    """A line for each group that was found; statistics, and texts that CSV cannot tell apart, make more of one."""
    lines = Lines(_as_read(found.cells.select(list(names)), format_), found.size)
    is_same = len(names) == found.cells.num_columns and format_ != "csv"
    return lines if is_same else lines.condense()


def _thin(lines: Lines, one_in: int) -> tuple[Lines, int]:
    """One line in two, four, ... until they are few enough, and in how many it was; ``one_in`` to begin with."""
    while len(lines) > MOST_GROUPS:
        one_in *= 2
        lines = _choose(lines, one_in)
    return lines, one_in


def _choose(lines: Lines, one_in: int) -> Lines:
    if one_in == 1:
        return lines
    found = hash_lines(lines.keys.columns, salt=0, of_text=_steady)
    kept = np.flatnonzero(found % np.uint64(one_in) == 0)
    return Lines(compact(lines.keys.take(pa.array(kept))), lines.n_rows[kept])


def _steady(text: object) -> int:
    """A hash that is the same in every run, unlike Python's own."""
    digest = hashlib.blake2b(str(text).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


# ---- other columns ---------------------------------------------------------------------------------


class _Sample:
    """A uniform sample of some columns, the missing cells of each, and its distinct ones while they are few."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self.attributes, self.n_rows = attributes, 0
        self.names = [attribute.name for attribute in attributes]
        self.missing = dict.fromkeys(self.names, 0)
        self.distinct: dict[str, pa.Array | None] = {}
        self._random, self._ticket, self._limit = seeded(0), np.empty(0), np.inf
        self._held: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        self.n_rows += len(table)
        for attribute in self.attributes:
            self._note(attribute, table.column(attribute.name))
        ticket = self._random.random(len(table))  # the rows with the least numbers are the sample
        kept = np.flatnonzero(ticket < self._limit)
        self._held.append(table.select(self.names).take(pa.array(kept)))
        self._ticket = np.append(self._ticket, ticket[kept])
        if len(self._ticket) > 2 * SAMPLE:
            self.table()

    def _note(self, attribute: Attribute, column: pa.ChunkedArray) -> None:
        name = attribute.name
        known = self.distinct.get(name, pa.array([], pa.string()))
        if known is None and pa.types.is_integer(column.type) and not attribute.missing_values:
            self.missing[name] += column.null_count  # no need to look at texts any more
            return
        cells = texts(column, attribute)
        self.missing[name] += cells.null_count
        if known is None:
            return
        known = pa.concat_arrays([known, cells.dictionary]).unique()
        self.distinct[name] = known if len(known) <= MOST_DISTINCT else None

    def table(self) -> pa.Table:
        held = compact(pa.concat_tables(self._held))
        if len(self._ticket) > SAMPLE:
            kept = np.sort(np.argpartition(self._ticket, SAMPLE)[:SAMPLE])
            held, self._ticket = compact(held.take(pa.array(kept))), self._ticket[kept]
            self._limit = self._ticket.max()
        self._held = [held]
        return held
