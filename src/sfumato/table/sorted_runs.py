"""Sorted runs: more records than memory holds, written in sorted parts and merged.

A record is a number, or has a field ``key`` that it is sorted by. Each key is once in a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.table.spill import Spill, while_spilling

Records = NDArray[Any]

MARK = 1024
"""The key of one record in so many is kept in memory, and says where in the file to look."""


class SortedRun:
    """Records in ascending order in a file, and where to find them.

    >>> with Spill() as spill:
    ...     run = SortedRun(spill, np.dtype(np.float64))
    ...     run.append(np.array([1.0, 3.0]))
    ...     run.append(np.array([7.0]))
    ...     run.n, run.read(1, 3).tolist()
    (3, [3.0, 7.0])
    """

    def __init__(self, spill: Spill, kind: np.dtype[Any], name: str = "run") -> None:
        self.spill, self.kind, self.path = spill, kind, spill.path(name)
        self.n = 0
        self._marks: list[Records] = []

    @property
    def n_bytes(self) -> int:
        return self.n * self.kind.itemsize

    def append(self, records: Records) -> None:
        """Write further records, which come after those that are there."""
        self._marks.append(keys_of(records)[-self.n % MARK :: MARK].copy())  # a view would hold all records
        self.n += len(records)
        with while_spilling(self.spill.folder), self.path.open("ab") as file:
            records.tofile(file)
        self.spill.counters.bytes_written += records.nbytes

    def read(self, begin: int, end: int) -> Records:
        """The records from ``begin`` up to ``end``, as far as there are any."""
        n = max(min(end, self.n) - begin, 0)
        found = np.fromfile(self.path, self.kind, count=n, offset=begin * self.kind.itemsize)
        self.spill.counters.bytes_read += found.nbytes
        return found

    def span(self, first: Any, last: Any) -> tuple[int, int]:
        """Where the records that have keys in [first, last) begin and end, and perhaps some others."""
        marks = np.concatenate(self._marks)
        begin = max(int(np.searchsorted(marks, first, side="right")) - 1, 0) * MARK
        return begin, min(int(np.searchsorted(marks, last)) * MARK, self.n)

    def delete(self) -> None:
        """Remove the file: nobody will read it again."""
        self.spill.remove(self.path)


def keys_of(records: Records) -> Records:
    """What records are sorted by."""
    return records["key"] if records.dtype.names else records


def merge(
    runs: Sequence[SortedRun], most: int, *, between: tuple[Any, Any] | None = None
) -> Iterator[Records]:
    """The records of all runs, part after part: those of equal keys are in one part, and later keys in later parts.

    A part is not sorted in itself. ``most`` records of each run are held at a time. With ``between`` these are the
    records that have keys from the first of two up to the second, and perhaps some others.
    """
    spans = [(0, run.n) if between is None else run.span(*between) for run in runs]
    done = [begin for begin, _ in spans]

    def read(r: int) -> Records:
        return runs[r].read(done[r], min(done[r] + most, spans[r][1]))

    heads = [read(r) for r in range(len(runs))]
    while any(len(head) for head in heads):
        # what is not at hand yet comes after the last record at hand of its run
        bound = min(keys_of(head)[-1] for head in heads if len(head))
        cuts = [int(np.searchsorted(keys_of(head), bound, side="right")) for head in heads]
        parts = [head[:cut] for head, cut in zip(heads, cuts, strict=True)]
        yield parts[0] if len(parts) == 1 else np.concatenate(parts)
        for r, cut in enumerate(cuts):
            done[r] += cut
            heads[r] = heads[r][cut:] if cut < len(heads[r]) else read(r)
