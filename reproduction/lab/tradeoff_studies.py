"""What the figures of [FEB12] share: their two tables, samples of rows, the clock, and k-anonymous tables."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lab import products, tradeoff_tables
from sfumato.encoding.domain import Codes, TreeDomain
from sfumato.methods.risk_utility.problem import (
    Floats,
    Ints,
    LatticeProblem,
    Levels,
    Solution,
    distinct_rows,
    problem_of,
)
from sfumato.policy.options.risk_utility import HARMONIC, Weights
from sfumato.randomness import Random, seeded_block

T = TypeVar("T")

ADULT, PRODUCTS = "Adult", "Products"
N_COLUMNS = {ADULT: 8, PRODUCTS: products.N_COLUMNS}


@cache
def table(name: str, n_rows: int | None = None) -> tuple[tuple[TreeDomain, ...], Codes]:
    """The hierarchies and the rows of a table, or of its first rows."""
    if name == ADULT:
        domains, codes = tradeoff_tables.adult(N_COLUMNS[ADULT])
        return domains, codes[:n_rows]
    found = products.products(n_rows or products.N_ROWS)
    return tuple(found.domains), found.codes


def problem(
    name: str, n_columns: int, *, model: str = HARMONIC, floor: float = 0.0, n_rows: int | None = None
) -> LatticeProblem:
    """The first columns of a table, as their own side table."""
    domains, codes = table(name, n_rows)
    return problem_of(domains[:n_columns], codes[:, :n_columns], weights=Weights(model), floor=floor)


def sampled(problem: LatticeProblem, n: int, random: Random) -> Ints:
    """Some rows of the table, each as likely as any other, as rows of the problem."""
    chosen = random.choice(len(problem.of_row), min(n, len(problem.of_row)), replace=False)
    return np.asarray(problem.of_row[np.sort(chosen)])


def clocked(what: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of this process, all its threads together, and what came of it."""
    began = time.process_time()
    found = what()
    return time.process_time() - began, found


def in_words(seconds: float) -> str:
    """Seconds as a table shows them.

    >>> in_words(0.01234), in_words(1234.5), in_words(8.46e17)
    ('0.0123', '1,234', '8.5e+17')
    """
    if seconds >= 1e6:
        return f"{seconds:.2g}"
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def stream(seed: int, *of: Any) -> Random:
    """Random numbers of whatever it is ``of``, and of nothing else."""
    return seeded_block(seed, int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:4]))


# ---- shares and risks ----------------------------------------------------------------------------------


def share(problem: LatticeProblem, solution: Solution) -> Floats:
    """How much of the way from suppressed to raw each row still tells."""
    least = problem.least_utility
    raw = problem.raw_utility[solution.which]
    return np.asarray((solution.utility - least) / np.maximum(raw - least, 1))


def as_share(value: float) -> Fraction:
    """A share as an exact threshold, rounded down to a millionth.

    >>> as_share(0.5), as_share(1.0)
    (Fraction(1, 2), Fraction(1, 1))
    """
    return Fraction(int(value * 1_000_000), 1_000_000)


# ---- k-anonymous tables --------------------------------------------------------------------------------


def path(problem: LatticeProblem, random: Random) -> Levels:
    """From raw to suppressed, all rows alike: columns take turns in a random order, one level at a time."""
    top = problem.top()
    levels = np.zeros(problem.n_columns, dtype=np.uint8)
    steps = [levels.copy()]
    order = random.permutation(problem.n_columns)
    while np.any(levels < top):
        for a in order.tolist():
            if levels[a] < top[a]:
                levels[a] += 1
                steps.append(levels.copy())
    return np.array(steps)


def group_sizes(problem: LatticeProblem, steps: Levels) -> NDArray[np.int64]:
    """(steps, rows): the rows of the table that share the generalization of each row, were all rows at that step."""
    out = np.empty((len(steps), problem.n), dtype=np.int64)
    every = np.arange(problem.n)
    for i, levels in enumerate(steps):
        nodes = problem.nodes_of(every, np.broadcast_to(levels, (problem.n, problem.n_columns)))
        _, at, _ = distinct_rows(nodes.astype(np.uint32))
        out[i] = np.bincount(at, weights=problem.n_alike)[at]
    return out


def full_domain(steps: Levels, sizes: NDArray[np.int64], k: int) -> Levels:
    """The first step at which every group has k rows, for all rows (or total suppression)."""
    holds = sizes.min(axis=1) >= k
    at = int(np.argmax(holds)) if holds.any() else len(steps) - 1
    return np.broadcast_to(steps[at], (sizes.shape[1], steps.shape[1])).copy()


def row_by_row(steps: Levels, sizes: NDArray[np.int64], k: int) -> Levels:
    """For each row the first step at which at least k rows match it (or total suppression)."""
    holds = sizes >= k
    at = np.where(holds.any(axis=0), np.argmax(holds, axis=0), len(steps) - 1)
    return steps[at]
