r"""Published rows of any number, in portions that fit in memory and hold whole groups.

The rows are read once, batch by batch, and condensed: rows that agree in everything that is judged become one
*line*, which says how many rows it stands for, and numbers of which only ends, means and variances are judged
become those (:class:`Moments`). A release in order of its groups is condensed batch by batch to little more
than its groups. Lines that do not fit in memory are divided by a hash of their cells, written to files, and
condensed and judged file by file.

A group is never divided: its rows agree in every cell that tells groups apart, so they have one hash. And a
collision does no harm: groups of one hash come into one portion, and are told apart there cell by cell. The
hash decides where a group is judged, never what a group is. Its key is that of Python's own hash of texts, so
nobody can make cells that all have the same.

What does not fit even so: one group with more distinct sensitive values than memory holds. It is judged in
memory nevertheless.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError
from sfumato.policy.schema import Attribute, Role
from sfumato.table.cells import UnreadableCells, as_stored, numbers, texts
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.write import trim
from sfumato.verify.groups import Codes, Groups, cells_of, group, joint, labels_of, summed, with_missing

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARE = 8
"""Of the memory, one part in so many holds lines; judging them takes the rest."""

FEWEST_ROWS, MOST_ROWS = 1 << 10, 1 << 18
N_FILES = 64
DEEPEST = 5
"""How often lines that do not fit are divided again."""

WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
ODD = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)
MISSING = np.int64(-0x5FA1D2)


# ---- numbers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    r"""Of the numbers that each line stands for: how many are there, their ends, mean and variance.

    ``above`` is the mean over ``least``, and ``spread`` the sum of squares around the mean; both are of
    differences, which keep small ones between large numbers. As long as ``is_whole``, the ends are also exact
    integers. Lines of no number have zeros.

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

    def joined(self, of_line: Ints, n: int) -> Moments:
        """Those of all lines of a group together, group by group."""
        has_any = np.flatnonzero(self.count > 0)
        at, part = of_line[has_any], self._take(has_any)
        count = summed(part.count, at, n)
        low_whole, low = (_extreme(np.minimum, ends, at, n) for ends in (part.least_whole, part.least))
        high_whole, high = (_extreme(np.maximum, ends, at, n) for ends in (part.most_whole, part.most))
        with np.errstate(over="ignore", invalid="ignore"):
            shift = part.least - low[at]
            if self.is_whole:  # modulo 2^64, hence right as unsigned
                shift = (part.least_whole - low_whole[at]).view(np.uint64).astype(np.float64)
            share = part.count / count[at]
            mean = _sums(part.mean * share, at, n)
            own = part.above + shift
            above = _sums(own * share, at, n)
            spread = _sums(part.spread + part.count * (own - above[at]) ** 2, at, n)
        return Moments(count, low_whole, high_whole, low, high, mean, above, spread, is_whole=self.is_whole)

    def _take(self, lines: Ints) -> Moments:
        return Moments(*(column[lines] for column in self.columns()), is_whole=self.is_whole)

    def columns(self) -> list[NDArray[Any]]:
        ends = [self.least_whole, self.most_whole, self.least, self.most]
        return [self.count, *ends, self.mean, self.above, self.spread]


N_MOMENTS = 8


def _sums(values: Floats, at: Ints, n: int) -> Floats:
    return np.bincount(at, values, minlength=n).astype(np.float64)  # of no values it is of integers


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


