"""How the work is cut into tasks, and what these answer: what can be seen without a cluster."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from sfumato.engines.spark.jobs import Jobs


def jobs_on(n_slots: int) -> Jobs:
    """Jobs on a cluster of so many slots that is not asked for anything else."""
    return Jobs(SimpleNamespace(_sc=SimpleNamespace(defaultParallelism=n_slots)), Path())


@pytest.mark.parametrize(
    ("n_slots", "n_rows", "n_tasks"),
    [
        (1000, 0, 1),
        (1000, 200_000, 1),
        (1000, 7_500_000, 7),
        (1000, 2_000_000_000, 1000),
        (1000, 10_000_000_001, 2001),
        (2, 10_000_000, 2),
        (2, 50_000_000, 10),
    ],
)
def test_a_task_has_a_million_rows_or_more_and_at_most_five(n_slots, n_rows, n_tasks, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.jobs.LEAST_ROWS", 1_000_000)
    assert jobs_on(n_slots).count_tasks(n_rows) == n_tasks
