"""x log2 x by whole numbers, beside decimals of fifty digits."""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.information import FIXED_POINT, information_of, information_table


def true_information(x: int) -> Decimal:
    with localcontext() as context:
        context.prec = 50
        return x * (Decimal(x).ln() / Decimal(2).ln()) * (1 << 20)


@given(st.integers(1, 5 * 10**10))
def test_information_is_within_one_unit_of_the_truth(x):
    assert abs(int(information_of(np.array([x]))[0]) - true_information(x)) < 1


@given(st.integers(1, 10**6))
def test_up_to_a_million_rows_information_is_rounded_to_the_nearest(x):
    assert abs(int(information_of(np.array([x]))[0]) - true_information(x)) < Decimal("0.501")


@pytest.mark.parametrize("power", range(36))
def test_powers_of_two_are_exact(power):
    assert information_of(np.array([1 << power])).tolist() == [(power << power) * int(FIXED_POINT)]


def test_nothing_and_one_row_carry_no_information():
    assert information_of(np.array([0, 1])).tolist() == [0, 0]


def test_information_grows_faster_and_faster():
    """Convex, so that no split of a class scores below none."""
    steps = np.diff(information_of(np.arange(200_000)))
    assert (steps[1:] > 0).all()
    assert (np.diff(steps) >= -1).all()  # one unit of rounding


def test_the_table_is_what_is_computed_beyond_it():
    assert information_table(5000).tolist() == information_of(np.arange(5001)).tolist()


def test_every_processor_has_the_same_table():
    """The digest of 300,000 entries as they came out when this was written: nothing but whole numbers went into them."""
    digest = hashlib.sha256(information_of(np.arange(300_000)).astype("<i8").tobytes()).hexdigest()
    assert digest == "bfce871a8e2018a324d0eb898580ea414f606823f5067b6a608ed41a27b302a7"
