"""Numbers as the finest slices that a policy allows: each cell becomes the greatest value of its slice.

That comes before all else, so a column of numbers with ``finest`` is a column of fewer numbers, a width apart, and
thresholds, boxes and labels follow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from sfumato.encoding.domain import OrderedDomain
from sfumato.policy.finest import FinestSlices
from sfumato.policy.schema import Attribute


def represent_cells(cells: pa.Array, slices: FinestSlices) -> pa.Array:
    """Each number as the greatest value of its slice; null stays null.

    Cells outside the bounds, or off the step, stay so for whoever counts them.
    """
    is_missing = np.asarray(cells.is_null().to_numpy(zero_copy_only=False))
    values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.float64)
    return pa.array(slices.represent(values), mask=is_missing)


def represented(attribute: Attribute, slices: FinestSlices) -> Attribute:
    """The column whose cells are the greatest values of their slices: they are a width apart."""
    return replace(attribute, bounds=slices.bounds, step=float(slices.width), finest=None)


def in_slices(domain: OrderedDomain, attribute: Attribute, slices: FinestSlices) -> OrderedDomain:
    """The domain of such a column as that of the column itself, with the ends of the slices as its outer ends."""
    if attribute.bounds is not None:
        low, high = attribute.bounds
        return replace(domain, attribute=attribute, low=float(low), high=float(high))
    if domain.low > domain.high:  # no cell is there
        return replace(domain, attribute=attribute)
    ends = slices.number(np.array([domain.low, domain.high]))
    low, high = slices.first(ends[:1]).item(), slices.last(ends[1:]).item()
    return replace(domain, attribute=attribute, low=low, high=high)


__all__ = ["in_slices", "represent_cells", "represented"]
