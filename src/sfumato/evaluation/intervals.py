"""Intervals of means and paired tests, by Student's t over the folds.

They are computed where an evaluation is made, since scipy is there then, and stored with it: whoever reads an evaluation
needs no scipy to draw its error bars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec

from sfumato.errors import MissingExtra
from sfumato.evaluation.result import ModelScore, PairedTest, mean_of

LEVEL = 0.95
"""Of every interval that is shown."""


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the interval around the mean; None where one value shows no spread.

    >>> round(half_width([1.0, 2.0, 3.0]), 4)
    2.4841
    """
    n = len(values)
    return None if n < 2 else quantile(n - 1) * standard_error(values)


def quantile(freedom: int, *, level: float = LEVEL) -> float:
    """The x with P(|T| <= x) = ``level``, T of Student's law with ``freedom`` degrees of freedom.

    >>> round(quantile(9), 4), round(quantile(1), 3)
    (2.2622, 12.706)
    """
    check_installed()
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def two_sided(t: float, *, freedom: int) -> float:
    """P(|T| >= |t|), the p-value of a two-sided test.

    >>> round(two_sided(2.262157, freedom=9), 6)
    0.05
    """
    check_installed()
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(t)))


def check_installed() -> None:
    """Raise where there is no scipy."""
    if not find_spec("scipy"):
        raise MissingExtra("evaluate", "An interval of an evaluation")


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    n, mean = len(values), mean_of(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def make_score(
    target: str, model: str, data: str, metric: str, test: Sequence[float], train: Sequence[float]
) -> ModelScore:
    """A score with its interval, from a number per fold on rows held out and on those learned from.

    >>> round(make_score("income", "decision-tree", "release", "accuracy", (0.8, 0.9), (0.9, 1.0)).half_width, 3)
    0.635
    """
    return ModelScore(
        target=target,
        model=model,
        data=data,
        metric=metric,
        test=tuple(test),
        train=tuple(train),
        half_width=half_width(test),
    )


def paired_test(
    first: ModelScore, second: ModelScore, *, names: tuple[str, str], one_sided: bool
) -> PairedTest | None:
    """Does ``first`` differ from (one-sided: beat) ``second``, fold by fold? None with fewer than two folds.

    >>> high = make_score("y", "m", "release", "accuracy", (0.9, 0.8, 0.9), ())
    >>> low = make_score("y", "m", "nothing", "accuracy", (0.5, 0.6, 0.6), ())
    >>> round(paired_test(high, low, names=("release", "nothing"), one_sided=True).p, 4)
    0.0175
    """
    differences = [a - b for a, b in zip(first.test, second.test, strict=True)]
    if len(differences) < 2:
        return None
    difference, spread = mean_of(differences), standard_error(differences)
    t = None if spread == 0 else difference / spread
    limit = math.copysign(math.inf, difference) if difference else 0.0
    p = two_sided(limit if t is None else t, freedom=len(differences) - 1)
    if one_sided:
        is_ahead = difference > 0 if first.more_is_better else difference < 0
        p = p / 2 if is_ahead else 1 - p / 2
    return PairedTest(
        target=first.target,
        model=first.model,
        metric=first.metric,
        first=names[0],
        second=names[1],
        difference=difference,
        t=t,
        p=p,
        one_sided=one_sided,
    )
