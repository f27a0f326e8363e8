"""A product table like the one that [FEB12, section 4.1] measures on and nobody else has: 400,000 rows, 30 columns.

Rows fall into latent classes (kinds of products), whose sizes follow Zipf's law. Each column has a hierarchy of four
steps, and each class a value of it that most of its rows have; some columns are popular in few values, so that classes
share them. A row leaves the value of its class now and then, for another one below a common ancestor of any height.
Nearly all rows are distinct, as rows of 30 columns are, yet each has near relatives.

The same seed gives the same rows and columns whatever their number: a smaller table is a corner of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes, TreeDomain
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Role
from sfumato.randomness import Random, seeded_block

N_ROWS, N_COLUMNS = 400_000, 30
N_STEPS = 4
"""The height of every hierarchy."""

N_CLASSES, ZIPF = 300, 0.9
POPULARITY = 0.15
"""The parameter of the Dirichlet law of a column's values among classes."""

BRANCHES, LEAVES, FEWEST_VALUES = (2, 4), (2, 5), 24
"""The fewest and the most children of an inner node, of a lowest one; at most 4 * 4 * 4 * 5 = 320 values."""

LEAVES_MODE = (0.1, 0.6)
"""Between these lies a column's share of rows that have another value than their class."""

DEFAULTS, DEFAULT_SHARE = (1, 3), (0.95, 0.999)
"""In a skewed table two columns of five, by their number, hold a default value, and so often."""

_PARTS = 8
"""Streams of random numbers per column; stream 0 of column -1 draws the classes of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The domains of all columns, and the rows as codes (rows, columns)."""

    domains: list[TreeDomain]
    codes: Codes


def products(
    n_rows: int = N_ROWS, n_columns: int = N_COLUMNS, *, skewed: bool = False, seed: int = 2012
) -> Products:
    """The table. ``skewed``: twelve of the 30 columns hold a default value with probability .95 to .999.

    >>> small = products(1000, 5)
    >>> small.codes.shape, [domain.hierarchy.height for domain in small.domains]
    ((1000, 5), [4, 4, 4, 4, 4])
    >>> np.array_equal(small.codes[:10, :3], products(10, 3).codes)
    True
    """
    size = np.arange(1, N_CLASSES + 1) ** -ZIPF
    of_class = _chosen(size, _stream(seed, -1, 0).random(n_rows))
    domains, columns = [], []
    for a in range(n_columns):
        fanout = _fanout(_stream(seed, a, 0))
        domains.append(
            TreeDomain(Attribute(f"p{a + 1:02d}", Role.QUASI_IDENTIFIER), _tree(fanout), has_missing=False)
        )
        column = _column(fanout, of_class, seed, a)
        if skewed and a % 5 in DEFAULTS:
            column = _with_default(column, fanout, seed, a)
        columns.append(column.astype(np.uint32))
    return Products(domains, np.stack(columns, axis=1).reshape(n_rows, n_columns))


def _stream(seed: int, column: int, part: int) -> Random:
    return seeded_block(seed, (column + 1) * _PARTS + part)


def _fanout(random: Random) -> list[int]:
    """The number of children at each step down."""
    while True:
        inner = random.integers(*BRANCHES, size=N_STEPS - 1, endpoint=True).tolist()
        fanout = [*inner, int(random.integers(*LEAVES, endpoint=True))]
        if np.prod(fanout) >= FEWEST_VALUES:
            return fanout


def _tree(fanout: list[int]) -> Hierarchy:
    labels, parents = ["*"], [-1]

    def grow(node: int, name: str, depth: int) -> None:
        for child in range(fanout[depth]):
            label = f"{name}{child}"
            labels.append(label)
            parents.append(node)
            if depth + 1 < len(fanout):
                grow(len(labels) - 1, label, depth + 1)

    grow(0, "", 0)
    return Hierarchy(tuple(labels), np.array(parents))


def _column(fanout: list[int], of_class: NDArray[np.int64], seed: int, a: int) -> NDArray[np.int64]:
    """The value of the class; or, with the column's probability, one below an ancestor of it of random height."""
    n_values = int(np.prod(fanout))
    random = _stream(seed, a, 1)
    popularity = random.dirichlet(np.full(n_values, POPULARITY))
    leaves_mode = random.uniform(*LEAVES_MODE)
    column = _chosen(popularity, random.random(N_CLASSES))[of_class]
    n_below = np.cumprod(fanout[::-1])  # leaves below an ancestor, by its height - 1
    leaves, height, other = (_stream(seed, a, part).random(len(column)) for part in (2, 3, 4))
    below = n_below[(height * N_STEPS).astype(np.int64)]
    moved = column // below * below + (other * below).astype(np.int64)
    return np.asarray(np.where(leaves < leaves_mode, moved, column))


def _with_default(column: NDArray[np.int64], fanout: list[int], seed: int, a: int) -> NDArray[np.int64]:
    random = _stream(seed, a, 5)
    default, share = random.integers(int(np.prod(fanout))), random.uniform(*DEFAULT_SHARE)
    return np.where(_stream(seed, a, 6).random(len(column)) < share, default, column)


def _chosen(weights: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers in [0, 1) as choices with these weights."""
    edges = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(edges, drawn, side="right"), len(weights) - 1)
