"""The claims of a risk-utility release that its folder can show: rows, boxes, utility, and the figures of the run.

That the optimizer found the best box is not checked: that would take the raw rows. Risk takes the side table, and is
checked in ``risk``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.policy.options.risk_utility import Absolute, RiskUtilityOptions
from sfumato.release.certificate import Claims, UtilityClaim
from sfumato.verify.checks import Check, check_details, check_equal
from sfumato.verify.risk_utility.boxes import TOLERANCE, Boxes, Utilities, claims_of, promised_share

TRADEOFF = "tradeoff"
"""What the certificate calls the figures of the run."""

WEIGHTED = (
    "Risks are weighted: the weights of a row's columns together, over the rows that fit it. So they can be above 1, and "
    "are no probabilities."
)
"""Said wherever a risk above 1 is told."""


def is_above_one(*risks: float) -> bool:
    """Is one of these no probability? Weights are rounded, so that 1 may be a little more.

    >>> is_above_one(0.5, 1.0000000001), is_above_one(0.5, 1.5)
    (False, True)
    """
    return max(risks) > 1 + 1e-6


RISKS_ARE_WEIGHTED = Check(
    "risks are weighted",
    True,
    "the weights of a row's columns together, over the rows that fit it; so they can be above 1 and are no probabilities",
    is_note=True,
)
"""The same beside the checks of such risks."""

NOT_K_ANONYMITY = Check(
    "this is not k-anonymity",
    True,
    "a box may be that of one published row; risk is counted against the side table",
    is_note=True,
)
NO_SIDE_TABLE = Check(
    "owner's word: risk, which was not recomputed",
    True,
    "it is counted against a side table, which is not in the folder; give it with --side-table",
    is_note=True,
)


def check_boxes(boxes: Boxes, claimed: Claims, figures: Mapping[str, Any]) -> Iterator[Check]:
    """Every claim of a risk-utility release that its folder can show."""
    claim = "every label is a node of its column's hierarchy"
    if strange := boxes.find_strange():
        name, n = strange[0]
        yield Check(claim, False, f"column {name!r} has others in {n:,} rows")
        return
    yield Check(claim, True)
    assert claimed.utility is not None
    options, utilities = boxes.policy.options_for(RiskUtilityOptions), Utilities.of(boxes)
    found = claims_of(boxes)
    yield check_equal("the release holds {}", claimed.rows, found.rows, of="row")
    if not found.rows:
        yield Check("the release holds any rows", False, "there are none")
    yield check_equal("the rows form {}", claimed.groups, found.groups, of="group")
    yield check_equal("the number of suppressed rows is {}", claimed.suppressed, found.suppressed)
    yield from check_details(claimed, found)
    yield from check_utility(claimed.utility, found.utility, utilities)
    yield from check_promise(utilities, options)
    yield from _check_figures(figures.get(TRADEOFF), boxes, utilities, found)
    yield NOT_K_ANONYMITY


def check_utility(
    claimed: UtilityClaim, found: UtilityClaim | None, utilities: Utilities | str
) -> Iterator[Check]:
    assert found is not None
    is_same = all(
        getattr(claimed, word) == getattr(found, word) for word in ("measure", "at_least", "risk_at_most")
    )
    yield Check(
        "utility is claimed as the policy measures and bounds it", is_same, "" if is_same else "they differ"
    )
    for word in ("mean", "least"):
        said, is_so = getattr(claimed, word), getattr(found, word)
        if said is None and is_so is None:
            continue
        is_close = said is not None and is_so is not None and math.isclose(said, is_so, rel_tol=TOLERANCE)
        shown = "not known" if said is None else f"{said:.12g}"
        detail = "" if is_close else "it is not known" if is_so is None else f"it is {is_so:.12g}"
        yield Check(f"the {word} utility of the published rows is {shown}", is_close, detail)
    if isinstance(utilities, str):
        yield Check(
            "no utility is claimed",
            True,
            f"it depends on how many values column {utilities!r} has, which the folder does not tell; declare them",
            is_note=True,
        )


def check_promise(utilities: Utilities | str, options: RiskUtilityOptions) -> Iterator[Check]:
    promised = options.promised
    if promised is None:
        why = "weighs risk against utility row by row"
        if options.risk_at_most is not None:
            why = f"bounds the risk of each row, by {float(options.risk_at_most):.6g}"
        yield Check("no utility is promised", True, f"the objective {options.objective} {why}", is_note=True)
    if promised is None or isinstance(utilities, str):
        return
    count = utilities.boxes.count
    found = utilities.of_line
    slack = TOLERANCE * np.maximum(found.most_raw_gain, 1.0)
    n_rows, n_failing = utilities.boxes.n_rows, int(count[found.best_excess < -slack].sum())
    n_certain = int(count[found.worst_excess >= -slack].sum())
    if isinstance(promised, Absolute):
        yield from _check_value(promised, n_rows, n_failing, n_certain)
        return
    detail = (
        f"{n_failing:,} rows cannot, whatever they were"
        if n_failing
        else f"whatever the rows were, for {n_certain:,} of {n_rows:,}"
    )
    yield Check(
        f"every row keeps at least {float(promised):.6g} of the way from suppressed to raw utility",
        not n_failing,
        detail,
    )
    if not n_failing and n_certain < n_rows:
        yield Check(
            f"of {n_rows - n_certain:,} rows this depends on what they were",
            True,
            "leaves of unequal utility lie below their boxes, and the raw rows are not in the folder",
            is_note=True,
        )


def _check_value(promised: Absolute, n_rows: int, n_failing: int, n_certain: int) -> Iterator[Check]:
    """A utility that every box has: what the rows were does not matter."""
    detail = f"{n_failing:,} rows have less" if n_failing else ""
    yield Check(f"every row has a utility of at least {float(promised.value):.6g}", not n_failing, detail)
    if not n_failing and n_certain < n_rows:
        yield Check(
            f"of {n_rows - n_certain:,} rows this depends on how their labels are read",
            True,
            "labels of theirs stand at several nodes of a hierarchy",
            is_note=True,
        )


# ---- figures of the run --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RiskBin:
    """How many rows have a risk of ``at_most`` that, and above that of the bin before: as they are, and as published."""

    at_most: float
    raw: int
    published: int


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What the run stated of risk and utility. Certificates of older versions hold no ``histogram`` of risk."""

    rows: int
    proved: int
    suppressed: int
    raw: int
    lacking: int
    risk: tuple[float, float]
    raw_risk: tuple[float, float]
    share: tuple[float, float]
    side_rows: int
    is_own: bool
    sha256: str | None
    histogram: tuple[RiskBin, ...] = ()
    side_people: int | None = None
    """People of the side table, if risk counts them and not rows."""

    @property
    def is_above_one(self) -> bool:
        """Is some risk above 1, before or after?"""
        return is_above_one(self.raw_risk[1], self.risk[1])

    @classmethod
    def of(cls, given: Any) -> RunFigures:
        """From a certificate; KeyError, TypeError or ValueError if it does not have them."""
        side = given["side table"]
        if not isinstance(side["own"], bool) or not isinstance(side["sha256"], str | None):
            raise TypeError
        return cls(
            rows=_whole(given["rows"]),
            proved=_whole(given["proved"]),
            suppressed=_whole(given["suppressed"]),
            raw=_whole(given["raw"]),
            lacking=_whole(given["lacking"]),
            risk=_pair(given["risk"], "greatest"),
            raw_risk=_pair(given["raw risk"], "greatest"),
            share=_pair(given["share"], "least"),
            side_rows=_whole(side["rows"]),
            is_own=side["own"],
            sha256=side["sha256"],
            histogram=tuple(
                RiskBin(_number(each["at most"]), _whole(each["raw"]), _whole(each["published"]))
                for each in given.get("histogram", ())
            ),
            side_people=_whole(side["people"]) if "people" in side else None,
        )


