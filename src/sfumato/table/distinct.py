"""The distinct values of a column that is seen batch by batch, in memory or, where they are too many, in a file."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.kernels.ranks import fill_ranks
from sfumato.policy.schema import Attribute
from sfumato.table.cells import TEXT, is_one_of, plain
from sfumato.table.sorted_runs import SortedRun, merge
from sfumato.table.spill import Spill, size_of, while_spilling

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_RUN = 1 << 12
"""Numbers in a run on disk, or in a block of one: below this, files are not worth their while."""

STRETCH = 1 << 21
"""Numbers of a file that are looked at before their pages are given back."""

FEW_ROWS = 1 << 12
"""Rows that are searched first for the first row of each value."""

FEW = 1 << 16
"""Values of several dictionaries that may wait before they are made one."""

NEVER = np.iinfo(np.int64).max
"""The first row of a value that no row has."""


# ---- numbers ---------------------------------------------------------------------------------------


class Numbers:
    """Distinct numbers, ascending. Beyond their share of memory they go to a file as sorted runs.

    >>> numbers = Numbers()
    >>> numbers.add(np.array([3.0, 1.0, 3.0]))
    >>> numbers.add(np.array([2.0]))
    >>> numbers.values().tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, spill: Spill | None = None, memory: int = 1 << 62) -> None:
        self.spill = spill
        self.capacity = max(memory // 32, SMALLEST_RUN)  # with copies to join and to sort them
        self._parts: list[Floats] = []
        self._held = 0
        self._runs: list[SortedRun] = []

    def add(self, values: NDArray[Any]) -> None:
        """Look at some more numbers."""
        fresh = sort_distinct(values).astype(np.float64) + 0.0  # -0.0 is 0.0
        self._hold([fresh])

    def merge(self, other: Numbers) -> None:
        """Look at the numbers of another one, whose files are then these ones' own."""
        self._runs += other._runs
        self._hold(other._parts)
        other._parts, other._runs, other._held = [], [], 0

    def _hold(self, parts: list[Floats]) -> None:
        self._parts += parts
        self._held += sum(map(len, parts))
        if self._held > self.capacity:
            self._join()
            if self._held > self.capacity // 2 and self.spill is not None:
                self._write_run(self.spill)

    @property
    def n_held(self) -> int:
        """How many are in memory, at most: some may stand there twice."""
        return self._held

    @property
    def is_large(self) -> bool:
        """Did they outgrow memory?"""
        return bool(self._runs)

    def values(self) -> Floats:
        """All of them at once."""
        self._join()
        if not self._runs:
            return self._parts[0]
        return np.concatenate(list(self.blocks()))

    def blocks(self) -> Iterator[Floats]:
        """All of them, stretch by stretch."""
        self._join()
        if not self._runs or self.spill is None:
            yield self._parts[0]
            return
        if self._held:
            self._write_run(self.spill)
        for part in merge(self._runs, max(self.capacity // len(self._runs), SMALLEST_RUN)):
            yield sort_distinct(part)

    def drop(self) -> None:
        """Remove the runs: nobody will read them again."""
        for run in self._runs:
            run.delete()
        self._parts, self._runs, self._held = [], [], 0

    def _join(self) -> None:
        whole = sort_distinct(np.concatenate(self._parts)) if self._parts else np.zeros(0)
        self._parts, self._held = [whole], len(whole)

    def _write_run(self, spill: Spill) -> None:
        run = SortedRun(spill, np.dtype(np.float64))
        run.append(self._parts[0])
        self._runs.append(run)
        spill.counters.spills += 1
        self._parts, self._held = [], 0


def sort_distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values in order.

    >>> sort_distinct(np.array([2, 1, 2])).tolist()
    [1, 2]
    """
    if len(values) == 0:
        return values
    ordered = np.sort(values)
    is_first = np.empty(len(ordered), dtype=np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


class NumberFile:
    """A file of ascending numbers, those of one column after those of another, looked at where they lie."""

    def __init__(self, spill: Spill) -> None:
        self.spill = spill
        self.path = spill.path("ranks")
        self.length = 0

    def append(self, blocks: Iterable[Floats]) -> slice:
        """Where they stand in the file."""
        start = self.length
        with while_spilling(self.spill.folder), self.path.open("ab") as file:
            for block in blocks:
                block.tofile(file)
                self.length += len(block)
        self.spill.counters.bytes_written += 8 * (self.length - start)
        return slice(start, self.length)

    def map(self) -> Floats:
        """The numbers, which stay on disk. What is written over them is seen by this map alone."""
        return np.memmap(self.path, dtype=np.float64, mode="c", shape=(self.length,))


def let_go(values: Any) -> None:
    """Give back the memory that a look at a file of numbers took; they stay where they are."""
    held = getattr(values, "_mmap", None)
    if held is not None and hasattr(mmap, "MADV_DONTNEED"):
        held.madvise(mmap.MADV_DONTNEED)


def is_mapped(values: Any) -> bool:
    """Do these numbers stay in a file?"""
    return getattr(values, "_mmap", None) is not None


def take_at(values: Floats, places: NDArray[Any]) -> Any:
    """The numbers at these places; of a file only a stretch is in memory at a time.

    >>> take_at(np.array([1.0, 2.0, 5.0]), np.array([2, 0])).tolist()
    [5.0, 1.0]
    """
    if not is_mapped(values):
        return values[places]
    flat = np.ravel(places)
    order = np.argsort(flat, kind="stable")
    ordered, found = flat[order], np.empty(len(flat))
    done = 0
    for start in range(0, len(values), STRETCH):
        stop = int(np.searchsorted(ordered, start + STRETCH))
        if stop > done:
            found[order[done:stop]] = values[start : start + STRETCH][ordered[done:stop] - start]
            let_go(values)
        done = stop
    return found.reshape(np.shape(places))


def find_places(values: Floats, keys: NDArray[Any]) -> Ints:
    """Where each key stands among ascending values that hold it, at the last of equals.

    Of a file only a stretch is in memory at a time.

    >>> find_places(np.array([1.0, 2.0, 5.0]), np.array([5, 1])).tolist()
    [2, 0]
    """
    order = np.argsort(keys)
    ordered = keys[order].astype(np.float64)
    found = np.empty(len(keys), dtype=np.int64)
    done, size = 0, STRETCH if is_mapped(values) else max(len(values), 1)
    for start in range(0, len(values), size):
        stretch = np.asarray(values[start : start + size])
        is_last = start + size >= len(values)
        stop = len(keys) if is_last else int(np.searchsorted(ordered, stretch[-1], "right"))
        fill_ranks(stretch, ordered[done:stop], found[done:stop])
        found[done:stop] += start
        done = stop
        let_go(values)
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = found
    return out


# ---- anything --------------------------------------------------------------------------------------


class Dictionary:
    """The distinct values of a column as they are stored, with the number of rows and the first row of each.

    Once all cells have been seen, values stand in the order of their first rows, whatever the batches. Those that share
    a dictionary of their own are looked up once.

    >>> words = Dictionary(Attribute("job", role="other"))
    >>> words.add(pa.array(["a", "b", None, "a"]), 0)
    >>> words.column().to_pylist(), words.count.tolist(), words.first.tolist()
    (['a', 'b', None], [2, 1, 1], [0, 1, 2])
    """

    def __init__(self, attribute: Attribute, memory: int = 1 << 62) -> None:
        self.attribute, self.memory = attribute, memory
        self.values: Any = None
        self._count: Ints = np.zeros(0, dtype=np.int64)
        self._first: Ints = np.zeros(0, dtype=np.int64)
        self.n_missing = 0
        self._first_missing = NEVER
        self._batch: _Known | None = None
        self._seen: tuple[Any, list[pa.DictionaryArray]] | None = None
        self._waiting: list[_Known] = []
        self._n_waiting = 0

    def add(self, column: Any, first_row: int) -> None:
        """Look at some more cells, which stand in the table from that row on."""
        for cells in self._cells(column):
            if self._batch is None or not self._batch.has(cells.dictionary):
                self._set_aside()
                self._batch = _Known(cells.dictionary)
            indices = cells.indices
            if indices.null_count:
                if first_row < self._first_missing:
                    first_missing = first_row + int(pc.index(indices.is_null(), True).as_py())
                    self._first_missing = min(self._first_missing, first_missing)
                self.n_missing += indices.null_count
            self._batch.add(indices, first_row)
            first_row += len(cells)

    def merge(self, other: Dictionary) -> None:
        """Look at the cells that another one has seen."""
        self._set_aside()
        other._set_aside()
        known = [] if other.values is None else [_Known(other.values, other._count, other._first)]
        for each in (*known, *other._waiting):
            self._wait(each)
        self.n_missing += other.n_missing
        self._first_missing = min(self._first_missing, other._first_missing)

    def _cells(self, column: Any) -> list[pa.DictionaryArray]:
        """A column by dictionaries; made once if the same one is added and then encoded."""
        if self._seen is None or self._seen[0] is not column:
            stored = plain(column, self.attribute)
            if is_one_of(stored.type, *TEXT):
                stored = stored.dictionary_encode()  # one dictionary for all chunks
            self._seen = column, [_with_dictionary(chunk) for chunk in stored.chunks]
        return self._seen[1]

    def _set_aside(self) -> None:
        """Let the values of the current dictionary wait: cells of another one come."""
        if self._batch is None:
            return
        known, self._batch = self._batch.drop_unused(), None
        self._wait(known)

    def _wait(self, known: _Known) -> None:
        self._waiting.append(known)
        self._n_waiting += len(known.values)
        if self._n_waiting > max(FEW, len(self._count)):
            self._join()

    def _join(self) -> None:
        """One dictionary of the known values and those that wait.

        As many wait as are known, so that all of this takes about twice the work of once.
        """
        known = [] if self.values is None else [self.values]
        count = np.concatenate([self._count, *(each.count for each in self._waiting)])
        first = np.concatenate([self._first, *(each.first for each in self._waiting)])
        chunks = [*known, *(each.values for each in self._waiting)]
        chunks = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
        encoded = pa.chunked_array(chunks, chunks[0].type).dictionary_encode()
        encoded = encoded.combine_chunks() if encoded.num_chunks else chunks[0].dictionary_encode()
        encoded = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.chunk(0)
        place = encoded.indices.to_numpy()
        self.values = encoded.dictionary
        self._count = np.zeros(len(self.values), dtype=np.int64)
        np.add.at(self._count, place, count)
        self._first = np.full(len(self.values), NEVER)
        np.minimum.at(self._first, place, first)
        self._waiting, self._n_waiting = [], 0
        if self.held > self.memory:
            raise self.too_large(self.memory)

    @property
    def held(self) -> int:
        """Bytes of the values; what they become in Python weighs more than they do here."""
        return 0 if self.values is None else self.values.nbytes + 100 * len(self.values)

    def too_large(self, memory: int) -> InputError:
        """What to say if they take more memory than that."""
        return InputError(
            f"Column {self.attribute.name!r} has over {len(self._count):,} different values, too many for a "
            f"dictionary in its share of the memory ({size_of(memory)}); allow at least "
            f"{1 + self.held / memory:.0f} times as much --memory, drop the column, or declare it a number."
        )

    def finish(self) -> None:
        """All cells have been seen."""
        self._set_aside()
        if self._waiting:
            self._join()
        if self.values is None:
            self.values = pa.nulls(0)
        if (self._first[1:] < self._first[:-1]).any():
            order = np.argsort(self._first)
            self.values = self.values.take(pa.array(order))
            self._count, self._first = self._count[order], self._first[order]

    def column(self) -> pa.ChunkedArray:
        """The values as a column, with a missing cell at the end if any cell is missing."""
        self.finish()
        missing = [pa.nulls(1, self.values.type)] if self.n_missing else []
        return pa.chunked_array([self.values, *missing], self.values.type)

    @property
    def count(self) -> Ints:
        """How many rows have each cell of ``column``."""
        return np.append(self._count, [self.n_missing] if self.n_missing else []).astype(np.int64)

    @property
    def first(self) -> Ints:
        """The first row that has each cell of ``column``."""
        return np.append(self._first, [self._first_missing] if self.n_missing else []).astype(np.int64)

    def codes(self, column: Any, code: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The code of each cell, where ``code`` is that of each cell of ``column``."""
        # the last one is that of missing
        known = np.append(code, np.uint32(0)) if self.n_missing == 0 else code
        found = [self._codes(cells, known) for cells in self._cells(column)]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, dtype=np.uint32), *found])

    def places(self, column: pa.Array) -> pa.Array:
        """The place of each cell among the values; null is missing."""
        cells = _with_dictionary(column)
        return pa.array(self._place(cells.dictionary)).take(cells.indices)

    def _codes(self, cells: pa.DictionaryArray, known: NDArray[np.uint32]) -> NDArray[np.uint32]:
        table = np.append(known[self._place(cells.dictionary)], known[-1])
        indices = cells.indices.fill_null(len(table) - 1) if cells.indices.null_count else cells.indices
        return np.asarray(table[indices.to_numpy()])

    def _place(self, dictionary: pa.Array) -> NDArray[np.int32]:
        """Where the values of a batch's own dictionary stand; -1 for null, and for one that no row may have."""
        if self._batch is None or not self._batch.has(dictionary):
            self._batch = _Known(dictionary)
            found = pc.index_in(dictionary, value_set=self.values)
            self._batch.place = found.fill_null(-1).to_numpy()
        return self._batch.place


