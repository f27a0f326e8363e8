"""Small random problems of risk and utility, for tests of all optimizers."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import naive_tradeoff as naive
import numpy as np
from hypothesis import strategies as st

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility.problem import (
    Lagrangian,
    LatticeProblem,
    LogRisk,
    MostUtility,
    Solution,
    Threshold,
    problem_of,
)
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import MODELS, UTILITIES, Weights
from sfumato.policy.schema import Attribute, Role


@st.composite
def trees(draw, *, max_height: int = 3) -> Hierarchy:
    """A hierarchy of uneven depth, with and without a leaf for missing."""
    labels, parents = ["*"], [-1]

    def grow(node: int, depth: int) -> None:
        for _ in range(draw(st.integers(1 if depth == 0 else 0, 3 if depth < 2 else 2))):
            if len(labels) >= 12:
                return
            labels.append(f"n{len(labels)}")
            parents.append(node)
            if depth + 1 < max_height:
                grow(len(labels) - 1, depth + 1)

    grow(0, 0)
    tree = Hierarchy(tuple(labels), np.array(parents))
    return tree.with_missing() if draw(st.booleans()) else tree


@st.composite
def problems(
    draw,
    *,
    max_columns: int = 4,
    max_height: int = 3,
    max_rows: int = 12,
    floor: bool = False,
    personal: bool | None = None,
    external: bool | None = None,
    utilities: tuple[str, ...] = UTILITIES,
    models: tuple[str, ...] = MODELS,
    people: bool = False,
) -> LatticeProblem:
    """A problem; with a ``floor`` no generalization weighs nothing. With ``people`` those of the side table count."""
    n_columns = draw(st.integers(1, max_columns))
    domains = [
        TreeDomain(
            Attribute(f"c{i}", Role.QUASI_IDENTIFIER), draw(trees(max_height=max_height)), has_missing=False
        )
        for i in range(n_columns)
    ]

    def rows(least: int) -> np.ndarray:
        n = draw(st.integers(least, max_rows))
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        skew = draw(st.sampled_from([1.0, 3.0]))
        columns = [(domain.n_codes * random.random(n) ** skew).astype(np.uint32) for domain in domains]
        return np.stack(columns, axis=1).reshape(n, n_columns)

    codes = rows(1)
    side = rows(1) if (draw(st.booleans()) if external is None else external) else None
    factor = None
    if draw(st.booleans()) if personal is None else personal:
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        factor = random.choice([0.5, 1.0, 2.5, 7.0], size=codes.shape)
    against, person = codes if side is None else side, None
    if people:
        n_people = draw(st.integers(1, len(against)))
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        person = random.integers(0, n_people, len(against))
    problem = problem_of(
        domains,
        codes,
        side,
        person=person,
        utility=draw(st.sampled_from(utilities)),
        weights=Weights(draw(st.sampled_from(models))),
        floor=draw(st.sampled_from([0.1, 1.0, 10.0])) if floor else draw(st.sampled_from([0.0, 0.0, 0.5])),
        factor=factor,
    )
    if person is not None:
        naive.name_people(problem, zip(against.tolist(), person.tolist(), strict=True))
    return problem


shares = st.sampled_from(
    [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(3, 5), Fraction(4, 5), Fraction(1)]
)
thresholds = st.builds(Threshold, shares)


@st.composite
def lagrangians(draw, problem: LatticeProblem, *, powers: tuple[int, ...] = (0, 1, 2, 3)) -> Lagrangian:
    """A price around the one at which raw and suppressed rows are worth the same."""
    power = draw(st.sampled_from(powers))
    near = max(problem.lambda_0(), 1e-3)
    times = draw(st.sampled_from([0.03, 0.3, 0.9, 1.0, 1.1, 3.0, 30.0]))
    return Lagrangian(Fraction(near * times).limit_denominator(10**6) or Fraction(1, 10**6), power)


log_risks = st.builds(
    LogRisk, st.sampled_from([Fraction(1, 10), Fraction(3, 5), Fraction(1), Fraction(3, 2)])
)


@st.composite
def risk_limits(draw, problem: LatticeProblem) -> MostUtility:
    """A limit that some generalization of some row reaches exactly, or nearly, and that every row can keep."""
    row = draw(st.integers(0, problem.n - 1))
    levels = draw(st.sampled_from(list(naive.generalizations(problem, row))))
    covered, weight, _ = naive.measure(problem, row, levels)
    limit = naive.risk(problem, covered, weight) * draw(
        st.sampled_from([Fraction(1), Fraction(999, 1000), Fraction(10, 7), Fraction(3)])
    )
    top = problem.suppressed(np.arange(problem.n))
    least = max(
        naive.risk(problem, *each) for each in zip(top.covered.tolist(), top.weight.tolist(), strict=True)
    )
    return MostUtility(max(limit, least))


def table(trees, *rows, side=None, **options) -> LatticeProblem:
    """A problem of some columns; rows are codes, leaves from left to right."""
    domains = [
        TreeDomain(Attribute(f"c{i}", Role.QUASI_IDENTIFIER), tree, has_missing=False)
        for i, tree in enumerate(trees)
    ]
    codes = np.array(rows, dtype=np.uint32).reshape(-1, len(trees))
    others = None if side is None else np.array(side, dtype=np.uint32).reshape(-1, len(trees))
    return problem_of(domains, codes, others, **options)


def wide_problem(
    n_codes: int, *, n_rows: int = 60, n_columns: int = 3, seed: int = 0, branches: int = 4, **options
) -> LatticeProblem:
    """Rows of columns whose hierarchies have two steps or more: groups of ``branches`` values, groups of groups, ..."""
    random = np.random.default_rng(seed)
    paths = [[f"v{code}"] for code in range(n_codes)]
    size = branches
    while size < n_codes and len(paths[0]) < 3:
        for code, path in enumerate(paths):
            path.insert(0, f"g{len(path)}.{code // size}")
        size *= branches
    tree = Hierarchy.from_paths([["*", *path] for path in paths])
    domains = [
        TreeDomain(Attribute(f"c{a}", Role.QUASI_IDENTIFIER), tree, has_missing=False)
        for a in range(n_columns)
    ]
    centre = random.integers(0, n_codes, n_columns)
    near = np.clip(centre + random.integers(-branches, branches, (n_rows, n_columns)), 0, n_codes - 1)
    codes = np.where(random.random((n_rows, n_columns)) < 0.8, near, random.integers(0, n_codes, near.shape))
    options.setdefault("weights", Weights("harmonic"))
    return problem_of(domains, codes.astype(np.uint32), **options)


def check_search(problem: LatticeProblem, objective: Threshold | MostUtility, solution: Solution) -> None:
    """What a search found is as it must be and is measured right; nothing beats the best, and proved ones are it."""
    measured = problem.solution(solution.levels, which=solution.which)
    if isinstance(objective, Threshold):
        assert np.all(solution.utility >= problem.need(objective.at_least)[solution.which])
    for name in ("covered", "weight", "utility"):
        assert getattr(solution, name).tolist() == getattr(measured, name).tolist()
    for i, row in enumerate(solution.which.tolist()):
        covered, weight, utility = (
            int(part[i]) for part in (solution.covered, solution.weight, solution.utility)
        )
        best = naive.best(problem, objective, row)[0]
        found = naive.worth(problem, objective, covered, weight, utility)
        if isinstance(objective, MostUtility):  # ties of utility are not told apart by a search
            assert naive.risk(problem, covered, weight) <= objective.at_most
            best, found = best[0], found[0]
        assert found <= best
        assert found == best or not solution.is_proved[i]


def run_plainly(source: str) -> str:
    """What a program prints when kernels are plain Python, and warnings errors."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    plain = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr
    return plain.stdout
