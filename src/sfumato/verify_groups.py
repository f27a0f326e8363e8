"""Groups of published rows, found by comparing cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import Attribute, Kind, Role
from sfumato.tables import as_stored, dates, numbers, texts

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Codes:
    """A column as integers from 0 to ``n`` - 1, equal where its cells are; missing is one of them."""

    of_row: NDArray[np.integer[Any]]
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The group of each row, and the number of rows of each group (none is empty).

    ``weight`` says how many published rows each one stands for, where it is not one.
    """

    of_row: Ints
    size: Ints
    weight: Ints | None = None

    @property
    def n(self) -> int:
        return len(self.size)

    def one_row(self) -> Ints:
        """One row of each group."""
        out = np.empty(self.n, dtype=np.int64)
        out[self.of_row] = np.arange(len(self.of_row))
        return out


def codes_of(column: Any, attribute: Attribute) -> Codes:
    """The values of a column as its kind reads them: ``1`` and ``1.0`` are one number, but two texts."""
    if attribute.kind is Kind.NUMBER:
        encoded = pc.add(numbers(column, attribute), 0).dictionary_encode()  # -0.0 + 0 is 0.0
    elif attribute.kind is Kind.DATE:
        encoded = dates(column, attribute).dictionary_encode()
    else:
        encoded = texts(column, attribute)
        if attribute.role is Role.SENSITIVE:
            encoded = folded(encoded)
    return with_missing(encoded)


def cells_of(column: Any, name: str) -> Codes:
    """The cells of a column as they stand: an empty text, null and NaN are three values, 0.0 and -0.0 are two."""
    return with_missing(as_stored(column, Attribute(name, Role.OTHER)))


def labels_of(column: Any, name: str) -> pa.DictionaryArray:
    """The labels of a column as they stand, null where there is none: an empty text is no missing cell."""
    attribute = Attribute(name, Role.OTHER)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return as_stored(column, attribute) if pa.types.is_string(kind) else texts(column, attribute)


def with_missing(encoded: pa.DictionaryArray) -> Codes:
    """Cells as codes, the last of them for missing ones."""
    n = len(encoded.dictionary)
    indices = pc.fill_null(encoded.indices, n) if encoded.null_count else encoded.indices
    return Codes(indices.to_numpy(zero_copy_only=False), n + 1)


def folded(cells: pa.DictionaryArray) -> pa.DictionaryArray:
    r"""Texts that look alike as one: letters in any composition or width, with or without marks that nobody sees.

    NFKC, without Unicode's format characters, NFKC again, without blanks around it. What is then empty is missing.

    >>> folded(pa.array(["flu", "f\u200blu", "\ufb02u ", "\u200b"]).dictionary_encode()).to_pylist()
    ['flu', 'flu', 'flu', None]
    """
    seen = pc.replace_substring_regex(pc.utf8_normalize(cells.dictionary, "NFKC"), r"\p{Cf}", "")
    plainly = pc.utf8_trim_whitespace(pc.utf8_normalize(seen, "NFKC"))
    merged = pc.if_else(pc.equal(plainly, ""), None, plainly).dictionary_encode()
    return pa.DictionaryArray.from_arrays(merged.indices.take(cells.indices), merged.dictionary)


def group(columns: Iterable[Codes], weight: Ints | None = None) -> Groups:
    """Rows that agree in every column. Any order of rows will do; rows in order of groups are faster."""
    held = list(columns)
    n_rows = len(held[0].of_row)
    differs = np.zeros(n_rows, dtype=np.bool_)
    differs[0] = True
    for column in held:  # a run is a stretch of equal rows: from here on, one row of each is enough
        differs[1:] |= column.of_row[1:] != column.of_row[:-1]
    starts = np.flatnonzero(differs)
    of_run, n_groups = joint([Codes(column.of_row[starts], column.n) for column in held])
    lengths = np.diff(starts, append=n_rows)
    of_row = np.repeat(of_run, lengths)
    return Groups(of_row, summed(weight, of_row, n_groups), weight)


def summed(weight: Ints | None, of_row: Ints, n_groups: int) -> Ints:
    """How many rows each group has; exact below 2^53 rows."""
    return np.bincount(of_row, weight, minlength=n_groups).astype(np.int64)


def joint(columns: Sequence[Codes]) -> tuple[Ints, int]:
    """One code for each distinct combination, from 0 without gaps.

    Codes are the digits of a number with mixed radices; where it would outgrow 63 bits, the combinations
    so far are renumbered first.
    """
    key, radix = np.zeros(len(columns[0].of_row), dtype=np.int64), 1
    for column in columns:
        if radix * column.n >= 2**63:
            key, radix = _renumbered(key)
        key *= column.n
        key += column.of_row
        radix *= column.n
    return _renumbered(key)


def _renumbered(key: Ints) -> tuple[Ints, int]:
    encoded = pa.array(key).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
