"""The compiled sums over boxes are those of few boxes, to the last bit: a report is the same either way."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.kernels.spread import add_boxes, add_few_boxes
from sfumato.randomness import seeded


@pytest.mark.parametrize("seed", range(5))
def test_many_boxes_are_added_up_as_few_are(seed):
    random = seeded(seed)
    place = np.append(
        0.0, np.cumsum(random.random(29) * (random.random(29) < 0.8))
    )  # some edges share a place
    low = random.integers(0, 29, 1000)
    high = low + 1 + np.floor(random.random(1000) * (29 - low)).astype(np.int64)
    rows = random.random(1000) * 100
    fast, few = np.zeros((2, 6, 30)), np.zeros((2, 6, 30))
    add_boxes(low, high, rows, place, *fast)
    add_few_boxes(low, high, rows, place, *few)
    np.testing.assert_array_equal(fast, few)
    assert few[:, 5].sum() == pytest.approx(2 * rows.sum())
