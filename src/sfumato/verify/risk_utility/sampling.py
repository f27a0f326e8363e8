r"""Checks a private risk-utility release, from its folder and its policy alone.

Nothing here knows how boxes were chosen, or how the promise was computed. Labels are read as nodes of the declared
hierarchies; each box must be published at least as often as the certificate says; and the delta of such a draw is
computed anew, number of rows by number of rows, from the binomial law itself [LQS12]:

.. math:: \delta \ge P[Bin(n + 1, s) \ge k_0] - e^\epsilon P[Bin(n, s) \ge k_0] \quad \text{for all } n

What no output can show is the randomness: that it was secret, and that every row was drawn with the same chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError
from sfumato.policy.options.risk_utility import PrivateSampling, RiskUtilityOptions
from sfumato.release.certificate import Certificate, Privacy, Sampling
from sfumato.release.folder import sha256_of
from sfumato.table.opening import open_table
from sfumato.table.stored import FiledRows
from sfumato.verify.checks import COMPOSITION, Check, check_equal, check_statements, note_randomness
from sfumato.verify.risk_utility.boxes import Boxes, Utilities, claims_of
from sfumato.verify.risk_utility.claims import check_promise, check_utility

STATEMENTS = ("secret (operating system)", "seeded, not private")
DRAW = {"draw": "rows", "mechanism": "Bernoulli"}

DIGITS = 120
MOST_STEPS = 3_000_000
"""Numbers of rows that are looked at; a plan that needs more is none that this program makes."""

NO_SIDE_TABLE = Check(
    "owner's word: the side table is public",
    True,
    "and that it is this one can be checked with --side-table",
    is_note=True,
)


def check_sample(
    boxes: Boxes, rows: pa.Table | FiledRows, certificate: Certificate, side_table: Any = None
) -> Iterator[Check]:
    """Every claim of a private risk-utility release: ``boxes`` are those of its ``rows``."""
    options = boxes.policy.options_for(RiskUtilityOptions)
    privacy, private = certificate.privacy, options.private
    if privacy is None or privacy.sampling is None or private is None:
        yield Check("the certificate says how rows were drawn", False, "it does not")
        return
    sampling = privacy.sampling
    yield from _check_labels(boxes, sampling)
    yield _check_order(boxes, rows)
    yield from _check_claims(boxes, certificate, options)
    yield from _check_privacy(privacy, sampling, private)
    yield from check_statements(certificate, boxes.policy)
    is_known = privacy.randomness in STATEMENTS
    yield Check(
        f"the certificate says of the draws: {privacy.randomness}",
        is_known,
        "" if is_known else "that is no source of chance",
    )
    yield note_randomness(privacy)
    yield NO_SIDE_TABLE if side_table is None else _check_side_table(sampling, side_table)


# ---- the rows ------------------------------------------------------------------------------------------------


def _check_labels(boxes: Boxes, sampling: Sampling) -> Iterator[Check]:
    strange = boxes.find_strange()
    detail = f"column {strange[0][0]!r} has others in {strange[0][1]:,} rows" if strange else ""
    yield Check("every label is a node of its column's declared hierarchy", not strange, detail)
    rare = boxes.count[boxes.count < sampling.least]
    detail = f"{len(rare):,} boxes are published less often" if len(rare) else ""
    yield Check(f"every box is published at least {sampling.least:,} times", not len(rare), detail)


def _check_order(boxes: Boxes, rows: pa.Table | FiledRows) -> Check:
    """Rows stand in the order of their boxes, the nodes of the first column first: their order tells nothing.

    A label that stands at several nodes has the place of the first.
    """
    claim = "the rows stand in the order of their boxes"
    if _n_runs(rows.load() if isinstance(rows, FiledRows) else rows) != len(boxes.count):
        return Check(claim, False, "rows of one box stand apart")
    keys = [
        tuple(own[at][:1] for own, at in zip(boxes.nodes, line, strict=True))
        for line in boxes.of_line.tolist()
    ]
    is_sorted = keys == sorted(keys)
    return Check(claim, is_sorted, "" if is_sorted else "boxes stand in another order")


def _n_runs(rows: pa.Table) -> int:
    """Rows that are not like the one before them."""
    if not rows.num_rows:
        return 0
    is_new = np.zeros(rows.num_rows - 1, dtype=np.bool_)
    for column in rows.columns:
        cells = column.combine_chunks()
        cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        codes = cells.indices.fill_null(len(cells.dictionary)).to_numpy(zero_copy_only=False)
        is_new |= codes[1:] != codes[:-1]
    return 1 + int(is_new.sum())


def _check_claims(boxes: Boxes, certificate: Certificate, options: RiskUtilityOptions) -> Iterator[Check]:
    claimed = certificate.claims
    if claimed.utility is None or boxes.find_strange():
        return
    found = claims_of(boxes)
    yield check_equal("the release holds {}", claimed.rows, found.rows, of="row")
    yield check_equal("the rows form {}", claimed.groups, found.groups, of="group")
    yield check_equal("the number of suppressed rows is {}", claimed.suppressed, found.suppressed)
    names = tuple(attribute.name for attribute in boxes.policy.schema.quasi_identifiers)
    is_all = claimed.utility.missing == names
    yield Check("every column has a value for missing", is_all, "" if is_all else "some have none")
    utilities = Utilities.of(boxes)
    yield from check_utility(claimed.utility, found.utility, utilities)
    yield from check_promise(utilities, options)


# ---- the promise ---------------------------------------------------------------------------------------------


def _check_privacy(privacy: Privacy, sampling: Sampling, private: PrivateSampling) -> Iterator[Check]:
    is_same = privacy.epsilon == private.epsilon
    detail = "" if is_same else f"the policy says {private.epsilon}"
    yield Check(f"epsilon is {privacy.epsilon}", is_same, detail)
    is_within = 0 < privacy.delta <= private.delta
    detail = "" if is_within else f"the policy allows {float(private.delta):.6g}"
    yield Check(f"delta is {float(privacy.delta):.6g}", is_within, detail)
    chance = sampling.chance
    expected = chosen_chance(private.epsilon) if private.sample is None else private.sample
    is_asked = chance == expected
    detail = "" if is_asked else f"the policy asks for {expected}"
    yield Check(f"the certificate says that each row was drawn with a chance of {chance}", is_asked, detail)
    is_excused = 0 < chance < 1 and _is_excused(privacy.epsilon, chance)
    detail = "" if is_excused else "it is above 1 - exp(-epsilon)"
    yield Check("a row that is left out is excused by those that were not drawn", is_excused, detail)
    claim = f"the chance and the least number {sampling.least:,} reach that delta"
    if not is_excused:
        yield Check(claim, False, "no least number reaches one")
    else:
        least = recompute_delta(privacy.epsilon, chance, sampling.least)
        is_reached = least is not None and least <= privacy.delta
        detail = "it would take too long to recompute" if least is None else f"it is {float(least):.6g}"
        yield Check(claim, is_reached, "" if is_reached else detail)
    line = {**DRAW, "share": str(privacy.epsilon), "scale": str(chance)}
    is_one = [dict(draw) for draw in privacy.ledger] == [line] and privacy.composition == COMPOSITION
    is_spent = privacy.spent == privacy.epsilon and privacy.unspent == 0
    detail = "" if is_one and is_spent else "it holds others, or another share"
    yield Check("the ledger holds this draw alone, and all of epsilon", is_one and is_spent, detail)


def _is_excused(epsilon: Fraction, chance: Fraction) -> bool:
    with localcontext(Context(prec=DIGITS)):
        return (1 - _decimal(chance)) * _decimal(epsilon).exp() >= 1


def chosen_chance(epsilon: Fraction) -> Fraction:
    """What a policy that gives no sample takes: the greatest of 1/2, 1/5, 1/10, 1/20, ... that epsilon excuses."""
    n = 1
    while n < 10**6:
        for chance in (Fraction(1, 2 * n), Fraction(1, 5 * n), Fraction(1, 10 * n)):
            if _is_excused(epsilon, chance):
                return chance
        n *= 10
    return Fraction(0)


def recompute_delta(epsilon: Fraction, chance: Fraction, least: int) -> Fraction | None:
    """The greatest excess over all numbers of rows, in decimals of 120 digits; None if there are too many to look at.

    Rows are added one by one: P[Bin(n + 1) >= k] = P[Bin(n) >= k] + s P[Bin(n) = k - 1]. It grows up to some number of
    rows; from there on another, larger set of outputs is at issue, whose excess falls
    (``methods/risk_utility/private/proof.md``, 6).

    >>> float(recompute_delta(Fraction(1), Fraction(1, 2), 35))
    9.24693...e-07
    """
    if not 1 <= least <= MOST_STEPS:
        return None
    with localcontext(Context(prec=DIGITS)):
        s, factor = _decimal(chance), _decimal(epsilon).exp()
        just_below, at_least = s ** (least - 1), Decimal(0)  # of least - 1 rows
        worst = Decimal(0)
        for n in range(least - 1, least - 1 + MOST_STEPS):
            more = at_least + s * just_below
            excess = more - factor * at_least
            if excess < worst:
                return Fraction(worst) - Fraction(1, 10 ** (DIGITS - 20))
            worst, at_least = excess, more
            just_below = just_below * (1 - s) * (n + 1) / (n + 2 - least)
    return None


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


# ---- the side table ------------------------------------------------------------------------------------------


def _check_side_table(sampling: Sampling, given: Any) -> Check:
    claim = "the public side table is the one that boxes were chosen by"
    if isinstance(given, str | Path) and sampling.side_sha256 is not None:
        try:
            is_same = sha256_of(Path(given)) == sampling.side_sha256
        except OSError:
            raise InputError(f"The side table {given} cannot be read.") from None
        if not is_same:
            return Check(claim, False, "its SHA-256 is another")
    n_rows = open_table(given).n_rows
    is_same = n_rows == sampling.side_rows
    return Check(
        claim, is_same, "" if is_same else f"it has {n_rows:,} rows in place of {sampling.side_rows:,}"
    )


__all__ = ["check_sample", "chosen_chance", "recompute_delta"]
