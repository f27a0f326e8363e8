"""Sorted runs in files: what is read back, and how they are merged."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.table import sorted_runs
from sfumato.table.sorted_runs import SortedRun, keys_of, merge
from sfumato.table.spill import Spill

RUNS = st.lists(st.sets(st.integers(0, 30)).map(sorted), max_size=6)
KEYED = np.dtype([("key", np.uint64), ("n", np.int64)])


def stored(spill: Spill, keys: list[int], kind: Any) -> SortedRun:
    """A run of these keys, written in two parts."""
    records = np.zeros(len(keys), dtype=kind)
    keys_of(records)[:] = keys
    run = SortedRun(spill, np.dtype(kind))
    run.append(records[: len(keys) // 3])
    run.append(records[len(keys) // 3 :])
    return run


@given(RUNS, st.integers(1, 5), st.sampled_from([np.float64, KEYED]))
def test_merged_runs_come_in_ascending_parts_and_each_record_is_read_once(given, most, kind):
    with Spill() as spill:
        runs = [stored(spill, keys, kind) for keys in given]
        parts = [keys_of(part).tolist() for part in merge(runs, most)]
        assert Counter(itertools.chain(*parts)) == Counter(itertools.chain(*given))
        for one, other in itertools.pairwise(parts):
            assert max(one) < min(other)  # so equal keys are in one part
        assert spill.counters.bytes_read == spill.counters.bytes_written == sum(run.n_bytes for run in runs)


@given(RUNS, st.integers(0, 30), st.integers(0, 30), st.integers(1, 5))
def test_records_are_found_by_their_keys(given, first, last, most):
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(sorted_runs, "MARK", 4)
        runs = [stored(spill, keys, KEYED) for keys in given]
        found = [int(key) for part in merge(runs, most, between=(first, last)) for key in part["key"]]
        wanted = [key for keys in given for key in keys if first <= key < last]
        assert Counter(key for key in found if first <= key < last) == Counter(wanted)
        assert len(found) <= len(wanted) + 2 * 4 * len(given)  # not whole files for a small part


def test_a_run_that_is_deleted_leaves_no_file():
    with Spill() as spill:
        run = stored(spill, [1, 2, 3], np.float64)
        assert run.path.exists()
        run.delete()
        assert not run.path.exists()


def test_a_run_keeps_its_marks_and_not_the_records_that_they_are_taken_from():
    with Spill() as spill:
        run = stored(spill, range(5000), np.float64)
        assert all(marks.base is None for marks in run._marks)
