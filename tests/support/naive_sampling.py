"""Private sampling of tiny tables by its definition: every output that there can be, with its exact chance.

A row is a tuple of leaves, a tree a mapping of each label to the one above it, a generalization a tuple of labels.
Nothing here knows codes, levels or lattices.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

Tree = Mapping[str, str | None]
Row = tuple[str, ...]
Law = dict[tuple, Fraction]
"""The chance of each output, which is a sorted tuple of (box, how often)."""

FINE = Context(prec=80)


def exp_below_and_above(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """exp(epsilon) between two fractions, by the decimal module."""
    near = Fraction(FINE.exp(FINE.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))
    slack = near / 10**60
    return near - slack, near + slack


# ---- what neighbours tell ----------------------------------------------------------------------------


def excess(here: Law, there: Law, factor: Fraction) -> Fraction:
    """The hockey-stick divergence: the sum over all outputs of what P is above factor times Q."""
    return sum(
        (max(p - factor * there.get(output, 0), Fraction(0)) for output, p in here.items()), Fraction(0)
    )


def true_delta(here: Law, there: Law, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The least delta for which neither direction exceeds epsilon, from below and above."""
    least, greatest = exp_below_and_above(epsilon)
    return (
        max(excess(here, there, greatest), excess(there, here, greatest)),
        max(excess(here, there, least), excess(there, here, least)),
    )


# ---- the repaired variant ----------------------------------------------------------------------------


def repaired(boxes: Sequence[Hashable], s: Fraction, k0: int) -> Law:
    """Of rows with these boxes: every set of rows is drawn in turn."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    for is_drawn in itertools.product((False, True), repeat=len(boxes)):
        drawn = Counter(itertools.compress(boxes, is_drawn))
        output = tuple(sorted((box, n) for box, n in drawn.items() if n >= k0))
        law[output] += s ** sum(is_drawn) * (1 - s) ** (len(boxes) - sum(is_drawn))
    return dict(law)


def repaired_counts(n: int, s: Fraction, k0: int) -> Law:
    """Of n rows with one box, by adding rows one after the other."""
    chances = [Fraction(1)]
    for _ in range(n):
        chances = [
            s * below + (1 - s) * here for below, here in zip([0, *chances], [*chances, 0], strict=True)
        ]
    law: Law = {(): sum(chances[:k0], Fraction(0))}
    return law | {((0, j),): chance for j, chance in enumerate(chances) if j >= k0}


# ---- Algorithm 3, as published -----------------------------------------------------------------------


def chain(tree: Tree, label: str) -> list[str]:
    """From a label up to the root."""
    above = tree[label]
    return [label] if above is None else [label, *chain(tree, above)]


def generalizations(trees: Sequence[Tree], row: Row) -> list[Row]:
    return list(itertools.product(*(chain(tree, label) for tree, label in zip(trees, row, strict=True))))


def n_covered(trees: Sequence[Tree], rows: Sequence[Row], x: Row) -> int:
    return sum(x in generalizations(trees, row) for row in rows)


def algorithm_3(
    trees: Sequence[Tree],
    rows: Sequence[Row],
    *,
    t: int,
    beta: Fraction,
    weight: Callable[[Sequence[Row], Row, Row], Fraction] = lambda _rows, _row, _x: Fraction(1),
    is_feasible: Callable[[Row, Row], bool] = lambda _row, _x: True,
) -> Law:
    """The law of the output; ``weight`` is what the chance of a generalization is proportional to.

    A row without a frequent (and feasible) generalization is suppressed: None stands for it.
    """
    law: Law = {(): Fraction(1)}
    for row in rows:
        open_ = [
            x for x in generalizations(trees, row) if n_covered(trees, rows, x) >= t and is_feasible(row, x)
        ]
        weights: dict[Row | None, Fraction] = {x: weight(rows, row, x) for x in open_}
        weights = weights or {None: Fraction(1)}
        total = sum(weights.values())
        after: dict[Any, Fraction] = defaultdict(Fraction)
        for output, chance in law.items():
            after[output] += beta * chance
            for x, own in weights.items():
                more = Counter(dict(output))
                more[x] += 1
                after[tuple(sorted(more.items(), key=repr))] += (1 - beta) * chance * own / total
        law = dict(after)
    return law
