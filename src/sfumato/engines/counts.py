"""Counts by key, in bounded memory: one pass over the rows, however many keys there are.

A key is a number: a code, or a code with a class or an id. It has words: its rows, and perhaps sums over them. If the
words of all possible keys fit in the room that counts are given, they stand in a table. Otherwise keys are gathered,
sorted and added up whenever the room is full, and written as a sorted run; runs are merged while they are walked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.counts import add_rows, add_up_rows, add_up_words, add_words, append_places
from sfumato.table.sorted_runs import SortedRun, merge
from sfumato.table.spill import Spill

Keys = NDArray[np.uint64]
Words = NDArray[np.int64]
Entries = tuple[Keys, Words]

STEP = 1 << 20
"""Keys that are looked at in one go where they are in memory."""

FEWEST = 64
"""Keys that are sorted, and records of a run that are read, at once, however little room there is."""

MOST_RUNS = 32
"""Sorted runs that are merged at once."""


class Counts(ABC):
    """The words of each key, added up.

    The first word counts rows: only keys that have rows are there. ``add`` and ``merge`` may come in any order.

    >>> counts = Counts.new(1000, room=0, spill=None)
    >>> counts.add(np.array([7, 3, 7], dtype=np.uint64))
    >>> [(keys.tolist(), words[:, 0].tolist()) for keys, words in counts.chunks()]
    [([3, 7], [1, 2])]
    """

    def __init__(self, n_keys: int, n_words: int, n_bytes: int) -> None:
        self.n_keys, self.n_words = n_keys, n_words
        self.n_bytes = n_bytes
        """Memory that is held at most."""

    @staticmethod
    def new(n_keys: int, *, n_words: int = 1, room: int, spill: Spill | None) -> Counts:
        """Counts of the keys below ``n_keys``, of which there are none yet, in ``room`` bytes of memory.

        Without a ``spill`` folder for sorted runs, keys that do not fit take as much memory as they need.
        """
        if DenseCounts.bytes_of(n_keys, n_words) <= room:
            return DenseCounts(n_keys, n_words)
        return SortedCounts(n_keys, n_words, room, spill)

    @abstractmethod
    def add(self, keys: Keys, words: Words | None = None) -> None:
        """Add words (n, words) to those of their keys; without words each key counts one row."""

    def merge(self, other: Counts) -> None:
        """Add what other counts of the same keys have."""
        for keys, words in other.chunks():
            self.add(keys, words)

    @abstractmethod
    def chunks(self, first: int = 0, last: int | None = None, *, together: int = 1) -> Iterator[Entries]:
        """The keys from ``first`` up to ``last``, ascending and each once, with their words.

        Keys of one quotient by ``together`` are in one chunk. Counts may be walked as often as one likes.
        """

    @abstractmethod
    def join(self) -> None:
        """Prepare to be walked often, or in small parts: all rows have been added."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the files: nobody will walk these counts again."""


