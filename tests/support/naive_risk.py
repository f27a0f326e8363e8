"""Naive twins of the measures of risk: by sets, fractions and all subsets. Nothing of sfumato is imported here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

Row = Sequence[Hashable]


def minimal_uniques(
    rows: Sequence[Row], most: int, person: Sequence[Hashable] | None = None
) -> set[tuple[int, int]]:
    """Pairs of a row and a set of columns, as bits, by which it is alone and by no part of which it is."""
    whose = range(len(rows)) if person is None else person
    n_columns = len(rows[0])

    def is_alone(row: int, columns: Sequence[int]) -> bool:
        return all(
            whose[other] == whose[row]
            for other in range(len(rows))
            if all(rows[other][c] == rows[row][c] for c in columns)
        )

    found = set()
    for row in range(len(rows)):
        alone: list[set[int]] = []
        for size in range(1, most + 1):
            for columns in itertools.combinations(range(n_columns), size):
                if is_alone(row, columns):
                    if not any(part < set(columns) for part in alone):
                        found.add((row, sum(1 << c for c in columns)))
                    alone.append(set(columns))
    return found


def people_in_groups(
    rows: Sequence[Row], person: Sequence[Hashable] | None = None
) -> Mapping[Row, set[Hashable]]:
    """Who is in each group; every row is somebody's own unless it is said whose it is."""
    whose = range(len(rows)) if person is None else person
    groups: dict[Row, set[Hashable]] = {}
    for row, owner in zip(rows, whose, strict=True):
        groups.setdefault(row, set()).add(owner)
    return groups


def prosecutor(groups: Mapping[Row, set[Hashable]]) -> tuple[Fraction, Fraction, dict[int, Fraction]]:
    """Largest and mean risk, and the share of people whose risk is above one in 5, 11 and 20."""
    risks = [Fraction(1, len(group)) for group in groups.values() for _ in group]
    return max(risks), sum(risks, Fraction(0)) / len(risks), _shares(risks)


def journalist(
    groups: Mapping[Row, set[Hashable]], population: Mapping[Row, set[Hashable]]
) -> tuple[Fraction, Fraction, dict[int, Fraction], Fraction]:
    """The same of one over the people of the population who are like a group, and the marketer's mean."""
    risks = [Fraction(1, len(population[row])) for row, group in groups.items() for _ in group]
    whole = Fraction(len(groups), sum(len(population[row]) for row in groups))
    marketer = sum(risks, Fraction(0)) / len(risks)
    return max(risks), max(whole, marketer), _shares(risks), marketer


def _shares(risks: Sequence[Fraction]) -> dict[int, Fraction]:
    return {n: Fraction(sum(risk > Fraction(1, n) for risk in risks), len(risks)) for n in (5, 11, 20)}


def expected_risk(people: int, fraction: float) -> float:
    r"""E[1/F] with 400 digits, by I(1) = -ln p / q and I(f + 1) = (p^-f / f - I(f)) / q, and E[1/F] = p^f I(f)."""
    with localcontext() as digits:
        digits.prec = 400
        p = Decimal(repr(fraction))
        integral = -p.ln() / (1 - p)
        for f in range(1, people):
            integral = (p**-f / f - integral) / (1 - p)
        return float(p**people * integral)


def chance_of_one(size: int, n: int, population: int) -> Fraction:
    """That one of ``size`` people is among ``n`` who are drawn from a population."""
    return Fraction(size * math.comb(population - size, n - 1), math.comb(population, n))


def zayatz(count: Mapping[int, int], population: int) -> Fraction:
    """Zayatz' estimate in whole numbers."""
    n = sum(size * times for size, times in count.items())
    weight = {size: times * chance_of_one(size, n, population) for size, times in count.items()}
    return count[1] * weight[1] / sum(weight.values()) * population / n


def likelihood_of_pitman(count: Mapping[int, int], theta: Fraction, alpha: Fraction) -> Fraction:
    """The chance of group sizes under Pitman's model, up to a constant, as a product."""
    n, groups = sum(size * times for size, times in count.items()), sum(count.values())
    value = Fraction(1)
    for i in range(1, groups):
        value *= theta + i * alpha
    for j in range(1, n):
        value /= theta + j
    for size, times in count.items():
        for j in range(1, size):
            value *= (j - alpha) ** times
    return value
