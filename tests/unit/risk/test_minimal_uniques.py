"""Minimal sample uniques and their scores, by hand and as other tools have them."""

from __future__ import annotations

import naive_risk
import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.risk import minimal_uniques
from sfumato.risk.kernels import refine
from sfumato.risk.minimal_uniques import SCORES, find_minimal_uniques, score_of


def test_scores_are_those_of_both_definitions():
    assert [score_of(size, of=5, most=5) for size in (1, 2, 3, 4, 5)] == [24, 6, 2, 1, 1]
    assert [score_of(size, of=5, most=2) for size in (1, 2)] == [12, 3]
    assert [score_of(size, of=5, most=5, scores="ihsn") for size in (1, 2, 3, 4, 5)] == [3, 0.7, 0.3, 0.2, 0]
    assert SCORES == ("elliot", "ihsn")


def test_the_example_that_sdcmicro_tests_itself_with():
    """Three rows; 50, 37.5 and 37.5 per cent are the contributions that it expects."""
    columns = [np.array([2, 1, 1]), np.array([0, 3, 0]), np.array([0, 6, 0])]
    found = find_minimal_uniques(columns, most=3)
    score = np.array([score_of(int(size), of=3, most=3) for size in found.size])
    assert found.share_columns(score) == [0.5, 0.375, 0.375]
    assert found.score_rows(score).tolist() == [2, 4, 2]
    assert set(zip(found.row.tolist(), found.columns.tolist(), strict=True)) == {
        (0, 0b001), (1, 0b010), (1, 0b100), (2, 0b011), (2, 0b101),
    }  # fmt: skip


def test_equal_rows_are_never_alone_and_have_no_score():
    found = find_minimal_uniques([np.zeros(3, dtype=np.int64)] * 2, most=2)
    assert len(found.row) == 0
    assert found.share_columns(np.zeros(0)) == [None, None]
    assert found.score_rows(np.zeros(0)).tolist() == [0, 0, 0]


def test_rows_of_one_person_do_not_hide_each_other():
    columns = [np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])]
    person = np.array([7, 7, 3, 4])
    found = find_minimal_uniques(columns, most=2, person=person)
    seen = set(zip(found.row.tolist(), found.columns.tolist(), strict=True))
    assert seen == {(0, 1), (1, 1), (2, 3), (3, 2)}
    assert seen == naive_risk.minimal_uniques(list(zip(*columns, strict=True)), 2, person.tolist())


def test_too_many_columns_are_refused():
    with pytest.raises(InputError, match="at most 62 columns"):
        find_minimal_uniques([np.zeros(2, dtype=np.int64)] * 63, most=1)


def test_compiled_loops_do_what_is_written(monkeypatch):
    chance = np.random.default_rng(5)
    columns = [chance.integers(0, 6, 200) for _ in range(5)]
    person = chance.integers(0, 120, 200)
    fast = find_minimal_uniques(columns, most=3, person=person)
    monkeypatch.setattr(minimal_uniques, "refine_groups", refine.refine_groups.plain)
    monkeypatch.setattr(minimal_uniques, "add_minimal", refine.add_minimal.plain)
    slow = find_minimal_uniques(columns, most=3, person=person)
    np.testing.assert_array_equal(fast.row, slow.row)
    np.testing.assert_array_equal(fast.columns, slow.columns)
