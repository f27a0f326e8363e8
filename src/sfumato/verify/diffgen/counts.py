"""Checks the counts of a differentially private release, from its folder and its policy alone.

Nothing here knows how the release was drawn. The declared domains are read from the policy anew, and these follow:

- the *cuts* divide each declared domain: thresholds on its grid, nodes of its hierarchy that cover it once;
- every cell of the grid of cuts is there with every class, the empty ones too [MCFY11, section 4.2], and each count
  is a whole number of at least 0;
- the *ledger* holds one draw for each specialization and one for the counts, each share and scale as the method's
  formula says, and what was spent and what was not sum to epsilon, in exact fractions.

What no output can show is the randomness: that it was secret, and followed the laws that the ledger names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.output import COUNT
from sfumato.policy.schema import Attribute, Role
from sfumato.release.certificate import Certificate, Claims
from sfumato.table.cells import texts
from sfumato.table.stored import ROWS_AT_ONCE, FiledRows
from sfumato.verify.checks import (
    Check,
    Unfit,
    check_equal,
    check_statements,
    describe_columns,
    note_randomness,
)
from sfumato.verify.diffgen.cuts import Cut, classes_of, cuts_of
from sfumato.verify.diffgen.ledger import check_ledger

Ints = NDArray[np.int64]

WHOLE_NUMBER = r"^[0-9]{1,18}$"
STATEMENT = re.compile(r"secret \(OpenDP \d+(\.\w+)*\)|seeded, not private")


# ---- the lines that there must be ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class StatedGrid:
    """The grid of the cuts and the classes: what the lines of the release must be."""

    cuts: Sequence[Cut]
    target: str
    classes: Sequence[str]

    @classmethod
    def of(cls, policy: Policy, cuts: Sequence[Cut]) -> StatedGrid:
        return cls(cuts, *classes_of(policy))

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(cut.n_pieces for cut in self.cuts), len(self.classes))

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape[:-1])

    def columns(self, policy: Policy) -> list[str]:
        """The columns of the release, in the order of the policy."""
        quasi = [attribute.name for attribute in policy.schema.quasi_identifiers]
        by_name = {name: [*cut.labels, *cut.numbers] for name, cut in zip(quasi, self.cuts, strict=True)}
        by_name[self.target] = [self.target]
        names = [name for attribute in policy.schema.published for name in by_name[attribute.name]]
        return [*names, COUNT] if policy.rows == "counts" else names

    def grid_columns(self) -> Iterator[_GridColumn]:
        """What each published column must hold, but for the counts."""
        for place, cut in enumerate(self.cuts):
            for name, labels in cut.labels.items():
                yield _GridColumn.of_texts(name, place, labels)
            for name, numbers in cut.numbers.items():
                yield _GridColumn.of_numbers(name, place, numbers)
        yield _GridColumn.of_texts(self.target, len(self.cuts), self.classes)


@dataclass(frozen=True, slots=True, eq=False)
class _GridColumn:
    """The cells that a column may hold, and which of them each piece of a cut has."""

    name: str
    place: int
    cells: pa.Array
    of_piece: Ints

    @classmethod
    def of_texts(cls, name: str, place: int, labels: Sequence[str | None]) -> _GridColumn:
        encoded = pa.array(labels, pa.string()).dictionary_encode(null_encoding="encode")
        return cls(name, place, encoded.dictionary, encoded.indices.to_numpy().astype(np.int64))

    @classmethod
    def of_numbers(cls, name: str, place: int, numbers: Sequence[float | None]) -> _GridColumn:
        return cls(name, place, pa.array(numbers, pa.float64()), np.arange(len(numbers)))

    @property
    def tells_apart(self) -> bool:
        return len(self.cells) == len(self.of_piece)

    def find(self, column: Any) -> Ints:
        """Which of the cells each row has; -1 where it is none of them."""
        cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        values = cells.dictionary
        if pa.types.is_date(values.type):
            values = values.cast(pa.date32()).cast(pa.int32())
        elif self.cells.type == pa.float64() and pa.types.is_string(values.type):
            values = _as_numbers(values)
        known = pc.index_in(values.cast(self.cells.type), value_set=self.cells).fill_null(-1)
        none = pc.index_in(pa.nulls(1, self.cells.type), value_set=self.cells).fill_null(-1)
        codes = np.append(known.to_numpy(), none.to_numpy()).astype(np.int64)
        return np.asarray(codes[cells.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)])


def _as_numbers(written: pa.Array) -> pa.Array:
    """Numbers or dates of CSV."""
    try:
        return written.cast(pa.float64())
    except pa.ArrowInvalid:
        return written.cast(pa.date32()).cast(pa.int32())


@dataclass(slots=True)
class _Found:
    """What was found in all rows."""

    rows: int = 0
    strange: int = 0
    """Rows that are not the line that should stand there, or are no line of the grid."""
    is_sorted: bool = True
    no_counts: int = 0
    counted: int = 0


def _measure(rows: pa.Table | FiledRows, grid: StatedGrid, *, is_expanded: bool) -> _Found:
    """Compare the rows with the lines of the grid, some at a time; ``is_expanded`` if each stands for one person."""
    found, last = _Found(), 0
    expected, shape = list(grid.grid_columns()), grid.shape
    tells_apart = all(column.tells_apart for column in expected)
    n_lines = math.prod(shape)
    for part in _parts(rows):
        cells = [column.find(part.column(column.name)) for column in expected]
        if is_expanded:
            is_strange = np.any([codes < 0 for codes in cells], axis=0)
            if tells_apart and not is_strange.any():
                digits = {column.place: codes for column, codes in zip(expected, cells, strict=True)}
                lines = np.ravel_multi_index([digits[place] for place in range(len(shape))], shape)
                found.is_sorted &= bool(np.all(np.diff(lines, prepend=last) >= 0))
                last = int(lines[-1]) if len(lines) else last
            found.counted += part.num_rows
        else:
            at = np.arange(found.rows, found.rows + part.num_rows)
            places = np.unravel_index(np.minimum(at, n_lines - 1), shape)
            is_strange = at >= n_lines
            for column, codes in zip(expected, cells, strict=True):
                is_strange |= column.of_piece[places[column.place]] != codes
            counts, is_none = _counts(part.column(COUNT))
            found.no_counts += int(is_none.sum())
            found.counted += int(counts[~is_none].sum())
        found.strange += int(is_strange.sum())
        found.rows += part.num_rows
    return found


def _parts(rows: pa.Table | FiledRows) -> Iterator[pa.Table]:
    """The rows in their order, some at a time."""
    if isinstance(rows, FiledRows):
        yield from rows.tables()
        return
    for start in range(0, max(len(rows), 1), ROWS_AT_ONCE):
        yield rows.slice(start, ROWS_AT_ONCE)


def _counts(column: Any) -> tuple[Ints, NDArray[np.bool_]]:
    """The counts, and which of them are no whole numbers of at least 0."""
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_integer(cells.type):
        written = texts(cells, Attribute(COUNT, Role.OTHER)).cast(pa.string())
        is_count = pc.match_substring_regex(written, WHOLE_NUMBER).fill_null(False)
        cells = pc.if_else(is_count, written, "-1").cast(pa.int64())
    counts = cells.fill_null(-1).cast(pa.int64()).to_numpy()
    return counts, counts < 0


def check_rows(
    rows: pa.Table | FiledRows, names: Sequence[str], policy: Policy, grid: StatedGrid, claimed: Claims
) -> Iterator[Check]:
    """The grid is complete, its counts are counts, and both are what the certificate claims."""
    columns = grid.columns(policy)
    is_same = list(names) == columns
    yield Check(
        "the columns are those that the policy publishes",
        is_same,
        "" if is_same else describe_columns(names, columns) or "they stand in another order",
    )
    is_expanded = policy.rows != "counts"
    claim = (
        "every row stands for a line of the grid"
        if is_expanded
        else "every cell of the grid is there with every class"
    )
    if not {*columns} <= {*names}:
        yield Check(claim, False, "a column is not there")
        return
    try:
        found = _measure(rows, grid, is_expanded=is_expanded)
    except (InputError, OSError, pa.ArrowException):
        yield Check(claim, False, "the rows cannot be read")
        return
    n_lines = math.prod(grid.shape)
    detail = ""
    if not is_expanded and found.rows != n_lines:
        detail = f"there are {found.rows:,} rows in place of {n_lines:,}"
    elif found.strange:
        detail = f"{found.strange:,} rows are no line of it, or stand in the place of another"
    elif not found.is_sorted:
        detail = "they are not in its order"
    yield Check(claim, not detail, detail)
    if not is_expanded:
        detail = f"{found.no_counts:,} are not" if found.no_counts else ""
        yield Check("every count is a whole number of at least 0", not detail, detail)
    yield check_equal("the release holds {}", claimed.rows, found.rows, of="row")
    yield check_equal("the grid has {}", claimed.groups, grid.n_cells, of="cell")
    counted = -1 if claimed.counted is None else claimed.counted
    yield check_equal("the counts sum to {}", counted, found.counted, f"they sum to {found.counted:,}")


# ---- all of it -------------------------------------------------------------------------------------


def check_counts(
    policy: Policy,
    certificate: Certificate,
    document: Any,
    rows: pa.Table | FiledRows | None,
    names: Sequence[str],
) -> Iterator[Check]:
    """Every claim of a differentially private release: ``document`` is its recoding, ``names`` are its columns."""
    privacy = certificate.privacy
    if privacy is None:
        yield Check("the certificate holds a ledger", False, "the policy asks for differential privacy")
        return
    claim = "the cuts divide the declared domains"
    grid = None
    try:
        grid = StatedGrid.of(policy, cuts_of(policy, document))
    except Unfit as error:
        yield Check(claim, False, str(error))
    else:
        is_same = document.get("groups") == grid.n_cells
        yield Check(claim, is_same, "" if is_same else "the recoding says another number of cells")
        most = policy.options_for(DiffGenOptions).max_cells
        is_within = grid.n_cells <= most
        detail = "" if is_within else f"it has {grid.n_cells:,}"
        yield Check(f"the grid has at most {most:,} cells", is_within, detail)
    yield from check_ledger(privacy, policy, None if grid is None else grid.cuts)
    yield from check_statements(certificate, policy)
    if grid is not None and rows is not None:
        yield from check_rows(rows, names, policy, grid, certificate.claims)
    is_known = STATEMENT.fullmatch(privacy.randomness) is not None
    yield Check(
        f"the certificate says of the noise: {privacy.randomness}",
        is_known,
        "" if is_known else "that is no source of noise",
    )
    yield note_randomness(privacy)
