"""Independent runs of two methods: which mean is higher, and how means are written."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lab.record import Finding, small

LEVEL = 0.05


def above(what: str, first: NDArray[np.float64], second: NDArray[np.float64]) -> Finding:
    """Is the first mean above the second, by Welch's one-tailed test at .05? Runs are independent, not pairs."""
    from scipy.stats import ttest_ind_from_stats  # noqa: PLC0415 - slow to import

    deviations = [float(runs.std(ddof=1)) for runs in (first, second)]
    if deviations == [0, 0]:
        means = f"{first.mean():.2f} against {second.mean():.2f}, the same in every run"
        return Finding(what, bool(first.mean() > second.mean()), means)
    t, p = ttest_ind_from_stats(
        first.mean(), deviations[0], len(first), second.mean(), deviations[1], len(second),
        equal_var=False, alternative="greater",
    )  # fmt: skip
    return Finding(
        what, bool(p < LEVEL), f"{several(first)} against {several(second)}, t = {t:.2f}, p {small(float(p))}"
    )


def several(values: NDArray[np.float64]) -> str:
    """Mean and standard deviation; nothing of no values.

    >>> several(np.array([82.0, 83.0])), several(np.array([82.0])), several(np.zeros(0))
    ('82.50 ± 0.71', '82.00', '')
    """
    if not len(values):
        return ""
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")
