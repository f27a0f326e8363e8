"""Supermodular functions on products of chains, the paper's own way [FEB12, section 2.3.3]: what cuts are compared with.

A chain product is a ring family of sets of join-irreducibles, the function on it is extended to all sets, and a set
function is maximized by the point of least norm of its base polytope (Fujishige and Wolfe).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np

Point = tuple[int, ...]
Irreducible = tuple[int, int]
"""(column, level): the element with that level in one column and 0 in all others."""


def points(heights: tuple[int, ...]):
    return itertools.product(*(range(h + 1) for h in heights))


def meet(x: Point, y: Point) -> Point:
    return tuple(map(min, x, y))


def join(x: Point, y: Point) -> Point:
    return tuple(map(max, x, y))


def irreducibles(heights: tuple[int, ...]) -> list[Irreducible]:
    return [(i, j) for i, h in enumerate(heights) for j in range(1, h + 1)]


def below(x: Point) -> frozenset[Irreducible]:
    """S(x), the join-irreducibles below x. (The paper prints those above it; then S would reverse the order.)"""
    return frozenset((i, j) for i, level in enumerate(x) for j in range(1, level + 1))


def point_of(chosen, n: int) -> Point:
    """The join of some join-irreducibles."""
    return tuple(max((j for i, j in chosen if i == column), default=0) for column in range(n))


def closure(chosen, n: int) -> frozenset[Irreducible]:
    """The smallest member of the ring family that holds a set."""
    return below(point_of(chosen, n))


def largest_without(v: Irreducible, heights: tuple[int, ...]) -> frozenset[Irreducible]:
    """N_v, the largest member of the ring family without v."""
    return below(tuple(v[1] - 1 if i == v[0] else h for i, h in enumerate(heights)))


def extended(f: Callable[[Point], Fraction], heights: tuple[int, ...]) -> Callable[..., Fraction]:
    """g-bar(X) = g(closure of X) + c(X) - c(closure of X), on all sets."""
    n = len(heights)

    def g(chosen) -> Fraction:
        return f(point_of(chosen, n))

    cost = {}
    for v in irreducibles(heights):
        without = largest_without(v, heights)
        cost[v] = max(Fraction(0), g(without | {v}) - g(without))

    def g_bar(chosen) -> Fraction:
        closed = closure(chosen, n)
        return g(closed) - sum((cost[v] for v in closed - frozenset(chosen)), Fraction(0))

    return g_bar


def maximizer(g_bar: Callable[..., Fraction], ground: list[Irreducible], *, n_rounds: int = 2000):
    """The least set with the greatest value, by Wolfe's algorithm on the base polytope of -g_bar, in floats.

    The least minimizer of a submodular function are the elements where the point of least norm is below 0.
    """
    empty = g_bar(frozenset())
    scale = max(
        (
            abs(float(g_bar(frozenset(ground)) - empty)),
            *(abs(float(g_bar({v}) - empty)) for v in ground),
            1e-9,
        )
    )

    def base(direction: np.ndarray) -> np.ndarray:
        """The vertex of the base polytope that is least in a direction: Edmonds' greedy algorithm."""
        out, chosen, last = np.empty(len(ground)), set(), Fraction(0)
        for at in np.argsort(direction, kind="stable"):
            chosen.add(ground[at])
            value = empty - g_bar(frozenset(chosen))
            out[at] = float(value - last) / scale
            last = value
        return out

    corral, weights = [base(np.zeros(len(ground)))], np.ones(1)
    for _ in range(n_rounds):
        x = weights @ np.array(corral)
        vertex = base(x)
        if x @ vertex > x @ x - 1e-12:
            break
        corral.append(vertex)
        weights = np.append(weights, 0.0)
        while True:
            affine = _affine_minimum(np.array(corral))
            if np.all(affine > 1e-12):
                weights = affine
                break
            falls = affine <= 1e-12
            step = min(
                1.0, float(np.min(weights[falls] / np.maximum(weights[falls] - affine[falls], 1e-300)))
            )
            weights = weights + step * (affine - weights)
            keep = weights > 1e-12
            corral = [vertex for vertex, kept in zip(corral, keep, strict=True) if kept]
            weights = weights[keep] / weights[keep].sum()
    return frozenset(v for v, value in zip(ground, x, strict=True) if value < -1e-7)


def _affine_minimum(vertices: np.ndarray) -> np.ndarray:
    """Weights, of sum 1, of the point of least norm in the affine hull."""
    n = len(vertices)
    system = np.ones((n + 1, n + 1))
    system[0, 0] = 0
    system[1:, 1:] = vertices @ vertices.T
    return np.linalg.lstsq(system, np.append(1.0, np.zeros(n)), rcond=None)[0][1:]
