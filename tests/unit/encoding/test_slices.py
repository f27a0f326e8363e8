"""The public slices of a number, of whatever size it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.encoding.domain import OrderedDomain
from sfumato.encoding.slices import MOST_STEPS, slices_of
from sfumato.policy.schema import Attribute, Kind


def domain_of(low: float, high: float, grid: float | None = None, **options: object) -> OrderedDomain:
    """Numbers whose codes are ranks."""
    attribute = Attribute("x", "quasi-identifier", Kind.NUMBER, **options)
    return OrderedDomain(attribute, low, high, grid, False, 2, np.array([low, high]))


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1250.0, 81300.0), (1200.0, 82000.0)),
        ((-1.23, 0.0), (-1.3, 0.0)),
        ((0.999, 1.01), (0.99, 1.1)),
        ((5e-324, 1e-300), (5e-324, 1e-300)),
    ],
)
def test_a_range_that_is_not_declared_is_rounded_outwards_to_two_digits(ends, expected):
    found = slices_of(domain_of(*ends), 32)
    assert (found.lower, found.upper) == expected


@pytest.mark.parametrize("bounds", [(-1.79e308, 1.79e308), (0, 1e200), (-(2.0**60), 2.0**60)])
@pytest.mark.parametrize("grid", [None, 1.0])
def test_beside_bounds_that_no_number_reaches_no_cell_loses_anything_and_labels_still_cover(bounds, grid):
    found = slices_of(domain_of(*map(float, bounds), grid, bounds=bounds), 32)
    values = np.array([-(2.0**52), -7.5, 0, 0.25, 2.0**52])
    low, high = found.narrow(values, values)
    assert found.n_steps <= 1024
    assert ((low < values) & (values <= high)).all()


def test_steps_beyond_what_prices_can_tell_are_joined():
    found = slices_of(domain_of(0.0, 1e12, 1.0), 32)
    assert 0.9 * MOST_STEPS < found.n_steps <= MOST_STEPS
    assert found.step.is_integer()
    values = np.array([0.0, 1.0, 123_456_789_012.0, 1e12])
    low, high = found.narrow(values, values)
    assert ((low < values) & (values <= high)).all()


@pytest.mark.parametrize("greatest", [10**6, 2 * 10**9, 3 * 10**9, 10**14])
def test_numbers_of_any_range_are_told_apart(greatest):
    """A price that is rounded to 0 would leave them in one group."""
    random = np.random.default_rng(1)
    policy = sf.Policy.parse("""
attributes: {x: {role: quasi-identifier, type: number}}
require: [k-anonymity: 10]
method: {mondrian: {refine: none}}
""")
    release = sf.publish(pa.table({"x": random.integers(0, greatest, 1000)}), policy)
    assert release.certificate.claims.groups > 60