class DenseCounts(Counts):
    """Counts in a table: a line of words for every possible key. Kernels may add to ``table`` themselves."""

    def __init__(self, n_keys: int, n_words: int) -> None:
        super().__init__(n_keys, n_words, self.bytes_of(n_keys, n_words))
        self.table: Words = np.zeros((n_keys, n_words), dtype=np.int64)

    @staticmethod
    def bytes_of(n_keys: int, n_words: int) -> int:
        return 8 * n_keys * n_words

    def add(self, keys: Keys, words: Words | None = None) -> None:
        if words is None:
            add_rows(np.ascontiguousarray(keys), self.table)
        else:
            add_words(np.ascontiguousarray(keys), np.ascontiguousarray(words), self.table)

    def merge(self, other: Counts) -> None:
        if isinstance(other, DenseCounts):
            self.table += other.table
        else:
            super().merge(other)

    def chunks(self, first: int = 0, last: int | None = None, *, together: int = 1) -> Iterator[Entries]:
        last = self.n_keys if last is None else last
        step = max(STEP // together, 1) * together
        for begin in range(first // together * together, last, step):
            low = max(begin, first)
            lines = self.table[low : min(begin + step, last)]
            found = np.flatnonzero(lines[:, 0])
            if len(found):
                yield (found + low).astype(np.uint64), lines[found]

    def join(self) -> None:
        """A table is as it should be."""

    def discard(self) -> None:
        """There are no files."""


class SortedCounts(Counts):
    """Counts as sorted runs of keys: files of ``spill``, or arrays in memory."""

    def __init__(self, n_keys: int, n_words: int, room: int, spill: Spill | None) -> None:
        super().__init__(n_keys, n_words, room)
        self.spill = spill
        self.kind = np.dtype([("key", np.uint64), ("words", np.int64, (n_words,))])
        self._key_bits = max(n_keys - 1, 1).bit_length()
        self._fresh = _FreshKeys(n_words)
        self._sorted: Entries = np.zeros(0, dtype=np.uint64), np.zeros((0, n_words), dtype=np.int64)
        """What was added up and is in memory."""
        self._runs: list[SortedRun] = []

    def add(self, keys: Keys, words: Words | None = None) -> None:
        if (words is None) != (self._fresh.words is None):
            self._end_run()  # what has words takes more room
        most = None if self.spill is None else self._most(words)
        at = 0
        while at < len(keys):
            n = len(keys) - at if most is None else min(most - self._fresh.n, len(keys) - at)
            self._fresh.append(keys[at : at + n], None if words is None else words[at : at + n], most)
            at += n
            if at < len(keys):
                self._end_run()

    def chunks(self, first: int = 0, last: int | None = None, *, together: int = 1) -> Iterator[Entries]:
        last = self.n_keys if last is None else last
        if self._runs:
            self._end_run()
            return keep_together(self._merge_runs(first, last), together)
        self._settle()
        return slice_sorted(self._sorted, first, last, together)

    def __getstate__(self) -> dict[str, Any]:
        """On its way to be merged: what was gathered is added up, so that it takes no more than its keys."""
        self._settle()
        return self.__dict__

    def join(self) -> None:
        """Merge the runs into one; into memory, if it fits there."""
        if not self._runs:
            return
        self._end_run()
        self._write_one_run()
        (run,) = self._runs
        if run.n_bytes <= self.n_bytes:
            self._sorted = _unpack(run.read(0, run.n))
            self.discard()

    def discard(self) -> None:
        for run in self._runs:
            run.delete()
        self._runs = []

    def _most(self, words: Words | None) -> int:
        """Keys that can be gathered before they are added up: they, their words, and the words of their sums."""
        per_key = 16 if words is None else 8 + 16 * self.n_words
        if words is not None and not self._packs(self.n_bytes // per_key):
            per_key += 16 + 8 * self.n_words  # they are put in order by a list of places
        return max(self.n_bytes // per_key, FEWEST)

    def _packs(self, n: int) -> bool:
        """Is there room for the place of each of ``n`` keys behind the key, in one number?"""
        return self._key_bits + max(n - 1, 1).bit_length() <= 64

    def _settle(self) -> None:
        """Add up what was gathered, together with what was added up before."""
        if self._fresh.n == 0:
            return
        keys, words = self._add_up(*self._fresh.take())
        if len(self._sorted[0]):
            pairs = zip(self._sorted, (keys, words), strict=True)
            keys, words = self._add_up(*(np.concatenate(pair) for pair in pairs))
        self._sorted = keys, words

    def _add_up(self, keys: Keys, words: Words | None) -> Entries:
        """Each key once, in order; ``keys`` are overwritten."""
        out = np.empty((len(keys), self.n_words), dtype=np.int64)
        if words is None:
            keys.sort()
            n = add_up_rows(keys, out)
        elif self._packs(len(keys)):
            bits = max(len(keys) - 1, 1).bit_length()
            append_places(keys, bits)
            keys.sort()
            n = add_up_words(keys, bits, words, out)
        else:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            n = add_up_words(keys, 0, words[order], out)
        is_short = 2 * n < len(keys)
        return (keys[:n].copy(), out[:n].copy()) if is_short else (keys[:n], out[:n])

    def _end_run(self) -> None:
        """Write what is in memory to a file, if there may be files."""
        if self.spill is None:
            self._settle()
            return
        for entries in (self._sorted, self._add_up(*self._fresh.take())):
            if len(entries[0]):
                run = SortedRun(self.spill, self.kind, "counts")
                for keys, words in slice_sorted(entries, 0, self.n_keys, 1):
                    run.append(self._pack(keys, words))
                self._runs.append(run)
        self._sorted = self._sorted[0][:0], self._sorted[1][:0]
        if len(self._runs) >= MOST_RUNS:
            self._write_one_run()

    def _write_one_run(self) -> None:
        assert self.spill is not None
        if len(self._runs) > 1:
            joined = SortedRun(self.spill, self.kind, "counts")
            for keys, words in self._merge_runs(0, self.n_keys):
                joined.append(self._pack(keys, words))
            self.discard()
            self._runs = [joined]

    def _merge_runs(self, first: int, last: int) -> Iterator[Entries]:
        """Keys of all runs; the files are read once."""
        per_record = 3 * self.kind.itemsize + 16 + 8 * self.n_words
        most = max(self.n_bytes // per_record // len(self._runs), FEWEST)
        for records in merge(self._runs, most, between=(np.uint64(first), np.uint64(last))):
            keys, words = _unpack(records)
            if len(self._runs) > 1:
                keys, words = self._add_up(keys, words)
            begin, end = np.searchsorted(keys, np.array([first, last], dtype=np.uint64))
            if begin < end:
                yield keys[begin:end], words[begin:end]

    def _pack(self, keys: Keys, words: Words) -> NDArray[Any]:
        out = np.empty(len(keys), dtype=self.kind)
        out["key"], out["words"] = keys, words
        return out


class _FreshKeys:
    """Keys and words as they came, in arrays that grow. Without words each key is one row."""

    def __init__(self, n_words: int) -> None:
        self.n, self.n_words = 0, n_words
        self.keys: Keys = np.empty(0, dtype=np.uint64)
        self.words: Words | None = None

    def append(self, keys: Keys, words: Words | None, most: int | None) -> None:
        """Add some; there will be no more than ``most`` altogether."""
        end = self.n + len(keys)
        if end > len(self.keys):
            size = max(end, 2 * len(self.keys)) if most is None else most
            self.keys = _grow(self.keys, (size,))
            if words is not None:
                held = np.empty((0, self.n_words), dtype=np.int64) if self.words is None else self.words
                self.words = _grow(held, (size, self.n_words))
        self.keys[self.n : end] = keys
        if self.words is not None and words is not None:
            self.words[self.n : end] = words
        self.n = end

    def take(self) -> tuple[Keys, Words | None]:
        """All of them; then there are none."""
        taken = self.keys[: self.n], None if self.words is None else self.words[: self.n]
        self.n, self.keys, self.words = 0, np.empty(0, dtype=np.uint64), None
        return taken


def _grow(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    out = np.empty(shape, dtype=array.dtype)
    out[: len(array)] = array
    return out


def _unpack(records: NDArray[Any]) -> Entries:
    return records["key"].copy(), records["words"].copy()


def slice_sorted(entries: Entries, first: int, last: int, together: int) -> Iterator[Entries]:
    """Sorted keys from ``first`` up to ``last``, some at a time; those of one quotient by ``together`` in one chunk."""
    keys, words = entries
    begin, end = np.searchsorted(keys, np.array([first, last], dtype=np.uint64)).tolist()
    while begin < end:
        cut = end
        if begin + STEP < end:
            quotient = int(keys[begin + STEP]) // together
            cut = int(np.searchsorted(keys, np.uint64(quotient * together)))
            if cut <= begin:
                cut = min(int(np.searchsorted(keys, np.uint64((quotient + 1) * together))), end)
        yield keys[begin:cut], words[begin:cut]
        begin = cut


def keep_together(chunks: Iterator[Entries], together: int) -> Iterator[Entries]:
    """The same keys, cut so that those of one quotient by ``together`` are in one chunk."""
    if together == 1:
        yield from chunks
        return
    kept: Entries | None = None
    for chunk in chunks:
        keys, words = (
            chunk if kept is None else (np.concatenate(pair) for pair in zip(kept, chunk, strict=True))
        )
        whole = int(np.searchsorted(keys, keys[-1] // np.uint64(together) * np.uint64(together)))
        kept = keys[whole:], words[whole:]
        if whole:
            yield keys[:whole], words[:whole]
    if kept is not None:
        yield kept
