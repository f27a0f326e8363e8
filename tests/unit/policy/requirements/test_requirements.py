"""Requirements: the four definitions by hand, monotonicity, and what a hopeless one says."""

from __future__ import annotations

import math
from fractions import Fraction

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from growing import partition
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import PolicyError, RequirementUnreachable
from sfumato.policy.file import json_schema
from sfumato.policy.requirements import (
    REQUIREMENTS,
    DistinctDiversity,
    EntropyDiversity,
    GroupStats,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Schema
from sfumato.table.opening import open_table

COUNTS = st.lists(st.integers(0, 12), min_size=4, max_size=4).filter(any)
SCHEMA = Schema.of(
    age={"role": "quasi-identifier", "kind": "number"},
    disease="sensitive",
    salary={"role": "sensitive", "kind": "number"},
)


def counted(*groups):
    """Groups given by the counts of their sensitive values."""
    return GroupStats(np.array([sum(counts) for counts in groups]), values=np.array(groups))


def spread(*groups):
    """Groups given by their sensitive numbers."""
    return GroupStats(
        np.array([len(group) for group in groups]), variance=np.array([np.var(group) for group in groups])
    )


def holds(requirement, *groups):
    return requirement.holds(counted(*groups)).tolist()


# ---- definitions, by hand --------------------------------------------------------------------------


def test_k_rows_are_enough_for_k_anonymity_and_one_less_is_not():
    groups = GroupStats(np.array([1, 4, 5, 6]))
    assert KAnonymity(5).holds(groups).tolist() == [False, False, True, True]
    assert KAnonymity(5).measure(groups).tolist() == [1, 4, 5, 6]


def test_entropy_of_even_values_is_exactly_their_number_whatever_roundoff_says():
    for n in range(1, 50):
        for count in (1, 3, 7, 10):
            assert holds(EntropyDiversity(n, of="d"), [count] * n) == [True]
            assert holds(EntropyDiversity(n + 1e-9, of="d"), [count] * n) == [False]


def test_entropy_diversity_takes_any_real_l_and_judges_on_its_scale():
    # 3 : 1 has entropy 2 ln 2 - 3/4 ln 3, the entropy of 4 / 3^(3/4) = 1.7548 even values
    assert EntropyDiversity(2, of="d").measure(counted([3, 1]))[0] == pytest.approx(4 / 3**0.75)
    assert holds(EntropyDiversity(1.75, of="d"), [3, 1], [30, 10], [0, 5], [5, 4]) == [
        True,
        True,
        False,
        True,
    ]
    assert holds(EntropyDiversity(1.76, of="d"), [3, 1]) == [False]


def test_values_that_do_not_occur_add_nothing_to_the_entropy():
    assert holds(EntropyDiversity(2, of="d"), [0, 5, 0, 5], [1, 0, 0, 0]) == [True, False]


def test_distinct_diversity_counts_the_values_that_occur():
    asked = DistinctDiversity(3, of="d")
    assert holds(asked, [9, 9, 0, 0], [1, 0, 50, 1], [1, 1, 1, 1]) == [False, True, True]
    assert asked.measure(counted([9, 9, 0, 0], [1, 1, 1, 1])).tolist() == [2, 4]


def test_recursive_diversity_compares_the_most_frequent_value_with_the_tail_from_the_l_th():
    # counts 5, 3, 2, 1 in order: the tail from the third is 2 + 1
    assert holds(RecursiveDiversity(2, 3, of="d"), [1, 5, 2, 3]) == [True]  # 5 < 2 * 3
    assert holds(RecursiveDiversity(1.6, 3, of="d"), [1, 5, 2, 3]) == [False]  # 5 > 1.6 * 3
    assert RecursiveDiversity(2, 3, of="d").measure(counted([1, 5, 2, 3]))[0] == pytest.approx(5 / 3)


def test_recursive_diversity_asks_for_less_than_not_for_at_most():
    assert holds(RecursiveDiversity(1, 2, of="d"), [4, 4, 0], [4, 3, 2]) == [False, True]


def test_the_boundary_of_recursive_diversity_is_exact_where_floats_are_not():
    assert 7 < 0.07 * 100
    counts = [7] * 15  # 7 and a tail of 98
    assert holds(RecursiveDiversity(0.07, 2, of="d"), [*counts, 2], [*counts, 3]) == [False, True]


def test_recursive_diversity_with_l_of_1_always_holds():
    assert holds(RecursiveDiversity(0.001, 1, of="d"), [100, 0]) == [True]


def test_fewer_than_l_values_never_satisfy_recursive_diversity():
    asked = RecursiveDiversity(1e300, 3, of="d")
    assert holds(asked, [50, 50, 0], [1, 1, 1]) == [False, True]
    assert asked.measure(counted([50, 50, 0]))[0] == math.inf


@pytest.mark.parametrize("c", [0.1, 3, 2.5, 1000 / 3, 1 / 3, 12345.678901, 98765432.125, 1e12, 1e300, 5e-324])
def test_the_fraction_for_c_never_asks_for_less_and_its_products_fit_64_bits(c):
    exact = RecursiveDiversity(c, 2, of="d").exact_c
    assert exact <= Fraction(str(c))
    assert exact >= min(Fraction(str(c)), 2**32) * (1 - Fraction(1, 10**8)) - Fraction(1, 10**9)
    assert exact.numerator * 2**29 < 2**63
    assert exact.denominator * 2**29 < 2**63


def test_variance_diversity_is_about_the_population_variance_and_takes_equality():
    groups = spread([1, 3], [2, 2, 2], [0, 10])
    assert VarianceDiversity(1, of="s").holds(groups).tolist() == [True, False, True]
    assert VarianceDiversity(1, of="s").measure(groups).tolist() == [1, 0, 25]


# ---- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 2.5, "ten", True, None])
def test_k_is_a_whole_number_of_at_least_1(k):
    with pytest.raises(PolicyError, match="whole number of at least 1"):
        KAnonymity(k)


@pytest.mark.parametrize("number", [0.5, math.nan, math.inf])
def test_l_of_entropy_diversity_is_a_number_of_at_least_1(number):
    with pytest.raises(PolicyError, match="entropy-diversity l: must be a number of at least 1"):
        EntropyDiversity(number, of="disease")


@pytest.mark.parametrize(("c", "number"), [(0, 2), (-1, 2), (math.nan, 2), (2, 0), (2, 1.5), (2, True)])
def test_c_is_above_0_and_l_of_recursive_diversity_is_whole(c, number):
    with pytest.raises(PolicyError, match=r"recursive-diversity [cl]: must be a"):
        RecursiveDiversity(c, number, of="disease")


@pytest.mark.parametrize("least", [-1, math.nan, math.inf])
def test_a_variance_is_a_finite_number_of_at_least_0(least):
    with pytest.raises(PolicyError, match="variance-diversity at-least: must be a number of at least 0"):
        VarianceDiversity(least, of="salary")


@pytest.mark.parametrize("kind", REQUIREMENTS.values(), ids=list(REQUIREMENTS))
def test_the_part_of_the_policys_schema_is_what_the_class_says(kind):
    assert json_schema()["$defs"]["requirement"]["properties"][kind.word] == kind.json_schema()


@pytest.mark.parametrize("kind", REQUIREMENTS.values(), ids=list(REQUIREMENTS))
def test_a_requirement_is_read_as_it_is_written(kind):
    requirement = kind.from_policy(kind.example)
    written = requirement.as_policy()
    assert list(written) == [kind.word]
    assert kind.from_policy(written[kind.word]) == requirement


def test_the_number_of_one_parameter_is_varied_and_other_requirements_stay():
    assert EntropyDiversity(2, of="d").vary("l", 2.5) == EntropyDiversity(2.5, of="d")
    assert RecursiveDiversity(2, 3, of="d").vary("l", 4.0) == RecursiveDiversity(2, 4, of="d")
    assert KAnonymity(5).vary("l", 3.0) == KAnonymity(5)
    with pytest.raises(PolicyError, match="recursive-diversity needs a whole number l"):
        RecursiveDiversity(2, 3, of="d").vary("l", 2.5)


# ---- figures ---------------------------------------------------------------------------------------


def test_the_worst_figure_is_the_least_or_the_greatest_as_the_requirement_says():
    figures = np.array([2.0, 5.0, 3.0])
    assert (EntropyDiversity(2, of="d").worst(figures), EntropyDiversity(2, of="d").best(figures)) == (2, 5)
    assert (
        RecursiveDiversity(2, 3, of="d").worst(figures),
        RecursiveDiversity(2, 3, of="d").best(figures),
    ) == (5, 2)


@pytest.mark.parametrize(
    ("requirement", "enough", "too_little"),
    [
        (KAnonymity(5), 5.0, 4.0),
        (EntropyDiversity(3, of="d"), 3 * (1 - 1e-10), 2.999),
        (RecursiveDiversity(2, 3, of="d"), 1.999, 2.001),
        (RecursiveDiversity(2, 1, of="d"), 9.0, None),
        (DistinctDiversity(3, of="d"), 3.0, 2.0),
        (TCloseness(0.2, of="d"), 0.2 + 1e-10, 0.2001),
        (VarianceDiversity(1e8, of="s"), 1e8 * (1 - 1e-10), 0.999e8),
    ],
)
def test_a_promise_holds_if_the_figure_of_a_certificate_is_enough(requirement, enough, too_little):
    assert requirement.is_met_by(enough)
    assert requirement.promise(enough).holds
    if too_little is not None:
        assert not requirement.is_met_by(too_little)
        assert not requirement.promise(too_little).holds


# ---- monotonicity: what holds of two groups holds of their union -----------------------------------


@given(st.integers(1, 9), st.integers(1, 20), st.integers(1, 20))
def test_k_anonymity_is_monotone(k, one, other):
    first, second, union = KAnonymity(k).holds(GroupStats(np.array([one, other, one + other]))).tolist()
    assert union or not (first and second)


@given(st.floats(1, 4), COUNTS, COUNTS)
def test_entropy_diversity_is_monotone(asked, one, other):
    union = np.add(one, other).tolist()
    of_one, of_other, of_union = EntropyDiversity(1, of="d").measure(counted(one, other, union)).tolist()
    assert of_union >= min(of_one, of_other) - 1e-12
    asked = max(1, min(asked, of_one, of_other))  # whatever both satisfy
    assert holds(EntropyDiversity(asked, of="d"), union) == [True]


@given(st.integers(1, 4), COUNTS, COUNTS)
def test_distinct_diversity_is_monotone(number, one, other):
    asked = DistinctDiversity(number, of="d")
    assume(all(holds(asked, one, other)))
    assert holds(asked, np.add(one, other).tolist()) == [True]


@given(st.sampled_from([0.5, 1, 1.1, 2, 3]), st.integers(1, 4), COUNTS, COUNTS)
def test_recursive_diversity_is_monotone(c, number, one, other):
    asked = RecursiveDiversity(c, number, of="d")
    assume(all(holds(asked, one, other)))
    assert holds(asked, np.add(one, other).tolist()) == [True]


@given(*2 * [st.lists(st.integers(-9, 9), min_size=1, max_size=8)])
def test_variance_diversity_is_monotone(one, other):
    exact = [naive.variance([Fraction(x) for x in group]) for group in (one, other, one + other)]
    assert exact[2] >= min(exact[0], exact[1])
    least = float(min(exact[0], exact[1])) * (1 - 1e-15)
    assert VarianceDiversity(least, of="s").holds(spread(one + other))[0]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 9)), min_size=1, max_size=12),
    st.one_of(
        st.integers(1, 5).map(KAnonymity),
        st.builds(EntropyDiversity, st.sampled_from([1, 1.5, 2, 3]), of=st.just("disease")),
        st.builds(RecursiveDiversity, st.sampled_from([0.5, 1, 2]), st.integers(1, 3), of=st.just("disease")),
        st.builds(DistinctDiversity, st.integers(1, 4), of=st.just("disease")),
        st.builds(VarianceDiversity, st.sampled_from([0.0, 1.0, 4.0]), of=st.just("salary")),
    ),
)
def test_statistics_are_judged_as_the_definition_judges_the_rows(rows, requirement):
    rows = [{"disease": disease, "salary": salary} for disease, salary in rows]
    counts = [sum(row["disease"] == value for row in rows) for value in "abcd"]
    groups = GroupStats(
        np.array([len(rows)]),
        values=np.array([counts]),
        variance=np.array([float(naive.variance([Fraction(row["salary"]) for row in rows]))]),
    )
    assert requirement.holds(groups)[0] == naive.satisfies(rows, requirement)