# ---- lines -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """What is judged: cells that tell groups apart, values that are told apart within them, and numbers."""

    cells: Sequence[str]
    values: Sequence[str]
    numbers: Sequence[Attribute]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.keys, *(attribute.name for attribute in self.numbers)]))

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys([*self.cells, *self.values]))


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Rows that agree in every key, as one line each (or several): the keys, and what else is known."""

    keys: pa.Table
    n_rows: Ints
    moments: dict[str, Moments] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    @property
    def n_bytes(self) -> int:
        beside = 8 * len(self) * (1 + N_MOMENTS * len(self.moments))
        return int(self.keys.nbytes) + beside

    def condensed(self) -> Lines:
        """One line for all that agree in their keys."""
        keys = trim(self.keys)  # all chunks in one
        found = group(
            cells_of(column, name) for name, column in zip(keys.column_names, keys.columns, strict=True)
        )
        return Lines(
            keys.take(pa.array(found.one_row)),
            summed(self.n_rows, found.of_row, found.n),
            {name: moments.joined(found.of_row, found.n) for name, moments in self.moments.items()},
        )

    def to_table(self) -> pa.Table:
        """All of it by column, as it is written to a file."""
        arrays = [self.n_rows, *(column for m in self.moments.values() for column in m.columns())]
        columns = [*self.keys.columns, *map(pa.array, arrays)]
        return pa.Table.from_arrays(columns, names=[str(at) for at in range(len(columns))])

    @classmethod
    def of_table(cls, table: pa.Table, judged: Judged, is_whole: dict[str, bool]) -> Lines:
        n_keys = len(judged.keys)
        keys = pa.Table.from_arrays(table.columns[:n_keys], names=judged.keys)
        arrays = [column.to_numpy() for column in table.columns[n_keys:]]
        moments = {
            attribute.name: Moments(
                *arrays[1 + N_MOMENTS * at : 1 + N_MOMENTS * (at + 1)], is_whole=is_whole[attribute.name]
            )
            for at, attribute in enumerate(judged.numbers)
        }
        return cls(keys, arrays[0], moments)


def lines_of(batch: pa.RecordBatch, judged: Judged) -> Lines:
    """The rows of a batch. Neighbours are compared, not cells looked up: rows in order of groups are fast."""
    columns = {name: _comparable(batch.column(name), name) for name in judged.keys}
    differs = np.zeros(batch.num_rows, dtype=np.bool_)
    differs[:1] = True
    for name in judged.cells:
        for part in _parts(columns[name]):
            differs[1:] |= part[1:] != part[:-1]
    starts = np.flatnonzero(differs)
    lengths = np.diff(starts, append=batch.num_rows)
    values = [name for name in judged.values if name not in judged.cells]
    if values:
        run = Codes(np.repeat(np.arange(len(starts)), lengths), len(starts))
        of_row, n = joint([run, *(_coded(columns[name]) for name in values)])
        one = np.empty(n, dtype=np.int64)
        one[of_row] = np.arange(len(of_row))
        size = np.bincount(of_row, minlength=n)
    else:
        one, size, n = starts, lengths, len(starts)
        of_row = np.repeat(np.arange(n), lengths) if judged.numbers else starts
    keys = pa.table(columns).take(pa.array(one))
    moments = {
        attribute.name: Moments.of(numbers(batch.column(attribute.name), attribute)).joined(of_row, n)
        for attribute in judged.numbers
    }
    return Lines(trim(keys), size.astype(np.int64), moments)


def _comparable(column: pa.Array, name: str) -> pa.Array:
    """The column: numbers and times as they are, all else as dictionaries with 32-bit indices."""
    try:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # Parquet checks neither text nor indices
            if not _is_text(column.type.value_type):
                return _comparable(column.dictionary_decode(), name)
            return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary)
        if _is_fixed(column.type):
            return column
        column.validate(full=True)
        return (column if _is_text(column.type) else column.cast(pa.string())).dictionary_encode()
    except pa.ArrowException:
        texts(column, Attribute(name, Role.OTHER))  # which says what is wrong with it
        raise TableError(f"Column {name!r} is damaged; make or copy it again.") from None


def _is_text(kind: pa.DataType) -> bool:
    words = ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{word}")(kind) for word in words)


def _is_fixed(kind: pa.DataType) -> bool:
    """Whether cells are equal where their bits are."""
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    return bool(is_plain and kind.bit_width in WIDTHS)


def _parts(column: pa.Array) -> list[Ints]:
    """Integers that agree where cells do, and which cells are there unless all are."""
    cells = column.indices if isinstance(column, pa.DictionaryArray) else column
    bits = cells.view(WIDTHS[cells.type.bit_width])
    if not bits.null_count:
        return [bits.to_numpy()]
    return [bits.fill_null(0).to_numpy(), bits.is_valid().to_numpy(zero_copy_only=False)]


def _coded(column: pa.Array) -> Codes:
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    n = len(encoded.dictionary)
    return Codes(pc.fill_null(encoded.indices, n).to_numpy(zero_copy_only=False), n + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Published rows, or lines of them, with their groups.

    ``moments`` are those of each group, of the columns that were condensed; these are not in ``source``. ``cells`` are
    those that tell groups apart, as they are stored, one of each group.
    """

    source: Source
    groups: Groups
    moments: Mapping[str, Moments] = field(default_factory=dict)
    cells: Mapping[str, pa.DictionaryArray] = field(default_factory=dict)
    whole: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    """Of columns that groups are compared in with the whole table: the rows of each value there, None for missing."""

    @classmethod
    def of_rows(cls, source: Source, judged: Judged, weight: Ints | None = None) -> Evidence:
        columns = {name: source.column(name) for name in judged.cells}
        starts, n_rows = _run_starts(list(columns.values()))
        cells = {
            name: as_stored(_at(column, starts), Attribute(name, Role.OTHER))
            for name, column in columns.items()
        }
        groups = Groups.of_runs(starts, n_rows, map(with_missing, cells.values()), weight)
        one_run = pa.array(groups.one_run)
        return cls(source, groups, {}, {name: column.take(one_run) for name, column in cells.items()})

    @classmethod
    def of(cls, lines: Lines, judged: Judged) -> Evidence:
        found = cls.of_rows(open_table(lines.keys), judged, lines.n_rows)
        of_row, n = found.groups.of_row, found.groups.n
        moments = {name: item.joined(of_row, n) for name, item in lines.moments.items()}
        return replace(found, moments=moments)

    def labels(self, name: str) -> pa.DictionaryArray:
        """What each group has in a column that tells them apart, as it stands; of what is stored as no text, as text."""
        known = self.cells[name]
        if pa.types.is_string(known.type.value_type):
            return known
        return labels_of(self.source.column(name).take(pa.array(self.groups.one_row)), name)


