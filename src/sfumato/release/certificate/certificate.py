"""A certificate: the claims of a release with its policy, method and figures, as a value and in words.

How missing values match and what is public follow from the policy alone, and are said here, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from typing import Any

from sfumato import notebook
from sfumato.errors import InputError, InternalError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.kinds import as_date
from sfumato.policy.options.risk_utility import Absolute
from sfumato.policy.output import Form
from sfumato.policy.schema import Attribute, Kind
from sfumato.release.certificate import document
from sfumato.release.certificate.claims import Claims
from sfumato.release.certificate.privacy import Privacy
from sfumato.release.folder import CERTIFICATE
from sfumato.release.strict_json import DocumentError, dump, unless_none

NO_PROMISE = "nothing is promised"

MISSING = "own-value: a missing quasi-identifier matches only missing"
MISSING_OR_UNDECLARED = (
    "own-value: a cell that is missing or cannot be read, and a category that was not declared, are missing; a number "
    "outside its bounds is moved to the nearer one; a row without a declared class is left out"
)
MISSING_OR_UNDECLARED_BOXES = (
    "own-value: a cell that is missing or cannot be read, and a value that was not declared, are missing, which is a "
    "value of its own below the root; a number outside its bounds is moved to the nearer one"
)
"""The same of a differentially private release, where no cell may be an error."""

MISSING_RULES: Mapping[Form, str] = {
    Form.GROUPS: MISSING,
    Form.COUNTS: MISSING_OR_UNDECLARED,
    Form.BOXES: MISSING,
    Form.SAMPLE: MISSING_OR_UNDECLARED_BOXES,
}


def this_version() -> str:
    """The version of sfumato that runs."""
    try:
        return metadata.version("sfumato")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "0+unknown"


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """What a release says about itself, for machines.

    ``claims`` can be recomputed from the folder; ``figures`` are statements of the run that cannot, and so is the day
    on which it was ``made``. A differentially private release tells none.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: []}")
    >>> certificate = Certificate.of(policy, Claims(rows=10, groups=2))
    >>> certificate.promises_nothing, Certificate.from_json(certificate.to_json()) == certificate
    (True, True)
    """

    policy: Mapping[str, Any]
    method: Mapping[str, Any]
    claims: Claims
    figures: Mapping[str, Any] = field(default_factory=dict)
    missing: str = MISSING
    version: str = field(default_factory=this_version)
    privacy: Privacy | None = None
    made: date | None = None

    @classmethod
    def of(
        cls,
        policy: Policy,
        claims: Claims,
        *,
        figures: Mapping[str, Any] | None = None,
        privacy: Privacy | None = None,
        made: date | None = None,
    ) -> Certificate:
        return cls(
            policy.as_dict(),
            policy.method.as_policy(),
            claims,
            dict(figures or {}),
            missing_rule(policy),
            privacy=privacy,
            made=made,
        )

    def __repr__(self) -> str:
        return f"<Certificate of {self.counts}: {self.promise}>"

    def _repr_html_(self) -> str:
        return self.card("A certificate", notebook.paragraphs(self.left))

    def card(self, heading: str, *parts: str) -> str:
        """The promise and the counts as HTML for a notebook, with further parts below."""
        claims = self.claims
        words = ("draws" if self.privacy else "rows", "cells" if claims.counted is not None else "groups")
        figures = [(words[0] if claims.counted is None else "rows of counts", f"{claims.rows:,}")]
        figures += [("people", f"{claims.people:,}")] if claims.people is not None else []
        figures.append((words[1], f"{claims.groups:,}"))
        figures += [("rows suppressed", f"{claims.suppressed:,}")] if claims.suppressed else []
        figures += [("is the sum of the counts", f"{claims.counted:,}")] if claims.counted is not None else []
        achieved = [
            (notebook.describe_item(claim.requirement), claim.figure, f"{claim.achieved:,.6g}")
            for claim in claims.requirements
        ]
        return notebook.card(
            heading,
            "Nothing is promised." if self.promises_nothing else f"Promised: {self.promise}.",
            figures,
            notebook.table(("Required", "Worst group", "Achieved"), achieved) if achieved else "",
            *parts,
        )

    @property
    def left(self) -> tuple[str, ...]:
        """How much the cells still tell, in a sentence, if it is claimed."""
        return (f"Cells of the quasi-identifiers: {self.claims.cells}.",) if self.claims.cells else ()

    @property
    def counts(self) -> str:
        """What was published, in a few words."""
        claims = self.claims
        if claims.counted is not None:
            return f"counts in {number_of(claims.groups, 'cell')}"
        if self.privacy is not None:
            return f"{number_of(claims.rows, 'drawn row')} in {number_of(claims.groups, 'box', 'boxes')}"
        of = "" if claims.people is None else f" of {number_of(claims.people, 'person', 'people')}"
        return f"{number_of(claims.rows, 'row')}{of} in {number_of(claims.groups, 'group')}"

    @property
    def promise(self) -> str:
        """What is promised, in a few words."""
        if self.promises_nothing:
            return NO_PROMISE
        if self.privacy is not None:
            return self.privacy.promise
        if self.claims.utility is not None:
            at_least, at_most = self.claims.utility.at_least, self.claims.utility.risk_at_most
            if at_most is not None:
                return f"risk at most {float(at_most):.6g} of each row"
            of_whom = "" if isinstance(at_least, Absolute) else " of each row's"
            return f"utility at least {at_least}{of_whom}"
        return ", ".join(notebook.describe_item(claim.requirement) for claim in self.claims.requirements)

    @property
    def promises_nothing(self) -> bool:
        if self.privacy is not None:
            return not self.privacy.is_secret
        if self.claims.utility is not None:
            return self.claims.utility.at_least is None and self.claims.utility.risk_at_most is None
        return not self.claims.requirements

    def to_json(self) -> str:
        """The same text for the same certificate, to the last byte."""
        written = document.CertificateDocument[Any].model_construct(
            sfumato=self.version,
            format=document.FORMAT,
            **unless_none(made=self.made, promise=NO_PROMISE if self.promises_nothing else None),
            method=self.method,
            policy=self.policy,
            missing=self.missing,
            **unless_none(privacy=self.privacy and document.PrivacyDocument.of(self.privacy)),
            claims=document.claims_document(self.claims),
            figures=self.figures,
        )
        try:
            return json.dumps(dump(written), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        except (TypeError, ValueError):
            raise InternalError("A figure of the certificate is not plain JSON.") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """The certificate in a JSON text. An InputError says what is wrong with one that is none."""
        try:
            read = document.read(text)
        except DocumentError as error:
            raise _no_certificate(str(error)) from None
        found = cls(
            read.policy,
            read.method,
            read.claims.value(),
            read.figures,
            read.missing,
            read.sfumato,
            read.privacy.value() if read.privacy else None,
            read.made,
        )
        if read.promise != (NO_PROMISE if found.promises_nothing else None):
            why = "where nothing is required" if not read.privacy else "where the randomness is not secret"
            raise _no_certificate(f"promise must be {NO_PROMISE!r} {why}, and absent otherwise")
        return found


def _no_certificate(what: str) -> InputError:
    return InputError(f"{CERTIFICATE} is no certificate of a release: {what}.")


NO_ANONYMIZATION = (
    "A pseudonym is no anonymization: whoever has the key of its owner can make it again, and rows that share one are "
    "one person's."
)
"""What the certificate says of pseudonyms."""


# ---- sentences that follow from the policy alone ---------------------------------------------------


def missing_rule(policy: Policy) -> str:
    """How missing values are matched, in words."""
    return MISSING_RULES[policy.method.form]


def public_of(policy: Policy) -> tuple[str, ...]:
    """What a differentially private release takes from the policy and not from the table, a sentence each."""
    columns = (f"{attribute.name}: {_declaration(attribute)}" for attribute in policy.schema.published)
    return (*columns, *_bound(policy), *policy.method.public)


def _bound(policy: Policy) -> tuple[str, ...]:
    most = policy.rows_at_most
    if most is None:
        return ()
    return (
        f"{policy.person}: tells people apart; at most {number_of(most, 'row')} of each, drawn at random",
    )


def _declaration(attribute: Attribute) -> str:
    if attribute.is_ordered and attribute.bounds is not None:
        low, high = attribute.bounds
        if attribute.kind is Kind.DATE:
            first, last = map(as_date, (low, high))
            return f"days from {first} to {last} in steps of {attribute.step or 1:g}"
        return f"numbers from {low:.15g} to {high:.15g} in steps of {attribute.step:.15g}"
    return attribute.declaration.describe(attribute)
