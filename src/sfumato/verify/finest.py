"""Published cells that are finer than the policy lets any be: what ``finest`` promises, read from the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.finest import FinestSlices
from sfumato.policy.hierarchy.declarations import Dates, NumberRanges
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.kinds import name_periods
from sfumato.policy.schema import Attribute
from sfumato.verify.exclusions import RestLabel
from sfumato.verify.statistics import span_of

Flags = NDArray[np.bool_]

OR_MISSING = " or missing"


def are_numbers_too_fine(attribute: Attribute, ends: Iterable[object]) -> Flags:
    """Which of these ranges of a number without a hierarchy end within a slice; what is no range has no ends."""
    known = [each if isinstance(each, tuple) else (-math.inf, math.inf) for each in ends]
    slices = FinestSlices.of(attribute)
    if slices is None:
        return np.zeros(len(known), dtype=np.bool_)
    low, high = np.array(known, dtype=np.float64).reshape(-1, 2).T
    return slices.are_too_fine(low, high)


def are_labels_too_fine(attribute: Attribute, labels: Iterable[str | None], *, excludes: bool) -> Flags:
    """Which labels of a column with a hierarchy are; with ``excludes``, labels of rests say what they exclude.

    >>> zips = Attribute("zip", "quasi-identifier", hierarchy={"mask": 5}, finest=2)
    >>> are_labels_too_fine(zips, ["5371*", "537**", "*", None], excludes=False).tolist()
    [True, False, False, False]
    """
    plain = [_without_rest(label, excludes=excludes) for label in labels]
    return np.array(
        [label not in ("", ROOT) and _is_too_fine(attribute, label) for label in plain], dtype=np.bool_
    )


def _is_too_fine(attribute: Attribute, label: str) -> bool:
    declared = attribute.declaration
    if not isinstance(declared, (Dates, NumberRanges)):
        return declared.is_too_fine(label)
    span = span_of(label, attribute)
    if not (math.isfinite(span.low) and math.isfinite(span.high)):
        return False
    if isinstance(declared, NumberRanges):
        return (
            not {span.low, span.high} <= set(declared.make_grid(attribute).edges.tolist())
            or span.low == span.high
        )
    days = (
        np.array([span.low - 1, span.low, span.high, span.high + 1]).astype(np.int64).astype("datetime64[D]")
    )
    before, begin, end, after = name_periods(days, declared.levels[0])
    return before == begin or end == after


def _without_rest(label: str | None, *, excludes: bool) -> str:
    """A label without what it excludes, and without what it says of missing; empty of no label."""
    rest = RestLabel.read(label) if excludes and label else None
    return (rest.node if rest else label or "").removesuffix(OR_MISSING)


__all__ = ["are_labels_too_fine", "are_numbers_too_fine"]
