"""The ledger of a private release: exact fractions of epsilon, each as the formula of the method says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.release.certificate import Privacy
from sfumato.verify.checks import COMPOSITION, Check
from sfumato.verify.diffgen.cuts import Cut, classes_of

ROWS, SPLIT_POINT, SPECIALIZATION, COUNTS = "rows", "split point", "specialization", "counts"
EXPONENTIAL, PERMUTE_AND_FLIP, DISCRETE_LAPLACE = "exponential", "permute-and-flip", "discrete Laplace"
UNITS = 1 << 20
"""Scores that are real numbers are counted in units of 2^-20."""


@dataclass(frozen=True, slots=True)
class StatedDraw:
    """One line of the ledger; the scale is for each row that a person may have."""

    what: str
    of: str
    mechanism: str
    share: Fraction
    scale: Fraction
    result: int | None = None


def check_ledger(privacy: Privacy, policy: Policy, cuts: Sequence[Cut] | None) -> Iterator[Check]:
    """Does the ledger account for all of epsilon, and for the cuts as they are?

    A person with m rows changes by m times as much as a row does what noise must hide, so scales are m times as large.
    """
    options = policy.options_for(DiffGenOptions)
    most = policy.rows_at_most or 1
    draws = [
        StatedDraw(
            line["draw"],
            line.get("of", ""),
            line["mechanism"],
            Fraction(line["share"]),
            Fraction(line["scale"]) / most,
            line.get("result"),
        )
        for line in privacy.ledger
    ]
    epsilon = options.epsilon
    is_same = privacy.epsilon == epsilon
    yield Check(f"epsilon is {privacy.epsilon}", is_same, "" if is_same else f"the policy says {epsilon}")
    spent = sum((draw.share for draw in draws), Fraction(0))
    yield Check(
        f"the shares of {len(draws):,} draws sum to {privacy.spent}",
        spent == privacy.spent,
        "" if spent == privacy.spent else f"they sum to {spent}",
    )
    rest = epsilon - spent
    is_sum = rest == privacy.unspent >= 0
    detail = "" if is_sum else "more than epsilon was spent" if rest < 0 else f"{rest} is left"
    yield Check(f"{privacy.unspent} of epsilon is unspent", is_sum, detail)
    yield Check("the certificate composes shares as the method may", privacy.composition == COMPOSITION, "")
    fault = _fault(draws, options, policy, most)
    yield Check("every share and scale is as the formula of the method says", not fault, fault)
    if cuts is not None:
        fault = _fault_of_cuts(draws, options, cuts)
        yield Check("the ledger has as many draws as the cuts took", not fault, fault)


def _fault(draws: Sequence[StatedDraw], options: DiffGenOptions, policy: Policy, most: int) -> str:
    """What is wrong with the draws by themselves, where a person has at most ``most`` rows."""
    selections, counts = draws[:-1], draws[-1:]
    if [draw.what for draw in counts] != [COUNTS] or any(draw.what == COUNTS for draw in selections):
        return "the counts are not its last draw, and the only one of them"
    if any(draw.share <= 0 for draw in draws):
        return "a share is not above 0"
    rest = options.epsilon - sum((draw.share for draw in selections), Fraction(0))
    is_paper = options.cuts is None and options.variant == "paper"
    share = options.epsilon / 2 if is_paper else rest
    if counts[0] != StatedDraw(COUNTS, "", DISCRETE_LAPLACE, share, 1 / share if share else Fraction(0)):
        return "the share or the scale of the counts is another"
    if options.cuts is not None:
        return "cuts that the owner gave cost nothing" if selections else ""
    if is_paper:
        return _fault_of_paper(selections, options, policy)
    return _fault_of_tuned(selections, options, most)


def _fault_of_paper(draws: Sequence[StatedDraw], options: DiffGenOptions, policy: Policy) -> str:
    r"""Every draw costs the same, and follows the exponential law [MCFY11, Algorithm 1 and equation 5].

    .. math:: \epsilon' = \epsilon / 2(|A_n| + 2h), \qquad scale = 2 \Delta u / \epsilon'
    """
    numbers = [attribute.name for attribute in policy.schema.quasi_identifiers if attribute.is_ordered]
    h = _paper_specializations(options)
    if not draws:
        return "" if h == 0 or not numbers else "the split points that come first are not there"
    share = options.epsilon / (2 * (len(numbers) + 2 * h))
    sensitivity = Fraction(1)
    if options.score == "infogain":
        sensitivity = Fraction(math.ceil(UNITS * math.log2(len(classes_of(policy)[1]))) + 2)
    laws = {(draw.mechanism, draw.share, draw.scale, draw.result) for draw in draws}
    if laws != {(EXPONENTIAL, share, 2 * sensitivity / share, None)}:
        return "the share, scale or mechanism of a choice is another"
    if [(draw.what, draw.of) for draw in draws[: len(numbers)]] != [(SPLIT_POINT, name) for name in numbers]:
        return "the split points that come first are others"
    before = SPLIT_POINT
    for draw in draws[len(numbers) :]:
        is_split = draw.what == SPLIT_POINT and draw.of in numbers and before == SPECIALIZATION
        if not is_split and (draw.what, draw.of) != (SPECIALIZATION, ""):
            return "a draw has no place in the method"
        before = draw.what
    return ""


def _paper_specializations(options: DiffGenOptions) -> int:
    return 10 if options.specializations is None else options.specializations


def _fault_of_tuned(draws: Sequence[StatedDraw], options: DiffGenOptions, most: int) -> str:
    """A noisy number of rows says how many monotone selections there are, unless the policy does; all are alike.

    The number of rows has 1/100 of epsilon, and selections 7/10 of the rest. Share times scale is what one row can
    change.
    """
    epsilon, h = options.epsilon, options.specializations
    if h is None:
        if not draws or draws[0].result is None:
            return "the number of rows is not drawn first"
        first = draws[0]
        if first != StatedDraw(ROWS, "", DISCRETE_LAPLACE, epsilon / 100, 100 / epsilon, first.result):
            return "the number of rows is drawn in another way"
        h = _tuned_specializations(epsilon / most * max(first.result or 0, 1))
        epsilon, draws = epsilon * Fraction(99, 100), draws[1:]
    if not draws:
        return ""
    if len(draws) > h:
        return f"there are more than {h:,} specializations"
    sensitivities = {"max": Fraction(1), "gini": Fraction(2 * UNITS), "smooth": Fraction(UNITS)}
    share = Fraction(7, 10) * epsilon / h
    expected = StatedDraw(
        SPECIALIZATION, "", PERMUTE_AND_FLIP, share, sensitivities[options.score or "smooth"] / share
    )
    if any(draw != expected for draw in draws):
        return "the share, scale or mechanism of a choice is another"
    return ""


def _tuned_specializations(n: Fraction) -> int:
    """4 log10 n, rounded to the nearest and the half up, less 8; from 3 to 20. A power decides, not a logarithm."""
    return next((h for h in range(20, 3, -1) if 10 ** (2 * h + 15) <= n**8), 3)


def _fault_of_cuts(draws: Sequence[StatedDraw], options: DiffGenOptions, cuts: Sequence[Cut]) -> str:
    """What is wrong with the draws, given the cuts that came of them."""
    if options.cuts is not None:
        return ""
    n_taken = sum(draw.what == SPECIALIZATION for draw in draws)
    n_splits = sum(cut.n_splits for cut in cuts)
    if n_taken != n_splits:
        return f"there are {n_taken:,} specializations for {n_splits:,} splits"
    if options.variant != "paper":
        most = options.specializations
        return "" if most is None or n_taken <= most else f"the policy allows {most:,} specializations"
    h = _paper_specializations(options)
    if n_taken > h:
        return f"the policy allows {h:,} specializations"
    n_lacking = 0
    for cut in cuts:
        n_points = sum((draw.what, draw.of) == (SPLIT_POINT, cut.name) for draw in draws)
        is_ordered = n_points > 0
        if n_points > cut.n_splits + 1:
            return f"column {cut.name!r} has more split points than pieces"
        if is_ordered:  # two pieces of one value each ask for none, nor does the last specialization of all
            n_lacking += max(cut.n_splits + 1 - n_points - cut.n_single // 2, 0)
    if n_lacking > (n_taken == h):
        return "there are fewer split points than the cuts need"
    return ""
