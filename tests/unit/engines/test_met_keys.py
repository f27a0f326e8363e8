"""Keys that were met: however they come, whatever holds them, and wherever they are merged, they are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import counts as counts_module
from sfumato.engines import met_keys
from sfumato.engines.met_keys import MetKeys
from sfumato.engines.spark.replies import pack, unpack
from sfumato.table.spill import SharedSpill, Spill

N_KEYS = 40
FLAGS, HELD, STORED = "flags", "held", "stored"
KINDS = st.sampled_from([FLAGS, HELD, STORED])
CHUNKS = st.lists(st.lists(st.integers(0, N_KEYS - 1), max_size=15), max_size=8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and chunks of a few keys."""
    monkeypatch.setattr(counts_module, "FEWEST", 3)
    monkeypatch.setattr(counts_module, "STEP", 5)
    monkeypatch.setattr(met_keys, "STEP", 5)


def make(kind: str, spill: Spill) -> MetKeys:
    room = N_KEYS if kind == FLAGS else 0
    return MetKeys(N_KEYS, room=room, spill=spill if kind == STORED else None)


@settings(max_examples=150)
@given(CHUNKS, st.integers(1, 9), st.data())
def test_any_chunks_and_merges_anywhere_give_each_key_once(chunks: Any, together: int, data: Any) -> None:
    with Spill() as own:
        spill = SharedSpill(own.folder)
        states = [make(data.draw(KINDS), spill)]
        for chunk in chunks:
            if data.draw(st.booleans()):
                states.append(make(data.draw(KINDS), spill))
            states[-1].add(np.array(chunk, dtype=np.uint64))
        states = [
            unpack(pack(each, spill.folder).data, spill.folder) if data.draw(st.booleans()) else each
            for each in states
        ]
        found, *others = states
        for other in others:
            found.merge(other)
        parts = [keys.tolist() for keys in found.chunks(together=together)]
        found.discard()
    assert [key for part in parts for key in part] == sorted({key for chunk in chunks for key in chunk})
    quotients = [{key // together for key in part} for part in parts]
    assert sum(map(len, quotients)) == len(set().union(*quotients))


def test_on_its_way_a_flag_is_a_bit_and_room_that_is_not_used_stays_behind(tmp_path) -> None:
    flags = MetKeys(80_000, room=80_000, spill=None)
    flags.add(np.arange(0, 80_000, 7, dtype=np.uint64))
    assert len(pack(flags, tmp_path).data) < 11_000
    keys = MetKeys(1 << 40, room=1 << 20, spill=SharedSpill(tmp_path))
    keys.add(np.arange(100, dtype=np.uint64))
    assert len(pack(keys, tmp_path).data) < 4_000
