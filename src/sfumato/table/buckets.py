"""Records that wait for their turn: put into buckets in any order, taken out bucket by bucket.

What does not fit in memory is sorted by bucket and appended to one file, a *run* at a time; a bucket is then a
slice of every run. However many buckets there are, nothing of them stays in memory but where they begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.table.spill import Spill, spilling

Records = NDArray[Any]
"""A structured array."""

MOST_RUNS = 64
"""In memory, before they are made one."""


class Buckets:
    """Records of one type, in buckets that are taken in ascending order.

    A bucket that was taken is gone. ``memory`` is for what is held; sorting it takes as much again.

    >>> with Spill() as spill:
    ...     waiting = Buckets(spill, np.dtype([("x", np.int64)]), memory=16)
    ...     for bucket, x in ((1, 10), (0, 20), (1, 30), (0, 40)):
    ...         waiting.add(np.array([bucket]), np.array([(x,)], dtype=waiting.kind))
    ...     [waiting.take(bucket)["x"].tolist() for bucket in (0, 1)], waiting.n_runs
    ...     waiting.close()
    ([[20, 40], [10, 30]], 2)
    """

    def __init__(self, spill: Spill, kind: np.dtype[Any], *, memory: int) -> None:
        self.kind, self.spill = kind, spill
        self.capacity = max(memory // kind.itemsize, 1)
        self.n_runs = 0
        """How often something was written."""
        self._file: Any = None
        self._runs: list[_Run] = []
        self._fresh: list[tuple[NDArray[np.int64], Records]] = []
        self._n_fresh = 0
        self._taken = -1

    def add(self, bucket: NDArray[np.integer[Any]], records: Records) -> None:
        """Put each record into its bucket, one that was not taken yet."""
        if not len(records):
            return
        self._fresh.append((bucket.astype(np.int64), records))
        self._n_fresh += len(records)
        held = self._n_fresh + sum(run.n_left(self._taken) for run in self._runs if run.records is not None)
        if held >= self.capacity:
            self._write()

    def take(self, bucket: int) -> Records:
        """All records of a bucket."""
        parts = list(self.chunks(bucket, 1 << 62))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=self.kind)

    def chunks(self, bucket: int, most: int) -> Iterator[Records]:
        """The records of a bucket, at most so many at a time; later buckets may be added to meanwhile."""
        self._sort()
        runs, self._taken = self._runs, bucket
        self._runs = [run for run in runs if run.n_left(bucket)]
        for run in runs:
            start, end = run.place(bucket)
            for at in range(start, end, most):
                yield self._read(run, at, min(at + most, end))

    def close(self) -> None:
        """Forget everything; the spill folder removes the file."""
        if self._file is not None:
            self._file.close()
        self._runs, self._fresh, self._n_fresh = [], [], 0

    def _sort(self) -> None:
        """What came since the last time becomes a run in memory."""
        if not self._fresh:
            return
        bucket = np.concatenate([part for part, _ in self._fresh])
        records = np.concatenate([part for _, part in self._fresh])
        self._fresh, self._n_fresh = [], 0
        order = np.argsort(bucket, kind="stable")
        self._runs.append(_Run(bucket[order], records[order]))
        inside = [run for run in self._runs if run.records is not None]
        if len(inside) > MOST_RUNS:
            self._runs = [run for run in self._runs if run.records is None]
            self._runs.append(_Run(*_merged(inside, self._taken)))

    def _write(self) -> None:
        """All runs in memory become one in the file; those that lie there stay."""
        self._sort()
        inside = [run for run in self._runs if run.records is not None]
        bucket, records = _merged(inside, self._taken)
        with spilling(self.spill.folder):
            if self._file is None:
                self._file = self.spill.path("buckets").open("w+b")
            offset = self._file.seek(0, 2)
            self._file.write(records.view(np.uint8).data)
        self.spill.counters.bytes_written += records.nbytes
        self.n_runs += 1
        self._runs = [run for run in self._runs if run.records is None]
        self._runs.append(_Run(bucket, None, offset))

    def _read(self, run: _Run, start: int, end: int) -> Records:
        if run.records is not None:
            return run.records[start:end]
        out = np.empty(end - start, dtype=self.kind)
        with spilling(self.spill.folder):
            self._file.seek(run.offset + start * self.kind.itemsize)
            n_read = self._file.readinto(out.view(np.uint8).data)
            if n_read != out.nbytes:
                raise OSError(5, "cut short")
        self.spill.counters.bytes_read += out.nbytes
        return out


class _Run:
    """Records sorted by bucket: in memory, or at a place of the file."""

    def __init__(self, bucket: NDArray[np.int64], records: Records | None, offset: int = 0) -> None:
        self.bucket, self.start = np.unique(bucket, return_index=True)
        self.end = np.append(self.start[1:], len(bucket))
        self.records, self.offset = records, offset

    def place(self, bucket: int) -> tuple[int, int]:
        at = int(np.searchsorted(self.bucket, bucket))
        if at == len(self.bucket) or self.bucket[at] != bucket:
            return 0, 0
        return int(self.start[at]), int(self.end[at])

    def n_left(self, taken: int) -> int:
        """Records in buckets after this one."""
        at = int(np.searchsorted(self.bucket, taken, side="right"))
        return 0 if at == len(self.bucket) else int(self.end[-1] - self.start[at])


def _merged(runs: list[_Run], taken: int) -> tuple[NDArray[np.int64], Records]:
    """The records that are left of some runs in memory, sorted by bucket."""
    buckets, records = [], []
    for run in runs:
        assert run.records is not None
        n_left = run.n_left(taken)
        bucket = np.repeat(run.bucket, run.end - run.start)
        buckets.append(bucket[len(bucket) - n_left :])
        records.append(run.records[len(bucket) - n_left :])
    bucket, found = np.concatenate(buckets), np.concatenate(records)
    order = np.argsort(bucket, kind="stable")
    return bucket[order], found[order]
