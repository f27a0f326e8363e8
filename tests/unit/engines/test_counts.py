"""Counts by key: however rows are chunked, ordered and merged, and wherever they are held, they are the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import counts as counts_module
from sfumato.engines.counts import Counts, DenseCounts, SortedCounts
from sfumato.randomness import seeded
from sfumato.table.spill import Spill

DENSE, HELD, STORED = "dense", "held", "stored"
KINDS = st.sampled_from([DENSE, HELD, STORED])
Row = tuple[int, ...]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and chunks of a few keys."""
    monkeypatch.setattr(counts_module, "FEWEST", 3)
    monkeypatch.setattr(counts_module, "MOST_RUNS", 4)
    monkeypatch.setattr(counts_module, "STEP", 5)


def make(kind: str, n_keys: int, n_words: int, spill: Spill) -> Counts:
    room = 10**6 if kind == DENSE else 0
    counts = Counts.new(n_keys, n_words=n_words, room=room, spill=spill if kind == STORED else None)
    assert isinstance(counts, DenseCounts if kind == DENSE else SortedCounts)
    return counts


def naive(rows: Sequence[Row]) -> dict[int, list[int]]:
    """The obviously right version: (key, *words) added up."""
    out: dict[int, list[int]] = {}
    for key, *words in rows:
        out[key] = [a + b for a, b in zip(out.get(key, [0] * len(words)), words, strict=True)]
    return out


def add(counts: Counts, rows: Sequence[Row]) -> None:
    """With words, or as rows if each word is 1."""
    keys = np.array([row[0] for row in rows], dtype=np.uint64)
    words = np.array([row[1:] for row in rows], dtype=np.int64).reshape(len(rows), counts.n_words)
    counts.add(keys, None if counts.n_words == 1 and (words == 1).all() else words)


def spelled(chunks: Any) -> dict[int, list[int]]:
    """All entries; keys ascend over all chunks, and no chunk is empty."""
    found = [(int(key), row.tolist()) for keys, words in chunks for key, row in zip(keys, words, strict=True)]
    keys = [key for key, _ in found]
    assert keys == sorted(set(keys))
    return dict(found)


@st.composite
def cases(draw: Any) -> tuple[int, int, list[list[Row]]]:
    """(keys, words, chunks of rows); the first word counts rows."""
    n_keys = draw(st.sampled_from([1, 7, 40, 1 << 60]))
    n_words = draw(st.integers(1, 3))
    key = st.integers(0, min(n_keys, 40) - 1).map(
        lambda key: key * ((n_keys - 1) // 39) if n_keys > 40 else key
    )
    word = st.just(1) if draw(st.booleans()) else st.integers(1, 9)
    row = st.tuples(key, word, *[st.integers(-5, 5)] * (n_words - 1))
    return n_keys, n_words, draw(st.lists(st.lists(row, max_size=15), max_size=8))


@settings(max_examples=200)
@given(cases(), st.data())
def test_any_chunking_order_and_tree_of_merges_gives_the_same_counts(case: Any, data: Any):
    n_keys, n_words, chunks = case
    expected = naive([row for chunk in chunks for row in chunk])
    kinds = KINDS if n_keys <= 40 else st.sampled_from([HELD, STORED])
    with Spill() as spill:
        states = [make(data.draw(kinds), n_keys, n_words, spill)]
        for chunk in data.draw(st.permutations(chunks)):
            if data.draw(st.booleans()):
                states.append(make(data.draw(kinds), n_keys, n_words, spill))
            add(states[-1], chunk)
            if data.draw(st.booleans()):
                spelled(states[-1].chunks())  # to look at them changes nothing
        while len(states) > 1:
            i = data.draw(st.integers(0, len(states) - 2))
            other = states.pop(i + 1)
            states[i].merge(other)
            other.discard()
        (found,) = states
        assert spelled(found.chunks()) == expected
        found.join()
        assert spelled(found.chunks()) == expected
        found.discard()
        assert list(spill.folder.glob("counts-*")) == []


@settings(max_examples=200)
@given(cases(), st.integers(0, 45), st.integers(0, 45), st.integers(1, 9), KINDS, st.booleans())
def test_a_part_of_the_keys_comes_with_those_of_one_quotient_together(
    case: Any, first: int, last: int, together: int, kind: str, is_joined: Any
):
    n_keys, n_words, chunks = case
    if n_keys > 40:
        return
    rows = [row for chunk in chunks for row in chunk]
    with Spill() as spill:
        counts = make(kind, n_keys, n_words, spill)
        add(counts, rows)
        if is_joined:
            counts.join()
        found = list(counts.chunks(first, min(last, n_keys), together=together))
        assert spelled(found) == naive([row for row in rows if first <= row[0] < last])
        quotients = [set((keys // np.uint64(together)).tolist()) for keys, _ in found]
        assert sum(map(len, quotients)) == len(set().union(*quotients))


def test_runs_stay_within_their_room_and_go_to_memory_if_they_fit_there_once_joined():
    keys = seeded(1).integers(0, 1000, 500).astype(np.uint64)
    with Spill() as spill, ExitStack() as stack:
        counts = Counts.new(1000, room=16 * 10, spill=spill)
        stack.callback(counts.discard)
        counts.add(keys)
        files = list(spill.folder.glob("counts-*"))
        assert 1 <= len(files) <= 4
        assert spill.counters.bytes_written > 2 * 16 * len(set(keys.tolist()))  # some were merged on the way
        counts.join()
        assert len(list(spill.folder.glob("counts-*"))) == 1
        spill.counters.bytes_read = 0
        assert len(spelled(counts.chunks(500, 501))) <= 1
        few = Counts.new(10**6, room=16 * 1000, spill=spill)
        few.add(np.repeat(keys[:100], 40))
        assert len(list(spill.folder.glob("counts-*"))) == 4
        few.join()
        assert len(list(spill.folder.glob("counts-*"))) == 1
        assert spelled(few.chunks()) == naive([(int(key), 40) for key in keys[:100]])


def test_what_is_added_may_be_overwritten_afterwards():
    keys, words = np.array([3, 1], dtype=np.uint64), np.ones((2, 1), dtype=np.int64)
    counts = Counts.new(10, room=0, spill=None)
    counts.add(keys, words)
    keys[:], words[:] = 9, 9
    assert spelled(counts.chunks()) == {1: [1], 3: [1]}
