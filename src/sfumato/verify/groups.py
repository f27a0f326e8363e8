"""Groups of published rows: rows that agree in their cells, and what is known of the numbers in each group.

Cells are compared as they are stored. :class:`GroupedRows` are rows with their groups, :class:`Moments` count, ends, mean
and variance of a column of numbers, group by group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table.cells import as_stored, numbers, ordered, texts
from sfumato.table.source import Source

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


# ---- cells as codes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Codes:
    """A column as integers from 0 to ``n`` - 1, equal where its cells are; missing is one of them."""

    of_row: NDArray[np.integer[Any]]
    n: int


def codes_of(column: Any, attribute: Attribute) -> Codes:
    """The values of a column as codes. Its kind says what is equal: ``1`` and ``1.0`` are one number, but two texts."""
    return with_missing(values_of(column, attribute))


def values_of(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """The values of a column, null where missing; sensitive texts that look alike are one value."""
    if attribute.kind is Kind.NUMBER:
        encoded = pc.add(numbers(column, attribute), 0).dictionary_encode()  # -0.0 + 0 is 0.0
    elif attribute.kind is Kind.DATE:
        encoded = ordered(column, attribute).dictionary_encode()
    else:
        encoded = texts(column, attribute)
        if attribute.role is Role.SENSITIVE:
            encoded = fold_lookalikes(encoded)
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


def fold_lookalikes(cells: pa.DictionaryArray) -> pa.DictionaryArray:
    r"""Texts that look alike become one: letters in any composition or width, with or without invisible marks.

    NFKC, then Unicode's format characters removed, NFKC again, and blanks around it removed. What is then empty is
    missing.

    >>> fold_lookalikes(pa.array(["flu", "f\u200blu", "\ufb02u ", "\u200b"]).dictionary_encode()).to_pylist()
    ['flu', 'flu', 'flu', None]
    """
    seen = pc.replace_substring_regex(pc.utf8_normalize(cells.dictionary, "NFKC"), r"\p{Cf}", "")
    plainly = pc.utf8_trim_whitespace(pc.utf8_normalize(seen, "NFKC"))
    merged = pc.if_else(pc.equal(plainly, ""), None, plainly).dictionary_encode()
    if len(merged.dictionary) == len(cells.dictionary):
        return pa.DictionaryArray.from_arrays(cells.indices, merged.dictionary)
    return pa.DictionaryArray.from_arrays(merged.indices.take(cells.indices), merged.dictionary)


def is_fixed(kind: pa.DataType) -> bool:
    """Are cells of this type equal exactly where their bits are?"""
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    return bool(pa.types.is_boolean(kind) or (is_plain and kind.bit_width in WIDTHS))


def stored_parts(column: pa.Array) -> list[Ints]:
    """The cells as integers that are equal where cells are; and which cells are there, if some are missing."""
    cells = column.indices if isinstance(column, pa.DictionaryArray) else column
    is_flag = pa.types.is_boolean(cells.type)
    bits = cells.cast(pa.uint8()) if is_flag else cells.view(WIDTHS[cells.type.bit_width])
    if not bits.null_count:
        return [bits.to_numpy()]
    return [bits.fill_null(0).to_numpy(), bits.is_valid().to_numpy(zero_copy_only=False)]


# ---- groups ----------------------------------------------------------------------------------------


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
        found = Combinations.of([column.of_row for column in columns])
        return cls(starts, found.of_line, found.n, n_rows, weight)

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
        return sum_rows(lengths, self.of_run, self.n)

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


def sum_rows(weight: Ints | None, of_row: NDArray[np.integer[Any]], n_groups: int) -> Ints:
    """How many rows each group has, where ``weight`` says how many each row stands for; exact below 2^53 rows."""
    return np.bincount(of_row, weight, minlength=n_groups).astype(np.int64)


def sum_values(values: Floats, group: Ints, n_groups: int) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(group, values, minlength=n_groups).astype(np.float64)  # of no values it is of integers


# ---- distinct combinations -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """The distinct lines of a table of numbers: one of each, and which one each line is.

    A line is looked up by a hash of its numbers, and then compared with the line that was found: the hash decides how
    fast it goes, never what is found.

    >>> known = Combinations.of([np.array([0, 1, 0]), np.array([5, 5, 5])])
    >>> known.of_line.tolist(), known.find([np.array([1, 2]), np.array([5, 5])]).tolist()
    ([0, 1, 0], [1, -1])
    """

    of_line: Ints
    known: Sequence[NDArray[np.integer[Any]]]
    hashes: Ints
    factors: Sequence[np.int64]

    @classmethod
    def of(cls, lines: Sequence[NDArray[np.integer[Any]]]) -> Combinations:
        for attempt in count():
            factors = [_factor(attempt * len(lines) + at) for at in range(len(lines))]
            hashes, of_line = np.unique(_hash_lines(lines, factors), return_inverse=True)
            one = np.empty(len(hashes), dtype=np.int64)
            one[of_line] = np.arange(len(of_line))
            found = cls(of_line, [line[one] for line in lines], hashes, factors)
            if found.n == len(of_line) or found._agree(lines, of_line).all():
                break  # no two different lines have one hash
        return found

    @property
    def n(self) -> int:
        return len(self.hashes)

    def find(self, lines: Sequence[NDArray[np.integer[Any]]]) -> Ints:
        """Which of the distinct lines each of these is; -1 where it is none of them."""
        at = pc.index_in(pa.array(_hash_lines(lines, self.factors)), value_set=pa.array(self.hashes))
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


def _hash_lines(lines: Sequence[NDArray[np.integer[Any]]], factors: Sequence[np.int64]) -> Ints:
    """The sum of each line's numbers times their factors, modulo 2^64."""
    key = np.zeros(len(lines[0]), dtype=np.int64)
    for line, factor in zip(lines, factors, strict=True):
        key += line * factor
    return key