class _Known:
    """A dictionary of some batches, with the number of rows and the first row of each value."""

    def __init__(self, values: Any, count: Ints | None = None, first: Ints | None = None) -> None:
        self.values = values
        self.count: Ints = np.zeros(len(values), dtype=np.int64) if count is None else count
        self.first: Ints = np.full(len(values), NEVER) if first is None else first
        self.place: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def has(self, dictionary: Any) -> bool:
        """Is this the same dictionary? It is held here, so that no other can have its addresses in memory."""
        return len(dictionary) == len(self.values) and _address(dictionary) == _address(self.values)

    def add(self, indices: Any, first_row: int) -> None:
        at = (indices.fill_null(len(self.values)) if indices.null_count else indices).to_numpy()
        count = np.bincount(at, minlength=len(self.values))[: len(self.values)]
        is_new = (self.first > first_row) & (count > 0)
        start, size = 0, FEW_ROWS
        while is_new.any():  # most values turn up among the first rows
            part = at[start : start + size]
            first = np.full(len(self.values) + 1, -1, dtype=np.int64)
            first[part[::-1]] = np.arange(start + len(part) - 1, start - 1, -1)
            is_found = is_new & (first[:-1] >= 0)
            self.first[is_found] = np.minimum(self.first[is_found], first_row + first[:-1][is_found])
            is_new &= ~is_found
            start, size = start + size, 4 * size
        self.count += count

    def drop_unused(self) -> _Known:
        """Without values that no row has."""
        is_used = self.count > 0
        if is_used.all():
            return self
        return _Known(self.values.filter(pa.array(is_used)), self.count[is_used], self.first[is_used])


def _address(values: Any) -> tuple[int, ...]:
    """Where an Arrow array is in memory."""
    return (values.offset, *(0 if buffer is None else buffer.address for buffer in values.buffers()))


def _with_dictionary(chunk: pa.Array) -> pa.DictionaryArray:
    """The same cells by a dictionary without nulls; a column that has no type, since all is missing, as text."""
    kind = chunk.type.value_type if isinstance(chunk, pa.DictionaryArray) else chunk.type
    if pa.types.is_null(kind):
        return pa.nulls(len(chunk), pa.string()).dictionary_encode()
    if not isinstance(chunk, pa.DictionaryArray):
        return chunk.dictionary_encode()
    return chunk.dictionary_decode().dictionary_encode() if chunk.dictionary.null_count else chunk
