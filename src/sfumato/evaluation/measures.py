r"""General measures of the groups and boxes of a release, which need no model.

A group :math:`R_i` is a set of published rows that share a box; :math:`R` are all rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def average_group_size(size: Ints) -> float:
    """Rows per group [LDR06a].

    >>> average_group_size(np.array([2, 4]))
    3.0
    """
    return float(size.mean())


def discernibility(size: Ints) -> float:
    r"""Each row costs as many as it cannot be told from [BA05]: :math:`\sum_i |R_i|^2`.

    >>> discernibility(np.array([2, 4]))
    20.0
    """
    return math.fsum(size.astype(np.float64) ** 2)


def conditional_entropy(group: Ints, label: Ints) -> float:
    r"""The entropy of a class label that is left when the group is known, in bits [LDR08, equation 1].

    .. math:: H(C|R^*) = \sum_i \frac{|R_i|}{|R|} \sum_c -p(c|R_i) \log_2 p(c|R_i)

    >>> conditional_entropy(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.5
    """
    n_labels = int(label.max()) + 1
    pair, count = np.unique(group * n_labels + label, return_counts=True)
    of_group = np.bincount(group)[pair // n_labels]
    return math.fsum(count * np.log2(of_group / count)) / len(group)


def mean_squared_error(group: Ints, values: Floats) -> float:
    r"""The squared distance of a number from the mean of its group [LDR08, equation 2].

    .. math:: WMSE(T, R^*) = \frac{1}{|R|} \sum_i \sum_{t \in R_i} (t.T - \bar T(R_i))^2

    Missing numbers (NaN) are left out.

    >>> mean_squared_error(np.array([0, 0, 1]), np.array([1.0, 3.0, 7.0])) * 3
    2.0
    """
    is_known = ~np.isnan(values)
    group, values = group[is_known], values[is_known]
    if len(values) == 0:
        return 0.0
    mean = np.bincount(group, weights=values) / np.maximum(np.bincount(group), 1)
    return math.fsum((values - mean[group]) ** 2) / len(values)
