"""Groups of published rows, found by comparing cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table.cells import as_stored, numbers, ordered, texts

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Codes:
    """A column as integers from 0 to ``n`` - 1, equal where its cells are; missing is one of them."""

    of_row: NDArray[np.integer[Any]]
    n: int


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, none of which is empty.

    A *run* is a stretch of rows of one group: ``starts`` says where each begins, ``of_run`` which group it is in.
    ``weight`` says how many published rows each row stands for, where it is not one.
    """

    starts: Ints
    of_run: Ints
    n: int
    n_rows: int
    weight: Ints | None = None

    @classmethod
    def of_runs(
        cls, starts: Ints, n_rows: int, columns: Iterable[Codes], weight: Ints | None = None
    ) -> Groups:
        """The groups of runs that have these codes."""
        return cls(starts, *joint(list(columns)), n_rows, weight)

    @cached_property
    def of_row(self) -> Ints:
        """The group of each row."""
        return np.repeat(self.of_run, np.diff(self.starts, append=self.n_rows))

    @cached_property
    def size(self) -> Ints:
        """The number of published rows of each group."""
        if self.weight is None:
            lengths = np.diff(self.starts, append=self.n_rows)
        else:
            lengths = np.add.reduceat(self.weight, self.starts)
        return summed(lengths, self.of_run, self.n)

    @cached_property
    def one_run(self) -> Ints:
        """One run of each group."""
        out = np.empty(self.n, dtype=np.int64)
        out[self.of_run] = np.arange(len(self.of_run))
        return out

    @property
    def one_row(self) -> Ints:
        """One row of each group."""
        return self.starts[self.one_run]

    def share_one(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Whether all rows of a group have the same code, of each group."""
        changes = np.append(False, codes[1:] != codes[:-1])
        changes[self.starts] = False
        first = codes[self.starts]
        differs = np.logical_or.reduceat(changes, self.starts) | (first != first[self.one_run][self.of_run])
        out = np.ones(self.n, dtype=np.bool_)
        out[self.of_run[differs]] = False
        return out


def codes_of(column: Any, attribute: Attribute) -> Codes:
    """The values of a column as its kind reads them: ``1`` and ``1.0`` are one number, but two texts."""
    return with_missing(values_of(column, attribute))


def values_of(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """The same, with the values themselves; null where missing."""
    if attribute.kind is Kind.NUMBER:
        encoded = pc.add(numbers(column, attribute), 0).dictionary_encode()  # -0.0 + 0 is 0.0
    elif attribute.kind is Kind.DATE:
        encoded = ordered(column, attribute).dictionary_encode()
    else:
        encoded = texts(column, attribute)
        if attribute.role is Role.SENSITIVE:
            encoded = folded(encoded)
    return encoded


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
    if len(merged.dictionary) == len(cells.dictionary):
        return pa.DictionaryArray.from_arrays(cells.indices, merged.dictionary)
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
    return Groups.of_runs(starts, n_rows, [Codes(column.of_row[starts], column.n) for column in held], weight)


def summed(weight: Ints | None, of_row: NDArray[np.integer[Any]], n_groups: int) -> Ints:
    """How many rows each group has; exact below 2^53 rows."""
    return np.bincount(of_row, weight, minlength=n_groups).astype(np.int64)


def joint(columns: Sequence[Codes]) -> tuple[Ints, int]:
    """One code for each distinct combination, from 0 without gaps."""
    found = Combinations.of([column.of_row for column in columns])
    return found.of_line, found.n


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """Distinct lines of numbers: one of each, and which one each line is.

    A line is looked up by one number that is mixed from its own, and then compared with the line that was found: what
    the mixed number is decides how fast it goes, never what is found.

    >>> known = Combinations.of([np.array([0, 1, 0]), np.array([5, 5, 5])])
    >>> known.of_line.tolist(), known.find([np.array([1, 2]), np.array([5, 5])]).tolist()
    ([0, 1, 0], [1, -1])
    """

    of_line: Ints
    known: Sequence[NDArray[np.integer[Any]]]
    mixed: Ints
    factors: Sequence[np.int64]

    @classmethod
    def of(cls, lines: Sequence[NDArray[np.integer[Any]]]) -> Combinations:
        for attempt in count():
            factors = [_factor(attempt * len(lines) + at) for at in range(len(lines))]
            mixed, of_line = np.unique(_mixed(lines, factors), return_inverse=True)
            one = np.empty(len(mixed), dtype=np.int64)
            one[of_line] = np.arange(len(of_line))
            found = cls(of_line, [line[one] for line in lines], mixed, factors)
            if found.n == len(of_line) or found._agree(lines, of_line).all():
                break  # no two lines are mixed to one number
        return found

    @property
    def n(self) -> int:
        return len(self.mixed)

    def find(self, lines: Sequence[NDArray[np.integer[Any]]]) -> Ints:
        """The number of each line; -1 of one that is not among them."""
        at = pc.index_in(pa.array(_mixed(lines, self.factors)), value_set=pa.array(self.mixed))
        found: Ints = at.fill_null(0).to_numpy().astype(np.int64)
        found[~self._agree(lines, found)] = -1
        return found

    def _agree(self, lines: Sequence[NDArray[np.integer[Any]]], numbers: Ints) -> NDArray[np.bool_]:
        out = np.ones(len(numbers), dtype=np.bool_)
        for line, known in zip(lines, self.known, strict=True):
            out &= line == known[numbers]
        return out


def _factor(number: int) -> np.int64:
    """An odd number below 2^62 whose bits look drawn, another for each (the finalizer of SplitMix64)."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    return np.int64((bits ^ bits >> 31) >> 2 | 1)


def _mixed(lines: Sequence[NDArray[np.integer[Any]]], factors: Sequence[np.int64]) -> Ints:
    """The sum of each line's numbers times their factors, modulo 2^64."""
    key = np.zeros(len(lines[0]), dtype=np.int64)
    for line, factor in zip(lines, factors, strict=True):
        key += line * factor
    return key
