"""Prosecutor's, journalist's and marketer's risk, and what is expected of one over the people of a population."""

from __future__ import annotations

import naive_risk
import numpy as np
import pytest

from sfumato.risk.measures import expect_risk, of_fraction, of_population, of_weights, prosecutor

SIZES = np.array([1, 2, 5, 12])
OF_POPULATION = np.array([4, 2, 50, 120])


def test_the_prosecutor_knows_who_is_in_it():
    risk = prosecutor(SIZES)
    assert (risk.largest, risk.mean) == (1.0, 4 / 20)
    assert risk.above == {"1/5": 3 / 20, "1/11": 8 / 20, "1/20": 1.0}  # a group of 5 is not above 1 in 5


def test_the_journalist_meets_the_people_of_the_population():
    found = of_population(SIZES, OF_POPULATION)
    assert found.journalist.largest == 1 / 2
    assert found.marketer == pytest.approx((1 / 4 + 2 / 2 + 5 / 50 + 12 / 120) / 20)
    assert found.journalist.mean == pytest.approx(max(4 / 176, found.marketer))
    assert found.journalist.above == {"1/5": 3 / 20, "1/11": 3 / 20, "1/20": 3 / 20}


def test_the_mean_is_that_of_the_population_where_it_is_greater():
    found = of_population(np.array([1, 9]), np.array([1000, 9]))
    assert found.journalist.mean == found.marketer > 2 / 1009
    found = of_population(np.array([9, 1]), np.array([1000, 1]))
    assert found.marketer == pytest.approx((9 / 1000 + 1) / 10)
    crowd = of_population(np.array([1, 1]), np.array([10, 10]))
    assert crowd.journalist.mean == pytest.approx(crowd.marketer) == pytest.approx(0.1)


def test_a_population_that_is_the_table_has_the_prosecutors_risk():
    found, known = of_population(SIZES, SIZES).journalist, prosecutor(SIZES)
    assert (found.largest, found.above) == (known.largest, known.above)
    assert found.mean == pytest.approx(known.mean)


@pytest.mark.parametrize("fraction", [1e-7, 1e-3, 0.05, 0.2, 0.9, 0.999])
@pytest.mark.parametrize("people", [1, 2, 3, 7, 19, 20, 21, 100])
def test_what_is_expected_agrees_with_hundreds_of_digits(people, fraction):
    found = expect_risk(np.array([people]), np.array([fraction]))[0]
    assert found == pytest.approx(naive_risk.expected_risk(people, fraction), rel=1e-9)


def test_what_is_expected_of_a_whole_population_and_of_large_groups():
    assert expect_risk(np.array([1, 4, 10**6]), np.ones(3)).tolist() == [1.0, 0.25, 1e-6]
    large = expect_risk(np.array([10**6]), np.array([0.01]))[0]
    assert large == pytest.approx(1e-8, rel=1e-4)  # about one over f/p


def test_the_example_of_three_people_and_a_fifth():
    """sdcMicro's approximation says .0909."""
    assert expect_risk(np.array([3]), np.array([0.2]))[0] == pytest.approx(0.08765, abs=5e-6)


def test_a_fraction_is_the_weight_of_everybody():
    one, other = of_fraction(SIZES, 0.1), of_weights(SIZES, SIZES / 0.1)
    np.testing.assert_allclose(one.risk, other.risk)
    assert (one.known, other.known) == ("fraction", "weights")
    assert one.journalist.largest == pytest.approx(0.1 * np.log(10) / 0.9)