def _pair(given: Any, extreme: str) -> tuple[float, float]:
    return _number(given["mean"]), _number(given[extreme])


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not value >= 0:
        raise TypeError
    return float(value)


def _check_figures(given: Any, boxes: Boxes, utilities: Utilities | str, found: Claims) -> Iterator[Check]:
    claim = "the figures of risk and utility are there, and the rows can have them"
    try:
        figures = RunFigures.of(given)
    except (KeyError, TypeError, ValueError, OverflowError):
        yield Check(claim, False, "some are not there, or are no such numbers")
        return
    options = boxes.policy.options_for(RiskUtilityOptions)
    faults = [
        *([f"they speak of {figures.rows:,} rows"] if figures.rows != found.rows else []),
        *([f"they say {figures.suppressed:,} are suppressed"]
          if not _is_between(figures.suppressed, *boxes.count_suppressed()) else []),
        *([f"they say {figures.raw:,} are as they were"]
          if not _is_between(figures.raw, *boxes.count_raw()) else []),
        *(["more rows are proved than there are"] if figures.proved > found.rows else []),
        *(["more rows are lacking than there are"] if figures.lacking > found.rows else []),
        *(["a mean risk is above the greatest"] if _is_reversed(figures) else []),
        *(["the side table is another than the policy's"]
          if figures.is_own != (options.side_table is None) else []),
        *(["the histogram of risk is of other rows"] if not _fits_rows(figures) else []),
        *(["the greatest risk is above what the policy allows"] if _is_above_limit(figures, options) else []),
        *(["they count people, and the policy counts rows"]
          if figures.side_people is not None and boxes.policy.person is None else []),
        *(["they count rows, and the policy counts people"]
          if figures.is_own and figures.side_people is None and boxes.policy.person is not None else []),
        *(["the table itself lacks a row"] if figures.is_own and figures.lacking else []),
        *(["the table itself has another number of rows"]
          if figures.is_own and options.private is None and figures.side_rows != found.rows else []),
    ]  # fmt: skip
    if isinstance(utilities, Utilities) and found.rows:
        faults += share_faults(figures, utilities, options)
    yield Check(claim, not faults, ", and ".join(faults))


