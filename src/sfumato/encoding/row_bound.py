"""At most so many rows of each person, drawn at random: what a differentially private method reads of people.

Each row gets a random key, and a person's rows with the least keys are kept. So which rows of a person are kept depends
on that person's rows and on draws of their own, and on no other row. A row without a unit is a person of its own.

One column is read, in as many passes as memory asks for. People are told apart by 128 bits of a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS
from sfumato.policy.schema import Attribute
from sfumato.table.cells import lenient_texts
from sfumato.table.source import Source

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

DrawKeys = Callable[[NDArray[np.int64]], Words]
"""The random keys of the rows with these numbers."""

BYTES_PER_ROW = 64
"""Memory that a row takes while rows are chosen: two words of a person, a key, a number; twice while they are sorted."""

LEAST_ROWS = 1 << 10
"""Rows that are always held at once."""

LAST = np.iinfo(np.uint64).max
"""The greatest first word of a hash."""


def choose_rows(
    source: Source, attribute: Attribute, most: int, draw_keys: DrawKeys, *, memory: int | None = None
) -> Flags:
    """Which rows of a table are kept, if each person has at most ``most`` of them; ``attribute`` tells people apart.

    >>> import pyarrow as pa
    >>> from sfumato.table.opening import open_table
    >>> people = open_table(pa.table({"who": ["a", "b", "a", None, "a", None]}))
    >>> choose_rows(people, Attribute("who", role="identifier"), 2, lambda rows: rows.astype(np.uint64)).tolist()
    [True, True, True, True, False, True]
    """
    room = None if memory is None else max(memory // BYTES_PER_ROW, LEAST_ROWS)
    kept: Flags | None = None
    first, last = 0, -1
    while last < LAST:
        held = _HeldRows(first, most, room)
        is_alone = [np.zeros(0, dtype=np.bool_)]
        for people, has_unit in _read_people(source, attribute):
            held.add(people, has_unit, draw_keys)
            is_alone.append(~has_unit)
        kept = np.concatenate(is_alone) if kept is None else kept
        held.drop_surplus()
        kept[held.rows] = True
        last = held.last
        first = last + 1
    assert kept is not None
    return kept


def _read_people(source: Source, attribute: Attribute) -> Iterator[tuple[Words, Flags]]:
    """Two words (rows, 2) of a hash of each row's person, and whether the row has a unit; some rows at a time."""
    for batch in source.batches([attribute.name], rows=BLOCK_ROWS):
        cells = lenient_texts(batch.column(0), attribute)
        digests = (hashlib.blake2b(text.encode(), digest_size=16) for text in cells.dictionary.to_pylist())
        hashes = np.frombuffer(
            b"".join(one.digest() for one in digests) + bytes(16), dtype=np.uint64
        ).reshape(-1, 2)
        codes = cells.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)
        yield hashes[codes], np.asarray(codes < len(hashes) - 1)


class _HeldRows:
    """The rows of people whose hash begins with a word from ``first`` to ``last``, at most ``most`` of each.

    ``last`` falls where there is no ``room`` for so many rows: the people beyond it wait for another pass.
    """

    def __init__(self, first: int, most: int, room: int | None) -> None:
        self.first, self.last, self.most, self.room = first, int(LAST), most, room
        self.people = np.empty((0, 2), dtype=np.uint64)
        self.keys = np.empty(0, dtype=np.uint64)
        self.rows = np.empty(0, dtype=np.int64)
        self._n_read = 0
        self._parts: list[tuple[Words, Words, NDArray[np.int64]]] = []
        self._n_held = 0

    def add(self, people: Words, has_unit: Flags, draw_keys: DrawKeys) -> None:
        """Add the next rows of the table."""
        rows = np.arange(self._n_read, self._n_read + len(people))
        self._n_read += len(people)
        keys = draw_keys(rows)
        word = people[:, 0]
        is_asked = has_unit & (word >= np.uint64(self.first)) & (word <= np.uint64(self.last))
        self._parts.append((people[is_asked], keys[is_asked], rows[is_asked]))
        self._n_held += len(self._parts[-1][2])
        if self.room is not None and self._n_held > self.room:
            self.drop_surplus()
            if len(self.rows) > self.room // 2:
                self._drop_people()

    def drop_surplus(self) -> None:
        """Keep each person's rows with the least keys."""
        own = (self.people, self.keys, self.rows)
        columns = [np.concatenate(parts) for parts in zip(own, *self._parts, strict=True)]
        people, keys, _ = columns
        order = np.lexsort((keys, people[:, 1], people[:, 0]))
        at = np.arange(len(order))
        begins = np.append(True, (people[order[1:]] != people[order[:-1]]).any(axis=1))[: len(order)]
        place = at - np.maximum.accumulate(np.where(begins, at, 0)) if len(order) else at
        self._hold(columns, order[place < self.most])

    def _drop_people(self) -> None:
        """Let about half of the people wait, but not all of them."""
        word = self.people[:, 0]
        middle = int(np.partition(word, len(word) // 2)[len(word) // 2])
        self.last = middle if middle == int(word.min()) else middle - 1
        self._hold([self.people, self.keys, self.rows], np.flatnonzero(word <= np.uint64(self.last)))

    def _hold(self, columns: list[NDArray[np.generic]], kept: NDArray[np.int64]) -> None:
        self.people, self.keys, self.rows = (column[kept] for column in columns)  # type: ignore[assignment]
        self._parts, self._n_held = [], len(self.rows)


__all__ = ["DrawKeys", "choose_rows"]
