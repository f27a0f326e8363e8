"""Allowances that are handed down, against fractions; the kernel's are compared in tests/property."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from naive_rest import hand_down as naive

from sfumato.methods.mondrian.allowances import hand_down

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(SIZES, st.integers(0, 100))
@settings(max_examples=100)
def test_shares_are_those_of_the_naive_twin_and_use_the_allowance_up(sizes, allowance):
    assert hand_down(allowance, sizes) == naive(allowance, sizes)
    assert sum(hand_down(allowance, sizes)) == allowance


def test_an_allowance_of_many_rows_is_exact():
    assert hand_down(10**11, [10**12, 2 * 10**12]) == [33_333_333_333, 66_666_666_667]