def _fits_rows(figures: RunFigures) -> bool:
    """Does the histogram hold every published row once, in bins that ascend to the greatest risk?"""
    bins = figures.histogram
    edges = [each.at_most for each in bins]
    reached = [each.at_most for each in bins if each.published]
    return not bins or (
        edges == sorted(set(edges))
        and sum(each.published for each in bins) == figures.rows
        and figures.risk[1] <= reached[-1] * (1 + TOLERANCE)
    )


def _is_above_limit(figures: RunFigures, options: RiskUtilityOptions) -> bool:
    limit = options.risk_at_most
    return limit is not None and figures.risk[1] > float(limit) * (1 + TOLERANCE)


def _is_reversed(figures: RunFigures) -> bool:
    return any(mean > greatest * (1 + TOLERANCE) for mean, greatest in (figures.risk, figures.raw_risk))


def share_faults(figures: RunFigures, utilities: Utilities, options: RiskUtilityOptions) -> list[str]:
    """The shares of utility that the run states must be possible for these boxes."""
    low, high = utilities.shares()
    mean, least = figures.share
    count = utilities.boxes.count
    faults = []
    if not _is_between(mean, float(np.average(low, weights=count)), float(np.average(high, weights=count))):
        faults.append("the mean share of utility is not one that these boxes can have")
    if not _is_between(least, float(low.min()), float(high.min())):
        faults.append("the least share of utility is not one that these boxes can have")
    promised = promised_share(options)
    if promised is not None and least < float(promised) - TOLERANCE:
        faults.append("the least share of utility is below what is promised")
    return faults


def _is_between(number: float, low: float, high: float) -> bool:
    slack = TOLERANCE * max(abs(low), abs(high), 1.0)
    return low - slack <= number <= high + slack
