"""Checks and their sentences: each claim of a release, whether it is true, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sfumato.errors import InputError, VerificationFailed, number_of
from sfumato.policy.document import Policy
from sfumato.release.certificate import AloneClaim, CellsClaim, Certificate, Claims, Privacy, public_of
from sfumato.verify.cells import FoundGroups


@dataclass(frozen=True, slots=True)
class Check:
    """One claim (it reads after "the claim that"), whether it is true, and what was found.

    A note claims nothing that could be false: it says what a reader of the checks must know.
    """

    claim: str
    passed: bool
    detail: str = ""
    is_note: bool = False

    @property
    def mark(self) -> str:
        """What stands before it in a list of checks: ok, FAIL or note."""
        if not self.passed:
            return "FAIL"
        return "note" if self.is_note else "ok"

    def __str__(self) -> str:
        """A sentence, for a failed claim also on its own.

        >>> str(Check("the rows form 57 groups", False, "they form 56"))
        'The claim that the rows form 57 groups is false: they form 56.'
        """
        found = f": {self.detail}." if self.detail else "."
        if self.passed:
            return self.claim[:1].upper() + self.claim[1:] + found
        return f"The claim that {self.claim} is false{found}"


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a release or table."""

    checks: tuple[Check, ...]
    groups: FoundGroups | None = field(default=None, repr=False, compare=False)
    """The groups that were found in the rows of a release, to be lent to its report; None if they were too many."""

    @property
    def ok(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def raise_if_failed(self) -> None:
        if not self.ok:
            raise VerificationFailed(str(check) for check in self.failures)


class Unfit(Exception):  # noqa: N818 - reads as a sentence, and never leaves verify
    """What is wrong with a recoding."""


def check_equal(claim: str, claimed: int, found: int, why: str = "", *, of: str = "") -> Check:
    """Is a number ``of`` something as it is claimed? It stands in place of the last {} of the claim.

    >>> check_equal("the rows form {}", 1, 3, of="group")
    Check(claim='the rows form 1 group', passed=False, detail='there are 3', is_note=False)
    """
    detail = "" if claimed == found else why or f"there are {found:,}"
    before, _, after = claim.rpartition("{}")  # the name of a column may hold braces, too
    number = number_of(claimed, of) if of else f"{claimed:,}"
    return Check(f"{before}{number}{after}", claimed == found, detail)


def check_details(claimed: Claims, found: Claims) -> Iterator[Check]:
    """Check how much the cells tell, how many rows share one value, and how many are alone by what passes.

    Older certificates claim none of it.
    """
    if claimed.risk is not None and found.risk is not None:
        other = (
            "it differs in digits that are not shown"
            if str(claimed.risk) == str(found.risk)
            else f"it is {found.risk}"
        )
        is_same = claimed.risk == found.risk
        yield Check(f"the risk of re-identification is {claimed.risk}", is_same, "" if is_same else other)
    if claimed.cells is not None and found.cells is not None:
        is_same = claimed.cells == found.cells
        detail = "" if is_same else _describe_other_cells(claimed.cells, found.cells)
        yield Check(f"the cells of the quasi-identifiers are {claimed.cells}", is_same, detail)
    for name, n_rows in claimed.one_value.items():
        claim = f"the number of rows in groups that share one value of {name!r} is "
        if name in found.one_value:
            yield check_equal(claim + "{}", n_rows, found.one_value[name])
        else:
            yield Check(f"{claim}{n_rows:,}", False, "the policy has no such column without a diversity")
    if claimed.alone_by_passed is not None and found.alone_by_passed is not None:
        yield _check_alone(claimed.alone_by_passed, found.alone_by_passed)


def _check_alone(claimed: AloneClaim, found: AloneClaim) -> Check:
    """Check how many rows are alone by what is published as it is."""
    if claimed.columns != found.columns:
        detail = f"there are {found.columns:,}"
        return Check(f"{claimed.columns:,} columns are published as they are", False, detail)
    return check_equal(
        f"the number of rows that are alone by {claimed.words} is {{}}", claimed.rows, found.rows
    )


def _describe_other_cells(claimed: CellsClaim, found: CellsClaim) -> str:
    """What is found in place of a claim; in numbers of cells where the shares are the same when rounded.

    >>> claimed = CellsClaim(exact=500, narrowed=400, all=10_000)
    >>> _describe_other_cells(claimed, CellsClaim(exact=501, narrowed=399, all=10_000))
    'they are 501 exact and 399 narrowed of 10,000, not 500 and 400 of 10,000'
    """
    if str(claimed) != str(found):
        return f"they are {found}"
    return (
        f"they are {found.exact:,} exact and {found.narrowed:,} narrowed of {found.all:,}, "
        f"not {claimed.exact:,} and {claimed.narrowed:,} of {claimed.all:,}"
    )


def without_stop(error: InputError) -> str:
    """What an error says, to stand after a colon."""
    return str(error).removesuffix(".")


def describe_columns(names: Sequence[str], expected: Sequence[str]) -> str:
    """Which columns are not there, and how many there are too many; nothing if they are those that are expected.

    >>> describe_columns(["age", "sex"], ["age", "zip"])
    "column 'zip' is not there, and 1 column too many"
    """
    lacking = [name for name in expected if name not in names]
    n_more = len(names) - len(expected) + len(lacking)
    parts = [
        *([f"{name_columns(lacking)} is not there"] if lacking else []),
        *([f"{number_of(n_more, 'column')} too many"] if n_more else []),
    ]
    return ", and ".join(parts)


def name_columns(names: Sequence[str]) -> str:
    """The first column, and how many more there are."""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"column {names[0]!r}{more}"


# ---- differential privacy --------------------------------------------------------------------------

COMPOSITION = "sequential; draws on disjoint rows are charged once"
"""How a ledger may add up its shares."""

RANDOMNESS = Check(
    "owner's word: the randomness itself cannot be checked from an output",
    True,
    "that it was secret and followed the laws of the ledger is taken at the certificate's word",
    is_note=True,
)
SEEDED = Check(
    "nothing is promised",
    True,
    "the noise was not secret, and whoever can repeat it can take it away",
    is_note=True,
)


def check_statements(certificate: Certificate, policy: Policy) -> Iterator[Check]:
    """A differentially private release says what is public, and states no figures that were not paid for."""
    privacy = certificate.privacy
    is_same = privacy is not None and privacy.rows_at_most == policy.rows_at_most
    yield Check("the promise is for whom the policy says", is_same, "" if is_same else "they differ")
    is_public = certificate.privacy is not None and certificate.privacy.public == public_of(policy)
    yield Check(
        "the certificate calls public what the policy declares", is_public, "" if is_public else "they differ"
    )
    n_figures = len(certificate.figures)
    detail = f"there are {n_figures:,} figures beside it" if n_figures else ""
    yield Check("the certificate states no figures beside the ledger", not n_figures, detail)


def note_randomness(privacy: Privacy) -> Check:
    """What no output can show."""
    return RANDOMNESS if privacy.is_secret else SEEDED
