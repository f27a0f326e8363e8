"""Releases of fixed tables are what they were. How to renew them on purpose: renew.py beside this file."""

from __future__ import annotations

import pytest
from renew import ADULT_QUASI_IDENTIFIERS, OWN, PRIVATE, REAL, adult, private_summary, remembered, summary

from sfumato.policy.schema import Role


def test_every_golden_release_is_remembered_and_no_other():
    assert list(remembered()) == [*OWN, *PRIVATE, *REAL]


@pytest.mark.parametrize("name", OWN)
def test_a_release_of_our_own_table_is_what_it_was(name):
    assert summary(*OWN[name]()) == remembered()[name]


@pytest.mark.data
@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_release_drawn_from_a_seed_is_what_it_was(name):
    assert private_summary(*PRIVATE[name]()) == remembered()[name]


@pytest.mark.parametrize("name", REAL)
def test_a_release_of_a_real_table_is_what_it_was(data_folder, name):
    assert summary(*REAL[name](data_folder)) == remembered()[name]


@pytest.mark.data
def test_adult_has_the_rows_and_columns_of_the_literature(data_folder):
    table, policy = adult(data_folder)
    assert table.num_rows == 45_222
    assert policy.schema.names(Role.QUASI_IDENTIFIER) == ADULT_QUASI_IDENTIFIERS


def test_the_golden_releases_differ_from_each_other():
    """A summary that never changes would notice nothing."""
    assert len({found["sha256"] for found in remembered().values()}) == len(OWN) + len(PRIVATE) + len(REAL)
