"""Rows that are spread evenly over boxes, added up along a line."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.late import Late

LEAST_WIDTH = 1e-9
"""A box is at least this wide, so that its rows can be divided by its width."""


@Late
def add_boxes(low, high, rows, place, begin, end):
    """What boxes add to sums over all lines, as coefficients of polynomials in a line's place.

    Rows to the left of a line in a box from ``first`` to ``last`` are rows (x - first) / width, and by what
    the line divides them, rows (x - first) (last - x) / width^2.

    low, high   (boxes,) int64: the edges where a box begins and ends                                 IN
    rows        (boxes,) float64                                                                      IN
    place       (edges,) float64                                                                      IN
    begin, end  (6, edges) float64: per width, times first; squared, times first + last, times first
                times last; and the rows themselves: of boxes that begin, and that end, at an edge    IN+OUT
    """
    for i in range(low.shape[0]):
        a, b = low[i], high[i]
        first, last = place[a], place[b]
        width = max(last - first, LEAST_WIDTH)
        per_width = rows[i] / width
        squared = per_width / width
        begin[0, a] += per_width
        begin[1, a] += per_width * first
        begin[2, a] += squared
        begin[3, a] += squared * (first + last)
        begin[4, a] += squared * first * last
        begin[5, a] += rows[i]
        end[0, b] += per_width
        end[1, b] += per_width * first
        end[2, b] += squared
        end[3, b] += squared * (first + last)
        end[4, b] += squared * first * last
        end[5, b] += rows[i]


def add_few_boxes(low, high, rows, place, begin, end):
    """The same where they are so few that loading numba would take longer."""
    first, last = place[low], place[high]
    width = np.maximum(last - first, LEAST_WIDTH)
    per_width = rows / width
    squared = per_width / width
    weights = [per_width, per_width * first, squared, squared * (first + last), squared * first * last, rows]
    for at, weight in enumerate(weights):
        begin[at] += np.bincount(low, weight, len(place))
        end[at] += np.bincount(high, weight, len(place))