def _run_starts(columns: Sequence[pa.ChunkedArray]) -> tuple[Ints, int]:
    """Where stretches of rows begin that are stored in the same way in every column, and how many rows there are.

    Rows in order of groups have few. Of many nothing is won: then every row counts as one.
    """
    n_rows = len(columns[0])
    differs = np.zeros(n_rows, dtype=np.bool_)
    differs[:1] = True
    for column in columns:
        if not (pa.types.is_dictionary(column.type) or _is_fixed(column.type)):
            return np.arange(n_rows), n_rows
        begin = 0
        for chunk in column.chunks:
            here = differs[begin : begin + len(chunk)]
            here[:1] = True  # what is stored before has another dictionary
            for part in _parts(chunk):
                here[1:] |= part[1:] != part[:-1]
            begin += len(chunk)
    starts = np.flatnonzero(differs)
    return (starts if 2 * len(starts) < n_rows else np.arange(n_rows)), n_rows


def _at(column: pa.ChunkedArray, rows: Ints) -> pa.ChunkedArray:
    """These rows of a column, in ascending order; chunks keep their dictionaries."""
    if len(rows) == len(column):
        return column
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    within = np.split(rows, np.searchsorted(rows, ends[:-1]))
    parts = zip(column.chunks, ends, within, strict=True)
    taken = [chunk.take(pa.array(at - (end - len(chunk)))) for chunk, end, at in parts]
    return pa.chunked_array(taken, column.type)


# ---- portions --------------------------------------------------------------------------------------