# ---- the whole table fails -------------------------------------------------------------------------


def refused(requirement, **columns):
    table = {
        "age": [34, 45, 56, 67],
        "disease": ["flu", "flu", "flu", "gout"],
        "salary": [1001, 1003, 1001, 1003],
    } | columns
    with pytest.raises(RequirementUnreachable) as caught:
        partition(open_table(pa.table(table)), SCHEMA, [KAnonymity(2), requirement])
    assert caught.value.requirement == requirement
    assert caught.value.n_rows == 4
    assert caught.value.exit_code == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("requirement", "words", "best"),
    [
        (KAnonymity(5), "5-anonymity", "4 rows"),
        (
            EntropyDiversity(2, of="disease"),
            "entropy 2-diversity of 'disease'",
            "the entropy of 1.755 equally frequent values",
        ),
        (
            RecursiveDiversity(2, 2, of="disease"),
            "recursive (2, 2)-diversity of 'disease'",
            "a diversity that needs a c above 3",
        ),
        (
            RecursiveDiversity(2, 3, of="disease"),
            "recursive (2, 3)-diversity of 'disease'",
            "fewer than 3 different values",
        ),
        (DistinctDiversity(3, of="disease"), "distinct 3-diversity of 'disease'", "2 different values"),
        (
            VarianceDiversity(1.5, of="salary"),
            "variance diversity of at least 1.5 of 'salary'",
            "a variance of 1",
        ),
    ],
)
def test_a_requirement_that_the_whole_table_fails_says_by_how_much(requirement, words, best):
    message = refused(requirement)
    assert message == (
        f"{words} cannot be met: even one single group of all 4 rows has only {best}. Ask for less, or add rows."
    )
    assert not any(cell in message for cell in ("flu", "gout", "1001", "1003"))


