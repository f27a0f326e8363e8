"""Problems whose Lagrangian has interior optima: those of :mod:`tradeoff_cases` nearly always have none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.schema import Attribute, Role

EVEN = Hierarchy.from_tree(
    {"*": {"A": {"a": ["1", "2"], "b": ["3"]}, "B": {"c": ["4", "5", "6"], "d": ["7"]}}}
)
"""Three steps, with a node that has one child only."""


def domains(n_columns: int) -> list[TreeDomain]:
    return [
        TreeDomain(Attribute(f"c{i}", Role.QUASI_IDENTIFIER), EVEN, has_missing=False)
        for i in range(n_columns)
    ]


def table(n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """Columns of all degrees of skew: a step up costs little in some and much in others."""
    random = np.random.default_rng(seed)
    skew = random.uniform(1, 8, n_columns)
    return (7 * random.random((n_rows, n_columns)) ** skew).astype(np.uint32)


FLAT = tuple(
    {f"c{i}": given for i in range(4)} for given in [(0.0, 5.0), (1.0, 1.0, 4.0), (2.0, 2.5, 2.5, 7.25)]
)
"""Utilities that some steps do not change."""


@st.composite
def interior(draw, *, max_columns: int = 3, max_rows: int = 60) -> tuple[LatticeProblem, Lagrangian]:
    """Weights that hardly change, and a price near the one at which raw and suppressed rows are worth the same."""
    n_columns = draw(st.integers(2, max_columns))
    codes = table(draw(st.integers(5, max_rows)), n_columns, draw(st.integers(0, 2**32)))
    model, floor = draw(
        st.sampled_from([("model-2", 0.0), ("harmonic", 30.0), ("model-1", 30.0), ("model-2", 0.3)])
    )
    factor = None
    if draw(st.booleans()):
        factor = np.random.default_rng(draw(st.integers(0, 2**32))).choice([0.5, 1.0, 3.0], size=codes.shape)
    side = (
        table(draw(st.integers(5, 40)), n_columns, draw(st.integers(0, 2**32)))
        if draw(st.booleans())
        else None
    )
    utility = draw(st.sampled_from(["depth", "log", "inverse", *FLAT]))
    problem = problem_of(
        domains(n_columns), codes, side, utility=utility, weights=Weights(model), floor=floor, factor=factor
    )
    power = draw(st.sampled_from([1, 1, 2, 3, 4]))
    raw = float(problem.raw_utility.max()) * problem.utility_unit
    near = problem.lambda_0() * max(raw, 1e-9) ** (power - 1)
    times = draw(st.sampled_from([0.3, 0.7, 0.9, 1.0, 1.0, 1.1, 1.4, 3.0]))
    price = Fraction(near * times).limit_denominator(10**6) or Fraction(1, 10**6)
    return problem, Lagrangian(price, power)