class Portions:
    """Collects lines and gives them back in portions of whole groups, each of about a share of ``memory``.

    Files lie in ``folder``. They have no name there, so that not even a killed run leaves any.
    """

    def __init__(self, judged: Judged, *, memory: int, folder: Path, depth: int = 0) -> None:
        self.judged, self.folder, self.depth = judged, folder, depth
        self.memory, self.most = memory, memory // SHARE
        self.is_whole = {attribute.name: True for attribute in judged.numbers}
        self._held: list[Lines] = []
        self._n_bytes = 0
        self._files: list[_File | None] = []

    @property
    def has_spilled(self) -> bool:
        return bool(self._files)

    def add(self, lines: Lines) -> None:
        self._held.append(lines)
        self._n_bytes += lines.n_bytes
        for name, moments in lines.moments.items():
            self.is_whole[name] &= moments.is_whole
        if self._n_bytes > self.most:
            self._make_room()

    def _make_room(self) -> None:
        lines = self._joined().condensed()
        self._held, self._n_bytes = [lines], lines.n_bytes
        if self._n_bytes > self.most // 2 and self.depth < DEEPEST:
            self._spill(lines)
            self._held, self._n_bytes = [], 0

    def _joined(self) -> Lines:
        """All that is held, as lines."""
        if len(self._held) == 1:
            return self._held[0]
        tables = [lines.to_table() for lines in self._held]
        return Lines.of_table(pa.concat_tables(tables), self.judged, self.is_whole)

    def _spill(self, lines: Lines) -> None:
        self._files = self._files or [None] * N_FILES
        at = hashes([lines.keys.column(name) for name in self.judged.cells], salt=self.depth) % N_FILES
        order = np.argsort(at, kind="stable")
        table = lines.to_table().take(pa.array(order))
        ends = np.cumsum(np.bincount(at.astype(np.int64), minlength=N_FILES))
        with _spilling(self.folder):
            for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                if start < end:
                    file = self._files[number] = self._files[number] or _File(self.folder, table.schema)
                    file.append(trim(table.slice(start, end - start)))

    def __iter__(self) -> Iterator[Lines]:
        """Each portion once; what is read is gone."""
        if not self._files:
            if self._held:
                yield self._joined()
            return
        if self._held:
            self._spill(self._joined().condensed())
            self._held = []
        for number, file in enumerate(self._files):
            if file is not None:
                yield from self._of_file(file)
                file.close()
                self._files[number] = None

    def _of_file(self, file: _File) -> Iterator[Lines]:
        """Lines of one file; if they are too many, divided again by another hash."""
        inner = Portions(self.judged, memory=self.memory, folder=self.folder, depth=self.depth + 1)
        inner.is_whole = dict(self.is_whole)
        try:
            with _spilling(self.folder):
                for table in file.tables():
                    inner.add(Lines.of_table(table, self.judged, self.is_whole))
            yield from inner
        finally:
            inner.close()

    def close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()
        self._files, self._held = [], []


class NoRoom(InputError):  # noqa: N818 - reads as a sentence
    """What does not fit in memory cannot be written to a file."""


@contextmanager
def _spilling(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or errno.EIO)
        raise NoRoom(
            f"What does not fit in memory cannot be written to {folder}: {why}; make room there."
        ) from None


class _File:
    """Tables in an Arrow stream, in a file without a name."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._file, schema, options=options)

    def append(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def tables(self) -> Iterator[pa.Table]:
        self._writer.close()
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            yield pa.Table.from_batches([batch])

    def close(self) -> None:
        with suppress(OSError, pa.ArrowException):  # of a full disk
            self._writer.close()
        self._file.close()


def rows_at_once(memory: int, n_columns: int) -> int:
    """Rows of a batch: enough to be fast, few enough to be a small part of the memory."""
    return int(min(max(memory // (16 * 8 * max(n_columns, 1)), FEWEST_ROWS), MOST_ROWS))


def collected(batches: Iterable[pa.RecordBatch], portions: Portions) -> int:
    """Read all batches into the portions; how many rows there are."""
    n_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        try:
            portions.add(lines_of(batch, portions.judged))
        except UnreadableCells as error:
            raise error.after(n_rows) from None
        n_rows += batch.num_rows
    return n_rows


def hashes(
    columns: Sequence[pa.ChunkedArray], *, salt: int, of_text: Callable[[Any], int] = hash
) -> NDArray[np.uint64]:
    """A number for each line, equal where all cells are equal. (That of missing, empty and NaN is one.)"""
    out = np.full(len(columns[0]), salt, dtype=np.uint64)
    for column in columns:
        parts = [_hashed(chunk, of_text) for chunk in column.chunks]
        out = (out + np.concatenate(parts)) * ODD
        out ^= out >> np.uint64(31)
    out *= MIX
    return out ^ (out >> np.uint64(29))


def _hashed(chunk: pa.Array, of_text: Callable[[Any], int]) -> NDArray[np.uint64]:
    if not _is_fixed(chunk.type):
        encoded = chunk if isinstance(chunk, pa.DictionaryArray) else chunk.dictionary_encode()
        labels = [*encoded.dictionary.to_pylist(), None]
        of_label = np.fromiter((of_text(label or "") for label in labels), np.int64, len(labels))
        at = pc.fill_null(encoded.indices, len(labels) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(of_label[at]).view(np.uint64)
    if pa.types.is_floating(chunk.type):
        chunk = pc.add(chunk.cast(pa.float64()), 0.0)  # -0.0 is 0.0
        chunk = pc.if_else(pc.is_nan(chunk), None, chunk)
    bits, *is_there = _parts(chunk)
    out = bits.astype(np.int64)
    return (np.where(is_there[0], out, MISSING) if is_there else out).view(np.uint64)
