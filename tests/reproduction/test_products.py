"""The generated product table: as it is described, and a corner of a larger one."""

import doctest
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reproduction"))

from lab import products
from lab.products import N_CLASSES, N_COLUMNS

from sfumato.methods.risk_utility.problem import problem_of


def test_doctests():
    assert doctest.testmod(products).failed == 0


def test_a_product_table_has_thirty_columns_of_four_steps_and_24_to_320_values():
    table = products.products(5_000)
    assert table.codes.shape == (5_000, N_COLUMNS)
    n_values = [domain.n_codes for domain in table.domains]
    assert min(n_values) >= 24
    assert max(n_values) <= 320
    assert {domain.hierarchy.height for domain in table.domains} == {4}
    assert all(table.codes[:, a].max() < n for a, n in enumerate(n_values))


def test_nearly_all_rows_are_distinct_yet_values_are_few_in_a_class():
    table = products.products(20_000)
    problem = problem_of(table.domains, table.codes)
    assert problem.n > 19_990
    share = [np.bincount(table.codes[:, a]).max() / 20_000 for a in range(N_COLUMNS)]
    assert max(share) > 20 / N_CLASSES


def test_twelve_columns_of_a_skewed_table_hold_a_default_value():
    table = products.products(5_000, skewed=True)
    share = np.array([np.bincount(table.codes[:, a]).max() / 5_000 for a in range(N_COLUMNS)])
    assert (share > 0.94).sum() == 12


def test_another_seed_is_another_table():
    assert not np.array_equal(products.products(100, 2, seed=1).codes, products.products(100, 2).codes)
