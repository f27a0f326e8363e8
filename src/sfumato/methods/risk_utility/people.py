r"""People of a side table who have several different rows, so that boxes count each of them once.

A box covers a person if it covers any of the person's rows t. That is a sum over *joins*, the least generalizations
that cover some of them:

.. math:: [x \text{ covers any } t] = \sum_{J \le x} c(J), \quad c(J) = 1 - \sum_{J' < J} c(J')

over all joins J of one row or more, c of a single row being 1: at x = J the sum is 1 by definition, and the joins that x
covers have one among them that covers all others, the join of the rows that x covers. So a join is like a row of the
side table that stands c(J) times there, at inner nodes of the hierarchies, and such counts add up over boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.errors import InputError
from sfumato.methods.risk_utility.kernels.lattice import Joins, Lattice
from sfumato.table.combinations import number_combinations

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]

MOST_JOINS = 2000
"""Joins of the rows of one person: their number may double with every row."""


class SidePeople(NamedTuple):
    """The people of a side table."""

    rows: Codes  # (distinct rows, columns)
    n_alike: Ints  # (distinct rows,) the people who have each
    joins: Joins
    n_rows: int  # of the side table
    n: int
    n_several: int  # people with several different rows


def count_people(codes: Codes, person: Ints, lattice: Lattice) -> SidePeople:
    """The people of a side table by their rows (rows, columns); ``person`` is the number of each row's person."""
    pairs = number_combinations([*codes.T, person])
    at = pairs.first_rows()
    rows, who = codes[at], person[at]
    found = number_combinations(list(rows.T))
    distinct = np.ascontiguousarray(rows[found.first_rows()], dtype=np.uint32)
    order = np.argsort(who, kind="stable")
    own, n_rows = np.unique(who[order], return_counts=True)
    several = np.repeat(n_rows > 1, n_rows)
    ends = np.cumsum(n_rows[n_rows > 1])
    leaves = _leaves(lattice, rows[order][several])
    counts: Counter[tuple[int, ...]] = Counter()
    for own_rows, times in Counter(_keys(leaves, ends)).items():
        for join, n in count_joins(np.array(own_rows, dtype=np.int32), lattice):
            counts[join] += n * times
    kept = sorted((join, n) for join, n in counts.items() if n)
    nodes = np.array([join for join, _ in kept], dtype=np.int32).reshape(len(kept), codes.shape[1])
    joins = Joins(nodes, np.array([n for _, n in kept], dtype=np.int64))
    return SidePeople(distinct, found.count_rows(), joins, len(codes), len(own), int((n_rows > 1).sum()))


def _leaves(lattice: Lattice, rows: Codes) -> Nodes:
    return lattice.node[lattice.start + rows.astype(np.int64) * lattice.n_levels]


def _keys(leaves: Nodes, ends: Ints) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The different rows of each person, as nodes."""
    begin = 0
    for end in ends.tolist():
        yield tuple(map(tuple, leaves[begin:end].tolist()))
        begin = end


def count_joins(rows: Nodes, lattice: Lattice) -> Iterator[tuple[tuple[int, ...], int]]:
    """The joins of two or more of a person's rows, each with its count."""
    joins = rows[:1]
    for i in range(1, len(rows)):
        more = np.concatenate([joins, rows[i : i + 1], _join(joins, rows[i], lattice)])
        joins = np.unique(more, axis=0)
        if len(joins) > MOST_JOINS:
            raise InputError(
                "A person of the side table has too many different rows to be counted once in every box; publish fewer "
                "or coarser quasi-identifiers (finest), or write unit: row."
            )
    joins = joins[np.argsort(-lattice.depth[joins].sum(axis=1), kind="stable")]  # those below come first
    counts = np.ones(len(joins), dtype=np.int64)
    for i in range(len(joins)):
        is_below = np.all(_join(joins[:i], joins[i], lattice) == joins[i], axis=1)
        counts[i] -= counts[:i][is_below].sum()
    known = set(map(tuple, rows.tolist()))
    for join, n in zip(map(tuple, joins.tolist()), counts.tolist(), strict=True):
        if join not in known:
            yield join, n


def _join(some: Nodes, one: Nodes, lattice: Lattice) -> Nodes:
    """The lowest nodes above some generalizations and another one, column by column."""
    left, right = some.copy(), np.broadcast_to(one, some.shape).copy()
    while (differs := left != right).any():
        climbs = differs & (lattice.depth[left] >= lattice.depth[right])
        left[climbs] = lattice.parent[left[climbs]]
        climbs = differs & ~climbs
        right[climbs] = lattice.parent[right[climbs]]
    return left


__all__ = ["SidePeople", "count_joins", "count_people"]
