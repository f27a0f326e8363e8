"""The tests of Rothko-S: kernels beside a naive twin, and what must hold of them at the ends."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from naive_confidence import Sample, most_renyi, rules_of
from scipy import stats
from small_trees import Shape, axes_from

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import kernel
from sfumato.methods.mondrian.kernels.problem import LEAST_ROWS, People
from sfumato.methods.mondrian.kernels.quantile import MANY, chi_square_quantile, fill_quantiles, upper_gamma
from sfumato.methods.mondrian.kernels.rules import fill_walk, part_holds
from sfumato.methods.mondrian.memory import new_scratch
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.sample_tests import (
    ORDERS,
    entropy_limit,
    frequency_bound,
    least_rows,
    rules_on_sample,
)
from sfumato.policy.requirements import (
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)

# ---- people ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tests", [True, False])
@pytest.mark.parametrize("k", [1, 50])
def test_people_of_a_sample_are_tested_as_rows_are(tests, k):
    rules = rules_of(
        [KAnonymity(k), EntropyDiversity(2, of="s")], values_column=1, numbers_column=1, n_values=3
    )
    people = People(column=2, pairs=3, least=k, enough=500)
    rules = rules._replace(sensitive=rules.sensitive._replace(people=people))
    found = rules_on_sample(rules, axes_from([5]), n_sample=100, n_rows=1000, tests=tests)
    expected = least_rows(50, n_sample=100, n_rows=1000, z=-NormalDist().inv_cdf(0.025)) if tests else 5
    assert found.sensitive.people == people._replace(least=1 if k == 1 else expected)
    assert rules_on_sample(rules, axes_from([5]), n_sample=1000, n_rows=1000, tests=tests) is rules


# ---- quantiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.4, 0.25, 0.1, 0.05, 0.025, 0.05 / 57, 1e-6, 1e-9])
def test_quantiles_of_chi_square_are_those_of_scipy_for_few_and_for_millions_of_degrees(alpha):
    z = -NormalDist().inv_cdf(alpha)
    few = [*range(1, 60), 100, 333, 700, MANY - 1, MANY]
    many = [MANY + 1, 1500, 4096, 10**5, 10**6, 10**7]
    for df in few + many:
        found, expected = chi_square_quantile(alpha, z, df), stats.chi2.isf(alpha, df)
        assert found == pytest.approx(expected, rel=1e-11 if df <= MANY else 2e-10), df
    assert chi_square_quantile(alpha, z, 0) == 0.0


@given(st.floats(0.5, 600), st.floats(0, 1000))
def test_the_regularized_gamma_function_is_that_of_scipy(a, x):
    assert upper_gamma(a, x) == pytest.approx(stats.gamma.sf(x, a), rel=1e-9, abs=1e-15)


def test_the_table_has_a_quantile_for_each_degree():
    out = np.empty(40)
    fill_quantiles(0.025, -NormalDist().inv_cdf(0.025), out)
    assert out.tolist() == pytest.approx([0.0, *stats.chi2.isf(0.025, np.arange(1, 40))])


# ---- one part --------------------------------------------------------------------------------------


@kernel
def holds_of(rows, order, first, last, n_parts, rules, scratch):
    return part_holds(rows, order, first, last, n_parts, rules, scratch)


@kernel
def walk(rows, order, ends, backward, rules, scratch, out):
    fill_walk(rows, order, ends, ends.shape[0], backward, rules, scratch, out)


REQUIREMENTS = st.lists(
    st.one_of(
        st.integers(1, 30).map(KAnonymity),
        st.builds(EntropyDiversity, st.sampled_from([1, 1.2, 2, 2.5, 3]), of=st.just("s")),
        st.builds(RecursiveDiversity, st.sampled_from([0.5, 1, 2.5, 5]), st.integers(1, 4), of=st.just("s")),
        st.builds(TCloseness, st.sampled_from([0, 0.1, 0.3, 0.5, 0.7, 0.9]), of=st.just("s")),
        st.builds(VarianceDiversity, st.sampled_from([0.0, 1.0, 4.0, 9.0]), of=st.just("x")),
    ),
    min_size=1,
    max_size=3,
)
EIGHT: Shape = [[], [], [], [], [], [], [], []]


@given(
    requirements=REQUIREMENTS,
    n=st.integers(2, 80),
    times=st.sampled_from([1.0, 1.1, 2.0, 20.0, 1000.0]),
    tests=st.booleans(),
    n_values=st.integers(1, 5),
    skew=st.floats(0.2, 5),
    seed=st.integers(0, 2**32 - 1),
    n_parts=st.integers(2, 8),
)
@settings(max_examples=150)
def test_every_part_is_judged_as_the_formulas_say_it_one_by_one_and_along_a_walk(
    requirements, n, times, tests, n_values, skew, seed, n_parts
):
    random = np.random.default_rng(seed)
    whole = tuple(random.integers(1, 100, n_values).tolist())
    sample = Sample(n, round(n * times), n_values, tests=tests, whole=whole)
    rows = np.zeros((n, 4), dtype=np.uint32)
    rows[:, 1] = (n_values * random.random(n) ** skew).astype(np.uint32)
    rows[:, 2] = random.integers(0, 12, n)
    rows[random.random(n) < 0.1, 2] = NO_NUMBER
    axes = axes_from([EIGHT])
    plain = rules_of(requirements, values_column=1, numbers_column=2, n_values=n_values, whole=whole)
    rules = rules_on_sample(plain, axes, n_sample=n, n_rows=sample.N, tests=tests)
    assert (rules is plain) == (sample.n == sample.N)
    scratch = new_scratch(rows, SplitProblem(axes, None, rules), widest=int(rows[:, :1].max()) + 1)
    order = random.permutation(n)

    def naive(first, last, m):
        part = order[first:last]
        return last > first and all(
            sample.passes(asked, rows[part, 1], rows[part, 2], m) for asked in requirements
        )

    first, last = sorted(random.integers(0, n + 1, 2).tolist())
    found = holds_of(rows, order, first, last, n_parts, rules, scratch)
    event(f"holds: {found}")
    assert found == naive(first, last, n_parts)
    ends = np.arange(1, n + 1)
    for backward in (False, True):
        out = np.zeros(n, dtype=np.bool_)
        walk(rows, order, ends, backward, rules, scratch, out)
        assert out.tolist() == [naive(end, n, 2) if backward else naive(0, end, 2) for end in ends.tolist()]
    assert not scratch.values.any()


# ---- k ---------------------------------------------------------------------------------------------


def test_the_k_of_a_sample_is_that_of_the_paper():
    z = NormalDist().inv_cdf(1 - 0.05 / 2)
    p, n, rows = 1000 / 50e6, 2_000_000, 50_000_000
    expected = n * (p + z * math.sqrt(p * (1 - p) / (n - 1) * (rows - n) / rows))
    assert least_rows(1000, n_sample=n, n_rows=rows, z=z) == math.ceil(expected) == 53
    # more children, a stricter test of each
    wide = rules_on_sample(
        rules_of([KAnonymity(1000)], values_column=1, numbers_column=2, n_values=1),
        axes_from([EIGHT]), n_sample=n, n_rows=rows,
    )  # fmt: skip
    found = wide.tests[LEAST_ROWS, :9].tolist()
    assert found[2] == wide.least_rows == 53
    assert found == sorted(found)
    assert found[8] == 56


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**7), st.floats(0.1, 5))
def test_the_k_of_a_sample_is_k_where_the_sample_is_everything_and_never_more(k, n, others, z):
    assert least_rows(k, n_sample=n, n_rows=n + others, z=z) <= k
    if k <= n:
        assert least_rows(k, n_sample=n, n_rows=n, z=z) == k


def test_the_naive_way_asks_for_k_times_the_share_of_the_sample():
    plain = rules_of([KAnonymity(10)], values_column=1, numbers_column=2, n_values=1)
    for n, expected in [(100, 1), (101, 2), (250, 3), (999, 10)]:
        found = rules_on_sample(plain, axes_from([EIGHT]), n_sample=n, n_rows=1000, tests=False)
        assert (found.least_rows, set(found.tests[LEAST_ROWS, :9].tolist())) == (expected, {expected})


def test_a_k_below_what_diversity_needs_is_no_test_of_its_own():
    asked = [KAnonymity(3), RecursiveDiversity(2, 6, of="s")]
    plain = rules_of(asked, values_column=1, numbers_column=2, n_values=9)
    assert rules_on_sample(plain, axes_from([2]), n_sample=900, n_rows=1000).least_rows == 6


# ---- entropy ---------------------------------------------------------------------------------------


@given(st.integers(2, 9), st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_no_distribution_of_that_entropy_has_a_greater_one_of_a_lower_order(n_values, share, seed):
    """The extreme distribution of the theorem: one frequent value, all others alike."""
    log_l = share * math.log(n_values)
    random = np.random.default_rng(seed)
    worst = most_renyi(log_l, n_values)
    for concentration in (0.05, 0.3, 1, 5):
        p = random.dirichlet(np.full(n_values, concentration), 300)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.where(p > 0, p * np.log(p), 0).sum(axis=1)
        p = p[(entropy <= log_l) & (p > 1e-200).all(axis=1)]
        for at in (0, 200, 400, 600, 780, 799):
            renyi = np.log((p ** (1 - ORDERS[at])).sum(axis=1)) / ORDERS[at]
            assert (renyi <= worst[at] + 1e-6).all()


@pytest.mark.parametrize(("n_values", "l"), [(2, 1.3), (2, 1.99), (5, 2), (57, 6), (1000, 20), (10**5, 2)])
def test_the_entropy_asked_of_a_sample_falls_to_that_asked_of_all_rows(n_values, l):  # noqa: E741
    rates = 2.0 ** np.arange(3, -34, -1)
    limit = entropy_limit(rates, math.log(l), n_values)
    assert (np.diff(limit) < 0).all()
    assert math.log(l) < limit[-1] < math.log(l) + 1e-3


def test_entropy_that_only_even_values_have_is_never_known_from_a_sample():
    assert np.isinf(entropy_limit(np.array([1e-9]), math.log(4), 4)).all()
    assert np.isinf(entropy_limit(np.array([1e-9]), math.log(4), 1)).all()


@given(st.integers(2, 40), st.floats(0.1, 10), st.floats(1.01, 12), st.integers(0, 2**32 - 1))
def test_where_the_entropy_is_too_low_some_value_is_more_frequent_than_the_bound(n, concentration, l, seed):  # noqa: E741
    p = np.random.default_rng(seed).dirichlet(np.full(n, concentration), 200)
    entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=1)
    assert (p.max(axis=1)[entropy < math.log(l)] > frequency_bound(math.log(l))).all()
    assert frequency_bound(math.log(l)) == pytest.approx(Sample.frequency_bound(math.log(l)), abs=1e-5)
