"""Pruning of decision trees: from the leaves up, a node becomes a leaf if the part below it is no better.

A tree comes as scikit-learn keeps it: children of every node (-1 below a leaf), parents before children. The result is
what each node predicts after pruning; nodes below one that has become a leaf predict what that one does. The tree
itself is not changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Children = NDArray[np.int64]

Z = 0.6744897501960817
"""A standard normal number exceeds it with probability 1/4: C4.5's confidence of 25%."""


def leaf_after_pruning(left: Children, right: Children, counts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Of each node the one that stands for it after pruning.

    By C4.5's pessimism [Q93, chapter 4]: a leaf's errors are counted at the upper end of their confidence interval; a
    node becomes a leaf if that predicts at most a tenth of an error more than the leaves below it.

    ``counts`` (nodes, classes) are rows in training.

    >>> left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    >>> leaf_after_pruning(left, right, np.array([[50.0, 1], [48, 0], [2, 1]])).tolist()
    [0, 0, 0]
    >>> leaf_after_pruning(left, right, np.array([[50.0, 9], [50, 0], [0, 9]])).tolist()
    [0, 1, 2]
    """
    n_rows = counts.sum(axis=1)
    as_leaf = pessimistic_errors(n_rows, n_rows - counts.max(axis=1))
    errors = as_leaf.tolist()
    is_leaf = left < 0
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():
        below = errors[left[node]] + errors[right[node]]
        if errors[node] <= below + 0.1:
            is_leaf[node] = True
        else:
            errors[node] = below
    return _pass_down(left, right, is_leaf, np.arange(len(left)))


def pessimistic_errors(n_rows: NDArray[np.float64], n_errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper end of a one-sided 75% interval for the errors among as many rows of the same kind.

    No error: exactly, from 0.25 = (1 - p)^n. Some: by the normal approximation with its correction for continuity.
    """
    share = np.minimum((n_errors + 0.5) / n_rows, 1)
    z = Z * Z / n_rows
    spread = Z * np.sqrt((share - share * share + z / 4) / n_rows)
    some = n_rows * (share + z / 2 + spread) / (1 + z)
    none = n_rows * (1 - 0.25 ** (1 / n_rows))
    return np.where(n_errors == 0, none, np.where(n_errors + 0.5 >= n_rows, n_rows, some))


def mean_after_pruning(
    left: Children, right: Children, leaf: NDArray[np.int64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """By M5's pessimism [WW97]: the root of the mean squared error, times (n + 2v) / (n - v) for n rows and v
    parameters (1 of a leaf, 1 of each test); a node becomes a leaf where that is no worse.

    ``leaf`` is where each row of training ends, ``y`` its target.
    """
    center = y.mean()
    n_nodes = len(left)
    n_rows = np.bincount(leaf, minlength=n_nodes).astype(np.float64)
    total = np.bincount(leaf, y - center, n_nodes)
    squares = np.bincount(leaf, (y - center) ** 2, n_nodes)
    is_leaf = left < 0
    inner = np.flatnonzero(~is_leaf)[::-1]
    for node in inner:
        for statistic in (n_rows, total, squares):
            statistic[node] = statistic[left[node]] + statistic[right[node]]
    error_as_leaf = np.maximum(squares - total**2 / n_rows, 0)
    error, n_parameters = error_as_leaf.tolist(), [1] * n_nodes
    for node in inner.tolist():
        below = error[left[node]] + error[right[node]]
        n_below = n_parameters[left[node]] + n_parameters[right[node]] + 1
        n = float(n_rows[node])
        if error[node] ** 0.5 * _factor(n, 1) <= below**0.5 * _factor(n, n_below):
            is_leaf[node] = True
        else:
            error[node], n_parameters[node] = below, n_below
    return _pass_down(left, right, is_leaf, center + total / n_rows)


def _factor(n_rows: float, n_parameters: int) -> float:
    return (n_rows + 2 * n_parameters) / (n_rows - n_parameters) if n_rows > n_parameters else 10.0


def _pass_down(
    left: Children, right: Children, is_leaf: NDArray[np.bool_], predicted: NDArray[Any]
) -> NDArray[Any]:
    """What each node has, where the nodes below a leaf have what the leaf does."""
    for node in np.flatnonzero(left >= 0).tolist():  # parents come first, so it trickles down
        if is_leaf[node]:
            for child in (left[node], right[node]):
                predicted[child], is_leaf[child] = predicted[node], True
    return predicted