# ---- numbers of groups -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    r"""Count, ends, mean and variance of the numbers that each line stands for.

    ``above`` is the mean less ``least``, and ``spread`` the sum of squares around the mean. Both are computed from
    differences, so that small ones between large numbers are not lost. As long as ``is_whole``, the ends are also
    exact integers. Lines without any number have zeros.

    Two sets of numbers are joined by

    .. math:: \bar x = \sum_i \frac{n_i}{n} \bar x_i, \qquad
              \sum (x - \bar x)^2 = \sum_i \Bigl( S_i + n_i (\bar x_i - \bar x)^2 \Bigr)
    """

    count: Ints
    least_whole: Ints
    most_whole: Ints
    least: Floats
    most: Floats
    mean: Floats
    above: Floats
    spread: Floats
    is_whole: bool = field(kw_only=True)

    @classmethod
    def of(cls, cells: pa.Array) -> Moments:
        """Each cell by itself."""
        is_there = cells.is_valid().to_numpy(zero_copy_only=False) if cells.null_count else True
        is_whole = not pa.types.is_floating(cells.type)
        values = cells.cast(pa.int64() if is_whole else pa.float64()).fill_null(0).to_numpy()
        count, zeros = np.ones(len(values), dtype=np.int64) * is_there, np.zeros(len(values))
        whole, floats = values if is_whole else zeros.astype(np.int64), values.astype(np.float64)
        return cls(count, whole, whole, floats, floats, floats, zeros, zeros, is_whole=is_whole)

    @property
    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the greatest number."""
        return (self.least_whole, self.most_whole) if self.is_whole else (self.least, self.most)

    @property
    def variance(self) -> Floats:
        """The population variance; 0 of no number, infinite where differences outgrow a float."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self.above), self.spread / np.maximum(self.count, 1), np.inf)

    def join(self, of_line: Ints, n: int) -> Moments:
        """The moments of ``n`` groups, where ``of_line`` is the group of each line."""
        has_any = np.flatnonzero(self.count > 0)
        at, part = of_line[has_any], self._take(has_any)
        count = sum_rows(part.count, at, n)
        low_whole, low = (_extreme(np.minimum, ends, at, n) for ends in (part.least_whole, part.least))
        high_whole, high = (_extreme(np.maximum, ends, at, n) for ends in (part.most_whole, part.most))
        with np.errstate(over="ignore", invalid="ignore"):
            shift = part.least - low[at]
            if self.is_whole:  # modulo 2^64, hence right as unsigned
                shift = (part.least_whole - low_whole[at]).view(np.uint64).astype(np.float64)
            share = part.count / count[at]
            mean = sum_values(part.mean * share, at, n)
            own = part.above + shift
            above = sum_values(own * share, at, n)
            spread = sum_values(part.spread + part.count * (own - above[at]) ** 2, at, n)
        return Moments(count, low_whole, high_whole, low, high, mean, above, spread, is_whole=self.is_whole)

    def _take(self, lines: Ints) -> Moments:
        return Moments(*(column[lines] for column in self.columns()), is_whole=self.is_whole)

    def columns(self) -> list[NDArray[Any]]:
        """The numbers of all lines, in the order of the fields."""
        ends = [self.least_whole, self.most_whole, self.least, self.most]
        return [self.count, *ends, self.mean, self.above, self.spread]


def _extreme(which: Any, values: NDArray[Any], at: Ints, n: int) -> NDArray[Any]:
    """The least or greatest value of each group; 0 where there is none."""
    out = np.zeros(n, dtype=values.dtype)
    if not len(at):
        return out
    if (np.diff(at) >= 0).all():
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        out[at[starts]] = which.reduceat(values, starts)
        return out
    out[at] = values  # any value of the group, to begin with
    which.at(out, at, values)
    return out


# ---- rows with their groups ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class WholeColumn:
    """The distinct values of a column of all rows, null for missing ones, and how many rows have each."""

    values: pa.Array
    count: Ints

    @property
    def n_rows(self) -> int:
        return int(self.count.sum())


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Published rows with their groups; a row of ``source`` may stand for several that are alike."""

    source: Source
    groups: Groups
    cells: Mapping[str, pa.DictionaryArray] = field(default_factory=dict)
    """Of each column that tells groups apart, the cell of each group as it is stored."""
    moments: Mapping[str, Moments] = field(default_factory=dict)
    """Of columns of numbers that are not in ``source`` any more: their moments, group by group."""
    whole: Mapping[str, WholeColumn] = field(default_factory=dict)
    """The columns in which groups are compared with the whole table."""

    @classmethod
    def of(cls, source: Source, names: Sequence[str], weight: Ints | None = None) -> GroupedRows:
        """Group rows by the columns of these names; ``weight`` says how many rows each stands for, if not one."""
        columns = {name: source.column(name) for name in names}
        starts, n_rows = _run_starts(list(columns.values()))
        cells = {
            name: as_stored(_take_rows(column, starts), Attribute(name, Role.OTHER))
            for name, column in columns.items()
        }
        groups = Groups.of_runs(starts, n_rows, map(with_missing, cells.values()), weight)
        one_run = pa.array(groups.one_run)
        return cls(source, groups, {name: column.take(one_run) for name, column in cells.items()})

    def labels(self, name: str) -> pa.DictionaryArray:
        """The cell of each group in a column that tells groups apart, as text."""
        known = self.cells[name]
        if pa.types.is_string(known.type.value_type):
            return known
        return labels_of(self.source.column(name).take(pa.array(self.groups.one_row)), name)

    def cells_of_groups(self) -> pa.Table:
        """The cell of each group in every column that tells groups apart, with the values that are stored."""
        return pa.table(
            {
                name: cells
                if pa.types.is_string(cells.type.value_type)
                else self.source.column(name).take(pa.array(self.groups.one_row))
                for name, cells in self.cells.items()
            }
        )