def test_the_whole_table_is_as_close_to_itself_as_any_t_asks_for():
    table = pa.table({"age": [1, 2], "disease": ["flu", "gout"], "salary": [1, 3]})
    for asked in (TCloseness(0, of="disease"), TCloseness(0, of="salary", distance="ordered")):
        assert partition(open_table(table), SCHEMA, [asked]).size.tolist() == [2]


def test_a_requirement_that_the_whole_table_just_meets_is_met_by_one_group():
    table = pa.table({"age": [1, 2], "disease": ["flu", "gout"], "salary": [1, 3]})
    asked = [KAnonymity(2), EntropyDiversity(2, of="disease"), VarianceDiversity(1, of="salary")]
    assert partition(open_table(table), SCHEMA, asked).size.tolist() == [2]


@pytest.mark.parametrize("digits", range(1, 7))
def test_a_variance_that_is_met_exactly_counts_in_decimals_too(digits):
    """0 and 0.3 have variance 0.0225, though no float is any of these numbers."""
    for tenths in range(1, 10):
        least = float(f"{tenths * tenths * 25}e-{2 * digits + 2}")
        table = pa.table({"age": [1, 2], "disease": ["a", "b"], "salary": [0.0, tenths / 10**digits]})
        assert partition(
            open_table(table), SCHEMA, [VarianceDiversity(least, of="salary")]
        ).size.tolist() == [2]
        with pytest.raises(RequirementUnreachable):
            partition(open_table(table), SCHEMA, [VarianceDiversity(least * 1.0001, of="salary")])


def test_missing_sensitive_numbers_have_no_part_in_the_variance():
    message = refused(VarianceDiversity(1.5, of="salary"), salary=[1, None, 3, None])
    assert "has only a variance of 1." in message
    assert "has only a variance of 0." in refused(
        VarianceDiversity(1.5, of="salary"), salary=pa.array([None] * 4, pa.int64())
    )


def test_a_missing_sensitive_value_is_a_value_of_its_own():
    table = pa.table({"age": [1, 2], "disease": ["flu", None], "salary": [1, 3]})
    assert partition(open_table(table), SCHEMA, [EntropyDiversity(2, of="disease")]).size.tolist() == [2]
