"""The measure of searches: how far above the least risk they end."""

import json
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tradeoff_cases import wide_problem

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reproduction"))

from lab import excess

from sfumato.methods.risk_utility.optimizers import probing
from sfumato.methods.risk_utility.paper import genetic
from sfumato.methods.risk_utility.problem import Threshold

HALF = Threshold(Fraction(1, 2))


def test_excess_is_counted_as_a_share_of_the_least_risk():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    least = excess.proved(problem, HALF, np.arange(problem.n))
    assert not excess.excess_of(problem, least, least).any()
    raw = problem.solution(np.zeros_like(least.levels), which=least.which)
    expected = problem.risk(raw) / problem.risk(least) - 1
    assert excess.excess_of(problem, raw, least) == pytest.approx(expected)
    assert expected.max() > 0


def test_where_no_risk_is_the_least_risk_no_risk_is_no_excess():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    top = problem.solution(np.tile(problem.top(), (problem.n, 1)))
    assert not excess.excess_of(problem, top, top).any()


def test_each_search_is_measured_on_the_rows_whose_least_risk_is_known():
    problem = wide_problem(64, n_rows=80, n_columns=6)
    least = excess.proved(problem, HALF, excess.sampled(problem, 30))
    few = partial(genetic.solve, n_members=4, n_generations=1)
    found = list(
        excess.measure(problem, HALF, least, searches={"few": few, "probing": probing.solve}, seed=2)
    )
    assert [line.search for line in found] == ["few", "probing"]
    assert all(line.rows == len(least) for line in found)
    assert found[0].mean > found[1].mean >= 0
    assert found[0].worst >= found[0].mean
    assert found[1].within >= found[0].within


def test_the_command_prints_one_line_for_each_search(monkeypatch, capsys):
    small = wide_problem(27, n_rows=40, n_columns=4, branches=3)
    monkeypatch.setattr(excess, "products_problem", lambda **_: small)
    excess.main(["--table", "products", "--share", "1/2", "--rows", "10"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["search"] for line in lines] == list(excess.SEARCHES)