def _run_starts(columns: Sequence[pa.ChunkedArray]) -> tuple[Ints, int]:
    """Where stretches of rows begin that are stored alike in every column, and how many rows there are.

    Rows in order of their groups form few stretches. Where they are many, each row is one of its own.
    """
    n_rows = len(columns[0])
    differs = np.zeros(n_rows, dtype=np.bool_)
    differs[:1] = True
    for column in columns:
        if not (pa.types.is_dictionary(column.type) or is_fixed(column.type)):
            return np.arange(n_rows), n_rows
        begin = 0
        for chunk in column.chunks:
            here = differs[begin : begin + len(chunk)]
            here[:1] = True  # what is stored before has another dictionary
            for part in stored_parts(chunk):
                here[1:] |= part[1:] != part[:-1]
            begin += len(chunk)
    starts = np.flatnonzero(differs)
    return (starts if 2 * len(starts) < n_rows else np.arange(n_rows)), n_rows


def _take_rows(column: pa.ChunkedArray, rows: Ints) -> pa.ChunkedArray:
    """These rows of a column, in ascending order; chunks keep their dictionaries."""
    if len(rows) == len(column):
        return column
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    within = np.split(rows, np.searchsorted(rows, ends[:-1]))
    parts = zip(column.chunks, ends, within, strict=True)
    taken = [chunk.take(pa.array(at - (end - len(chunk)))) for chunk, end, at in parts]
    return pa.chunked_array(taken, column.type)
