"""What a release promises, in lines for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from sfumato.errors import number_of
from sfumato.policy.options.risk_utility import LAGRANGIAN, Absolute, RiskUtilityOptions
from sfumato.release.certificate import Privacy, Sampling
from sfumato.release.release import Release
from sfumato.verify.risk_utility.claims import TRADEOFF, WEIGHTED, is_above_one

ALL_OR_NOTHING = 0.95
"""A share of the rows so large that hardly any has a generalization between raw and suppressed."""


def promises(release: Release) -> Iterator[str]:
    """What the release promises, a line each."""
    certificate = release.certificate
    if certificate.privacy is not None:
        yield from _private_lines(certificate.privacy)
        return
    if TRADEOFF in certificate.figures:
        yield from _tradeoff_lines(release)
        return
    if certificate.promises_nothing:
        yield "Nothing is promised: the policy requires nothing."
    counts_people = certificate.claims.people is not None
    for requirement, claim in zip(release.policy.requirements, certificate.claims.requirements, strict=True):
        describe = requirement.describe_worst_of_people if counts_people else requirement.describe_worst
        yield f"{requirement}: holds; {describe(claim.achieved, digits=6)}"


def _tradeoff_lines(release: Release) -> Iterator[str]:
    """What each row was given, what it is worth, and what is not so good about it."""
    options, found = release.policy.options_for(RiskUtilityOptions), release.certificate.figures[TRADEOFF]
    if options.private is not None:
        study = found["published"]
        yield (
            f"No privacy is claimed: this is Algorithm {study['algorithm']} of the paper, for study; boxes cover at "
            f"least {study['covered']:,} rows."
        )
    share, n_rows = found["share"], found["rows"]
    yield (
        f"utility: each row keeps at least {_round_down(share['least'])}{_describe_asked(options)}, "
        f"{_round_down(share['mean'])} on average"
    )
    risk, raw = found["risk"], found["raw risk"]
    limit = options.risk_at_most
    allowed = "" if limit is None else f" ({float(limit):.6g} is allowed)"
    yield (
        f"risk of a row, before and after: {raw['mean']:.4g} and {risk['mean']:.4g} on average, "
        f"{raw['greatest']:.4g} and {risk['greatest']:.4g} at most{allowed}"
    )
    if is_above_one(raw["greatest"], risk["greatest"]):
        yield WEIGHTED
    yield f"optimal: proved for {found['proved']:,} of {number_of(n_rows, 'row')}"
    yield f"optimizer {found['optimizer']}: {found['reason']}"
    if found["suppressed"]:
        yield f"suppressed, published as roots alone: {number_of(found['suppressed'], 'row')}"
    if found["raw"]:
        yield f"published as they are, with all their quasi-identifiers: {number_of(found['raw'], 'row')}"
    if found["lacking"]:
        yield f"not in the side table: {number_of(found['lacking'], 'row')}, each counted beside those that it has"
    if options.objective == LAGRANGIAN and found["raw"] + found["suppressed"] >= ALL_OR_NOTHING * n_rows:
        yield (
            f"The Lagrangian leaves rows as they are ({found['raw']:,} here) or suppresses them "
            f"({found['suppressed']:,}), "
            "and hardly ever anything between; try objective: threshold, or log-risk."
        )


def _describe_asked(options: RiskUtilityOptions) -> str:
    """What the policy asks each row to keep of its utility, if it asks for anything.

    >>> _describe_asked(RiskUtilityOptions())
    ' (60% was asked)'
    """
    promised, asked = options.promised, options.utility_at_least
    if promised is None or asked is None:
        return ""
    part = f"; sigma_1 of it, {_spell(promised)}, is promised" if promised != asked else ""
    return f" ({_spell(asked)} was asked{part})"


def _spell(asked: Fraction | Absolute) -> str:
    """A share in percent; a utility in its own unit."""
    return f"a utility of {asked}" if isinstance(asked, Absolute) else _round_down(float(asked))


def _round_down(share: float) -> str:
    """A share in percent, rounded down, but not for the last bit of a float.

    >>> _round_down(0.29), _round_down(2 / 3), _round_down(1.0)
    ('29%', '66.6%', '100%')
    """
    return f"{math.floor(1000 * share + 1e-6) / 10:g}%"


def _private_lines(privacy: Privacy) -> Iterator[str]:
    if not privacy.is_secret:
        yield f"Nothing is promised: {privacy.randomness}."
    else:
        one = " (one person is one row)" if privacy.rows_at_most is None else ""
        yield f"{privacy.definition}: {privacy.promise}{one}"
    if privacy.sampling is not None:
        yield from _sampling_lines(privacy.sampling)
        return
    unspent = f", {privacy.unspent} unspent" if privacy.unspent else ""
    yield f"ledger: {privacy.spent} spent on {number_of(len(privacy.ledger), 'draw')}{unspent}"


def _sampling_lines(found: Sampling) -> Iterator[str]:
    yield (
        f"each row was drawn with a chance of {found.chance}, and boxes that fewer than {found.least:,} of the drawn "
        "rows have are not published"
    )
    if found.outlook is None:
        return
    told = f"{found.outlook:.1%} of the rows of a table like the side table have a box that is drawn often enough"
    yield told if found.is_useful else f"these numbers make the release of little use: only {told}"
